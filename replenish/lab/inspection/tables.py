"""The tables of `replenish inspect`, as text: the closed forms of SRS beside what was measured."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from replenish.diagnostics import PARTS_PER_EPOCH, Measurement
from replenish.lab.inspection.results import Inspection

LONG_RUN = "~ long after the start; the first epochs differ a little"


@dataclass(frozen=True)
class InspectionTable:
    """A table of cells that are to be shown as they are.

    Attributes:
        title: What it is about.
        columns: The heads of the columns after the first.
        rows: A label and a cell for each of the columns; an empty cell has nothing to say.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def draws_table(inspection: Inspection) -> InspectionTable:
    """Return what each order draws."""
    laws, epochs, found = inspection.laws, inspection.epochs, list(inspection.found.values())

    def row(label: str, law: str, cells: list[str]) -> tuple[str, ...]:
        return (label, law, *cells)

    rows = [
        row(
            f"unseen in epoch {epoch}",
            _percent(laws.unseen[epoch - 1]),
            [_percent(each.unseen[epoch - 1]) for each in found],
        )
        for epoch in told_epochs(epochs)
    ]
    if epochs > 1:
        rows.append(
            row(
                f"unseen in all {epochs} epochs",
                _percent(laws.never_seen[-1]),
                [_percent(each.never_seen[-1]) for each in found],
            )
        )
    law = laws.gaps
    rows += [
        row(
            f"draws of a sample in epoch {epochs}",
            "",
            [_range(int(each.smallest[-1]), int(each.largest[-1])) for each in found],
        ),
        row(
            f"draws of a sample in {_epochs(epochs)}",
            "",
            [_range(int(each.counts.min()), int(each.counts.max())) for each in found],
        ),
        row(
            f"variance of the draws in {_epochs(epochs)}",
            f"{laws.count_spread:.3f}",
            [f"{each.count_spread[-1]:.3f}" for each in found],
        ),
        row("mean gap between two draws of a sample", _gap(law.mean, "~ "), [_gap(each.mean_gap) for each in found]),
        row("median gap", _gap(median_gap(law.shares), "~ "), [_gap(median_gap(each.gaps)) for each in found]),
        row("gaps of a single step", _share(law.repeats, "~ "), [_share(each.repeats) for each in found]),
        row("equal pairs in a batch", f"{laws.equal_pairs:.4f}", [f"{each.equal_pairs:.4f}" for each in found]),
        *_pool_rows(inspection, found),
    ]
    return InspectionTable("What is drawn", ("SRS, closed form", *inspection.found), tuple(rows))


def class_table(inspection: Inspection) -> InspectionTable:
    """Return how the classes of a sorted dataset are spread."""
    laws = inspection.laws
    every = [inspection.identity, *inspection.found.values()]
    spreads, rates = [], []
    for each in every:
        assert each.classes is not None  # all were measured with labels
        spreads.append(_number(each.classes.spread))
        rates.append(lowest_to_highest(each.classes.rates[:, 0]))
    others = [name for name in inspection.found if name != "SRS"]
    return InspectionTable(
        f"If the data are sorted in {inspection.classes} equal classes",
        ("SRS identity, closed form", "SRS identity", "SRS shuffled", *others),
        (
            ("mean square of class counts in a batch; 1 = good shuffle", _number(laws.class_spread), *spreads),
            ("rate of the first class over an epoch; 1 = even", lowest_to_highest(laws.class_rates), *rates),
        ),
    )


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


def _pool_rows(inspection: Inspection, found: list[Measurement]) -> list[tuple[str, ...]]:
    laws, number = inspection.laws, inspection.order.num_samples
    mean = inspection.order.pool_size / number
    none, most, spread, age = ([""] * len(found) for _ in range(4))  # empty for orders without a pool
    for place, pool in enumerate(each.pool for each in found):
        if pool is not None:
            copies = np.arange(len(pool.copies))
            none[place] = _percent(pool.copies[0] / number)
            most[place] = str(copies[-1])
            spread[place] = f"{pool.copies @ (copies - mean) ** 2 / number:.3f}"
            age[place] = _gap(pool.mean_age)
    return [
        ("samples without a copy in the pool", _percent(laws.without_copy), *none),
        ("most copies of a sample in the pool", "", *most),
        ("variance of the copies in the pool", f"{laws.copy_spread:.3f}", *spread),
        ("mean age of a slot's content", _gap(laws.mean_age), *age),
    ]


def _percent(part: float) -> str:
    # Two digits after the point would call a sample in a million none.
    return f"{100 * part:.1g} %" if 1e-9 < part < 5e-5 else f"{100 * part:.2f} %"


def _share(part: float, mark: str = "") -> str:
    return "" if math.isnan(part) else f"{mark}{100 * part:.3f} %"


def _gap(epochs: float, mark: str = "") -> str:
    return "" if math.isnan(epochs) else f"{mark}{epochs:.3f} epochs"


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2f}"


def _range(least: int, most: int) -> str:
    return str(least) if least == most else f"{least} to {most}"


def _epochs(number: int) -> str:
    return "1 epoch" if number == 1 else f"{number} epochs"
