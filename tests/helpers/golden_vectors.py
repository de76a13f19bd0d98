"""The draws of stream v1, from `golden/v1.json`. They are a promise: vectors may be added, but never edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN_FILE = Path(__file__).parents[1] / "golden" / "v1.json"
GOLDEN: dict[str, Any] = json.loads(GOLDEN_FILE.read_text())
