"""Audits: healthy loaders have no fault, faulty ones do, and an audit changes nothing."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from audited_loaders import Augmented, Buffered, of_rank, with_epochs
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    RandomSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import replenish
from replenish import audit
from replenish.auditing import Audit, Finding
from replenish.auditing.noise import gaps
from replenish.auditing.reading import read
from replenish.torch import OrderBatchSampler, SRSBatchSampler, SRSSampler

N = 1000
DATA = TensorDataset(torch.arange(N))
LABELS = np.arange(N) // 100  # sorted by class


def loader(**options: Any) -> DataLoader:
    return DataLoader(DATA, **({"batch_size": 10} | options))


def huggingface(**options: Any) -> Any:
    datasets = pytest.importorskip("datasets")
    return datasets.Dataset.from_dict({"x": list(range(N))}).to_iterable_dataset(**options)


# ---- Healthy loaders ----

HEALTHY: dict[str, Callable[[], dict[str, Any]]] = {
    "shuffled": lambda: {"loader": loader(shuffle=True), "labels": LABELS},
    "short-last-batch": lambda: {"loader": loader(batch_size=64, shuffle=True), "labels": LABELS},
    "drop-last": lambda: {"loader": loader(batch_size=64, shuffle=True, drop_last=True), "labels": LABELS},
    "generator": lambda: {"loader": loader(shuffle=True, generator=torch.Generator().manual_seed(1))},
    "batches-of-one": lambda: {"loader": loader(batch_size=1, shuffle=True), "labels": LABELS},
    "one-batch": lambda: {"loader": loader(batch_size=N, shuffle=True), "labels": LABELS},
    "no-batches": lambda: {"loader": loader(batch_size=None, shuffle=True)},
    "replacement": lambda: {"loader": loader(sampler=RandomSampler(DATA, replacement=True)), "labels": LABELS},
    "weighted": lambda: {"loader": loader(sampler=WeightedRandomSampler(range(1, N + 1), N)), "labels": LABELS},
    "subset": lambda: {
        "loader": {
            "train": loader(sampler=SubsetRandomSampler(range(0, N, 2))),
            "validation": DataLoader(Subset(DATA, range(1, N, 2)), batch_size=10),
        },
    },
    "two-ranks": lambda: with_epochs([of_rank(DATA, 0), of_rank(DATA, 1)]) | {"labels": LABELS},
    "two-ranks-padded": lambda: with_epochs([of_rank(range(1009), rank) for rank in (0, 1)]),
    "one-rank": lambda: with_epochs(of_rank(DATA, 0)),
    "srs": lambda: {"loader": loader(batch_size=1, batch_sampler=SRSBatchSampler(DATA, 10)), "labels": LABELS},
    "srs-index-by-index": lambda: {"loader": loader(sampler=SRSSampler(DATA, 10)), "labels": LABELS},
    "srs-two-ranks": lambda: {
        "loader": [
            loader(batch_size=1, batch_sampler=SRSBatchSampler(DATA, 500, pool_size=5000, num_replicas=2, rank=rank))
            for rank in (0, 1)
        ],
    },
    "workers": lambda: {"loader": DataLoader(Augmented("numpy"), batch_size=10, shuffle=True, num_workers=2)},
    "workers-torch": lambda: {"loader": DataLoader(Augmented("torch"), batch_size=10, shuffle=True, num_workers=2)},
    "augmented-here": lambda: {"loader": DataLoader(Augmented("own"), batch_size=10, shuffle=True)},
    "stream-well-shuffled": lambda: {
        "loader": DataLoader(Buffered(N, N), batch_size=10),
        "labels": lambda item: item // 100,
    },
    "large-batches": lambda: {"loader": loader(batch_size=300, shuffle=True), "labels": LABELS},
    "lengths": lambda: {"loader": loader(shuffle=True), "labels": np.linspace(1, 2, N) ** 5},
    "batch-sampler-of-ones-own": lambda: {
        "loader": loader(batch_size=1, batch_sampler=BatchSampler(RandomSampler(DATA), 20, drop_last=False))
    },
}


@pytest.mark.parametrize("name", list(HEALTHY))
def test_healthy_loaders_are_ok(name: str) -> None:
    torch.manual_seed(11)
    found = audit(**HEALTHY[name]())
    assert found.level == "ok", found


# Without the orders that need facts about the data, and without those whose random batch sizes give a warning.
HEALTHY_ORDERS = [
    name
    for name, entry in replenish.orders.ORDERS.items()
    if not entry.needs and name not in ("poisson", "balls-in-bins")
]


@pytest.mark.parametrize("name", HEALTHY_ORDERS)
def test_orders_are_ok(name: str) -> None:
    for number in (1000, 1007):
        order = replenish.orders.build_order(name, number, 10)
        for each in (order, OrderBatchSampler(order)):
            found = audit(each, epochs=4, labels=np.arange(number) // 100)
            assert found.level == "ok", found


# ---- Faults ----


def test_the_suggested_buffer_mixes_the_labels() -> None:
    number, classes = 20_000, 10

    def found(buffer: int) -> Finding:
        torch.manual_seed(3)
        stream = DataLoader(Buffered(number, buffer), batch_size=50)
        return audit(stream, 2, labels=lambda item: item * classes // number)["labels"]

    wanted = int(found(100).numbers["buffer_wanted"])
    assert wanted > 2000
    assert found(min(wanted, number)).numbers["spread"] < 1.5


@pytest.mark.parametrize(("samples", "batch"), [(20, 2), (60, 20), (1000, 10), (1000, 250), (20_000, 100)])
@pytest.mark.parametrize("epochs", [2, 5, 20])
def test_the_regularity_of_orders_is_named_correctly(samples: int, batch: int, epochs: int) -> None:
    own = {
        replenish.ShuffleOnce: "a fixed order",
        replenish.RandomReshuffling: "as regular as reshuffling (",
        replenish.SequencedReplacement: "between reshuffling (",
        replenish.IndependentDraws: "as irregular as independent draws (",
    }
    for kind, name in own.items():
        for seed in range(4 if samples <= 1000 else 1):
            order = kind(samples, batch, seed=seed)
            record = read(order, epochs, before_epoch=None, key=None, batch_size=None, at_most=2**22, items={})
            found = gaps(record).sentence  # one question of `audit`
            assert name in found or "too few to say" in found, (kind, seed, found)
            if samples >= 1000:  # enough for a clear answer
                assert "too few to say" not in found, (kind, seed, found)
                assert ", or" not in found.replace(", or more", ""), (kind, seed, found)


def test_a_huggingface_stream_after_a_resume() -> None:
    shuffled = huggingface(num_shards=4).shuffle(seed=1, buffer_size=100)
    found = audit(shuffled, batch_size=10, before_epoch=shuffled.set_epoch)
    assert found["coverage"].level == "ok"
    assert found["epochs"].level == "ok"
    assert found["resuming"].level == "fault"
    assert 50 <= found["resuming"].numbers["lost"] <= 100
    plain = audit(huggingface(), batch_size=10)
    assert plain["resuming"].level == "ok"
    assert audit(shuffled, batch_size=10)["epochs"].level == "fault"  # set_epoch forgotten


def test_a_sampler_that_does_not_follow_its_law(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_half_after_the_other(sampler: RandomSampler) -> Iterator[int]:
        first = torch.randperm(N // 2).tolist()
        return iter(first + [N // 2 + index for index in torch.randperm(N // 2).tolist()])

    monkeypatch.setattr(RandomSampler, "__iter__", one_half_after_the_other)
    found = audit(loader(shuffle=True), epochs=6)["noise"]
    assert found.level == "warning"
    assert "where the law of RandomSampler has" in found.sentence
    monkeypatch.setattr(RandomSampler, "__iter__", lambda sampler: iter(torch.randint(N, (N,)).tolist()))
    assert "though RandomSampler should draw each once" in audit(loader(shuffle=True))["coverage"].sentence


def test_a_dataset_that_cannot_be_read() -> None:
    class Broken(Augmented):
        def __getitem__(self, index: int) -> tuple[int, float]:
            raise OSError("no disk")

    found = audit(DataLoader(Broken("numpy"), shuffle=True))["augmentation"]
    assert (found.level, "raised OSError: no disk" in found.sentence) == ("warning", True)
    silent = audit(DataLoader(Broken("numpy"), shuffle=True), call_dataset=False)
    assert "augmentation" not in [finding.name for finding in silent.findings]


# ---- Streams ----


def test_randomly_changing_items_need_a_key() -> None:
    class Changing(IterableDataset):
        def __iter__(self) -> Iterator[dict[str, Any]]:
            for item in torch.randperm(50).tolist():
                yield {"name": f"item {item}", "image": torch.rand(2, 2)}

    lost = audit(DataLoader(Changing(), batch_size=5))
    assert "pass key=" in lost["coverage"].sentence
    found = audit(DataLoader(Changing(), batch_size=5), key=lambda item: item["name"])
    assert found["coverage"].sentence == "Every one of the 50 items comes once in every epoch."


def test_endless_streams_are_cut() -> None:
    class Endless(IterableDataset):
        def __iter__(self) -> Iterator[int]:
            while True:
                yield int(torch.randint(1000, ()))

    found = audit(DataLoader(Endless(), batch_size=10), 2, at_most=300)
    assert "No pass reached its end: 600 draws in 2 passes" in found["coverage"].sentence


# ---- Side effects, output and errors ----


def test_an_audit_changes_nothing() -> None:
    batch_sampler = SRSBatchSampler(DATA, 10)
    batch_sampler.seek(30)
    generator = torch.Generator().manual_seed(4)
    distributed = of_rank(DATA, 0)
    distributed.sampler.set_epoch(7)
    states = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist(), generator.get_state())  # noqa: NPY002
    audit(loader(batch_size=1, batch_sampler=batch_sampler))
    audit(loader(shuffle=True, generator=generator))
    audit(loader(shuffle=True))
    audit(**with_epochs(distributed))
    audit(DataLoader(Augmented("numpy"), shuffle=True))
    assert batch_sampler.state_dict()["step"] == 30
    assert distributed.sampler.epoch == 7
    after = (torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist(), generator.get_state())  # noqa: NPY002
    assert torch.equal(states[0], after[0])
    assert states[1:3] == after[1:3]
    assert torch.equal(states[3], after[3])


def test_only_the_first_sample_is_read() -> None:
    class Watched(Augmented):
        asked: set[int] = set()  # noqa: RUF012

        def __getitem__(self, index: int) -> tuple[int, float]:
            self.asked.add(index)
            return super().__getitem__(index)

    audit(DataLoader(Watched("numpy"), shuffle=True))
    assert Watched.asked == {0}


def test_an_audit_as_text_page_and_json() -> None:
    found = audit(of_rank(DATA, 0), labels=LABELS)
    lines = repr(found).splitlines()
    assert lines[0] == "DataLoader (DistributedSampler), 1000 samples, batches of 5, 3 epochs: fault"
    assert any(line.startswith("  fault    epochs") for line in lines)
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert found.to_dict()["level"] == found.level == "fault"
    page = Audit("<loader>", (Finding("q", "fault", "a < b", {}),))._repr_html_()
    assert "&lt;loader&gt;" in page
    assert "a &lt; b" in page
    with pytest.raises(KeyError, match="name should be one of coverage, epochs"):
        found["nothing"]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"loader": loader(), "epochs": 1}, ValueError, "epochs should be at least 2, but got 1"),
        ({"loader": iter([[0]])}, TypeError, "can be iterated once per epoch, but got the list_iterator"),
        ({"loader": [loader(), 7]}, TypeError, "should be a list of loaders only, but got a int among them"),
        ({"loader": 7}, TypeError, "loader should be a loader, an Order or an iterable, but got a int"),
        (
            {"loader": loader(), "labels": [0, 1]},
            ValueError,
            "labels should have one entry for each of the 1000 samples",
        ),
        ({"loader": loader(), "labels": [None] * N}, TypeError, "labels should be numbers or strings"),
        ({"loader": DataLoader(Buffered(N, 1)), "labels": LABELS}, TypeError, "labels should be a function of an item"),
        ({"loader": DataLoader(Buffered(0, 1))}, ValueError, "at least one item per epoch, but got none in epoch 0"),
    ],
)
def test_bad_input(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        audit(**arguments)
