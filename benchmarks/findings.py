"""Put what the runs in results/ say into the pages: their report, docs/what_we_found.md and the README's table.

    python benchmarks/findings.py

Everything is made from the records alone; tests/test_findings.py holds the pages to them.
"""

from __future__ import annotations

from pathlib import Path

from pages import ROOT, write_between

from replenish.lab.experiments import SCALES, configs, paper
from replenish.lab.report import read_runs, write_report
from replenish.lab.report.grouping import Group, by_experiment, without_repeats
from replenish.lab.report.making import scale_section
from replenish.lab.report.markdown import code, escape
from replenish.lab.statistics import median_with_interval, paired_difference, signed

RESULTS = ROOT / "results"
SCALE = "mini"


def groups(results: Path) -> dict[str, Group]:
    return by_experiment(without_repeats(read_runs(results))[0], configs(SCALE))


def table3(found: dict[str, Group]) -> str:
    """Return table 3, the paper's beside ours, small enough for the README."""
    reference = found[paper.TABLE3_REFERENCE]
    printed = {row.name: row.error for row in paper.TABLE3}[paper.TABLE3_REFERENCE]
    lines = [
        "| sampling | B | decays | paper, WRN-28-10 | minus row 3 | ours, WRN-10-1 | minus row 3, paired |",
        "|---|---:|---|---:|---:|---:|---:|",
    ]
    for row in paper.TABLE3:
        group = found[row.name]
        ours = median_with_interval(group.errors.values())
        shown = f"{ours.value:.2f}"
        if ours.interval is not None:
            shown += f" [{ours.interval.low:.2f}, {ours.interval.high:.2f}]"
        paper_difference = our_difference = ""
        if row.name != paper.TABLE3_REFERENCE:
            paper_difference = signed(row.error - printed)
            difference = paired_difference(group.errors, reference.errors)
            assert difference.mean is not None
            our_difference = signed(difference.mean)
            if difference.interval is not None:
                our_difference += f" [{signed(difference.interval.low)}, {signed(difference.interval.high)}]"
        sampling = "SRS" if row.method == "WRN-SRS" else "reshuffling"
        decays = f"{'-'.join(map(str, row.schedule))}, x{row.decay:g}"
        lines.append(
            f"| {sampling} | {row.batch_size} | {decays} | {row.error:.2f} | {paper_difference} | {shown} "
            f"| {our_difference} |"
        )
    counts = sorted({len(found[row.name].errors) for row in paper.TABLE3})
    commits = sorted({str((run.result or {})["commit"]) for row in paper.TABLE3 for run in found[row.name].finished})
    command = sorted({str((run.result or {})["command"]) for row in paper.TABLE3 for run in found[row.name].finished})
    lines += [
        "",
        f"Test error on CIFAR-100 in percent after the last epoch. Ours: n = {', '.join(map(str, counts))} seeds; "
        "medians with smallest and largest, differences with 95 % intervals; "
        f"{', '.join(code(each) for each in command)}, commit {', '.join(commits)}.",
    ]
    return "\n".join(lines)


def sentences(results: Path) -> list[str]:
    """Return what each comparison allows to be said; the first is SRS against reshuffling, all else equal."""
    section = scale_section(SCALE, read_runs(results), configs(SCALE))
    return [escape(" ".join(filter(None, (found.sentence, found.paper_sentence)))) for found in section.findings]


def main() -> None:
    page, markdown = write_report(RESULTS, experiments={scale: configs(scale) for scale in SCALES})
    table, said = table3(groups(RESULTS)), sentences(RESULTS)
    write_between("README.md", "results", f"{table}\n**{said[0]}**")
    write_between("docs/what_we_found.md", "results", "\n".join([table, "", *(f"- {sentence}" for sentence in said)]))
    print(f"{page}, {markdown}, README.md and docs/what_we_found.md are written")


if __name__ == "__main__":
    main()
