"""What a comparison leaves: a page, a card to show to others, and a record in JSON with every look that was taken."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from itertools import zip_longest
from operator import itemgetter
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import write_atomically
from replenish.lab.comparing.answer import Answer, digits
from replenish.lab.comparing.card import card_png
from replenish.lab.comparing.question import Question
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
    question, verdicts = answer.question, answer.verdicts
    kept = {order: values for order, values in answer.values.items() if values}
    pairs = None
    if len(kept) > 1:
        caption = f"{question.metric} of every run; a line joins the runs of one seed."
        pairs = pairs_figure(kept, {order: order for order in kept}, question.metric, "seeds", caption)
    shown = (pairs, _seeds_table(answer), _orders_table(answer, origins), *figures)
    verdict_section = Section(
        "verdict",
        "The verdict",
        tuple(filter(None, [answer.advice])),
        tuple(Finding(f"{each.first}-{each.second}", each, order=each.first) for each in verdicts),
        tuple(block for block in shown if block is not None),
    )
    proofs = (_proofs_table(answer),) if answer.proofs else ()
    run_section = Section("run", title, (*paragraphs, *filter(None, [answer.assumption])), blocks=proofs, code=command)
    warnings = (*answer.warnings, *([f"stopped: {answer.stopped}"] if answer.stopped else []))
    return Page(
        _headline(answer),
        f"{title}. The trainings differ in {differ_in} and are paired by seed.",
        "Replenish · comparison",
        (
            *(Fact(each.outcome, f"{each.first} against {each.second}") for each in verdicts),
            Fact(str(max(each.difference.n for each in verdicts)), "pairs of runs"),
        ),
        (verdict_section, run_section),
        (Notice("Before you read on", warnings),) if warnings else (),
    )


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
    columns = {order: {seed: digits(value) for seed, value in found.items()} for order, found in answer.values.items()}
    for verdict in answer.verdicts:
        found = zip(verdict.difference.seeds, verdict.difference.differences, strict=True)
        columns[f"{verdict.first} minus {verdict.second}"] = {seed: verdict.number(value) for seed, value in found}
    seeds = sorted({seed for values in answer.values.values() for seed in values})
    rows = [(str(seed), *(by_seed.get(seed, NOTHING) for by_seed in columns.values())) for seed in seeds]
    return _table("by-seed", "Seed by seed", ["Seed", *columns], rows, answer.question.metric)


def _orders_table(answer: Answer, origins: Sequence[Origin]) -> Table:
    """Return the means by order."""
    besides = {what: answer.means_besides(what) for what in answer.besides}
    rows: list[tuple[str | Cell, ...]] = []
    for order in answer.question.orders:
        cell = Cell(NOTHING, ("n = 0",))
        if (mean := answer.mean(order)) is not None:
            ends = mean.interval
            interval = "no interval" if ends is None else f"{digits(ends.low)} to {digits(ends.high)}"
            cell = Cell(digits(mean.value), (f"n = {mean.n}", interval))
        rows.append((order, cell, *(digits(means[order]) if order in means else NOTHING for means in besides.values())))
    heads = ["Order", answer.question.metric, *besides]
    notes = ["", "mean, n, 95 % interval", *("mean" for _ in besides)]
    return _table("orders", "The numbers", heads, rows, "Over the seeds that finished.", notes=notes, origins=origins)


def _proofs_table(answer: Answer) -> Table:
    """Return what the loaders of the first run of each order did."""
    caption = "What the first run of each order did to its loaders: the record that the orders were used."
    rows = [(order, str(seed), outcome) for order, seed, outcome in answer.proofs]
    return _table("loaders", "The loaders", ["Order", "Seed", "Loader"], rows, caption, words=(0, 2))


def _table(
    name: str,
    title: str,
    heads: Sequence[str],
    rows: Sequence[tuple[str | Cell, ...]],
    caption: str,
    *,
    notes: Sequence[str] = (),
    words: Sequence[int] = (0,),
    origins: Sequence[Origin] = (),
) -> Table:
    """Return a table of rows; `notes` are beneath the headings, and the columns `words` hold no numbers."""
    columns = [
        Column(head, itemgetter(place), note, numeric=place not in words)
        for place, (head, note) in enumerate(zip_longest(heads, notes, fillvalue=""))
    ]
    return Table(name, title, columns, [(f"{name}-{at}", row) for at, row in enumerate(rows)], caption, origins=origins)


def write_page(answer: Answer, page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page, and beside it the card as a PNG if there is a verdict to show, and return the page's path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    card = path.with_suffix(".png")
    if any(verdict.difference.n for verdict in answer.verdicts):
        write_atomically(card, card_png(answer, page.sections[-1].title))
        page = dataclasses.replace(page, card=card.name)
    write_atomically(path, page_html(page).encode())
    return path


def write_record(answer: Answer, page: Path, **more: Any) -> Path:
    """Write an answer as JSON beside its page, with all looks that were taken so far, and return its path."""
    path = page.with_suffix(".json")
    seeds = sorted({seed for verdict in answer.verdicts for seed in verdict.difference.seeds})
    look = {"seeds": seeds, "anytime": answer.question.rule.anytime}
    looks = [*(each for each in _looks(path) if each != look), look]
    values = {**answer.to_dict(), **more, "page": page.name, "looks": looks}
    write_atomically(path, (json.dumps(values, indent=2, allow_nan=False) + "\n").encode())
    return path


def optional_stopping(question: Question, seeds: Sequence[int], page: Path) -> list[str]:
    """Return a warning if an earlier answer about the same runs looked at other seeds.

    Student's interval is for one look. Whoever looks, adds a seed and looks again finds a difference that is not there
    more often than in one of twenty comparisons.
    """
    looks = [] if question.rule.anytime else _looks(page.with_suffix(".json"))
    others = [look["seeds"] for look in looks if look["seeds"] != sorted(seeds)]
    if not others:
        return []
    return [
        f"an earlier answer about these runs looked at {len(others[-1])} seeds, and this one looks at {len(seeds)}. "
        f"An interval for a fixed number of seeds misses more often than stated if seeds change after a look. Ask for "
        f"one that holds at every look: {question.ask_again}"
    ]


def _looks(path: Path) -> list[dict[str, Any]]:
    try:
        looks = json.loads(path.read_text())["looks"]
        return [{"seeds": list(look["seeds"]), "anytime": bool(look["anytime"])} for look in looks]
    except (OSError, ValueError, TypeError, KeyError):  # not there, or of another program
        return []
