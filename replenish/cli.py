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
from replenish.lab.bench_command import bench
from replenish.lab.data_commands import data_app
from replenish.lab.explain_command import explain
from replenish.lab.inspect_commands import count, inspect
from replenish.lab.list_commands import list_app
from replenish.lab.run_commands import compare, demo, report, run

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Sequenced-replacement sampling (SRS) for deep learning: the lab.",
)
# In the order of `--help`: first look, then run, then understand.
app.command("demo")(demo)
app.add_typer(list_app, name="list")
app.command("run")(run)
app.command("compare")(compare)
app.command("report")(report)
app.command("explain")(explain)
app.command("inspect")(inspect)
app.command("count")(count)
app.add_typer(data_app, name="data")
app.command("bench")(bench)


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


def main() -> None:
    """Run the command."""
    app(prog_name="replenish")


if __name__ == "__main__":
    main()
