"""`replenish list`: tables of the experiments, the networks and the orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import errors_as_sentences, output, print_json, working

if TYPE_CHECKING:
    from replenish.lab.show import Table

app = typer.Typer(
    help="List the experiments; `list models` and `list orders` list networks and data orders.",
    invoke_without_command=True,
)

Markdown = Annotated[bool, typer.Option("--markdown", help="print the table as Markdown")]


@app.callback()
def list_experiments(
    context: typer.Context,
    scale: options.Scale = "full",
    markdown: Markdown = False,
    as_json: options.Json = False,
) -> None:
    """List the experiments; `list models` and `list orders` list networks and data orders.

    Each experiment has the paper's error, the number of parameters and an estimate of what a run costs.
    """
    flags = given_flags(context)
    with errors_as_sentences(flags=flags):
        if context.invoked_subcommand is None:
            from replenish.lab.experiments.table import experiments_table

            _show(experiments_table(scale), markdown, as_json)
        elif flags:
            flag = next(iter(flags.values()))
            raise ValueError(
                f"{flag} should be given after {context.invoked_subcommand}, or left out if that has no such option"
            )


@app.command("models")
def list_models(
    markdown: Markdown = False,
    as_json: options.Json = False,
) -> None:
    """List the networks with their parameters and multiply-adds, next to the paper's figures."""
    from replenish.lab.models.table import models_table

    with working("building every network without its weights"):
        table = models_table()
    _show(table, markdown, as_json)


@app.command("orders")
def list_orders(
    markdown: Markdown = False,
    as_json: options.Json = False,
) -> None:
    """List the data orders by the names that --order takes, with their options."""
    from replenish.lab.show import Cell, Column, Table
    from replenish.orders import ORDERS

    table = Table(
        "orders",
        "Data orders",
        (
            Column("order", lambda name: Cell(name, code=True), numeric=False),
            Column("what it does", lambda name: ORDERS[name].description, numeric=False),
            Column("options", lambda name: ", ".join(ORDERS[name].options), numeric=False, brief=False),
        ),
        [(name, name) for name in ORDERS],
        "Names for --order and --orders; options for --option NAME=VALUE. docs/orders.md describes each order.",
    )
    _show(table, markdown, as_json)


def _show(table: Table, markdown: bool, as_json: bool) -> None:
    from replenish.lab.show.markdown import table_lines
    from replenish.lab.show.table import print_table

    if as_json:
        print_json(table.records)
    elif markdown:
        typer.echo("\n".join(table_lines(table)))
    else:
        print_table(table, output(400))
