"""`replenish what`: which samples made a step."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.console import errors_as_sentences, output, print_json

if TYPE_CHECKING:
    from replenish.lab.order_source import OrderSource

#: More than a screen or two is for `--json`.
MOST_ROWS = 128


def what(
    step: Annotated[str, typer.Argument(help="the step, counted from 0")],
    source: options.Source = None,
    *,
    order: options.OrderName = None,
    num_samples: options.NumSamples = None,
    batch_size: options.BatchSize = None,
    seed: options.OrderSeed = None,
    option: options.OrderOptions = None,
    dataset: options.DatasetName = None,
    visits: Annotated[bool, typer.Option("--visits", help="also how often each was drawn before")] = False,
    loader: options.RecordedLoader = None,
    as_json: options.Json = False,
) -> None:
    """Print which samples were in a step's batch: indices, and labels and files where the data are at hand.

    From a run's folder, a record of `exec --record`, a sampler's saved state or an order's config, or from an order's
    name and sizes. SOURCE may also come before STEP.
    """
    from replenish.cli.record import number_and_source, print_step, refuse_for_a_record

    with errors_as_sentences():
        number, path = number_and_source("STEP", step, None if source is None else str(source))
        if path is not None and options.is_record(path):
            refuse_for_a_record(path, order=order, option=option, dataset=dataset, visits=visits)
            print_step(path, number, loader, as_json)
            return
        found = options.order_source(path, order, num_samples, batch_size, seed, option, dataset)
        batch = found.order.batch(number).tolist()
        samples = [{"place": place, **found.sample(sample)} for place, sample in enumerate(batch)]
        if visits:
            from replenish.orders.visits import visits_of

            before = visits_of(found.order)(number).tolist()
            samples = [{**sample, "visits": times} for sample, times in zip(samples, before, strict=True)]
    if as_json:
        told = {"step": number, "effective_epoch": number / found.steps_per_epoch, "order": found.order.config()}
        print_json({**told, "samples": samples})
    else:
        _print(found, number, samples)


def _print(found: OrderSource, step: int, samples: list[dict[str, Any]]) -> None:
    from replenish.lab.show.table import Column, Table, print_table

    titles = {
        "place": "place",
        "sample": "sample",
        "dataset": "dataset",
        "index": "sample of it",
        "label": "label",
        "class": "class",
        "file": "file",
    }
    titles["visits"] = "drawn before"
    shown = [name for name in titles if samples and name in samples[0]]
    columns = [Column(titles[name], _cell(name), numeric=name not in ("class", "file")) for name in shown]
    rows = [(str(sample["place"]), sample) for sample in samples[:MOST_ROWS]]
    told = [f"{len(samples):,} samples, in effective epoch {step / found.steps_per_epoch:.2f}; {found.about}."]
    if len(samples) > MOST_ROWS:
        told.append(f"The first {MOST_ROWS} are shown; --json has all.")
    if found.steps is not None and step >= found.steps:
        told.append(f"It is still to come: {found.steps:,} steps have been taken.")
    told.append(found.remark)
    table = Table("what", f"Step {step:,}", columns, rows, caption=" ".join(filter(None, told)))
    print_table(table, output())


def _cell(name: str) -> Callable[[dict[str, Any]], str]:
    return lambda sample: str(sample[name])
