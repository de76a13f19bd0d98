"""The four charts of an inspection, as data: a page and a picture draw the same ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from replenish.diagnostics import PARTS_PER_EPOCH
from replenish.lab.inspection.independent_copies import Floats, part_edges
from replenish.lab.inspection.results import Inspection
from replenish.lab.inspection.tables import lowest_to_highest

# Gaps beyond are rare, and would press the others together.
_LONGEST_GAP_SHOWN = 4


@dataclass(frozen=True)
class Series:
    """One line of a chart.

    Attributes:
        name: For the legend.
        role: What it looks like: `srs`, `reshuffling`, `replacement`, `identity`, or `law` for a closed form.
        x: Where.
        y: How much; nan where there is nothing.
        fine: Whether it is a secondary line, to be drawn thinner.
    """

    name: str
    role: str
    x: Floats
    y: Floats
    fine: bool = False

    def known(self) -> Iterator[tuple[float, float]]:
        """Yield (x, y) where there is a value."""
        for at, value in zip(self.x.tolist(), self.y.tolist(), strict=True):
            if not math.isnan(value):
                yield at, value


@dataclass(frozen=True)
class Chart:
    """One chart.

    Attributes:
        name: A short name without spaces.
        title: What it shows.
        caption: What there is to see, in a sentence or two.
        x_label: What is along.
        y_label: What is up, with its unit.
        series: The lines.
        levels: Heights that a dotted line marks, with what they are.
        steps: Whether a value holds for a part along rather than at a point; `x` is then where the part begins.
        whole: Whether only whole numbers make sense along.
    """

    name: str
    title: str
    caption: str
    x_label: str
    y_label: str
    series: tuple[Series, ...]
    levels: tuple[tuple[float, str], ...] = ()
    steps: bool = False
    whole: bool = False

    @property
    def part(self) -> float:
        """How much of the axis along a value stands for, where `steps` is true; otherwise 0."""
        return float(self.series[0].x[1] - self.series[0].x[0]) if self.steps else 0.0

    @property
    def x_range(self) -> tuple[float, float]:
        """From the first value to the end of the last; with some air where values are points."""
        first = min(float(series.x[0]) for series in self.series)
        last = max(float(series.x[-1]) for series in self.series) + self.part
        air = 0.0 if self.steps else (last - first) / 40 or 1.0
        return first - air, last + air

    @property
    def y_range(self) -> tuple[float, float]:
        """From 0 to a little more than the highest."""
        values = [value for series in self.series for _, value in series.known()]
        highest = max([*values, *(height for height, _ in self.levels)], default=0.0)
        return 0.0, 1.06 * highest if highest > 0 else 1.0

    def label_above(self, height: float) -> bool:
        """Say on which side of a level its label, at the right end, meets fewer of the lines."""
        (low, high), (_, top) = self.x_range, self.y_range
        near = [
            value - height
            for series in self.series
            for at, value in series.known()
            if at > (low + high) / 2 and abs(value - height) < top / 12
        ]
        below = sum(off <= 0 for off in near)
        return height < top / 10 or below > len(near) - below


def charts(inspection: Inspection) -> tuple[Chart, ...]:
    """Return all of them."""
    return _coverage(inspection), _counts(inspection), _gaps(inspection), _classes(inspection)


def _coverage(inspection: Inspection) -> Chart:
    laws, found, epochs = inspection.laws, inspection.found, np.arange(1.0, inspection.epochs + 1)
    series = [Series(name, _role(name), epochs, 100 * each.unseen) for name, each in found.items()]
    series += [
        Series(f"{name}, in no epoch so far", _role(name), epochs, 100 * each.never_seen, fine=True)
        for name, each in found.items()
        if name != "reshuffling"  # it is 0, as the line above
    ]
    series.append(Series("SRS, closed form", "law", epochs, 100 * laws.unseen))
    unseen = {name: 100 * float(each.unseen[-1]) for name, each in found.items()}
    never = {name: 100 * float(each.never_seen[-1]) for name, each in found.items()}
    long_run = 100 * laws.unseen_in_the_long_run
    return Chart(
        name="coverage",
        title="Coverage over time",
        caption=(
            f"The last epoch leaves {unseen['SRS']:.1f} % of the samples out with SRS, {unseen['replacement']:.1f} % "
            f"with replacement. What one epoch leaves out a later one has: the thin lines, of samples not drawn in any "
            f"epoch so far, end at {never['SRS']:.2g} % and {never['replacement']:.2g} %."
        ),
        x_label="effective epoch",
        y_label="samples not drawn, %",
        series=tuple(series),
        levels=((long_run, f"{long_run:.1f} %: the limit of small steps"),),
        whole=True,
    )


def _counts(inspection: Inspection) -> Chart:
    spread = {name: float(each.count_spread[-1]) for name, each in inspection.found.items()}
    series = []
    for name, each in inspection.found.items():
        shares = np.bincount(each.counts) / len(each.counts)
        least, most = int(each.counts.min()), int(each.counts.max())
        series.append(Series(name, _role(name), np.arange(least, most + 1.0), 100 * shares[least:]))
    law = inspection.laws.counts
    kept = np.flatnonzero(law > 1e-5)
    law_x = np.arange(kept[0], kept[-1] + 1)
    series.append(Series("SRS, closed form", "law", law_x.astype(np.float64), 100 * law[law_x]))
    return Chart(
        name="counts",
        title="How often a sample is drawn",
        caption=(
            f"The counts of SRS stay together (variance {spread['SRS']:.2f}), however long it runs, for the sequence "
            f"refills on schedule; those of replacement drift apart (variance {spread['replacement']:.2f}), further "
            f"with every epoch."
        ),
        x_label=f"draws in {inspection.epochs} effective epochs",
        y_label="samples, %",
        series=tuple(series),
        whole=True,
    )


def _gaps(inspection: Inspection) -> Chart:
    number = PARTS_PER_EPOCH * min(inspection.epochs, _LONGEST_GAP_SHOWN)
    x = np.arange(number) / PARTS_PER_EPOCH
    # Parts that have a step more or less than others must not look like more gaps or fewer.
    edges = np.maximum(part_edges(inspection.order.steps_per_epoch, inspection.epochs), 1)
    steps = np.diff(edges)[:number].astype(np.float64)
    steps[steps == 0] = np.nan
    scale = 100 * inspection.order.steps_per_epoch / PARTS_PER_EPOCH / steps
    series = [
        Series(name, _role(name), x, scale * each.gaps[:number] / max(each.gaps.sum(), 1))
        for name, each in inspection.found.items()
    ]
    series.append(Series("SRS, closed form", "law", x, scale * inspection.laws.gaps.shares[:number]))
    return Chart(
        name="gaps",
        title="Gap between two draws of one sample",
        caption=(
            "Reshuffling peaks at one epoch and never waits for two; replacement forgets what it drew, so the shortest "
            "gap is the likeliest. SRS lies between them: nearer to the first with a small pool, to the second with "
            "a large one."
        ),
        x_label="gap in effective epochs",
        y_label=f"gaps, % per 1/{PARTS_PER_EPOCH} of an epoch",
        series=tuple(series),
        steps=True,
    )


def _classes(inspection: Inspection) -> Chart:
    identity, shuffled = inspection.identity.classes, inspection.found["SRS"].classes
    assert identity is not None  # both were measured with labels
    assert shuffled is not None
    x, (high, low) = np.arange(PARTS_PER_EPOCH) / PARTS_PER_EPOCH, inspection.laws.swing
    # A small pool swings far more than a class that is not a single sample can follow.
    levels = [(low, f"{low:.2f}: a sample just before its refill")]
    if high < 1.5 * float(np.nanmax(identity.rates[:, 0])):
        levels.append((high, f"{high:.2f}: a sample just refilled"))
    return Chart(
        name="classes",
        title="Rate of a class over an epoch, sorted data",
        caption=(
            f"Data sorted in {inspection.classes} classes and refilled in their own order (identity) have the first "
            f"class swing once an epoch, from {lowest_to_highest(identity.rates[:, 0])} times its share: most after "
            f"its turn in the sequence. With the default, a shuffled sequence, it is "
            f"{lowest_to_highest(shuffled.rates[:, 0])}."
        ),
        x_label="part of an effective epoch",
        y_label="rate of the first class; 1 is its share",
        series=(
            Series("SRS, identity", "identity", x, identity.rates[:, 0]),
            Series("SRS, shuffled", "srs", x, shuffled.rates[:, 0]),
            Series("identity, closed form", "law", x, inspection.laws.class_rates),
        ),
        levels=tuple(levels),
        steps=True,
    )


def _role(name: str) -> str:
    return name.lower()
