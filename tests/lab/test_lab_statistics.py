"""Intervals and paired differences, against scipy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from replenish.lab.statistics import (
    PERCENT,
    Difference,
    mean_with_interval,
    paired_difference,
)


def pairs(*differences: float) -> Difference:
    return paired_difference(dict(enumerate(differences)), dict.fromkeys(range(len(differences)), 0.0))


def test_one_value_has_no_interval() -> None:
    assert mean_with_interval([4.0]).interval is None


def test_mean_and_paired_test_match_scipy() -> None:
    rng = np.random.default_rng(1)
    first, second = rng.normal(60, 1, 7), rng.normal(60.5, 1, 7)
    low, high = stats.t.interval(0.95, 6, loc=first.mean(), scale=stats.sem(first))
    found = mean_with_interval(first)
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((low, high))

    paired = paired_difference(dict(enumerate(first)), dict(enumerate(second)))
    reference = stats.ttest_rel(first, second)
    assert paired.p_value == pytest.approx(reference.pvalue)
    interval = paired.interval()
    assert interval is not None
    bounds = reference.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))


def test_only_common_seeds_are_paired() -> None:
    found = paired_difference({3: 9.0, 1: 5.0, 7: 1.0}, {1: 4.0, 3: 6.0, 8: 2.0})
    assert (found.seeds, found.differences, found.n) == ((1, 3), (1.0, 3.0), 2)


def test_a_diverged_error_is_refused() -> None:
    with pytest.raises(ValueError, match="finite, but got nan"):
        mean_with_interval([1.0, math.nan])
    with pytest.raises(ValueError, match="finite"):
        paired_difference({0: math.inf}, {0: 1.0})
    with pytest.raises(ValueError, match="at least one number"):
        mean_with_interval([])


def test_intervals_stay_within_possible_values() -> None:
    errors = {0: 1.0, 1: 99.0}
    mean = mean_with_interval(errors.values(), PERCENT).interval
    difference = paired_difference(errors, {0: 90.0, 1: 2.0}).interval(possible=PERCENT)
    assert mean is not None
    assert difference is not None
    assert (mean.low, mean.high, difference.low, difference.high) == (0, 100, -100, 100)
    free = mean_with_interval(errors.values()).interval
    assert free is not None
    assert free.high > 100


def test_equal_differences_are_equal_in_spite_of_rounding() -> None:
    found = paired_difference({0: 61.2, 1: 0.3}, {0: 60.8, 1: 0.3 - (61.2 - 60.8) + 1e-14})
    assert found.interval() is None
