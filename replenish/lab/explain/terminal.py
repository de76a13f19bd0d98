"""A trace in the terminal: the paper's figure 1, four rows per step, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from replenish.draws import Int64Array
from replenish.measure.trace import ORDERS, Step, Trace

DRAWN, REFILLED, QUIET = "bold black on yellow", "bold black on green", "dim"
# If a pool takes more lines than this, only the slots drawn are shown.
MAX_POOL_LINES = 4
INDENT = 9  # "  batch  "


def show(trace: Trace, console: Console) -> None:
    """Print every step of a trace, and then a comparison of the three orders.

    Example:
        >>> from replenish.measure.trace import compute_trace
        >>> show(compute_trace(num_samples=5, batch_size=2, steps=1), Console(width=72, no_color=True))
        ... # doctest: +ELLIPSIS +NORMALIZE_WHITESPACE
        5 samples, batches of 2, a pool of 5 slots, identity sequence, seed 0
        ...
        step 1 of 1
          pool   [0]  1   2  [3]  4
          batch   0   3
          queue  <0> <1>  2   3   4   0 ...
          pool   <0>  1   2  <1>  4
        ...
    """
    view = _View(trace, console)
    view.show_heading()
    for number in range(len(trace)):
        view.show_step(trace.step(number))
    view.show_comparison()


class _View:
    """Prints the steps of one trace on one console."""

    def __init__(self, trace: Trace, console: Console) -> None:
        self._trace, self._console = trace, console
        self._digits = len(str(max(trace.num_samples, trace.pool_size) - 1))
        self._per_line = max(1, (console.width - INDENT) // (self._digits + 3))
        self._whole_pool = trace.pool_size <= MAX_POOL_LINES * self._per_line
        self._more = self._cell("..." if console.options.ascii_only else "…", QUIET)

    def show_heading(self) -> None:
        trace = self._trace
        sizes = f"{trace.num_samples:,} samples, batches of {trace.batch_size:,}, a pool of {trace.pool_size:,} slots"
        self._print(Text(f"{sizes}, {trace.sequence} sequence, seed {trace.seed}", style="bold"))
        self._print(Text())
        drawn, refill = Text("[3]", DRAWN), Text("<0>", REFILLED)
        self._print(Text.assemble("  ", drawn, "  drawn: leaves its slot for the batch, and is not put back"))
        self._print(Text.assemble("  ", refill, "  refill: the next of the queue goes into the empty slot"))

    def show_step(self, step: Step) -> None:
        drawn = step.slots.tolist()
        columns = list(range(self._trace.pool_size)) if self._whole_pool else self._slots_around(drawn)
        self._print(Text.assemble("\n", (f"step {step.number + 1} of {len(self._trace)}", "bold")))
        if not self._whole_pool:
            self._print_cells("slot", [self._more if slot is None else self._cell(slot, QUIET) for slot in columns])
        self._print_pool(step.pool_before, columns, drawn, DRAWN, "[]")
        self._print_cells("batch", [self._cell(sample, DRAWN) for sample in step.batch.tolist()])
        # The queue has no end: show the whole refill, then what fits the line, up to N samples.
        fitting = min(self._per_line - 1, max(self._trace.num_samples, len(drawn) + 4))
        queue = step.queue.tolist()[: max(len(drawn), fitting)]
        refill = [self._cell(sample, REFILLED, "<>") for sample in queue[: len(drawn)]]
        self._print_cells("queue", [*refill, *map(self._cell, queue[len(drawn) :]), self._more])
        self._print_pool(step.pool_after, columns, drawn, REFILLED, "<>")

    def show_comparison(self) -> None:
        counts = [self._trace.counts(order, len(self._trace)) for order in ORDERS]
        table = Table("", "SRS", "reshuffling", "replacement", title="at the end", title_justify="left")
        table.add_row("not drawn yet", *(f"{(found == 0).sum():,}" for found in counts))
        table.add_row("draws of a sample", *(f"{found.min()} to {found.max()}" for found in counts))
        self._print(Text())
        self._console.print(table)

    def _slots_around(self, drawn: Sequence[int]) -> list[int | None]:
        """Return the drawn slots, sorted, with None wherever slots are left out."""
        columns: list[int | None] = []
        last = -1
        for slot in sorted(drawn):
            columns += [None, slot] if slot > last + 1 else [slot]
            last = slot
        return columns if last == self._trace.pool_size - 1 else [*columns, None]

    def _cell(self, content: object, style: str = "", around: str = "  ") -> Text:
        """Return a sample as text: `[3]` is drawn, `<3>` comes from the queue."""
        return Text(f"{around[0]}{content}{around[1]}".center(self._digits + 2), style)

    def _print_pool(
        self, samples: Int64Array, columns: Sequence[int | None], marked: Sequence[int], style: str, around: str
    ) -> None:
        held = {slot: self._cell(samples[slot]) for slot in columns if slot is not None}
        held |= {slot: self._cell(samples[slot], style, around) for slot in marked}
        self._print_cells("pool", [self._more if slot is None else held[slot] for slot in columns])

    def _print_cells(self, name: str, cells: Sequence[Text]) -> None:
        for start in range(0, len(cells), self._per_line):
            label = name if start == 0 else ""
            row = Text(" ").join(cells[start : start + self._per_line])
            self._print(Text.assemble((f"  {label:<7}", QUIET), row))

    def _print(self, text: Text) -> None:
        text.rstrip()
        self._console.print(text, overflow="ignore", crop=False, no_wrap=True)
