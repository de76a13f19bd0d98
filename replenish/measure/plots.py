"""Plots of measurements and laws. They import matplotlib only when one is drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from replenish.checks import Floats
from replenish.measure.counts import PARTS_PER_EPOCH, Measurement
from replenish.measure.gaps import MeasuredGaps
from replenish.measure.spectrum import MeasuredSpectrum
from replenish.palette import DASHES, MATPLOTLIB_MARKS, Look, look_of, look_of_label
from replenish.theory import NoiseSpectrum
from replenish.theory.gap_laws import GapLaw

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot(measurements: Mapping[str, Measurement]) -> Figure:
    """Plot measurements together: coverage, counts, gaps and, if measured, the rate of a class.

    An order has the same colour and mark as in every chart of the lab.

    Args:
        measurements: Results of `measure`, by a name for the legend.
    """
    from matplotlib.figure import Figure

    if not measurements:
        raise ValueError("measurements should hold at least one measurement, but got none")
    with_classes = any(found.classes is not None for found in measurements.values())
    figure = Figure(figsize=(13 if with_classes else 10, 3.4), layout="constrained")
    axes = figure.subplots(1, 4 if with_classes else 3)
    used: dict[Look, int] = {}  # lines of the same order differ in their dashes
    for name, found in measurements.items():
        look = look_of(str(found.config["order"]))
        used[look] = used.get(look, -1) + 1
        dashes = DASHES[used[look] % len(DASHES)]
        style = {
            "label": name,
            "color": look.light,
            "linestyle": (0, tuple(map(float, dashes.split()))) if dashes else "-",
        }
        marked = {**style, "marker": MATPLOTLIB_MARKS[look.mark], "markersize": 4}
        epochs = np.arange(1, found.epochs + 1)
        axes[0].plot(epochs, 100 * found.unseen, **marked)
        heights = np.bincount(found.counts) / len(found.counts)
        axes[1].plot(np.arange(len(heights)), 100 * heights, **marked)
        shown = found.gaps[: 5 * PARTS_PER_EPOCH] / max(found.gaps.sum(), 1)
        axes[2].step(np.arange(len(shown)) / PARTS_PER_EPOCH, 100 * shown, where="post", **style)
        if found.classes is not None:
            parts = np.arange(PARTS_PER_EPOCH) / PARTS_PER_EPOCH
            axes[3].step(parts, found.classes.rates[:, 0], where="post", **style)
    titles = ["unseen in an epoch (%)", "samples drawn so often (%)", "gap between two draws (%)", "rate of class 0"]
    below = ["effective epoch", f"draws in {found.epochs} epochs", "effective epochs", "part of an epoch"]
    for axis, title, label in zip(axes, titles, below, strict=False):
        axis.set_title(title, fontsize="medium")
        axis.set_xlabel(label)
        axis.grid(alpha=0.3)
    axes[0].set_ylim(bottom=0)
    axes[0].legend()
    return figure


def plot_noise_spectra(spectra: Mapping[str, MeasuredSpectrum | NoiseSpectrum], steps_per_epoch: float) -> Figure:
    """Plot spectra over frequencies in cycles per epoch: measured ones as points, laws as lines.

    Args:
        spectra: Results of `diagnostics.noise_spectrum` or `theory.noise_spectrum`, by a name for the legend. A name
            that begins with an order's ("srs, measured") gets that order's colour.
        steps_per_epoch: The steps of an effective epoch, N/B.
    """
    if not spectra:
        raise ValueError("spectra should hold at least one spectrum, but got none")
    curves = []
    for name, found in spectra.items():
        if isinstance(found, MeasuredSpectrum):
            found = found.in_bands(40)
            curves.append((name, True, found.frequencies * steps_per_epoch, found.density))
        else:
            curves.append((name, False, found.frequencies * steps_per_epoch, found.continuous))
    return _laws_and_measurements(
        curves, xscale="log", xlabel="cycles per effective epoch", ylabel="noise, over independent draws"
    )


def plot_visit_gaps(gaps: Mapping[str, MeasuredGaps | GapLaw], longest: float = 4.0) -> Figure:
    """Plot the fraction of gaps between two visits that are longer than a number of epochs.

    Args:
        gaps: Results of `diagnostics.visit_gaps` or `theory.visit_gaps`, by a name for the legend, as in
            `plot_noise_spectra`.
        longest: The end of the axis, in effective epochs.
    """
    if not gaps:
        raise ValueError("gaps should hold at least one law or measurement, but got none")
    epochs = np.linspace(0, longest, 161)
    curves = [(name, isinstance(of, MeasuredGaps), epochs, 100 * of.survival(epochs)) for name, of in gaps.items()]
    return _laws_and_measurements(curves, xlabel="effective epochs", ylabel="gaps longer than that (%)")


def _laws_and_measurements(curves: list[tuple[str, bool, Floats, Floats]], **of_axes: str) -> Figure:
    """Plot curves of (name, whether it was measured, x, y): measurements as points, laws as lines."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.8), layout="constrained")
    axes = figure.subplots()
    for name, measured, x, y in curves:
        axes.plot(x, y, "." if measured else "-", label=name, color=look_of_label(name).light)
    axes.set(**of_axes)
    axes.set_ylim(bottom=0)  # after the curves, since it fixes the top too
    axes.grid(alpha=0.3)
    axes.legend()
    return figure
