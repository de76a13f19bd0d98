"""An answer as a page: verdicts on a forest, every seed joined by pair, the numbers, and curves where there are any."""

from __future__ import annotations

from collections.abc import Sequence

from replenish.lab.comparing.answer import Answer, digits
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
        tuple(Finding(f"{each.first}-{each.second}", each, order=each.first) for each in answer.verdicts),
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


def _facts(answer: Answer) -> tuple[Fact, ...]:
    found = [Fact(verdict.outcome, f"{verdict.first} against {verdict.second}") for verdict in answer.verdicts]
    return (*found, Fact(str(max(verdict.difference.n for verdict in answer.verdicts)), "pairs of runs"))


def _table(answer: Answer, origins: Sequence[Origin]) -> Table:
    def mean(order: str) -> Cell:
        found = answer.mean(order)
        if found is None:
            return Cell(NOTHING, ("n = 0",))
        interval = found.interval
        ends = "no interval" if interval is None else f"{digits(interval.low)} to {digits(interval.high)}"
        return Cell(digits(found.value), (f"n = {found.n}", ends))

    def beside(what: str) -> Column:
        def cell(order: str) -> str:
            found = answer.mean_besides(what, order)
            return NOTHING if found is None else digits(found)

        return Column(what, cell, "mean")

    columns = [Column("Order", str, numeric=False), Column(answer.question.metric, mean, "mean, n, 95 % interval")]
    columns += [beside(what) for what in answer.besides]
    subjects = [(order, order) for order in answer.question.orders]
    return Table("orders", "The numbers", columns, subjects, "Over the seeds that finished.", origins=origins)
