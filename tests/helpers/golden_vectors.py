"""What stream v1 draws, as `golden/v1.json` has it: a promise. New vectors may be added there; none is ever edited."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

GOLDEN_FILE = Path(__file__).parents[1] / "golden" / "v1.json"
GOLDEN: dict[str, Any] = json.loads(GOLDEN_FILE.read_text())
