"""The claims: their titles, the comparisons that test them, and the rules for their verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from study.replication.judgement import Judged, Judgement, Sign

#: Verdicts on claims of the paper, on claims of this project, and on both. They hold in this setting only.
OBSERVED, NOT_OBSERVED = "observed here", "not observed here"
HELD, FAILED = "held here", "did not hold here"
UNDECIDED, NOT_TESTABLE = "undecided", "not testable here"


@dataclass(frozen=True)
class Claim:
    """A claim: its title, its test, and the rule that turns the comparisons into a verdict.

    `ours` marks a claim of this project; the others are the paper's.
    """

    name: str
    title: str
    test: str
    comparisons: tuple[str, ...]
    rule: Callable[[Sequence[Judged]], str]
    ours: bool = False

    def verdict(self, judgement: Judgement) -> str:
        """Return the verdict in this setting, or how many pairs are still to be run."""
        found = [judgement[name] for name in self.comparisons]
        if not all(judged.complete for judged in found):
            pairs, stated = sum(each.pairs for each in found), sum(each.comparison.seeds for each in found)
            return f"not run yet ({pairs} of {stated})"
        if not all(judged.testable for judged in found):
            return NOT_TESTABLE
        return self.rule(found)


def _if(expected: Sign) -> Callable[[Sequence[Judged]], str]:
    """Return the rule for a claim of the paper that a difference has this sign and exceeds the margin."""

    def rule(found: Sequence[Judged]) -> str:
        (judged,) = found
        if not judged.equivalent and not judged.sign:
            return UNDECIDED
        return OBSERVED if judged.sign == expected and not judged.equivalent else NOT_OBSERVED

    return rule


def _shifted(found: Sequence[Judged]) -> str:
    """Judge whether SRS acts like reshuffling at a larger rate, from two rate effects and two shifted contrasts."""
    rates, shifts = found[:2], found[2:]
    if all(judged.equivalent for judged in rates):
        return NOT_TESTABLE
    if all(judged.equivalent for judged in shifts):
        return HELD
    return FAILED if any(judged.sign and not judged.equivalent for judged in shifts) else UNDECIDED


def _level(found: Sequence[Judged]) -> str:
    """Return the verdict on a claim that a difference does not exceed the margin."""
    (judged,) = found
    if judged.equivalent:
        return HELD
    return FAILED if judged.sign else UNDECIDED


def _control(found: Sequence[Judged]) -> str:
    """Return the outcome of the negative control: whether the method finds a difference where there is none."""
    (judged,) = found
    return "a false difference" if judged.sign else "no false difference"


CLAIMS = (
    Claim(
        "gain",
        "SRS lowers the test error",
        "SRS minus reshuffling: the primary comparison",
        ("primary",),
        _if("better"),
    ),
    Claim(
        "rate",
        "What SRS does, a larger learning rate does",
        "reshuffling at two pairs of rates, then SRS minus reshuffling at √3 times its rate",
        ("rate-low", "rate-high", "shift-low", "shift-high"),
        _shifted,
        ours=True,
    ),
    Claim(
        "replacement",
        "Replacement sampling is worse than reshuffling",
        "batched replacement minus reshuffling",
        ("replacement",),
        _if("worse"),
    ),
    Claim(
        "unit",
        "The gain needs batch norm after the addition",
        "the effect of SRS with the original unit, minus that with batch norm after the addition",
        ("unit-interaction",),
        _if("worse"),
    ),
    Claim(
        "images",
        "The gain is larger with fewer images a class",
        "the effect of SRS with 20 coarse labels of the same images, minus that with 100 labels",
        ("coarse-interaction",),
        _if("worse"),
    ),
    Claim(
        "recipe",
        "SRS lowers the test error with the paper's augmentation",
        "SRS minus reshuffling, with crops and mirror images",
        ("augmented",),
        _if("better"),
    ),
    Claim(
        "mini",
        "SRS and reshuffling end level at the scale mini",
        "rows 4 and 3 of table 3 in batches of 50, which divide the epoch",
        ("mini",),
        _level,
        ours=True,
    ),
    Claim(
        "control",
        "The method finds nothing where there is nothing",
        "reshuffling minus reshuffling with equal weights and another order",
        ("control",),
        _control,
        ours=True,
    ),
)
