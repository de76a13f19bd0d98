"""The replication study: does SRS help a network that memorises, and is it more than a larger learning rate?

`docs/study.md` says what each part is for and how it is judged; it was committed before the first run that counts. All
arms of a part have the same data, network, epochs and batch size, and B divides N, so every batch of every order is
full. Arms differ only in the order, the learning rate, or what their name says.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from replenish.lab.config import RunConfig

#: The paper's learning rate, divided and multiplied by sqrt 3: the factor that matches SRS's noise in flat directions.
LEARNING_RATES = {"low": 0.1 / math.sqrt(3), "paper": 0.1, "high": 0.1 * math.sqrt(3)}
#: Enough for the network to memorise its training images. A pilot with 40 epochs left a training error of 5 %.
EPOCHS = 60
#: The number of a seed's second order, for the negative control.
OTHER_ORDER = 1


def memorising(order: str, learning_rate: str = "paper") -> RunConfig:
    """Return a run whose network memorises its training images: 25 images per class, no augmentation."""
    return RunConfig(
        dataset="cifar100",
        images_per_class=25,
        image_size=16,
        pad=0,
        flip=False,
        model="wrn-10-2",
        order=order,
        batch_size=50,
        learning_rate=LEARNING_RATES[learning_rate],
        epochs=EPOCHS,
        test_every=EPOCHS,
        clean_every=5,
        held_out=True,
    )


def original_unit(order: str) -> RunConfig:
    """Return part B: the original residual unit instead of batch norm after the addition."""
    return replace(memorising(order), model="wide-resnet-10-2")


def coarse_labels(order: str) -> RunConfig:
    """Return part C: the same images with CIFAR-100's 20 coarse labels, so 125 images per class."""
    return replace(memorising(order), dataset="cifar100-coarse")


def augmented(order: str) -> RunConfig:
    """Return part D: with the paper's augmentation, its crops padded in proportion to the smaller images."""
    return replace(memorising(order), pad=2, flip=True)


def mini(order: str) -> RunConfig:
    """Return part E: rows 3 and 4 of table 3 at the scale mini, with batches that divide the epoch."""
    return RunConfig(
        dataset="cifar100",
        images_per_class=100,
        image_size=16,
        pad=2,
        model="wrn-10-1",
        order=order,
        batch_size=50,
        epochs=40,
        test_every=10,
        clean_every=10,
        held_out=True,
    )


def control() -> RunConfig:
    """Return the negative control: reshuffling with part A's initial weights and another order."""
    return replace(memorising("reshuffling"), order_number=OTHER_ORDER)


def _experiments() -> dict[str, Callable[[], RunConfig]]:
    found: dict[str, Callable[[], RunConfig]] = {}
    for order in ("reshuffling", "srs"):
        for rate in LEARNING_RATES:
            found[f"study/rates/{order}-{rate}"] = partial(memorising, order, rate)
    found["study/rates/replacement-paper"] = partial(memorising, "replacement")
    found["study/control/reshuffling"] = control
    for part, make in {"unit": original_unit, "coarse": coarse_labels, "augmented": augmented, "mini": mini}.items():
        for order in ("reshuffling", "srs"):
            found[f"study/{part}/{order}"] = partial(make, order)
    return found


EXPERIMENTS = _experiments()
