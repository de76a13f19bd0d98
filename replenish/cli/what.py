"""`replenish what` and `replenish when`: the samples of a step, and the steps of a sample."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from replenish.cli import options
from replenish.cli.commands import given_flags
from replenish.cli.console import errors_as_sentences, output, print_json, working

if TYPE_CHECKING:
    from replenish.exec.flight_record import FlightRecord
    from replenish.lab.order_source import OrderSource

#: A table has at most this many rows; --json has all.
MOST_ROWS = 128
#: The parameters that apply to a record.
OF_A_RECORD = ("step", "sample", "source", "loader", "start", "stop", "as_json")
#: The fields that a sample can have, and the headings of their columns.
COLUMNS = {
    "rank": "rank",
    "place": "place",
    "sample": "sample",
    "item": "item",
    "dataset": "dataset",
    "index": "sample of it",
    "label": "label",
    "class": "class",
    "file": "file",
    "visits": "drawn before",
}


def what(
    context: typer.Context,
    step: Annotated[str, typer.Argument(help="the step, counted from 0")],
    source: options.Source = None,
    *,
    order: options.OrderName = None,
    num_samples: options.NumSamples = None,
    batch_size: options.BatchSize = None,
    seed: options.OrderSeed = None,
    option: options.OrderOptions = None,
    dataset: options.DatasetName = None,
    visits: Annotated[bool, typer.Option("--visits", help="also print how often each sample was drawn before")] = False,
    loader: options.RecordedLoader = None,
    as_json: options.Json = False,
) -> None:
    """Print which samples were in a step's batch: their indices, and if the data can be read, labels and files.

    SOURCE is a run's folder, a record of `exec --record`, or a file with a sampler's saved state or an order's config.
    Without it, give an order's name and sizes. SOURCE may also come before STEP.
    """
    from replenish.exec.flight_record import is_record

    with errors_as_sentences():
        number, path = number_and_source("STEP", step, source)
        if path is not None and is_record(path):
            record, place, about = _read(path, loader, context)
            batches = [batch.tolist() for batch in record.batch(number, place)]
            kind = "item" if record.loaders[place][0].facts["is_stream"] else "sample"
            ranks = [{"rank": rank} if len(batches) > 1 else {} for rank in range(len(batches))]
            samples = [
                {**rank, "place": within, kind: sample}
                for rank, batch in zip(ranks, batches, strict=True)
                for within, sample in enumerate(batch)
            ]
            plain: dict[str, Any] = {"step": number, "loader": place, "ranks": batches}
            about = f"; {about}"
        else:
            found = _find_order(path, context.params)
            epoch = number / found.steps_per_epoch
            batch = found.order.batch(number).tolist()
            samples = [{"place": within, **found.sample(sample)} for within, sample in enumerate(batch)]
            if visits:
                from replenish.orders.visits import visits_of

                for sample, times in zip(samples, visits_of(found.order)(number).tolist(), strict=True):
                    sample["visits"] = times
            plain = {"step": number, "effective_epoch": epoch, "order": found.order.config(), "samples": samples}
            about = f", in effective epoch {epoch:.2f}; {found.about}. {found.remark}"
            if found.steps is not None and number >= found.steps:
                about += f" This step is still to come: {found.steps:,} steps have been taken."
    if as_json:
        print_json(plain)
        return
    if len(samples) > MOST_ROWS:
        about += f" The first {MOST_ROWS} are shown; --json has all."
    columns = [name for name in COLUMNS if samples and name in samples[0]]
    rows = [[str(sample[name]) for name in columns] for sample in samples[:MOST_ROWS]]
    _print("what", f"Step {number:,}", [COLUMNS[name] for name in columns], rows, f"{len(samples):,} samples{about}")


def when(
    context: typer.Context,
    sample: Annotated[str, typer.Argument(help="the sample's index")],
    source: options.Source = None,
    *,
    order: options.OrderName = None,
    num_samples: options.NumSamples = None,
    batch_size: options.BatchSize = None,
    seed: options.OrderSeed = None,
    option: options.OrderOptions = None,
    dataset: options.DatasetName = None,
    start: Annotated[int, typer.Option(help="the first step to search")] = 0,
    stop: Annotated[
        int | None,
        typer.Option(
            help="the step to stop before; by default the end of the run or the step of the state, or else one epoch"
        ),
    ] = None,
    loader: options.RecordedLoader = None,
    as_json: options.Json = False,
) -> None:
    """Print at which steps a sample was drawn: in a run or its record, up to a saved state, or in an order by its name.

    SOURCE may also come before SAMPLE.
    """
    known: dict[str, Any]
    from replenish import checks
    from replenish.exec.flight_record import is_record

    with errors_as_sentences():
        number, path = number_and_source("SAMPLE", sample, source)
        if path is not None and is_record(path):
            record, place, about = _read(path, loader, context)
            if (size := record.loaders[place][0].facts["num_samples"]) is not None:
                checks.integer("SAMPLE", number, minimum=0, maximum=size - 1)
            end = _end(start, stop, record.steps_of_loader(place))
            steps = [step for step in record.steps_with(number, place).tolist() if start <= step < end]
            known, heads = {"sample": number}, ["step"]
            more: dict[str, Any] = {"loader": place}
            rows = [[f"{step:,}"] for step in steps]
        else:
            from replenish.orders.visits import steps_of

            found = _find_order(path, context.params)
            end = _end(start, stop, start + found.steps_per_epoch if found.steps is None else found.steps)
            with working(f"drawing {end - start:,} steps"):
                steps = steps_of(found.order, number, start, end).tolist()
            known, more, heads = found.sample(number), {"order": found.order.config()}, ["step", "effective epoch"]
            rows = [[f"{step:,}", f"{step / found.steps_per_epoch:.2f}"] for step in steps]
            about = f"{found.about}. {found.remark}"
    if as_json:
        print_json({**known, "start": start, "stop": end, **more, "steps": steps})
        return
    titles = {"index": "sample"}  # within the dataset, whose number comes before it
    facts = ", ".join(f"{titles.get(name, name)} {value}" for name, value in known.items() if name != "sample")
    title = f"Sample {number:,}" + (f" ({facts})" if facts else "")
    _print("when", title, heads, rows, f"{len(steps):,} of the steps from {start:,} to {end:,}; {about}")


def number_and_source(name: str, first: str, second: Path | None) -> tuple[int, Path | None]:
    """Return the number and the source of a command's two arguments, which may come in either order.

    Example:
        >>> number_and_source("STEP", "run.rec", Path("7"))
        (7, PosixPath('run.rec'))
    """
    words = [first] if second is None else [first, str(second)]
    numbers = [each for each in words if each.isascii() and each.isdigit()]
    if not numbers:
        raise ValueError(f"{name} should be a whole number, 0 or more, but got {' '.join(words)}")
    words.remove(numbers[0])
    return int(numbers[0]), Path(words[0]) if words else None


def _read(path: Path, loader: int | None, context: typer.Context) -> tuple[FlightRecord, int, str]:
    """Return a record, the chosen loader, and sentences about them; reject options that do not apply to a record."""
    from replenish import checks
    from replenish.exec.flight_record import read_record

    for name, flag in given_flags(context).items():
        if name not in OF_A_RECORD:
            raise ValueError(f"{flag} should be left out, since {path} has the samples")
    record = read_record(path)
    place = checks.integer("--loader", loader or 0, minimum=0, maximum=len(record.loaders) - 1)
    about = f"loader {place} of {path.name}."
    if len(record.loaders) > 1:
        about += f" There are {len(record.loaders) - 1} more training loaders; see --loader."
    if not record.whole:
        about += " The run was killed: its last second may be missing."
    return record, place, about


def _find_order(source: Path | None, parameters: Mapping[str, Any]) -> OrderSource:
    """Return the order of a run's folder or of a saved state, or the order that the command's parameters name."""
    from replenish.lab.order_source import of_order, read_source
    from replenish.orders import build_order

    if parameters["loader"] is not None:
        raise ValueError("--loader should be left out, since only a record has the batches of several loaders")
    given, dataset = options.order_options(parameters["option"]), parameters["dataset"]
    flags = {f"--{name.replace('_', '-')}": parameters[name] for name in ("order", "num_samples", "batch_size", "seed")}
    if source is not None:
        if extra := [flag for flag, value in flags.items() if value is not None]:
            raise ValueError(f"{extra[0]} should be left out, since {source} says it")
        return read_source(source, dataset, given)
    if missing := [flag for flag, value in flags.items() if value is None and flag != "--seed"]:
        raise ValueError(f"{missing[0]} should be given, or a run's folder or a saved state in place of all of them")
    order, num_samples, batch_size, seed = flags.values()
    built = build_order(order, num_samples, batch_size, seed=seed or 0, **given)
    return of_order(built, repr(built), dataset)


def _end(start: int, stop: int | None, known: int) -> int:
    """Return the step to stop before: `stop`, or by default the known end."""
    end = known if stop is None else stop
    if start > end:
        raise ValueError(f"--start should be at most {end}, where the steps to look at end, but got {start}")
    return end


def _print(name: str, title: str, heads: Sequence[str], rows: Sequence[Sequence[str]], caption: str) -> None:
    from replenish.lab.show.table import Table, print_table

    words = [at for at, head in enumerate(heads) if head in ("class", "file")]
    print_table(Table.of_rows(name, title, heads, rows, caption.strip(), text_columns=words), output())
