"""Write the results from results/noise into docs/noise_on_a_network.md, its picture, and a page of all values."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.pages import ROOT, write_between
from replenish.lab.show import Chart, Figure, Series
from replenish.lab.show.markdown import code, escape, table_lines
from study.noise.results import Results, read_results
from study.noise.setting import ARMS, WHITE
from study.noise.text import judged, results_table
from study.pictures import figure_picture

RESULTS = ROOT / "results" / "noise"
PAGE, PICTURE = "docs/noise_on_a_network.md", "docs/noise_on_a_network.svg"
TABLES = "README.md"
_KAPPAS = np.geomspace(0.05, 16, 80)


def text(results: Results) -> str:
    """Return the results as Markdown."""
    records = results.records.values()
    commands, commits = ({str(record[name]) for record in records} for name in ("command", "commit"))
    processor = sum(record["processor_seconds"] for record in records)
    parts = [
        "![The weights' variance along eigenvectors, measured, on the curves of the laws](noise_on_a_network.svg)",
        f"Points: means over n = {len(results.records)} seeds ({', '.join(map(str, results.records))}) with 95 % "
        f"intervals. Lines: the laws, nothing fitted. {' and '.join(code(each) for each in sorted(commands))}, commit "
        f"{', '.join(sorted(commits))}; {processor:.0f} s of processor time in all.",
        *(f"{number}. {escape(sentence)}" for number, sentence in enumerate(judged(results), start=1)),
        "[results/noise/README.md](../results/noise) has every value.",
    ]
    return "\n\n".join(parts)


def tables(results: Results) -> str:
    """Return the Markdown page that is kept with the records: every value of the experiment."""
    parts = [
        "# The law of noise on a network: every value",
        "Variances divided by the variance under independent draws: measured (law): measured minus law, with its "
        "95 % interval. [The page](../../docs/noise_on_a_network.md) says what was run. `python -m study pages` writes "
        "this one.",
    ]
    for rate in results.rates:
        parts += [f"## Learning rate {rate:g}", "\n".join(table_lines(results_table(results, rate)))]
    return "\n\n".join(parts) + "\n"


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
    """Return the results as one SVG file: measured points on the curves of the laws."""
    title = "Variance of the weights along the Hessian's eigenvectors, over that of independent draws, on the laws"
    return figure_picture(Figure("noise", title, "", tuple(chart_of(results, rate) for rate in results.rates)))


def main() -> None:
    """Write the page and its picture."""
    results = read_results(RESULTS, "noise/digits")
    (ROOT / Path(PICTURE)).write_text(picture(results))
    write_between(PAGE, "noise", text(results))
    (RESULTS / TABLES).write_text(tables(results))
    print(f"{PAGE}, {PICTURE} and {(RESULTS / TABLES).relative_to(ROOT)} are written")
