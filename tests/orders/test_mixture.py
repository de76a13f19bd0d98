"""Mixtures: shares within one in every batch, counts in closed form, and a separate order for each source."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from replenish import Mixture, RandomReshuffling, SequencedReplacement, Skipping, state
from replenish.draws import derived_seed
from replenish.orders import PoissonDraws, build_order, order_from_config, read_order
from replenish.orders.building import check_fittable

SIZES = [1000, 50, 7, 6000]


def source_batches(mixture: Mixture, start: int, stop: int) -> list[list[int]]:
    """Return how many samples of each source are in each batch."""
    count = len(mixture.sizes)
    return [np.bincount(mixture.locate(b)[0], minlength=count).tolist() for b in mixture.batches(start, stop)]


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1e6), st.integers(0, 9)), min_size=1, max_size=8),
    batch_size=st.integers(1, 70),
    seed=st.integers(0, 2**63 - 1),
    start=st.sampled_from([0, 3, 10**9]),
)
def test_every_batch_has_each_share_within_one_and_counts_are_exact(
    weights: list[float], batch_size: int, seed: int, start: int
) -> None:
    if not any(weights):
        return
    mixture = Mixture([11 + 7 * k for k in range(len(weights))], weights, batch_size, seed=seed)
    shares = np.array(weights) / sum(weights) * batch_size
    batches = np.array(source_batches(mixture, start, start + 40))
    assert (np.abs(batches - shares) < 1 + 1e-6).all()
    assert (batches[:, np.array(weights) == 0] == 0).all()
    before, after = mixture.source_counts(start), mixture.source_counts(start + 40)
    assert [b - a for a, b in zip(before, after, strict=True)] == batches.sum(axis=0).tolist()
    assert sum(after) == batch_size * (start + 40)


def test_counts_stay_within_a_few_of_exact_however_far() -> None:
    """The docs state 6.6 as the largest deviation seen, with up to 40 sources."""
    generator, most = np.random.default_rng(0), 0.0
    for _ in range(200):
        weights = generator.integers(1, 1000, generator.integers(2, 12)).tolist()
        mixture = Mixture([10] * len(weights), weights, int(generator.integers(1, 300)))
        for step in (10 ** generator.uniform(0, 15, 20)).astype(int).tolist():
            # In integers, since floats are not exact at 10**15 * 300.
            total = sum(weights)
            off = [
                abs(total * count - step * mixture.batch_size * weight) / total
                for count, weight in zip(mixture.source_counts(step), weights, strict=True)
            ]
            most = max(most, *off)
    assert most < 7


def test_each_source_is_drawn_in_its_own_order() -> None:
    srs = SequencedReplacement(60, 8, seed=5)
    mixture = Mixture([6000, 60, 3], [2, 1, 1], 16, seed=4, orders=[None, srs, None])
    sources, indices = mixture.locate(np.concatenate(list(mixture.batches(0, 900))))
    own = RandomReshuffling(6000, 99, seed=derived_seed(4, "source", 0), computed=True)
    for number, order in enumerate((own, srs)):
        drawn = indices[sources == number]
        assert drawn.tolist() == order.samples(0, len(drawn)).tolist()
    tiny = indices[sources == 2][: 3 * 1000].reshape(-1, 3)  # a source smaller than its share of a batch
    assert (np.sort(tiny, axis=1) == [0, 1, 2]).all()


def test_stages_lose_and_repeat_no_sample() -> None:
    plain = Mixture(SIZES, [1, 1, 1, 1], 30, seed=2)
    staged = Mixture(SIZES, [5, 0, 0, 1], 30, seed=2, stages=[(100, [1, 1, 1, 1]), (150, None)])
    assert [b.tolist() for b in plain.batches(0, 100)] == [b.tolist() for b in staged.batches(0, 100)]
    assert source_batches(staged, 150, 153) == [[25, 0, 0, 5]] * 3
    sources, indices = staged.locate(np.concatenate(list(staged.batches(0, 400))))
    for number, size in enumerate(SIZES):
        drawn = indices[sources == number]
        assert len(drawn) == staged.source_counts(400)[number]
        for start in range(0, len(drawn) - size + 1, size):
            assert len(set(drawn[start : start + size].tolist())) == size
    assert state.load(staged, state.save(plain, 100)) == 100
    with pytest.raises(ValueError, match="stages is '' in the state|weights is .* in the state"):
        state.load(staged, state.save(plain, 101))


def test_rebatched_keeps_earlier_draws_and_the_shares() -> None:
    mixture = Mixture(SIZES, [5, 2, 1, 2], 10, seed=2)
    other = mixture.rebatched(40, at_step=33)
    assert [b.tolist() for b in mixture.batches(0, 33)] == [b.tolist() for b in other.batches(0, 33)]
    sources, indices = mixture.locate(np.concatenate(list(other.batches(0, 300))))
    assert np.bincount(sources[-40:], minlength=4).tolist() == [20, 8, 4, 8]
    for number, own in enumerate(mixture._orders()):
        drawn = indices[sources == number]
        assert drawn.tolist() == own.samples(0, len(drawn)).tolist()
    assert state.load(other, state.save(mixture, 33)) == 33


def test_large_sources_many_sources_and_one_source() -> None:
    large = Mixture([10**12, 10**12 + 1, 3], [1, 2, 1e-9], 64)
    sources, indices = large.locate(large.batch(10**15))
    assert sorted(set(sources.tolist())) == [0, 1]
    assert indices.max() > 10**11
    assert large.visits(10**15).min() > 10**4 - 2
    many = Mixture([100] * 1000, np.arange(1000), 256)
    assert len(np.unique(many.locate(np.concatenate(list(many.batches(0, 2500))))[0])) == 999
    one = Mixture([12], [7], 4)
    assert sorted(one.samples(0, 12).tolist()) == list(range(12))


def test_a_hand_written_config_file(tmp_path: Any) -> None:
    path = tmp_path / "mix.json"
    inner = {"order": "Mixture", "sizes": [900, 100], "weights": [3, 1], "batch_size": 8, "stages": [[5, [1, 1]]]}
    path.write_text(json.dumps(inner))
    assert read_order(path) == Mixture([900, 100], [3, 1], 8, stages=[(5, [1, 1])])
    path.write_text(json.dumps({"order": "Skipping", "ranges": [[10, 20]], "of": inner}))
    assert read_order(path).batch(10).tolist() == order_from_config(inner).batch(20).tolist()
    for text, message in [("[1]", "holds a list"), ("{", "is garbled"), ('{"order": "Mixture"}', "sizes should be in")]:
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            read_order(path)
    with pytest.raises(ValueError, match="num_samples is 5 in the config, but what it names has 1000"):
        order_from_config({**inner, "num_samples": 5})


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"sizes": []}, r"sizes should list how many samples each source has, but got \[\]"),
        ({"sizes": [10, 0]}, r"sizes\[1\] should be at least 1, but got 0"),
        ({"sizes": [1.5]}, "sizes should list how many"),
        ({"weights": [1]}, r"weights should have one number for each of the 2 sources, but got .* shape \(1,\)"),
        ({"weights": [0, 0]}, "weights should not all be zero"),
        ({"weights": [1, -1]}, "weights should be finite and not negative, but got -1"),
        ({"stages": [(5, [1, 1]), (5, [1, 2])]}, "stages should end at ascending steps, but got until_step=5 after 5"),
        ({"stages": [5]}, r"stages should be pairs \(until_step, weights\), but got 5"),
        ({"stages": 5}, r"stages should list pairs \(until_step, weights\), but got 5"),
        ({"orders": [None]}, "orders should list an order or None for each of the 2 sources"),
        ({"orders": [None, SequencedReplacement(9, 2)]}, r"orders\[1\] should have the 20 samples .* num_samples=9"),
        ({"orders": [None, PoissonDraws(20, 2)]}, "batches of one size, but those of PoissonDraws"),
    ],
)
def test_wrong_arguments_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Mixture(**{"sizes": [10, 20], "weights": [1, 1], "batch_size": 4, **arguments})


def test_indices_out_of_range_are_named() -> None:
    with pytest.raises(ValueError, match=r"indices should be integers in \[0, 30\), but got \[30\]"):
        Mixture([10, 20], None, 4).locate([30])


def test_a_config_file_can_replace_the_name_of_an_order(tmp_path: Any) -> None:
    path, config = tmp_path / "mix.json", {"order": "Mixture", "sizes": [900, 100], "weights": [3, 1], "batch_size": 8}
    path.write_text(json.dumps(config))
    built = build_order(str(path), 1000, 20, seed=7)
    assert built == Mixture([900, 100], [3, 1], 20, seed=7)
    check_fittable(str(path), {})
    path.write_text(json.dumps({"order": "Skipping", "ranges": [[3, 5]], "of": config}))
    assert build_order(str(path), 1000, 20, seed=7).batch(3).tolist() == built.batch(5).tolist()
    with pytest.raises(ValueError, match="an order of the 99 samples there are, but its order has 1000"):
        build_order(str(path), 99, 20)
    with pytest.raises(ValueError, match="pool_size should be in .*mix.json"):
        check_fittable(str(path), {"pool_size": 5})
    path.write_text(json.dumps(built.rebatched(10, 5).config()))
    with pytest.raises(ValueError, match="leave the batch size to the training, but names a rebatched order"):
        build_order(str(path), 1000, 20)
    path.write_text(json.dumps(Skipping(RandomReshuffling(100, 5), [(1, 3)]).config()))
    assert len(build_order(str(path), 100, 10).batch(1)) == 10
    with pytest.raises(ValueError, match="skip steps of an order without short batches"):
        build_order(str(path), 100, 8)
    path.write_text(json.dumps(PoissonDraws(100, 5).config()))
    with pytest.raises(ValueError, match="batches of the loaders' sizes, but those of .*mix.json have random ones"):
        check_fittable(str(path), {})
    inner = Mixture([60, 40], None, 8, orders=[SequencedReplacement(60, 8), None])
    path.write_text(json.dumps(inner.config()))
    seeds = [build_order(str(path), 100, 4, seed=seed).config()["orders"] for seed in (0, 1)]
    assert seeds[0] != seeds[1]
