"""Runs as a table that fills up: a row for each arm, a column for each seed; for a terminal and few runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text


class RunsGrid:
    """Shows runs, each at the row of its arm and the column of its seed: how far it is, and then its test error.

    Example:
        >>> import io
        >>> console = Console(file=io.StringIO(), force_terminal=True, width=80)
        >>> with RunsGrid([("srs", 0), ("reshuffling", 0)], console) as grid:
        ...     grid.watch(0, {"event": "start", "step": 0, "total_steps": 100})
        ...     grid.watch(0, {"event": "step", "step": 50})
    """

    def __init__(self, places: Sequence[tuple[str, int]], console: Console) -> None:
        self._places, self._console = places, console
        self._shares: dict[int, float] = {}
        self._totals: dict[int, int] = {}
        self._results: dict[int, dict[str, Any]] = {}
        self._live = Live(get_renderable=self._render, console=console, refresh_per_second=4, transient=True)

    def __enter__(self) -> RunsGrid:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def watch(self, place: int, event: dict[str, Any]) -> None:
        """Show an event of the run at `place`."""
        kind = event["event"]
        if kind == "start":
            self._totals[place] = event["total_steps"]
        if kind in ("start", "step", "epoch"):
            self._shares[place] = event["step"] / self._totals[place]
        elif kind == "end":
            self._results[place] = event["result"]
        elif kind in ("warning", "stopped"):
            arm, seed = self._places[place]
            self._console.print(
                f"{arm}, seed {seed}: {event['message']}", markup=False, highlight=False, soft_wrap=True
            )

    def _render(self) -> Group:
        arms = list(dict.fromkeys(arm for arm, _ in self._places))
        seeds = sorted({seed for _, seed in self._places})
        table = Table("test error, %")
        for title in (*(f"seed {seed}" for seed in seeds), "mean"):
            table.add_column(title, justify="right")
        by_place = {key: place for place, key in enumerate(self._places)}
        for arm in arms:
            runs = [by_place.get((arm, seed)) for seed in seeds]
            errors = [error for run in runs if run is not None and (error := self._error(run)) is not None]
            mean = f"{sum(errors) / len(errors):.2f}" if errors else ""
            table.add_row(
                arm, *(self._cell(run) for run in runs), Text(mean, "dim" if len(errors) < len(seeds) else "")
            )
        done = len(self._results) + sum(share for place, share in self._shares.items() if place not in self._results)
        bar = ProgressBar(total=len(self._places), completed=done, width=40)
        return Group(table, bar, Text(f"{len(self._results)} of {len(self._places)} runs have ended", "dim"))

    def _error(self, place: int) -> float | None:
        result = self._results.get(place, {})
        return result.get("test_error") if result.get("status") == "finished" else None

    def _cell(self, place: int | None) -> Text:
        if place is None:
            return Text()
        if (error := self._error(place)) is not None:
            return Text(f"{error:.2f}", "bold")
        if place in self._results:
            return Text(str(self._results[place]["status"]), "red")
        if place in self._shares:
            return Text(f"{100 * self._shares[place]:.0f} %".rjust(8), "cyan")
        return Text("·".rjust(8), "dim")
