"""`replenish list`: the experiments, and the networks."""

from __future__ import annotations

from dataclasses import astuple
from typing import Annotated

import typer

from replenish.lab.command_errors import one_sentence
from replenish.lab.command_output import output

list_app = typer.Typer(help="Show the experiments; `list models` shows the networks.", invoke_without_command=True)


@list_app.callback()
def list_experiments(
    context: typer.Context,
    scale: Annotated[str, typer.Option(help="full (the paper's), mini (two CPU cores) or digits (seconds)")] = "full",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/reproducing.md.")] = False,
) -> None:
    """Show every experiment with the paper's error, the parameters and about what a run costs."""
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.table import Table

    from replenish.lab.experiments import listing

    with one_sentence(), Console(stderr=True).status("counting what every network costs"):  # silent without a terminal
        lines = listing.listed(scale)
    if markdown:
        typer.echo(listing.markdown(lines), nl=False)
        return
    shown = Table(*listing.HEADINGS)
    for line in lines:
        shown.add_row(*astuple(line))
    console = output(240)
    console.print(shown)
    console.print(
        f"Costs are estimates for {listing.where(scale)}, good to a factor of two or so. Names with the same config "
        f"share their runs. Run one, or all that begin alike: replenish run table3 --scale {scale} --seeds 5",
        highlight=False,
    )


@list_app.command("models")
def list_models(
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table of docs/models.md.")] = False,
) -> None:
    """Show every network, its parameters and multiply-adds, beside the paper's figures."""
    from rich.console import Console
    from rich.table import Table

    from replenish.lab.models import PATTERNS, table

    with Console(stderr=True).status("building every network without its weights"):  # silent without a terminal
        rows = table.rows()
    if markdown:
        typer.echo(table.markdown(rows), nl=False)
        return
    shown = Table("name", "paper's table 2", "10 classes", "100 classes", "paper", "multiply-adds", "remark")
    for row in rows:
        counts = (table.millions(row.parameters10), table.millions(row.parameters100))
        shown.add_row(
            row.name, row.paper_row, *counts, row.paper_parameters, f"{row.multiply_adds / 1e6:,.0f}M", row.remark
        )
    console = output(240)
    console.print(shown)
    console.print(f"Other sizes: {', '.join(PATTERNS)}", markup=False)
