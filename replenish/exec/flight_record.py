"""The flight recorder's file: which samples were in each batch of a run.

While a run trains, each of its processes writes a log to the folder `FILE.parts`. At the end the logs become one file.
A pass that an order repeats exactly is stored as the order's config and a step, any other as compressed indices. If the
run was killed, readers take what is in the folder.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from replenish import checks
from replenish.draws import Int64Array
from replenish.exec.draw_log import (
    SUFFIX,
    append_chunk,
    is_closed,
    pack_batches,
    read_chunks,
    unpack_batches,
    wait_until,
)
from replenish.exec.environment import AuditTask
from replenish.exec.run_draws import ProcessDraws, RecordedLoader, RecordedPass, ranks_of, read_run
from replenish.measure.reading import Epoch
from replenish.orders.building import order_from_config
from replenish.sharding import share_of

_MAGIC = "replenish-record"
_OTHER_RANKS = 30.0  # seconds in which the other processes of a run should have ended


def parts_folder(file: Path) -> Path:
    """Return the folder in which the processes of a run write while it trains."""
    return file.with_name(f"{file.name}.parts")


def start_record(file: Path) -> Path:
    """Make an empty folder for the logs of a run, and return it.

    Raises:
        ValueError: The file cannot be written there, or would replace something that is not a record.
    """
    if not file.parent.is_dir():
        raise ValueError(f"--record should be in a folder that exists, but got {file}")
    if file.is_dir() or (file.exists() and not is_record(file)):
        raise ValueError(f"--record should name a new file, or an earlier record, but got {file}")
    parts = parts_folder(file)
    if os.environ.get("LOCAL_RANK", "0") in ("", "0"):  # only in the first of torchrun's processes
        shutil.rmtree(parts, ignore_errors=True)
    parts.mkdir(exist_ok=True)
    return parts.resolve()


def finish_record(file: Path) -> int:
    """Join the logs of a run into one file, remove them, and return the number of training batches.

    An earlier file of that name is replaced.
    """
    parts = parts_folder(file)
    run = read_run(parts)
    new = file.with_name(f"{file.name}.new")
    new.unlink(missing_ok=True)
    append_chunk(new, {"kind": _MAGIC, "version": 1})
    for rank, process in enumerate(run):
        for number, loader in enumerate(each for each in process.loaders if each.training):
            append_chunk(new, {"kind": "loader", "process": rank, "loader": number, **loader.facts})
            end = None
            for each in loader.training:
                end = _append_pass(new, each, end)
    append_chunk(new, {"kind": "end"})
    new.replace(file)
    shutil.rmtree(parts, ignore_errors=True)
    return FlightRecord(run, whole=True).steps if run and ranks_of(run) else 0


def finish_record_of_exec() -> str:
    """Finish the record of a run with an order once all processes have closed their logs; return a line about it."""
    parts = Path(AuditTask.from_environment().records)
    file = parts.with_name(parts.name.removesuffix(".parts"))
    ranks = int(os.environ.get("LOCAL_WORLD_SIZE") or 1)
    wait_until(lambda: sum(map(is_closed, parts.glob(f"*{SUFFIX}"))) >= ranks, _OTHER_RANKS)
    return f"{finish_record(file):,} training batches recorded in {file}"


def _append_pass(path: Path, one: RecordedPass, start: int | None) -> int | None:
    """Append a pass. If an order repeats it, return the order's next step: the next pass gets it as `start`."""
    drawn = one.drawn
    header = {"kind": "pass", "handed": one.batches_trained, "rank": one.rank, "whole": drawn.whole}
    if (known := _known_order(one, start)) is not None:
        append_chunk(path, {**header, "order": known, "steps": len(drawn.sizes)})
        return int(known["step"]) + len(drawn.sizes)
    packed, payload = pack_batches(drawn.samples, drawn.sizes)
    append_chunk(path, {**header, **packed}, payload)
    return None


def _known_order(one: RecordedPass, start: int | None) -> dict[str, Any] | None:
    """Return an order and a step that draw exactly what the pass drew; None if there are none."""
    if one.order is None:
        return None
    drawn = one.drawn
    share = {name: one.order[name] for name in ("config", "replicas", "rank")}
    for step in dict.fromkeys([*([] if start is None else [start]), *one.order["steps"]]):
        known = {**share, "step": step}
        with suppress(ValueError):  # it needs arrays that a config only names
            batches = list(_share(known, len(drawn.sizes)))
            same_sizes = np.array_equal([len(batch) for batch in batches], drawn.sizes)
            if same_sizes and np.array_equal(np.concatenate(batches), drawn.samples):
                return known
    return None


def _share(known: dict[str, Any], steps: int) -> Iterator[Int64Array]:
    """Yield one rank's batches for some steps of an order."""
    for batch in order_from_config(known["config"]).batches(known["step"], known["step"] + steps):
        yield batch[share_of(len(batch), known["replicas"], known["rank"])]


def is_record(path: Path) -> bool:
    """Return whether a path is a record, or the folder of a killed run."""
    if not path.exists():
        return parts_folder(path).is_dir()
    if path.is_dir():
        return path.name.endswith(".parts")
    with path.open("rb") as file:
        return file.read(64).startswith(b'{"kind":"' + _MAGIC.encode())


def read_record(path: Path) -> FlightRecord:
    """Return a record.

    Raises:
        ValueError: The file is cut off, or has no training batch.
    """
    if not path.exists() or path.is_dir():
        record = FlightRecord(read_run(path if path.is_dir() else parts_folder(path)), whole=False)
    else:
        record = FlightRecord(_read(path), whole=True)
    if not record.loaders:
        raise ValueError(f"{path} should have the batches of a training, but has none")
    return record


def _read(path: Path) -> list[ProcessDraws]:
    run: dict[int, ProcessDraws] = {}
    kind = ""
    for header, payload in read_chunks(path):
        kind = header["kind"]
        if kind == "loader":
            loader = RecordedLoader.of(header, header["loader"])
            run.setdefault(header["process"], ProcessDraws(header["process"], [], [])).loaders.append(loader)
        elif kind == "pass":
            order = header.get("order")
            if order is not None:
                drawn = Epoch.of(list(_share(order, header["steps"])), whole=header["whole"])
            else:
                drawn = Epoch(*unpack_batches(header, payload), header["whole"])
            none = np.empty(0, dtype=np.int64)
            one = RecordedPass(drawn, True, header["rank"], len(loader.passes), header["handed"], order, none)
            loader.passes.append(one)
    if kind != "end":
        raise ValueError(f"{path} is cut off or damaged: it should end with a chunk that says so")
    return [run[process] for process in sorted(run)]


@dataclass(frozen=True, eq=False)
class FlightRecord:
    """The training batches of a run.

    Attributes:
        run: The processes.
        whole: Whether the run came to its end; a run that was killed may lack its last second.
    """

    run: list[ProcessDraws]
    whole: bool

    @property
    def loaders(self) -> list[list[RecordedLoader]]:
        """The training loaders, each as a list with an entry for each rank."""
        return ranks_of(self.run)

    @property
    def steps(self) -> int:
        """How many batches the first training loader handed out."""
        return self.steps_of_loader(0)

    def steps_of_loader(self, loader: int) -> int:
        """Return how many batches a training loader handed out, in each of its ranks."""
        return min(sum(one.batches_trained for one in rank.training) for rank in self.loaders[loader])

    def batch(self, step: int, loader: int = 0) -> list[Int64Array]:
        """Return the samples of a step, for each rank."""
        steps = self.steps_of_loader(loader)
        checks.integer("step", step, minimum=0, maximum=steps - 1)
        return [_batch_of(rank, step) for rank in self.loaders[loader]]

    def steps_with(self, sample: int, loader: int = 0) -> Int64Array:
        """Return the steps whose batches have a sample, in any rank."""
        found = [np.empty(0, dtype=np.int64)]
        for rank in self.loaders[loader]:
            start = 0
            for one in rank.training:
                steps = one.drawn.batch_of[one.drawn.samples == sample]
                found.append(start + steps[steps < one.batches_trained])
                start += one.batches_trained
        return np.unique(np.concatenate(found))


def _batch_of(rank: RecordedLoader, step: int) -> Int64Array:
    for one in rank.training:
        if step < one.batches_trained:
            return one.drawn.batches()[step]
        step -= one.batches_trained
    raise AssertionError("the step was checked")
