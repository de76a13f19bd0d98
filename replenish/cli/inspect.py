"""`replenish inspect`: what orders draw, compared with what the theory predicts."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import command_line, errors_as_sentences, output, print_json, working


def inspect(
    context: typer.Context,
    num_samples: Annotated[int, typer.Argument(metavar="N", help="number of samples")],
    batch_size: Annotated[int, typer.Argument(metavar="B", help="samples in a mini-batch")],
    pool_size: Annotated[int | None, typer.Option(help="slots in the pool; by default N, as in the paper")] = None,
    epochs: Annotated[int, typer.Option(help="effective epochs to draw")] = 10,
    classes: Annotated[
        int | None, typer.Option(help="equal classes of a sorted dataset; by default 10, or N if that is less")
    ] = None,
    seed: Annotated[int, typer.Option(help="the seed of all orders")] = 0,
    order: Annotated[
        str | None,
        typer.Option(help="one more order to measure, such as jitter", autocompletion=options.complete_orders),
    ] = None,
    option: options.OrderOptions = None,
    html: Annotated[Path | None, typer.Option(help="also write a page with tables and charts to this file")] = None,
    as_json: options.Json = False,
) -> None:
    """Measure what SRS, reshuffling and replacement sampling draw, and compare it with the closed forms.

    --order adds another order, with its own closed forms where they are known.
    """
    from replenish.lab.atomic_files import check_place, write_atomically
    from replenish.lab.inspect import inspect_orders

    with errors_as_sentences(flags=given_flags(context)):
        if html is not None:
            check_place("--html", html, ".html", ".htm")
        with working("drawing and measuring"):
            inspection = inspect_orders(
                num_samples,
                batch_size,
                pool_size=pool_size,
                epochs=epochs,
                classes=classes,
                seed=seed,
                other=order,
                options=options.order_options(option),
            )
    from replenish.lab.inspect.tables import tables
    from replenish.lab.show.table import print_table

    if as_json:
        print_json({table.name: table.records for table in tables(inspection)})
    else:
        console = output()
        for table in tables(inspection):
            print_table(table, console)
    with errors_as_sentences():
        if html is not None:
            from replenish.lab.inspect.page import page

            write_atomically(html, page(inspection, command_line()).encode())
            typer.echo(f"written to {html}", err=as_json)
