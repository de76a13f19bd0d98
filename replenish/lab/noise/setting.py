"""What the experiment on the noise of orders runs: the network, the data, the orders, two learning rates.

`docs/noise_on_a_network.md` says why, what is predicted and how it is judged; it was committed before the first run
that counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from replenish.orders import BatchedReplacement, IndependentDraws, RandomReshuffling, SequencedReplacement, ShuffleOnce
from replenish.orders.protocol import Order


@dataclass(frozen=True)
class Setting:
    """One experiment, but for the seed.

    Attributes:
        learning_rates: Constant, without momentum. At the same kappa a lower one has directions that are sharper.
        weight_decay: Gives every direction a curvature; it is a part of the loss.
        images_per_class: Of the ten digits; so N is ten times that.
        batch_size: B, which divides N.
        hidden: Units of the hidden layer, with tanh.
        kappas: The edges of the bands of kappa in which directions are looked at.
        directions: How many of a band at most, evenly from all of them.
        settling_epochs: Run before anything is measured.
        measured_epochs: Over which the variance is taken.
        every: The steps from one reading of the weights to the next; it shares no factor with N/B, so that readings
            come from all parts of an epoch alike.
        repeats: How many trainings an order has in a run, each with draws of its own.
    """

    learning_rates: tuple[float, ...] = (0.2, 0.05)
    weight_decay: float = 0.003
    images_per_class: int = 128
    batch_size: int = 40
    hidden: int = 12
    kappas: tuple[float, ...] = tuple(round(10 ** (power / 4), 4) for power in range(-5, 6))
    directions: int = 15
    settling_epochs: int = 150
    measured_epochs: int = 2000
    every: int = 9
    repeats: int = 2

    @property
    def num_samples(self) -> int:
        """N."""
        return 10 * self.images_per_class

    @property
    def steps_per_epoch(self) -> int:
        """N/B."""
        return self.num_samples // self.batch_size

    def config(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


#: The experiments by name.
EXPERIMENTS: dict[str, Setting] = {"noise/digits": Setting()}

#: The order that the variances of all others are divided by.
WHITE = "independent"


@dataclass(frozen=True)
class Arm:
    """An order with its sizes: its name in the list of orders, one for people, and what makes it of (N, B, seed)."""

    order: str
    label: str
    make: Callable[[int, int, int], Order]


def _pool(size: Callable[[int], int]) -> Callable[[int, int, int], Order]:
    return lambda n, b, seed: SequencedReplacement(n, b, seed=seed, pool_size=size(n))


ARMS: dict[str, Arm] = {
    WHITE: Arm("independent", "independent draws", lambda n, b, seed: IndependentDraws(n, b, seed=seed)),
    "replacement": Arm("replacement", "replacement", lambda n, b, seed: BatchedReplacement(n, b, seed=seed)),
    "srs-4": Arm("srs", "SRS, k = 4", _pool(lambda n: 4 * n)),
    "srs": Arm("srs", "SRS, k = 1", _pool(lambda n: n)),
    "reshuffling": Arm("reshuffling", "reshuffling", lambda n, b, seed: RandomReshuffling(n, b, seed=seed)),
    "srs-quarter": Arm("srs", "SRS, k = 1/4", _pool(lambda n: n // 4)),
    "shuffle-once": Arm("shuffle-once", "shuffle once", lambda n, b, seed: ShuffleOnce(n, b, seed=seed)),
}


def find(name: str) -> dict[str, Setting]:
    """Return the experiments of a name, or all of them for `noise`."""
    wanted = name.strip("/")
    found = {known: setting for known, setting in EXPERIMENTS.items() if wanted in (known, "noise")}
    if not found:
        raise ValueError(f"there is no experiment named {name!r}; there is {', '.join(EXPERIMENTS)}")
    return found
