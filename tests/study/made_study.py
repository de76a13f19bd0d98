"""Made-up records of the study with known differences, as `read_runs` would return them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from replenish.lab.runs import RunRecord
from study.replication import ARMS

#: Alternating plus and minus one, with mean 0 over an even number of seeds.
WOBBLE = (1.0, -1.0)


def made_run(arm: str, seed: int, error: float, *, status: str = "finished", **result: Any) -> RunRecord:
    """Return an ended run of an arm, executed like all others unless `result` says otherwise."""
    config = ARMS[arm].config.with_seed(seed)
    ended = {
        "status": status,
        "test_error": error if status == "finished" else None,
        "held_out_error": error + 0.25,
        "clean_error": 0.0,
        "steps": 3000,
        "initial_sha256": f"{config.model} {seed}",
        "data": {"fingerprint": config.dataset},
        "versions": {"torch": "2.13.0"},
        "machine": {"processor": "A processor"},
        "hardware": {"threads": 1, "device": "cpu"},
        "earlier_hardware": [],
        "commit": "abc1234",
        "command": "replenish run study --seeds 20",
        "seconds": 60.0,
        **result,
    }
    return RunRecord(f"{config.slug}/seed{seed}", config, metrics(config.epochs, seed, config.order == "srs"), ended)


def metrics(epochs: int, seed: int, srs: bool) -> tuple[dict[str, Any], ...]:
    """Return a loss per epoch, and a clean one every fifth. SRS is lower online, and wobbles in the clean loss."""
    lines = []
    for epoch in range(1, epochs + 1):
        loss, wobble = 4.6 * math.exp(-epoch / 12), 0.01 * WOBBLE[seed % 2]
        line: dict[str, Any] = {"epoch": epoch, "train_loss": loss * (0.9 + wobble if srs else 1.0)}
        if epoch % 5 == 0:
            clean = 0.8 * loss * (1 + wobble if srs else 1.0)
            line |= {"clean_loss": clean, "clean_error": 90 * math.exp(-epoch / 8)}
        lines.append(line)
    return tuple(lines)


def made_study(
    shifts: Mapping[str, float] | None = None, *, spread: float = 0.2, seeds: Mapping[str, int] | None = None
) -> list[RunRecord]:
    """Return runs of every arm: an error of 80 with a shift per arm, and a wobble in all arms except plain reshuffling.

    Args:
        shifts: Points by arm; by default 0.
        spread: Distance of a run from its arm's mean, alternating up and down.
        seeds: How many runs of an arm have ended; by default all.
    """
    shifts, seeds = shifts or {}, seeds or {}

    def error(name: str, seed: int) -> float:
        order, other = ARMS[name].config.order, name.startswith("control/")
        # Two arms of a comparison must not go up and down together, or there would be no spread.
        side = 1 if order != "reshuffling" or other else -1 if name.endswith(("-low", "-high")) else 0
        return 80 + shifts.get(name, 0.0) + side * spread * WOBBLE[seed % 2]

    return [
        made_run(name, seed, error(name, seed))
        for name, arm in ARMS.items()
        for seed in range(seeds.get(name, arm.seeds))
    ]
