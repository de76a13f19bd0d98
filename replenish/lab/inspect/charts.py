"""The charts of an inspection, as data: a page and a picture draw the same ones."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from replenish.diagnostics import PARTS_PER_EPOCH
from replenish.lab.inspect.independent_copies import part_edges
from replenish.lab.inspect.noise import noise_figure
from replenish.lab.inspect.results import Inspection
from replenish.lab.inspect.shuffle import shuffle_figure
from replenish.lab.inspect.tables import lowest_to_highest
from replenish.lab.show import Chart, Figure, Reference, Series

# Gaps beyond are rare, and would press the others together.
_LONGEST_GAP_SHOWN = 4
#: SRS with data sorted by class, refilled in their own order: told apart from the default by dashes.
IDENTITY = "SRS, identity"


def figures(inspection: Inspection) -> tuple[Figure, ...]:
    """Return all of them, a chart each."""
    first = (_coverage(inspection), _counts(inspection), _gaps(inspection), _classes(inspection))
    noise = (noise_figure(inspection.noise),) if inspection.noise else ()
    return (*first, *noise, *((shuffle_figure(inspection.shuffles),) if inspection.shuffles else ()))


def _values(values: Iterable[float]) -> list[float | None]:
    """Return plain numbers, and None for what is not a number."""
    return [None if np.isnan(value) else float(value) for value in values]


def _coverage(inspection: Inspection) -> Figure:
    laws, found, epochs = inspection.laws, inspection.found, range(1, inspection.epochs + 1)
    series = [Series(name, epochs, _values(100 * each.unseen), order=name) for name, each in found.items()]
    series += [
        Series(f"{name}, in no epoch so far", epochs, _values(100 * each.never_seen), like=name, thin=True)
        for name, each in found.items()
        if name != "reshuffling"  # it is 0, as the line above
    ]
    series.append(Series("SRS, closed form", epochs, _values(100 * laws.unseen), kind="law"))
    unseen = {name: 100 * float(each.unseen[-1]) for name, each in found.items()}
    never = {name: 100 * float(each.never_seen[-1]) for name, each in found.items()}
    long_run = 100 * laws.unseen_in_the_long_run
    chart = Chart(
        "coverage",
        "effective epoch",
        "samples not drawn, %",
        tuple(series),
        (Reference(long_run, f"{long_run:.1f} %: the limit of small steps"),),
        whole=True,
    )
    caption = (
        f"The last epoch leaves {unseen['SRS']:.1f} % of the samples out with SRS, {unseen['replacement']:.1f} % "
        f"with replacement. What one epoch leaves out a later one has: the thin lines, of samples not drawn in any "
        f"epoch so far, end at {never['SRS']:.2g} % and {never['replacement']:.2g} %."
    )
    return Figure("coverage", "Coverage over time", caption, (chart,))


def _counts(inspection: Inspection) -> Figure:
    spread = {name: float(each.count_spread[-1]) for name, each in inspection.found.items()}
    series = []
    for name, each in inspection.found.items():
        shares = np.bincount(each.counts) / len(each.counts)
        least, most = int(each.counts.min()), int(each.counts.max())
        series.append(Series(name, range(least, most + 1), _values(100 * shares[least:]), order=name))
    law = inspection.laws.counts
    kept = np.flatnonzero(law > 1e-5)
    drawn = range(int(kept[0]), int(kept[-1]) + 1)
    series.append(Series("SRS, closed form", drawn, _values(100 * law[kept[0] : kept[-1] + 1]), kind="law"))
    label = f"draws in {inspection.epochs} effective epochs"
    chart = Chart("counts", label, "samples, %", tuple(series), whole=True)
    caption = (
        f"The counts of SRS stay together (variance {spread['SRS']:.2f}), however long it runs, for the sequence "
        f"refills on schedule; those of replacement drift apart (variance {spread['replacement']:.2f}), further "
        f"with every epoch."
    )
    return Figure("counts", "How often a sample is drawn", caption, (chart,))


def _gaps(inspection: Inspection) -> Figure:
    number = PARTS_PER_EPOCH * min(inspection.epochs, _LONGEST_GAP_SHOWN)
    x = (np.arange(number) / PARTS_PER_EPOCH).tolist()
    # Parts that have a step more or less than others must not look like more gaps or fewer.
    edges = np.maximum(part_edges(inspection.order.steps_per_epoch, inspection.epochs), 1)
    steps = np.diff(edges)[:number].astype(np.float64)
    steps[steps == 0] = np.nan
    scale = 100 * inspection.order.steps_per_epoch / PARTS_PER_EPOCH / steps
    series = [
        Series(name, x, _values(scale * each.gaps[:number] / max(each.gaps.sum(), 1)), kind="steps", order=name)
        for name, each in inspection.found.items()
    ]
    law = _values(scale * inspection.laws.gaps.shares[:number])
    series.append(Series("SRS, closed form", x, law, kind="law"))
    for name, one in inspection.noise.items():
        if name != "SRS" and one.gap_law is not None:
            shares = one.gap_law.probabilities((edges[: number + 1] - 1) * one.order.batch_size / one.order.num_samples)
            series.append(Series(f"{name}, closed form", x, _values(scale * shares), kind="law"))
    label = f"gaps, % per 1/{PARTS_PER_EPOCH} of an epoch"
    caption = (
        "Reshuffling peaks at one epoch and never waits for two; replacement forgets what it drew, so the shortest "
        "gap is the likeliest. SRS lies between them: nearer to the first with a small pool, to the second with "
        "a large one."
    )
    chart = Chart("gaps", "gap in effective epochs", label, tuple(series))
    return Figure("gaps", "Gap between two draws of one sample", caption, (chart,))


def _classes(inspection: Inspection) -> Figure:
    identity, shuffled = inspection.first_class
    x, (high, low) = (np.arange(PARTS_PER_EPOCH) / PARTS_PER_EPOCH).tolist(), inspection.laws.swing
    # A small pool swings far more than a class that is not a single sample can follow.
    levels = [Reference(low, f"{low:.2f}: a sample just before its refill")]
    if high < 1.5 * float(np.nanmax(identity)):
        levels.append(Reference(high, f"{high:.2f}: a sample just refilled"))
    series = (
        Series("SRS, shuffled", x, _values(shuffled), kind="steps", order="srs"),
        Series(IDENTITY, x, _values(identity), kind="steps", order="srs"),
        Series("identity, closed form", x, _values(inspection.laws.class_rates), kind="law"),
    )
    label = "rate of the first class; 1 is its share"
    caption = (
        f"Data sorted in {inspection.classes} classes and refilled in their own order (identity) have the first "
        f"class swing once an epoch, from {lowest_to_highest(identity)} times its share: most after "
        f"its turn in the sequence. With the default, a shuffled sequence, it is "
        f"{lowest_to_highest(shuffled)}."
    )
    chart = Chart("classes", "part of an effective epoch", label, series, tuple(levels))
    return Figure("classes", "Rate of a class over an epoch, sorted data", caption, (chart,))
