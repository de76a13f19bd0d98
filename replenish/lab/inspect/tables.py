"""The tables of `replenish inspect`: the closed forms of SRS next to the measurements."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from replenish import theory
from replenish.checks import Floats
from replenish.diagnostics import Measurement, ShuffleQuality
from replenish.lab.inspect.results import Inspection, OrderNoise
from replenish.lab.show import Table
from replenish.measure.gaps import MeasuredGaps

_SHORT, _LONG = 0.1, 2.0  # gaps in effective epochs
_CYCLES = (0.1, 0.2, 0.5, 1, 2, 5)  # frequencies of the noise, in cycles per epoch
_CORRELATIONS = ("successive batches", "drift", "epochs", "seeds")


def tables(inspection: Inspection) -> tuple[Table, ...]:
    """Return all tables, for the terminal and the page."""
    found = [draws_table(inspection), class_table(inspection)]
    found += [_noise_table(inspection.noise)] if inspection.noise else []
    found += [_shuffle_table(inspection.shuffles)] if inspection.shuffles else []
    return tuple(found)


def _table(
    name: str, title: str, heads: Iterable[str], rows: Sequence[tuple[str, ...]], caption: str, note: str = ""
) -> Table:
    """Return a table of rows that begin with their label."""
    every = ["", *heads]
    return Table.of_rows(name, title, every, rows, caption, notes=["", *[note] * (len(every) - 1)])


def draws_table(inspection: Inspection) -> Table:
    """Return the table of what each order draws."""
    laws, epochs = inspection.laws, inspection.epochs
    in_all = "1 epoch" if epochs == 1 else f"{epochs} epochs"

    def row(label: str, law: str, read: Callable[[Measurement], str]) -> tuple[str, ...]:
        return (label, law, *map(read, inspection.found.values()))

    rows = []
    for epoch in shown_epochs(epochs):
        law = _percent(laws.unseen_first) if epoch == 1 else f"~ {_percent(laws.unseen)}"
        measured = (_percent(each.unseen[epoch - 1]) for each in inspection.found.values())
        rows.append((f"unseen in epoch {epoch}", law, *measured))
    if epochs > 1:
        rows.append(
            row(f"unseen in all {epochs} epochs", _percent(laws.never_seen), lambda m: _percent(m.never_seen[-1]))
        )
    rows += [
        row(f"draws of a sample in epoch {epochs}", "", lambda m: _range((m.smallest[-1], m.largest[-1]))),
        row(f"draws of a sample in {in_all}", "", lambda m: _range(m.counts)),
        row(f"variance of the draws in {in_all}", f"{laws.count_spread:.3f}", lambda m: f"{m.count_spread[-1]:.3f}"),
        row("equal pairs in a batch", f"~ {laws.equal_pairs:.4f}", lambda m: f"{m.equal_pairs:.4f}"),
    ]
    caption = "Measured from step 0 on. ~ is a limit: long after the start, for small steps."
    return _table("draws", "What is drawn", ["SRS, closed form", *inspection.found], rows, caption)


def class_table(inspection: Inspection) -> Table:
    """Return the table of how the classes of a sorted dataset are spread."""
    laws, found = inspection.laws, dict(inspection.found)
    every = {"SRS identity": inspection.identity, "SRS shuffled": found.pop("SRS"), **found}
    classes = [each.classes for each in every.values() if each.classes is not None]  # all were measured with labels
    rows = [
        (
            "mean square of class counts in a batch; 1 = good shuffle",
            *(
                "" if math.isnan(spread) else f"{spread:.2f}"
                for spread in (laws.class_spread, *(c.spread for c in classes))
            ),
        ),
        (
            "rate of the first class over an epoch; 1 = even",
            *map(lowest_to_highest, (laws.class_rates, *(c.rates[:, 0] for c in classes))),
        ),
    ]
    title = f"If the data are sorted in {inspection.classes} equal classes"
    caption = "SRS identity refills the pool in the order of the data. It is measured once its pool has settled."
    return _table("classes-table", title, ["SRS identity, closed form", *every], rows, caption)


def _noise_table(noise: Mapping[str, OrderNoise]) -> Table:
    """Return the table of spectra and gaps: each measurement with its law."""
    orders = list(noise.values())
    ends = orders[0].cycles[0], orders[0].cycles[-1]
    wanted = [ends[0], *(each for each in _CYCLES if ends[0] < each < ends[1]), ends[1]]
    shown = dict.fromkeys(orders[0].cycles[_nearest(orders[0].cycles, each)] for each in wanted)
    rows = [
        (f"noise at {cycles:.3g} cycles per epoch", *(_noise_near(one, cycles) for one in orders)) for cycles in shown
    ]
    rows.append(("variance of the gap between two visits", *map(_gap_variance, orders)))
    single = orders[0].order.batch_size / orders[0].order.num_samples
    rows += [
        ("gaps of a single step", *(_gap_share(one, single) for one in orders)),
        (f"gaps of at most {_SHORT:g} epochs", *(_gap_share(one, _SHORT) for one in orders)),
        ("gaps of at most 1 epoch", *(_gap_share(one, 1.0) for one in orders)),
        (f"gaps longer than {_LONG:g} epochs", *(_gap_share(one, _LONG, longer=True) for one in orders)),
    ]
    caption = (
        "Noise is relative to that of independent draws. The closed forms hold long after the start. Gaps that are "
        "longer than the run are not among those measured."
    )
    return _table("noise", "Noise and gaps", noise, rows, caption, note="measured (closed form)")


def _nearest(cycles: list[float], wanted: float) -> int:
    return int(np.argmin(np.abs(np.log(np.array(cycles) / wanted))))


def _noise_near(one: OrderNoise, cycles: float) -> str:
    band = _nearest(one.cycles, cycles)  # orders with another number of steps per epoch have other bands
    return f"{one.spectrum.density[band]:.3f} ({'no law' if one.law is None else f'{one.law[band]:.3f}'})"


def _gap_variance(one: OrderNoise) -> str:
    measured = "no gaps" if math.isnan(one.gaps.variance) else f"{one.gaps.variance:.3f}"
    return f"{measured} ({'no law' if one.gap_law is None else f'{one.gap_law.variance:.3f}'})"


def _gap_share(one: OrderNoise, epochs: float, *, longer: bool = False) -> str:
    """Return the share of gaps up to a length, or of longer ones: as measured, and by the law."""

    def share(gaps: MeasuredGaps | theory.GapLaw) -> str:
        survives = float(gaps.survival(epochs))
        return _percent(survives if longer else 1 - survives)

    return f"{share(one.gaps)} ({'no law' if one.gap_law is None else share(one.gap_law)})"


def _shuffle_table(shuffles: Mapping[str, ShuffleQuality]) -> Table:
    """Return the table of the shuffle battery: effects, and levels if they are not ok."""
    names = dict.fromkeys(each.name for quality in shuffles.values() for each in quality.findings)
    rows = [(name, *(_effect(quality, name) for quality in shuffles.values())) for name in names]
    caption = (
        "Each question of replenish.diagnostics.shuffle_quality: a ratio to a uniform shuffle (1 is the same), or a "
        "correlation (with a sign; 0 is none)."
    )
    return _table("shuffle-table", "How uniform the shuffle is", shuffles, rows, caption)


def _effect(quality: ShuffleQuality, name: str) -> str:
    found = next((each for each in quality.findings if each.name == name), None)
    if found is None or found.effect is None:
        return ""
    if name in _CORRELATIONS:
        text = f"{found.effect:+.3f}".replace("-", "−")  # noqa: RUF001
    else:
        text = f"{found.effect:.3g}" if np.isfinite(found.effect) else "many"
    return text if found.level == "ok" else f"{text} ({found.level})"


def shown_epochs(epochs: int) -> list[int]:
    """Return the epochs that a short table shows: 1, 2, 5, 10, 20, ... and the last.

    Example:
        >>> shown_epochs(12)
        [1, 2, 5, 10, 12]
    """
    series = {digit * 10**power for power in range(len(str(epochs))) for digit in (1, 2, 5)}
    return sorted({epoch for epoch in series if epoch < epochs} | {epochs})


def lowest_to_highest(rates: Floats) -> str:
    """Return the range of the known rates as text."""
    known = rates[~np.isnan(rates)]
    return f"{known.min():.2f} to {known.max():.2f}"


def _percent(part: float) -> str:
    # Two decimals would show one sample in a million as 0.
    return f"{100 * part:.1g} %" if 1e-9 < part < 5e-5 else f"{100 * part:.2f} %"


def _range(values: npt.ArrayLike) -> str:
    least, most = np.min(values), np.max(values)
    return str(least) if least == most else f"{least} to {most}"
