"""The laws of the pool: what sequenced replacement does on average, exactly.

Position p of the endless sequence holds the sample at its place p mod N. A pool of M = `pool_size` slots (None means N,
as in the paper) starts with positions 0 … M-1. Step t draws B distinct slots, then refills them with the positions
M+tB … M+tB+B-1. "At `step`" means just before that step draws. `place` is a place in the sequence, from 0 to N-1: an
int, an array of ints, or None for all. The result has the shape of `place`. A place is not the sample's index, unless
the sequence is `"identity"`: the sample at place i is `order.samples_at(i)`. The laws are exact for all N, B, M and
steps. Functions named `limit_…` return their limits long after the start for B << M and N >> 1. These depend on
k = M/N = `pool_epochs`, with time in effective epochs of N/B steps.

All laws follow from two facts. First, with L = M + tB positions written by step t, the copy at position L - 1 - d has
lived through min(d // B, t) draws: its *age*. Second, c given slots all escape a draw with probability
(1 - B/M) (1 - B/(M-1)) … (1 - B/(M-c+1)), and draws of different steps are independent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from replenish import checks
from replenish.checks import Floats
from replenish.draws import Int64Array

Place = ArrayLike | None

_CHUNK = 2**18  # samples per piece of a sum over all N, so that memory does not grow with N
_NEVER = -1000.0  # stands for log 0: exp(-1000) is exactly 0, yet 0 * -1000 is 0 where 0 * -inf is nan
_NEGLIGIBLE = math.log(1e-18)
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)

# ---- Laws: how long a copy stays, how many copies there are, how often a sample is drawn ----


def residence_probability(
    num_samples: int, batch_size: int, stay: ArrayLike, *, pool_size: int | None = None
) -> Floats:
    """Return the probability that a copy is drawn in the `stay`-th step (1, 2, …) that can draw it.

    A draw takes a given slot with probability p = B/M, whatever came before: p (1 - p)^(stay - 1).

    >>> residence_probability(4, 1, [1, 2, 3])
    array([0.25    , 0.1875  , 0.140625])
    """
    pool = _pool(num_samples, batch_size, pool_size)
    escaped = checks.integers("stay", stay, 1, checks.MAX_STEP) - 1
    return np.asarray(pool.b / pool.m * np.exp(_log_escape(pool.m, pool.b) * escaped))


def mean_residence(num_samples: int, batch_size: int, *, pool_size: int | None = None) -> float:
    """Return the mean stay of a copy in steps, 1/p = M/B, which is k = M/N effective epochs."""
    pool = _pool(num_samples, batch_size, pool_size)
    return pool.m / pool.b


def copies_inserted(
    num_samples: int, batch_size: int, step: int, place: Place = None, *, pool_size: int | None = None
) -> Int64Array:
    """Return how many copies of a sample were written by `step`, including the initial pool.

    L positions hold sample i floor(L/N) times, and once more if i < L mod N. Copies leave only when they are drawn, so
    the draws of a sample are always these copies minus its copies in the pool. So the count never drifts.

    >>> copies_inserted(5, 2, 1)
    array([2, 2, 1, 1, 1])
    """
    pool = _pool(num_samples, batch_size, pool_size)
    rounds, rest = divmod(pool.written(checks.step(step)), pool.n)
    if rounds >= 2**63 - 1:
        raise ValueError(f"step should insert fewer than 2**63 copies, but got {step}: take a smaller step")
    return rounds + (pool.places(place) < rest).astype(np.int64)


def expected_copies(
    num_samples: int, batch_size: int, step: int, place: Place = None, *, pool_size: int | None = None
) -> Floats:
    """Return the mean number of copies of a sample in the pool at `step`.

    A copy of age a is still there with probability (1 - B/M)^a. The mean is the sum over all copies written. Copies
    with a probability below 1e-18 are left out, so the cost per place is O(1 + M/N), however far the step.

    >>> expected_copies(5, 2, 1)
    array([1.6, 1.6, 0.6, 0.6, 0.6])
    """
    pool = _pool(num_samples, batch_size, pool_size)
    return _moments(pool, checks.step(step), pool.places(place))[0]


def limit_copies(epochs_since_insertion: float, pool_epochs: float = 1.0) -> float:
    """Return the limit of `expected_copies` for a sample last inserted u epochs ago, 0 <= u <= 1.

    Its copies are u, u + 1, u + 2, … epochs old, and still there with probability e^(-age/k): a geometric series.

    >>> round(limit_copies(0), 2), round(limit_copies(1), 2)  # e^(-u/k) / (1 - e^(-1/k))
    (1.58, 0.58)
    """
    u = checks.real("epochs_since_insertion", epochs_since_insertion, maximum=1)
    k = checks.real("pool_epochs", pool_epochs, positive=True)
    return math.exp(-u / k) / -math.expm1(-1 / k)


def expected_draws(
    num_samples: int, batch_size: int, step: int, place: Place = None, *, pool_size: int | None = None
) -> Floats:
    """Return the mean number of draws of a sample before `step`: copies inserted minus expected copies."""
    inserted = copies_inserted(num_samples, batch_size, step, place, pool_size=pool_size)
    return inserted - expected_copies(num_samples, batch_size, step, place, pool_size=pool_size)


def count_variance(
    num_samples: int, batch_size: int, step: int, place: Place = None, *, pool_size: int | None = None
) -> Floats:
    """Return the variance over seeds of a sample's draws before `step`, and so of its copies in the pool.

    Two copies always lie in distinct slots. If their ages are a <= b, the older one must escape b - a draws before the
    other is there, then both must escape a draws. So both are still there with probability
    (1 - B/M)^(b-a) [(1 - B/M)(1 - B/(M-1))]^a. The sum over all pairs of copies is P, the mean number of pairs in the
    pool. A count with mean c then has the variance c + 2P - c².

    >>> count_variance(5, 2, 1).round(12)
    array([0.24, 0.24, 0.24, 0.24, 0.24])
    """
    pool = _pool(num_samples, batch_size, pool_size)
    copies, pairs = _moments(pool, checks.step(step), pool.places(place))
    return copies + 2 * pairs - copies**2


def count_spread(num_samples: int, batch_size: int, step: int, *, pool_size: int | None = None) -> float:
    """Return the mean over seeds of the variance of the N draw counts before `step`. Costs O(N + M).

    The counts add up to tB, so their mean is tB/N for every seed. The spread is the average over samples of
    `count_variance` (within a phase of the sequence) plus (`expected_draws` - tB/N)² (between phases).
    """
    pool = _pool(num_samples, batch_size, pool_size)
    # Whole rounds cancel between draws and tB/N. At far steps, rounding them would drown the difference.
    step = checks.step(step)
    rest = pool.written(step) % pool.n
    total = 0.0
    for place in pool.chunks():
        copies, pairs = _moments(pool, step, place)
        draws_off_mean = (place < rest) - copies - (rest - pool.m) / pool.n
        total += float(np.sum(copies + 2 * pairs - copies**2 + draws_off_mean**2))
    return total / pool.n


def limit_count_spread(pool_epochs: float = 1.0, epoch_fraction: float = 0.0) -> float:
    """Return the limit of `count_spread` when the part f = (M + tB)/N mod 1 of a round has been written.

    Within a phase, copies escape independently in a large pool, so each adds s(1 - s), s = e^(-age/k). The sum over all
    ages is k/2. Between phases, let f = 0 first: a sample last inserted u epochs ago differs from the mean by c(u) - k,
    where c is `limit_copies`, with the mean square (k/2) coth(1/2k) - k². In mid-round, [u < f] - f is subtracted from
    this difference, and the mean square changes by f(1 - f) - 2k [(1 - e^(-f/k)) / (1 - e^(-1/k)) - f].

    >>> round(limit_count_spread(), 3), round(limit_count_spread(1, 0.25), 3)
    (0.582, 0.57)
    """
    k, f = (
        checks.real("pool_epochs", pool_epochs, positive=True),
        checks.real("epoch_fraction", epoch_fraction, maximum=1),
    )
    between = k / 2 / math.tanh(1 / (2 * k)) - k**2
    return k / 2 + between + f * (1 - f) - 2 * k * (math.expm1(-f / k) / math.expm1(-1 / k) - f)


def count_spread_independent(num_samples: int, batch_size: int, step: int) -> float:
    """Return `count_spread` for independent draws: tB/N (1 - 1/N), as for multinomial counts. It grows for ever."""
    n, b = checks.sizes(num_samples, batch_size)
    return checks.step(step) * b / n * (1 - 1 / n)


# ---- Laws: equal samples in a batch ----


def expected_equal_pairs(num_samples: int, batch_size: int, step: int, *, pool_size: int | None = None) -> float:
    """Return the mean number of pairs of equal samples in the batch of `step`. Costs O(N + M).

    The pool holds P pairs of copies of each sample on average (see `count_variance`). A draw takes both slots of a pair
    with probability B(B-1) / (M(M-1)).

    >>> expected_equal_pairs(5, 2, 0), round(expected_equal_pairs(5, 2, 1), 12)
    (0.0, 0.12)
    """
    pool = _pool(num_samples, batch_size, pool_size)
    step = checks.step(step)
    pairs = sum(float(_moments(pool, step, place)[1].sum()) for place in pool.chunks())
    return pairs * (pool.b / pool.m) * ((pool.b - 1) / max(pool.m - 1, 1))


def limit_equal_pairs(num_samples: int, batch_size: int, *, pool_size: int | None = None) -> float:
    """Return the limit of `expected_equal_pairs`, B(B-1)/2M / (e^(1/k) - 1): 0.29 B²/N if M = N.

    With x = e^(-1/k), a sample of phase u has e^(-2u/k) [1/(1-x)² - 1/(1-x²)] / 2 pairs of copies in the
    pool. The mean over u is (k/2) x/(1-x). Multiply it by N B(B-1)/M².
    """
    pool = _pool(num_samples, batch_size, pool_size)
    x_power = -pool.n / pool.m
    return pool.b * (pool.b - 1) / (2 * pool.m) * math.exp(x_power) / -math.expm1(x_power)


def equal_pairs_independent(num_samples: int, batch_size: int) -> float:
    """Return `expected_equal_pairs` for independent draws: each of B(B-1)/2 pairs is equal with probability 1/N."""
    n, b = checks.sizes(num_samples, batch_size)
    return b * (b - 1) / (2 * n)


# ---- Laws: samples not seen ----


def unseen_probability(
    num_samples: int, batch_size: int, steps: int, place: Place = None, *, pool_size: int | None = None
) -> Floats:
    """Return the probability that a sample is in none of the first `steps` batches.

    All its copies must escape all draws, and as long as they do, their number is certain. By the second fact above,
    copy number l (l = 0, 1, …) then contributes the factor (1 - B/(M-l))^age.

    >>> unseen_probability(5, 2, 2).round(12)  # place 2 enters again too late to be drawn
    array([0.18, 0.18, 0.36, 0.36, 0.36])
    """
    pool = _pool(num_samples, batch_size, pool_size)
    return _unseen(pool, checks.step(steps, "steps"), pool.places(place))


def unseen_fraction(
    num_samples: int, batch_size: int, steps: int | None = None, *, pool_size: int | None = None
) -> float:
    """Return the mean of `unseen_probability` over samples; `steps=None` means an epoch, ceil(N/B).

    With M = N, the first epoch misses (1 - 1/e)/e = 23 %, and later ones 28 %, because the first begins with every
    sample in the pool. Costs O(N + M).

    >>> round(unseen_fraction(50_000, 64), 3), round(limit_unseen_fraction(), 3)
    (0.232, 0.279)
    """
    pool = _pool(num_samples, batch_size, pool_size)
    steps = -(-pool.n // pool.b) if steps is None else checks.step(steps, "steps")
    return sum(float(_unseen(pool, steps, place).sum()) for place in pool.chunks()) / pool.n


def limit_unseen_fraction(pool_epochs: float = 1.0) -> float:
    """Return the fraction of samples that an effective epoch misses long after the start: 27.9 % for k = 1.

    At its beginning a sample of phase u has copies of ages u + j, j = 0, 1, …. Each is still there with probability
    e^(-(u+j)/k), and is then drawn in the epoch with probability 1 - e^(-1/k). The copy inserted in the epoch must
    escape for u epochs. So the fraction is the integral over u of e^(-u/k) prod_j [1 - e^(-(u+j)/k) (1 - e^(-1/k))].
    It rises from 0 for k -> 0, as with reshuffling, to 1/e for k -> infinity, as with independent draws.
    """
    k = checks.real("pool_epochs", pool_epochs, positive=True)
    oldest = -_NEGLIGIBLE * k  # beyond this age e^(-age/k) is below 1e-18
    width = min(1.0, oldest)
    u = width * (_NODES + 1) / 2
    log_unseen = -u / k
    if k < 1:
        for j in range(int(oldest) + 1):
            log_unseen += np.log1p(np.exp(-(u + j) / k) * math.expm1(-1 / k))
    else:
        # The sum over j of log(1 - d e^(-(u+j)/k)), d = 1 - e^(-1/k), by powers of d <= 0.64, each a geometric series.
        drawn = -math.expm1(-1 / k)
        for power in range(1, math.ceil(_NEGLIGIBLE / math.log(drawn)) + 1):
            log_unseen -= drawn**power / power * np.exp(-power * u / k) / -math.expm1(-power / k)
    return width / 2 * float(_WEIGHTS @ np.exp(log_unseen))


def unseen_fraction_independent(num_samples: int, batch_size: int, steps: int) -> float:
    """Return the fraction that independent draws miss: (1 - 1/N)^(steps B), about 1/e in an epoch."""
    n, b = checks.sizes(num_samples, batch_size)
    return math.exp(_log_escape(n, 1) * checks.step(steps, "steps") * b)


def unseen_fraction_batched(num_samples: int, batch_size: int, steps: int) -> float:
    """Return the fraction that batched replacement misses: (1 - B/N)^steps."""
    n, b = checks.dataset(num_samples, batch_size)
    return math.exp(_log_escape(n, b) * checks.step(steps, "steps"))


def unseen_fraction_reshuffling(num_samples: int, batch_size: int, steps: int) -> float:
    """Return the fraction that the first steps of training over epochs miss: 1 - steps B/N, but at least 0."""
    n, b = checks.dataset(num_samples, batch_size)
    return max(n - checks.step(steps, "steps") * b, 0) / n


# ---- How they are computed ----


class _Pool(NamedTuple):
    """N, B and M, checked."""

    n: int
    b: int
    m: int

    def written(self, step: int) -> int:
        return self.m + step * self.b

    def places(self, place: Place) -> Int64Array:
        return np.arange(self.n, dtype=np.int64) if place is None else checks.integers("place", place, 0, self.n - 1)

    def chunks(self) -> Iterator[Int64Array]:
        """Yield all places of the sequence, in pieces."""
        for start in range(0, self.n, _CHUNK):
            yield np.arange(start, min(start + _CHUNK, self.n), dtype=np.int64)

    def ages(self, step: int, place: Int64Array, most: int) -> Iterator[tuple[NDArray[np.bool_], Int64Array]]:
        """Yield (whether each sample has a copy of this round, its age) for the last `most` rounds, oldest first."""
        rounds, rest = divmod(self.written(step), self.n)
        distance = (rest - 1 - place) % self.n  # of the newest copy; the module's docstring calls it d
        for j in range(min(rounds, most - 1), -1, -1):
            # (distance + jN) // B, where Python's integers compute the part that may need more than 64 bits.
            whole, part = divmod(j * self.n, self.b)
            age = np.minimum(whole + (distance + part) // self.b, step)
            yield (place < rest) | (j < rounds), age


def _moments(pool: _Pool, step: int, place: Int64Array) -> tuple[Floats, Floats]:
    """Return the mean number of copies, and of pairs of copies, of each sample in the pool at `step`."""
    one = _log_escape(pool.m, pool.b)
    two = one + _log_escape(pool.m - 1, pool.b)
    horizon = int(_NEGLIGIBLE / one) + 1  # an age to which a copy lives with probability below 1e-18
    most = pool.written(horizon) // pool.n + 2
    copies, pairs = np.zeros(place.shape), np.zeros(place.shape)
    last_age = np.full(place.shape, step, dtype=np.int64)
    for exists, age in pool.ages(step, place, most):
        copies = copies * np.exp(one * (last_age - age))  # older copies that were left when this one was written
        pairs += exists * np.exp(two * age) * copies
        copies = copies + exists
        last_age = age
    return copies * np.exp(one * last_age), pairs


def _unseen(pool: _Pool, steps: int, place: Int64Array) -> Floats:
    """Return `unseen_probability` of checked arguments."""
    total = np.zeros(place.shape)
    earlier = np.zeros(place.shape, dtype=np.int64)  # copies written before, which keep their slots
    for exists, age in pool.ages(steps, place, pool.written(steps) + 1):
        slots = pool.m - earlier
        escape = np.where(slots > pool.b, np.log1p(-pool.b / np.maximum(slots, pool.b + 1)), _NEVER)
        total += exists * escape * age
        earlier += exists
        if np.all(total <= _NEVER):
            break  # the probability is 0; at far steps, many more rounds may remain
    return np.exp(np.asarray(total))


def _log_escape(slots: int, drawn: int) -> float:
    """Return log(1 - drawn/slots), the log probability that a given slot escapes a draw."""
    return math.log1p(-drawn / slots) if slots > drawn else _NEVER


def _pool(num_samples: int, batch_size: int, pool_size: int | None) -> _Pool:
    n, b = checks.sizes(num_samples, batch_size)
    m = n if pool_size is None else checks.integer("pool_size", pool_size, minimum=1, maximum=checks.MAX_SIZE)
    if b > m:
        raise ValueError(f"batch_size should be at most pool_size = {m}, but got {b}: take a smaller batch")
    return _Pool(n, b, m)
