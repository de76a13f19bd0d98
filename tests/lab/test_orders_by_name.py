"""Every registered order by its name in `exec`, `inspect` and `compare`, with arrays from files."""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from contracts import facts
from torch.utils.data import DataLoader
from typer.core import TyperCommand

from replenish.cli.exec import exec_
from replenish.exec import hook
from replenish.exec.environment import FIRST_PROCESS, VARIABLE
from replenish.lab.config import RunConfig
from replenish.lab.data import Batches, load
from replenish.lab.data.dataset import Dataset
from replenish.lab.inspect import inspect_orders
from replenish.lab.inspect.page import page
from replenish.lab.inspect.tables import tables
from replenish.orders import ORDERS

SAMPLES, SIZE = 97, 8  # the sizes of `facts`
NAMES = list(ORDERS)
OF_ONE_SIZE = [name for name in NAMES if not ORDERS[name].batch_sizes_vary]


@pytest.fixture
def exec_in_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Yield a function that runs `replenish exec`, and draws from a loader where the script would start."""
    (tmp_path / "script.py").touch()
    monkeypatch.chdir(tmp_path)

    def run(name: str, *options: str, num_samples: int = SAMPLES) -> list[list[int]]:
        request: dict[str, str] = {}
        monkeypatch.setattr("os.execve", lambda program, words, environment: request.update(environment))
        with monkeypatch.context() as during:
            during.setattr("subprocess.run", lambda words, **rest: type("Done", (), {"returncode": 0}))
            with pytest.raises(typer.Exit) as ended:
                exec_(typer.Context(TyperCommand("exec")), ["script.py"], order=name, option=list(options))
        assert ended.value.exit_code == (0 if request else 2)
        if not request:
            return []
        monkeypatch.setenv(VARIABLE, request[VARIABLE])
        monkeypatch.setenv(FIRST_PROCESS, str(os.getpid()))  # `sitecustomize.py` sets it when the script begins
        monkeypatch.chdir("/")  # a script may do this too
        hook.forget()
        loader = DataLoader(range(num_samples), SIZE, shuffle=True, collate_fn=list)
        hook.seen(loader)
        return list(loader)

    yield run
    hook.forget()


def given(name: str, folder: Path) -> list[str]:
    """Return the options that an order requires, with arrays in files."""
    words = []
    for need, value in facts(name).items():
        if isinstance(value, list):
            np.save(folder / f"{need}.npy", value)
            value = f"{need}.npy"
        words.append(f"{need}={value}")
    return words


@pytest.mark.parametrize("name", OF_ONE_SIZE)
def test_exec(name: str, tmp_path: Path, exec_in_process: Any) -> None:
    batches = exec_in_process(name, *given(name, tmp_path))
    assert [len(batch) for batch in batches] == [SIZE] * 12 + [1]
    assert {index for batch in batches for index in batch} <= set(range(SAMPLES))


@pytest.mark.parametrize("name", [name for name in NAMES if name not in OF_ONE_SIZE])
def test_exec_refuses_random_sizes(name: str, exec_in_process: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert exec_in_process(name) == []
    assert f"those of '{name}' have random ones" in capsys.readouterr().err


def test_exec_refuses_wrong_arrays(tmp_path: Path, exec_in_process: Any, capsys: pytest.CaptureFixture[str]) -> None:
    def refusal(*options: str, **sizes: int) -> str:
        with contextlib.suppress(SystemExit):
            assert exec_in_process("stratified", *options, **sizes) == []
        error = capsys.readouterr().err.strip()
        assert len(error.splitlines()) == 1, error
        return error

    assert refusal() == "replenish: labels should be given for the order 'stratified', which needs it, but got none"
    assert refusal("labels=nowhere.npy") == "replenish: nowhere.npy cannot be used: No such file or directory"
    (tmp_path / "empty.npy").touch()
    np.save(tmp_path / "objects.npy", np.array([{}]), allow_pickle=True)
    for name in ("empty", "objects"):
        assert refusal(f"labels={name}.npy").endswith(f"should name a file of one array of numbers, but got {name}.npy")
    words = given("stratified", tmp_path)
    assert "labels should have one entry for each of the 50 samples, but got an array of" in refusal(
        *words, num_samples=50
    )


@pytest.mark.parametrize("name", [name for name in NAMES if ORDERS[name].needs or name in ("poisson", "flip-flop")])
def test_inspect(name: str) -> None:
    inspection = inspect_orders(SAMPLES, SIZE, epochs=4, other=name, options=facts(name))
    draws, _, noise, shuffles = tables(inspection)
    assert {table.columns[-1].title for table in (draws, noise, shuffles)} == {name}
    cells = [row[name] for row in noise.records]
    assert all(re.fullmatch(r"(no gaps|\d+\.\d+( %)?) \((no law|\d+\.\d+( %)?)\)", cell) for cell in cells), cells
    assert f"reshuffling, replacement and {name}" in page(inspection, ["replenish", "inspect"])


def test_bad_input_of_inspect() -> None:
    for other, options, sentence in (
        ("srs", {}, "order should be one that is not measured anyway, but got 'srs'"),
        (None, {"block_size": 3}, "option block_size should come with an order that has it, but got none"),
        ("sorted", {}, "order should be one of srs, "),
        ("stratified", {}, "labels should be given for the order 'stratified'"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}"):
            inspect_orders(SAMPLES, SIZE, other=other, options=options)


@pytest.fixture(scope="module")
def digits() -> Dataset:
    return load("digits", images_per_class=12)


@pytest.mark.parametrize("name", OF_ONE_SIZE)
def test_compare(name: str, digits: Dataset) -> None:
    config = RunConfig(dataset="digits", order=name, batch_size=24)
    assert json.loads(json.dumps(config.to_dict()))["order"] == name
    if missing := [need for need in ORDERS[name].needs if need != "labels"]:
        with pytest.raises(ValueError, match=f"^{missing[0]} should be given for the order '{name}'"):
            config.build_order(120, digits.train_labels)
        return
    batches = list(Batches(config.build_order(120, digits.train_labels), digits).batches(0, 5))
    assert [len(labels) for _, labels in batches] == [24] * 5
