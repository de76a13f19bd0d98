"""The committed record behind `replenish demo`: two arms of table 3 at the scale digits, with many more seeds.

`python -m study.demo` ran it and wrote `demo_runs.jsonl`, a line per run with its seed, errors, commit and command.
"""

from __future__ import annotations

import json
from importlib import resources

#: SRS and reshuffling with the same batch size and schedule: what the demonstration compares.
ARMS = ("table3/wrn-srs-b64-120-150-175", "table3/wrn-b64-120-150-175")


def recorded_errors() -> tuple[dict[int, float], dict[int, float]]:
    """Return the test errors of both arms by seed, in percent, in the order of the seeds.

    Example:
        >>> srs, reshuffling = recorded_errors()
        >>> list(srs) == list(reshuffling) == list(range(len(srs)))
        True
    """
    found: dict[str, dict[int, float]] = {arm: {} for arm in ARMS}
    lines = resources.files("replenish.lab.experiments").joinpath("demo_runs.jsonl").read_text("utf-8").splitlines()
    for run in map(json.loads, lines):
        found[run["experiment"]][run["seed"]] = run["test_error"]
    return found[ARMS[0]], found[ARMS[1]]
