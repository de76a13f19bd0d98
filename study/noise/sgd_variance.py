"""SGD around a minimum with several orders at once, and the variance of its weights along chosen directions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice

import numpy as np
import torch
from torch import Tensor

from replenish.orders.protocol import Order
from study.noise.plateau import Plateau, Problem
from study.noise.setting import Setting

_STEPS_AT_ONCE = 256


def variances(
    problem: Problem,
    plateau: Plateau,
    directions: Tensor,
    trainings: Sequence[tuple[float, Order]],
    setting: Setting,
    progress: Callable[[float], object] = lambda done: None,
) -> Tensor:
    """Return the variance over time of each training's weights, of shape (trainings, directions).

    All trainings start at the minimum. Each has its own weights, batches, learning rate and order, but they are stepped
    together, in one computation. The directions are unit vectors, one per column.
    """
    rates = torch.tensor([rate for rate, _ in trainings], dtype=torch.float64)
    settling = setting.settling_epochs * setting.steps_per_epoch
    total = settling + setting.measured_epochs * setting.steps_per_epoch
    weights = plateau.weights.repeat(len(trainings), 1)
    sums = torch.zeros(2, len(trainings), directions.shape[1], dtype=torch.float64)
    readings = 0
    with torch.no_grad():
        for step, chosen in enumerate(islice(_batches([order for _, order in trainings]), total)):
            weights -= rates[:, None] * gradients(problem, weights, chosen)
            if step >= settling and step % setting.every == 0:
                place = (weights - plateau.weights) @ directions
                sums[0] += place
                sums[1] += place.square()
                readings += 1
            if step % 1000 == 0:
                progress(step / total)
    mean, square = sums / readings
    return square - mean.square()


def gradients(problem: Problem, weights: Tensor, chosen: Tensor) -> Tensor:
    """Return the gradient of each network's loss on its own batch.

    `chosen` has the indices of the images, of shape (networks, images). The gradient is written out, since autograd
    takes twice the time for so small a network.
    """
    networks, number = chosen.shape
    first, second = problem.layers(weights)
    images = problem.images[chosen.flatten()].view(networks, number, -1)
    hidden = torch.bmm(images, first).tanh_()
    with_one = torch.nn.functional.pad(hidden, (0, 1), value=1.0)
    error = torch.bmm(with_one, second).softmax(2) - problem.targets[chosen.flatten()].view(networks, number, -1)
    error_below = torch.bmm(error, second[:, :-1].transpose(1, 2)) * (1 - hidden.square())
    found = weights * problem.weight_decay
    for layer, below, above in zip(problem.layers(found), (images, with_one), (error_below, error), strict=True):
        layer.baddbmm_(below.transpose(1, 2), above, alpha=1 / number)
    return found


def _batches(orders: Sequence[Order]) -> Iterator[Tensor]:
    """Yield one step's batches of all orders at a time, of shape (orders, B)."""
    running = [order.batches() for order in orders]
    while True:
        drawn = np.stack([np.stack(list(islice(batches, _STEPS_AT_ONCE))) for batches in running], axis=1)
        yield from torch.from_numpy(drawn)
