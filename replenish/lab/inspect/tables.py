"""The tables of `replenish inspect`: the closed forms of SRS beside what was measured.

A line is one declaration: its label, what the law says, and what is read from a measurement.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller

import numpy as np
import numpy.typing as npt

from replenish.diagnostics import PARTS_PER_EPOCH, Measurement, PoolMeasurement
from replenish.lab.inspect.noise import noise_table
from replenish.lab.inspect.results import Inspection
from replenish.lab.inspect.shuffle import shuffle_table
from replenish.lab.show import Column, Table

LONG_RUN = "~ long after the start; the first epochs differ a little"


@dataclass(frozen=True)
class Line:
    """A line of a table: what it is, what the closed form says, and how a measurement is read; "" for nothing."""

    label: str
    law: str
    read: Callable[[Measurement], str]


def tables(inspection: Inspection) -> tuple[Table, ...]:
    """Return all tables, as the terminal and the page show them."""
    first = (draws_table(inspection), class_table(inspection))
    noise = (noise_table(inspection.noise),) if inspection.noise else ()
    return (*first, *noise, *((shuffle_table(inspection.shuffles),) if inspection.shuffles else ()))


def draws_table(inspection: Inspection) -> Table:
    """Return what each order draws."""
    laws, epochs = inspection.laws, inspection.epochs
    in_all = "1 epoch" if epochs == 1 else f"{epochs} epochs"
    lines = [_unseen(epoch, laws.unseen[epoch - 1]) for epoch in told_epochs(epochs)]
    if epochs > 1:
        never = _percent(laws.never_seen[-1])
        lines.append(Line(f"unseen in all {epochs} epochs", never, lambda m: _percent(m.never_seen[-1])))
    lines += [
        Line(f"draws of a sample in epoch {epochs}", "", lambda m: _range((m.smallest[-1], m.largest[-1]))),
        Line(f"draws of a sample in {in_all}", "", lambda m: _range(m.counts)),
        Line(f"variance of the draws in {in_all}", f"{laws.count_spread:.3f}", lambda m: f"{m.count_spread[-1]:.3f}"),
        Line("mean gap between two draws of a sample", _gap(laws.gaps.mean, "~ "), lambda m: _gap(m.mean_gap)),
        Line("median gap", _gap(median_gap(laws.gaps.shares), "~ "), lambda m: _gap(median_gap(m.gaps))),
        Line("gaps of a single step", _share(laws.gaps.repeats, "~ "), lambda m: _share(m.repeats)),
        Line("equal pairs in a batch", f"{laws.equal_pairs:.4f}", lambda m: f"{m.equal_pairs:.4f}"),
        Line("samples without a copy in the pool", _percent(laws.without_copy), _of_pool(_without_copy)),
        Line("most copies of a sample in the pool", "", _of_pool(lambda pool: str(len(pool.copies) - 1))),
        Line("variance of the copies in the pool", f"{laws.copy_spread:.3f}", _of_pool(_copy_spread)),
        Line("mean age of a slot's content", _gap(laws.mean_age), _of_pool(lambda pool: _gap(pool.mean_age))),
    ]
    columns = _columns("SRS, closed form", inspection.found)
    return Table("draws", "What is drawn", columns, [(line.label, line) for line in lines], LONG_RUN)


def class_table(inspection: Inspection) -> Table:
    """Return how the classes of a sorted dataset are spread."""
    laws, found = inspection.laws, dict(inspection.found)
    every = {"SRS identity": inspection.identity, "SRS shuffled": found.pop("SRS"), **found}
    lines = [
        Line(
            "mean square of class counts in a batch; 1 = good shuffle",
            _number(laws.class_spread),
            lambda m: "" if m.classes is None else _number(m.classes.spread),
        ),
        Line(
            "rate of the first class over an epoch; 1 = even",
            lowest_to_highest(laws.class_rates),
            lambda m: "" if m.classes is None else lowest_to_highest(m.classes.rates[:, 0]),
        ),
    ]
    title = f"If the data are sorted in {inspection.classes} equal classes"
    note = "Identity is measured from a step on at which its pool has settled."
    columns = _columns("SRS identity, closed form", every)
    return Table("classes-table", title, columns, [(line.label, line) for line in lines], note)


def _columns(law: str, measured: Mapping[str, Measurement]) -> list[Column]:
    columns = [Column("", lambda line: line.label, numeric=False), Column(law, lambda line: line.law)]
    return columns + [Column(order, methodcaller("read", found)) for order, found in measured.items()]


def _unseen(epoch: int, law: float) -> Line:
    return Line(f"unseen in epoch {epoch}", _percent(law), lambda found: _percent(found.unseen[epoch - 1]))


def told_epochs(epochs: int) -> list[int]:
    """Return the epochs that a short table tells of: 1, 2, 5, 10, 20, ... and the last.

    Example:
        >>> told_epochs(12)
        [1, 2, 5, 10, 12]
    """
    series = {digit * 10**power for power in range(len(str(epochs))) for digit in (1, 2, 5)}
    return sorted({epoch for epoch in series if epoch < epochs} | {epochs})


def median_gap(histogram: npt.ArrayLike) -> float:
    """Return the median in effective epochs of gaps counted by parts of an epoch; nan where there are none.

    Example:
        >>> median_gap([0] * 19 + [3, 3])
        1.0
    """
    below = np.cumsum(np.asarray(histogram, dtype=np.float64))
    if not below[-1] > 0:
        return math.nan
    part = int(np.searchsorted(below, below[-1] / 2))
    before = below[part - 1] if part else 0.0
    return float(part + (below[-1] / 2 - before) / (below[part] - before)) / PARTS_PER_EPOCH


def lowest_to_highest(rates: npt.NDArray[np.float64]) -> str:
    """Return the range of the rates that are known, in words."""
    known = rates[~np.isnan(rates)]
    return f"{known.min():.2f} to {known.max():.2f}"


def _of_pool(read: Callable[[PoolMeasurement], str]) -> Callable[[Measurement], str]:
    """Return what is read from the pool; "" for orders without one."""
    return lambda found: "" if found.pool is None else read(found.pool)


def _without_copy(pool: PoolMeasurement) -> str:
    return _percent(pool.copies[0] / pool.copies.sum())


def _copy_spread(pool: PoolMeasurement) -> str:
    copies, samples = np.arange(len(pool.copies)), pool.copies.sum()
    return f"{pool.copies @ (copies - pool.copies @ copies / samples) ** 2 / samples:.3f}"


def _percent(part: float) -> str:
    # Two digits after the point would call a sample in a million none.
    return f"{100 * part:.1g} %" if 1e-9 < part < 5e-5 else f"{100 * part:.2f} %"


def _share(part: float, mark: str = "") -> str:
    return "" if math.isnan(part) else f"{mark}{100 * part:.3f} %"


def _gap(epochs: float, mark: str = "") -> str:
    return "" if math.isnan(epochs) else f"{mark}{epochs:.3f} epochs"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _range(values: npt.ArrayLike) -> str:
    least, most = np.min(values), np.max(values)
    return str(least) if least == most else f"{least} to {most}"
