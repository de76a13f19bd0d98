"""Write the results of the records in results/noise into docs/noise_on_a_network.md, with the picture."""

from __future__ import annotations

from pathlib import Path

from benchmarks.pages import ROOT, write_between
from replenish.lab.show.markdown import code, escape
from study.noise.picture import picture
from study.noise.results import Results, read_results
from study.noise.text import judged, results_table

RESULTS = ROOT / "results" / "noise"
PAGE, PICTURE = "docs/noise_on_a_network.md", "docs/noise_on_a_network.svg"


def text(results: Results) -> str:
    """Return what came out, as Markdown."""
    records = results.records.values()
    commands, commits = ({str(record[name]) for record in records} for name in ("command", "commit"))
    processor = sum(record["processor_seconds"] for record in records)
    parts = [
        "![The weights' variance along eigenvectors, measured, on the curves of the laws](noise_on_a_network.svg)",
        f"Points: means over n = {len(results.records)} seeds ({', '.join(map(str, results.records))}) with 95 % "
        f"intervals. Lines: the laws, nothing fitted. {' and '.join(code(each) for each in sorted(commands))}, commit "
        f"{', '.join(sorted(commits))}; {processor:.0f} s of processor time in all.",
        *(f"{number}. {escape(sentence)}" for number, sentence in enumerate(judged(results), start=1)),
    ]
    for rate in results.rates:
        table = results_table(results, rate)
        heads = [column.title for column in table.columns]
        lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
        for row in table.rows:
            lines.append(f"| {' | '.join(cell.text for cell in row.cells)} |")
        parts += [
            f"### Learning rate {rate:g}",
            "Measured minus law, with 95 % intervals: variances divided by the variance under independent draws.",
            "\n".join(lines),
        ]
    return "\n\n".join(parts)


def main() -> None:
    """Write the page and its picture."""
    results = read_results(RESULTS, "noise/digits")
    (ROOT / Path(PICTURE)).write_text(picture(results))
    write_between(PAGE, "noise", text(results))
    print(f"{PAGE} and {PICTURE} are written")
