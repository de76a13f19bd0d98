"""The second study's rules on made-up values, and its arms against its statement."""

import math
from pathlib import Path

import numpy as np
import pytest

from replenish import RandomReshuffling, SequencedReplacement
from replenish.lab.runs import read_runs
from replenish.theory import equivalent_learning_rate
from study.second import rules
from study.second.arms import EQUAL_VARIANCE_RATE, FULL_EQUAL_VARIANCE_RATE, PARTS

RECORDS = Path(__file__).parents[2] / "study" / "records"


@pytest.mark.parametrize(
    ("shift", "spread", "verdict"),
    [(-0.2, 0.05, "better"), (0.2, 0.05, "worse"), (0.005, 0.02, "equivalent"), (0.02, 0.2, "undecided")],
)
def test_a_verdict_follows_from_the_shift_and_the_spread(shift, spread, verdict):
    differences = shift + spread * np.linspace(-1, 1, 20)
    base = np.linspace(4, 5, 20)
    judged = rules.paired(base + differences, base, margin=0.03)
    assert judged.verdict == verdict
    assert judged.mean == pytest.approx(shift)
    assert judged.interval[0] < shift < judged.interval[1]


def test_without_a_margin_nothing_is_equivalent():
    assert rules.paired([1.0, 1.1, 0.9], [1.0, 1.2, 1.1]).p_equivalent is None


def test_holm_counts_missing_p_values_as_1():
    adjusted = rules.holm({"K3": 0.005, "K4": 0.04})
    assert adjusted == pytest.approx({"K3": 0.025, "K4": 0.16, "K4, equivalence": 1, "E1": 1, "E2": 1})
    with pytest.raises(ValueError, match="names from"):
        rules.holm({"K2": 0.01})


@pytest.mark.parametrize(
    ("p", "p_equivalent", "verdict"), [(0.04, 0.9, "better"), (0.2, 0.9, "undecided"), (0.04, 0.01, "equivalent")]
)
def test_a_secondary_verdict_uses_the_corrected_p_values(p, p_equivalent, verdict):
    judged = rules.paired([1.0, 1.1, 0.9], [2.0, 2.2, 2.1], margin=0.03)
    assert rules.corrected("K4", judged, {"K4": p, "K4, equivalence": p_equivalent}) == verdict


def test_k1_is_small_for_the_predicted_order_and_large_for_the_reverse():
    rising = {
        arm: [place + 0.1 * math.sin(seed + place) for seed in range(20)]
        for place, arm in enumerate(rules.PREDICTED_ORDER)
    }
    falling = dict(zip(rules.PREDICTED_ORDER, reversed(list(rising.values())), strict=True))
    assert rules.k1(rising) < 1e-6
    assert rules.k1(falling) > 0.99


def test_part_k_is_as_stated():
    part = PARTS["K"]
    assert set(rules.PREDICTED_ORDER) < set(part.arms)
    assert len(part.jobs("unused", "")) == 140
    config = part.arms["srs"]
    assert (config.decays, config.batch_size, config.epochs) == ((36.0, 45.0, 52.5), 50, 60)
    assert rules.K1_EPOCH % config.clean_every == 0
    factor = equivalent_learning_rate(RandomReshuffling(2500, 50), SequencedReplacement(2500, 50), 1e-5, 0.9)
    assert pytest.approx(0.1 * factor, rel=1e-4) == EQUAL_VARIANCE_RATE


def test_parts_f_and_e_are_as_stated():
    assert [len(PARTS[name].jobs("unused", "")) for name in "FE"] == [48, 72]
    config = PARTS["F"].arms["srs"]
    assert (config.decays, config.batch_size, config.epochs, config.dropout) == ((6.0, 7.5, 8.75), 100, 10, None)
    factor = equivalent_learning_rate(RandomReshuffling(50_000, 100), SequencedReplacement(50_000, 100), 1e-5, 0.9)
    assert pytest.approx(0.1 * factor, rel=1e-4) == FULL_EQUAL_VARIANCE_RATE


def test_e1_is_small_for_the_predicted_order():
    rising = {order: [place + 0.1 * seed for seed in range(8)] for place, order in enumerate(rules.FEW_EPOCHS_ORDER)}
    assert rules.e1(rising) < 1e-3
    assert rules.e1(dict(zip(rules.FEW_EPOCHS_ORDER, reversed(list(rising.values())), strict=True))) > 0.99


def test_e2_is_better_if_the_difference_shrinks():
    seeds = np.arange(8)
    one = {"srs": 80 + 2 + 0.1 * (seeds % 3), "reshuffling": 80.0 + 0 * seeds}
    four = {"srs": 60 + 0.2 + 0.1 * (seeds % 2), "reshuffling": 60.0 + 0 * seeds}
    assert rules.e2(one, four).verdict == "better"
    assert rules.e2(four, one).verdict == "worse"


def test_the_records_belong_to_stated_runs() -> None:
    """Committed runs have ended, belong to a stated arm and seed, and have their times and one commit per part."""
    for name, part in PARTS.items():
        if not (RECORDS / name).exists():
            continue
        seeds = range(part.first_seed, part.first_seed + part.seeds)
        stated = {arm.with_seed(seed) for arm in part.arms.values() for seed in seeds}
        runs = read_runs(RECORDS / name)
        assert runs
        assert {run.config for run in runs} <= stated
        assert all(run.result is not None for run in runs)
        results = [run.result or {} for run in runs]
        assert len({result["commit"] for result in results}) == 1
        assert all(result["started_at"] < result["ended_at"] for result in results)
        assert not list((RECORDS / name).rglob("*.pt"))
