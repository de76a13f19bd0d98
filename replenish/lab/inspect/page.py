"""An inspection as a page: figures, tables, charts with their data, and the command that makes it again."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from replenish import __version__
from replenish.lab.inspect.charts import figures
from replenish.lab.inspect.results import COMPARED, Inspection
from replenish.lab.inspect.tables import lowest_to_highest, tables
from replenish.lab.show import Fact, Page, Section
from replenish.lab.show.page import page_html
from replenish.lab.show.png import figures_png


def page(inspection: Inspection, command: Sequence[str]) -> str:
    """Return the page as HTML that needs nothing else; the words of the command make it again."""
    order = inspection.order
    again = (
        f"replenish {__version__}; seed {order.seed}; random stream {order.config()['stream']}. "
        "The same command draws the same."
    )
    return page_html(
        Page(
            title=f"What sequenced replacement draws: N = {order.num_samples:,}, B = {order.batch_size:,}",
            lead=(
                f"{_number(order.num_samples, 'sample')}, {order.batch_size:,} a step, from a pool of "
                f"{_number(order.pool_size, 'slot')}: {_number(inspection.epochs, 'effective epoch')} of SRS, beside "
                f"its closed forms and beside {_beside(inspection)}."
            ),
            kicker="Replenish · inspect",
            facts=_facts(inspection),
            sections=(
                Section("charts", "What it looks like", blocks=figures(inspection)),
                Section("tables", "In numbers", blocks=tables(inspection)),
                Section("again", "To make this page again", (again,), code=shlex.join(command)),
            ),
        )
    )


def picture(inspection: Inspection) -> bytes:
    """Return the charts as a PNG."""
    order = inspection.order
    heading = (
        f"N = {order.num_samples:,}, B = {order.batch_size:,}, pool of {order.pool_size:,}, "
        f"{inspection.epochs} effective epochs, seed {order.seed}"
    )
    return figures_png(figures(inspection), heading)


def _facts(inspection: Inspection) -> tuple[Fact, ...]:
    """Return three figures that say most."""
    srs, replacement = inspection.found["SRS"], inspection.found["replacement"]
    identity, shuffled = inspection.first_class
    return (
        Fact(
            f"{100 * srs.unseen[-1]:.1f} %",
            "of the samples are not in the last epoch",
            f"closed form {100 * inspection.laws.unseen[-1]:.1f} %; replacement {100 * replacement.unseen[-1]:.1f} %; "
            "reshuffling 0 %",
        ),
        Fact(
            f"{srs.count_spread[-1]:.2f}",
            f"is the variance of the draws of a sample in {_number(inspection.epochs, 'epoch')}",
            f"closed form {inspection.laws.count_spread:.2f}; replacement {replacement.count_spread[-1]:.2f}",
        ),
        Fact(
            lowest_to_highest(identity),
            "is the rate of a class over an epoch, if the data are sorted and refilled in their own order",
            f"closed form {lowest_to_highest(inspection.laws.class_rates)}; with the default, a shuffled sequence, "
            f"{lowest_to_highest(shuffled)}",
        ),
    )


def _beside(inspection: Inspection) -> str:
    others = [name for name in inspection.found if name not in ("SRS", *COMPARED)]
    return f"reshuffling, replacement sampling and {others[0]}" if others else "reshuffling and replacement sampling"


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
