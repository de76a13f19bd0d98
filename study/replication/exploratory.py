"""What the records of the first study say beyond its plan: exploratory, so nothing here is a verdict.

Nobody asked these questions before the runs. Where one of them matters, part K of the second study asks it anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from replenish.lab.report.text import p_words
from replenish.lab.show import Column, Table
from replenish.lab.statistics import Difference, paired_difference
from study.replication.evidence import Evidence
from study.replication.judgement import difference_of_differences
from study.replication.plan import COMPARISONS, PRIMARY
from study.replication.text import interval_words, with_decimals
from study.replication.training_loss import metric_by_epoch

_three_decimals = partial(with_decimals, decimals=3)
SRS, RESHUFFLING, REPLACEMENT = PRIMARY.first, PRIMARY.second, "rates/replacement-paper"
ORIGINAL_UNIT = "unit/reshuffling"


@dataclass(frozen=True)
class Finding:
    """An effect nobody asked about: what it is the difference of, its unit, and the difference itself."""

    label: str
    unit: str
    effect: Difference


def findings(evidence: Evidence) -> list[Finding]:
    """Return the exploratory differences, as far as their runs have ended."""
    found = [
        Finding(comparison.label, "nats of test log-loss", _difference(evidence, *pair, "test_loss", comparison.seeds))
        for comparison in COMPARISONS
        if comparison.base is None
        for pair in [(comparison.first, comparison.second)]
    ]
    found[1:1] = [
        Finding(
            "the same, on the 47,500 training images not used",
            "nats of log-loss",
            _difference(evidence, SRS, RESHUFFLING, "held_out_loss", PRIMARY.seeds),
        )
    ]
    found += [
        Finding("SRS minus replacement", "points of test error", srs_minus_replacement(evidence)),
        Finding(
            "original unit minus batch norm after the addition, reshuffling (not paired)",
            "points of test error",
            original_minus_after(evidence),
        ),
        *(
            Finding(f"SRS minus reshuffling, clean loss after epoch {epoch}", "nats", clean_loss(evidence, epoch))
            for epoch in (35, 60)
        ),
    ]
    return found


def srs_minus_replacement(evidence: Evidence) -> Difference:
    """Return the test error of SRS minus that of batched replacement, seed by seed."""
    return _difference(evidence, SRS, REPLACEMENT, "test_error", 10)


def original_minus_after(evidence: Evidence) -> Difference:
    """Return the error of the original residual unit minus batch norm after the addition, both with reshuffling.

    The two networks do not share initial weights, so the runs are not paired.
    """
    return unpaired(*(evidence.arms[arm].errors() for arm in (ORIGINAL_UNIT, RESHUFFLING)))


def clean_loss(evidence: Evidence, epoch: int) -> Difference:
    """Return the clean training loss of SRS minus that of reshuffling after an effective epoch."""
    one, two = (metric_by_epoch(evidence.arms[arm], "clean_loss").get(epoch, {}) for arm in (SRS, RESHUFFLING))
    return paired_difference(one, two)


def unpaired(first: dict[int, float], second: dict[int, float]) -> Difference:
    """Return the difference of two means, by Welch's method."""
    one, two = (paired_difference(values, dict.fromkeys(values, 0.0)) for values in (first, second))
    return difference_of_differences(one, two)


def exploratory_table(evidence: Evidence) -> Table:
    """Return every exploratory difference with its interval and uncorrected p-value."""
    columns = (
        Column("difference", lambda finding: finding.label, numeric=False),
        Column("in", lambda finding: finding.unit, numeric=False),
        Column("n", lambda finding: str(finding.effect.n)),
        Column("mean", lambda finding: _three_decimals(finding.effect.mean)),
        Column("95 % interval", lambda finding: interval_words(finding.effect, show=_three_decimals)),
        Column("p, uncorrected", lambda finding: p_words(finding.effect.p_value)),
    )
    rows = [(finding.label + finding.unit, finding) for finding in findings(evidence)]
    return Table("exploratory", "Not asked, and found", columns, rows)


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
