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
from replenish.lab.verdict import Verdict


def answer_page(
    answer: Answer,
    title: str,
    paragraphs: Sequence[str] = (),
    *,
    command: str = "",
    origins: Sequence[Origin] = (),
    figures: Sequence[Figure | None] = (),
    differ_in: str = "the order of their data only",
) -> Page:
    """Return the page of an answer: the verdicts, every seed, and then what was run."""
    question = answer.question
    caption = f"{question.metric} of every run; a line joins the runs of one seed."
    kept = {order: values for order, values in answer.values.items() if values}
    looks = {order: order for order in kept}
    pairs = [pairs_figure(kept, looks, question.metric, "seeds", caption)] if len(kept) > 1 else []
    verdicts = Section(
        "verdict",
        "The verdict",
        tuple(filter(None, [answer.advice])),
        tuple(Finding(f"{each.first}-{each.second}", each, order=each.first) for each in answer.verdicts),
        tuple(
            block for block in (*pairs, _seeds_table(answer), _table(answer, origins), *figures) if block is not None
        ),
    )
    proofs = _proofs_table(answer.proofs)
    run = Section(
        "run",
        title,
        (*paragraphs, *filter(None, [answer.assumption])),
        blocks=(proofs,) if proofs else (),
        code=command,
    )
    warnings = (*answer.warnings, *([f"stopped: {answer.stopped}"] if answer.stopped else []))
    notices = (Notice("Before you read on", warnings),) if warnings else ()
    lead = f"{title}. The trainings differ in {differ_in} and are paired by seed."
    return Page(_headline(answer), lead, "Replenish · comparison", _facts(answer), (verdicts, run), notices)


def _headline(answer: Answer) -> str:
    """Return the verdict in a few words; for several verdicts, the question."""
    if len(answer.verdicts) > 1:
        return f"Which order is better: {', '.join(answer.question.orders[1:])} or {answer.question.orders[0]}?"
    (verdict,) = answer.verdicts
    if verdict.outcome == "equivalent":
        return f"{verdict.first} and {verdict.second} are equivalent within {verdict.rule.margin:g}"
    if verdict.outcome == "undecided":
        return f"Undecided between {verdict.first} and {verdict.second}"
    return f"{verdict.first} is {verdict.outcome} than {verdict.second}"


def _seeds_table(answer: Answer) -> Table:
    """Return the value of every run by seed, and the differences."""

    def value(order: str) -> Column:
        values = answer.values[order]
        return Column(order, lambda seed: digits(values[seed]) if seed in values else NOTHING)

    def difference(verdict: Verdict) -> Column:
        found = dict(zip(verdict.difference.seeds, verdict.difference.differences, strict=True))
        title = f"{verdict.first} minus {verdict.second}"
        return Column(title, lambda seed: verdict.number(found[seed]) if seed in found else NOTHING)

    seeds = sorted({seed for values in answer.values.values() for seed in values})
    columns = [
        Column("Seed", str, numeric=False),
        *map(value, answer.question.orders),
        *map(difference, answer.verdicts),
    ]
    return Table("by-seed", "Seed by seed", columns, [(str(seed), seed) for seed in seeds], answer.question.metric)


def _proofs_table(proofs: Sequence[tuple[str, int, str]]) -> Table | None:
    """Return what the loaders of the first run of each order did."""
    columns = [
        Column("Order", lambda proof: proof[0], numeric=False),
        Column("Seed", lambda proof: str(proof[1])),
        Column("Loader", lambda proof: proof[2], numeric=False),
    ]
    caption = "What the first run of each order did to its loaders: the record that the orders were used."
    subjects = [(f"{order}-{number}", proof) for number, proof in enumerate(proofs) for order in proof[:1]]
    return Table("loaders", "The loaders", columns, subjects, caption) if proofs else None


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
