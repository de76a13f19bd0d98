"""Write the results of the records in results/ into the pages of this repository.

    python -m study pages

The pages are the report, README.md, and what_we_found.md, replication.md, second_study.md and noise_on_a_network.md in
docs/. Their generated parts depend on the records only; tests/study compares them.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from benchmarks.pages import ROOT, write_between
from replenish.lab import paper
from replenish.lab.experiments import SCALES, configs
from replenish.lab.report import by_experiment, experiments_section, read_runs, write_report
from replenish.lab.report.figures import paper_figure
from replenish.lab.report.grouping import Group, without_repeats
from replenish.lab.report.tables import TABLE3, Entry, entries
from replenish.lab.report.text import percent
from replenish.lab.show import NOTHING
from replenish.lab.show.markdown import code, escape
from replenish.lab.statistics import PERCENT, mean_with_interval, paired_difference
from replenish.lab.verdict import signed
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
HEADS = ("sampling", "B", "decays", "paper, WRN-28-10", "minus row 3", "ours, WRN-10-1", "minus row 3, paired")
RULES = ("---", "---:", "---", "---:", "---:", "---:", "---:")


def groups(results: Path) -> dict[str, Group]:
    """Return the runs of table 3 by experiment."""
    return by_experiment(without_repeats(read_runs(results))[0], configs(SCALE))


def table3(found: dict[str, Group]) -> str:
    """Return table 3 with the paper's numbers and ours."""
    finished = [run for row in paper.TABLE3 for run in found[row.name].finished]
    counts, commits, commands = (
        sorted({value(run) for run in finished})
        for value in (
            lambda run: str(sum(other.config.with_seed(0) == run.config.with_seed(0) for other in finished)),
            lambda run: str((run.result or {})["commit"]),
            lambda run: code(str((run.result or {})["command"])),
        )
    )
    rows = map(_row, entries(TABLE3, found))
    lines = [f"| {' | '.join(cells)} |" for cells in (HEADS, RULES, *rows)]
    lines += [
        "",
        f"Test error on CIFAR-100 in percent after the last epoch. Ours: means of n = {', '.join(counts)} seeds, "
        f"and of their paired differences with 95 % intervals; {', '.join(commands)}, commit {', '.join(commits)}.",
    ]
    return "\n".join(lines)


def _row(entry: Entry) -> tuple[str, ...]:
    """Return a row of table 3. Its last cell is the difference from the row that it is compared with."""
    row, errors = entry.row, entry.group.errors
    difference = "" if entry.name == entry.against else NOTHING
    if entry.reference is not None:
        found = paired_difference(errors, entry.reference.errors)
        interval = found.interval(possible=PERCENT)
        ends = "" if interval is None else f" [{signed(interval.low)}, {signed(interval.high)}]"
        difference = NOTHING if found.mean is None else signed(found.mean) + ends
    return (
        "SRS" if row.method == "WRN-SRS" else "reshuffling",
        str(row.batch_size),
        f"{'-'.join(map(str, row.schedule))}, x{row.decay:g}",
        percent(entry.printed),
        entry.paper_difference(""),
        percent(mean_with_interval(errors.values()).value) if errors else NOTHING,
        difference,
    )


def picture(found: dict[str, Group]) -> str:
    """Return the paper's figure 2 from our runs, as the page shows it."""
    figure = paper_figure(paper.FIGURE2, found, SCALE)
    assert figure is not None
    return figure_picture(
        dataclasses.replace(figure, title="The paper's figure 2 at the scale mini: means and spans of our runs")
    )


def sentences(found: dict[str, Group]) -> list[str]:
    """Return a sentence for each comparison; the first is SRS against reshuffling, all else equal."""
    return [escape(each.full_sentence) for each in experiments_section(SCALE, found).findings]


def study() -> Evidence:
    """Return the records of the replication study."""
    return read_evidence(read_runs(STUDY))


def main() -> None:
    """Write every page."""
    page, markdown = write_report(REPORT.parent, REPORT, experiments={scale: configs(scale) for scale in SCALES})
    found = groups(RESULTS)
    table, findings = table3(found), sentences(found)
    write_between("docs/what_we_found.md", "results", "\n".join([table, "", *(f"- {each}" for each in findings)]))
    PICTURE.write_text(picture(found))
    evidence = study()
    for name, drawn in pictures(evidence).items():
        (ROOT / "docs" / name).write_text(drawn)
    for part, text in parts(evidence, found).items():
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
