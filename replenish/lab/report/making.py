"""From run folders to the two files of a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from replenish.lab.config import RunConfig
from replenish.lab.experiments import paper
from replenish.lab.report.cells import data_words, listed
from replenish.lab.report.comparisons import claims, differences_table, findings
from replenish.lab.report.document import Document, Figure, Section, Table
from replenish.lab.report.figures import paper_figure
from replenish.lab.report.grouping import Group, by_experiment, by_recipe, without_repeats
from replenish.lab.report.inventory import facts, inventory, notices
from replenish.lab.report.markdown import markdown
from replenish.lab.report.page import html
from replenish.lab.report.reading import RunRecord, read_runs
from replenish.lab.report.samplers import samplers_section
from replenish.lab.report.tables import FULL_SCALE, table2, table3
from replenish.lab.whole_files import write_whole

#: A config by scale and by the name of its experiment.
Experiments = Mapping[str, Mapping[str, RunConfig]]

TITLE = "Sequenced-replacement sampling: what was run"
PAGE_NAME = "report.html"
_INTRODUCTION = (
    "What these runs say about sequenced-replacement sampling (SRS), beside what the paper prints. Everything here is "
    "made from the run folders alone; rows that do not reproduce the paper stand like the others."
)
_METHOD = (
    "Errors are test errors at the last epoch, in percent, and differences are in points. No checkpoint is chosen: the "
    "best epoch is shown for information only, since it is chosen on the test set and so flatters every row.",
    "A median has an interval between two of the values themselves, which assumes nothing about their distribution. "
    "Its exact coverage is printed: with five seeds, from the smallest to the largest, 93.75 %; from six seeds on, "
    "95 % or more. A mean has Student's 95 % interval.",
    "Differences are taken seed by seed, over the seeds that both sides finished: runs with one seed share their "
    "initial weights. The interval is Student's. P-values of one table are adjusted together by Holm's method.",
    "How many more seeds would settle a sign is a plan, no promise: the number at which the interval would be narrower "
    "than the difference, if the mean and the spread stay as they are.",
)


@dataclass(frozen=True)
class Report:
    """A report in its two forms."""

    html: str
    markdown: str


def make_report(
    runs: Sequence[RunRecord], experiments: Experiments, title: str = TITLE, *, page_name: str = PAGE_NAME
) -> Report:
    """Return the report of some runs: a function of them alone, whatever their order.

    Args:
        runs: What `read_runs` read.
        experiments: The configs of the paper's experiments, by scale and name. A run belongs to every experiment whose
            config it has, apart from the seed; runs of none are compared by recipe.
        title: The heading.
        page_name: The file name that the page will have, ending in `.html`; the Markdown links to it.

    Raises:
        ValueError: There are no runs.

    Example:
        >>> config = RunConfig(dataset="digits", model="wrn-10-1", epochs=4)
        >>> report = make_report([RunRecord("a/seed0", config, (), None)], {})
        >>> "a/seed0: 0 of 4 epochs" in report.html
        True
    """
    document = make_document(runs, experiments, title)
    return Report(html(document, str(Path(page_name).with_suffix(".md"))), markdown(document, page_name))


def write_report(
    directory: str | os.PathLike[str],
    out: str | os.PathLike[str] | None = None,
    *,
    experiments: Experiments,
    title: str = TITLE,
) -> tuple[Path, Path]:
    """Write the report of the runs below a directory, and return the paths of the page and of the Markdown.

    Args:
        directory: Where the runs are.
        out: The page's path, ending in `.html`; the Markdown goes beside it. None for `report.html` in `directory`.
        experiments: As for `make_report`.
        title: The heading.

    Raises:
        OSError: Something cannot be read or written.
        ValueError: There are no runs, a file of theirs is garbled, or `out` does not end in `.html`.
    """
    page = Path(directory) / PAGE_NAME if out is None else Path(out)
    if page.suffix != ".html":
        raise ValueError(f"out should be a file name that ends in .html, but got {str(page)!r}")
    runs = read_runs(directory)
    if not runs:
        raise ValueError(
            f"there are no runs in {directory}: no folder below it has a config.json; make some with `replenish run`"
        )
    report = make_report(runs, experiments, title, page_name=page.name)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_whole(page, report.html.encode())
    write_whole(page.with_suffix(".md"), report.markdown.encode())
    return page, page.with_suffix(".md")


def make_document(runs: Sequence[RunRecord], experiments: Experiments, title: str = TITLE) -> Document:
    """Return the content of a report, before it is a page or Markdown."""
    if not runs:
        raise ValueError("runs should hold at least one run, but got none")
    kept, repeats = without_repeats(runs)
    sections = []
    of_experiments: set[RunConfig] = set()
    for scale, configs in experiments.items():
        if groups := by_experiment(kept, configs):
            of_experiments |= {group.config.with_seed(0) for group in groups.values()}
            sections.append(_section_of(scale, groups))
    number = 0
    for samplers in by_recipe(kept):
        # A recipe of the experiments alone is told above; with a sampler of its own it is told whole.
        if any(group.config not in of_experiments for group in samplers.values()):
            number += 1
            sections.append(samplers_section(samplers, f"samplers-{number}"))
    sections += [inventory(kept), Section("how", "How the numbers are made", paragraphs=_METHOD)]
    return Document(title, _INTRODUCTION, facts(kept), notices(kept, repeats), tuple(sections))


def scale_section(scale: str, runs: Sequence[RunRecord], experiments: Mapping[str, RunConfig]) -> Section:
    """Return the section of one scale alone: the paper's tables, figures and claims over the runs of its experiments.

    Args:
        scale: The name of the scale.
        runs: Runs, also others.
        experiments: The configs of the scale's experiments, by name.

    Raises:
        ValueError: None of the runs belongs to one of them.
    """
    groups = by_experiment(without_repeats(runs)[0], experiments)
    if not groups:
        raise ValueError(f"runs should hold a run of an experiment at the scale {scale}, but got none")
    return _section_of(scale, groups)


def _section_of(scale: str, groups: Mapping[str, Group]) -> Section:
    pairs = claims(groups)
    made = findings(pairs, f"{scale}-finding", comparable=scale == FULL_SCALE)
    blocks: list[Table | Figure | None] = [
        table3(groups, scale),
        table2(groups, scale),
        differences_table(made, pairs, f"{scale}-differences") if made else None,
        paper_figure(paper.FIGURE2, groups, scale),
        paper_figure(paper.FIGURE3, groups, scale),
    ]
    return Section(
        name=f"scale-{scale}",
        title=f"The paper's experiments at the scale {scale}",
        paragraphs=_scale_words(scale, groups),
        findings=made,
        blocks=tuple(block for block in blocks if block is not None),
    )


def _scale_words(scale: str, groups: Mapping[str, Group]) -> tuple[str, ...]:
    configs = [group.config for group in groups.values()]
    data = "; ".join(sorted({data_words(config) for config in configs}))
    networks = listed(sorted({config.model for config in configs}))
    epochs = listed(str(count) for count in sorted({config.epochs for config in configs}))
    said = f"Data: {data}. Networks: {networks}. Effective epochs: {epochs}."
    if scale == FULL_SCALE:
        return (said,)
    return (
        said,
        "This is not the paper's scale: data, networks or epochs are smaller, so our errors cannot be set against the "
        "paper's. Differences between rows can, and they speak for this scale alone.",
    )
