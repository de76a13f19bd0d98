"""The plan in docs/study.md as data: the arms with their seeds, the primary comparison, and all secondary ones.

Nothing here depends on a record. The page names one arm without saying what to compare it with: batched replacement.
Before any of its runs had ended, we decided to compare it with reshuffling, as the paper does.
"""

from __future__ import annotations

from dataclasses import dataclass

from replenish.lab.config import RunConfig
from study.experiments import EXPERIMENTS

#: Points of test error below which a difference would not matter to us.
MARGIN = 0.5
#: A part tests its claim only if all its runs with reshuffling end with at most this clean training error, in percent.
LEARNT = 1.0
#: The parts whose networks have to memorise their training images.
MEMORISING = ("rates", "unit", "coarse")
#: Pairs of the primary comparison, and of each secondary one.
PRIMARY_SEEDS, SEEDS = 20, 10
_PRIMARY_ARMS = ("rates/srs-paper", "rates/reshuffling-paper")


@dataclass(frozen=True)
class Arm:
    """An arm of the study: a name such as `rates/srs-paper`, its config with seed 0, and its number of seeds."""

    name: str
    config: RunConfig
    seeds: int

    @property
    def must_learn(self) -> bool:
        """Whether its claim is tested only if its runs memorise their training images."""
        return self.name.split("/")[0] in MEMORISING and self.config.order == "reshuffling"


@dataclass(frozen=True)
class Comparison:
    """First minus second, seed by seed. With `base`, the difference of another pair of arms is subtracted.

    `first`, `second` and `base` are names of arms, `label` is for the reader, `seeds` is the stated number of pairs.
    """

    name: str
    label: str
    first: str
    second: str
    seeds: int = SEEDS
    base: tuple[str, str] | None = None

    @property
    def arms(self) -> tuple[str, ...]:
        """The names of all arms in the comparison."""
        return (self.first, self.second, *(self.base or ()))


_CONFIGS = {name.removeprefix("study/"): make() for name, make in EXPERIMENTS.items()}
ARMS = {name: Arm(name, config, PRIMARY_SEEDS if name in _PRIMARY_ARMS else SEEDS) for name, config in _CONFIGS.items()}

PRIMARY = Comparison("primary", "SRS minus reshuffling, learning rate 0.1", *_PRIMARY_ARMS, PRIMARY_SEEDS)
SECONDARY = (
    Comparison("control", "control: two orders of reshuffling", "control/reshuffling", "rates/reshuffling-paper"),
    Comparison("rate-low", "reshuffling at 0.1 minus at 0.1/√3", "rates/reshuffling-paper", "rates/reshuffling-low"),
    Comparison("rate-high", "reshuffling at 0.1√3 minus at 0.1", "rates/reshuffling-high", "rates/reshuffling-paper"),
    Comparison("shift-low", "SRS at 0.1/√3 minus reshuffling at 0.1", "rates/srs-low", "rates/reshuffling-paper"),
    Comparison("shift-high", "SRS at 0.1 minus reshuffling at 0.1√3", "rates/srs-paper", "rates/reshuffling-high"),
    Comparison("replacement", "replacement minus reshuffling", "rates/replacement-paper", "rates/reshuffling-paper"),
    Comparison("unit", "original unit: SRS minus reshuffling", "unit/srs", "unit/reshuffling"),
    Comparison("coarse", "coarse labels: SRS minus reshuffling", "coarse/srs", "coarse/reshuffling"),
    Comparison("augmented", "augmented: SRS minus reshuffling", "augmented/srs", "augmented/reshuffling"),
    Comparison("mini", "mini: SRS minus reshuffling", "mini/srs", "mini/reshuffling"),
    Comparison(
        "unit-interaction",
        "original unit minus batch norm after addition",
        "unit/srs",
        "unit/reshuffling",
        base=_PRIMARY_ARMS,
    ),
    Comparison(
        "coarse-interaction", "coarse minus fine labels", "coarse/srs", "coarse/reshuffling", base=_PRIMARY_ARMS
    ),
)
COMPARISONS = (PRIMARY, *SECONDARY)
