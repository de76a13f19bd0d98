"""`replenish when`: at which steps a sample was seen."""

from __future__ import annotations

from typing import Annotated

import typer

from replenish.cli import options
from replenish.cli.console import output, print_json, working
from replenish.cli.errors import errors_as_sentences


def when(
    sample: Annotated[int, typer.Argument(help="the sample's index")],
    source: options.Source = None,
    order: options.OrderName = None,
    num_samples: options.NumSamples = None,
    batch_size: options.BatchSize = None,
    seed: options.OrderSeed = None,
    option: options.OrderOptions = None,
    dataset: options.DatasetName = None,
    start: Annotated[int, typer.Option(help="the first step to look at")] = 0,
    stop: Annotated[
        int | None,
        typer.Option(help="the step to end before; by default as far as the run or the state is, else an epoch on"),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Say at which steps a sample was seen, in a run, up to a saved state, or in an order by its name and sizes."""
    from replenish.orders.visits import steps_of

    with errors_as_sentences():
        found = options.order_source(source, order, num_samples, batch_size, seed, option, dataset)
        end = stop if stop is not None else found.steps if found.steps is not None else start + found.steps_per_epoch
        if start > end:
            raise ValueError(f"--start should be at most {end}, where the steps to look at end, but got {start}")
        with working(f"drawing {end - start:,} steps"):
            steps = steps_of(found.order, sample, start, end).tolist()
        known = found.sample(sample)
    if as_json:
        told = {**known, "start": start, "stop": end, "order": found.order.config(), "steps": steps}
        print_json(told)
        return
    from replenish.lab.show.table import Column, Table
    from replenish.lab.show.terminal import print_table

    columns = [
        Column("step", "{:,}".format),
        Column("effective epoch", lambda step: f"{step / found.steps_per_epoch:.2f}"),
    ]
    titles = {"index": "sample"}  # of the dataset that is named before it
    named = ", ".join(f"{titles.get(name, name)} {value}" for name, value in known.items() if name != "sample")
    caption = f"{len(steps):,} of the steps from {start:,} to {end:,}; {found.about}."
    table = Table(
        "when",
        f"Sample {sample:,}" + (f" ({named})" if named else ""),
        columns,
        [(str(step), step) for step in steps],
        caption=" ".join(filter(None, (caption, found.remark))),
    )
    print_table(table, output())
