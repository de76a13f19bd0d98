"""`replenish explain`: the terminal view, the page that is written, and what is refused."""

from __future__ import annotations

import io
import json
import os
import re
import webbrowser
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner, Result

from replenish.cli.explain import explain
from replenish.lab.explain import pages, terminal
from replenish.measure.trace import Trace, compute_trace

app = typer.Typer(pretty_exceptions_enable=False)
app.command("explain")(explain)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def shown(trace: Trace, width: int = 80) -> str:
    written = io.StringIO()
    terminal.show(trace, Console(file=written, width=width, highlight=False))
    return written.getvalue()


def steps_shown(text: str) -> list[dict[str, list[str]]]:
    """Read the terminal view back: for each step its rows, in which a name that comes twice has a 2."""
    steps: list[dict[str, list[str]]] = []
    for block in re.split(r"^step \d+ of \d+\n", text, flags=re.MULTILINE)[1:]:
        rows: dict[str, list[str]] = {}
        for line in block.split("\n\n")[0].splitlines():
            if name := line[2:9].strip():
                last = name if name not in rows else f"{name}2"
                rows[last] = []
            rows[last] += line[9:].split()
        steps.append(rows)
    return steps


@pytest.mark.parametrize(("num_samples", "batch_size", "width"), [(5, 2, 80), (5, 1, 20), (40, 7, 60), (4, 4, 80)])
def test_the_terminal_shows_the_trace(num_samples: int, batch_size: int, width: int) -> None:
    trace = compute_trace(num_samples, batch_size, 9, seed=2)
    text = shown(trace, width)
    assert "\x1b" not in text  # plain where it is no terminal
    steps = steps_shown(text)
    assert len(steps) == 9
    for number, rows in enumerate(steps):
        step, size = trace.step(number), trace.batch_size
        drawn = set(step.slots.tolist())
        pools = [("pool", step.pool_before, "[]"), ("pool2", step.pool_after, "<>")]
        for name, pool, marks in pools:
            assert rows[name] == [
                f"{marks[0]}{sample}{marks[1]}" if slot in drawn else str(sample) for slot, sample in enumerate(pool)
            ]
        assert rows["batch"] == [str(sample) for sample in step.batch]
        assert rows["queue"][:size] == [f"<{sample}>" for sample in step.refill]
        assert rows["queue"][size:-1] == [str(sample) for sample in step.queue[size : len(rows["queue"]) - 1]]
        assert rows["queue"][-1] == "…"


def test_a_large_pool_is_shown_by_the_slots_drawn() -> None:
    trace = compute_trace(50_000, 3, 2)
    for number, rows in enumerate(steps_shown(shown(trace))):
        step = trace.step(number)
        slots = sorted(step.slots.tolist())
        assert [int(cell) for cell in rows["slot"] if cell != "…"] == slots
        assert [cell for cell in rows["pool"] if cell != "…"] == [f"[{step.pool_before[slot]}]" for slot in slots]
        assert [cell for cell in rows["pool2"] if cell != "…"] == [f"<{step.pool_after[slot]}>" for slot in slots]


def test_the_terminal_compares_the_orders_at_the_end() -> None:
    trace = compute_trace(6, 2, 8, seed=1)
    cells = {
        row[0].strip(): [cell.strip() for cell in row[1:4]]
        for line in shown(trace).splitlines()
        if len(row := line.strip("│").split("│")) == 4
    }
    assert cells["not drawn yet"] == [str(trace.unseen(order)[-1]) for order in trace.batches]
    counts = [trace.counts(order, 8) for order in trace.batches]
    assert cells["draws of a sample"] == [f"{found.min()} to {found.max()}" for found in counts]


def test_the_page_holds_the_trace_and_needs_no_network() -> None:
    trace = compute_trace(9, 2, 30, seed=4, sequence="shuffled", pool_size=18)
    text = pages.explorer_page(trace)
    held = re.search(r'<script type="application/json" id="trace">(.*?)</script>', text, flags=re.DOTALL)
    assert held is not None
    assert json.loads(held[1]) == trace.to_dict()
    assert "://" not in text
    assert not re.search(r"""["'(]//""", text)  # an address without its scheme
    assert not re.search(r"<(?:img|iframe|object|embed)\b|\bsrc=|@import|url\(|fetch\(|XMLHttpRequest|import\(", text)
    assert re.findall(r'href="([^"]*)"', text) == ["data:,"]
    assert "9 samples, a pool of 18 slots · batches of 2 · 30 steps · shuffled sequence · seed 4" in text


def test_html(tmp_path: Path) -> None:
    path = tmp_path / "explorer.html"
    path.write_text("old")
    done = run("--n", "12", "--batch-size", "3", "--steps", "40", "--seed", "7", "--html", str(path))
    assert done.exit_code == 0, done.output
    assert done.output == f"written to {path}\n"
    assert path.read_text(encoding="utf-8") == pages.explorer_page(compute_trace(12, 3, 40, seed=7))
    assert os.listdir(tmp_path) == ["explorer.html"]  # nothing half-written beside it
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


def test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or True)
    done = run("--open", "--steps", "3")
    assert done.exit_code == 0, done.output
    (written,) = tmp_path.glob("*/*.html")
    assert opened == [written.as_uri()]
    assert written.read_text(encoding="utf-8") == pages.explorer_page(compute_trace(5, 2, 3))

    monkeypatch.setattr(webbrowser, "open", lambda address: False)
    done = run("--open")
    assert done.exit_code == 2
    assert "no browser could be opened; the page is " in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--html", "x.html", "--open"], "--html and --open should not be given together"),
        (["--html", "x.txt"], "--html should be the name of a .html file, but got x.txt"),
        (["--html", "no/such/folder/x.html"], "--html should be in a folder that is there"),
        (["--html", "x.html", "--n", "401"], "num_samples should be at most 400 for a page"),
        (["--html", "x.html", "--pool-size", "500"], "pool_size should be at most 400 for a page"),
        (["--open", "--steps", "2001"], "steps should be at most 2000 for a page"),
        (["--open", "--n", "400", "--batch-size", "100", "--steps", "2000"], "steps should be at most 889"),
        (["--html", "x.html", "--batch-size", "-30"], "batch_size should be at least 1, but got -30"),
        (["--batch-size", "6"], "batch_size should be at most pool_size"),
        (["--steps", "0"], "steps should be at least 1"),
        (["--sequence", "sorted"], 'sequence should be "shuffled", "identity"'),
        (["--seed", "-1"], "seed should be at least 0"),
    ],
)
def test_bad_input_is_one_sentence(
    arguments: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert done.output.count("\n") == 1
    assert not os.listdir(tmp_path)
