"""The sections of a report: the paper's experiments at a scale, other experiments, and the orders of one recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from replenish.lab import paper
from replenish.lab.config import RunConfig
from replenish.lab.report.columns import difference_cell
from replenish.lab.report.figures import curves, paper_figure, seeds_figure
from replenish.lab.report.findings import claims, findings, order_pairs
from replenish.lab.report.grouping import Group, by_experiment, without_repeats
from replenish.lab.report.rules import Rules
from replenish.lab.report.tables import FULL_SCALE, differences_table, experiments_table, paper_tables
from replenish.lab.report.words import data_words, recipe_titles, recipe_words
from replenish.lab.runs import RunRecord
from replenish.lab.show import Column, Figure, Section, Table
from replenish.lab.verdict import signed

#: The groups of experiments that a table or a figure of the paper shows; any other has a table of its own.
PAPER = ("table2", "table3", "figure2", "figure3")


def scale_section(scale: str, runs: Sequence[RunRecord], experiments: Mapping[str, RunConfig]) -> Section:
    """Return the section of one scale alone: the paper's tables, figures and claims over its experiments' runs."""
    groups = by_experiment(without_repeats(runs)[0], experiments)
    if not groups:
        raise ValueError(f"runs should hold a run of an experiment at the scale {scale}, but got none")
    return experiments_section(scale, groups)


def experiments_section(scale: str, groups: Mapping[str, Group], rules: Rules | None = None) -> Section:
    """Return the section of the experiments that have runs at a scale."""
    pairs = claims(groups)
    made = findings(pairs, f"{scale}-finding", rules, comparable=scale == FULL_SCALE)
    blocks: list[Table | Figure | None] = [
        *paper_tables(groups, scale),
        *_other_experiments(groups, scale),
        _table3_seeds(groups, scale),
        differences_table(made, pairs, f"{scale}-differences") if made else None,
        *_paper_figures(groups, scale),
    ]
    return Section(
        name=f"scale-{scale}",
        title=f"The paper's experiments at the scale {scale}",
        paragraphs=_scale_words(scale, groups),
        findings=made,
        blocks=tuple(block for block in blocks if block is not None),
    )


def _paper_figures(groups: Mapping[str, Group], scale: str) -> Iterator[Figure | None]:
    """Yield figures 2 and 3, which share runs; figure 3 is left out where it would show again what figure 2 shows."""
    told: set[RunConfig] = set()
    for figure in (paper.FIGURE2, paper.FIGURE3):
        new = {groups[name].config for name, _ in figure.lines if name in groups} - told
        told |= new
        if new:
            yield paper_figure(figure, groups, scale)


def _table3_seeds(groups: Mapping[str, Group], scale: str) -> Figure | None:
    """Return every seed of the rows of table 3 that have runs, by names that are short enough for an axis."""
    rows = {
        f"{row.method.removeprefix('WRN-')}, {row.batch_size}, {row.schedule[0]}": groups[row.name]
        for row in paper.TABLE3
        if row.name in groups
    }
    return seeds_figure(rows, f"{scale}-table3-seeds", " Rows are named by method, batch size and first decay of 200.")


def _other_experiments(groups: Mapping[str, Group], scale: str) -> Iterator[Table | Figure | None]:
    """Yield a table and curves of every group of experiments that the paper does not have."""
    others: dict[str, dict[str, Group]] = {}
    for name, group in groups.items():
        kind, _, rest = name.partition("/")
        if kind not in PAPER:
            others.setdefault(kind, {})[rest or kind] = group
    for kind, named in others.items():
        yield experiments_table(named, f"{scale}-{kind}", f"Experiments {kind}")
        yield curves(named, name=f"{scale}-{kind}-curves", title=f"Experiments {kind}: training loss and test error")


def verdicts_section(sections: Sequence[Section]) -> Section:
    """Return the section that opens a report: the verdict with the most seeds, and a table of all."""
    found = [(section, finding) for section in sections for finding in section.findings]
    section, most = max(found, key=lambda pair: pair[1].verdict.difference.n)
    several = len({section.name for section, _ in found}) > 1
    columns = [
        *([Column("Runs", lambda pair: pair[0].title, numeric=False)] if several else []),
        Column("First", lambda pair: pair[1].verdict.first, numeric=False),
        Column("Second", lambda pair: pair[1].verdict.second, numeric=False),
        Column("First minus second", lambda pair: difference_cell(pair[1].verdict.difference), "points, n, 95 %"),
        Column("Verdict", lambda pair: pair[1].verdict.outcome, "on the first", numeric=False),
    ]
    if any(finding.paper is not None for _, finding in found):
        columns.append(Column("Paper", lambda pair: signed(pair[1].paper), "points"))
    caption = (
        "A negative difference is a lower test error of the first. The verdict takes the stated margin and the number "
        "of comparisons into account."
    )
    table = Table("verdicts-all", "Every verdict", columns, [(pair[1].name, pair) for pair in found], caption)
    blocks = (table,) if len(found) > 1 else ()
    said = (f"The comparison with the most seeds: {section.title}.",) if several else ()
    return Section("verdicts", "Verdicts", said, findings=(replace(most, name="most-seeds"),), blocks=blocks)


def orders_section(orders: Mapping[str, Group], name: str, title: str = "", rules: Rules | None = None) -> Section:
    """Return the section of one recipe and its orders: what was found, a table of them, their curves and seeds."""
    pairs = order_pairs(orders)
    made = findings(pairs, f"{name}-finding", rules)
    config = next(iter(orders.values())).config
    blocks = [
        experiments_table(orders, f"{name}-orders"),
        differences_table(made, pairs, f"{name}-differences") if made else None,
        curves(orders, name=f"{name}-curves"),
        seeds_figure(orders, f"{name}-seeds"),
    ]
    return Section(
        name=name,
        title=title or recipe_titles([config])[0],
        paragraphs=(recipe_words(config),),
        findings=made,
        blocks=tuple(block for block in blocks if block is not None),
    )


def _scale_words(scale: str, groups: Mapping[str, Group]) -> tuple[str, ...]:
    configs = [group.config for group in groups.values()]
    data = "; ".join(sorted({data_words(config) for config in configs}))
    networks = ", ".join(sorted({config.model for config in configs}))
    epochs = ", ".join(str(count) for count in sorted({config.epochs for config in configs}))
    said = f"Data: {data}. Networks: {networks}. Effective epochs: {epochs}."
    if any(not config.drop_last for config in configs):
        said += (
            " Some runs are from before short batches were dropped: where B does not divide N, reshuffling ended its "
            "epochs on a short batch there, and SRS did not."
        )
    if scale == FULL_SCALE:
        return (said,)
    return (
        said,
        "This is not the paper's scale: data, networks or epochs are smaller, so our errors cannot be set against the "
        "paper's. Differences between rows can, and they speak for this scale alone.",
    )
