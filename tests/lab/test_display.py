"""The live display, on a terminal and without one."""

from __future__ import annotations

import io
import re
from typing import Any

import pytest
from rich.console import Console

from replenish.lab.launch.display import RunsDisplay, display_of

RESULT = {"status": "finished", "test_error": 12.345, "seconds": 61.0, "message": None}
EVENTS: list[dict[str, Any]] = [
    {"event": "start", "step": 0, "total_steps": 2000, "epochs": 40},
    {"event": "step", "step": 40, "loss": 2.3456, "learning_rate": 0.1, "samples_per_second": 1234.5},
    {"event": "epoch", "epoch": 1, "step": 50, "test_error": 45.678},
    {"event": "step", "step": 1025, "loss": 1.2345, "learning_rate": 0.1, "samples_per_second": 2345.6},
]


def shown(
    events: list[dict[str, Any]], *, terminal: bool, width: int = 200, labels: tuple[str, ...] = ("srs, seed 0",)
) -> str:
    """Return the screen after the events, while the display is still open."""
    console = Console(force_terminal=terminal, width=width, file=io.StringIO(), legacy_windows=False, color_system=None)
    with RunsDisplay(labels, console) as display:
        for event in events:
            display.watch(0, event)
        display._progress.refresh()
        return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def plain(screen: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen)


@pytest.mark.parametrize("width", [200, 120])
def test_a_terminal_shows_the_progress_of_a_run(width: int) -> None:
    screen = plain(shown(EVENTS, terminal=True, width=width)).split("\r")[-1]
    for part in (
        "srs, seed 0",
        "epoch 20.5/40",
        "step 1,025",
        "loss 1.23",
        "error 45.68 %",
        "2,346/s",
        "left",
        "all runs",
    ):
        assert part in screen, part
    assert re.search(r"left\s+(\d+:\d\d:\d\d|-:--:--)", screen)


def test_before_the_first_epoch_there_is_no_error() -> None:
    assert "error -" in shown(EVENTS[:2], terminal=True)


def test_a_resumed_run_reports_it() -> None:
    start = {**EVENTS[0], "step": 1000}
    for terminal in (True, False):
        assert "srs, seed 0: resuming from step 1,000" in shown([start], terminal=terminal)


def test_without_a_terminal_each_run_prints_one_line() -> None:
    text = shown([*EVENTS, {"event": "end", "result": RESULT}], terminal=False)
    assert text == "srs, seed 0: test error 12.35 % after 61 s\n"
    assert "\x1b" not in text
    assert shown(EVENTS, terminal=False) == ""


def test_a_message_is_one_line_at_any_width() -> None:
    """People search logs line by line."""
    message = "the loss is not a finite number at step 7 (learning rate 0.05); the batch's samples are [1, 2, 3, 4, 5]"
    events = [
        EVENTS[0],
        {
            "event": "warning",
            "message": "runs/a/checkpoint.pt is damaged (ValueError: its checksum is another); left out",
        },
        {"event": "end", "result": {**RESULT, "status": "diverged", "message": message}},
    ]
    lines = shown(events, terminal=False, width=40).splitlines()
    assert lines == [f"srs, seed 0: {events[1]['message']}", f"srs, seed 0: diverged: {message}"]


def test_brackets_are_not_markup() -> None:
    events = [
        {**EVENTS[0], "step": 3},
        {"event": "warning", "message": "odd [red]file[/red] [/]"},
        {"event": "stopped", "message": "stopped in runs/[bold]"},
    ]
    text = shown(events, terminal=False, labels=("data[0] [/x], seed 0",))
    assert "data[0] [/x], seed 0: resuming from step 3" in text
    assert "odd [red]file[/red] [/]" in text
    assert "stopped in runs/[bold]" in text
    assert "data[0] [/x]" in shown(EVENTS, terminal=True, labels=("data[0] [/x], seed 0",))


def test_the_line_of_all_runs_counts_those_that_ended() -> None:
    labels = ("a", "b")
    events = [*EVENTS, {"event": "end", "result": RESULT}]
    assert "1 of 2 ended" in shown(events, terminal=True, labels=labels)
    # A run that had already ended reports only its end.
    assert "1 of 2 ended" in shown(events[-1:], terminal=True, labels=labels)


def test_an_error_removes_the_line_of_its_run() -> None:
    screen = shown([*EVENTS, {"event": "error", "message": "no data"}], terminal=True)
    assert "srs, seed 0" not in plain(screen).split("\r")[-1].split("all runs")[-1]


@pytest.mark.parametrize(
    "label", ["srs, seed 0", "table3/wrn-srs-b64-120-150-175, seed 0", "table2/" + 60 * "x" + ", seed 0"]
)
def test_eighty_columns_show_the_important_parts(label: str) -> None:
    last = plain(shown(EVENTS, terminal=True, width=80, labels=(label,))).split("\r")[-1]
    lines = last.splitlines()
    assert all(len(line) <= 80 for line in lines)
    (line,) = (line for line in lines if line.startswith(label[:20]))
    for part in ("seed 0", "epoch 20.5/40", "45.68 %"):
        assert part in line, part
    assert line.index(" epoch") - line.index("seed 0") - len("seed 0 ") >= 10  # a bar that can be read


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    text = shown([*EVENTS, {"event": "end", "result": RESULT}], terminal=True)
    assert text == "srs, seed 0: test error 12.35 % after 61 s\n"


@pytest.mark.parametrize("terminal", [True, False])
def test_a_program_prints_results_only_on_a_terminal(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")  # makes rich assume a terminal
    with display_of(["srs, seed 0"], in_logs=False) as display:
        display.watch(0, EVENTS[0])
        display.watch(0, {"event": "end", "result": RESULT})
    assert ("srs, seed 0: test error 12.35 % after 61 s" in plain(capsys.readouterr().err)) == terminal
