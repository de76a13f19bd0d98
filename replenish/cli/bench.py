"""`replenish bench`: the sampler's speed on this machine, compared with torch's own."""

from __future__ import annotations

import dataclasses
import statistics
from typing import Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import errors_as_sentences, output, print_json, working


def bench(
    context: typer.Context,
    n: Annotated[int, typer.Option("--n", metavar="N", help="number of samples")] = 50_000,
    batch_size: Annotated[int, typer.Option(metavar="B", help="samples in a mini-batch")] = 64,
    rounds: Annotated[int, typer.Option(help="how many epochs of each sampler to time; at least 2")] = 8,
    as_json: options.Json = False,
) -> None:
    """Time the sampler on this machine, and compare it with torch's own.

    Epochs of SRS alternate with epochs of torch's BatchSampler(RandomSampler), which DataLoader(shuffle=True) uses.
    """
    import torch
    from rich.table import Table

    from replenish.lab.machine import describe, versions
    from replenish.lab.sampler_benchmark import WAYS, measure_epochs, ratio

    torch.set_num_threads(1)  # so that the times do not depend on how many cores are idle
    with errors_as_sentences(flags=given_flags(context)), working(f"timing {rounds} rounds"):
        times = measure_epochs(n, batch_size, rounds)
    each = {way: statistics.median(times[way]) / n * 1e9 for way in WAYS}
    ratios = {way: ratio(times["torch"], times[way]) for way in WAYS if way != "torch"}
    machine: dict[str, Any] = {**describe(), **versions()}
    if as_json:
        ways = {
            way: {
                "name": name,
                "nanoseconds_per_index": each[way],
                "speed_over_torch": dataclasses.asdict(ratios[way]) if way in ratios else None,
                "seconds": times[way],
            }
            for way, name in WAYS.items()
        }
        found = {"num_samples": n, "batch_size": batch_size, "rounds": rounds, "ways": ways, "machine": machine}
        print_json(found)
        return
    table = Table("one epoch", "an index", "speed over torch's")
    for way, name in WAYS.items():
        table.add_row(name, f"{each[way]:.0f} ns", ratios[way].text() if way in ratios else "")
    output(120).print(table)
    typer.echo(
        f"N = {n:,}, B = {batch_size:,}; medians of {rounds} rounds, quartiles in brackets. {machine['processor']}, "
        f"{machine['cores']} cores, one thread; Python {machine['python']}, numpy {machine['numpy']}, torch "
        f"{machine['torch']}, replenish {machine['replenish']}."
    )
