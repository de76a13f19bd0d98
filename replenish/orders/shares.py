"""Several sources in stated shares: how many places of each batch a source gets, and which samples come next."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from replenish.draws import Int64Array, KeyedWords, Purpose
from replenish.orders.computed import ComputedPermutations, Rounds
from replenish.orders.cursor import CursorOrder, SampleReader
from replenish.orders.epochs import RandomReshuffling

_UNIT = 2**32  # shares that are not whole numbers are scaled to about this sum, and rounded


def whole_shares(weights: npt.NDArray[np.float64]) -> list[int]:
    """Return weights as whole numbers: unchanged if they are whole and small, else scaled to a sum of about 2**32.

    Example:
        >>> whole_shares(np.array([1.0, 3.0])), whole_shares(np.array([0.25, 0.75]))
        ([1, 3], [1073741824, 3221225472])
    """
    if (weights == np.floor(weights)).all() and weights.sum() <= _UNIT:
        return [int(weight) for weight in weights]
    scaled = weights / weights.max()  # so that the sum of huge weights stays finite
    return [max(1, round(part * _UNIT)) if part else 0 for part in (scaled / math.fsum(scaled)).tolist()]


class Quotas:
    """How many places of every batch each class gets.

    In batches of B places, a class with the share q/Q gets the whole part of B q/Q places in every batch. The
    fractional parts of all classes add up to a whole number m of places. Laid end to end, they make a line of length m,
    and the classes at its points u, u + 1, ..., u + m - 1 get one more place (systematic sampling). So each batch is
    full, and each class is within one of its share. From step to step, u moves around a circle of Q points, by about
    the golden section of it, and reaches every point once in Q steps. So up to any step, each class has had its share
    to within a few. Shares are whole numbers in any unit. The seed chooses where u begins.

    Example:
        >>> quotas = Quotas([1, 2], batch_size=2, seed=0)
        >>> np.sort(quotas.classes(0, 3)).tolist()
        [[1, 1], [0, 1], [0, 1]]
        >>> quotas.counts_before(3000)
        [2000, 4000]
    """

    def __init__(self, shares: list[int], batch_size: int, seed: int) -> None:
        parts = [share * batch_size for share in shares]
        unit = math.gcd(sum(shares), *parts)
        self._circle = sum(shares) // unit  # Q
        parts = [part // unit for part in parts]
        self._whole = np.array([part // self._circle for part in parts], dtype=np.int64)
        self._ends = np.cumsum([part % self._circle for part in parts])  # of the classes on the line
        self._extra = int(self._ends[-1]) // self._circle  # m
        self._always = np.repeat(np.arange(len(shares)), self._whole)
        self._begin = int(KeyedWords(seed, Purpose.STRATA).at(2**64 - 1).below(self._circle, 1)[0])
        self._turn = even_turn(self._circle)

    def classes(self, start: int, steps: int) -> Int64Array:
        """Return the classes in the batches of `steps` steps from `start` on, one batch per row, not shuffled."""
        begin = (self._begin + start * self._turn) % self._circle  # in unbounded Python ints
        turned = (begin + np.arange(steps) * self._turn) % self._circle
        points = turned[:, np.newaxis] + np.arange(self._extra) * self._circle
        extra = np.searchsorted(self._ends, points, side="right")
        return np.concatenate([np.broadcast_to(self._always, (steps, len(self._always))), extra], axis=1)

    def counts_before(self, step: int) -> list[int]:
        """Return how many places each class had in the batches before `step`."""
        passed = [self._points_below(int(end), step) for end in [0, *self._ends.tolist()]]
        extra = [after - before for before, after in itertools.pairwise(passed)]
        return [step * each + more for each, more in zip(self._whole.tolist(), extra, strict=True)]

    def _points_below(self, end: int, step: int) -> int:
        """Return how many of the points u, u + 1, ... of all steps before `step` lie below `end` on the line."""
        rounds, rest = divmod(end, self._circle)
        turns, steps = divmod(step, self._circle)
        # beyond - turned is the number of steps with u >= rest: floor((x + Q - rest) / Q) is floor(x / Q), and one more
        # if x mod Q >= rest.
        turned = floor_sum(steps, self._circle, self._turn, self._begin)
        beyond = floor_sum(steps, self._circle, self._turn, self._begin + self._circle - rest)
        return rounds * step + turns * rest + steps - (beyond - turned)


def even_turn(circle: int) -> int:
    """Return the turn that, repeated, reaches all points of a circle of `circle` points, evenly spread at any time.

    A turn spreads more evenly if its quotients in Euclid's algorithm are smaller; for the golden section they are all
    1. Of the turns near it without a common divisor with the circle, return the one whose largest quotient is smallest.

    Example:
        >>> even_turn(56), even_turn(782)
        (41, 485)
    """
    golden = round(circle * (math.sqrt(5) - 1) / 2)
    near = range(max(1, golden - 32), min(circle, golden + 33))
    turns = [turn for turn in near if math.gcd(turn, circle) == 1]
    return min(turns, key=lambda turn: (_largest_quotient(circle, turn), abs(turn - golden)), default=1)


def _largest_quotient(larger: int, smaller: int) -> int:
    largest = 0
    while smaller:
        quotient, rest = divmod(larger, smaller)
        # The last quotient counts as two, q - 1 and 1, since 1/q is 1/((q - 1) + 1/1).
        largest = max(largest, quotient if rest else quotient - 1)
        larger, smaller = smaller, rest
    return largest


def floor_sum(count: int, divisor: int, factor: int, offset: int) -> int:
    """Return the sum of floor((factor * i + offset) / divisor) over i < count, in O(log) steps like Euclid's.

    Example:
        >>> floor_sum(4, 10, 6, 3) == sum((6 * i + 3) // 10 for i in range(4))
        True
    """
    total = 0
    while count > 0:
        total += count * (count - 1) // 2 * (factor // divisor) + count * (offset // divisor)
        factor, offset = factor % divisor, offset % divisor
        highest = factor * count + offset
        if highest < divisor:
            break
        # Count the points under the line by rows instead of columns.
        count, offset = divmod(highest, divisor)
        divisor, factor = factor, divisor
    return total


class Sources:
    """The sources of a mixture, each at its own place, from which the next samples are drawn.

    All sources with computed permutations are drawn in one go. Others are drawn one by one.

    Args:
        orders: The order of each source.
        before: How many samples were drawn from each source before.
    """

    def __init__(self, orders: Sequence[CursorOrder], before: list[int]) -> None:
        sizes = np.array([order.num_samples for order in orders], dtype=np.int64)
        self._base = np.cumsum(sizes) - sizes
        self._rounds = [_rounds_of(order) for order in orders]
        self._readers = [
            SampleReader(order) if rounds is None else None for order, rounds in zip(orders, self._rounds, strict=True)
        ]
        self._computed = np.array([rounds is not None and rounds.is_computed for rounds in self._rounds])
        # A reader counts draws from the start, in a single stretch so long that no run leaves it.
        self._stretch = np.array([2**62 if rounds is None else rounds.stretch for rounds in self._rounds])
        self.move_to(before)

    def move_to(self, before: list[int]) -> Sources:
        """Move to the places after the first `before` samples of each source, and return self."""
        pairs = [divmod(count, stretch) for count, stretch in zip(before, self._stretch.tolist(), strict=True)]
        self._number = np.array([number % 2**62 for number, _ in pairs])
        self._place = np.array([place for _, place in pairs])
        return self

    def draw(self, counts: Int64Array) -> Int64Array:
        """Return the next `counts` samples of each source, one source after the other, and move past them."""
        source = np.repeat(np.arange(len(counts)), counts)
        place = np.arange(len(source)) + np.repeat(self._place - (np.cumsum(counts) - counts), counts)
        number = self._number[source]
        stretch = self._stretch[source]
        if (beyond := np.flatnonzero(place >= stretch)).size:
            number[beyond] += place[beyond] // stretch[beyond]
            place[beyond] %= stretch[beyond]
        starts = np.flatnonzero((np.diff(source, prepend=-1) != 0) | (np.diff(number, prepend=-1) != 0))
        lengths = np.diff(starts, append=len(source))
        samples = self._base[source]
        computed = self._computed[source[starts]]
        self._add_computed(samples, source, number, place, starts[computed], lengths[computed])
        for first, count in zip(starts[~computed].tolist(), lengths[~computed].tolist(), strict=True):
            own, reader = int(source[first]), self._readers[int(source[first])]
            if reader is not None:
                drawn = reader.read(int(number[first]) * 2**62 + int(place[first]), count)
            else:
                rounds = self._rounds[own]
                assert rounds is not None
                drawn = rounds.of_stretch(int(number[first]), int(place[first]), count)
            samples[first : first + count] += drawn
        after = self._place + counts
        self._number = self._number + after // self._stretch
        self._place = after % self._stretch
        return samples

    def _add_computed(
        self,
        samples: Int64Array,
        source: Int64Array,
        number: Int64Array,
        place: Int64Array,
        starts: Int64Array,
        lengths: Int64Array,
    ) -> None:
        """Add to `samples` the samples that computed permutations have at these runs of places."""
        if not starts.size:
            return
        sources = source[starts]
        keys = [
            self._rounds[own].keys(stretch)
            for own, stretch in zip(sources.tolist(), number[starts].tolist(), strict=True)
        ]
        permutations = ComputedPermutations(self._stretch[sources], np.stack(keys))
        which = np.repeat(np.arange(len(starts)), lengths)
        places = np.arange(len(which)) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
        samples[places] += permutations.at(place[places], which)


def _rounds_of(order: CursorOrder) -> Rounds | None:
    """Return the rounds of a computed reshuffling whose epochs have every sample, or None for another order."""
    if isinstance(order, RandomReshuffling) and order.computed and order.has_every_sample_once:
        return Rounds(order.num_samples, order.seed)
    return None
