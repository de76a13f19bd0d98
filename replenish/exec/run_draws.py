"""What the loaders of a run drew in all of its processes, read from the logs of `draw_log`."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from replenish.auditing.claims import Claim
from replenish.auditing.record import Identity, Record
from replenish.draws import Int64Array
from replenish.exec.draw_log import SUFFIX, read_chunks, unpack, unpack_batches
from replenish.measure.reading import Epoch


@dataclass
class RecordedPass:
    """One pass over a loader, in one process.

    Attributes:
        drawn: What was drawn; its number is the sampler's epoch.
        training: Whether it was a training pass.
        rank: The rank of the process.
        at: Its number in the sequence of new loaders and passes.
        handed: How many batches the loop got.
        order: The config of an order that may have drawn it, and the steps at which it may begin.
        steps: How many batches the loop had at each step of the optimizer.
    """

    drawn: Epoch
    training: bool
    rank: int
    at: int
    handed: int
    order: dict[str, Any] | None
    steps: Int64Array

    @property
    def batches_trained(self) -> int:
        """How many of the batches the loop got."""
        return min(self.handed, len(self.drawn.sizes))


@dataclass
class RecordedLoader:
    """One loader in one process, or several equal ones, each made after the last pass over the previous one.

    Attributes:
        facts: The name of its dataset, and its sizes.
        at: Its number in the sequence of new loaders and passes.
        passes: The passes over it.
        promise: Its name, claim and identity, for an audit; empty if these were not recorded.
        arrays: The labels and weights that it has, and its samples in the root dataset.
        findings: The findings of probes.
    """

    facts: dict[str, Any]
    at: int
    passes: list[RecordedPass] = field(default_factory=list)
    promise: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, Any] = field(default_factory=dict)
    findings: list[dict[str, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, header: dict[str, Any], at: int) -> RecordedLoader:
        """Return a loader without passes, from its chunk."""
        return cls({name: header[name] for name in ("dataset", "num_samples", "batch_size", "is_stream")}, at)

    @property
    def training(self) -> list[RecordedPass]:
        """The training passes that drew something."""
        return [each for each in self.passes if each.training and len(each.drawn.sizes)]

    @property
    def evaluations(self) -> list[RecordedPass]:
        """The other passes that drew something."""
        return [each for each in self.passes if not each.training and len(each.drawn.sizes)]

    def record(self, passes: Sequence[RecordedPass]) -> Record:
        """Return the record of some of its passes, for an audit."""
        drawn = [each.drawn for each in passes]
        is_stream = bool(self.facts["is_stream"])
        number = self.facts["num_samples"]
        if is_stream or number is None:
            number = 1 + max(int(each.samples.max()) for each in drawn)
        root = self.promise.get("identity")
        identity = None if root is None else Identity(**root, samples=self.arrays.get("samples"))
        return Record(drawn, number, is_stream, identity=identity, weights=self.arrays.get("weights"))

    def claim(self) -> Claim:
        """Return what it promises."""
        return Claim(**self.promise["claim"])


@dataclass
class ProcessDraws:
    """The loaders of one process, and events that belong to no loader."""

    started: float
    loaders: list[RecordedLoader]
    events: list[dict[str, Any]]

    @property
    def rank(self) -> int:
        """The rank of the process, from its passes; 0 without a pass."""
        return next((each.rank for loader in self.loaders for each in loader.passes), 0)


def read_run(folder: Path, *, raw_hashes: bool = False) -> list[ProcessDraws]:
    """Return what the processes of a run recorded, by rank, without processes that iterated no loader.

    Items of streams get numbers from 0. With `raw_hashes` they keep their hashes, so that runs can be compared.
    """
    found = [_read_process(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
    if not raw_hashes:
        _number_hashes(found)
    for each in found:
        _merge_alike(each)
        _drop_untrained(each)
    return sorted((each for each in found if each.loaders), key=lambda each: (each.rank, each.started))


def ranks_of(run: list[ProcessDraws]) -> list[list[RecordedLoader]]:
    """Return the training loaders of a run, each as a list with an entry for each rank."""
    trained = [[loader for loader in each.loaders if loader.training] for each in run]
    return [
        [each[place] for each in trained if place < len(each)] for place in range(max(map(len, trained), default=0))
    ]


def _read_process(path: Path) -> ProcessDraws:
    loaders: dict[int, RecordedLoader] = {}
    passes: dict[tuple[int, int], list[tuple[dict[str, Any], bytes]]] = {}
    started, events = 0.0, []
    for header, payload in read_chunks(path):
        kind, loader = header["kind"], header.get("loader")
        if kind == "process":
            started = header["started"]
        elif kind == "loader":
            loaders[header["loader"]] = RecordedLoader.of(header, header["at"])
        elif loader is None or loader not in loaders:  # an event, or a loader made before a fork
            events.append(header)
        elif kind == "facts":
            loaders[loader].promise = header
            with np.load(io.BytesIO(payload), allow_pickle=False) as arrays:
                loaders[loader].arrays = dict(arrays)
        elif kind == "findings":
            loaders[loader].findings = header["findings"]
        else:
            passes.setdefault((loader, header["pass"]), []).append((header, payload))
    for (loader, _), chunks in passes.items():
        loaders[loader].passes.append(_pass_of(chunks))
        if not chunks[0][0]["indices"]:
            loaders[loader].facts["is_stream"] = True
    return ProcessDraws(started, list(loaders.values()), events)


def _pass_of(chunks: list[tuple[dict[str, Any], bytes]]) -> RecordedPass:
    """Return a pass from its chunks: the first has its attributes, the others what it drew."""
    (begun, _), *rest = chunks
    batches = [each for each in rest if each[0]["kind"] == "batches"]
    states = [each for each in rest if each[0]["kind"] == "state"]
    last = states[-1][0] if states else {"handed": 0, "whole": False}
    none = np.empty(0, dtype=np.int64)
    drawn = [unpack_batches(*each) for each in batches]
    samples = np.concatenate([none, *(each for each, _ in drawn)])
    sizes = np.concatenate([none, *(each for _, each in drawn)])
    steps = [unpack(header, payload) for header, payload in states]
    return RecordedPass(
        Epoch(samples, sizes, bool(last["whole"]), begun["told"]),
        training=begun["training"],
        rank=begun["rank"],
        at=begun["at"],
        handed=last["handed"],
        order=begun["order"],
        steps=np.concatenate([none, *steps]),
    )


def _number_hashes(run: list[ProcessDraws]) -> None:
    """Number the items of streams, with the same number for equal items in all processes."""
    streams = [
        each for process in run for loader in process.loaders if loader.facts["is_stream"] for each in loader.passes
    ]
    if not streams:
        return
    samples = [each.drawn.samples for each in streams]
    numbers = np.unique(np.concatenate(samples), return_inverse=True)[1]
    ends = np.cumsum([len(each) for each in samples])
    for each, own in zip(streams, np.split(numbers, ends[:-1]), strict=True):
        each.drawn = replace(each.drawn, samples=own)


def _merge_alike(process: ProcessDraws) -> None:
    """Merge the loaders that a script or a framework makes anew for each epoch into one."""
    kept: list[RecordedLoader] = []
    for loader in process.loaders:
        if not loader.passes:
            continue
        earlier = (each for each in kept if each.passes[-1].at < loader.at and _alike(each, loader))
        if (last := next(earlier, None)) is None:
            kept.append(loader)
        else:
            last.passes += loader.passes
    process.loaders = kept


def _alike(one: RecordedLoader, other: RecordedLoader) -> bool:
    same_promise = all(one.promise.get(name) == other.promise.get(name) for name in ("claim", "identity"))
    same_samples = np.array_equal(one.arrays.get("samples"), other.arrays.get("samples"))  # type: ignore[arg-type]
    return one.facts == other.facts and same_promise and same_samples


def _drop_untrained(process: ProcessDraws) -> None:
    """If an optimizer made steps, count only passes with a step as training, even if gradients were on in others."""
    passes = [each for loader in process.loaders for each in loader.passes]
    if any(len(each.steps) for each in passes):
        for each in passes:
            each.training = each.training and len(each.steps) > 0
