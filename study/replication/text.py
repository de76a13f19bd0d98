"""The study's results in sentences: the headline and the recommendations."""

from __future__ import annotations

from collections.abc import Callable

from replenish.lab.show import NOTHING
from replenish.lab.statistics import Difference
from replenish.lab.verdict import signed
from study.decisive import PUBLISHED
from study.replication.claims import CLAIMS, HELD
from study.replication.judgement import Judged, Judgement
from study.replication.plan import MARGIN

_PAPER = f"the paper reports SRS {abs(PUBLISHED):.2f} points below reshuffling, with WRN-28-10 on all 50,000 images"
_SETTING = "in miniature (2,500 images of 16 x 16 pixels, WRN-10-2)"


def headline(judgement: Judgement) -> str:
    """Return the page's first sentences, in Markdown: the verdict on the primary comparison, with its setting."""
    primary = judgement.primary
    if not primary.complete:
        return (
            f"**Not decided yet: {primary.pairs} of {primary.comparison.seeds} pairs of the primary comparison have "
            f"ended, and nothing is judged before the last.** For comparison, {_PAPER}."
        )
    if not primary.testable:
        return (
            "**This setting could not test the claim.** "
            f"{len(primary.not_learnt)} runs of reshuffling did not learn their images by heart; {_PAPER}."
        )
    effect = primary.effect
    where = "nowhere yet" if effect is None else f"{_place(effect)} ({_between(effect)})"
    return f"**{_found(judgement)}** SRS ended {where}; {_PAPER}."


def _found(judgement: Judgement) -> str:
    primary = judgement.primary
    untested = "The paper's own setting is untested."
    if primary.equivalent:
        return f"The gain was not seen {_SETTING}: SRS and reshuffling ended within {MARGIN:g} points. {untested}"
    if primary.sign == "worse":
        return f"The gain was not seen {_SETTING}: SRS raised the test error. {untested}"
    if not primary.sign:
        return f"Undecided {_SETTING}. {untested}"
    if next(claim for claim in CLAIMS if claim.name == "rate").verdict(judgement) == HELD:
        return f"A gain was seen {_SETTING}, and a larger learning rate gives as much. {untested}"
    return f"A gain was seen {_SETTING}. {untested}"


def recommendations(judgement: Judgement) -> list[str]:
    """Return advice for practitioners, as sentences in Markdown. It follows from completed judgements only."""
    found = [
        "Test it on your own data: `replenish compare YOUR_FOLDER`, or `replenish compare --command` with your script.",
    ]
    low, high = judgement["rate-low"], judgement["rate-high"]
    if any(judged.sign and not judged.equivalent for judged in (low, high)):
        found.insert(
            0,
            "Tune the learning rate first. With reshuffling, √3 times the rate changed the test error by "
            f"{effect_words(low)} from 0.1/√3 to 0.1, and by {effect_words(high)} from 0.1 to 0.1√3.",
        )
    if judgement.primary.complete and judgement.primary.equivalent:
        found.append("If your pipeline already uses SRS, this result is no reason to change it: nothing was lost here.")
    found.append(
        "The paper's own size is open. [One pair of runs on a GPU](#the-cheapest-decisive-experiment) is the first "
        "step to settle it."
    )
    return found


def effect_words(judged: Judged) -> str:
    """Return an effect with its interval and n: "+0.12 points (95 % interval ...)"."""
    effect = judged.effect
    return "nothing yet" if effect is None else f"{signed(effect.mean)} points ({_between(effect)})"


def interval_words(effect: Difference, coverage: float = 0.95, show: Callable[[float], str] = signed) -> str:
    """Return an interval: "−0.10 to +0.34"."""  # noqa: RUF002
    interval = effect.interval(coverage)
    return "no interval" if interval is None else f"{show(interval.low)} to {show(interval.high)}"


def with_decimals(value: float | None, decimals: int) -> str:
    """Return a number with its sign and this many decimals."""
    return NOTHING if value is None else f"{value:+.{decimals}f}".replace("-", "−")  # noqa: RUF001


def _place(effect: Difference) -> str:
    """Return where SRS ended: above, below or level with reshuffling."""
    size = signed(effect.mean)
    return (
        "level with reshuffling"
        if size[0] == "0"
        else (f"{size[1:]} points {'above' if size[0] == '+' else 'below'} reshuffling")
    )


def _between(effect: Difference) -> str:
    return f"95 % interval {interval_words(effect)}, n = {effect.n} pairs"
