"""The command as a user runs it."""

from __future__ import annotations

import subprocess
import sys

import pytest

import replenish


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish.cli", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_version_and_help() -> None:
    assert run("--version").stdout.strip() == replenish.__version__
    for arguments in ((), ("--help",), ("list",), ("data", "--help")):
        assert "Usage: replenish" in (run(*arguments).stdout + run(*arguments).stderr)


def test_list_models() -> None:
    shown = run("list", "models")
    assert shown.returncode == 0
    assert "wrn-70-10" in shown.stdout
    assert "differs: we count 104.2M or 104.3M" in shown.stdout
    assert run("list", "models", "--markdown").stdout.startswith("| name |")


@pytest.mark.parametrize(
    "arguments", [("lst",), ("list", "model"), ("data", "get"), ("data", "get", "mnist"), ("--what",)]
)
def test_bad_input_is_exit_code_2_without_a_traceback(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr


def test_without_the_labs_packages() -> None:
    blocked = 'import sys; sys.modules["typer"] = None\nimport replenish.cli\n'
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.strip() == "replenish: the command needs the lab's packages: pip install 'replenish[lab]'"
