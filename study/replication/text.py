"""The study's results in sentences: the headline, what to do on Monday, and each claim's effects."""

from __future__ import annotations

from replenish.lab.report.words import p_words
from replenish.lab.statistics import Difference
from replenish.lab.verdict import signed
from study.decisive import PUBLISHED
from study.replication.claims import CLAIMS, CONTRADICTED, SUPPORTED, Claim
from study.replication.judgement import EQUIVALENCE_COVERAGE, Judged, Judgement
from study.replication.plan import LEARNT, MARGIN

_PAPER = f"the paper reports SRS {abs(PUBLISHED):.2f} points below reshuffling, with a network a hundred times as large"


def headline(judgement: Judgement) -> str:
    """Return the page's first sentences, in Markdown: what a practitioner should do, and the primary comparison."""
    primary = judgement.primary
    if not primary.complete:
        return (
            f"**Not decided yet: {primary.pairs} of {primary.comparison.seeds} pairs of the primary comparison have "
            "ended, and nothing is judged before the last.** Until then keep reshuffling, which every loader has; "
            f"{_PAPER}."
        )
    if not primary.testable:
        return (
            "**Keep reshuffling: this setting could not test the claim.** "
            f"{len(primary.not_learnt)} runs of reshuffling did not learn their images by heart; {_PAPER}."
        )
    effect = primary.effect
    where = "nowhere yet" if effect is None else f"{_place(effect)} ({_between(effect)})"
    return f"**{_advice(judgement)}** SRS ended {where}; {_PAPER}."


def _advice(judgement: Judgement) -> str:
    primary = judgement.primary
    network = "a network that learns its training images by heart"
    if primary.equivalent:
        return f"Keep reshuffling: on {network}, SRS made no difference that matters."
    if primary.sign == "worse":
        return f"Keep reshuffling: on {network}, SRS raised the test error."
    if not primary.sign:
        return f"Keep reshuffling: whether SRS helps {network} stayed undecided."
    if next(claim for claim in CLAIMS if claim.name == "rate").verdict(judgement) == SUPPORTED:
        return f"Raise the learning rate before you change the sampler: SRS helps {network}, and as much as that does."
    return f"Try SRS: on {network}, it lowered the test error."


def monday(judgement: Judgement) -> list[str]:
    """Return what a practitioner should do, as sentences in Markdown: only what has been judged is said."""
    found = [
        "Ask your own data before you believe this page or the paper: `replenish compare YOUR_FOLDER` trains the same "
        "network from the same weights with each order; `replenish compare --command` does it with your own script.",
    ]
    low, high = judgement["rate-low"], judgement["rate-high"]
    if any(judged.sign and not judged.equivalent for judged in (low, high)):
        found.insert(
            0,
            "Tune the learning rate first. With reshuffling, √3 times the rate changed the test error by "
            f"{effect_words(low)} from 0.1/√3 to 0.1, and by {effect_words(high)} from 0.1 to "
            "0.1√3.",
        )
    if judgement.primary.complete and judgement.primary.equivalent:
        found.append(
            "If your pipeline already samples by SRS, there is no reason to change it back: nothing was lost here "
            "either."
        )
    found.append(
        "The paper's own size is open: nobody has repeated it in public. [Six runs on one GPU](#the-cheapest-decisive-"
        "experiment) would settle it."
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


def comparison_sentence(judged: Judged) -> str:
    """Return what the records say of one comparison, in a sentence."""
    name = judged.comparison.label
    name = name[0].upper() + name[1:]
    if not judged.complete:
        so_far = f"; so far {effect_words(judged)}, which is not judged" if judged.effect else ""
        return f"{name}: {judged.verdict}{so_far}."
    said = f"{name}: {effect_words(judged)}"
    effect = judged.effect
    if effect is not None and effect.p_value is not None:
        said += f", p {_equals(p_words(effect.p_value))}"
        said += f", after Holm {_equals(p_words(judged.adjusted_p))}" if judged.adjusted_p is not None else ""
    if effect is not None and judged.equivalent:
        said += f", 90 % interval {interval_words(effect, EQUIVALENCE_COVERAGE)} within ±{MARGIN:g}"
    if judged.diverged:
        said += f"; {judged.diverged} diverged runs are in it with the error of guessing"
    if judged.not_learnt:
        said += f"; {len(judged.not_learnt)} runs of reshuffling ended above {LEARNT:g} % clean training error"
    return f"{said}: **{judged.verdict}**."


def claim_lines(claim: Claim, judgement: Judgement) -> list[str]:
    """Return a claim as Markdown: what is said, our test, the effects, the verdict."""
    who = "We" if claim.ours else "The paper"
    return [
        f"### {claim.title}",
        "",
        f"*{who}:* {claim.said}",
        "",
        f"*Our test:* {claim.test}",
        "",
        *(f"- {comparison_sentence(judgement[name])}" for name in claim.comparisons),
        "",
        f"**Verdict here: {claim.verdict(judgement)}.**{_explained(claim, judgement)}",
        "",
    ]


def _explained(claim: Claim, judgement: Judgement) -> str:
    verdict = claim.verdict(judgement)
    found = [judgement[name] for name in claim.comparisons]
    if claim.name == "rate" and verdict.startswith(CONTRADICTED):
        said = " Where SRS should be level with reshuffling at √3 times its rate, it is not."
        if not any(judged.sign for judged in found[:2]):
            said += " But neither step of the rate itself has a clear effect here, so the setting tells little of it."
        return said
    if claim.name == "rate" and verdict == "not testable here" and all(judged.testable for judged in found):
        return f" The rate itself changes the error by less than {MARGIN:g} points, so the setting cannot tell."
    if claim.name in ("unit", "images") and verdict.startswith(CONTRADICTED):
        return " Contradicted means: at this size the difference between SRS and reshuffling does not depend on it so."
    if verdict == CONTRADICTED and found[0].equivalent:
        return f" Contradicted means: whatever difference there is, at this size it is below {MARGIN:g} points."
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


def _equals(text: str) -> str:
    return text if text.startswith("<") else f"= {text}"
