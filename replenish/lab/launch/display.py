"""The live display of runs: a line for each run in progress, one for all, and a sentence for each that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Column

from replenish.lab.machine import first_process

#: A terminal of so many columns shows everything. A narrower one shows the epoch, the error and a readable bar.
WIDE = 120
#: Columns of a narrow line without the label: a bar of ten, epoch and error, and the time left.
WITHOUT_LABEL = 10 + 24 + 8


class RunsDisplay:
    """Shows the progress of runs, each with a label, on a terminal; elsewhere only the sentences.

    Example:
        >>> import io
        >>> with RunsDisplay(["srs, seed 0"], Console(file=io.StringIO())) as display:
        ...     display.watch(0, {"event": "start", "step": 0, "total_steps": 100, "epochs": 4})
        ...     display.watch(0, {"event": "step", "step": 50, "loss": 1.2, "samples_per_second": 9})
    """

    def __init__(self, labels: Sequence[str], console: Console) -> None:
        self._labels, self._console = labels, console
        self._wide = console.width >= WIDE
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None, table_column=Column(ratio=1)),
            TextColumn("{task.fields[state]}"),
            *((TimeElapsedColumn(), TextColumn("left")) if self._wide else ()),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal or console.is_dumb_terminal,  # sentences only
            expand=True,
        )
        self._all = self._progress.add_task("[bold]all runs", total=len(labels), state="")
        self._tasks: dict[int, TaskID] = {}
        self._starts: dict[int, dict[str, Any]] = {}
        self._errors: dict[int, float] = {}
        self._ended = 0

    def __enter__(self) -> RunsDisplay:
        self._progress.start()
        return self

    def __exit__(self, *error: object) -> None:
        if not self._progress.disable:  # rich before 15 would print an empty line
            self._progress.stop()

    def watch(self, place: int, event: dict[str, Any]) -> None:
        """Show an event of the run at `place`."""
        getattr(self, f"_on_{event['event']}")(place, event)
        under_way = sum(task.percentage / 100 for task in self._progress.tasks if task.id != self._all)
        state = f"{self._ended} of {len(self._labels)} ended"
        self._progress.update(self._all, completed=self._ended + under_way, state=state)

    def _on_start(self, place: int, event: dict[str, Any]) -> None:
        self._starts[place] = event
        self._tasks[place] = self._progress.add_task(
            escape(self._short(self._labels[place])), total=event["total_steps"], completed=event["step"], state=""
        )
        if event["step"]:
            self._say(place, f"resuming from step {event['step']:,}")

    def _on_step(self, place: int, event: dict[str, Any]) -> None:
        start = self._starts[place]
        epoch = event["step"] * start["epochs"] / start["total_steps"]
        error = f"{self._errors[place]:.2f} %" if place in self._errors else "-"
        state = f"epoch {epoch:.1f}/{start['epochs']}"
        if self._wide:
            state += f"  step {event['step']:,}  loss {event['loss']:.3f}"
            state += f"  error {error}  {event['samples_per_second']:,.0f}/s"
        else:
            state += f"  {error}"
        self._progress.update(self._tasks[place], completed=event["step"], state=state)

    def _on_epoch(self, place: int, event: dict[str, Any]) -> None:
        if event["test_error"] is not None:
            self._errors[place] = event["test_error"]
        self._progress.update(self._tasks[place], completed=event["step"])

    def _on_end(self, place: int, event: dict[str, Any]) -> None:
        self._leave(place)
        self._ended += 1
        result = event["result"]
        if result["status"] == "finished":
            self._say(place, f"test error {result['test_error']:.2f} % after {result['seconds']:,.0f} s")
        else:
            self._say(place, f"[red]diverged[/red]: {escape(str(result['message'])[:300])}")

    def _on_warning(self, place: int, event: dict[str, Any]) -> None:
        self._say(place, escape(event["message"]))

    def _on_stopped(self, place: int, event: dict[str, Any]) -> None:
        self._leave(place)
        self._on_warning(place, event)

    def _on_error(self, place: int, event: dict[str, Any]) -> None:
        self._leave(place)  # the exception of `launch` reports the error

    def _short(self, label: str) -> str:
        """Return a label, without its middle if a narrow terminal has no room for all of it and the bar."""
        room = max(self._console.width - WITHOUT_LABEL, 16)
        return label if self._wide or len(label) <= room else f"{label[: room - 10]}…{label[-9:]}"

    def _leave(self, place: int) -> None:
        if place in self._tasks:
            self._progress.remove_task(self._tasks.pop(place))

    def _say(self, place: int, markup: str) -> None:
        self._console.print(f"{escape(self._labels[place])}: {markup}", highlight=False, soft_wrap=True)


def display_of(labels: Sequence[str], *, in_logs: bool = True) -> RunsDisplay:
    """Return a display of runs on standard error. Of several processes, only the first shows it.

    Without `in_logs` the display is silent except on a terminal or in a notebook, so that nothing appears in the log of
    a program. A notebook shows a sentence for each run that has ended, since a live display needs further packages.
    """
    console = Console(stderr=True)
    console.quiet = not (first_process() and (in_logs or console.is_terminal or console.is_jupyter))
    return RunsDisplay(labels, console)
