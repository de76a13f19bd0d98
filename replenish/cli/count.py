"""`replenish count`: the mini-batches within reach."""

from __future__ import annotations

from typing import Annotated

import typer

from replenish.cli.errors import errors_as_sentences


def count(
    num_samples: Annotated[int, typer.Argument(metavar="N", help="samples")],
    batch_size: Annotated[int, typer.Argument(metavar="B", help="samples in a mini-batch")],
    epochs: Annotated[int, typer.Option(help="effective epochs of training")] = 1,
) -> None:
    """Count the mini-batches within reach (the paper's section 2)."""
    from replenish import theory

    with errors_as_sentences():
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
