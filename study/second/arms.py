"""The arms of the second study's parts, as configs.

The arms of a part differ in the order, or in what the arm's name says, and in nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from replenish.lab.config import RunConfig
from replenish.lab.jobs import Job, plan

#: The first study used seeds 0 to 19.
FIRST_SEED = 100
#: Gives reshuffling the stationary variance of SRS with k = 1 as kappa -> 0, at T = 50 steps per epoch, momentum 0.9:
#: `equivalent_learning_rate(RandomReshuffling(2500, 50), SequencedReplacement(2500, 50), 1e-5, 0.9)` is 2.0285.
EQUAL_VARIANCE_RATE = 0.20285
#: The same for part F: 1.7663 times 0.1, at T = 500 steps per epoch.
FULL_EQUAL_VARIANCE_RATE = 0.17663
#: The lengths of part E's runs, in effective epochs.
FEW_EPOCHS = (1, 2, 4)
#: F's network, by its function in `study.networks`, and its precision: the pilot chose them.
NETWORK, PRECISION = "wide", "bf16-mixed"


@dataclass(frozen=True)
class Part:
    """A part of the study: its arms by name, and the number of seeds of each."""

    arms: dict[str, RunConfig]
    seeds: int
    first_seed: int = FIRST_SEED

    def jobs(self, runs: Path, command: str) -> list[Job]:
        """Return a job for every arm and seed, all arms of a seed before the next seed."""
        return plan(self.arms.values(), range(self.first_seed, self.first_seed + self.seeds), runs, command=command)


def dose(order: str, pool_size: int | None = None, learning_rate: float = 0.1) -> RunConfig:
    """Return an arm of part K: the setting of the first study's part `rates`, measured before the first decay too."""
    return RunConfig(
        dataset="cifar100",
        images_per_class=25,
        image_size=16,
        pad=0,
        flip=False,
        model="wrn-10-2",
        order=order,
        pool_size=pool_size,
        batch_size=50,
        learning_rate=learning_rate,
        epochs=60,
        test_every=60,
        clean_every=12,
        held_out=True,
    )


def _dose_and_response() -> dict[str, RunConfig]:
    samples = 2_500
    srs = dose("srs")
    return {
        "shuffle-once": dose("shuffle-once"),
        "srs-quarter": replace(srs, pool_size=samples // 4),
        "reshuffling": dose("reshuffling"),
        "srs": srs,
        "srs-four": replace(srs, pool_size=4 * samples),
        "replacement": dose("replacement"),
        "reshuffling-equal-variance": dose("reshuffling", learning_rate=EQUAL_VARIANCE_RATE),
    }


def full(
    order: str = "reshuffling",
    *,
    model: str = NETWORK,
    precision: str = PRECISION,
    epochs: int = 10,
    learning_rate: float = 0.1,
) -> RunConfig:
    """Return an arm of parts F and E: all of CIFAR-100 at 32 pixels, with the paper's crops, flips and schedule."""
    return RunConfig(
        dataset="cifar100",
        model=f"study.networks:{model}",
        order=order,
        batch_size=100,
        learning_rate=learning_rate,
        epochs=epochs,
        test_every=epochs,
        precision=precision,
    )


def _pilot() -> dict[str, RunConfig]:
    """Return the candidates for F's network and precision; 50 training images per class are held out to choose by."""
    candidates = [(model, "bf16-mixed") for model in ("patches", "overlapping", "wide")] + [("wide", "32-true")]
    return {
        f"{model}-{precision}": replace(full(model=model, precision=precision), images_per_class=450, held_out=True)
        for model, precision in candidates
    }


def _full_images() -> dict[str, RunConfig]:
    """Return the arms of part F, tested after every epoch: S reads the best epoch of reshuffling's first runs."""
    arms = {
        "reshuffling": full(),
        "srs": full("srs"),
        "reshuffling-equal-variance": full(learning_rate=FULL_EQUAL_VARIANCE_RATE),
    }
    return {name: replace(arm, test_every=1) for name, arm in arms.items()}


def _few_epochs() -> dict[str, RunConfig]:
    orders = ("reshuffling", "srs", "replacement")
    return {f"{order}-{epochs}": full(order, epochs=epochs) for epochs in FEW_EPOCHS for order in orders}


PARTS = {
    "K": Part(_dose_and_response(), seeds=20),
    "pilot": Part(_pilot(), seeds=3, first_seed=0),
    "F": Part(_full_images(), seeds=16),
    "E": Part(_few_epochs(), seeds=8),
}
