"""The example scripts of streams run, each with the package that it shows; each checks itself as it goes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generator(tmp_path: Path) -> None:
    assert "resumed with 100 items in the state" in run("stream_generator.py", tmp_path)


def test_text(tmp_path: Path) -> None:
    assert "200,000 lines found" in run("stream_text.py", tmp_path, "--lines", "200000")
    path = tmp_path / "own.txt"
    path.write_text("one\ntwo\nthree")
    assert "3 lines found" in run("stream_text.py", tmp_path, "--file", str(path))


def test_webdataset(tmp_path: Path) -> None:
    pytest.importorskip("webdataset", reason="the example of .tar shards needs webdataset: pip install webdataset")
    assert "1200 samples in 38 batches; resumed" in run("stream_webdataset.py", tmp_path)


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the example of Parquet files needs datasets: pip install datasets")
    assert "resumed from" in run("stream_parquet.py", tmp_path)
