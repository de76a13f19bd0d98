"""An order without some of its steps."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import Any

from replenish import checks
from replenish.draws import Int64Array
from replenish.orders.cursor import Cursor, CursorOrder, from_json, to_json
from replenish.orders.visits import counts_before

Ranges = tuple[tuple[int, int], ...]


class Skipping(CursorOrder):
    """An order without some ranges of its steps, for example after a loss spike.

    Before the first range, step s is the order's step s. Each range (a, b) skips the steps a, a + 1, ..., b - 1. The
    ranges are in the config, so that a resumed run and the commands `what` and `when` follow them. A state that was
    saved with the order itself, or with fewer ranges, is accepted as long as no step before it is affected.

    Ranges are numbered by the steps of `order`. To skip more steps later, pass the `Skipping` order as `order`. The new
    ranges are then numbered by its own steps, which a training log shows, and both lists of ranges are combined.

    Args:
        order: One of the library's orders.
        ranges: Pairs (a, b) with a < b; b is not skipped. Ranges that overlap or touch become one.

    Example:
        >>> from replenish import RandomReshuffling
        >>> order = RandomReshuffling(num_samples=100, batch_size=10)
        >>> skipping = Skipping(order, [(3, 6)])
        >>> skipping.original_step(2), skipping.original_step(3)
        (2, 6)
        >>> skipping.batch(3).tolist() == order.batch(6).tolist()
        True
    """

    def __init__(self, order: CursorOrder, ranges: Iterable[tuple[int, int]]) -> None:
        if not isinstance(order, CursorOrder):
            raise TypeError(f"order should be one of replenish's orders, but got a {type(order).__name__}")
        wanted = _checked(ranges)
        if isinstance(order, Skipping):
            earlier = order.ranges
            wanted = [(order.original_step(a), order.original_step(b)) for a, b in wanted]
            order, wanted = order.order, [*earlier, *wanted]
        super().__init__(order.num_samples, order.batch_size, seed=order.seed)
        self.order: CursorOrder = order
        self.ranges: Ranges = _merged(wanted)
        self._map = _Jumps(self.ranges)

    def original_step(self, step: int) -> int:
        """Return the step of `order` that is step `step` here."""
        return self._map.original(checks.step(step))

    @property
    def steps_per_epoch(self) -> int:
        """How many steps make an effective epoch of the order."""
        return self.order.steps_per_epoch

    @property
    def last_batch_size(self) -> int:
        """The size of the order's short batches; an AttributeError if all are full."""
        size: int = self.order.last_batch_size  # type: ignore[attr-defined]
        return size

    @property
    def batch_sizes_vary(self) -> bool:
        """Whether batches have random sizes."""
        return bool(getattr(self.order, "batch_sizes_vary", False))

    @property
    def _shaped_by_its_batches(self) -> str | None:  # type: ignore[override]
        return self.order._shaped_by_its_batches

    def config(self) -> dict[str, int | str]:
        """Return plain ints and strings that identify the order completely; the original order is JSON in `of`."""
        inner = self.order.config()
        return {
            "order": "Skipping",
            "stream": inner["stream"],
            "num_samples": self.num_samples,
            "batch_size": self.batch_size,
            "seed": self.seed,
            "ranges": to_json(self.ranges),
            "of": to_json(inner),
        }

    def _arguments(self) -> dict[str, Any]:
        return {"order": self.order, "ranges": self.ranges}

    def _same_before(self, config: Mapping[str, Any], step: int) -> bool:
        ranges: Ranges = ()
        if config.get("order") == "Skipping":
            ranges = _merged(_checked(from_json("ranges", config.get("ranges", "[]"))))
            config = from_json("of", config.get("of", "{}"))
        if _Jumps(ranges).before(step) != self._map.before(step):
            return False
        return self.order._same_before(config, self._map.original(max(0, step - 1)) + 1 if step else 0)

    def counts_before(self, step: int) -> Int64Array:
        """Return how often each sample was drawn in the steps before `step`, without the skipped draws."""
        end = self.original_step(step)
        counts = counts_before(self.order, end)
        for a, b in self.ranges:
            if a < end:
                counts -= counts_before(self.order, b) - counts_before(self.order, a)
        return counts

    def draws_before(self, step: int) -> int:
        """Return how many samples the steps before `step` draw."""
        end = self.original_step(step)
        draws = self.order.draws_before
        return draws(end) - sum(draws(b) - draws(a) for a, b in self.ranges if a < end)

    def _step_of_draw(self, draw: int) -> tuple[int, int]:
        draws = self.order.draws_before
        jumps = _Jumps(tuple((draws(a), draws(b)) for a, b in self.ranges))
        step, place = self.order._step_of_draw(jumps.original(draw))
        return step - sum(b - a for a, b in self.ranges if b <= step), place

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _SkippingCursor(self)


class _Jumps:
    """A map of steps that jumps over ranges."""

    def __init__(self, ranges: Ranges) -> None:
        self._skipped = [0, *accumulate(b - a for a, b in ranges)]
        # The first step after each range, counted without the skipped steps.
        self._starts = [a - skipped for (a, _), skipped in zip(ranges, self._skipped, strict=False)]

    def original(self, step: int) -> int:
        """Return the number that `step` has when skipped steps are counted too."""
        return step + self._skipped[bisect_right(self._starts, step)]

    def next_jump(self, step: int) -> int | None:
        """Return the first step after `step` that follows a range, or None."""
        later = bisect_right(self._starts, step)
        return self._starts[later] if later < len(self._starts) else None

    def before(self, step: int) -> list[tuple[int, int]]:
        """Return the jumps that affect the steps before `step`."""
        jumps = zip(self._starts, self._skipped[1:], strict=True)
        return [(start, skipped) for start, skipped in jumps if start < step]


class _SkippingCursor(Cursor):
    """The order's own cursor, at the steps that are not skipped."""

    def __init__(self, skipping: Skipping) -> None:
        self._map = skipping._map
        self._inner = skipping.order.cursor()

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (step, rows): the rows of the order's block from `step` on, up to the next skipped range."""
        original = self._map.original(step)
        first, rows = self._inner.rows_at(original)
        end, jump = first + len(rows), self._map.next_jump(step)
        if jump is not None:
            end = min(end, original + jump - step)
        return step, rows[original - first : end - first]


def _checked(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    pairs = []
    try:
        listed = [tuple(pair) for pair in ranges]
    except TypeError:
        raise TypeError(f"ranges should be a list of pairs (start, stop) of steps, but got {ranges!r}") from None
    for pair in listed:
        if len(pair) != 2:
            raise ValueError(f"ranges should be a list of pairs (start, stop) of steps, but got {pair!r} in it")
        start, stop = checks.step(pair[0], "the start of a range"), checks.step(pair[1], "the stop of a range")
        if start >= stop:
            raise ValueError(f"ranges should have starts below their stops, but got ({start}, {stop})")
        pairs.append((start, stop))
    return pairs


def _merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges in ascending order; ranges that overlap or touch become one."""
    merged: list[tuple[int, int]] = []
    for start, stop in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return tuple(merged)
