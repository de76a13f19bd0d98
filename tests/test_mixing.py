"""Diagnostics for choosing the pool: the law of residence, and measured mixing between its two extremes."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from replenish import theory
from replenish.diagnostics import Mixing, measure_mixing, plot_mixing, residence_quantile
from replenish.stream import PooledStream

SORTED = np.repeat(np.arange(10), 400)


@pytest.mark.parametrize(("pool_size", "batch_size"), [(100, 1), (100, 7), (10_000, 64), (8, 8), (9, 8)])
@pytest.mark.parametrize("probability", [0.01, 0.5, 0.9, 0.99, 0.999])
def test_residence_quantile_is_that_of_the_law(pool_size: int, batch_size: int, probability: float) -> None:
    steps = residence_quantile(pool_size, batch_size, probability)
    law = theory.residence_probability(pool_size, batch_size, np.arange(1, steps + 1))
    assert law.sum() >= probability - 1e-9
    assert law[:-1].sum() < probability


def test_mixing_lies_between_its_extremes_and_grows_with_the_pool() -> None:
    found = measure_mixing(SORTED, 20, [20, 100, 400, 1600, 4000, 40_000], epochs=10)
    excess = [row.excess for row in found]
    assert excess == sorted(excess, reverse=True)
    assert excess[0] > 0.9
    assert abs(excess[-1]) < 0.05
    assert [row.labels for row in found] == sorted(row.labels for row in found)
    assert found[-1].labels == pytest.approx(found[-1].shuffled_labels, rel=0.02)
    assert found[0].unmixed_distance == pytest.approx(0.9)
    assert [row.mean_stay for row in found][:2] == [1.0, 5.0]


def test_it_measures_what_the_stream_gives() -> None:
    (row,) = measure_mixing(SORTED, 20, [300], seed=4)
    stream = PooledStream(SORTED, batch_size=20, pool_size=300, seed=4)
    batches = list(islice(stream, row.stay_99, row.stay_99 + 200))
    assert row.labels == pytest.approx(np.mean([len(set(batch)) for batch in batches]))


def test_labels_may_be_strings_or_one_alone() -> None:
    (words,) = measure_mixing(["a"] * 50 + ["b"] * 50, 5, [10])
    (numbers,) = measure_mixing([0] * 50 + [1] * 50, 5, [10])
    assert words == numbers
    (one,) = measure_mixing([3] * 20, 5, [10])
    assert one.excess == 0
    assert measure_mixing([0, 1, 2], 5, [10])[0].pool_size == 10  # a source shorter than the batch


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (([], 5, [10]), ValueError, "labels should be a list of at least one label"),
        (([[1, 2]], 5, [10]), ValueError, "labels should be a list"),
        (([0.5, 1.5], 5, [10]), TypeError, "labels should be integers or strings, but got float64"),
        (([0, 1], 5, []), ValueError, "pool_sizes should have at least one size"),
        (([0, 1], 5, [True]), TypeError, "each of pool_sizes should be an int"),
        (([0, 1], 5, 20), TypeError, r"pool_sizes should be a list of pool sizes, but got 20; give \[20\]"),
        (([0, 1], 5, [4]), ValueError, "batch_size should be at most pool_size"),
        (([0, 1], 0, [4]), ValueError, "batch_size should be at least 1"),
    ],
)
def test_bad_input(arguments: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        measure_mixing(*arguments)


def test_plot(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the plot needs matplotlib; the numbers do not")
    found = measure_mixing(SORTED, 20, [400, 20, 4000])
    figure = plot_mixing(found)
    left, right = figure.axes
    assert list(left.lines[0].get_xdata()) == [20, 400, 4000]
    assert list(right.lines[0].get_ydata()) == [row.distance for row in sorted(found)]
    assert right.lines[1].get_ydata()[0] == found[0].shuffled_distance
    assert list(chain(left.get_xlabel(), right.get_xlabel()))
    figure.savefig(tmp_path / "mixing.png")
    assert (tmp_path / "mixing.png").stat().st_size > 1000
    with pytest.raises(ValueError, match="measured should be what measure_mixing returned"):
        plot_mixing([])


def test_only_the_plot_needs_matplotlib() -> None:
    code = """
import sys
sys.modules["matplotlib"] = None
from replenish import diagnostics as mixing
rows = mixing.measure_mixing([0] * 20 + [1] * 20, 4, [8])
assert isinstance(rows[0], mixing.Mixing) and "torch" not in sys.modules
mixing.plot_mixing(rows)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "plot_mixing needs matplotlib: pip install matplotlib" in done.stderr
    assert Mixing._fields[0] == "pool_size"
