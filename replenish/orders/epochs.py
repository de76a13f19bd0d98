"""What the orders share that go through all samples once an epoch: they differ in the permutation of an epoch."""

from __future__ import annotations

import numpy as np

from replenish import checks
from replenish.draws import Int64Array, KeyedWords, Purpose, steps_per_block
from replenish.orders.arrangement import permutation
from replenish.orders.cursor import Cursor, CursorOrder


class EpochOrder(CursorOrder):
    """An order in which an epoch is a permutation of the samples, cut into batches; see `RandomReshuffling`."""

    def __init__(self, num_samples: int, batch_size: int, *, seed: int = 0, drop_last: bool = False) -> None:
        super().__init__(num_samples, batch_size, seed=seed)
        self.drop_last = checks.boolean("drop_last", drop_last)
        if self.drop_last:
            self._refuse_batches_larger_than_the_data(" with drop_last=True, since every batch would be dropped")

    @property
    def steps_per_epoch(self) -> int:
        """How many batches an epoch has: num_samples / batch_size, rounded down with `drop_last`, else up."""
        return self.num_samples // self.batch_size if self.drop_last else super().steps_per_epoch

    @property
    def last_batch_size(self) -> int:
        """How many samples the last batch of an epoch has."""
        return min(self.batch_size, self.num_samples - (self.steps_per_epoch - 1) * self.batch_size)

    @property
    def _draws_per_epoch(self) -> int:
        return (self.steps_per_epoch - 1) * self.batch_size + self.last_batch_size

    def draws_before(self, step: int) -> int:
        """Return how many samples the steps before `step` draw."""
        epoch, place = divmod(checks.step(step), self.steps_per_epoch)
        return epoch * self._draws_per_epoch + place * self.batch_size

    def _step_of_draw(self, draw: int) -> tuple[int, int]:
        epoch, rest = divmod(draw, self._draws_per_epoch)
        step, place = divmod(rest, self.batch_size)
        return epoch % 2**62 * self.steps_per_epoch + step, place

    @property
    def has_every_sample_once(self) -> bool:
        """Whether every epoch has every sample once: none is dropped."""
        return self.num_samples <= self.steps_per_epoch * self.batch_size

    def cursor(self) -> Cursor:
        """Return a new cursor at the start."""
        return _Epochs(self)

    def visits(self, step: int) -> Int64Array:
        """Return for each place of the batch of `step` how often its sample was drawn before: once in every epoch."""
        if not self.has_every_sample_once:
            return super().visits(step)
        epoch, place = divmod(checks.step(step), self.steps_per_epoch)
        return np.full(self.last_batch_size if place == self.steps_per_epoch - 1 else self.batch_size, epoch)

    def _permutation_number(self, epoch: int) -> int:
        """Return the number of the permutation that `epoch` uses: here its own, so that every epoch has another."""
        return epoch

    def _permutation(self, words: KeyedWords) -> Int64Array:
        """Return the permutation that the words of its number draw: here a uniform one."""
        return permutation(words, self.num_samples)

    def _arranged(self, permutation: Int64Array, epoch: int) -> Int64Array:
        """Return the permutation as `epoch` goes through it."""
        return permutation


class _Epochs(Cursor):
    """The permutation of the current epoch."""

    def __init__(self, order: EpochOrder) -> None:
        self._order = order
        self._words = KeyedWords(order.seed, Purpose.EPOCH)
        self._steps_at_once = steps_per_block(order.num_samples, order.batch_size)
        # The permutation drawn last and its number: one pair, so that an interrupt cannot part them.
        self._current: tuple[int, Int64Array] = (-1, np.empty(0, dtype=np.int64))
        self._arranged = self._current  # an epoch's number and the permutation as it goes through it

    def _rows_at(self, step: int) -> tuple[int, Int64Array]:
        """Return (first step, rows): full batches of the epoch of `step`, or its short last one."""
        order, size = self._order, self._order.batch_size
        epoch, place = divmod(step, order.steps_per_epoch)
        if (number := order._permutation_number(epoch)) != self._current[0]:
            self._current = self._arranged = (-1, np.empty(0, dtype=np.int64))  # free the old one before drawing
            self._current = (number, order._permutation(self._words.at(number)))
        if epoch != self._arranged[0]:
            self._arranged = (epoch, order._arranged(self._current[1], epoch))
        samples = self._arranged[1]
        full = order.num_samples // size
        # Copies: what is yielded is the caller's to write to, and the permutation may serve another epoch.
        if place == full:
            return step, samples[full * size :].reshape(1, -1).copy()
        first = place - place % self._steps_at_once
        last = min(full, first + self._steps_at_once)
        rows = samples[first * size : last * size].reshape(last - first, size).copy()
        return epoch * order.steps_per_epoch + first, rows
