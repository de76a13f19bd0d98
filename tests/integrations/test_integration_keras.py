"""Keras 3 on its torch backend: items are a pure function; test_resume.py has what `fit` sees."""

from __future__ import annotations

import doctest
import os
import sys
from typing import Any

import pytest

os.environ.setdefault("KERAS_BACKEND", "torch")
pytest.importorskip("keras", minversion="3.0", reason="needs Keras 3: pip install 'replenish[keras]'")

import numpy as np
from integration_support import GOLDEN_FIRST, GOLDEN_MILLIONTH, MILLION, golden_order, stream

from replenish.integrations.keras import OrderDataset, SRSDataset

INPUTS = np.arange(1000, dtype="float32")


def dataset(**options: Any) -> SRSDataset:
    return SRSDataset((INPUTS, INPUTS), 40, seed=3, **options)


def test_golden_vector() -> None:
    data = OrderDataset((np.arange(10),), golden_order(), start=0)
    assert [data[step][0].tolist() for step in range(3)] == GOLDEN_FIRST
    assert data[MILLION][0].tolist() == GOLDEN_MILLIONTH
    assert SRSDataset((np.arange(10),), 4, seed=3, start=MILLION)[0][0].tolist() == GOLDEN_MILLIONTH


def test_items_are_pure() -> None:
    data = dataset(start=0)
    expected = stream(0, 300)
    for step in np.random.default_rng(0).integers(0, 300, 100).tolist():
        assert data[step][0].astype(int).tolist() == expected[step]
    assert data.num_batches is None
    assert data.steps_per_epoch == 25


def test_a_function_of_indices() -> None:
    data = OrderDataset(lambda indices: (INPUTS[indices], -INPUTS[indices]), golden_order(), start=0)
    inputs, targets = data[MILLION]
    assert inputs.astype(int).tolist() == GOLDEN_MILLIONTH
    assert (targets == -inputs).all()


def test_what_cannot_work_says_so() -> None:
    with pytest.raises(ValueError, match="workers should be at most 1"):
        dataset(workers=2)
    with pytest.raises(ValueError, match="workers should be at most 1"):
        dataset(use_multiprocessing=True)
    with pytest.raises(
        ValueError, match="data should be arrays of 10 rows, the samples of the order, but got one of 9"
    ):
        OrderDataset((np.arange(10), np.arange(9)), golden_order())
    with pytest.raises(ValueError, match="start should be at least 0, but got -1"):
        dataset(start=-1)


def test_docstrings() -> None:
    assert doctest.testmod(sys.modules[SRSDataset.__module__]).failed == 0
