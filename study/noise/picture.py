"""The results as one SVG file: for each learning rate, measured points on the curves of the laws."""

from __future__ import annotations

import numpy as np

from replenish.lab.show import Chart, Figure, Series
from study.noise.results import Results
from study.noise.setting import ARMS, WHITE
from study.pictures import figure_picture

_KAPPAS = np.geomspace(0.05, 16, 80)


def chart_of(results: Results, rate: float) -> Chart:
    """Return the chart of a learning rate: measured points with 95 % intervals, and the laws as thin lines."""
    series = []
    for name, arm in ARMS.items():
        if name == WHITE:
            continue
        values = results.values(rate, name)
        ends = [(value.law, value.excess.interval) for value in values]
        series.append(
            Series(
                arm.label,
                [value.kappa for value in values],
                [value.measured for value in values],
                [None if each is None else max(law + each.low, 0.0) for law, each in ends],
                [None if each is None else law + each.high for law, each in ends],
                kind="points",
                order=arm.order,
                whiskers=True,
            )
        )
        law = results.law(name, _KAPPAS.tolist()).tolist()
        series.append(Series(f"{arm.label}, law", _KAPPAS.tolist(), law, like=arm.label, thin=True))
    label = "κ: learning rate times curvature, per epoch"
    return Chart(f"rate-{rate:g}", label, f"learning rate {rate:g}", tuple(series), log=True)


def picture(results: Results) -> str:
    """Return the picture."""
    title = "Variance of the weights along the Hessian's eigenvectors, over that of independent draws, on the laws"
    return figure_picture(Figure("noise", title, "", tuple(chart_of(results, rate) for rate in results.rates)))
