"""`replenish when`: at which steps a sample was seen."""

from __future__ import annotations

from typing import Annotated

import typer

from replenish.cli import options
from replenish.cli.console import errors_as_sentences, output, print_json, working


def when(
    sample: Annotated[str, typer.Argument(help="the sample's index")],
    source: options.Source = None,
    *,
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
    loader: options.RecordedLoader = None,
    as_json: options.Json = False,
) -> None:
    """Print at which steps a sample was seen: in a run or its record, up to a saved state, or in an order by its name.

    SOURCE may also come before SAMPLE.
    """
    from replenish.cli.record import number_and_source, print_steps, refuse_for_a_record
    from replenish.orders.visits import steps_of

    with errors_as_sentences():
        number, path = number_and_source("SAMPLE", sample, None if source is None else str(source))
        if path is not None and options.is_record(path):
            refuse_for_a_record(path, order=order, option=option, dataset=dataset)
            print_steps(path, number, loader, start, stop, as_json)
            return
        found = options.order_source(path, order, num_samples, batch_size, seed, option, dataset)
        end = stop if stop is not None else found.steps if found.steps is not None else start + found.steps_per_epoch
        if start > end:
            raise ValueError(f"--start should be at most {end}, where the steps to look at end, but got {start}")
        with working(f"drawing {end - start:,} steps"):
            steps = steps_of(found.order, number, start, end).tolist()
        known = found.sample(number)
    if as_json:
        told = {**known, "start": start, "stop": end, "order": found.order.config(), "steps": steps}
        print_json(told)
        return
    from replenish.lab.show.table import Column, Table, print_table

    columns = [
        Column("step", "{:,}".format),
        Column("effective epoch", lambda step: f"{step / found.steps_per_epoch:.2f}"),
    ]
    titles = {"index": "sample"}  # of the dataset that is named before it
    named = ", ".join(f"{titles.get(name, name)} {value}" for name, value in known.items() if name != "sample")
    caption = f"{len(steps):,} of the steps from {start:,} to {end:,}; {found.about}."
    table = Table(
        "when",
        f"Sample {number:,}" + (f" ({named})" if named else ""),
        columns,
        [(str(step), step) for step in steps],
        caption=" ".join(filter(None, (caption, found.remark))),
    )
    print_table(table, output())
