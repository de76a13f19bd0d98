"""`replenish inspect` and `replenish count`: what an order draws, and what it could."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from replenish.lab.command_errors import one_sentence
from replenish.lab.command_output import output

if TYPE_CHECKING:
    from replenish.lab.inspection import Inspection

Samples = Annotated[int, typer.Argument(metavar="N", help="samples")]
BatchSize = Annotated[int, typer.Argument(metavar="B", help="samples in a mini-batch")]


def count(
    num_samples: Samples,
    batch_size: BatchSize,
    epochs: Annotated[int, typer.Option(help="effective epochs of training")] = 1,
) -> None:
    """Count the mini-batches within reach, as the paper's section 2 does."""
    from replenish import theory

    with one_sentence():
        powers = {
            "training over epochs (equation 2)": theory.log10_configurations_without_replacement,
            "replacement sampling, SRS (equation 3)": theory.log10_configurations_with_replacement,
        }
        exact = [theory.configurations_without_replacement, theory.configurations_with_replacement]
        for (name, power), integer in zip(powers.items(), exact, strict=True):
            log10 = power(num_samples, batch_size, epochs)
            # Up to eighteen digits can be read; beyond, only the power of ten says anything.
            value = f"{integer(num_samples, batch_size, epochs):,}" if log10 < 18 else power_of_ten(log10)
            typer.echo(f"{name:<40} {value}")
        ratio = theory.log10_configurations_ratio(num_samples, batch_size)
    typer.echo(f"{'ratio':<40} {f'{10**ratio:,.4g}' if ratio < 15 else power_of_ten(ratio)}")


def power_of_ten(log10: float) -> str:
    """Return a number by its logarithm, as 1.03e+215."""
    exponent = int(log10 // 1)
    return f"{10 ** (log10 - exponent):.3f}e+{exponent}"


def inspect(
    num_samples: Samples,
    batch_size: BatchSize,
    pool_size: Annotated[int | None, typer.Option(help="slots of the pool; by default N, as in the paper")] = None,
    epochs: Annotated[int, typer.Option(help="effective epochs to run")] = 10,
    classes: Annotated[
        int | None, typer.Option(help="equal classes of a sorted dataset; by default 10, or N if that is less")
    ] = None,
    seed: Annotated[int, typer.Option(help="the seed of all orders")] = 0,
    png: Annotated[Path | None, typer.Option(help="also draw what was measured to this file")] = None,
    html: Annotated[Path | None, typer.Option(help="also write a page with tables and charts to this file")] = None,
) -> None:
    """Measure SRS beside its closed forms and beside reshuffling and replacement sampling."""
    from rich.console import Console
    from rich.table import Table

    from replenish.lab.inspection import inspect_orders
    from replenish.lab.inspection.tables import LONG_RUN, class_table, draws_table
    from replenish.lab.whole_files import write_whole

    with one_sentence():
        _check_file("--png", png, (".png",))
        _check_file("--html", html, (".html", ".htm"))
        with Console(stderr=True).status("") as status:  # silent without a terminal
            inspection = inspect_orders(
                num_samples,
                batch_size,
                pool_size=pool_size,
                epochs=epochs,
                classes=classes,
                seed=seed,
                progress=status.update,
            )
    console = output()
    for table in (draws_table(inspection), class_table(inspection)):
        shown = Table("", *table.columns, title=table.title, title_justify="left")
        for row in table.rows:
            shown.add_row(*row)
        console.print(shown)
    console.print(LONG_RUN)
    with one_sentence():
        if png is not None:
            from replenish.lab.inspection.picture import picture

            write_whole(png, picture(inspection))
            typer.echo(f"drawn to {png}")
        if html is not None:
            from replenish.lab.inspection.page import page

            write_whole(html, page(inspection, _command(inspection, html)).encode())
            typer.echo(f"written to {html}")


def _command(inspection: Inspection, html: Path) -> list[str]:
    """Return the words that make the page again, with the defaults spelt out: they might change."""
    order = inspection.order
    options = {
        "--pool-size": order.pool_size,
        "--epochs": inspection.epochs,
        "--classes": inspection.classes,
        "--seed": order.seed,
        "--html": html,
    }
    words = ["replenish", "inspect", str(order.num_samples), str(order.batch_size)]
    return words + [word for option, value in options.items() for word in (option, str(value))]


def _check_file(option: str, path: Path | None, suffixes: tuple[str, ...]) -> None:
    """Raise before the work is done if what comes of it could not be written."""
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        raise ValueError(f"{option} should be the name of a {suffixes[0]} file, but got {path}")
    if not path.parent.is_dir():
        raise ValueError(f"{option} should be in a folder that is there, but got {path}")
    if path.is_dir():
        raise ValueError(f"{option} should be the name of a file, but got the folder {path}")
