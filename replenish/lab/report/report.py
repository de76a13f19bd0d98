"""From run folders to the two files of a report."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from replenish.lab.atomic_files import write_atomically
from replenish.lab.config import RunConfig
from replenish.lab.report.grouping import by_experiment, by_recipe, without_repeats
from replenish.lab.report.inventory import facts, inventory, notices
from replenish.lab.report.rules import Rules, read_rules
from replenish.lab.report.sections import experiments_section, orders_section, verdicts_section
from replenish.lab.report.words import recipe_titles
from replenish.lab.runs import RunRecord, read_runs
from replenish.lab.show import Page, Section
from replenish.lab.show.markdown import page_markdown
from replenish.lab.show.page import page_html

#: A config by scale and by the name of its experiment.
Experiments = Mapping[str, Mapping[str, RunConfig]]

_TITLE = "What the runs show about sequenced-replacement sampling"
PAGE_NAME = "report.html"
_METHOD = (
    "Errors are test errors at the last epoch, in percent, and differences are in points. No checkpoint is chosen: the "
    "best epoch is shown for information only, since it is chosen on the test set and so flatters every row.",
    "Averages are means with Student's 95 % interval. The paper reports medians of five runs.",
    "Differences are taken seed by seed, over the seeds that both sides finished: runs with one seed share their "
    "initial weights. A difference is better or worse if Student's 95 % interval excludes 0 and the p-value, adjusted "
    "for all comparisons of its table by Holm's method, is below 0.05. It is equivalent if its interval lies within "
    "the margin that was stated for the runs, and undecided otherwise. Without a stated margin nothing is equivalent.",
)


@dataclass(frozen=True)
class Report:
    """A report in its two forms."""

    html: str
    markdown: str


def make_report(
    runs: Sequence[RunRecord], experiments: Experiments, *, rules: Rules | None = None, page_name: str = PAGE_NAME
) -> Report:
    """Return the report of some runs: a function of them alone, whatever their order.

    Args:
        runs: What `read_runs` read.
        experiments: The configs of the paper's experiments, by scale and name. A run belongs to every experiment whose
            config it has, apart from the seed; runs of none are compared by recipe.
        rules: By which rule each pair is judged; by default without a margin.
        page_name: The file name that the page will have, ending in `.html`; the Markdown links to it.

    Raises:
        ValueError: There are no runs.

    Example:
        >>> config = RunConfig(dataset="digits", model="wrn-10-1", epochs=4)
        >>> report = make_report([RunRecord("a/seed0", config, (), None)], {})
        >>> "a/seed0: 0 of 4 epochs" in report.html
        True
    """
    page = report_page(runs, experiments, rules)
    return Report(page_html(page, str(Path(page_name).with_suffix(".md"))), page_markdown(page, page_name))


def write_report(
    directory: str | os.PathLike[str], out: str | os.PathLike[str] | None = None, *, experiments: Experiments
) -> tuple[Path, Path]:
    """Write the report of the runs below a directory, and return the paths of the page and of the Markdown.

    Args:
        directory: Where the runs are.
        out: The page's path, ending in `.html`; the Markdown goes beside it. None for `report.html` in `directory`.
        experiments: As for `make_report`.

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
    report = make_report(runs, experiments, rules=read_rules(directory), page_name=page.name)
    page.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(page, report.html.encode())
    write_atomically(page.with_suffix(".md"), report.markdown.encode())
    return page, page.with_suffix(".md")


def report_page(runs: Sequence[RunRecord], experiments: Experiments, rules: Rules | None = None) -> Page:
    """Return the content of a report, before it is HTML or Markdown; arguments as for `make_report`."""
    if not runs:
        raise ValueError("runs should hold at least one run, but got none")
    kept, repeats = without_repeats(runs)
    sections: list[Section] = []
    of_experiments: set[RunConfig] = set()
    for scale, configs in experiments.items():
        if groups := by_experiment(kept, configs):
            of_experiments |= {group.config.with_seed(0) for group in groups.values()}
            sections.append(experiments_section(scale, groups, rules))
    # A recipe of the experiments only is in their section; with an order of its own it has a section.
    others = [
        orders for orders in by_recipe(kept) if any(group.config not in of_experiments for group in orders.values())
    ]
    titles = recipe_titles([next(iter(orders.values())).config for orders in others])
    for number, (orders, title) in enumerate(zip(others, titles, strict=True), start=1):
        sections.append(orders_section(orders, f"orders-{number}", title, rules))
    first = [verdicts_section(sections)] if any(section.findings for section in sections) else []
    sections += [inventory(kept), Section("how", "How the numbers are made", paragraphs=_METHOD)]
    lead = (
        "The verdicts come first, then every table and figure in sections to open. All is made from the run folders; "
        "rows that do not reproduce the paper are shown like the others."
    )
    folded = [replace(section, folded=len(sections) > 3) for section in sections]
    return Page(_TITLE, lead, "Replenish · report", facts(kept), (*first, *folded), notices(kept, repeats))
