"""The sources of a mixture, each at its own place, drawn together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from replenish.draws import Int64Array
from replenish.orders.computed import ComputedPermutations, Rounds
from replenish.orders.cursor import CursorOrder
from replenish.orders.random_reshuffling import RandomReshuffling
from replenish.orders.samples import SampleReader


class Sources:
    """The place of each source, and how the next samples of all are drawn.

    Sources with computed permutations are drawn in one go, however many there are; others one by one.

    Args:
        orders: The order of each source.
        before: How many samples each has given.
    """

    def __init__(self, orders: Sequence[CursorOrder], before: list[int]) -> None:
        sizes = np.array([order.num_samples for order in orders], dtype=np.int64)
        self._base = np.cumsum(sizes) - sizes
        self._rounds = [_rounds_of(order) for order in orders]
        self._readers = [
            SampleReader(order) if rounds is None else None for order, rounds in zip(orders, self._rounds, strict=True)
        ]
        self._computed = np.array([rounds is not None and rounds.is_computed for rounds in self._rounds])
        # A reader's place is one number; it has a single stretch, which no run leaves.
        self._stretch = np.array([2**62 if rounds is None else rounds.stretch for rounds in self._rounds])
        self.moved_to(before)

    def moved_to(self, before: list[int]) -> Sources:
        """Go to the place at which each source has given so many samples, and return the sources."""
        pairs = [divmod(count, stretch) for count, stretch in zip(before, self._stretch.tolist(), strict=True)]
        self._number = np.array([number % 2**62 for number, _ in pairs])
        self._place = np.array([place for _, place in pairs])
        return self

    def draw(self, counts: Int64Array) -> Int64Array:
        """Return the next `counts` samples of each source, the sources after each other, and move on."""
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
        """Add to `samples` what computed permutations have at these runs of places."""
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
