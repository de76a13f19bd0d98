"""The setting of the experiment on the noise of orders: network, data, orders and two learning rates.

`docs/noise_on_a_network.md` gives the reasons, the predictions and the rules. It was committed before the first run
that counts.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from replenish.orders import Order, build_order


@dataclass(frozen=True)
class Setting:
    """One experiment, without its seed."""

    # Constant, without momentum. At the same kappa, a lower rate means a sharper direction.
    learning_rates: tuple[float, ...] = (0.2, 0.05)
    weight_decay: float = 0.003  # part of the loss; gives every direction a curvature
    images_per_class: int = 128  # there are ten classes, so N is ten times this
    batch_size: int = 40  # B, which divides N
    hidden: int = 12  # units of the hidden layer, with tanh
    # The edges of the bands of kappa in which directions are measured.
    kappas: tuple[float, ...] = tuple(round(10 ** (power / 4), 4) for power in range(-5, 6))
    directions: int = 15  # measure at most this many directions per band, evenly spaced
    settling_epochs: int = 150  # before the first measurement
    measured_epochs: int = 2000  # the variance is taken over these
    # Steps between two readings of the weights. It has no common factor with N/B, so that readings come equally often
    # from all parts of an epoch.
    every: int = 9
    repeats: int = 2  # trainings per order in a run, each with different draws

    @property
    def num_samples(self) -> int:
        """N."""
        return 10 * self.images_per_class

    @property
    def steps_per_epoch(self) -> int:
        """N/B."""
        return self.num_samples // self.batch_size

    def config(self) -> dict[str, Any]:
        """Return all fields as plain values."""
        return {name: list(value) if isinstance(value, tuple) else value for name, value in asdict(self).items()}


#: The experiments by name.
EXPERIMENTS: dict[str, Setting] = {"noise/digits": Setting()}

#: All variances are divided by those of this order.
WHITE = "independent"


@dataclass(frozen=True)
class Arm:
    """An order: its registered name, a label, and k = M/N if it has a pool."""

    order: str
    label: str
    pool: float | None = None

    def make(self, num_samples: int, batch_size: int, seed: int) -> Order:
        """Return the order."""
        options = {} if self.pool is None else {"pool_size": int(self.pool * num_samples)}
        return build_order(self.order, num_samples, batch_size, seed=seed, **options)


ARMS: dict[str, Arm] = {
    WHITE: Arm("independent", "independent draws"),
    "replacement": Arm("replacement", "replacement"),
    "srs-4": Arm("srs", "SRS, k = 4", 4),
    "srs": Arm("srs", "SRS, k = 1", 1),
    "reshuffling": Arm("reshuffling", "reshuffling"),
    "srs-quarter": Arm("srs", "SRS, k = 1/4", 0.25),
    "shuffle-once": Arm("shuffle-once", "shuffle once"),
}


def find(name: str) -> dict[str, Setting]:
    """Return the experiments with this name, or all of them for `noise`."""
    wanted = name.strip("/")
    found = {known: setting for known, setting in EXPERIMENTS.items() if wanted in (known, "noise")}
    if not found:
        raise ValueError(f"there is no experiment named {name!r}; there is {', '.join(EXPERIMENTS)}")
    return found
