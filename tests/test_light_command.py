"""Commands that need no torch work with only typer, rich, jinja2 and numpy; the others name the extra to install."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from replenish.cli import LAB_PACKAGES

#: Starts the command, but makes the lab's packages unimportable.
WITHOUT = f"""
import sys
for package in {[name for name in LAB_PACKAGES if name != "jinja2"]!r}:
    sys.modules[package] = None
from replenish.cli import main
main()
"""


def without_torch(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", WITHOUT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=cwd, encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("list orders", "sequenced replacement"),
        ("what 5 --order srs -N 100 -B 10", "10 samples, in effective epoch 0.50"),
        ("count 50 5", "equation 3"),
        ("explain --html page.html", "page.html"),
        ("audit --help", "--epochs"),
    ],
)
def test_works_without_torch(arguments: str, expected: str, tmp_path: Path) -> None:
    done = without_torch(*arguments.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert expected in done.stdout


@pytest.mark.parametrize("arguments", ["bench", "run table3 --scale digits"])
def test_other_commands_name_the_extra_to_install(arguments: str, tmp_path: Path) -> None:
    done = without_torch(*arguments.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("which is not installed: pip install 'replenish[lab]'")
    assert "Traceback" not in done.stderr
