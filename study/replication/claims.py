"""The claims, one by one: what is said, in our words; which comparisons test it; and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from study.replication.judgement import Judged, Judgement, Sign

#: Verdicts on claims: of the paper, of this project, and of either. None of them reaches beyond this setting.
OBSERVED, NOT_OBSERVED = "observed here", "not observed here"
HELD, FAILED = "held here", "did not hold here"
UNDECIDED, NOT_TESTABLE = "undecided", "not testable here"


@dataclass(frozen=True)
class Claim:
    """A claim: its title, the statement with its number, and what was done here to test it.

    The rule makes the verdict of the comparisons that it rests on; `ours` is a claim of this project, not of the paper.
    """

    name: str
    title: str
    statement: str
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
    """Return the rule of a claim of the paper that a difference has this sign and matters."""

    def rule(found: Sequence[Judged]) -> str:
        (judged,) = found
        if not judged.equivalent and not judged.sign:
            return UNDECIDED
        return OBSERVED if judged.sign == expected and not judged.equivalent else NOT_OBSERVED

    return rule


def _shifted(found: Sequence[Judged]) -> str:
    """Is SRS reshuffling at a larger rate? First what the rate itself does, then the two shifted contrasts."""
    rates, shifts = found[:2], found[2:]
    if all(judged.equivalent for judged in rates):
        return NOT_TESTABLE
    if all(judged.equivalent for judged in shifts):
        return HELD
    return FAILED if any(judged.sign and not judged.equivalent for judged in shifts) else UNDECIDED


def _level(found: Sequence[Judged]) -> str:
    """Return the verdict on a claim that there is no difference that matters."""
    (judged,) = found
    if judged.equivalent:
        return HELD
    return FAILED if judged.sign else UNDECIDED


def _control(found: Sequence[Judged]) -> str:
    """Return what the negative control shows: whether a difference was claimed where there is none."""
    (judged,) = found
    return "a false difference" if judged.sign else "no false difference"


CLAIMS = (
    Claim(
        "gain",
        "SRS lowers the test error",
        "WRN-SRS ends at 12.34 % on CIFAR-100, WRN with the same schedule at 19.42 % (table 3).",
        "The primary comparison, on networks that learn 2,500 images by heart.",
        ("primary",),
        _if("better"),
    ),
    Claim(
        "rate",
        "What SRS does, a larger learning rate does",
        "On a quadratic, SRS gives the weights in flat directions the variance that reshuffling gives them at √3 times "
        "the learning rate. (√3 is a limit for many steps per epoch. With 50 steps and momentum 0.9, as here, the "
        "factor is 2.0, which was found after the runs: the contrasts are those that were stated.)",
        "The curve of SRS against the learning rate should be that of reshuffling, one factor of √3 to the left. Two "
        "contrasts are 0 if it is. The two that compare rates say whether the setting can tell.",
        ("rate-low", "rate-high", "shift-low", "shift-high"),
        _shifted,
        ours=True,
    ),
    Claim(
        "replacement",
        "Replacement sampling is worse than reshuffling",
        "Drawing each mini-batch from all samples is worse than training over epochs (introduction; no number).",
        "Batched replacement minus reshuffling at learning rate 0.1.",
        ("replacement",),
        _if("worse"),
    ),
    Claim(
        "unit",
        "The gain needs batch norm after the addition",
        "With the original residual unit SRS gains 0.20 points (19.25 % to 19.05 %), with batch norm after the "
        "addition 7.08 (table 2).",
        "The difference with the original unit minus the one with batch norm after the addition. Above 0: SRS gains "
        "less with the original unit.",
        ("unit-interaction",),
        _if("worse"),
    ),
    Claim(
        "images",
        "The gain is larger with fewer images a class",
        "On CIFAR-10, with ten times the images a class, WRN-SRS gains 0.31 points (4.37 % to 4.06 %), on CIFAR-100 "
        "7.08 (table 2).",
        "The same images with 20 coarse labels, five times the images a class: the difference there minus the one with "
        "100 labels. Above 0: SRS gains less with more images a class.",
        ("coarse-interaction",),
        _if("worse"),
    ),
    Claim(
        "recipe",
        "SRS lowers the test error with the paper's augmentation",
        "All of the paper's networks are trained on random crops and mirror images.",
        "SRS minus reshuffling with crops and mirror images; such a network need not learn its images by heart.",
        ("augmented",),
        _if("better"),
    ),
    Claim(
        "mini",
        "SRS and reshuffling end level at the scale mini",
        "Our first result, rows 3 and 4 of table 3 at the scale mini: SRS 0.23 points below reshuffling, 95 % interval "
        "\u22121.46 to +0.99, n = 5, with a short batch at the end of every epoch of reshuffling.",
        "The same with batches of 50, which divide the epoch.",
        ("mini",),
        _level,
        ours=True,
    ),
    Claim(
        "control",
        "The method finds nothing where there is nothing",
        "Two arms that differ in nothing but the random order of one kind must not differ.",
        "Reshuffling minus reshuffling with the same initial weights and another order.",
        ("control",),
        _control,
        ours=True,
    ),
)
