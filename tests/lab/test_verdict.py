"""Verdicts: the four outcomes, and, by simulation, intervals that stay valid when read after every seed."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from replenish.lab.statistics import Difference, anytime_half_width, paired_difference
from replenish.lab.verdict import FEWEST_SEEDS, Rule, Verdict, decide, decide_together, signed

LOOKS = range(FEWEST_SEEDS, 41)


def verdict(*differences: float, **options: object) -> Verdict:
    return decide(pairs(*differences), Rule(**options), ("srs", "rr"))  # type: ignore[arg-type]


def pairs(*differences: float) -> Difference:
    second = dict.fromkeys(range(len(differences)), 50.0)
    return paired_difference({seed: 50.0 + value for seed, value in enumerate(differences)}, second)


def test_the_four_outcomes_in_words() -> None:
    found = verdict(-1.0, -1.2, -0.9, -1.1)
    assert found.outcome == "better"
    assert found.sentence.startswith("srs is better than rr: 1.05 lower (95 % interval \u22121.26 to ")
    assert verdict(-1.0, -1.2, -0.9, -1.1, higher_is_better=True).outcome == "worse"
    assert verdict(1.0, 1.2, 0.9, 1.1, higher_is_better=True).outcome == "better"
    assert verdict(1.0, 1.2, 0.9, 1.1).sentence.startswith("srs is worse than rr: 1.05 higher")
    level = verdict(0.1, -0.1, 0.05, -0.08, margin=0.5)
    assert level.outcome == "equivalent"
    assert level.sentence.startswith("srs and rr are equivalent within 0.5: ")
    open_ = verdict(1.0, -0.5, 1.5, -0.2)
    assert open_.outcome == "undecided"
    # With a fixed number of seeds, planning more from the data and testing again would claim differences too often.
    assert open_.seeds_needed is None
    looked_at = verdict(1.0, -0.5, 1.5, -0.2, anytime=True)
    assert looked_at.seeds_needed is not None


def test_a_certain_difference_smaller_than_the_margin_is_equivalent() -> None:
    assert verdict(-0.2, -0.21, -0.19, -0.2).outcome == "better"
    assert verdict(-0.2, -0.21, -0.19, -0.2, margin=0.5).outcome == "equivalent"
    assert verdict(-0.2, -0.21, -0.19, -0.2, margin=0.1).outcome == "better"


def test_with_a_fixed_number_of_seeds_the_interval_is_students() -> None:
    values = (0.3, -0.1, 0.4, 0.2, 0.6)
    found = verdict(*values).interval
    expected = stats.t.interval(0.95, 4, np.mean(values), stats.sem(values))
    assert found is not None
    assert (found.low, found.high) == pytest.approx(expected)
    together = verdict(*values, comparisons=2).interval
    assert together is not None
    assert (together.low, together.high) == pytest.approx(
        stats.t.interval(0.975, 4, np.mean(values), stats.sem(values))
    )


def test_too_few_or_equal_values_are_undecided() -> None:
    assert verdict().sentence == "Undecided between srs and rr: no seed has ended with both."
    for few in ((-1.0,), (-1.0, -1.1)):
        found = verdict(*few)
        assert (found.outcome, found.interval) == ("undecided", None)
        assert "nothing: take at least 3 seeds" in str(found.warning)
    same = verdict(0.0, 0.0, 0.0, margin=1.0)
    assert same.outcome == "undecided"
    assert "saturated or too coarse" in str(same.warning)
    assert same.sentence == "Undecided between srs and rr: srs level on average (n = 3 seeds, paired)."
    assert "the same at every seed" in str(verdict(1.0, 1.0, 1.0).warning)


def test_small_units_and_rounding() -> None:
    losses = {0: 4e-11, 1: 5e-11, 2: 3e-11, 3: 7e-11}
    less = {seed: loss - 1e-11 - 0.05 * loss for seed, loss in losses.items()}
    assert decide(paired_difference(less, losses)).outcome == "better"
    # In percent, differences that vary only by rounding have no spread.
    first, second = {0: 5.3, 1: 70.1, 2: 30.7}, {0: 5.0, 1: 69.8, 2: 30.4}
    assert decide(paired_difference(first, second)).interval is None


def test_an_interval_stays_within_possible_values() -> None:
    wild = (90.0, -90.0, 95.0)
    assert verdict(*wild).interval.high > 100
    clipped = verdict(*wild, possible=(0, 100)).interval
    assert (clipped.low, clipped.high) == (-100, 100)


def test_equivalence_by_two_one_sided_tests_has_its_own_interval() -> None:
    """The study's rule: the 90 % interval lies within the margin, and the 95 % interval still gives the sign."""
    values = (0.05, 0.3, 0.1, 0.35, 0.15, 0.2)
    assert verdict(*values, margin=0.3).outcome == "worse"
    found = verdict(*values, margin=0.3, equivalence_coverage=0.9, unit="points")
    assert (found.outcome, found.sign) == ("equivalent", "worse")
    assert "95 % interval +0.07 to +0.31, 90 % interval +0.10 to +0.29 within the margin, n = 6" in found.sentence


def test_verdicts_made_together() -> None:
    found = pairs(0.5, 0.1, 0.4, 0.2, 0.05)
    assert found.p_value is not None
    assert 0.025 < found.p_value < 0.05
    rule = Rule(unit="points")
    names = ("a", "b")
    assert decide(found, rule, names).outcome == "worse"
    one, other = decide_together([found, pairs(1.0, -1.0, 0.5)], [rule, rule], [names, names])
    assert (one.outcome, one.sign, other.outcome) == ("undecided", "worse", "undecided")
    assert one.sentence.endswith(
        f"; by itself worse, but not among the 2 comparisons made together (p = {2 * found.p_value:.3f} after Holm)."
    )
    # p-values of equivalence are adjusted too.
    near = pairs(0.3, -0.25, 0.35, -0.1, 0.05)
    close = Rule(0.33, equivalence_coverage=0.9)
    assert [each.outcome for each in decide_together([near], [close], [names])] == ["equivalent"]
    assert [each.outcome for each in decide_together([near, near], [close] * 2, [names] * 2)] == ["undecided"] * 2
    # An interval that is already wider for several comparisons or looks is not corrected again.
    wide = Rule(comparisons=2)
    assert decide_together([found, found], [wide, wide], [names, names])[0].adjusted_p is None
    # A comparison without pairs is not a test, and does not affect the others.
    alone, nothing = decide_together([found, pairs()], [rule, rule], [names, names])
    assert alone.outcome == "worse"
    assert nothing.outcome == "undecided"


def test_a_level_mean_is_neither_higher_nor_lower() -> None:
    assert "srs level on average (95 % interval" in verdict(1.0, -1.0, 0.0, unit="points").sentence
    assert [signed(value) for value in (0.004, -0.004, 1.0, -12.345)] == ["0.00", "0.00", "+1.00", "\u221212.35"]
    assert signed(-0.001, "") == "\u22120.001"


@pytest.mark.parametrize("possible", [(1.0, 0.0), (1.0, 1.0), (math.nan, 1.0)])
def test_possible_values_must_ascend(possible: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="possible should be the least and the greatest value"):
        Rule(possible=possible)


def test_a_margin_of_numpy_is_a_margin() -> None:
    assert Rule(margin=np.float32(0.5)).margin == 0.5  # type: ignore[arg-type]


@pytest.mark.parametrize("margin", [0.0, -1.0, math.nan, math.inf])
def test_a_margin_is_a_positive_number(margin: float) -> None:
    with pytest.raises(ValueError, match="margin should be positive and finite"):
        verdict(1.0, 2.0, 3.0, margin=margin)


@pytest.mark.parametrize(("n", "m"), [(5, 0.7), (12, -0.3), (40, 0.1)])
def test_the_anytime_interval_is_where_the_martingale_reaches_its_bound(n: int, m: float) -> None:
    """At the ends of the interval, the likelihood ratio, integrated numerically over the alternatives, is 20."""
    from scipy.integrate import quad

    half = anytime_half_width(n, 1.3)
    t = half / (1.3 / math.sqrt(n))
    against = quad(lambda d: stats.nct.pdf(t, n - 1, d * math.sqrt(n)) * stats.norm.pdf(d), -12, 12, points=[0, 1])[0]
    assert against / stats.t.pdf(t, n - 1) == pytest.approx(20, rel=1e-6)


def moments(differences: npt.NDArray[np.float64]) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return means and standard deviations of the first n values of each row, for all looks."""
    means = np.stack([differences[:, :n].mean(axis=1) for n in LOOKS], axis=1)
    deviations = np.stack([differences[:, :n].std(axis=1, ddof=1) for n in LOOKS], axis=1)
    return means, deviations


def first_claims(differences: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the number of seeds at the first look that claims a difference, or infinity."""
    means, deviations = moments(differences)
    widths = np.array([min(anytime_half_width(n, 1.0), 1e9) for n in LOOKS])
    claims = (np.abs(means) > widths * deviations) & (deviations > 0)  # without spread there is no verdict
    return np.where(claims.any(axis=1), claims.argmax(axis=1) + FEWEST_SEEDS, np.inf)


def test_looking_after_every_seed_rarely_claims_a_false_difference() -> None:
    """Of 4,000 comparisons without an effect, with a look after every seed from 3 to 40, at most 5 % claim one."""
    random = np.random.default_rng(14)
    claimed = np.isfinite(first_claims(random.normal(0.0, 1.0, (4000, 40)))).mean()
    assert 0.005 < claimed <= 0.05  # about 0.024; the bound of 5 % holds for any number of seeds
    # Student's interval, read in the same way, claims one in 29 %.
    differences = random.normal(0.0, 1.0, (4000, 40))
    means, deviations = moments(differences)
    student = np.array([stats.t.ppf(0.975, n - 1) / math.sqrt(n) for n in LOOKS])
    assert (np.abs(means) > student * deviations).any(axis=1).mean() > 0.25


def test_symmetric_differences_that_are_not_normal_claim_as_rarely() -> None:
    """Without an effect both orders have the same distribution, so their paired difference is symmetric."""
    random = np.random.default_rng(17)
    for differences in (
        random.standard_t(3, (4000, 40)),
        random.exponential(size=(4000, 40)) - random.exponential(size=(4000, 40)),
        np.round(2 * random.normal(size=(4000, 40))),  # a metric in steps of half a deviation
    ):
        assert np.isfinite(first_claims(differences)).mean() <= 0.05


def test_an_effect_of_one_deviation_is_found_with_as_many_seeds_as_documented() -> None:
    """With n fixed, 16 seeds find 95 % of such effects. This rule needs 13.3 on average and finds all but 0.1 %."""
    found = first_claims(np.random.default_rng(15).normal(1.0, 1.0, (4000, 40)))
    assert np.isfinite(found).mean() > 0.995
    assert np.minimum(found, 40).mean() == pytest.approx(13.3, abs=0.3)
    power = {n: 1 - stats.nct.cdf(stats.t.ppf(0.975, n - 1), n - 1, math.sqrt(n)) for n in (10, 15, 16)}
    assert power[10] > 0.8
    assert power[15] < 0.95 < power[16]


def test_looking_after_every_seed_rarely_claims_a_false_equivalence() -> None:
    """If the true difference equals the margin, at most 5 % of the comparisons claim equivalence."""
    random = np.random.default_rng(16)
    means, deviations = moments(random.normal(1.0, 1.0, (4000, 40)))
    widths = np.array([anytime_half_width(n, 1.0) for n in LOOKS])
    called = (np.abs(means) + widths * deviations < 1.0).any(axis=1).mean()
    assert called <= 0.05
    means, deviations = moments(random.normal(0.0, 1.0, (4000, 40)))
    assert (np.abs(means) + widths * deviations < 1.0).any(axis=1).mean() > 0.9


def test_decide_uses_the_anytime_interval() -> None:
    values = {seed: float(value) for seed, value in enumerate(np.random.default_rng(3).normal(1, 1, 12))}
    difference = paired_difference(values, dict.fromkeys(values, 0.0))
    found = decide(difference, Rule(anytime=True))
    assert difference.mean is not None
    assert difference.deviation is not None
    assert found.interval is not None
    assert found.interval.high - difference.mean == pytest.approx(anytime_half_width(12, difference.deviation))
    assert "valid at every look" in found.sentence
