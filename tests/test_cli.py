"""The command as users run it: on 80 columns, in pipes, without colours, and with few imports."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import replenish
from replenish import SequencedReplacement
from replenish.cli import app
from replenish.cli.commands import WHAT, WHERE
from replenish.cli.console import errors_as_sentences
from replenish.cli.options import parse_seeds
from replenish.diagnostics import measure
from replenish.lab.experiments import EXPERIMENTS


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == replenish.__version__
    assert "Usage: replenish" in (run().stdout + run().stderr)


def test_count() -> None:
    """The paper's counts: exact if short, otherwise as a power of ten; and their ratio."""
    words = ("count 5 2", "count 50000 64 --epochs 200")
    small, large = (CliRunner().invoke(app, each.split()).stdout for each in words)
    assert [line.split()[-1] for line in small.split("\n")[:3]] == ["13", "30", "2.308"]
    assert all(number in large for number in ("1.027e+215", "6.410e+216", "62.39"))


def test_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The table is plain text and not cut, and the page has the command."""
    page = tmp_path / "orders.html"
    words = ["inspect", "2000", "20", "--epochs", "12", "--html", str(page)]
    monkeypatch.setattr(sys, "argv", ["replenish", *words])
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0, done.stderr
    assert done.stderr == ""
    lines = [[cell.strip() for cell in line.split("│")[1:-1]] for line in done.stdout.split("\n") if "│" in line]
    rows = {label: cells for label, *cells in lines}
    law, srs, reshuffling, replacement = rows["unseen in epoch 12"]
    assert law == "~ 27.92 %"  # the limit for many small steps
    found = measure(SequencedReplacement(2000, 20), 12)
    assert srs == f"{100 * found.unseen[-1]:.2f} %"
    assert reshuffling == "0.00 %"
    assert abs(float(replacement.split()[0]) - 36.6) < 4.5
    assert rows["draws of a sample in 12 epochs"][1] == f"{found.counts.min()} to {found.counts.max()}"
    assert f"replenish inspect 2000 20 --epochs 12 --html {page}" in page.read_text()
    assert sorted(tmp_path.iterdir()) == [page]  # nothing temporary is left


@pytest.mark.parametrize(
    "words",
    [
        "count 5 0",
        "count five 2",
        "count -5 2",
        "inspect 10 20",
        "inspect 10 2 --html no/such/folder/x.html",
        "data get mnist",
        "--what",
        "list --scale huge",
        "list --json orders",
        "when 3 --order srs -N 100 -B 10 --loader 2",
        "what 3 --order srs -N 100 -B 10 --option pool_size=20 --option pool-size=30",
        "what 3 --order srs -N 100 -B 10 --option pool_size=-4",
        f"audit --stop 5 {__file__}",
        f"data verify --root {__file__}",
    ],
)
def test_bad_input_is_exit_code_2_without_a_traceback(words: str) -> None:
    done = CliRunner().invoke(app, words.split())
    assert done.exit_code == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_too_little_memory_is_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended, errors_as_sentences():
        np.empty(2**55)
    assert ended.value.exit_code == 2
    assert "replenish: there is not enough memory; take smaller sizes (Unable" in capsys.readouterr().err


def test_without_the_labs_packages() -> None:
    blocked = 'import sys; sys.modules["typer"] = None\nimport replenish.cli\n'
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "replenish: the command needs typer and rich: pip install 'replenish[cli]'"


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("1", [0]),
        ("5", [0, 1, 2, 3, 4]),
        (" 2 , 1 ", [2, 1]),
        ("0,9223372036854775807", [0, 2**63 - 1]),
        ("3-3", [3]),
        ("0-4", [0, 1, 2, 3, 4]),
        ("7, 0-2", [7, 0, 1, 2]),
        ("0-0", [0]),
        ("9223372036854775807-9223372036854775807", [2**63 - 1]),
    ],
)
def test_seeds(text: str, seeds: list[int]) -> None:
    assert parse_seeds(text) == seeds


def test_bad_seeds() -> None:
    counts = ("", "0", "-1", "1.5", "1,", "1,1", "²", "٣", "10001", "0,9223372036854775808", "9" * 5000)
    ranges = ("4-3", "1-", "1-2-3", "0-2,2", "0-10000", "9223372036854775807-9223372036854775808")
    for text in (*counts, *ranges):
        with pytest.raises(ValueError, match="seed"):
            parse_seeds(text)


@pytest.mark.parametrize(
    ("words", "known"),
    [
        ("count 100 10", {"ratio"}),
        ("inspect 200 10 --epochs 2", {"draws"}),
        ("data verify --root .", {"data", "state", "where"}),
        ("list --scale digits", {"experiment", "network", "order"}),
    ],
)
def test_json_from_every_command_that_prints_results(
    words: str, known: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("REPLENISH_DATA", raising=False)
    done = CliRunner().invoke(app, [*words.split(), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert known <= set(found if isinstance(found, dict) else found[0]), list(found)


# ---- Terminals ----

#: Slow imports that neither help nor a wrong argument needs.
HEAVY = {"lightning_fabric", "matplotlib", "numpy", "rich", "scipy", "sklearn", "torch"}


def commands() -> Iterator[tuple[str, ...]]:
    def within(group: object, words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield words
        for name, command in getattr(group, "commands", {}).items():
            yield from within(command, (*words, name))

    yield from within(typer.main.get_command(app), ())


@pytest.mark.parametrize("words", list(commands()), ids=" ".join)
def test_help_fits_eighty_columns(words: tuple[str, ...]) -> None:
    shown = CliRunner().invoke(app, [*words, "--help"], prog_name="replenish", env={"COLUMNS": "80"}, terminal_width=80)
    assert shown.exit_code == 0
    assert shown.output.startswith(f"Usage: {' '.join(('replenish', *words))}")
    assert max(len(line) for line in shown.output.splitlines()) <= 80
    assert "\x1b" not in shown.output


def test_long_help_is_in_groups() -> None:
    shown = CliRunner().invoke(app, ["compare", "--help"]).output
    sections = re.findall(r"^(\w.*):\n((?:  .*\n)+)", shown, re.MULTILINE)
    assert [title for title, _ in sections] == [
        "Arguments",
        "What is run",
        "How it is trained",
        "Where it is run",
        "Options",
    ]
    _, what, how, where, _ = (lines for _, lines in sections)
    assert "--orders" in what
    assert "--learning-rate" in how
    assert "--jobs" in where
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = {parameter.name for name in ("run", "compare") for parameter in known[name].params}
    assert {*WHAT.split(), *WHERE.split()} <= options  # no group names a removed option


#: Wrong arguments that are detected without importing the lab.
WRONG = [
    ("exec", "nowhere.py"),
    ("audit", "nowhere.py"),
    ("report", "nowhere"),
    ("compare", "digits", "--seeds", "x"),
    ("run", "table3", "--seeds", "x"),
]


@pytest.mark.parametrize("words", [("--help",), ("compare", "--help"), ("lst",), *WRONG])
def test_help_and_wrong_arguments_import_no_slow_library(words: tuple[str, ...]) -> None:
    """Count modules instead of seconds, since they are the same on any machine."""
    script = f"""
import atexit, sys
atexit.register(lambda: print(len(sys.modules), *({HEAVY!r} & set(sys.modules)), file=sys.stderr))
sys.argv = ["replenish", *{words!r}]
from replenish.cli import main
main()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    count, *heavy = done.stderr.strip().splitlines()[-1].split()
    assert heavy == []
    assert int(count) < 700  # typer's modules, and pydantic's if an argument is read


@pytest.mark.parametrize(
    ("width", "settings"),
    [(80, {}), (80, {"TERM": "dumb"}), (200, {}), (None, {})],
    ids=["80 columns", "dumb", "wide", "piped"],
)
def test_list_shows_every_experiment_with_the_papers_error_and_a_cost(
    width: int | None, settings: dict[str, str]
) -> None:
    """Users copy names from `replenish list` into `replenish run`, so no terminal may cut them."""
    shown = in_terminal(width, settings, "list")
    listed = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
    assert set(EXPERIMENTS) <= set(listed)
    if width is not None:
        assert max(len(line) for line in shown.splitlines()) <= width
    assert ("also shows: network, order" in shown) == (width == 80)
    assert ("decays" in shown.splitlines()[2]) == (width != 80)
    assert "24 min" in shown
    row = next(line for line in shown.splitlines() if "table2/wrn-28-10-srs/cifar100" in line)
    assert re.search(r"12\.34 %.*\d+(\.\d)? h", row)
    assert ("36.5M" in row) == (width != 80)


def in_terminal(width: int | None, settings: dict[str, str], *words: str) -> str:
    """Return the command's output in a terminal of this width, or into a pipe, without cursor movements."""
    environment = {"TERM": "xterm-256color", **os.environ, **settings}
    environment.pop("COLUMNS", None)
    command = [sys.executable, "-m", "replenish", *words]
    if width is None:
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout
    pty = pytest.importorskip("pty")
    ours, its = pty.openpty()
    _set_width(its, width)
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        shown = b""
        try:
            while part := os.read(ours, 65536):
                shown += part
        except OSError:  # Linux's way to report that the other side has ended
            pass
    os.close(ours)
    assert process.returncode == 0
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode()).replace("\r\n", "\n")


def _set_width(terminal: int, width: int) -> None:
    """Set a terminal's size."""
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, width, 0, 0))


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("replenish comp", "compare"),
        ("replenish run table3/wrn-s", "table3/wrn-srs-b64-120-150-175"),
        ("replenish run decisive/s", "decisive/srs"),
        ("replenish compare --orders reshuffling,sr", "reshuffling,srs"),
        ("replenish compare --model wrn-1", "wrn-10-1"),
        ("replenish exec --order fl", "flip-flop"),
        ("replenish run table3 --scale m", "mini"),
    ],
)
def test_the_shell_completes(words: str, expected: str) -> None:
    asked = {"_REPLENISH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = CliRunner().invoke(app, [], prog_name="replenish", env=asked)
    assert expected in done.output.split("\n")
