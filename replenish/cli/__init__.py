"""The command `replenish`: one file per command, with its arguments, calls and printing.

Each command imports heavy packages (torch, matplotlib, the lab) inside its function. So help and wrong arguments are
answered at once, and commands that do not need torch work without it.
"""

from __future__ import annotations

import sys
from typing import Annotated, Any

try:
    import typer
except ImportError:  # the core needs only numpy
    print("replenish: the command needs typer and rich: pip install 'replenish[cli]'", file=sys.stderr)
    raise SystemExit(2) from None

from replenish import __version__
from replenish.cli import audit, bench, compare, count, data, demo, explain, inspect, report, run, what
from replenish.cli import exec as execution
from replenish.cli import list as listing
from replenish.cli.commands import CommandList, GroupedCommand, NumberedCommand, ScriptCommand

__all__ = ["app", "main"]

#: Packages that some commands need beyond typer and rich. `replenish[lab]` installs them.
LAB_PACKAGES = ("filelock", "jinja2", "lightning_fabric", "matplotlib", "PIL", "scipy", "sklearn", "torch")

app = typer.Typer(
    cls=CommandList,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help and messages: importing rich would take a third of their time
    help="Data orders for deep learning: run them, compare them, and see what a loader really does.",
)
# `--help` lists the commands in this order, and groups last.
app.command("demo")(demo.demo)
app.command("run", cls=GroupedCommand)(run.run)
app.command("compare", cls=GroupedCommand)(compare.compare)
_script_settings: dict[str, Any] = {"cls": ScriptCommand, "context_settings": {"allow_interspersed_args": False}}
app.command("exec", **_script_settings)(execution.exec_)
app.command("audit", **_script_settings)(audit.audit)
app.command("what", cls=NumberedCommand)(what.what)
app.command("when", cls=NumberedCommand)(what.when)
app.command("report")(report.report)
app.command("explain")(explain.explain)
app.command("inspect", cls=NumberedCommand)(inspect.inspect)
app.command("count", cls=NumberedCommand)(count.count)
app.command("bench")(bench.bench)
app.add_typer(listing.app, name="list", cls=CommandList)
app.add_typer(data.app, name="data", cls=CommandList)


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
    """Run the command; if it needs a package that is not installed, print what to install."""
    try:
        app(prog_name="replenish")
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in LAB_PACKAGES:
            raise
        print(f"replenish: this needs {package}, which is not installed: pip install 'replenish[lab]'", file=sys.stderr)
        raise SystemExit(2) from None
