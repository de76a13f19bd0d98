"""The files of a comparison: a page, a card to share, and a JSON record with every look at the results."""

from __future__ import annotations

import io
import json
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from replenish.lab.atomic_files import write_atomically
from replenish.lab.comparing.answer import Answer, digits
from replenish.lab.comparing.question import Question
from replenish.lab.show import (
    NOTHING,
    Cell,
    Fact,
    Figure,
    Finding,
    Notice,
    Page,
    Section,
    Table,
    pairs_figure,
)
from replenish.lab.show.chart import common_reach
from replenish.lab.show.page import page_html, unbroken
from replenish.lab.show.svg import sides
from replenish.lab.verdict import Verdict
from replenish.palette import COLOURS, look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Picture

#: The size of the card in pixels, which fits a link's preview.
WIDTH, HEIGHT = 1200, 630
INK, SOFT, HAIR, FAINT, SHEET = (COLOURS[name][0] for name in ("ink", "soft", "hair", "faint", "sheet"))


def write_page(
    answer: Answer,
    title: str,
    paragraphs: Sequence[str] = (),
    *,
    command: str = "",
    figures: Sequence[Figure | None] = (),
    differ_in: str = "the order of their data only",
) -> None:
    """Write the page of an answer: the verdicts, every seed, and then what was run.

    If there is a pair of runs to show, also write a card: a PNG with the same name.
    """
    path = answer.page
    assert path is not None
    path.parent.mkdir(parents=True, exist_ok=True)
    question, verdicts, card = answer.question, answer.verdicts, ""
    if verdicts[0].difference.n:
        card = path.with_suffix(".png").name
        write_atomically(path.with_name(card), card_png(answer, title))
    kept = {order: values for order, values in answer.values.items() if values}
    pairs = None
    if len(kept) > 1:
        caption = f"{question.metric} of every run; a line joins the runs of one seed."
        pairs = pairs_figure(kept, {order: order for order in kept}, question.metric, "seeds", caption)
    shown = (pairs, _seeds_table(answer), _orders_table(answer), *figures)
    findings = tuple(Finding(f"{each.first}-{each.second}", each, order=each.first) for each in verdicts)
    sections = [Section("verdict", "The verdict", findings=findings)]
    if answer.advice:
        sections.append(Section("next", "What to do next", (answer.advice,), code=answer.next_command))
    blocks = tuple(block for block in shown if block is not None)
    sections.append(Section("numbers", "Seeds and means", blocks=blocks))
    proofs = (_proofs_table(answer),) if answer.proofs else ()
    about = (*paragraphs, *filter(None, [answer.assumption]))
    sections.append(Section("run", title, about, blocks=proofs, code=command))
    warnings = (*answer.warnings, *([f"stopped: {answer.stopped}"] if answer.stopped else []))
    headline = verdicts[0].sentence.partition(": ")[0]
    if len(verdicts) > 1:
        headline = f"Which order is better: {', '.join(question.orders[1:])} or {question.orders[0]}?"
    page = Page(
        headline,
        f"{title}. The trainings differ in {differ_in} and are paired by seed.",
        "Replenish · comparison",
        (
            *(Fact(each.outcome, f"{each.first} against {each.second}") for each in verdicts),
            Fact(str(max(each.difference.n for each in verdicts)), "pairs of runs"),
        ),
        tuple(sections),
        (Notice("Before you read on", warnings),) if warnings else (),
        card=card,
    )
    write_atomically(path, page_html(page).encode())


def _seeds_table(answer: Answer) -> Table:
    """Return the table of every run's value by seed, and of the differences."""
    columns = {
        order: {seed: answer.number(value) for seed, value in found.items()} for order, found in answer.values.items()
    }
    for verdict in answer.verdicts:
        found = zip(verdict.difference.seeds, verdict.difference.differences, strict=True)
        columns[f"{verdict.first} minus {verdict.second}"] = {seed: verdict.number(value) for seed, value in found}
    seeds = sorted({seed for values in answer.values.values() for seed in values})
    rows = [(str(seed), *(by_seed.get(seed, NOTHING) for by_seed in columns.values())) for seed in seeds]
    return Table.of_rows("by-seed", "Seed by seed", ["Seed", *columns], rows, answer.question.metric)


def _orders_table(answer: Answer) -> Table:
    """Return the table of means by order."""
    besides = {what: answer.means_besides(what) for what in answer.besides}
    rows: list[tuple[str | Cell, ...]] = []
    for order in answer.question.orders:
        cell = Cell(NOTHING, ("n = 0",))
        if (mean := answer.mean(order)) is not None:
            ends = mean.interval
            interval = "no interval" if ends is None else f"{answer.number(ends.low)} to {answer.number(ends.high)}"
            cell = Cell(answer.number(mean.value), (f"n = {mean.n}", interval))
        rows.append((order, cell, *(digits(means[order]) if order in means else NOTHING for means in besides.values())))
    heads = ["Order", answer.question.metric, *besides]
    notes = ["", "mean, n, 95 % interval", *("mean" for _ in besides)]
    return Table.of_rows("orders", "The numbers", heads, rows, "Over the seeds that finished.", notes=notes)


def _proofs_table(answer: Answer) -> Table:
    """Return the table of what the loaders of the first run of each order did."""
    caption = "What the first run of each order did to its loaders: the record that the orders were used."
    rows = [(order, str(seed), outcome) for order, seed, outcome in answer.proofs]
    return Table.of_rows("loaders", "The loaders", ["Order", "Seed", "Loader"], rows, caption, text_columns=(0, 2))


def write_record(answer: Answer, **more: Any) -> None:
    """Write an answer as JSON next to its page, with all looks so far."""
    assert answer.page is not None
    path = answer.page.with_suffix(".json")
    seeds = sorted({seed for verdict in answer.verdicts for seed in verdict.difference.seeds})
    look = {"seeds": seeds, "anytime": answer.question.rule.anytime}
    looks = [*(each for each in _looks(path) if each != look), look]
    values = {**answer.to_dict(), **more, "page": answer.page.name, "looks": looks}
    write_atomically(path, (json.dumps(values, indent=2, allow_nan=False) + "\n").encode())


def optional_stopping(question: Question, seeds: Sequence[int], page: Path) -> list[str]:
    """Return a warning if an earlier answer about the same runs looked at other seeds.

    Student's interval is for one look. If you look, add a seed and look again, you find a difference that is not there
    in more than one of twenty comparisons.
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
    except (OSError, ValueError, TypeError, KeyError):  # missing, or from another program
        return []


def card_png(answer: Answer, title: str) -> bytes:
    """Return the card as a PNG."""
    content = io.BytesIO()
    draw_card(answer, title).savefig(content, format="png", dpi=100, facecolor=SHEET)
    return content.getvalue()


def draw_card(answer: Answer, title: str) -> Picture:
    """Draw the card: the first verdict as a sentence, its interval with named sides, and every seed's pair."""
    from matplotlib.figure import Figure

    verdict, others = answer.verdicts[0], len(answer.verdicts) - 1
    canvas = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=SHEET)
    canvas.text(0.04, 0.935, f"Replenish · {title}", size=13, color=SOFT, va="center")
    sentence = "\n".join(textwrap.wrap(unbroken(verdict.sentence), 72))
    canvas.text(0.04, 0.87, sentence, size=17, color=INK, va="top", weight="bold", linespacing=1.3)
    _draw_interval(canvas.add_axes((0.05, 0.17, 0.5, 0.47)), verdict)
    _draw_pairs(canvas.add_axes((0.64, 0.17, 0.32, 0.47)), verdict, answer)
    foot = f"{answer.question.metric}, n = {verdict.difference.n} seeds, paired. Every line on the right is one seed."
    foot += f" The first of {others + 1} verdicts." if others else ""
    canvas.text(0.04, 0.035, foot, size=11.5, color=SOFT, va="center")
    return canvas


def _draw_interval(axis: Axes, verdict: Verdict) -> None:
    """Draw the mean difference, its interval and the margin."""
    rule, across, colour = verdict.rule, axis.transAxes, look_of(verdict.first).light
    if rule.margin is not None:
        axis.axvspan(-rule.margin, rule.margin, color=FAINT, zorder=0)
        axis.text(0.5, 1.02, f"grey: margin ±{rule.margin:g}", transform=across, ha="center", size=11, color=SOFT)
    axis.axvline(0, color=INK, linewidth=1)
    if (interval := verdict.interval) is not None:
        axis.hlines(0, interval.low, interval.high, color=colour, linewidth=7, alpha=0.45)
    if verdict.difference.mean is not None:
        axis.plot([verdict.difference.mean], [0], "o", color=colour, markersize=12)
    reach = common_reach([Finding(verdict.first, verdict)])
    axis.set_xlim(-reach, reach)
    axis.set_yticks([])
    left, right = sides(verdict)
    axis.text(0, -0.16, f"← {left} better", transform=across, size=12, color=SOFT)
    axis.text(1, -0.16, f"{right} better →", transform=across, size=12, color=SOFT, ha="right")
    axis.text(0.5, -0.16, rule.unit, transform=across, size=12, color=SOFT, ha="center")
    _style_axis(axis)


def _draw_pairs(axis: Axes, verdict: Verdict, answer: Answer) -> None:
    """Draw the values of the pairs, with a line for each seed."""
    orders = (verdict.second, verdict.first)
    for seed in verdict.difference.seeds:
        values = [answer.values[order][seed] for order in orders]
        axis.plot((0, 1), values, color=SOFT, linewidth=1, alpha=0.6, zorder=1)
        for place, order in enumerate(orders):
            axis.plot([place], [values[place]], "o", color=look_of(order).light, markersize=8, zorder=2)
    axis.set_xlim(-0.4, 1.4)
    axis.set_xticks((0, 1), orders, size=12, color=INK)
    axis.set_title(answer.question.metric, size=12, color=SOFT, loc="left")
    axis.grid(axis="y", color=HAIR, linewidth=0.8)
    _style_axis(axis)


def _style_axis(axis: Axes) -> None:
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(HAIR)
    axis.tick_params(colors=SOFT, length=0)
