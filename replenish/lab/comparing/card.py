"""An answer as a card to show to others: a PNG of 1200 x 630 pixels, the size of a link's preview."""

from __future__ import annotations

import io
import textwrap
from typing import TYPE_CHECKING, Any

from replenish.lab.comparing.answer import Answer
from replenish.lab.show.svg import sides
from replenish.lab.verdict import Verdict
from replenish.palette import COLOURS, look_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTH, HEIGHT = 1200, 630
#: Verdicts that have room; a line names how many more there are.
MOST_VERDICTS = 3
INK, SOFT, HAIR, FAINT, SHEET, ACCENT = (
    COLOURS[name][0] for name in ("ink", "soft", "hair", "faint", "sheet", "accent")
)


def card_png(answer: Answer, title: str) -> bytes:
    """Return the card: the verdicts in words, their intervals with named sides, and every seed's pair."""
    from matplotlib.figure import Figure

    verdicts = answer.verdicts[:MOST_VERDICTS]
    canvas = Figure(figsize=(WIDTH / 100, HEIGHT / 100), dpi=100, facecolor=SHEET)
    canvas.text(0.04, 0.935, f"Replenish · {title}", size=13, color=SOFT, va="center")
    height, size = 0.87, 17 if len(verdicts) == 1 else 13
    for verdict in verdicts:
        lines = textwrap.wrap(verdict.sentence, 84 if len(verdicts) == 1 else 100)
        canvas.text(0.04, height, "\n".join(lines), size=size, color=INK, va="top", weight="bold", linespacing=1.3)
        height -= (0.058 if len(verdicts) == 1 else 0.044) * len(lines) + 0.018
    height = min(height, 0.78)
    _draw_intervals(canvas.add_axes((0.05, 0.17, 0.5, height - 0.22)), verdicts)
    _draw_pairs(canvas.add_axes((0.64, 0.17, 0.32, height - 0.22)), answer)
    others = len(answer.verdicts) - len(verdicts)
    n = min(verdict.difference.n for verdict in verdicts)
    foot = f"{answer.question.metric}, n = {n} seeds, paired. Every line on the right is one seed."
    foot += f" {others} more verdicts are on the page." if others else ""
    canvas.text(0.04, 0.035, foot, size=11.5, color=SOFT, va="center")
    content = io.BytesIO()
    canvas.savefig(content, format="png", dpi=100, facecolor=SHEET)
    return content.getvalue()


def _draw_intervals(axis: Axes, verdicts: tuple[Verdict, ...]) -> None:
    """Draw the interval of each verdict on one axis."""
    margin = verdicts[0].rule.margin
    if margin is not None:
        axis.axvspan(-margin, margin, color=FAINT, zorder=0)
        axis.text(0.5, 1.02, f"grey: margin ±{margin:g}", transform=axis.transAxes, ha="center", size=11, color=SOFT)
    axis.axvline(0, color=INK, linewidth=1)
    reach = margin or 0.0
    for place, verdict in enumerate(verdicts):
        colour, mean = look_of(verdict.first).light, verdict.difference.mean
        if mean is None:
            continue
        ends = [mean]
        if verdict.interval is not None:
            ends += [verdict.interval.low, verdict.interval.high]
            axis.hlines(-place, ends[1], ends[2], color=colour, linewidth=7, alpha=0.45)
        axis.plot([mean], [-place], "o", color=colour, markersize=12)
        axis.annotate(
            f"{verdict.first} minus {verdict.second}: {verdict.numbers}",
            (0.5, -place + 0.22),
            xycoords=("axes fraction", "data"),
            ha="center",
            size=12,
            color=INK,
            bbox={"facecolor": SHEET, "edgecolor": "none", "pad": 2},
        )
        reach = max([reach, *map(abs, ends)])
    reach = 1.15 * reach or 1.0
    axis.set_xlim(-reach, reach)
    axis.set_ylim(-len(verdicts) + 0.5, 0.6)
    axis.set_yticks([])
    left, right = sides(verdicts[0]) if len(verdicts) == 1 else ("", "")
    if len(verdicts) > 1:  # the second is the same for all
        named = ("the other order", verdicts[0].second)
        left, right = reversed(named) if verdicts[0].rule.higher_is_better else named
    unit = verdicts[0].rule.unit
    axis.text(0, -0.16, f"← {left} better", transform=axis.transAxes, size=12, color=SOFT)
    axis.text(1, -0.16, f"{right} better →", transform=axis.transAxes, size=12, color=SOFT, ha="right")
    axis.text(0.5, -0.16, unit, transform=axis.transAxes, size=12, color=SOFT, ha="center")
    _plain(axis)


def _draw_pairs(axis: Axes, answer: Answer) -> None:
    """Draw the value of every run, a line for each seed."""
    orders = [order for order in answer.question.orders if answer.values[order]]
    for seed in sorted({seed for order in orders for seed in answer.values[order]}):
        known = [(at, answer.values[order][seed]) for at, order in enumerate(orders) if seed in answer.values[order]]
        axis.plot(*zip(*known, strict=True), color=SOFT, linewidth=1, alpha=0.6, zorder=1)
    for place, order in enumerate(orders):
        values = list(answer.values[order].values())
        axis.plot([place] * len(values), values, "o", color=look_of(order).light, markersize=8, zorder=2)
    axis.set_xlim(-0.4, len(orders) - 0.6)
    axis.set_xticks(range(len(orders)), orders, size=12 if len(orders) < 4 else 9, color=INK)
    axis.set_title(answer.question.metric, size=12, color=SOFT, loc="left")
    axis.grid(axis="y", color=HAIR, linewidth=0.8)
    _plain(axis)


def _plain(axis: Any) -> None:
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)
    axis.spines["bottom"].set_color(HAIR)
    axis.tick_params(colors=SOFT, length=0)
