"""`replenish list`: the experiments, and the networks."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from replenish.lab.command_errors import one_sentence

if TYPE_CHECKING:
    from replenish.lab.experiments.costs import RunCost

list_app = typer.Typer(help="Show the experiments; `list models` shows the networks.", invoke_without_command=True)


@list_app.callback()
def list_experiments(
    context: typer.Context,
    scale: Annotated[str, typer.Option(help="full (the paper's), mini (two CPU cores) or digits (seconds)")] = "full",
) -> None:
    """Show every experiment with the paper's error, the parameters and about what a run costs."""
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.table import Table

    from replenish.lab.experiments import configs
    from replenish.lab.experiments.costs import known_data, run_cost
    from replenish.lab.experiments.paper import published_error

    with one_sentence():
        chosen = configs(scale)
    shown = Table("experiment", "network", "order", "B", "decays", "paper's error", "parameters", "cost of a run")
    costs: dict[tuple[str, str], RunCost] = {}
    with Console(stderr=True).status("counting what every network costs"):  # silent without a terminal
        for name, config in chosen.items():
            key = (config.model, config.dataset)
            if key not in costs:
                costs[key] = run_cost(config, known_data(config))
            error = published_error(name)
            decays = f"{'-'.join(f'{epoch:g}' for epoch in config.decays)} of {config.epochs}, x{config.decay_factor:g}"
            shown.add_row(
                name,
                config.model,
                config.order,
                str(config.batch_size),
                decays,
                "" if error is None else f"{error:.2f} %",
                _count(costs[key].parameters),
                _duration(costs[key], scale),
            )
    console = Console() if sys.stdout.isatty() else Console(width=240)
    console.print(shown)
    where = "one GPU" if scale == "full" else "one CPU thread"
    console.print(
        f"Costs are estimates for {where}, good to a factor of two or so. Names with the same config share their runs. "
        f"Run one, or all that begin alike: replenish run table3 --scale {scale} --seeds 5",
        highlight=False,
    )


def _count(parameters: int) -> str:
    return f"{parameters / 1e6:.1f}M" if parameters >= 1e6 else f"{parameters / 1e3:.0f}k"


def _duration(cost: RunCost, scale: str) -> str:
    hours = cost.gpu_hours if scale == "full" else cost.cpu_hours
    return f"{hours:.0f} h" if hours >= 10 else f"{hours:.1f} h" if hours >= 1 else f"{hours * 60:.0f} min"


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
