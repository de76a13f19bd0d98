"""What an order does to SGD: the spectrum of its noise, the variance of the weight, the gaps between visits.

On a quadratic with curvature h, SGD with learning rate eta and momentum beta turns the noise of the gradients into a
stationary variance of the weight. It depends on kappa = eta/(1 - beta) h N/B: curvature times learning rate, per epoch.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks
from replenish.orders.protocol import Order, check_order
from replenish.theory.arguments import Floats, real, reals
from replenish.theory.gap_laws import GapLaw
from replenish.theory.order_laws import NoLawError, gap_law, noise_law, noise_law_of_values
from replenish.theory.sgd import checked_momentum, stable_step, variance, variance_ratio

_MOST_NUMBERS = 2**23  # in columns of one number per sample, one column per class: of more classes, some are looked at


@dataclass(frozen=True, eq=False)
class NoiseSpectrum:
    """The spectrum of an order's noise, relative to the white noise of independent draws.

    Attributes:
        frequencies: In cycles per step, between 0 and 1/2.
        continuous: The spectral density at them; independent draws have 1.
        line_frequencies: Where the lines are: frequencies that hold a power of their own.
        line_powers: What part of a white step's variance each line has, at f and -f together. A line at frequency 0 is
            a bias: batches that are off the mean of the data for ever.
    """

    frequencies: Floats
    continuous: Floats
    line_frequencies: Floats
    line_powers: Floats


def noise_spectrum(order: Order, frequencies: ArrayLike, *, values: ArrayLike | None = None) -> NoiseSpectrum:
    """Return the spectrum of the noise that an order makes, exact at finite sizes, long after the start.

    It is that of x_t, the mean over batch t of any number that a fixed sample has (a component of its gradient),
    averaged over all ways to hand out the numbers to the samples. Where batches have random sizes (Poisson draws, balls
    in bins) it is the sum over the batch divided by the batch size B that was asked for, as private SGD takes it: the
    mean over as many samples as came varies more.

    Args:
        order: One of the library's orders with a law.
        frequencies: In cycles per step, between 0 and 1/2; B/N is once per effective epoch.
        values: For SRS with a fixed sequence, the number of each sample (a column or several) in place of the average
            over all ways to hand them out.

    Raises:
        NoLawError: The order has no law in closed form; `replenish.diagnostics.noise_spectrum` measures it.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> frequencies = [0, 0.001, 0.005, 0.5]  # 0.01 would be once per epoch
        >>> noise_spectrum(SequencedReplacement(1000, 10), frequencies).continuous.round(2)
        array([0.  , 0.28, 0.91, 1.  ])
        >>> noise_spectrum(RandomReshuffling(1000, 10), frequencies).continuous.round(2)
        array([0.  , 0.03, 0.6 , 1.  ])
    """
    where = reals("frequencies", frequencies, most=0.5)
    law = noise_law(order) if values is None else noise_law_of_values(order, values)
    return NoiseSpectrum(where, law.continuous(where), *law.lines())


def noise_variance(order: Order, kappa: ArrayLike, momentum: float = 0.0, *, values: ArrayLike | None = None) -> Floats:
    """Return the stationary variance of SGD's weight over that under independent draws.

    The weight of a quadratic, averaged over all steps. A weight with poles r_1, r_2 (momentum has two) sees the
    covariances of the noise through a_1 r_1^|d| + a_2 r_2^|d|, and each law sums these, in closed form or by the
    integral of its spectrum.

    Args:
        order: One of the library's orders with a law.
        kappa: Curvature times effective learning rate, per epoch: eta/(1 - momentum) h N/B.
        momentum: Heavy-ball momentum, as torch's SGD has it, in [0, 1).
        values: For SRS with a fixed sequence, the number of each sample (a column or several) in place of the average
            over all ways to hand them out. `sequence="identity"` over data sorted by class has more than the average.

    Raises:
        NoLawError: The order has no law in closed form.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> orders = RandomReshuffling(50_000, 50), SequencedReplacement(50_000, 50)
        >>> [round(float(noise_variance(order, 1.0)), 3) for order in orders]
        [0.264, 0.503]
    """
    law = noise_law(order) if values is None else noise_law_of_values(order, values)
    beta = checked_momentum(momentum)
    kappas = reals("kappa", kappa, positive=True)
    ratios = [variance_ratio(law, stable_step(law, float(value), beta), beta) for value in kappas.ravel()]
    return np.array(ratios).reshape(kappas.shape)


def sorted_data_warning(order: Order, labels: ArrayLike) -> str | None:
    """Return a sentence where the noise of SRS is not the law's average, since its fixed sequence is sorted by class.

    It compares the variance of the weight at kappa = 1 for what differs between classes with the average over all
    sequences. None means that they are alike to within a tenth, or that the order has no fixed sequence.

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
    looked_at = np.unique(np.linspace(0, len(distinct) - 1, max(1, _MOST_NUMBERS // len(classes))).round())
    try:
        columns = (classes[:, np.newaxis] == looked_at).astype(np.float64)
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
    """Return the factor on the learning rate that gives `order` the variance that `other` has without it.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> reshuffling, srs = RandomReshuffling(50_000, 50), SequencedReplacement(50_000, 50)
        >>> [round(equivalent_learning_rate(reshuffling, srs, kappa), 2) for kappa in (1e-3, 1, 10)]
        [1.73, 1.44, 1.1]
    """
    if not isinstance(other, Order):
        raise TypeError(f"other should be an Order of replenish, but got a {type(other).__name__}")
    law, other_law, beta = noise_law(order), noise_law(other), checked_momentum(momentum)
    kappa = real("kappa", kappa, positive=True)
    if law.share != other_law.share:
        raise ValueError(
            f"other should have as many steps in an epoch as order, but got N/B = {1 / other_law.share:g} for other "
            f"and {1 / law.share:g} for order"
        )
    wanted = variance(other_law, stable_step(other_law, kappa, beta), beta)
    start = stable_step(law, kappa, beta)
    low, high = math.log(start) - 12, math.log(min(start * math.exp(12), (2 + 2 * beta) * (1 - 1e-9)))
    if not variance(law, math.exp(low), beta) <= wanted <= variance(law, math.exp(high), beta):
        raise ValueError(
            f"kappa should leave a learning rate under which both orders are stable and alike, but got {kappa}"
        )
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if variance(law, math.exp(middle), beta) < wanted else (low, middle)
    return math.exp(low) / start


def visit_gaps(order: Order) -> GapLaw:
    """Return the law of the gap between two visits of a sample, in effective epochs.

    Exact for finite sizes, except for SRS, whose law is the limit of many small steps.

    Raises:
        NoLawError: The order has no law in closed form; `replenish.diagnostics.visit_gaps` measures it.

    Example:
        >>> from replenish import RandomReshuffling, SequencedReplacement
        >>> round(visit_gaps(RandomReshuffling(50_000, 50)).variance, 3)
        0.167
        >>> round(visit_gaps(SequencedReplacement(50_000, 50)).variance, 3)
        0.482
    """
    return gap_law(order)
