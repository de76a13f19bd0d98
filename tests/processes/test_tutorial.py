"""The tutorial docs/start.md runs as printed: its files, its commands and their output."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_tutorial_runs_as_it_is_printed(tmp_path: Path) -> None:
    """Write its files, run its commands, and look for every line of its output."""
    words = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}
    page = (ROOT / "docs" / "start.md").read_text()
    for kind, block in re.findall(r"^```(python|console)\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE):
        if kind == "python":
            if block.startswith("# train.py\n"):
                # The block starts with this comment, so its line numbers are those of the page's file.
                (tmp_path / "train.py").write_text(block)
            continue
        if "exec" in block:  # the edit that the page describes
            script = (tmp_path / "train.py").read_text()
            (tmp_path / "train.py").write_text(script.replace("batch_size=50)", "batch_size=50, shuffle=True)"))
        command, *shown = block.splitlines()
        arguments = shlex.split(command.removeprefix("$ replenish "))
        done = subprocess.run(
            [sys.executable, "-m", "replenish", *arguments], cwd=tmp_path, env=words, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        for line in shown:
            assert line.rstrip() in done.stdout + done.stderr, f"{command} did not print: {line}"
