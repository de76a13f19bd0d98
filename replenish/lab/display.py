"""The live display of runs: a line for each that is under way, one for all, and a sentence for each that has ended."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn


class RunsDisplay:
    """Shows how runs go, on a terminal; elsewhere only the sentences.

    Args:
        labels: A name for each run.
        console: Where to; by default standard error, so that standard output is left for results.

    Example:
        >>> import io
        >>> with RunsDisplay(["srs, seed 0"], Console(file=io.StringIO())) as display:
        ...     display.watch(0, {"event": "start", "step": 0, "total_steps": 100, "epochs": 4})
        ...     display.watch(0, {"event": "step", "step": 50, "loss": 1.2, "samples_per_second": 9})
    """

    def __init__(self, labels: Sequence[str], console: Console | None = None) -> None:
        self._labels = labels
        self._console = console or Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=None),
            TextColumn("{task.fields[state]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self._console,
            disable=not self._console.is_terminal,
            expand=True,
        )
        self._all = self._progress.add_task("[bold]all runs", total=len(labels), state="")
        self._tasks: dict[int, TaskID] = {}
        self._done = 0
        self._parts: dict[int, float] = {}
        self._starts: dict[int, dict[str, Any]] = {}
        self._errors: dict[int, float] = {}

    def __enter__(self) -> RunsDisplay:
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def watch(self, place: int, event: dict[str, Any]) -> None:
        """Show an event of the run at `place`."""
        getattr(self, f"_on_{event['event']}")(place, event)
        self._progress.update(
            self._all,
            completed=self._done + sum(self._parts.values()),
            state=f"{self._done} of {len(self._labels)} ended",
        )

    def _on_start(self, place: int, event: dict[str, Any]) -> None:
        self._starts[place] = event
        label = escape(self._labels[place])
        self._tasks[place] = self._progress.add_task(
            label, total=event["total_steps"], completed=event["step"], state=""
        )
        if event["step"]:
            self._console.print(f"{label}: going on from step {event['step']:,}", highlight=False, soft_wrap=True)

    def _on_step(self, place: int, event: dict[str, Any]) -> None:
        start = self._starts[place]
        epoch = event["step"] * start["epochs"] / start["total_steps"]
        error = f"{self._errors[place]:.2f} %" if place in self._errors else "-"
        state = (
            f"epoch {epoch:.1f}/{start['epochs']}  step {event['step']:,}  loss {event['loss']:.3f}  error {error}  "
            f"{event['samples_per_second']:,.0f}/s"
        )
        self._progress.update(self._tasks[place], completed=event["step"], state=state)
        self._parts[place] = event["step"] / start["total_steps"]

    def _on_epoch(self, place: int, event: dict[str, Any]) -> None:
        self._errors[place] = event["test_error"]
        self._progress.update(self._tasks[place], completed=event["step"])
        self._parts[place] = event["step"] / self._starts[place]["total_steps"]

    def _on_end(self, place: int, event: dict[str, Any]) -> None:
        self._leave(place)
        self._done += 1
        result = event["result"]
        if result["status"] == "finished":
            told = f"test error {result['test_error']:.2f} % after {result['seconds']:,.0f} s"
        else:
            told = f"[red]diverged[/red]: {escape(str(result['message'])[:300])}"
        self._console.print(f"{escape(self._labels[place])}: {told}", highlight=False, soft_wrap=True)

    def _on_warning(self, place: int, event: dict[str, Any]) -> None:
        self._console.print(
            f"{escape(self._labels[place])}: {escape(event['message'])}", highlight=False, soft_wrap=True
        )

    def _on_error(self, place: int, event: dict[str, Any]) -> None:
        self._leave(place)

    def _on_stopped(self, place: int, event: dict[str, Any]) -> None:
        self._leave(place)
        self._console.print(
            f"{escape(self._labels[place])}: {escape(event['message'])}", highlight=False, soft_wrap=True
        )

    def _leave(self, place: int) -> None:
        if place in self._tasks:
            self._progress.remove_task(self._tasks.pop(place))
        self._parts.pop(place, None)
