"""`replenish inspect` and `replenish count`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from replenish.lab.command_errors import one_sentence


def count(
    num_samples: Annotated[int, typer.Argument(metavar="N", help="samples")],
    batch_size: Annotated[int, typer.Argument(metavar="B", help="samples in a mini-batch")],
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
    num_samples: Annotated[int, typer.Argument(metavar="N", help="samples")],
    batch_size: Annotated[int, typer.Argument(metavar="B", help="samples in a mini-batch")],
    pool_size: Annotated[int | None, typer.Option(help="slots of the pool; by default N, as in the paper")] = None,
    epochs: Annotated[int, typer.Option(help="effective epochs to run")] = 10,
    seed: Annotated[int, typer.Option(help="the seed of all orders")] = 0,
    png: Annotated[Path | None, typer.Option(help="also draw what was measured to this file")] = None,
) -> None:
    """Measure SRS beside its closed forms and beside reshuffling and replacement sampling."""
    from rich.console import Console
    from rich.table import Table

    from replenish import BatchedReplacement, RandomReshuffling, SequencedReplacement, theory
    from replenish.diagnostics import Measurement, measure, plot

    def cells(found: Measurement) -> list[str]:
        return [
            f"{100 * found.unseen[0]:.2f} %",
            f"{100 * found.unseen[-1]:.2f} %",
            f"{found.smallest[-1]} to {found.largest[-1]}",
            f"{found.count_spread[-1]:.3f}",
            f"{found.equal_pairs:.4f}",
        ]

    messages = Console(stderr=True)
    with one_sentence():
        if png is not None and png.suffix.lower() != ".png":
            raise ValueError(f"--png should be the name of a .png file, but got {png}")
        if png is not None and not png.parent.is_dir():
            raise ValueError(f"--png should be in a folder that is there, but got {png}")
        srs = SequencedReplacement(num_samples, batch_size, seed=seed, pool_size=pool_size)
        others = [kind(num_samples, batch_size, seed=seed) for kind in (RandomReshuffling, BatchedReplacement)]
        found = {}
        for name, order in zip(("SRS", "reshuffling", "replacement"), (srs, *others), strict=True):
            with messages.status(f"running {name}"):  # silent without a terminal
                found[name] = measure(order, epochs)
        step = epochs * srs.steps_per_epoch
        sizes = {"num_samples": num_samples, "batch_size": batch_size, "pool_size": srs.pool_size}
        with messages.status("working out the closed forms"):
            law = [
                f"{100 * theory.unseen_fraction(**sizes):.2f} %",
                f"{100 * theory.limit_unseen_fraction(srs.pool_size / num_samples):.2f} % (limit)",
                "",
                f"{theory.count_spread(step=step, **sizes):.3f}",
                f"{theory.limit_equal_pairs(**sizes):.4f} (limit)",
            ]
    columns = {"SRS, closed form": law, **{name: cells(measured) for name, measured in found.items()}}
    table = Table("", *columns)
    labels = [
        "unseen in the first epoch",
        f"unseen in epoch {epochs}",
        f"draws of a sample in epoch {epochs}",
        f"variance of the draws in {epochs} epochs",
        "equal pairs in a batch",
    ]
    for label, *row in zip(labels, *columns.values(), strict=True):
        table.add_row(label, *row)
    (Console() if sys.stdout.isatty() else Console(width=160)).print(table)
    if png is not None:
        with one_sentence():
            plot(found).savefig(png, dpi=150)
        typer.echo(f"drawn to {png}")
