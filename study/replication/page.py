"""The generated parts of docs/replication.md by name, its pictures by file name, and the page of details."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean

from replenish.lab.report.grouping import Group
from replenish.lab.show import Table
from replenish.lab.show.markdown import table_lines
from replenish.lab.verdict import signed
from study.decisive import PUBLISHED, RULE
from study.replication.evidence import Evidence
from study.replication.exploratory import log_loss_sentence
from study.replication.figures import forest, losses_picture, rates_picture
from study.replication.judgement import judge_study
from study.replication.paper_claims import paper_claims, paper_claims_table
from study.replication.plan import ARMS, SECONDARY
from study.replication.power import cost_sentence, known_deviations, power_table
from study.replication.tables import (
    arms_table,
    claims_table,
    commands,
    comparisons_table,
    other_measures_table,
    p_values_table,
)
from study.replication.text import headline, recommendations
from study.replication.training_loss import losses_sentence, losses_table

#: The picture that goes with the headline.
MAIN_PICTURE = "replication_rates.svg"


def pictures(evidence: Evidence) -> dict[str, str]:
    """Return the page's pictures, SVG by file name."""
    return {
        MAIN_PICTURE: rates_picture(evidence),
        "replication_forest.svg": forest(judge_study(evidence)),
        "replication_losses.svg": losses_picture(evidence),
    }


def parts(evidence: Evidence, table3: Mapping[str, Group]) -> dict[str, str]:
    """Return the page's generated parts as Markdown, by their names.

    `table3` has the runs of table 3 at the scale mini, by experiment; the power calculation needs them.
    """
    first = judge_study(evidence)
    ended = sum(len(arm.runs) for arm in evidence.arms.values())
    stated = sum(arm.seeds for arm in ARMS.values())
    so_many = f"All {stated}" if ended == stated else f"{ended} of the {stated}"
    progress = f"{so_many} runs of the study have ended."
    return {
        "headline": f"{headline(first)}\n\n{progress}",
        "recommendations": "\n".join(f"- {sentence}" for sentence in recommendations(first)),
        "claims": _lines(claims_table(first)),
        "paper-claims": _lines(paper_claims_table(paper_claims(evidence, first, table3))),
        "comparisons": _lines(comparisons_table(first)),
        "training-loss": f"{losses_sentence(evidence)}\n\n{_lines(losses_table(evidence))}",
        "runs": _lines(arms_table(evidence)),
        "rule": RULE,
        "cost": cost_sentence(),
        "power": _lines(power_table(known_deviations(evidence, table3))),
    }


def details(evidence: Evidence) -> str:
    """Return the Markdown page that is kept with the records: p-values, the other measures, and the commands."""
    sections = [
        "# The replication study: details",
        "[The replication](../../docs/replication.md) has the results; `python -m study pages` writes this page.",
        "## p-values",
        f"Holm's correction is over the {2 * len(SECONDARY)} p-values of the {len(SECONDARY)} comparisons below the "
        "first. Comparisons that are not judged yet count with p = 1.",
        _lines(p_values_table(judge_study(evidence))),
        "## Other measures",
        "The same networks on the training images that were not used: 47,500, or 40,000 for `mini`. As stated, they "
        "cannot change a verdict. The test log-loss was not in the plan, so it has no verdict, and its p-values are "
        f"not corrected. {log_loss_sentence(evidence)}",
        _lines(other_measures_table(evidence, judge_study(evidence, "held_out_error"))),
        "## Made by",
        "\n".join(f"- {command}" for command in commands(evidence)),
    ]
    return "\n\n".join(sections) + "\n"


def readme_part(evidence: Evidence) -> str:
    """Return the README's part: the page's first sentences, and a table of the paper's effect and ours."""
    judgement = judge_study(evidence)
    comparison, effect = judgement.primary.comparison, judgement.primary.effect
    interval = None if effect is None else effect.interval()
    ours = "not run yet"
    if effect is not None and interval is not None:
        ends = f"95 % interval {signed(interval.low)} to {signed(interval.high)}"
        ours = f"{signed(effect.mean)} ({ends}, n = {effect.n} pairs)"
    errors: list[float] = [
        error for name in (comparison.first, comparison.second) for error in evidence.arms[name].errors().values()
    ]
    level = f", {fmean(errors):.1f} % error" if errors else ""
    rows = (
        ("", "SRS minus reshuffling, points of test error on CIFAR-100", "setting"),
        ("---", "---", "---"),
        ("the paper", signed(PUBLISHED), "WRN-28-10, 50,000 images of 32 x 32 pixels, 12.34 % error with SRS"),
        ("ours", ours, f"WRN-10-2, 2,500 images of 16 x 16 pixels{level}"),
        ("the paper's size", "open", "one pair of runs is the first step: `replenish run decisive`"),
    )
    return "\n".join([headline(judgement), "", *(f"| {' | '.join(row)} |" for row in rows)])


def _lines(table: Table) -> str:
    return "\n".join(table_lines(table))
