"""The law of the gap between two visits: the time from a step that has a sample to the next step that has it.

A step that holds a sample twice is one visit, so a gap is at least one step. Gaps are in effective epochs of N/B steps.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike

from replenish import checks
from replenish.checks import Floats

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)
_NEGLIGIBLE = 45.0  # e^-45 is below 1e-19


class GapLaw(ABC):
    """The law of the gap between two visits of a sample, in effective epochs.

    Attributes:
        mean: The mean gap.
        variance: Its variance, in epochs squared.
    """

    mean: float
    variance: float

    @abstractmethod
    def survival(self, epochs: ArrayLike) -> Floats:
        """Return the probability that a gap is longer than `epochs`, in effective epochs."""

    def probabilities(self, edges: ArrayLike) -> Floats:
        """Return the probability of a gap above one edge and up to the next, for each pair of neighbouring `edges`."""
        return -np.diff(self.survival(edges))

    def __repr__(self) -> str:
        longer = self.survival([1.0, 2.0])
        return (
            f"<{type(self).__name__}: mean {self.mean:.4g} epochs, variance {self.variance:.4g}, "
            f"longer than 1 epoch {longer[0]:.1%}, than 2 {longer[1]:.1%}>"
        )


class GeometricGaps(GapLaw):
    """Gaps if every step visits a sample with the probability `chance`, independently; an epoch has N/B `steps`."""

    def __init__(self, chance: float, steps: float) -> None:
        self._chance, self._steps = chance, steps
        self.mean = 1 / chance / steps
        self.variance = (1 - chance) / chance**2 / steps**2

    def survival(self, epochs: ArrayLike) -> Floats:
        """Return the probability that a gap is longer than `epochs`, in effective epochs."""
        return np.asarray((1 - self._chance) ** _whole_steps(epochs, self._steps))


class ListedGaps(GapLaw):
    """Gaps of 1, 2, ... steps with probabilities proportional to `weights`; an epoch has N/B `steps`."""

    def __init__(self, weights: Floats, steps: float) -> None:
        self._probabilities = weights / weights.sum()
        self._longer = np.append(np.cumsum(self._probabilities[::-1])[::-1], 0.0)  # than 0, 1, ... steps
        self._steps = steps
        gaps = np.arange(1, len(weights) + 1) / steps
        self.mean = float(self._probabilities @ gaps)
        self.variance = float(self._probabilities @ (gaps - self.mean) ** 2)

    def survival(self, epochs: ArrayLike) -> Floats:
        """Return the probability that a gap is longer than `epochs`, in effective epochs."""
        return self._longer[np.minimum(_whole_steps(epochs, self._steps), len(self._longer) - 1)]


def epoch_gaps(num_samples: int, batch_size: int, steps: int, effective_epoch: float | None = None) -> GapLaw:
    """Return the law of independent permutations, of which `steps` batches are used each.

    A gap runs from a place in one epoch to an independent place in the next. If epochs leave out samples, a gap may
    pass any number of epochs without the sample. `effective_epoch` is the length of an effective epoch in steps, N/B by
    default.
    """
    sizes = np.full(steps, batch_size)
    sizes[-1] = min(batch_size, num_samples - (steps - 1) * batch_size)
    one = _difference(sizes / num_samples, sizes / num_samples)  # place in the next - place in this
    missing = max(1 - float(sizes.sum()) / num_samples, 0.0)
    epochs = 1 if missing < 1e-15 else math.ceil(math.log(1e-18) / math.log(missing))
    weights = np.zeros(steps * (epochs + 1))
    for passed in range(epochs):
        weights[steps * passed : steps * passed + 2 * steps - 1] += missing**passed * one
    return ListedGaps(weights, effective_epoch or num_samples / batch_size)


def palindrome_gaps(num_samples: int, batch_size: int, steps: int) -> GapLaw:
    """Return the law of a permutation and its reverse, of which `steps` batches are used each."""
    cuts = np.arange(0, num_samples + 1, batch_size)
    edges = np.unique(np.concatenate([cuts, num_samples - cuts, [num_samples]]))
    lengths, places = np.diff(edges), edges[:-1]  # runs of places that share a batch in both passes
    forth, back = places // batch_size, steps + (num_samples - 1 - places) // batch_size
    has_forth, has_back = forth < steps, back < 2 * steps
    first, last = np.where(has_forth, forth, back), np.where(has_back, back, forth)
    between = _difference(
        np.bincount(first, weights=lengths, minlength=2 * steps).astype(np.float64),
        np.bincount(last, weights=lengths, minlength=2 * steps).astype(np.float64),
    )
    weights = between / num_samples  # the differences begin at 1 - 2 steps, and the gaps, 2 steps more, at 1
    both = has_forth & has_back
    weights += np.bincount((back - forth)[both] - 1, weights=lengths[both], minlength=len(weights))
    return ListedGaps(weights, num_samples / batch_size)


class PoolGaps(GapLaw):
    """The gaps of a pool of k = M/N epochs over a fixed sequence, in the limit of many small steps.

    At a random moment a sample was last inserted u epochs ago, u uniform on [0, 1]. It is not visited for x epochs if
    no copy leaves the pool: neither one of age u + j that is still there, nor one that is inserted meanwhile. So the
    probability of this is

        V(x) = int_0^1 prod_j [1 - e^(-(u+j)/k) (1 - e^(-x/k))] prod_(1 <= i < x + u) e^(-(x - i + u)/k) du .

    Visits come once per epoch on average, so the probability of a gap longer than x is -V'(x).
    """

    mean = 1.0

    def __init__(self, pool_epochs: float) -> None:
        self._k = pool_epochs

    @cached_property
    def variance(self) -> float:  # type: ignore[override]
        """The variance of the gap: its mean square is 2 int x P(gap > x) dx = 2 int V dx."""
        total, start, unvisited = 0.0, 0, 1.0
        while unvisited > 1e-16:
            found, _ = self._moments(start + np.append((_NODES + 1) / 2, 1.0))
            total += float(found[:-1] @ _WEIGHTS) / 2
            start, unvisited = start + 1, float(found[-1])
        return 2 * total - 1

    def survival(self, epochs: ArrayLike) -> Floats:
        """Return the probability that a gap is longer than `epochs`, in effective epochs."""
        x = checks.reals("epochs", epochs)
        chunks = [self._moments(part)[1] for part in np.array_split(x.ravel(), x.size // 256 + 1)]
        return np.concatenate(chunks).reshape(x.shape)

    def _moments(self, x: Floats) -> tuple[Floats, Floats]:
        """Return V(x) and -V'(x)."""
        k = self._k
        # The integrand has a kink at the phase of a sample that is inserted just as the window ends. Beyond the kink
        # and beyond 0 it falls off over a distance k, so use panels of at most 4k on either side of the kink.
        panels = math.ceil(max(1.0, 0.25 / k))
        places = ((np.arange(panels)[:, None] + (_NODES + 1) / 2) / panels).ravel()
        kink = 1 - x[:, None] % 1
        u = np.concatenate([kink * places, kink + (1 - kink) * places], axis=1)
        weights = np.tile(_WEIGHTS / 2 / panels, panels)
        weights = np.concatenate([kink * weights, (1 - kink) * weights], axis=1)
        log, rate = np.zeros_like(u), np.zeros_like(u)  # log of the integrand; the rate at which it falls with x
        stay = np.exp(-x[:, None] / k)
        there = np.exp(-u / k)
        for _ in range(math.ceil(_NEGLIGIBLE * k) + 1):
            none_leaves = 1 - there * (1 - stay)
            log += np.log(none_leaves)
            rate += there * stay / none_leaves / k
            there *= math.exp(-1 / k)
        inserted = np.floor(x[:, None] + u)  # copies i = 1 ... inserted, present for x - i + u each
        log -= (inserted * (x[:, None] + u) - inserted * (inserted + 1) / 2) / k
        rate += inserted / k
        integrand = weights * np.exp(log)
        return integrand.sum(axis=1), (integrand * rate).sum(axis=1)


def _whole_steps(epochs: ArrayLike, steps: float) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """Return the number of whole steps in `epochs`; a value just below a whole number is rounded up."""
    whole = np.floor(checks.reals("epochs", epochs) * steps + 1e-9)
    return np.minimum(whole, 2.0**62).astype(np.int64)


def _difference(minuend: Floats, subtrahend: Floats) -> Floats:
    """Return the probabilities of the difference of two independent whole numbers, from the least difference on."""
    size = len(minuend) + len(subtrahend) - 1
    if size < 2048:
        return np.convolve(minuend, subtrahend[::-1])
    padded = 1 << size.bit_length()
    product = np.fft.rfft(minuend, padded) * np.fft.rfft(subtrahend[::-1], padded)
    return np.maximum(np.fft.irfft(product, padded)[:size], 0.0)
