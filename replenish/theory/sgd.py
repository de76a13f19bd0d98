"""The effect of an order on SGD: on a quadratic, the stationary variance of the weight.

With learning rate eta, curvature h and heavy-ball momentum beta, the next weight is (1 + beta - step) w - beta w_before
- eta x, where step = eta h and x is the noise. The variance depends on kappa = eta/(1 - beta) h N/B, the curvature
times the effective learning rate, per epoch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks
from replenish.checks import Floats
from replenish.orders.epochs import RandomReshuffling
from replenish.orders.protocol import Order, check_order
from replenish.orders.sequenced_replacement import SequencedReplacement
from replenish.theory.noise_laws import NoiseLaw
from replenish.theory.order_laws import NoLawError, noise_law

_DOUBLE_POLE = 1e-4  # poles that are relatively closer than this are treated as this far apart
_MOST_NUMBERS = 2**23  # in all columns, one of N numbers per class; of more classes, only some are examined


def noise_variance(order: Order, kappa: ArrayLike, momentum: float = 0.0, *, values: ArrayLike | None = None) -> Floats:
    """Return the stationary variance of SGD's weight, relative to independent draws.

    This is for the weight of a quadratic, averaged over all steps. A weight with poles r_1, r_2 (momentum makes two)
    weights the covariances of the noise by a_1 r_1^|d| + a_2 r_2^|d|. Each law sums these, in closed form or by the
    integral of its spectrum.

    Args:
        order: One of the library's orders with a law.
        kappa: Curvature times effective learning rate, per epoch: eta/(1 - momentum) h N/B.
        momentum: Heavy-ball momentum, as torch's SGD has it, in [0, 1).
        values: For SRS with a fixed sequence: the number of each sample, in one column or several, to be used instead
            of the average over all ways to assign numbers. `sequence="identity"` over data sorted by class has a larger
            variance than the average.

    Raises:
        NoLawError: The order has no law in closed form.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> orders = RandomReshuffling(50_000, 50), SequencedReplacement(50_000, 50)
        >>> [round(float(noise_variance(order, 1.0)), 3) for order in orders]
        [0.264, 0.503]
    """
    law = noise_law(order, values)
    beta = _momentum(momentum)
    kappas = checks.reals("kappa", kappa, positive=True)
    ratios = [_variance_ratio(law, _stable_step(law, float(value), beta), beta) for value in kappas.ravel()]
    return np.array(ratios).reshape(kappas.shape)


def sorted_data_warning(order: Order, labels: ArrayLike) -> str | None:
    """Return a warning if the fixed sequence of SRS follows the classes, so that its noise is not the law's average.

    It compares the variance of the weight at kappa = 1 for differences between classes with the average over all
    sequences. None means that the two agree to within a tenth, or that the order has no fixed sequence.

    Args:
        order: Any order.
        labels: The class of each sample.

    Example:
        >>> from replenish import SequencedReplacement
        >>> labels = np.repeat(np.arange(10), 200)
        >>> print(sorted_data_warning(SequencedReplacement(2000, 20, sequence="identity"), labels))
        sequence follows the classes, so the weight's variance at kappa = 1 is 1.07 of independent draws' for what \
differs between classes, not 0.50: take sequence="shuffled"
        >>> sorted_data_warning(SequencedReplacement(2000, 20), labels) is None
        True
    """
    array = checks.array("labels", labels)
    if array.dtype.kind == "O":
        raise TypeError(f"labels should be numbers or strings, but got an array of dtype {array.dtype}")
    if array.shape != (check_order(order).num_samples,):
        raise ValueError(
            f"labels should have one entry for each of the {order.num_samples} samples, but got an array of shape "
            f"{array.shape}"
        )
    distinct, classes = np.unique(array, return_inverse=True)
    if len(distinct) < 2:
        return None
    examined = np.unique(np.linspace(0, len(distinct) - 1, max(1, _MOST_NUMBERS // len(classes))).round())
    try:
        columns = (classes[:, np.newaxis] == examined).astype(np.float64)
        found, average = (float(noise_variance(order, 1.0, values=each)) for each in (columns, None))
    except NoLawError:
        return None
    if abs(found - average) <= average / 10:
        return None
    return (
        f"sequence follows the classes, so the weight's variance at kappa = 1 is {found:.2f} of independent draws' for "
        f'what differs between classes, not {average:.2f}: take sequence="shuffled"'
    )


def equivalent_learning_rate(order: Order, other: Order, kappa: float, momentum: float = 0.0) -> float:
    """Return the factor for `order`'s learning rate that gives it the variance of `other`.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> reshuffling, srs = RandomReshuffling(50_000, 50), SequencedReplacement(50_000, 50)
        >>> [round(equivalent_learning_rate(reshuffling, srs, kappa), 2) for kappa in (1e-3, 1, 10)]
        [1.73, 1.44, 1.1]
    """
    if not isinstance(other, Order):
        raise TypeError(f"other should be an Order of replenish, but got a {type(other).__name__}")
    law, other_law, beta = noise_law(order), noise_law(other), _momentum(momentum)
    kappa = checks.real("kappa", kappa, positive=True)
    if law.share != other_law.share:
        raise ValueError(
            f"other should have as many steps in an epoch as order, but got N/B = {1 / other_law.share:g} for other "
            f"and {1 / law.share:g} for order"
        )
    wanted = _variance(other_law, _stable_step(other_law, kappa, beta), beta)
    start = _stable_step(law, kappa, beta)
    low, high = math.log(start) - 12, math.log(min(start * math.exp(12), (2 + 2 * beta) * (1 - 1e-9)))
    if not _variance(law, math.exp(low), beta) <= wanted <= _variance(law, math.exp(high), beta):
        raise ValueError(
            f"kappa should leave a learning rate under which both orders are stable and alike, but got {kappa}"
        )
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _variance(law, math.exp(middle), beta) < wanted else (low, middle)
    return math.exp(low) / start


@dataclass(frozen=True)
class OrdersDiffer:
    """At which curvatures SRS and reshuffling differ in a training, according to the law of the noise.

    Attributes:
        kappa_per_curvature: kappa divided by the curvature: the effective learning rate times N/B.
        smallest_kappa: kappa of a direction whose only curvature is weight decay; 0 without weight decay.
        largest_difference: The most by which SRS's variance exceeds reshuffling's, as a share of independent draws'.
        at_curvature: The curvature of the loss at which the difference is largest.
        same_above: The curvature of the loss above which the difference is less than `noticeable`.
        noticeable: The smallest difference that counts, as a share of independent draws' variance.
        variance_ratio: SRS's variance over reshuffling's in the flattest direction, at `smallest_kappa`.
        learning_rate_ratio: The factor on reshuffling's learning rate that gives it SRS's variance there.
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
    """Find the curvatures at which the order of the data can matter to a training, and by how much at most.

    It compares reshuffling with SRS with a pool of N slots. A direction of curvature h has kappa = eta/(1 - beta) N/B
    (h + weight decay). In sharp directions, at large kappa, all orders are alike.

    Example:
        >>> paper = when_orders_differ(50_000, 64, learning_rate=0.1, momentum=0.9, weight_decay=5e-4)
        >>> round(paper.smallest_kappa, 2), round(paper.largest_difference, 3), round(paper.same_above, 3)
        (0.39, 0.251, 0.027)
    """
    n, b = checks.dataset(num_samples, batch_size)
    beta = _momentum(momentum)
    rate = checks.real("learning_rate", learning_rate, positive=True)
    weight_decay = checks.real("weight_decay", weight_decay)
    noticeable = checks.real("noticeable", noticeable, positive=True)
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


def _stable_step(law: NoiseLaw, kappa: float, momentum: float) -> float:
    """Return learning rate times curvature, or raise if SGD diverges."""
    step = kappa * (1 - momentum) * law.share
    if step >= 2 * (1 + momentum):
        raise ValueError(
            f"kappa should be below {2 * (1 + momentum) / (1 - momentum) / law.share:g}, or SGD diverges, but got "
            f"{kappa}"
        )
    return step


def _variance(law: NoiseLaw, step: float, momentum: float) -> float:
    """Return the variance in units that depend neither on the order nor on the learning rate."""
    white = step * (1 + momentum) / ((1 - momentum) * (2 * (1 + momentum) - step))
    return white * _variance_ratio(law, step, momentum)


def _variance_ratio(law: NoiseLaw, step: float, momentum: float) -> float:
    """Return the variance relative to white noise.

    With r = 1 - u the poles solve u^2 - (1 - beta + step) u + step = 0. Under white noise, weights d steps apart have
    the correlation a_1 r_1^|d| + a_2 r_2^|d|, which is 1 at d = 0 and 1 - step / (1 + beta) at d = 1. The variance is
    the sum over d of this times the covariance of the noise.
    """
    if momentum == 0:
        return law.covariance_sum(step).real
    middle = (1 - momentum + step) / 2
    apart = complex(middle**2 - step) ** 0.5
    if abs(apart) < _DOUBLE_POLE * middle:  # two equal poles: the sum is even in their distance, so smooth there
        apart = complex(_DOUBLE_POLE * middle)
        large, small = middle + apart, middle - apart
    else:
        large = middle + apart
        small = step / large  # exact even if it is tiny
    fall = step / (1 + momentum)
    weight = (large - fall) / (large - small)
    total = weight * law.covariance_sum(small) + (1 - weight) * law.covariance_sum(large)
    return total.real


def _momentum(value: float) -> float:
    """Return a momentum in [0, 1), or raise."""
    momentum = checks.real("momentum", value, maximum=1)
    if momentum == 1:
        raise ValueError(f"momentum should be below 1, or SGD never forgets, but got {value}")
    return momentum
