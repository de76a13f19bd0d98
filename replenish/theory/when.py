"""When the order of the data can matter to a training at all, by the law of the noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from replenish.orders.random_reshuffling import RandomReshuffling
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.theory.arguments import dataset, real
from replenish.theory.noise import equivalent_learning_rate, noise_variance
from replenish.theory.sgd import checked_momentum


@dataclass(frozen=True)
class OrdersDiffer:
    """When SRS and reshuffling differ in a training, by the law of the noise.

    Attributes:
        kappa_per_curvature: kappa is this times the curvature: effective learning rate times N/B.
        smallest_kappa: That of a direction with no curvature but weight decay; 0 without it.
        largest_difference: The most by which SRS's variance exceeds reshuffling's, as a share of independent draws'.
        at_curvature: The curvature of the loss where it does.
        same_above: The curvature of the loss above which the difference is less than `noticeable`.
        noticeable: That share.
        variance_ratio: SRS's variance over reshuffling's in the flattest direction, at `smallest_kappa`.
        learning_rate_ratio: The factor on reshuffling's learning rate that would make up for it there.
    """

    kappa_per_curvature: float
    smallest_kappa: float
    largest_difference: float
    at_curvature: float
    same_above: float
    noticeable: float
    variance_ratio: float
    learning_rate_ratio: float

    def __str__(self) -> str:
        if self.largest_difference < self.noticeable:
            first = (
                f"The order cannot matter: weight decay alone makes kappa {self.smallest_kappa:.3g}, where SRS's "
                f"variance exceeds reshuffling's by {self.largest_difference:.1%} of independent draws' at most."
            )
        else:
            first = (
                f"Directions with a curvature below {self.same_above:.3g} can tell SRS from reshuffling; at "
                f"{self.at_curvature:.3g} its variance is larger by {self.largest_difference:.1%} of independent "
                f"draws', the most."
            )
        return (
            f"{first} In the flattest direction it is {self.variance_ratio:.2f} times reshuffling's, which a learning "
            f"rate {self.learning_rate_ratio:.2f} times as large would make too."
        )


def when_orders_differ(
    num_samples: int,
    batch_size: int,
    learning_rate: float,
    momentum: float = 0.0,
    weight_decay: float = 0.0,
    *,
    noticeable: float = 0.05,
) -> OrdersDiffer:
    """Say at which curvatures the order of the data can matter to a training, and by how much at most.

    It compares SRS with a pool of all samples to reshuffling. A direction of curvature h has kappa = eta/(1 - beta) N/B
    (h + weight decay); in sharp directions, at large kappa, all orders are alike.

    Example:
        >>> paper = when_orders_differ(50_000, 64, learning_rate=0.1, momentum=0.9, weight_decay=5e-4)
        >>> round(paper.smallest_kappa, 2), round(paper.largest_difference, 3), round(paper.same_above, 3)
        (0.39, 0.251, 0.027)
    """
    n, b = dataset(num_samples, batch_size)
    beta = checked_momentum(momentum)
    rate = real("learning_rate", learning_rate, positive=True)
    weight_decay = real("weight_decay", weight_decay)
    noticeable = real("noticeable", noticeable, positive=True)
    n -= n % b  # a short batch would add its own noise, which is not the question
    if n == b:
        raise ValueError(
            f"batch_size should be at most half of num_samples for orders to differ, but got {b} of {num_samples}"
        )
    srs, reshuffling, share = SequencedReplacement(n, b), RandomReshuffling(n, b), b / n
    slope = rate / (1 - beta) / share
    smallest = slope * weight_decay
    limit = 2 * (1 + beta) / (1 - beta) / share
    if smallest >= limit:
        raise ValueError(
            f"learning_rate * weight_decay should be below {2 * (1 + beta):g}, or SGD diverges, but got "
            f"{rate * weight_decay:g}"
        )
    grid = np.geomspace(max(smallest, 1e-3), min(max(1e3, 10 * smallest), limit * (1 - 1e-9)), 400)
    differences = noise_variance(srs, grid, beta) - noise_variance(reshuffling, grid, beta)
    most = int(np.argmax(differences))
    above = np.flatnonzero(differences >= noticeable)
    flattest = max(smallest, 1e-6)
    return OrdersDiffer(
        kappa_per_curvature=slope,
        smallest_kappa=smallest,
        largest_difference=float(differences[most]),
        at_curvature=max(float(grid[most]) / slope - weight_decay, 0.0),
        same_above=max(float(grid[above[-1]]) / slope - weight_decay, 0.0) if above.size else 0.0,
        noticeable=noticeable,
        variance_ratio=float(noise_variance(srs, flattest, beta) / noise_variance(reshuffling, flattest, beta)),
        learning_rate_ratio=equivalent_learning_rate(reshuffling, srs, flattest, beta),
    )
