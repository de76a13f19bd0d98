"""The cheapest experiment that settles whether the paper's 7 points are there, at its own scale, in two stages.

Rows 3 and 4 of table 3: WRN-28-10 on CIFAR-100, the same schedule, the same initial weights, SRS against reshuffling.
Stage 1 is one pair: if SRS does not come near the published error, there is nothing to settle. Stage 2 has five pairs,
of which the first is that of stage 1, and two single runs beside them. `docs/replication.md` has the rule by which they
are judged, stated before any such run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from replenish.lab.config import RunConfig

#: Stage 1 ends the experiment if SRS's test error, in percent, is above this: the paper has 12.34.
STOP_ABOVE = 16.0
#: The clean loss of all training images is measured this often, in effective epochs.
_CLEAN_EVERY = 10


@dataclass(frozen=True)
class Stage:
    """A group of runs: the arms by name, the seeds of each arm from 0, and what the group is for."""

    arms: dict[str, RunConfig]
    seeds: int
    purpose: str


_SRS = RunConfig(order="srs", clean_every=_CLEAN_EVERY)
_PAIR = {"reshuffling": replace(_SRS, order="reshuffling"), "srs": _SRS}

STAGES = {
    "decisive": Stage(
        _PAIR, 1, f"Stage 1 of 2: one pair. If SRS ends above {STOP_ABOVE:g} %, the published gain is not there: stop."
    ),
    "decisive-five": Stage(_PAIR, 5, "Stage 2 of 2: five pairs, with the one of stage 1."),
    "decisive-beside": Stage(
        {
            "srs-coarse-labels": replace(_SRS, dataset="cifar100-coarse"),
            "srs-original-unit": replace(_SRS, model="wide-resnet-28-10"),
        },
        1,
        "Beside stage 2: SRS on the 20 coarse labels, and SRS with the original residual unit.",
    ),
}


def _same(config: RunConfig) -> Callable[[], RunConfig]:
    return lambda: config


EXPERIMENTS: dict[str, Callable[[], RunConfig]] = {
    f"{group}/{arm}": _same(config) for group, stage in STAGES.items() for arm, config in stage.arms.items()
}


def stage_of(names: set[str]) -> Stage | None:
    """Return the stage that all these experiments belong to; None if there is none."""
    groups = {name.partition("/")[0] for name in names}
    return STAGES.get(groups.pop()) if len(groups) == 1 else None
