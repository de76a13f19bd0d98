"""The noise of the orders and the gaps between visits, measured beside their laws."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, TypeVar

import numpy as np

from replenish import theory
from replenish.lab.show import Chart, Column, Figure, Series, Table
from replenish.measure.gaps import MeasuredGaps, gaps_of
from replenish.measure.reading import read_draws
from replenish.measure.spectrum import MeasuredSpectrum, spectrum_of
from replenish.orders.cursor import CursorOrder

T = TypeVar("T")
_FEWEST_STEPS = 8
_MOST_DRAWS, _MOST_VALUES = 2**24, 2**26  # how much the spectra may cost, in time and in memory
_BANDS = 24
_SHORT, _LONG = 0.1, 2.0  # gaps in effective epochs


@dataclass(frozen=True)
class OrderNoise:
    """One order: its noise, in bands of frequencies, and the gaps between two visits of a sample.

    Beside them are their laws, that of the noise without lines; None where none is known.
    """

    order: CursorOrder
    spectrum: MeasuredSpectrum
    gaps: MeasuredGaps
    law: list[float] | None
    gap_law: theory.GapLaw | None

    @property
    def cycles(self) -> list[float]:
        """The frequencies of the bands, in cycles an effective epoch."""
        steps = self.order.num_samples / self.order.batch_size
        return [float(f"{each:.4g}") for each in self.spectrum.frequencies * steps]


def measure_noise(orders: Mapping[str, CursorOrder], starts: Mapping[str, int], epochs: int) -> dict[str, OrderNoise]:
    """Measure the noise and the gaps of orders, each from a step on at which it has settled.

    Nothing is returned where there is no noise, or too much to be measured: with a single sample, a few steps, or more
    samples than memory has room for.
    """
    first = next(iter(orders.values()))
    epochs = min(epochs, _MOST_DRAWS // first.num_samples)
    if first.num_samples < 2 or epochs * first.steps_per_epoch < _FEWEST_STEPS:
        return {}
    numbers = int(np.clip(_MOST_VALUES // (epochs * first.num_samples), 4, 64))
    found = {}
    for name, order in orders.items():
        draws = read_draws(order, epochs, start=starts.get(name, 0))
        spectrum = spectrum_of(draws, numbers).in_bands(_BANDS)
        law = _known(theory.noise_spectrum, order, spectrum.frequencies)
        found[name] = OrderNoise(
            order,
            spectrum,
            gaps_of(draws),
            None if law is None else law.continuous.tolist(),
            _known(theory.visit_gaps, order),
        )
    return found


def _known(law: Callable[..., T], *arguments: Any) -> T | None:
    """Return a law, or None where there is none in closed form."""
    try:
        return law(*arguments)
    except theory.NoLawError:
        return None


def noise_figure(noise: Mapping[str, OrderNoise]) -> Figure:
    """Return the spectra as a chart."""
    series = [Series(name, each.cycles, each.spectrum.density.tolist(), order=name) for name, each in noise.items()]
    series += [
        Series(f"{name}, closed form", each.cycles, each.law, kind="law")
        for name, each in noise.items()
        if each.law is not None
    ]
    label = "noise; 1 is that of independent draws"
    chart = Chart("noise", "cycles an effective epoch", label, tuple(series), log=True)
    caption = (
        "How much the mean of a batch varies, slowly (left) and fast (right), for a number that every sample has. What "
        "is slow against an epoch adds up in flat directions of the loss: there reshuffling has least, SRS a dip that "
        "is the narrower, the larger its pool, and replacement none. SRS has small peaks at whole cycles beside the "
        "closed form: the sequence comes again."
    )
    return Figure("noise", "Noise of the order", caption, (chart,))


def noise_table(noise: Mapping[str, OrderNoise]) -> Table:
    """Return the spectra and the gaps in numbers, each measured beside its law."""
    columns = [Column("", lambda line: line[0], numeric=False)]
    for place, name in enumerate(noise, start=1):
        columns.append(Column(name, itemgetter(place), "measured (closed form)"))
    each = list(noise.values())
    told = [each[0].cycles[band] for band in _told_bands(each[0].cycles)]
    lines = [(f"noise at {cycles:.3g} cycles an epoch", *(_noise_near(one, cycles) for one in each)) for cycles in told]
    lines += [
        ("variance of the gap between two visits", *(_variance(one) for one in each)),
        (f"gaps of at most {_SHORT:g} epochs", *(_shares(one, 1, _SHORT) for one in each)),
        (f"gaps longer than {_LONG:g} epochs", *(_shares(one, 0, _LONG) for one in each)),
    ]
    caption = (
        "Noise is over that of independent draws. The closed forms are those of an order long after its start; gaps "
        "that are longer than what was run are not among those measured."
    )
    return Table("noise", "Noise and gaps", columns, [(line[0], line) for line in lines], caption)


def _told_bands(cycles: list[float]) -> list[int]:
    """Return some bands: the lowest, the highest, and those nearest to round numbers of cycles between them."""
    wanted = [digit * 10.0**power for power in range(-3, 7) for digit in (1, 2, 5)]
    inside = [cycles[0], *(each for each in wanted if cycles[0] < each < min(cycles[-1], 10)), cycles[-1]]
    return sorted({_nearest(cycles, each) for each in inside})


def _nearest(cycles: list[float], wanted: float) -> int:
    return int(np.argmin(np.abs(np.log(np.array(cycles) / wanted))))


def _noise_near(one: OrderNoise, cycles: float) -> str:
    band = _nearest(one.cycles, cycles)  # orders whose epochs have other numbers of steps have other bands
    return f"{one.spectrum.density[band]:.3f} ({'no law' if one.law is None else f'{one.law[band]:.3f}'})"


def _variance(one: OrderNoise) -> str:
    measured = "no gaps" if math.isnan(one.gaps.variance) else f"{one.gaps.variance:.3f}"
    return f"{measured} ({'no law' if one.gap_law is None else f'{one.gap_law.variance:.3f}'})"


def _shares(one: OrderNoise, whole: int, epochs: float) -> str:
    """Return the share of gaps longer than so many epochs, or what is left of `whole`."""
    told = [
        "no law" if found is None else f"{100 * abs(whole - float(found.survival(epochs))):.2f} %"
        for found in (one.gaps, one.gap_law)
    ]
    return f"{told[0]} ({told[1]})"
