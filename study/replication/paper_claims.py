"""The paper's seventeen claims in one table: where each was tested, the result, and the cost of a test at full size.

The most important claims come first. Effects come from the records. Claims without records are marked as not tested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from replenish.lab.experiments import configs
from replenish.lab.experiments.costs import known_data, run_cost
from replenish.lab.paper import published_error
from replenish.lab.report.grouping import Group
from replenish.lab.show import NOTHING, Column, Table
from replenish.lab.statistics import Difference, paired_difference
from replenish.lab.verdict import signed
from study.replication.claims import CLAIMS, NOT_OBSERVED, OBSERVED, UNDECIDED
from study.replication.evidence import Evidence
from study.replication.exploratory import clean_loss, original_minus_after, srs_minus_replacement
from study.replication.judgement import Judgement
from study.replication.text import interval_words
from study.replication.training_loss import loss_differences

NOT_TESTED = "not tested"
#: Pairs of runs in the cost of a test at the paper's own size.
PAIRS = 5
_TABLE3 = "table3/wrn-srs-b64-120-150-175", "table3/wrn-b64-120-150-175"
#: The effective epochs of the scale `mini` that correspond to epochs 60 and 120 of the paper's 200.
_HIGH_RATE = (12, 24)


@dataclass(frozen=True)
class PaperClaim:
    """One row: the claim, the paper's number, where it was tested, the effect and the verdict.

    `experiments` are the pairs of runs that would test the claim at the paper's own size.
    """

    claim: str
    published: str
    where: str
    effect: Difference | None
    verdict: str
    experiments: tuple[str, ...]
    show_nats: bool = False


def paper_claims(evidence: Evidence, judgement: Judgement, table3: Mapping[str, Group]) -> list[PaperClaim]:
    """Return the seventeen claims."""
    study, mini = "study", "table 3, mini"
    verdicts = {claim.name: claim.verdict(judgement) for claim in CLAIMS}
    wrn = _TABLE3
    original_unit = "table2/wide-resnet-28-10-srs/cifar100", "table2/wide-resnet-28-10/cifar100"
    cifar10 = "table2/wrn-28-10-srs/cifar10", "table2/wrn-28-10/cifar10"
    batches = "table3/wrn-b64-60-120-160", "table3/wrn-b128-60-120-160"
    schedules = "table3/wrn-b64-120-150-175", "table3/wrn-b64-60-120-160"
    deep = "table2/wrn-70-10-srs/cifar100", "table2/wrn-70-10/cifar100"
    dense = "table2/densenet-bc-190-40-srs/cifar100", "table2/densenet-bc-190-40/cifar100"
    units = "table2/wide-resnet-28-10/cifar100", "table2/wrn-28-10/cifar100"
    online = next(row for row in loss_differences(evidence) if row.epoch == 35).online
    slower = clean_loss(evidence, 35)
    replacement = srs_minus_replacement(evidence)
    original = original_minus_after(evidence)
    batch = _errors(table3, *batches)
    schedule = _errors(table3, *schedules)
    early = _errors(table3, "figure3/srs-60-120-160", "figure3/srs-120-150-175")
    falls = _falls(table3)

    def judged(name: str, comparison: str) -> tuple[Difference | None, str]:
        return judgement[comparison].effect, verdicts[name]

    def explored(effect: Difference | None, expected: int) -> tuple[Difference | None, str]:
        return effect, _exploratory_verdict(effect, expected)

    return [
        PaperClaim("SRS lowers WRN's error on CIFAR-100", _published(*wrn), study, *judged("gain", "primary"), wrn),
        PaperClaim(
            "The same, with the paper's augmentation", _published(*wrn), study, *judged("recipe", "augmented"), wrn
        ),
        PaperClaim(
            "The gain needs batch norm after the addition",
            f"{_published(*original_unit)} with the original unit",
            study,
            *judged("unit", "unit-interaction"),
            original_unit,
        ),
        PaperClaim(
            "The gain is larger with fewer images per class",
            f"{_published(*wrn)} and {_published(*cifar10)}",
            study,
            *judged("images", "coarse-interaction"),
            cifar10,
        ),
        PaperClaim(
            "Hardly any gain on CIFAR-10",
            _published(*cifar10),
            NOTHING,
            None,
            NOT_TESTED,
            cifar10,
        ),
        PaperClaim(
            "Replacement is worse than reshuffling", "no number", study, *judged("replacement", "replacement"), wrn
        ),
        PaperClaim("SRS is better than replacement", "no number", study, *explored(replacement, -1), wrn),
        PaperClaim(
            "Without SRS, batches of 64 do as well as 128",
            _published(*batches),
            mini,
            batch,
            _exploratory_verdict(batch, 0),
            batches,
        ),
        PaperClaim(
            "Without SRS, the long initial rate raises the error",
            _published(*schedules),
            mini,
            *explored(schedule, 1),
            schedules,
        ),
        PaperClaim(
            "With SRS, an early decay raises the error",
            "about +10.7",
            "figure 3, mini",
            *explored(early, 1),
            ("figure3/srs-60-120-160", "figure3/srs-120-150-175"),
        ),
        PaperClaim(
            "70 layers help only with SRS",
            f"{_published(deep[0], wrn[0])} with, {_published(deep[1], wrn[1])} without",
            NOTHING,
            None,
            NOT_TESTED,
            deep,
        ),
        PaperClaim(
            "SRS lowers the error of DenseNet",
            _published(*dense),
            NOTHING,
            None,
            NOT_TESTED,
            dense,
        ),
        PaperClaim(
            "Without SRS, the original unit is no worse",
            _published(*units),
            study,
            original,
            _exploratory_verdict(original, 0),
            units,
        ),
        PaperClaim(
            "At the high rate SRS's training loss falls below", "figure 2a", study, *explored(online, -1), wrn, True
        ),
        PaperClaim("SRS converges more slowly", "figure 2a", study, *explored(slower, 1), wrn, True),
        PaperClaim(
            "At the high rate SRS's test error falls further than reshuffling's",
            "figure 2b",
            mini,
            *explored(falls, -1),
            wrn,
        ),
        PaperClaim(
            "SRS and replacement reach more configurations",
            "a count",
            "theory",
            None,
            "true by counting",
            (),
        ),
    ]


def paper_claims_table(claims: Sequence[PaperClaim]) -> Table:
    """Return the table of claims, with effects, verdicts, and the cost of a test at the paper's size."""
    columns = (
        Column("claim of the paper", lambda row: row.claim, numeric=False),
        Column("paper", lambda row: row.published, "points", numeric=False),
        Column("tested in", lambda row: row.where, numeric=False),
        Column("n", lambda row: NOTHING if row.effect is None else str(row.effect.n)),
        Column("effect here", _effect, "points unless it says nats, 95 % interval", numeric=False),
        Column("verdict here", lambda row: row.verdict, numeric=False),
        Column("five pairs at full size", _cost, "GPU-hours"),
    )
    return Table("paper-claims", "All claims of the paper", columns, [(row.claim, row) for row in claims])


def _exploratory_verdict(effect: Difference | None, expected: int) -> str:
    """Return the verdict of an exploratory effect on a claimed sign; 0 stands for a claim of no difference."""
    interval = effect.interval() if effect is not None else None
    if interval is None:
        return NOT_TESTED
    if interval.low <= 0 <= interval.high:
        return UNDECIDED
    return OBSERVED if expected and (interval.low > 0) == (expected > 0) else NOT_OBSERVED


def _errors(table3: Mapping[str, Group], first: str, second: str) -> Difference | None:
    if first not in table3 or second not in table3:
        return None
    return paired_difference(table3[first].errors, table3[second].errors)


def _falls(table3: Mapping[str, Group]) -> Difference | None:
    """Return the change of test error between the paper's epochs 60 and 120, SRS minus reshuffling."""
    if not all(name in table3 for name in _TABLE3):
        return None
    changes = []
    for name in _TABLE3:
        by_epoch = {
            run.config.seed: {line["epoch"]: line["test_error"] for line in run.metrics}
            for run in table3[name].finished
        }
        changes.append({seed: lines[_HIGH_RATE[1]] - lines[_HIGH_RATE[0]] for seed, lines in by_epoch.items()})
    return paired_difference(*changes)


def _published(first: str, second: str) -> str:
    """Return the difference of two rows of the paper's tables."""
    one, two = published_error(first), published_error(second)
    assert one is not None
    assert two is not None
    return signed(one - two)


def _effect(row: PaperClaim) -> str:
    if row.effect is None or row.effect.mean is None:
        return NOTHING
    return f"{signed(row.effect.mean)} ({interval_words(row.effect)}){' nats' if row.show_nats else ''}"


def _cost(row: PaperClaim) -> str:
    if not row.experiments:
        return NOTHING
    known = configs("full")
    hours = sum(run_cost(known[name], known_data(known[name])).gpu_hours for name in row.experiments)
    return f"{PAIRS * hours:.0f}"
