"""Exploratory results of the first study, beyond its plan. They have no verdicts.

These questions were asked after the runs. Part K of the second study tests the most important one again.
"""

from __future__ import annotations

from functools import partial

from replenish.lab.statistics import Difference, paired_difference
from study.replication.evidence import Evidence
from study.replication.judgement import difference_of_differences
from study.replication.plan import PRIMARY, Comparison
from study.replication.text import interval_words, with_decimals
from study.replication.training_loss import metric_by_epoch

nats = partial(with_decimals, decimals=3)
SRS, RESHUFFLING, REPLACEMENT = PRIMARY.first, PRIMARY.second, "rates/replacement-paper"
ORIGINAL_UNIT = "unit/reshuffling"


def log_loss_difference(evidence: Evidence, comparison: Comparison) -> Difference | None:
    """Return a comparison's difference in test log-loss, in nats; None for an interaction."""
    if comparison.base is not None:
        return None
    return _difference(evidence, comparison.first, comparison.second, "test_loss", comparison.seeds)


def log_loss_sentence(evidence: Evidence) -> str:
    """Return the log-loss of the primary comparison on the training images that were not used."""
    effect = _difference(evidence, SRS, RESHUFFLING, "held_out_loss", PRIMARY.seeds)
    if effect.mean is None:
        return "The log-loss on the training images that were not used is not known yet."
    return (
        "On the 47,500 training images that were not used, the log-loss of SRS minus that of reshuffling is "
        f"{nats(effect.mean)} nats (95 % interval {interval_words(effect, show=nats)}, n = {effect.n} pairs)."
    )


def srs_minus_replacement(evidence: Evidence) -> Difference:
    """Return the test error of SRS minus the test error of batched replacement, seed by seed."""
    return _difference(evidence, SRS, REPLACEMENT, "test_error", 10)


def original_minus_after(evidence: Evidence) -> Difference:
    """Return the error of the original residual unit minus batch norm after the addition, both with reshuffling.

    The two networks do not share initial weights, so the runs are not paired.
    """
    return unpaired(*(evidence.arms[arm].errors() for arm in (ORIGINAL_UNIT, RESHUFFLING)))


def clean_loss(evidence: Evidence, epoch: int) -> Difference:
    """Return SRS minus reshuffling in the clean training loss after an effective epoch."""
    one, two = (metric_by_epoch(evidence.arms[arm], "clean_loss").get(epoch, {}) for arm in (SRS, RESHUFFLING))
    return paired_difference(one, two)


def unpaired(first: dict[int, float], second: dict[int, float]) -> Difference:
    """Return the difference of two means, by Welch's method."""
    one, two = (paired_difference(values, dict.fromkeys(values, 0.0)) for values in (first, second))
    return difference_of_differences(one, two)


def _difference(evidence: Evidence, first: str, second: str, name: str, seeds: int) -> Difference:
    sides = (
        {
            seed: value
            for seed, run in evidence.arms[arm].runs.items()
            if seed < seeds and (value := run.number(name)) is not None
        }
        for arm in (first, second)
    )
    return paired_difference(*sides)
