"""The results as text: a table for each learning rate, and the outcome of each prediction."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial

from replenish.lab.show import Column, Table
from replenish.lab.statistics import Difference
from study.noise.results import FLAT, OFF, ON, UNDECIDED, BandValue, Results
from study.noise.setting import ARMS, WHITE

_SHARP, _MOST = 5.6234, 0.7


def results_table(results: Results, rate: float) -> Table:
    """Return the table of a learning rate: measured variances, the law's in brackets, and their difference, by band."""
    columns = [
        Column("kappa", lambda band: f"{band[0]:.2g} to {band[1]:.2g}", numeric=False),
        Column("directions", lambda band: str(_known(results.value(rate, WHITE, band)).directions)),
    ]
    columns += [Column(arm.label, partial(_cell, results, rate, name)) for name, arm in ARMS.items() if name != WHITE]
    subjects = [(f"{band[0]:g}", band) for band in results.bands() if results.value(rate, WHITE, band) is not None]
    return Table(f"rate-{rate:g}", f"Learning rate {rate:g}", columns, subjects)


def _known(value: BandValue | None) -> BandValue:
    assert value is not None  # rows are made for bands that have directions
    return value


def _cell(results: Results, rate: float, arm: str, band: tuple[float, float]) -> str:
    known = _known(results.value(rate, arm, band))
    interval = known.excess.interval
    half = "" if interval is None else f" ± {(interval.high - interval.low) / 2:.3f}"
    return f"{known.measured:.3f} ({known.law:.3f}): {known.excess.value:+.3f}{half}".replace("-", "\u2212")


def judged(results: Results) -> list[str]:
    """Return a sentence about the outcome of each prediction."""
    order = results.in_predicted_order()
    slow = results.rates[-1]
    others = [arm for arm in ARMS if arm != WHITE]
    steep = [value for arm in others for value in results.values(slow, arm, FLAT, 100)]
    once = [value for rate in results.rates for value in results.values(rate, "shuffle-once", 0, FLAT)]
    sharp = [value for rate in results.rates for arm in others for value in results.values(rate, arm, _SHARP)]
    flat = {
        rate: [value for arm in others if arm != "replacement" for value in results.values(rate, arm, 0, FLAT)]
        for rate in results.rates
    }
    cells = [value for rate in results.rates for arm in others for value in results.values(rate, arm)]
    largest = max(value.measured / value.law for value in cells)
    return [
        f"The orders rank as the law says in {sum(ok for *_, ok in order)} of {len(order)} bands (prediction 1).",
        f"At {slow:g} and kappa above 0.32 (prediction 2), {_verdicts(steep)}. The largest mean distance from the law "
        f"is {max(abs(value.excess.value) for value in steep):.3f}.",
        f"In flat directions (prediction 3), reshuffling's excess over the law at {results.rates[0]:g} minus that at "
        f"{slow:g} is {_difference(results.flat_excess('reshuffling'))}. Of all orders there except replacement: "
        + "; ".join(f"at {rate:g}, {_verdicts(values)}" for rate, values in flat.items())
        + ".",
        f"Shuffle once in flat directions (prediction 4): {_verdicts(once)}.",
        f"In sharp directions, kappa above 5.6 (prediction 5), the smallest variance is "
        f"{min(value.measured for value in sharp):.3f} of that under independent draws; {_MOST} or more was predicted.",
        f"Predicted or not, {_verdicts(cells)}. Those off the law are mostly in flat directions at "
        f"{results.rates[0]:g}; the largest is {largest:.1f} times the law.",
    ]


def _verdicts(values: Iterable[BandValue]) -> str:
    counts = Counter(value.verdict for value in values)
    others = "".join(f", {counts[verdict]} {verdict}" for verdict in (UNDECIDED, OFF) if counts[verdict])
    return f"{counts[ON]} of {counts.total()} values are {ON}{others}"


def _difference(found: Difference) -> str:
    interval = found.interval()
    if found.mean is None or interval is None:
        return "not known with fewer than two seeds"
    low, high = interval.low, interval.high
    return f"{found.mean:.3f} (95 % interval {low:.3f} to {high:.3f}, n = {found.n} seeds, paired)"
