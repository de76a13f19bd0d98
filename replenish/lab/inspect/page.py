"""An inspection as a page: charts, tables, and the command that repeats it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from replenish import __version__
from replenish.diagnostics import PARTS_PER_EPOCH
from replenish.lab.inspect.results import COMPARED, Inspection, OrderNoise
from replenish.lab.inspect.tables import lowest_to_highest, tables
from replenish.lab.show import Chart, Figure, Page, Reference, Section, Series
from replenish.lab.show.page import page_html

# Longer gaps are rare, and would squeeze the others.
_LONGEST_GAP_SHOWN = 4


def page(inspection: Inspection, command: str) -> str:
    """Return the page as HTML that needs no other file. The command repeats the inspection."""
    order = inspection.order
    others = [name for name in inspection.found if name not in ("SRS", *COMPARED)]
    *first, last = [*COMPARED, *others]
    again = (
        f"replenish {__version__}; seed {order.seed}; random stream {order.config()['stream']}. "
        "The same command draws the same."
    )
    return page_html(
        Page(
            title=f"What sequenced replacement draws: N = {order.num_samples:,}, B = {order.batch_size:,}",
            lead=(
                f"{_number(order.num_samples, 'sample')}, {order.batch_size:,} per step, from a pool of "
                f"{_number(order.pool_size, 'slot')}: {_number(inspection.epochs, 'effective epoch')} of SRS, beside "
                f"its closed forms and beside {', '.join(first)} and {last}."
            ),
            kicker="Replenish · inspect",
            facts=(),
            sections=(
                Section("charts", "What it looks like", blocks=figures(inspection)),
                Section("tables", "In numbers", blocks=tables(inspection)),
                Section("again", "To make this page again", (again,), code=command),
            ),
        )
    )


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


# ---- The charts ----


def figures(inspection: Inspection) -> tuple[Figure, ...]:
    """Return all figures, of one chart each."""
    found = [_coverage(inspection), _counts(inspection), _classes(inspection)]
    found += [_gaps(inspection.noise, inspection.epochs), _noise(inspection.noise)] if inspection.noise else []
    return tuple(found)


def _values(values: Iterable[float]) -> list[float | None]:
    """Return plain numbers, with None for NaN."""
    return [None if np.isnan(value) else float(value) for value in values]


def _coverage(inspection: Inspection) -> Figure:
    laws, found, epochs = inspection.laws, inspection.found, range(1, inspection.epochs + 1)
    series = [Series(name, epochs, _values(100 * each.unseen), order=name) for name, each in found.items()]
    series += [
        Series(f"{name}, in no epoch so far", epochs, _values(100 * each.never_seen), like=name, thin=True)
        for name, each in found.items()
        if name != "reshuffling"  # it is 0, like the line before
    ]
    unseen = {name: 100 * float(each.unseen[-1]) for name, each in found.items()}
    never = {name: 100 * float(each.never_seen[-1]) for name, each in found.items()}
    chart = Chart(
        "coverage",
        "effective epoch",
        "samples not drawn, %",
        tuple(series),
        (Reference(100 * laws.unseen, f"{100 * laws.unseen:.1f} %: SRS, limit of small steps"),),
        whole=True,
    )
    caption = (
        f"The last epoch leaves out {unseen['SRS']:.1f} % of the samples with SRS, {unseen['replacement']:.1f} % with "
        f"replacement. Later epochs have what one epoch leaves out: the thin lines, of samples not drawn in any epoch "
        f"so far, end at {never['SRS']:.2g} % and {never['replacement']:.2g} %."
    )
    return Figure("coverage", "Coverage over time", caption, (chart,))


def _counts(inspection: Inspection) -> Figure:
    spread = {name: float(each.count_spread[-1]) for name, each in inspection.found.items()}
    series = []
    for name, each in inspection.found.items():
        shares = np.bincount(each.counts) / len(each.counts)
        least, most = int(each.counts.min()), int(each.counts.max())
        series.append(Series(name, range(least, most + 1), _values(100 * shares[least:]), order=name))
    label = f"draws in {inspection.epochs} effective epochs"
    chart = Chart("counts", label, "samples, %", tuple(series), whole=True)
    caption = (
        f"The counts of SRS stay together (variance {spread['SRS']:.2f}), however long it runs, because the sequence "
        f"refills on schedule. Those of replacement drift apart (variance {spread['replacement']:.2f}), further with "
        f"every epoch."
    )
    return Figure("counts", "How often a sample is drawn", caption, (chart,))


def _classes(inspection: Inspection) -> Figure:
    identity, shuffled = inspection.first_class
    x, (high, low) = (np.arange(PARTS_PER_EPOCH) / PARTS_PER_EPOCH).tolist(), inspection.laws.swing
    # With a small pool a single sample swings far more than its class, and would squeeze the chart.
    levels = [Reference(low, f"{low:.2f}: a sample just before its refill")]
    if high < 1.5 * float(np.nanmax(identity)):
        levels.append(Reference(high, f"{high:.2f}: a sample just refilled"))
    series = (
        Series("SRS, shuffled", x, _values(shuffled), kind="steps", order="srs"),
        Series("SRS, identity", x, _values(identity), kind="steps", order="srs"),
        Series("identity, closed form", x, _values(inspection.laws.class_rates), kind="law"),
    )
    label = "rate of the first class; 1 is its share"
    caption = (
        f"If the data are sorted in {inspection.classes} classes and refilled in their own order (identity), the rate "
        f"of the first class swings once per epoch, from {lowest_to_highest(identity)} times its share: most after its "
        f"turn in the sequence. With the default, a shuffled sequence, it is {lowest_to_highest(shuffled)}."
    )
    chart = Chart("classes", "part of an effective epoch", label, series, tuple(levels))
    return Figure("classes", "Rate of a class over an epoch, sorted data", caption, (chart,))


def _gaps(noise: Mapping[str, OrderNoise], epochs: int) -> Figure:
    number = PARTS_PER_EPOCH * min(epochs, _LONGEST_GAP_SHOWN)
    x = (np.arange(number) / PARTS_PER_EPOCH).tolist()
    series, laws = [], []
    for name, one in noise.items():
        # Part i counts the gaps of more than edges[i] steps, up to edges[i + 1].
        edges = -(-np.arange(number + 1.0) * one.order.steps_per_epoch // PARTS_PER_EPOCH) - 1
        edges[0] = 0
        # Some parts have one step more than others, which must not look like more gaps.
        steps = np.diff(edges)
        steps[steps == 0] = np.nan
        scale = 100 * one.order.steps_per_epoch / PARTS_PER_EPOCH / steps
        at = edges * one.order.batch_size / one.order.num_samples
        series.append(Series(name, x, _values(-scale * np.diff(one.gaps.survival(at))), kind="steps", order=name))
        if one.gap_law is not None:
            laws.append(Series(f"{name}, closed form", x, _values(scale * one.gap_law.probabilities(at)), kind="law"))
    label = f"gaps, % per 1/{PARTS_PER_EPOCH} of an epoch"
    caption = (
        "Reshuffling peaks at one epoch and never waits for two. Replacement forgets what it drew, so the shortest gap "
        "is the likeliest. SRS is between them: nearer to the first with a small pool, to the second with a large one."
    )
    chart = Chart("gaps", "gap in effective epochs", label, (*series, *laws))
    return Figure("gaps", "Gap between two visits of a sample", caption, (chart,))


def _noise(noise: Mapping[str, OrderNoise]) -> Figure:
    series = [Series(name, each.cycles, each.spectrum.density.tolist(), order=name) for name, each in noise.items()]
    series += [
        Series(f"{name}, closed form", each.cycles, each.law, kind="law")
        for name, each in noise.items()
        if each.law is not None
    ]
    chart = Chart(
        "spectrum", "cycles per effective epoch", "noise; 1 is that of independent draws", tuple(series), log=True
    )
    caption = (
        "How much the mean of a batch varies, slowly (left) and fast (right). Noise that is slow against an epoch adds "
        "up in flat directions of the loss. There reshuffling has the least, and replacement as much as elsewhere. SRS "
        "has a dip, narrower for a larger pool, and small peaks at whole cycles, where its sequence repeats."
    )
    return Figure("spectrum", "Noise of the order", caption, (chart,))
