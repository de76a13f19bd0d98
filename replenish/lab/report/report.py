"""Build the sections of a report from run folders, and write it as a page and as Markdown."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from replenish.lab import paper
from replenish.lab.atomic_files import write_atomically
from replenish.lab.config import RunConfig
from replenish.lab.report.figures import curves, paper_figure, seeds_figure
from replenish.lab.report.findings import Rules, claims, findings, order_pairs, read_rules
from replenish.lab.report.grouping import Group, by_experiment, by_recipe, without_repeats
from replenish.lab.report.inventory import facts, inventory, notices
from replenish.lab.report.tables import FULL_SCALE, difference_cell, orders_table, paper_tables
from replenish.lab.report.text import data_text, p_text, recipe_text, recipe_titles
from replenish.lab.runs import RunRecord, read_runs
from replenish.lab.show import Cell, Column, Figure, Page, Section, Table
from replenish.lab.show.markdown import page_markdown
from replenish.lab.show.page import page_html
from replenish.lab.verdict import signed

#: A config by scale and by the name of its experiment.
Experiments = Mapping[str, Mapping[str, RunConfig]]

_TITLE = "What the runs show about sequenced-replacement sampling"
PAGE_NAME = "report.html"
_METHOD = (
    "Errors are test errors at the last epoch, in percent, and differences are in points. The best epoch is not shown: "
    "it would be chosen on the test set.",
    "Averages are means with Student's 95 % interval. The paper reports medians of five runs.",
    "Differences are taken seed by seed, over the seeds that both sides finished: runs with one seed share their "
    "initial weights. A difference is better or worse if Student's 95 % interval excludes 0 and the p-value, adjusted "
    "for all comparisons of its table by Holm's method, is below 0.05. It is equivalent if its interval lies within "
    "the margin that was stated for the runs, after the same adjustment, and undecided otherwise. Without a stated "
    "margin nothing is equivalent. Comparisons of other tables are not counted: for a study of several tables that is "
    "too lenient.",
)


def write_report(
    directory: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, experiments: Experiments
) -> tuple[Path, Path]:
    """Write the report of the runs below a directory, and return the paths of the page and of the Markdown.

    Args:
        directory: Where the runs are.
        out: The page's path, ending in `.html`; the Markdown gets the same name with `.md`. By default `report.html` in
            `directory`.
        experiments: The configs of the paper's experiments, by scale and name. A run belongs to every experiment with
            its config, for any seed. The other runs are compared by recipe.

    Raises:
        OSError: Something cannot be read or written.
        ValueError: There are no runs, one of their files is garbled, or `out` does not end in `.html`.
    """
    page = Path(directory) / PAGE_NAME if out is None else Path(out)
    if page.suffix != ".html":
        raise ValueError(f"out should be a file name that ends in .html, but got {str(page)!r}")
    runs = read_runs(directory)
    if not runs:
        raise ValueError(
            f"there are no runs in {directory}: no folder below it has a config.json; make some with `replenish run`"
        )
    content, markdown = report_page(runs, experiments, read_rules(directory)), page.with_suffix(".md")
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, page_html(content, markdown.name).encode())
    write_atomically(markdown, page_markdown(content, page.name).encode())
    return page, markdown


def report_page(runs: Sequence[RunRecord], experiments: Experiments, rules: Rules | None = None) -> Page:
    """Return the content of a report. It depends only on the runs, the experiments and the rules."""
    kept, repeats = without_repeats(runs)
    sections: list[Section] = []
    of_experiments: set[RunConfig] = set()
    for scale, configs in experiments.items():
        if groups := by_experiment(kept, configs):
            of_experiments |= {group.config.with_seed(0) for group in groups.values()}
            sections.append(experiments_section(scale, groups, rules))
    # A recipe has a section unless all its runs are in the section of the experiments.
    others = [
        orders for orders in by_recipe(kept) if any(group.config not in of_experiments for group in orders.values())
    ]
    titles = recipe_titles([next(iter(orders.values())).config for orders in others])
    for number, (orders, title) in enumerate(zip(others, titles, strict=True), start=1):
        sections.append(orders_section(orders, f"orders-{number}", title, rules))
    first = [verdicts_section(sections)] if any(section.findings for section in sections) else []
    sections += [inventory(kept), Section("how", "How the numbers are made", paragraphs=_METHOD)]
    lead = (
        "The verdicts come first, then every table and figure in sections to open. All of it is made from the run "
        "folders, and rows that do not reproduce the paper are shown like the others."
    )
    folded = [replace(section, folded=len(sections) > 3) for section in sections]
    return Page(_TITLE, lead, "Replenish · report", facts(kept), (*first, *folded), notices(kept, repeats))


def experiments_section(scale: str, groups: Mapping[str, Group], rules: Rules | None = None) -> Section:
    """Return the section of the experiments that have runs at a scale."""
    made = findings(claims(groups), f"{scale}-finding", rules, comparable=scale == FULL_SCALE)
    blocks: list[Table | Figure | None] = [
        *paper_tables(groups, scale),
        _table3_seeds(groups, scale),
        *_paper_figures(groups, scale),
    ]
    return Section(
        name=f"scale-{scale}",
        title=f"The paper's experiments at the scale {scale}",
        paragraphs=_scale_text(scale, groups),
        findings=made,
        blocks=tuple(block for block in blocks if block is not None),
    )


def _paper_figures(groups: Mapping[str, Group], scale: str) -> Iterator[Figure | None]:
    """Yield figures 2 and 3; figure 3 is left out if all its runs are in figure 2 too."""
    shown: set[RunConfig] = set()
    for figure in (paper.FIGURE2, paper.FIGURE3):
        new = {groups[name].config for name, _ in figure.lines if name in groups} - shown
        shown |= new
        if new:
            yield paper_figure(figure, groups, scale)


def _table3_seeds(groups: Mapping[str, Group], scale: str) -> Figure | None:
    """Return a figure of every seed of table 3's rows, with names that are short enough for an axis."""
    rows = {
        f"{row.method.removeprefix('WRN-')}, {row.batch_size}, {row.schedule[0]}": groups[row.name]
        for row in paper.TABLE3
        if row.name in groups
    }
    return seeds_figure(rows, f"{scale}-table3-seeds", " Rows are named by method, batch size and first decay of 200.")


def verdicts_section(sections: Sequence[Section]) -> Section:
    """Return the first section of a report: the verdict with the most seeds, and a table of all verdicts."""
    found = [finding for section in sections for finding in section.findings]
    titles = {finding.name: section.title for section in sections for finding in section.findings}
    most = max(found, key=lambda finding: finding.verdict.difference.n)
    several = len(set(titles.values())) > 1
    columns = [
        Column("Comparison", lambda f: f"{f.verdict.first} against {f.verdict.second}", numeric=False),
        *([Column("Runs", lambda f: titles[f.name], numeric=False)] if several else []),
        Column("Verdict", lambda f: Cell(f.verdict.outcome, level=f.verdict.outcome), "on the first", numeric=False),
        Column(
            "Difference",
            lambda f: difference_cell(f.verdict.difference, f.verdict.interval),
            "first minus second, points",
        ),
        Column("p", lambda f: p_text(f.verdict.difference.p_value), "paired t-test"),
        Column("p, Holm", lambda f: p_text(f.verdict.adjusted_p), "with the other rows of these runs"),
    ]
    if any(finding.paper is not None for finding in found):
        columns.append(Column("Paper", lambda f: signed(f.paper), "points"))
    caption = (
        "Test error at the last epoch, seed by seed, with 95 % intervals unless another coverage is named; below zero "
        "the first is better. The verdict takes the stated margin and the number of comparisons into account."
    )
    table = Table("verdicts-all", "Every verdict", columns, [(finding.name, finding) for finding in found], caption)
    intro = (f"The comparison with the most seeds: {titles[most.name]}.",) if several else ()
    return Section("verdicts", "Verdicts", intro, findings=(replace(most, name="most-seeds"),), blocks=(table,))


def orders_section(orders: Mapping[str, Group], name: str, title: str, rules: Rules | None) -> Section:
    """Return the section of one recipe and its orders: findings, a table, curves and every seed."""
    made = findings(order_pairs(orders), f"{name}-finding", rules)
    config = next(iter(orders.values())).config
    blocks = [
        orders_table(orders, f"{name}-orders"),
        seeds_figure(orders, f"{name}-seeds"),
        curves(orders, name=f"{name}-curves"),
    ]
    return Section(
        name=name,
        title=title,
        paragraphs=(recipe_text(config),),
        findings=made,
        blocks=tuple(block for block in blocks if block is not None),
    )


def _scale_text(scale: str, groups: Mapping[str, Group]) -> tuple[str, ...]:
    configs = [group.config for group in groups.values()]
    data = "; ".join(sorted({data_text(config) for config in configs}))
    networks = ", ".join(sorted({config.model for config in configs}))
    epochs = ", ".join(str(count) for count in sorted({config.epochs for config in configs}))
    setting = f"Data: {data}. Networks: {networks}. Effective epochs: {epochs}."
    if any(not config.drop_last for config in configs):
        setting += (
            " Some runs are from before short batches were dropped: where B does not divide N, reshuffling ended its "
            "epochs on a short batch there, and SRS did not."
        )
    if scale == FULL_SCALE:
        return (setting,)
    return (
        setting,
        "This is not the paper's scale: data, networks or epochs are smaller, so our errors cannot be set against the "
        "paper's. Differences between rows can, and they hold for this scale only.",
    )
