"""The shuffle battery finds planted defects at stated sizes, and no fault in healthy orders."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pytest
from scipy import stats
from torch.utils.data import DataLoader, DistributedSampler, Sampler, SubsetRandomSampler

from replenish import (
    BallsInBins,
    BatchedReplacement,
    FlipFlop,
    IndependentDraws,
    PairedReversal,
    PoissonDraws,
    RandomReshuffling,
    RepeatedAugmentation,
    SequencedReplacement,
    ShuffleBuffer,
    ShuffleOnce,
    Stratified,
    WeightedDraws,
    audit,
)
from replenish.diagnostics import shuffle_quality
from replenish.draws import Int64Array
from replenish.measure.shuffle.effects import gamma_p, holm, normal_p, poisson_p
from replenish.orders.protocol import Order

Epoch = Callable[[int, np.random.Generator], Int64Array]


def parity(n: int, rng: np.random.Generator) -> Int64Array:
    return np.concatenate([2 * rng.permutation(n // 2), 2 * rng.permutation(n // 2) + 1])


def affine(n: int, rng: np.random.Generator) -> Int64Array:
    factors = [a for a in rng.integers(n // 4, n, 100).tolist() if np.gcd(a, n) == 1]
    return (factors[0] * np.arange(n) + rng.integers(n)) % n


def riffle_once(n: int, rng: np.random.Generator) -> Int64Array:
    first = rng.permutation(n) < rng.binomial(n, 0.5)
    return np.argsort(np.argsort(~first, kind="stable"), kind="stable")


def shard_local(n: int, rng: np.random.Generator) -> Int64Array:
    shards = np.array_split(np.arange(n), max(2, n // 1000))
    return np.concatenate([rng.permutation(shards[place]) for place in rng.permutation(len(shards))])


def weak_feistel(n: int, rng: np.random.Generator) -> Int64Array:
    """Four rounds of a Feistel network with a linear round function, repeated until the value is below n."""
    half = -(-(n - 1).bit_length() // 2)
    mask, values, keys = (1 << half) - 1, np.arange(n), rng.integers(1 << half, size=4)
    out = np.full(n, n)
    while (out >= n).any():
        left, right = values >> half, values & mask
        for key in keys:
            left, right = right, left ^ (((right << 1) | (right >> (half - 1))) & mask ^ int(key))
        values = np.where(out >= n, (left << half) | right, values)
        out = values
    return out


def batches_only(n: int, rng: np.random.Generator) -> Int64Array:
    rows = np.random.default_rng(5).permutation(n).reshape(-1, 20)
    return rows[rng.permutation(len(rows))].ravel()


def shifted(n: int, rng: np.random.Generator) -> Int64Array:
    return (np.random.default_rng(5).permutation(n) + rng.integers(n)) % n


def rotated(n: int, rng: np.random.Generator) -> Int64Array:
    return np.roll(np.random.default_rng(5).permutation(n), rng.integers(n))


def stream(epoch: Epoch, n: int, batch_size: int, epochs: int = 3) -> Iterator[Int64Array]:
    rng = np.random.default_rng(1)
    for _ in range(epochs):
        indices = epoch(n, rng)
        yield from (indices[start : start + batch_size] for start in range(0, n, batch_size))


@pytest.mark.parametrize(
    ("epoch", "named"),
    [
        (parity, "residues"),
        (affine, "steps"),
        (riffle_once, "neighbours"),
        (shard_local, "blocks"),
        (weak_feistel, "steps"),
        (batches_only, "pairs"),
        (shifted, "shift of epochs"),
        (rotated, "shift of epochs"),
    ],
)
@pytest.mark.parametrize(("n", "batch_size"), [(200, 20), (2_000, 20), (20_000, 100)])
def test_planted_defects_are_found(epoch: Epoch, named: str, n: int, batch_size: int) -> None:
    found = shuffle_quality(stream(epoch, n, batch_size), n)
    assert (found.level, found.epochs, found[named].level) == ("fault", 3, "fault"), found


def make(kind: type, n: int, batch_size: int, seed: int) -> Order:
    classes = np.arange(n) % 10
    more: dict[type, dict[str, object]] = {
        Stratified: {"labels": classes},
        WeightedDraws: {"weights": 1 + classes},
        ShuffleBuffer: {"buffer_size": n},
    }
    return kind(n, batch_size, seed=seed, **more.get(kind, {}))


@pytest.mark.parametrize("n", [60, 1_000])
@pytest.mark.parametrize(
    "kind",
    [
        RandomReshuffling, SequencedReplacement, BatchedReplacement, IndependentDraws, ShuffleOnce, FlipFlop,
        PairedReversal, PoissonDraws, BallsInBins, RepeatedAugmentation, Stratified, WeightedDraws, ShuffleBuffer,
    ],
)  # fmt: skip
def test_healthy_orders_are_not_faulted(kind: type, n: int) -> None:
    """Test 12 streams per kind and size; benchmarks/shuffle_false_faults.py tests 1,000."""
    levels = [shuffle_quality(make(kind, n, 8, seed), n).level for seed in range(12)]
    assert levels == ["ok"] * 12


def test_few_small_batches_are_not_faulted() -> None:
    assert shuffle_quality([[1, 2], [3, 4]], 10).level == "ok"
    generator = np.random.default_rng(5)
    for n, batch_size in [(4, 2), (6, 4), (20, 15), (56, 32)]:
        for _ in range(20):  # an earlier version faulted 1 in 3 of these
            epoch = generator.permutation(n)
            assert shuffle_quality([epoch[:batch_size], epoch[batch_size:]], n).level == "ok"


def test_p_values_of_a_uniform_shuffle_are_uniform() -> None:
    """They may be conservative: of 150 streams, no more have a small p than by chance."""
    found = [shuffle_quality(RandomReshuffling(600, 12, seed=seed), 600) for seed in range(150)]
    for name in [finding.name for finding in found[0].findings]:
        small = sum((each[name].p or 0) < 0.05 for each in found)
        assert stats.binom.sf(small - 1, 150, 0.05) > 1e-6, name


@pytest.mark.parametrize("shape", [0.5, 3.0, 80.0, 5_000.0, 5e5])
def test_tails_match_scipy(shape: float) -> None:
    for sigmas in (-3, -1, 0.5, 4):
        value = shape + sigmas * np.sqrt(shape)
        if value > 0:
            wanted = 2 * min(stats.gamma.cdf(value, shape), stats.gamma.sf(value, shape))
            assert gamma_p(value, shape, shape) == pytest.approx(min(1, wanted), rel=0.02)
    for number in (0, int(shape), int(2 * shape) + 1):
        wanted = 2 * min(stats.poisson.cdf(number, shape), stats.poisson.sf(number - 1, shape))
        assert poisson_p(number, shape) == pytest.approx(max(1e-300, min(1, wanted)), rel=0.02, abs=1e-200)
    assert normal_p(shape) == pytest.approx(max(2 * stats.norm.sf(shape), 1e-300))
    assert holm([]) == []
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_replacement_with_unequal_shares_is_detected() -> None:
    rng = np.random.default_rng(0)
    draws = rng.choice(1000, size=(300, 20), p=np.repeat([0.0012, 0.0008], 500))
    found = shuffle_quality(iter(draws), 1000)
    assert (found.kind, found.level, found["shares"].level) == ("weighted", "warning", "warning")
    assert shuffle_quality(iter(draws), 1000, kind="weighted").level == "ok"


def test_repeats_are_a_fault_of_reshuffling() -> None:
    rng = np.random.default_rng(0)
    draws = rng.integers(1000, size=(100, 20))
    assert shuffle_quality(iter(draws), 1000).level == "ok"
    assert shuffle_quality(iter(draws), 1000, kind="reshuffling")["repeats"].level == "fault"
    few = np.concatenate([rng.permutation(1000)[:980], np.arange(20)]).reshape(-1, 20)
    assert shuffle_quality(iter(few), 1000)["repeats"].level == "warning"


def test_bunched_labels_are_found() -> None:
    n = 4_000
    labels = np.random.default_rng(0).integers(0, 5, n)
    order = [np.random.default_rng(e).permutation(n).reshape(-1, 400) for e in range(2)]
    bunched = np.concatenate([part[np.argsort(labels[part])] for epoch in order for part in epoch]).reshape(-1, 20)
    assert shuffle_quality(iter(bunched), n)["blocks"].level == "ok"  # indices are independent of the labels
    assert shuffle_quality(iter(bunched), n, labels=labels)["labels"].level == "fault"
    assert shuffle_quality(RandomReshuffling(n, 20), n, labels=labels.astype(str)).level == "ok"


def test_a_partial_epoch_of_a_huge_stream_is_judged() -> None:
    n, rng = 10**12, np.random.default_rng(0)
    fine = rng.integers(0, n, size=(400, 64))
    assert shuffle_quality(iter(fine), n).level == "ok"
    assert shuffle_quality(iter(fine // 2 * 2), n)["residues"].level == "fault"
    near = fine // 10**6 % 1000 * 10**6 + fine % 10**6
    assert shuffle_quality(iter(near), n)["blocks"].level == "fault"


def test_loaders_and_samplers_are_read() -> None:
    loader = DataLoader(range(500), batch_size=10, shuffle=True)
    found = shuffle_quality(loader, 500)
    assert (found.epochs, found.draws, found.level) == (3, 1500, "ok")
    sampler = DistributedSampler(range(500), num_replicas=1, rank=0)
    stuck = shuffle_quality(sampler, 500, epochs=3, batch_size=10)
    assert stuck["same places of epochs"].level == "fault"
    moved = shuffle_quality(sampler, 500, epochs=3, batch_size=10, before_epoch=sampler.set_epoch)
    assert moved.level == "ok"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"source": DataLoader(range(9)), "num_samples": 10},
            "num_samples should be at most the loader's 9, but got 10",
        ),
        ({"source": [], "num_samples": 10}, "source should yield at least one batch, but got none"),
        ({"source": [0, 1], "num_samples": 10}, "batch_size should say how many indices make a batch"),
        ({"source": [[0, 12]], "num_samples": 10}, "indices should be below num_samples = 10, but got 12"),
        ({"source": [[0, 1]], "num_samples": 10, "kind": "good"}, "kind should be one of reshuffling, related epochs"),
        ({"source": RandomReshuffling(10, 5), "num_samples": 9}, "num_samples should be the order's 10, but got 9"),
        ({"source": iter([[0]]), "num_samples": 9, "epochs": 2}, "source should start anew for each of its epochs"),
        ({"source": [[0, 1]], "num_samples": 9, "labels": [1]}, "labels should have one entry for each of the 9"),
    ],
)
def test_bad_input(arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises((TypeError, ValueError), match=sentence):
        shuffle_quality(**arguments)  # type: ignore[arg-type]


class Affine(Sampler[int]):
    def __init__(self, dataset: range) -> None:
        self.data_source = dataset

    def __iter__(self) -> Iterator[int]:
        n, rng = len(self.data_source), np.random.default_rng()
        return iter(affine(n, rng).tolist())

    def __len__(self) -> int:
        return len(self.data_source)


def test_an_audit_includes_the_battery() -> None:
    data = range(2_000)
    loader = DataLoader(data, batch_size=20, sampler=Affine(data))
    found = audit(loader)["shuffle"]
    assert (found.level, found.effect is not None) == ("fault", True)
    assert audit(DataLoader(data, batch_size=20, shuffle=True))["shuffle"].level == "ok"
    part = SubsetRandomSampler(range(0, 2_000, 2))  # only even indices, as the sampler states
    assert audit(DataLoader(data, batch_size=20, sampler=part))["shuffle"].level == "ok"
    meant = audit(ShuffleBuffer(2_000, 20, buffer_size=50))["shuffle"]
    assert (meant.level, meant.sentence.endswith("ShuffleBuffer is meant to do this.")) == ("ok", True)
    assert all(each.name != "shuffle" for each in audit(DataLoader(data, batch_size=20)).findings)


def test_the_answer_prints_and_states_the_smallest_visible_effect() -> None:
    found = shuffle_quality(RandomReshuffling(300, 10), 300, max_draws=600)
    assert repr(found).startswith("shuffle quality: ok (N = 300, B = 10, 600 draws of 3 epochs")
    assert "Too few draws to see one below" in found["batch mean"].sentence
    assert found.to_dict()["level"] == "ok"
    assert "<table>" in found._repr_html_()
    with pytest.raises(KeyError, match="name should be one of repeats, batch mean"):
        found["colour"]
