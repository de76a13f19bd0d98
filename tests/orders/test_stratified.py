"""Stratified batches: the classes of every batch, and the samples within them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from replenish import RandomReshuffling, SequencedReplacement, Stratified
from replenish.draws import derived_seed
from replenish.orders.shares import Quotas, floor_sum, whole_shares


@given(st.integers(0, 200), st.integers(1, 50), st.integers(0, 120), st.integers(0, 120))
def test_floor_sum(count: int, divisor: int, factor: int, offset: int) -> None:
    assert floor_sum(count, divisor, factor, offset) == sum((factor * i + offset) // divisor for i in range(count))


SHARES = st.lists(st.integers(0, 12), min_size=1, max_size=9).filter(any)


@given(SHARES, st.integers(1, 20), st.integers(0, 2**63 - 1), st.integers(0, 300))
def test_every_batch_has_each_share_within_one(shares: list[int], size: int, seed: int, start: int) -> None:
    quotas = Quotas(shares, size, seed)
    counts = np.stack([np.bincount(row, minlength=len(shares)) for row in quotas.classes(start, 80)])
    exact = size * np.array(shares) / sum(shares)
    assert (counts.sum(axis=1) == size).all()
    assert (counts >= np.floor(exact - 1e-9)).all()
    assert (counts <= np.ceil(exact + 1e-9)).all()
    # Up to any step the counts are within a few of the shares, and they equal the closed form.
    assert abs(np.cumsum(counts, axis=0) - np.arange(1, 81)[:, np.newaxis] * exact).max() < 3
    before = np.array(quotas.counts_before(start))
    assert quotas.counts_before(start + 80) == (before + counts.sum(axis=0)).tolist()


@given(SHARES, st.integers(1, 20), st.integers(0, 10**18))
def test_far_counts_match_the_shares(shares: list[int], size: int, step: int) -> None:
    counts = Quotas(shares, size, seed=1).counts_before(step)
    assert sum(counts) == size * step
    both = zip(counts, shares, strict=True)
    assert all(abs(count * sum(shares) - size * step * share) < 3 * sum(shares) for count, share in both)


def test_shares_as_whole_numbers() -> None:
    assert whole_shares(np.array([2.0, 0.0, 3.0])) == [2, 0, 3]
    assert whole_shares(np.array([1e300, 1e300])) == [2**31, 2**31]
    assert min(whole_shares(np.array([1.0, 1e-30]))) == 1


LABELS = np.array([0] * 30 + [1] * 20 + [7] * 10)[np.random.default_rng(0).permutation(60)]


def test_an_epoch_has_every_sample_once_if_the_shares_are_whole() -> None:
    order = Stratified(60, 6, labels=LABELS)
    for number in range(4):
        batches = list(order.batches(10 * number, 10 * number + 10))
        assert sorted(np.concatenate(batches).tolist()) == list(range(60))
        assert all(np.bincount(LABELS[batch], minlength=8)[[0, 1, 7]].tolist() == [3, 2, 1] for batch in batches)


@pytest.mark.parametrize("within", ["reshuffling", "srs"])
def test_each_class_has_its_own_order(within: str) -> None:
    order = Stratified(60, 7, labels=LABELS, seed=5, within=within)
    kind: Any = {"reshuffling": RandomReshuffling, "srs": SequencedReplacement}[within]
    drawn = np.concatenate(list(order.batches(0, 100)))
    for number, label in enumerate([0, 1, 7]):
        members = (label == LABELS).nonzero()[0]
        of_class = drawn[LABELS[drawn] == label]
        stream = kind(len(members), 1, seed=derived_seed(5, "class", number)).batches(0, len(of_class))
        assert of_class.tolist() == members[np.concatenate(list(stream))].tolist()


def test_places_of_classes_are_shuffled() -> None:
    order = Stratified(60, 6, labels=LABELS)
    rare = np.stack([LABELS[batch] == 7 for batch in order.batches(0, 6_000)])
    assert abs(rare.mean(axis=0) - 1 / 6).max() < 5 * np.sqrt(5 / 36 / 6_000)


def test_balanced_classes() -> None:
    order = Stratified(60, 6, labels=LABELS, weights="balanced")
    counts = np.bincount(np.concatenate(list(order.batches(0, 300))), minlength=60)
    assert [counts[label == LABELS].sum() for label in (0, 1, 7)] == [600, 600, 600]
    assert {int(count) for count in counts[LABELS == 7]} == {60}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": [0, 1]}, "labels should have one entry for each of the 3 samples"),
        ({"labels": [0.5, 1, 2]}, "labels should be integers"),
        ({"labels": [-1, 1, 2]}, "an entry of labels should be at least 0, but got -1"),
        ({"labels": [0, 1, 1], "weights": "equal"}, 'weights should be None, "balanced" or an array'),
        ({"labels": [0, 1, 1], "weights": [1, 2, 3]}, "weights should have one entry for each of the 2 classes"),
        ({"labels": [0, 1, 1], "weights": [0, 0]}, "weights should not all be zero"),
        ({"labels": [0, 1, 1], "within": "flip-flop"}, "within should be one of reshuffling, srs, but got 'flip-flop'"),
    ],
)
def test_bad_arguments_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Stratified(3, 2, **options)


def test_different_orders_have_different_configs() -> None:
    other = np.where(LABELS == 7, 1, LABELS)
    orders = [
        Stratified(60, 6, labels=LABELS),
        Stratified(60, 6, labels=other),
        Stratified(60, 6, labels=LABELS, weights="balanced"),
        Stratified(60, 6, labels=LABELS, weights=[1, 1, 1]),
        Stratified(60, 6, labels=LABELS, within="srs"),
    ]
    assert len({str(order.config()) for order in orders}) == len(orders)
