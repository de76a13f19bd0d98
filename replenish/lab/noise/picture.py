"""The results as one picture, an SVG that stands alone: measured points on the laws' curves, for each learning rate."""

from __future__ import annotations

from html import escape

import numpy as np

from replenish.lab.noise.results import Results
from replenish.lab.noise.setting import ARMS, WHITE
from replenish.lab.show import Chart, Series
from replenish.lab.show.page import environment, palette_css
from replenish.lab.show.svg import HEIGHT, WIDTH, chart_svg, look_classes, mark

_TITLE, _LEGEND = 34, 88
_KAPPAS = np.geomspace(0.05, 16, 80)


def chart_of(results: Results, rate: float) -> Chart:
    """Return the chart of a learning rate: points with the seeds' 95 % intervals, and the laws as thin lines."""
    series = []
    for arm, told in ARMS.items():
        if arm == WHITE:
            continue
        values = results.values(rate, arm)
        ends = [(value.law, value.excess.interval) for value in values]
        series.append(
            Series(
                told.label,
                [value.kappa for value in values],
                [value.measured for value in values],
                [None if each is None else max(law + each.low, 0.0) for law, each in ends],
                [None if each is None else law + each.high for law, each in ends],
                kind="points",
                order=told.order,
                whiskers=True,
            )
        )
        law = results.law(arm, _KAPPAS.tolist()).tolist()
        series.append(Series(f"{told.label}, law", _KAPPAS.tolist(), law, like=told.label, thin=True))
    label = "κ: learning rate times curvature, per epoch"
    return Chart(f"rate-{rate:g}", label, "variance over that of independent draws", tuple(series), log=True)


def picture(results: Results) -> str:
    """Return the picture."""
    charts = [chart_of(results, rate) for rate in results.rates]
    source = environment().loader
    assert source is not None
    style = palette_css() + source.get_source(environment(), "chart.css")[0]
    wide, high = WIDTH * len(charts), _TITLE + HEIGHT + _LEGEND
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" role="img" '
        'font-family="system-ui, sans-serif" aria-label="The variance of the weights along eigenvectors, measured '
        f'under six orders, on the curves of the laws"><style>{style}[hidden]{{display:none}}'
        ".title{font-size:15px;font-weight:640;fill:var(--ink)}.key{font-size:13px;fill:var(--ink)}</style>"
        f'<rect width="{wide}" height="{high}" rx="10" fill="var(--sheet)"/>'
    ]
    for place, (rate, chart) in enumerate(zip(results.rates, charts, strict=True)):
        parts.append(f'<text class="title" x="{place * WIDTH + 54}" y="24">learning rate {rate:g}</text>')
        where = f'<svg x="{place * WIDTH}" y="{_TITLE}" width="{WIDTH}" height="{HEIGHT}" '
        parts.append(chart_svg(chart, "noise").replace("<svg ", where, 1))
    told = (
        "Up: variance of the weights along the Hessian's eigenvectors, over that of independent draws. Points: "
        f"n = {len(results.records)} seeds, 95 % intervals. Lines: the laws, nothing fitted."
    )
    parts.append(f'<text class="key" x="30" y="{high - 14}">{escape(told)}</text>')
    parts += _legend(charts[0], wide)
    return "".join(parts) + "</svg>\n"


def _legend(chart: Chart, wide: int) -> list[str]:
    named = [series for series in chart.series if series.kind == "points"]
    parts = []
    for place, series in enumerate(named):
        x, y = 30 + place % 3 * (wide - 40) / 3, _TITLE + HEIGHT + 18 + place // 3 * 24
        look, dash = chart.looks[series.name]
        line = f'<path class="line thin" d="M{x:.0f} {y}h34"/>'
        parts.append(f'<g class="{look_classes(look, dash)}">{line}{mark(look, x + 17, y)}</g>')
        parts.append(f'<text class="key" x="{x + 44:.0f}" y="{y + 4.5}">{escape(series.name)}</text>')
    return parts
