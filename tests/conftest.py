"""One thread for torch: two cores are shared with another worker of the test run."""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
