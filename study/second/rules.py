"""How the second study is judged, as code, equal to `study/STATEMENT.md`; each part's rules precede its counted runs.

A `Judgement` comes from the values of the arms, seed by seed. Nothing here reads a record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from replenish.lab.statistics import paired_difference
from replenish.lab.verdict import Rule, decide
from replenish.measure.shuffle import effects

LEVEL = 0.05
#: Nats of test log-loss in part K below which a difference does not matter.
LOG_LOSS_MARGIN = 0.03
#: The same for part F, in points of test error and in nats.
FULL_ERROR_MARGIN = 0.3
FULL_LOG_LOSS_MARGIN = 0.01

#: K1's prediction, from the lowest clean training loss before the first decay to the highest.
PREDICTED_ORDER = ("shuffle-once", "srs-quarter", "reshuffling", "srs", "srs-four", "replacement")
#: The epoch after which K1 reads the clean training loss: the last before the learning rate drops.
K1_EPOCH = 36
#: E1's prediction, from the lowest test error after one epoch to the highest: 0, 28 and 37 % of the samples unseen.
FEW_EPOCHS_ORDER = ("reshuffling", "srs", "replacement")

#: The p-values that Holm's correction covers: all secondary ones, those of equivalences included.
SECONDARY = ("K3", "K4", "K4, equivalence", "E1", "E2")

Values = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Judgement:
    """A verdict on paired differences, with what it rests on.

    Attributes:
        verdict: `better`, `worse`, `equivalent` or `undecided`; lower values are better.
        n: Pairs.
        mean: Mean difference.
        interval: Student's 95 % interval of the mean.
        p_value: Two-sided, of no difference.
        p_equivalent: The larger p-value of the two one-sided tests against the margin; None without a margin.
        correlation: Correlation of the two arms over the seeds.
    """

    verdict: str
    n: int
    mean: float
    interval: tuple[float, float]
    p_value: float
    p_equivalent: float | None
    correlation: float


def paired(first: Sequence[float], second: Sequence[float], margin: float | None = None) -> Judgement:
    """Judge `first` minus `second`, seed by seed.

    Equivalence comes first, as in the first study: a difference that is real and within the margin is `equivalent`.
    """
    one, two = np.asarray(first, float), np.asarray(second, float)
    if one.shape != two.shape or one.ndim != 1 or len(one) < 3:
        raise ValueError(
            f"first and second should have a value for each of three or more seeds, but got {one.shape} and {two.shape}"
        )
    difference = paired_difference(dict(enumerate(one.tolist())), dict(enumerate(two.tolist())))
    verdict = decide(difference, Rule(margin, equivalence_coverage=1 - 2 * LEVEL))
    assert difference.mean is not None
    if verdict.interval is None or difference.p_value is None:
        raise ValueError(
            "first and second should differ by more at some seeds than at others, but their differences are equal"
        )
    p_equivalent = None if margin is None else difference.p_above(margin - abs(difference.mean))
    interval = (verdict.interval.low, verdict.interval.high)
    correlation = float(np.corrcoef(one, two)[0, 1])
    return Judgement(
        verdict.outcome, difference.n, difference.mean, interval, difference.p_value, p_equivalent, correlation
    )


def trend(values: Values, order: Sequence[str]) -> float:
    """Return the p-value of Page's trend test: within each seed, the values of the arms rise in this order."""
    return float(stats.page_trend_test(np.column_stack([values[arm] for arm in order])).pvalue)


def k1(clean_loss: Values) -> float:
    """Return K1's p-value, from the clean training loss after epoch 36; the prediction holds below 0.05."""
    return trend(clean_loss, PREDICTED_ORDER)


def k2(test_loss: Values) -> Judgement:
    """Judge K2: final test log-loss, SRS with k = 1 minus reshuffling."""
    return paired(test_loss["srs"], test_loss["reshuffling"], LOG_LOSS_MARGIN)


def k3(test_error: Values) -> Judgement:
    """Judge K3: test error of SRS with k = 1 minus the mean of reshuffling and replacement, with no margin."""
    ends = (np.asarray(test_error["reshuffling"]) + np.asarray(test_error["replacement"])) / 2
    return paired(test_error["srs"], ends)


def k4(test_loss: Values) -> Judgement:
    """Judge K4: final test log-loss, SRS with k = 1 minus reshuffling at the rate of equal variance."""
    return paired(test_loss["srs"], test_loss["reshuffling-equal-variance"], LOG_LOSS_MARGIN)


def f1(test_error: Values) -> Judgement:
    """Judge F1: test error, SRS minus reshuffling."""
    return paired(test_error["srs"], test_error["reshuffling"], FULL_ERROR_MARGIN)


def f2(test_loss: Values) -> Judgement:
    """Judge F2: test log-loss, SRS minus reshuffling."""
    return paired(test_loss["srs"], test_loss["reshuffling"], FULL_LOG_LOSS_MARGIN)


def e1(test_error: Values) -> float:
    """Return E1's p-value, from the test error after one epoch by order; the prediction holds below 0.05."""
    return trend(test_error, FEW_EPOCHS_ORDER)


def e2(after_one: Values, after_four: Values) -> Judgement:
    """Judge E2: how much smaller SRS minus reshuffling is after four epochs than after one.

    The test errors are of runs over one and over four epochs. The prediction, a smaller difference, is `better`.
    """
    one, four = (np.subtract(values["srs"], values["reshuffling"]) for values in (after_one, after_four))
    return paired(four.tolist(), one.tolist())


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values after Holm's correction over all secondary tests; those that are not known yet count with 1."""
    if unknown := set(p_values) - set(SECONDARY):
        raise ValueError(f"p_values should have names from {SECONDARY}, but got {sorted(unknown)}")
    return dict(zip(SECONDARY, effects.holm(p_values.get(name, 1.0) for name in SECONDARY), strict=True))


def corrected(question: str, judgement: Judgement, adjusted: Mapping[str, float]) -> str:
    """Return the verdict on a secondary question after Holm's correction."""
    if adjusted.get(f"{question}, equivalence", 1.0) < LEVEL:
        return "equivalent"
    if adjusted[question] < LEVEL:
        return "better" if judgement.mean < 0 else "worse"
    return "undecided"
