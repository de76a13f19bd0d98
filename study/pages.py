"""Write the results of the records in results/ into the pages of this repository.

    python -m study pages

The pages are the report, README.md and in docs/ what_we_found.md, replication.md, second_study.md and
noise_on_a_network.md. They are made from the records only; tests/study checks them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from benchmarks.pages import ROOT, write_between
from replenish.lab import paper
from replenish.lab.experiments import SCALES, configs
from replenish.lab.report import by_experiment, read_runs, scale_section, short_table3, write_report
from replenish.lab.report.figures import paper_figure
from replenish.lab.report.grouping import Group, without_repeats
from replenish.lab.show.markdown import code, escape
from study.noise import page as noise_page
from study.pictures import figure_picture
from study.replication import Evidence, read_evidence
from study.replication.page import details, parts, pictures, readme_part
from study.second import page as second_page

RESULTS = ROOT / "results" / "table3-mini"
REPORT = ROOT / "results" / "report.html"
STUDY = ROOT / "results" / "study"
DETAILS = STUDY / "README.md"
SECOND_STUDY = ROOT / "study" / "records"
SCALE = "mini"
PICTURE = ROOT / "docs" / "figure2.svg"


def groups(results: Path) -> dict[str, Group]:
    """Return the runs of table 3 by experiment."""
    return by_experiment(without_repeats(read_runs(results))[0], configs(SCALE))


def table3(found: dict[str, Group]) -> str:
    """Return table 3, the paper's beside ours."""
    finished = [run for row in paper.TABLE3 for run in found[row.name].finished]
    counts, commits, commands = (
        sorted({value(run) for run in finished})
        for value in (
            lambda run: str(sum(other.config.with_seed(0) == run.config.with_seed(0) for other in finished)),
            lambda run: str((run.result or {})["commit"]),
            lambda run: code(str((run.result or {})["command"])),
        )
    )
    table = short_table3(found)
    heads = [f"{column.title}, {column.note}" if column.note else column.title for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, rules, *(row.texts for row in table.rows))]
    lines += [
        "",
        f"Test error on CIFAR-100 in percent after the last epoch. Ours: means of n = {', '.join(counts)} seeds, "
        f"and of their paired differences with 95 % intervals; {', '.join(commands)}, commit {', '.join(commits)}.",
    ]
    return "\n".join(lines)


def picture(found: dict[str, Group]) -> str:
    """Return the paper's figure 2 from our runs, as the page shows it."""
    figure = paper_figure(paper.FIGURE2, found, SCALE)
    assert figure is not None
    return figure_picture(
        dataclasses.replace(figure, title="The paper's figure 2 at the scale mini: means and spans of our runs")
    )


def sentences(results: Path) -> list[str]:
    """Return a sentence for each comparison; the first is SRS against reshuffling, all else equal."""
    section = scale_section(SCALE, read_runs(results), configs(SCALE))
    return [escape(found.full_sentence) for found in section.findings]


def study() -> Evidence:
    """Return the study's records that exist."""
    return read_evidence(read_runs(STUDY) if STUDY.is_dir() else [])


def main() -> None:
    """Write every page."""
    page, markdown = write_report(REPORT.parent, REPORT, experiments={scale: configs(scale) for scale in SCALES})
    table, said = table3(groups(RESULTS)), sentences(RESULTS)
    write_between("docs/what_we_found.md", "results", "\n".join([table, "", *(f"- {sentence}" for sentence in said)]))
    PICTURE.write_text(picture(groups(RESULTS)))
    evidence = study()
    for name, drawn in pictures(evidence).items():
        (ROOT / "docs" / name).write_text(drawn)
    for part, text in parts(evidence, groups(RESULTS)).items():
        write_between("docs/replication.md", part, text)
    DETAILS.write_text(details(evidence))
    write_between("README.md", "results", readme_part(evidence))
    for part, text in second_page.parts(SECOND_STUDY).items():
        write_between("docs/second_study.md", part, text)
    for name, drawn in second_page.pictures(SECOND_STUDY).items():
        (ROOT / "docs" / name).write_text(drawn)
    ended = sum(len(arm.runs) for arm in evidence.arms.values())
    print(f"{page}, {markdown}, README.md and the pages of the studies in docs/ are written")
    print(f"{ended} runs of the study are in {STUDY.relative_to(ROOT)}")
    noise_page.main()
