"""`Effect`: how far a statistic is from a uniform shuffle's, how sure that is, and what could have been seen."""

from __future__ import annotations

import math
from dataclasses import dataclass

from replenish.measure.findings import FAULT, OK, WARNING, Finding
from replenish.measure.shuffle.tails import gamma_p, normal_p, normal_quantile, poisson_p

#: Chance alone should show as much in at most this part of streams, over the whole battery.
SIGNIFICANCE = 1e-4
#: From which excess of a ratio, correlation and share of draws on a finding is a warning, and a fault.
RATIO, CORRELATION, SHARE = (0.1, 0.5), (0.05, 0.2), (0.01, 0.1)
_POWER = 1.2816  # standard errors beyond the threshold at which nine of ten are seen


@dataclass(frozen=True)
class Effect:
    """One statistic of the battery.

    Attributes:
        name: The finding's name.
        text: What was measured, as the start of a sentence: "A batch's mean index varies".
        effect: The ratio to a uniform shuffle, or a correlation.
        p: The two-sided p-value, before Holm's adjustment.
        error: The standard error of `effect` under a uniform shuffle.
        share: For counts, the departure as a part of all that was looked at; None for the others.
        fault_from: From which ratio or correlation on this statistic would be a fault.
        is_correlation: Whether `effect` is a correlation, 0 for a uniform shuffle, and not a ratio.
        even_is_ok: Whether a ratio below 1 is meant, as for stratified batches.
        only_share: Whether the level goes by `share` only, since a uniform shuffle never has any.
    """

    name: str
    text: str
    effect: float
    p: float
    error: float
    share: float | None = None
    fault_from: float = 1 + RATIO[1]
    is_correlation: bool = False
    even_is_ok: bool = False
    only_share: bool = False

    @property
    def size(self) -> float:
        """The effect as its distance from a uniform shuffle: 0 for none."""
        if self.is_correlation:
            return abs(self.effect)
        if self.effect < 1:
            return 0.0 if self.even_is_ok else (1 / self.effect if self.effect > 0 else math.inf) - 1
        return self.effect - 1

    def detectable(self, tests: int) -> float:
        """Return the smallest effect that would be found with probability 0.9 beside so many tests."""
        reach = (normal_quantile(SIGNIFICANCE / tests) + _POWER) * self.error
        return reach if self.is_correlation else 1 + reach

    def finding(self, adjusted_p: float, tests: int) -> Finding:
        """Return the judgement: by the size of the effect, where chance does not explain it."""
        thresholds = CORRELATION if self.is_correlation else RATIO
        level = OK
        if adjusted_p < SIGNIFICANCE:
            for name, least, share in zip((WARNING, FAULT), thresholds, SHARE, strict=True):
                if (self.only_share or self.size >= least) and (self.share is None or abs(self.share) >= share):
                    level = name
        unit = "a correlation of" if self.is_correlation else "a ratio of"
        detectable = self.detectable(tests)
        shown = f"{self.effect:+.3f}" if self.is_correlation else f"{self.effect:.3g}"
        sentence = f"{self.text}: {unit} {shown}, p = {self.p:.2g}."
        if level == OK and detectable > self.fault_from:
            sentence += f" Too few draws to see one below {detectable:.2g}."
        numbers: dict[str, int | float] = {"p_adjusted": adjusted_p, "detectable": detectable}
        if self.share is not None:
            numbers["share"] = self.share
        return Finding(self.name, level, sentence, numbers, effect=self.effect, p=self.p)


def ratio(name: str, text: str, value: float, mean: float, variance: float, *, even_is_ok: bool = False) -> Effect:
    """Return the effect of a sum of squares beside its mean under a uniform shuffle."""
    p = gamma_p(value, mean, variance)
    return Effect(name, text, value / mean, p, math.sqrt(variance) / mean, even_is_ok=even_is_ok)


def correlation(name: str, text: str, value: float, error: float) -> Effect:
    """Return the effect of a correlation with such a standard error."""
    return Effect(name, text, value, normal_p(value / error), error, fault_from=CORRELATION[1], is_correlation=True)


def count(name: str, text: str, number: int, mean: float, of: float) -> Effect:
    """Return the effect of a count beside its mean under a uniform shuffle; `of` is how many there could have been."""
    effect = number / mean if mean > 0 else (math.inf if number else 1.0)
    error = (math.sqrt(mean) + 3) / mean if mean > 0 else math.inf
    fault_from = 1 + max(RATIO[1], SHARE[1] * of / mean) if mean > 0 else math.inf
    share = (number - mean) / max(of, 1.0)
    # Equal values come in threes and more too, which makes the tail longer than Poisson's.
    p = max(poisson_p(number, mean), gamma_p(number, mean, mean)) if mean > 0 else poisson_p(number, mean)
    return Effect(name, text, effect, p, error, share=share, fault_from=fault_from)


def most_surprising(effects: list[Effect]) -> Effect:
    """Return the one with the least p, multiplied by their number: a scan counts as one test."""
    worst = min(effects, key=lambda each: (each.p, -each.size))
    return Effect(**{**vars(worst), "p": min(1.0, worst.p * len(effects))})
