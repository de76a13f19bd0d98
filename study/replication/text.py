"""The study's results in sentences: the headline, recommendations, and the effects behind each claim."""

from __future__ import annotations

from replenish.lab.statistics import Difference
from replenish.lab.verdict import signed
from study.decisive import PUBLISHED
from study.replication.claims import CLAIMS, FAILED, HELD, NOT_OBSERVED, NOT_TESTABLE, Claim
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
    """Return what a practitioner can do, as sentences in Markdown, from what has been judged only."""
    found = [
        "Test it on your own data: `replenish compare YOUR_FOLDER` trains the same network from the same weights with "
        "each order; `replenish compare --command` does it with your own script.",
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
        "The paper's own size is open: no independent run of it is known to us. [One pair of runs on a GPU]"
        "(#the-cheapest-decisive-experiment) is the first step to settle it."
    )
    return found


def effect_words(judged: Judged) -> str:
    """Return an effect with its interval and n: "+0.12 points (95 % interval ...)"."""
    effect = judged.effect
    return "nothing yet" if effect is None else f"{signed(effect.mean)} points ({_between(effect)})"


def interval_words(effect: Difference, coverage: float = 0.95) -> str:
    """Return an interval: "−0.10 to +0.34"."""  # noqa: RUF002
    interval = effect.interval(coverage)
    return "no interval" if interval is None else f"{signed(interval.low)} to {signed(interval.high)}"


def claim_line(claim: Claim, judgement: Judgement) -> str:
    """Return a claim as an item of a list in Markdown: the claim, our test, the verdict."""
    who = "We" if claim.ours else "The paper"
    return (
        f"- **{claim.title}.** *{who}:* {claim.statement} *Our test:* {claim.test} "
        f"**Verdict here: {claim.verdict(judgement)}.**{_explained(claim, judgement)}"
    )


def _explained(claim: Claim, judgement: Judgement) -> str:
    verdict = claim.verdict(judgement)
    found = [judgement[name] for name in claim.comparisons]
    if claim.name == "control" and found[0].complete and found[0].effect is not None:
        deviation = found[0].effect.deviation
        floor = "" if deviation is None else f" By chance only, pairs scatter by {deviation:.2f} points."
        return f"{floor} Ten pairs are too few to show an equivalence, which is not needed here."
    if claim.name == "rate" and verdict == FAILED:
        return " Where SRS should be level with reshuffling at √3 times its rate, it is not."
    if claim.name == "rate" and verdict == NOT_TESTABLE and all(judged.testable for judged in found):
        return f" The rate itself changes the error by less than {MARGIN:g} points, so the setting cannot tell."
    if claim.name in ("unit", "images") and verdict == NOT_OBSERVED:
        return " At this size the difference between SRS and reshuffling does not depend on it as the paper says."
    if verdict == NOT_OBSERVED and found[0].equivalent:
        return f" Whatever difference there is, at this size it is below {MARGIN:g} points."
    return ""


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
