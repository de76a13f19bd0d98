"""An answer as a page: verdicts on a forest, every seed joined by pair, the numbers, and curves where there are any."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path

from replenish.lab.atomic_files import write_atomically
from replenish.lab.comparing.question import Answer
from replenish.lab.comparing.verdict import Verdict
from replenish.lab.show import (
    NOTHING,
    Cell,
    Column,
    Fact,
    Figure,
    Finding,
    Notice,
    Origin,
    Page,
    Section,
    Table,
    pairs_figure,
)
from replenish.lab.show.page import page_html

_STATES = {"better": "difference", "worse": "difference", "equivalent": "equivalent", "undecided": "open"}


def answer_page(
    answer: Answer,
    title: str,
    paragraphs: Sequence[str] = (),
    *,
    command: str = "",
    origins: Sequence[Origin] = (),
    figures: Sequence[Figure | None] = (),
    differ_in: str = "the order of their data alone",
) -> Page:
    """Return the page of an answer: what was trained and how, what was found, and what else there is to see of it."""
    question = answer.question
    caption = f"{question.metric} of every run; a line joins the runs of one seed."
    kept = {order: values for order, values in answer.values.items() if values}
    looks = {order: order for order in kept}
    pairs = [pairs_figure(kept, looks, question.metric, "seeds", caption)] if len(kept) > 1 else []
    section = Section(
        "answer",
        title,
        tuple(paragraphs),
        tuple(_finding(verdict, answer) for verdict in answer.verdicts),
        tuple(block for block in (_table(answer, origins), *figures, *pairs) if block is not None),
        command,
    )
    warnings = (*answer.warnings, *([f"stopped: {answer.stopped}"] if answer.stopped else []))
    notices = (Notice("Before you read on", warnings),) if warnings else ()
    lead = (
        f"Trainings that differ in {differ_in}, paired by seed. Differences are taken seed by seed, and a verdict "
        f"rests on their interval."
    )
    return Page("Which order is better?", lead, "Replenish · comparison", _facts(answer), (section,), notices)


def write_page(page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page to a file, whole or not at all, and return where."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, page_html(page).encode())
    return path


def _facts(answer: Answer) -> tuple[Fact, ...]:
    found = [Fact(verdict.outcome, f"{verdict.first} against {verdict.second}") for verdict in answer.verdicts]
    return (*found, Fact(str(max(verdict.difference.n for verdict in answer.verdicts)), "pairs of runs"))


def _finding(verdict: Verdict, answer: Answer) -> Finding:
    return Finding(
        name=f"{verdict.first}-{verdict.second}",
        first=verdict.first,
        second=verdict.second,
        sentence=verdict.sentence,
        state="unknown" if verdict.interval is None else _STATES[verdict.outcome],
        difference=dataclasses.replace(verdict.difference, interval=verdict.interval),
        order=verdict.first,
        unit=answer.question.unit,
        higher_is_better=answer.question.higher_is_better,
    )


def _table(answer: Answer, origins: Sequence[Origin]) -> Table:
    def mean(order: str) -> Cell:
        found = answer.mean(order)
        if found is None:
            return Cell(NOTHING, ("n = 0",))
        interval = found.interval
        ends = "no interval" if interval is None else f"{interval.low:.4g} to {interval.high:.4g}"
        return Cell(f"{found.value:.4g}", (f"n = {found.n}", ends))

    def beside(what: str) -> Column:
        def cell(order: str) -> str:
            found = answer.mean_besides(what, order)
            return NOTHING if found is None else f"{found:.4g}"

        return Column(what, cell, "mean")

    columns = [Column("Order", str, numeric=False), Column(answer.question.metric, mean, "mean, n, 95 % interval")]
    columns += [beside(what) for what in answer.besides]
    subjects = [(order, order) for order in answer.question.orders]
    return Table("orders", "The numbers", columns, subjects, "Over the seeds that finished.", origins=origins)
