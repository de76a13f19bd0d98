"""`replenish count`: how many different mini-batches a sampling can draw."""

from __future__ import annotations

from typing import Annotated

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import errors_as_sentences, print_json


def count(
    context: typer.Context,
    num_samples: Annotated[int, typer.Argument(metavar="N", help="number of samples")],
    batch_size: Annotated[int, typer.Argument(metavar="B", help="samples in a mini-batch")],
    epochs: Annotated[int, typer.Option(help="effective epochs of training")] = 1,
    as_json: options.Json = False,
) -> None:
    """Count the mini-batches that a training can draw, with and without replacement (the paper's section 2)."""
    from replenish import theory

    with errors_as_sentences(flags=given_flags(context)):
        powers = {
            "training over epochs (equation 2)": theory.log10_configurations_without_replacement,
            "replacement sampling, SRS (equation 3)": theory.log10_configurations_with_replacement,
        }
        exact = [theory.configurations_without_replacement, theory.configurations_with_replacement]
        found = {name: power(num_samples, batch_size, epochs) for name, power in powers.items()}
        # People can read eighteen digits; a larger count is shown as a power of ten.
        integers = {
            name: integer(num_samples, batch_size, epochs) if log10 < 18 else None
            for (name, log10), integer in zip(found.items(), exact, strict=True)
        }
        ratio = theory.log10_configurations_ratio(num_samples, batch_size)
    if as_json:
        counts = {name: {"log10": log10, "count": integers[name]} for name, log10 in found.items()}
        print_json({**counts, "ratio": {"log10": ratio}})
        return
    for name, log10 in found.items():
        typer.echo(f"{name:<40} {power_of_ten(log10) if integers[name] is None else f'{integers[name]:,}'}")
    typer.echo(f"{'ratio':<40} {f'{10**ratio:,.4g}' if ratio < 15 else power_of_ten(ratio)}")


def power_of_ten(log10: float) -> str:
    """Return a number such as 1.03e+215 from its logarithm."""
    exponent = int(log10 // 1)
    return f"{10 ** (log10 - exponent):.3f}e+{exponent}"
