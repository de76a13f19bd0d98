"""The study's page on made-up records: the headline, the losses, the pictures, the power."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping

import numpy as np
import pytest
from made_study import made_study
from scipy import stats

from replenish.lab.runs import RunRecord
from study.decisive import HALF
from study.replication import COMPARISONS, Evidence, judge_study, read_evidence
from study.replication.page import details, parts, pictures, readme_part
from study.replication.power import chance_to_settle
from study.replication.text import headline, recommendations
from study.replication.training_loss import losses_sentence

SRS, PLAIN = "rates/srs-paper", "rates/reshuffling-paper"
#: Reshuffling's error falls with the rate.
RATES = {"rates/reshuffling-low": 2.0, "rates/reshuffling-high": -2.0}


def headline_of(shifts: Mapping[str, float], spread: float = 0.2) -> str:
    return headline(judge_study(read_evidence(made_study(shifts, spread=spread))))


def test_the_headline_has_the_result_and_its_setting() -> None:
    level = headline_of({SRS: -0.1})
    assert level.startswith(
        "**The gain was not seen in miniature (2,500 images of 16 x 16 pixels, WRN-10-2): SRS and resh"
    )
    assert "The paper's own setting is untested.**" in level
    assert (
        "SRS ended 0.10 points below reshuffling (95 % interval \u22120.20 to 0.00, n = 20 pairs); the paper" in level
    )
    assert "the paper reports SRS 7.08 points below reshuffling" in level
    assert "SRS raised the test error" in headline_of({SRS: 1.0})
    assert headline_of({}, spread=3.0).startswith("**Undecided in miniature")
    assert headline_of({SRS: -2.0}).startswith("**A gain was seen in miniature")
    assert "a larger learning rate gives as much" in headline_of({**RATES, SRS: -2.0, "rates/srs-low": 0.0})


def test_the_headline_before_the_last_pair_and_without_memorising() -> None:
    assert headline(judge_study(read_evidence(made_study({SRS: -2.0}, seeds={SRS: 7})))).startswith(
        "**Not decided yet: 7 of 20 pairs of the primary comparison have ended"
    )
    runs = [
        dataclasses.replace(run, result={**(run.result or {}), "clean_error": 3.0}) for run in made_study({SRS: -2.0})
    ]
    found = headline(judge_study(read_evidence(runs)))
    assert found.startswith("**This setting could not test the claim.** 20 runs of reshuffling did not")


def test_recommendations_name_the_learning_rate_only_if_it_mattered() -> None:
    def advice(runs: list[RunRecord]) -> str:
        return " ".join(recommendations(judge_study(read_evidence(runs))))

    assert "Tune the learning rate first" in advice(made_study(RATES))
    assert "Tune the learning rate first" not in advice(made_study())
    assert "Tune the learning rate first" not in advice(made_study(RATES, seeds=dict.fromkeys(RATES, 9)))


def test_a_lower_loss_that_is_only_online_is_called_an_artefact() -> None:
    found = losses_sentence(read_evidence(made_study()))
    assert found.startswith("At effective epoch 35")
    assert "was lower online" in found
    assert "neither lower nor higher clean" in found
    assert "the order's artefact" in found
    assert "Nothing is concluded" in losses_sentence(read_evidence(made_study(seeds={SRS: 5})))
    assert losses_sentence(read_evidence([])).startswith("Not run yet")


@pytest.mark.parametrize("runs", [[], made_study(seeds={"unit/srs": 1, "mini/srs": 0}), made_study(RATES)])
def test_parts_and_pictures_are_made_from_incomplete_records_too(runs: list[RunRecord]) -> None:
    evidence: Evidence = read_evidence(runs)
    made = parts(evidence, {})
    assert all(made.values())
    assert details(evidence)
    so_many = "All" if len(runs) == 180 else f"{len(runs)} of the"
    assert made["headline"].endswith(f"{so_many} 180 runs of the study have ended.")
    assert readme_part(evidence).startswith(made["headline"].split("\n\n")[0])
    for name, picture in pictures(evidence).items():
        ElementTree.fromstring(picture)
        assert "prefers-color-scheme:dark" in picture
        if "forest" in name:
            assert all(comparison.label in picture for comparison in COMPARISONS)


def test_the_tables_have_every_comparison_with_its_numbers() -> None:
    made = parts(read_evidence(made_study({SRS: -0.3})), {})
    row = (
        "| SRS minus reshuffling, learning rate 0.1 | 20 | -0.30 | -0.40 to -0.20 | -0.38 to -0.22 "
        "| equivalent | equivalent |"
    )
    assert row in made["comparisons"].replace("\u2212", "-")
    p_values = "| SRS minus reshuffling, learning rate 0.1 | 0.21 | \\< 0.001 | \u2013 | \\< 0.001 | \u2013 |"
    assert p_values in details(read_evidence(made_study({SRS: -0.3})))
    assert made["claims"].count("\n") == 4
    assert made["paper-claims"].count("\n") == 18
    assert "SRS lowers WRN's error on CIFAR-100 | -7.08 | study | 20 |" in made["paper-claims"].replace("\u2212", "-")


def test_the_chance_to_settle_matches_a_simulation() -> None:
    generator = np.random.default_rng(0)
    for pairs, deviation in ((2, 0.42), (3, 1.0), (5, 2.0)):
        differences = generator.normal(2 * HALF, deviation, (20_000, pairs))
        half = stats.t.ppf(0.975, pairs - 1) * differences.std(axis=1, ddof=1) / pairs**0.5
        settled = (differences.mean(axis=1) + half < HALF).mean()
        assert chance_to_settle(pairs, deviation) == pytest.approx(settled, abs=0.015)
