"""The command `replenish`: one line for each thing that the lab does."""

from __future__ import annotations

import sys
from typing import Annotated

try:
    import typer
except ImportError:  # the core needs numpy alone; the command is a part of the lab
    print("replenish: the command needs the lab's packages: pip install 'replenish[lab]'", file=sys.stderr)
    raise SystemExit(2) from None

from replenish import __version__
from replenish.lab.data_commands import data_app
from replenish.lab.inspect_commands import count, inspect
from replenish.lab.run_commands import run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Sequenced-replacement sampling (SRS) for deep learning: the lab.",
)
list_app = typer.Typer(no_args_is_help=True, help="Show what the lab has.")
app.add_typer(data_app, name="data")
app.add_typer(list_app, name="list")
app.command("count")(count)
app.command("inspect")(inspect)
app.command("run")(run)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _replenish(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


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
    console = Console() if sys.stdout.isatty() else Console(width=240)
    console.print(shown)
    console.print(f"Other sizes: {', '.join(PATTERNS)}", markup=False)


def main() -> None:
    """Run the command."""
    app(prog_name="replenish")


if __name__ == "__main__":
    main()
