"""What the samplers share: a position in an order's stream, the passes that begin there, a process's share.

The law of positions, which docs/howto/positions.md explains: a pass begins at the sampler's position and ends with the
epoch. The position moves to the end of a pass when its last item was handed on, and where `set_epoch`, `seek` and
`load_state_dict` say; a pass that is left before moves nothing.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any, Generic

from torch.utils.data import Sampler

from replenish import checks, state
from replenish.locks import ForkSafeLock
from replenish.orders.cursor import Cursor, CursorOrder
from replenish.orders.protocol import Order
from replenish.sharding import check_shares, share_of
from replenish.torch import lightning_epochs
from replenish.torch.loaders import (
    calling_fit_loop,
    check_trainer_goes_on,
    is_numbered_by_a_loader,
    loader_that_draws,
)
from replenish.torch.passes import Item, Pass
from replenish.torch.replicas import current_replicas

# Lists are made of this many indices at a time: more Python ints than fit the cache cost twice as much each.
INDICES_PER_LIST_OF_LISTS = 8192

# How many batches a loop may hold that it has not trained on: prefetchers to a device hold one or two.
AHEAD_OF_A_LOOP = 4


class PositionedSampler(Sampler[Item], Generic[Item]):
    """A sampler with a position: which step of an order's stream the next pass begins at.

    Positions are kept in items: batches, or for `SRSSampler` indices, of which a step has `_items_per_step`.
    """

    _items_per_step = 1

    def __init__(
        self, order: Order, steps: int, num_replicas: int | None, rank: int | None, *, drop_last: bool
    ) -> None:
        self.order = order
        self.num_replicas, self.rank = current_replicas(num_replicas, rank)
        check_shares(order, self.num_replicas)
        self.steps_per_epoch = steps
        self.drop_last = drop_last
        self._lock = ForkSafeLock()
        self._spare_cursor: Cursor | None = None
        self._moves = 0
        self._heard: tuple[str, int] | None = None  # the last resume of a Trainer that was heard of
        self._move_to(0, restored=False)

    @property
    def batch_size(self) -> int:
        """How many samples a step draws over all processes."""
        return self.order.batch_size

    def seek(self, step: int) -> None:
        """Make the next pass begin at `step`, counted from the start of the run, and end with its epoch.

        To resume, give the number of steps *trained*; see `state_dict`. At a multiple of the epoch's steps, the next
        pass is a whole epoch.
        """
        self._move_to(checks.step(step) * self._items_per_step, restored=True)

    def set_epoch(self, epoch: int) -> None:
        """Make the next pass that of `epoch`: an absolute position, whatever went before.

        Only where `seek` or `load_state_dict` has put the sampler within that epoch, or at its end, it stays there:
        loops call this before every pass, also before the first one after a resume, which is the rest of its epoch.
        """
        checks.step(checks.integer("epoch", epoch, minimum=0) * self.steps_per_epoch, "the first step of epoch")
        epoch_items = self.steps_per_epoch * self._items_per_step
        fit_loop, says_nothing = calling_fit_loop(), is_numbered_by_a_loader()
        with self._lock.lock:
            self._settle()
            undrawn, is_over = self._restored and self._latest is None, False
            if fit_loop is not None:
                is_over = self._hear(fit_loop, counts_are_reset=True)
                says_nothing = bool(fit_loop.trainer.overfit_batches)
                epoch = lightning_epochs.epoch_of(fit_loop, epoch)
            if says_nothing:
                self._told = True
                return
            start, end = epoch * epoch_items, (epoch + 1) * epoch_items
            if start <= self._start <= end if self._restored else start == self._start:
                self._ends_here = is_over or start < self._start == end
                self._told = True
                return
            if undrawn and start < self._start:
                warnings.warn(
                    f"set_epoch({epoch}) goes back from step {self._start // self._items_per_step} of epoch "
                    f"{self._start // epoch_items}, to which the sampler was put and from which nothing was drawn; "
                    f"after a resume, go on with the epoch that the run was in",
                    stacklevel=2,
                )
        self._move_to(start, restored=False)

    def state_dict(self, step: int | None = None) -> dict[str, int | str]:
        """Return the position as plain ints and strings, a few hundred bytes whatever the data's size.

        Args:
            step: How far the training is, `epoch * steps_per_epoch + batches trained of that epoch`: the number of
                steps trained, where every pass was a whole epoch. None means the batches that the DataLoader has
                handed on, whatever its workers prefetch; without a DataLoader, the batches drawn.

        Raises:
            ValueError: The step is not within the pass that is under way, or None where only the loop knows it.
        """
        return state.save(self.order, self._place_to_save(step) // self._items_per_step)

    def load_state_dict(self, state_dict: Mapping[str, int | str]) -> None:
        """Go to a position that `state_dict` returned, also one of a run with another number of processes.

        Raises:
            ValueError: The state is of another order; the message names what differs.
        """
        self._move_to(state.load(self.order, state_dict) * self._items_per_step, restored=True)

    def _move_to(self, place: int, *, restored: bool) -> None:
        self._start: int = place
        self._restored: bool = restored  # whether `set_epoch` leaves a place that is within its epoch
        self._ends_here = False  # whether that place is the epoch's end, so that nothing is left of it
        self._told = True  # whether the next pass begins where it was told to
        self._unheard = restored  # whether a framework has yet to say with which epoch it goes on
        self._latest: Pass[Any] | None = None  # the pass that was drawn from last
        self._moves += 1

    def _hear(self, fit_loop: Any, *, counts_are_reset: bool) -> bool:
        """Go to where Lightning's Trainer begins, if the sampler was put somewhere before or the Trainer resumes.

        Returns:
            Whether the Trainer was just found to have nothing left of the epoch that it resumes.
        """
        mark = lightning_epochs.resume_mark(fit_loop)
        if mark is not None and mark != self._heard:
            self._heard = mark
            if not (self._restored and self._latest is None):
                step = lightning_epochs.counted_step(fit_loop, self.steps_per_epoch)
                self._move_to(step * self._items_per_step, restored=True)
        if self._unheard and self._latest is None and lightning_epochs.is_first_epoch(fit_loop):
            self._unheard, step = False, self._start // self._items_per_step
            step, self._ends_here = lightning_epochs.resumed_step(
                fit_loop, step, self.steps_per_epoch, counts_are_reset=counts_are_reset
            )
            self._start = step * self._items_per_step
            return self._ends_here
        return False

    def _bounds(self) -> tuple[int, int]:
        """Return where a pass that begins now starts and ends."""
        self._settle()
        epoch = self.steps_per_epoch * self._items_per_step
        return self._start, self._start if self._ends_here else (self._start // epoch + 1) * epoch

    def _settle(self) -> None:
        """Go to the end of the latest pass if it is over, unless the sampler was moved after that began."""
        latest = self._latest
        if latest is not None and not latest.settled and latest.finished():
            latest.settled = True
            if latest.moves == self._moves and latest.end >= self._start:
                self._start, self._restored, self._ends_here = latest.end, False, False

    def _begin(self, new: Pass[Item], restored: tuple[int, int] | None) -> Iterator[Item]:
        """Return the items of a pass that begins now."""
        loader = loader_that_draws(self.num_replicas)
        fit_loop = calling_fit_loop()
        if fit_loop is not None and loader is not None and loader.stateful:
            raise ValueError(
                "loader should be torch's own DataLoader for Lightning's Trainer, which restores the state of a "
                "StatefulDataLoader at another batch than it goes on with, but got one; keep sampler.state_dict() in a "
                "data module"
            )
        with self._lock.lock:  # two threads may each begin one
            if fit_loop is not None:
                self._hear(fit_loop, counts_are_reset=False)
            if self._latest is not None:
                self._latest.left_for(loader)
            start, end = self._bounds() if restored is None else restored
            if loader is not None and loader.skips and start % (self.steps_per_epoch * self._items_per_step):
                raise ValueError(
                    f"num_batches of skip_first_batches should be 0 for a sampler that is put within an epoch, here at "
                    f"step {start // self._items_per_step}, or as many batches would be left out; load a state or "
                    f"skip, not both"
                )
            if loader is not None and loader.takes_batches:
                check_trainer_goes_on(start // (self.steps_per_epoch * self._items_per_step), self.steps_per_epoch)
            if not self._told and self._latest is not None:
                self._check_repeat(self._latest, start)
            new.begin(loader, start, end, self._moves)
            self._latest, self._told = new, False
        return self._items(start, end)

    def _check_repeat(self, left: Pass[Any], start: int) -> None:
        """Say what is wrong with beginning again where a pass was left early."""
        if left.settled or left.moves != self._moves or left.start != start:
            return
        handed = left.handed_on()
        steps = "some" if handed is None else -(-handed // self._items_per_step)
        said = (
            f"a pass was left after {steps} of its steps, and the next one begins at step "
            f"{start // self._items_per_step} like that: call set_epoch(epoch) before each pass for other epochs, or "
            f"seek(step) to go on elsewhere"
        )
        if left.saved:
            raise RuntimeError(f"{said}. A state was taken from within the first, from where a resumed run would go on")
        if not left.count_is_lost and (handed is None or handed > self._items_per_step):  # else a look at the data
            warnings.warn(said, stacklevel=3)

    def _goes_on(self, older: Pass[Any]) -> None:
        """Take note that a pass is drawn from after another one was begun."""
        self._settle()
        if self._latest is not None and not self._latest.settled and self._latest.start == older.start:
            warnings.warn(
                f"two passes are drawn from at a time, and both give the steps from "
                f"{older.start // self._items_per_step} on: take two samplers, of different seeds, for different ones",
                stacklevel=3,
            )
        self._latest = older

    def _place_to_save(self, step: int | None) -> int:
        """Return the place of `step`, or of the training as far as it can be known."""
        size = self._items_per_step
        with self._lock.lock:
            self._settle()
            latest = self._latest
            under_way = latest is not None and latest.moves == self._moves
            if latest is None or not under_way:
                return self._start if step is None else checks.step(step) * size
            if latest.loader is not None and latest.loader.stateful:  # it knows itself what its workers prefetch
                return latest.start + latest.drawn if step is None else checks.step(step) * size
            handed = latest.handed_on()
            if step is None:
                if handed is None:
                    raise ValueError(
                        "step should be given to state_dict(), since workers prefetch through a sampler that is not "
                        "known here and only the loop knows how many steps it has trained, but got None"
                    )
                if latest.loader is not None and latest.loader.may_be_ahead:
                    raise ValueError(
                        "step should be given to state_dict(), since timm's PrefetchLoader holds a batch back and only "
                        "the loop knows how many steps it has trained, but got None"
                    )
                place = latest.start + handed
            else:
                place = checks.step(step) * size
                most = latest.drawn if handed is None else handed
                # Whoever draws without a DataLoader may be ahead by more than what is left of an epoch.
                least = 0 if latest.loader is None or handed is None else latest.start // size
                if not least <= step <= -(-(latest.start + most) // size):
                    raise ValueError(
                        f"step should be within the pass that is under way, which began at step "
                        f"{latest.start // size} and has given {most // size}, but got {step}; it is epoch * "
                        f"steps_per_epoch ({self.steps_per_epoch} here) + the batches trained of that epoch"
                    )
                if handed is not None and latest.loader is not None and handed // size - AHEAD_OF_A_LOOP > step - least:
                    raise ValueError(
                        f"step should be the number of batches trained, of which the DataLoader has handed on "
                        f"{handed // size} since step {least}, but got {step}; with gradient accumulation, count "
                        f"batches and not the optimizer's steps, or leave step out"
                    )
            latest.saved |= not latest.settled and place > latest.start
            return place

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}({self.order!r}, num_replicas={self.num_replicas}, rank={self.rank}, "
            f"drop_last={self.drop_last})"
        )

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("_lock", "_spare_cursor", "_latest")}

    def __setstate__(self, saved: dict[str, Any]) -> None:
        vars(self).update(saved, _lock=ForkSafeLock(), _spare_cursor=None, _latest=None)

    def __iter__(self) -> Iterator[Item]:
        if self._latest is not None:
            self._latest.note()
        return Pass(self)

    def _items(self, start: int, end: int) -> Iterator[Item]:
        """Return the items from place `start` to place `end`."""
        raise NotImplementedError

    def _lists(self, start: int, stop: int) -> Iterator[list[int]]:
        """Yield this process's share of the batches of the steps from `start` to `stop`."""
        if not isinstance(self.order, CursorOrder):
            for batch in self.order.batches(start, stop):
                yield batch[share_of(len(batch), self.num_replicas, self.rank)].tolist()
            return
        # A pass has its cursor for itself, since another may run in another thread, and leaves it to a later pass,
        # which begins where it ended and need not look for the place.
        with self._lock.lock:
            cursor, self._spare_cursor = self._spare_cursor, None
        if cursor is None:
            cursor = self.order.cursor()
        try:
            for block in self.order.blocks(start, stop, cursor):
                # A short last batch is a block of its own.
                share = share_of(block.shape[1], self.num_replicas, self.rank)
                rows = max(1, INDICES_PER_LIST_OF_LISTS // max(1, block.shape[1]))  # a batch may be empty
                for first in range(0, len(block), rows):
                    yield from block[first : first + rows, share].tolist()
        finally:
            self._spare_cursor = cursor
