"""An inspection as one HTML page that needs nothing else: figures, tables, charts with their data, and the command."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape

from replenish import __version__
from replenish.lab.inspection.charts import Chart, charts
from replenish.lab.inspection.results import Inspection
from replenish.lab.inspection.style import STYLE
from replenish.lab.inspection.svg import svg, swatch
from replenish.lab.inspection.tables import LONG_RUN, InspectionTable, class_table, draws_table, lowest_to_highest


def page(inspection: Inspection, command: Sequence[str]) -> str:
    """Return the page.

    Args:
        inspection: What was found.
        command: The words of the command that makes the page again.
    """
    order = inspection.order
    sizes = f"N = {order.num_samples:,}, B = {order.batch_size:,}"
    tables = [
        (draws_table(inspection), LONG_RUN),
        (class_table(inspection), "Identity is measured from a step on at which its pool has settled."),
    ]
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en">',
            '<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>What SRS draws: {sizes}</title><style>{STYLE}</style></head>",
            "<body><main>",
            "<header><h1>What sequenced replacement draws</h1>",
            f"<p>{_number(order.num_samples, 'sample')}, {order.batch_size:,} a step, from a pool of "
            f"{_number(order.pool_size, 'slot')}: {_number(inspection.epochs, 'effective epoch')} of SRS, beside its "
            "closed forms and beside reshuffling and replacement sampling.</p></header>",
            _facts(inspection),
            '<div class="charts">',
            *(_figure(chart) for chart in charts(inspection)),
            "</div>",
            *(_table(table, note, number) for number, (table, note) in enumerate(tables)),
            '<section class="card" aria-labelledby="again"><h2 id="again">To make this page again</h2>',
            f"<pre><code>{escape(shlex.join(command))}</code></pre>",
            f'<p class="note">replenish {escape(__version__)}; seed {order.seed}; random stream '
            f"{escape(str(order.config()['stream']))}. The same command draws the same.</p></section>",
            "</main></body></html>",
            "",
        ]
    )


def _facts(inspection: Inspection) -> str:
    """Return three figures that say most."""
    srs, replacement = inspection.found["SRS"], inspection.found["replacement"]
    identity, shuffled = inspection.identity.classes, srs.classes
    assert identity is not None  # both were measured with labels
    assert shuffled is not None
    facts = [
        (
            f"{100 * srs.unseen[-1]:.1f} %",
            "of the samples are not in the last epoch",
            f"closed form {100 * inspection.laws.unseen[-1]:.1f} %; replacement {100 * replacement.unseen[-1]:.1f} %; "
            "reshuffling 0 %",
        ),
        (
            f"{srs.count_spread[-1]:.2f}",
            f"is the variance of the draws of a sample in {_number(inspection.epochs, 'epoch')}",
            f"closed form {inspection.laws.count_spread:.2f}; replacement {replacement.count_spread[-1]:.2f}",
        ),
        (
            lowest_to_highest(identity.rates[:, 0]),
            "is the rate of a class over an epoch, if the data are sorted and refilled in their own order",
            f"closed form {lowest_to_highest(inspection.laws.class_rates)}; with the default, a shuffled sequence, "
            f"{lowest_to_highest(shuffled.rates[:, 0])}",
        ),
    ]
    items = (
        f'<li><strong>{figure}</strong>{what}<span class="other">{beside}</span></li>' for figure, what, beside in facts
    )
    return f'<ul class="facts" aria-label="The main figures">{"".join(items)}</ul>'


def _figure(chart: Chart) -> str:
    legend = "".join(f"<li>{swatch(chart, series)}{escape(series.name)}</li>" for series in chart.series)
    return (
        f'<figure id="{chart.name}"><h2 id="{chart.name}-title">{escape(chart.title)}</h2>'
        f'<ul class="legend">{legend}</ul>{svg(chart)}'
        f'<figcaption id="{chart.name}-caption">{escape(chart.caption)}</figcaption>{_data(chart)}</figure>'
    )


def _data(chart: Chart) -> str:
    """Return the chart's values as a table to be unfolded."""
    values = [dict(series.known()) for series in chart.series]
    places = sorted({at for known in values for at in known})
    rows = [(f"{at:g}", *(f"{known[at]:.6g}" if at in known else "" for known in values)) for at in places]
    table = _grid(chart.x_label, tuple(series.name for series in chart.series), rows)
    what = f"The data of: {chart.title}"
    return f"<details><summary>The data ({escape(chart.y_label)})</summary>{_scrolling(what, table)}</details>"


def _table(table: InspectionTable, note: str, number: int) -> str:
    title = escape(table.title)
    return (
        f'<section class="card rows" aria-labelledby="table-{number}"><h2 id="table-{number}">{title}</h2>'
        f'{_scrolling(table.title, _grid("", table.columns, table.rows))}<p class="note">{escape(note)}</p></section>'
    )


def _grid(corner: str, columns: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """Return a table. The roles are those that it has anyway, but for browsers that forget them when CSS stacks it."""
    head = "".join(f'<th scope="col" role="columnheader">{escape(column)}</th>' for column in columns)
    body = []
    for label, *cells in rows:
        shown = (
            f'<td role="cell" data-column="{escape(column)}">{escape(cell)}</td>'
            for column, cell in zip(columns, cells, strict=True)
        )
        body.append(f'<tr role="row"><th scope="row" role="rowheader">{escape(label)}</th>{"".join(shown)}</tr>')
    top = f'<tr role="row"><td role="cell">{escape(corner)}</td>{head}</tr>'
    return (
        f'<table role="table"><thead role="rowgroup">{top}</thead>'
        f'<tbody role="rowgroup">{"".join(body)}</tbody></table>'
    )


def _scrolling(what: str, table: str) -> str:
    """Return a table that scrolls by itself where the page is narrow, with the keyboard too."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{escape(what)}">{table}</div>'


def _number(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
