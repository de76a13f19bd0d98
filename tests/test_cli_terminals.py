"""The command on the terminals that there are: 80 columns, pipes, without colours; and how much it imports."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator

import pytest
import typer
from typer.testing import CliRunner

from replenish.cli import app
from replenish.cli.commands import WHAT, WHERE
from replenish.lab.experiments import EXPERIMENTS

#: What takes long to import, and neither help nor a wrong argument needs.
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


def test_help_of_many_options_is_in_groups() -> None:
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
    assert "--launcher" in where
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    options = {parameter.name for name in ("run", "compare") for parameter in known[name].params}
    assert {*WHAT.split(), *WHERE.split()} <= options  # no group speaks of an option that is gone


#: Values that can be told to be wrong without the lab.
WRONG = [
    ("exec", "nowhere.py"),
    ("audit", "nowhere.py"),
    ("report", "nowhere"),
    ("compare", "digits", "--seeds", "x"),
    ("run", "table3", "--seeds", "x"),
]


@pytest.mark.parametrize(
    "words", [("--help",), ("compare", "--help"), ("compare", "--nope"), ("lst",), ("--version",), *WRONG]
)
def test_neither_help_nor_a_wrong_argument_waits_for_a_library(words: tuple[str, ...]) -> None:
    """Start-up is counted in modules, which are the same on any machine, and not in seconds."""
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
    assert int(count) < 700  # typer's own, and pydantic's, where an argument is read


class TestList:
    """Names are copied from `replenish list` into `replenish run`: none may be cut, on any terminal."""

    @pytest.mark.parametrize(
        ("width", "settings"),
        [(80, {}), (80, {"NO_COLOR": "1"}), (80, {"TERM": "dumb"}), (200, {}), (None, {})],
        ids=["80 columns", "no colour", "dumb", "wide", "piped"],
    )
    def test_names_are_whole(self, width: int | None, settings: dict[str, str]) -> None:
        shown = in_terminal(width, settings, "list")
        listed = [line.split("│")[1].strip() for line in shown.splitlines() if line.startswith("│")]
        assert set(EXPERIMENTS) <= set(listed)
        if width is not None:
            assert max(len(line) for line in shown.splitlines()) <= width
        assert ("also shows: network, order" in shown) == (width == 80)
        assert ("decays" in shown.splitlines()[2]) == (width != 80)
        assert "24 min" in shown


def in_terminal(width: int | None, settings: dict[str, str], *words: str) -> str:
    """Return what the command prints in a terminal of a width, or into a pipe; what moves the cursor is left out."""
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
        except OSError:  # Linux says so that the other side has ended
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
        ("replenish run table3 --scale m", "mini"),
        ("replenish run table3 --launcher sl", "slurm"),
    ],
)
def test_the_shell_completes(words: str, expected: str) -> None:
    asked = {"_REPLENISH_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = CliRunner().invoke(app, [], prog_name="replenish", env=asked)
    assert expected in done.output.split("\n")
