"""The example scripts of streams run, each with the package that it shows; each checks itself as it goes."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from torch.utils.data import DataLoader

from replenish.torch import PooledIterableDataset

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


def in_workers(source: Any, key: str, label: str) -> list[tuple[Any, int]]:
    dataset = PooledIterableDataset(source, batch_size=32, pool_size=100, repeat=False, num_workers=2)
    loader = DataLoader(dataset, batch_size=None, num_workers=2)
    return sorted((item[key], item[label]) for batch in loader for item in batch)


def test_webdataset(tmp_path: Path) -> None:
    pytest.importorskip("webdataset", reason="the example of .tar shards needs webdataset: pip install webdataset")
    assert "1200 samples in 38 batches; resumed" in run("stream_webdataset.py", tmp_path)


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the example of Parquet files needs datasets: pip install datasets")
    assert "resumed from" in run("stream_parquet.py", tmp_path)


# What these packages do at import and on leaving files is not ours to judge.
@pytest.mark.filterwarnings("ignore")
def test_webdataset_in_workers(tmp_path: Path) -> None:
    pytest.importorskip("webdataset", reason="the example of .tar shards needs webdataset: pip install webdataset")
    example = runpy.run_path(str(EXAMPLES / "stream_webdataset.py"))
    example["write_shards"](tmp_path, 4)
    found = in_workers(example["shards"](tmp_path), "__key__", "cls")
    assert [label for _, label in found] == [0] * 200 + [1] * 200 + [2] * 200 + [3] * 200


@pytest.mark.filterwarnings("ignore")
def test_parquet_in_workers(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the example of Parquet files needs datasets: pip install datasets")
    example = runpy.run_path(str(EXAMPLES / "stream_parquet.py"))
    source = example["shards"](example["write_files"](tmp_path, 4, 50))
    assert in_workers(source, "id", "label") == [(number, number // 50) for number in range(200)]
