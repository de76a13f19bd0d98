"""The study's judgement of made-up records: every verdict, and records that are refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_runs import write_run
from made_study import made_run, made_study
from scipy import stats

from replenish.lab.runs import RunRecord, read_runs
from replenish.lab.statistics import paired_difference
from study.replication import ARMS, CLAIMS, PRIMARY, SECONDARY, Judgement, judge_study, read_evidence
from study.replication.judgement import difference_of_differences

SRS, PLAIN = "rates/srs-paper", "rates/reshuffling-paper"


def judged(runs: Sequence[RunRecord], reading: Any = "test_error") -> Judgement:
    return judge_study(read_evidence(runs), reading)


def claim(name: str, judgement: Judgement) -> str:
    return next(each for each in CLAIMS if each.name == name).verdict(judgement)


def changed(run: RunRecord, **result: Any) -> RunRecord:
    assert run.result is not None
    return replace(run, result={**run.result, **result})


def test_the_plan_matches_the_page_of_the_study() -> None:
    page = (Path(__file__).parents[2] / "docs" / "study.md").read_text()
    assert sum(arm.seeds for arm in ARMS.values()) == 180
    assert {arm.name for arm in ARMS.values() if arm.seeds == 20} == {SRS, PLAIN} == {PRIMARY.first, PRIMARY.second}
    assert "0-9; 0-19 for reshuffling and SRS at 0.1" in page
    assert "seed by seed, n = 20" in page
    assert "**The margin** is 0.5 points" in page
    assert len(SECONDARY) == 12
    assert {name for comparison in (PRIMARY, *SECONDARY) for name in comparison.arms} | {"rates/srs-high"} == set(ARMS)


def test_a_gain_that_matters_supports_the_claim() -> None:
    found = judged(made_study({SRS: -2.0}))
    assert found.primary.verdict == "better"
    assert found.primary.effect is not None
    assert found.primary.effect.mean == pytest.approx(-2.0)
    assert found.primary.effect.n == 20
    assert claim("gain", found) == "observed here"


@pytest.mark.parametrize(
    ("shift", "spread", "verdict", "claimed"),
    [
        (2.0, 0.2, "worse", "not observed here"),
        (0.0, 0.2, "equivalent", "not observed here"),
        (-0.3, 0.2, "equivalent", "not observed here"),
        (0.3, 0.2, "equivalent", "not observed here"),
        (0.0, 2.0, "undecided", "undecided"),
        (-0.5, 0.2, "better", "observed here"),  # exactly the margin is not equivalent
        (-0.5, 2.0, "undecided", "undecided"),
    ],
)
def test_the_other_verdicts(shift: float, spread: float, verdict: str, claimed: str) -> None:
    found = judged(made_study({SRS: shift}, spread=spread))
    assert found.primary.verdict == verdict
    assert claim("gain", found) == claimed


def test_nothing_is_judged_before_the_last_pair() -> None:
    found = judged(made_study({SRS: -2.0}, seeds={SRS: 19, "unit/srs": 0}))
    assert found.primary.verdict == claim("gain", found) == "not run yet (19 of 20)"
    assert not found.primary.sign
    assert found["unit"].effect is None
    assert claim("unit", found) == "not run yet (0 of 10)"
    assert claim("control", found) == "no false difference"
    nothing = judged([])
    assert claim("rate", nothing) == "not run yet (0 of 40)"
    assert {each.verdict for each in nothing.every} == {"not run yet (0 of 20)", "not run yet (0 of 10)"}


def test_a_seed_missing_in_one_arm_is_not_a_pair() -> None:
    runs = [run for run in made_study() if run.config != ARMS[SRS].config.with_seed(7)]
    found = judged(runs)
    assert found.primary.verdict == "not run yet (19 of 20)"
    assert found["shift-high"].verdict == "not run yet (9 of 10)"


def test_runs_of_other_seeds_never_count() -> None:
    extra = [made_run(SRS, 20, 10.0), made_run(PLAIN, 1000, 10.0), made_run("unit/srs", 10, 10.0)]
    evidence = read_evidence([*made_study(), *extra])
    assert len(evidence.left_out) == 3
    assert judge_study(evidence) == judged(made_study())


def test_diverged_runs_stay_in_with_the_error_of_guessing() -> None:
    runs = [
        made_run(SRS, run.config.seed, 0.0, status="diverged", steps=12)
        if run.config == ARMS[SRS].config.with_seed(3)
        else run
        for run in made_study()
    ]
    found = judged(runs).primary
    assert found.effect is not None
    assert found.effect.mean == pytest.approx((99 - 80 + 19 * 0.0 + 0.2) / 20)
    assert found.diverged == 1
    coarse = made_run("coarse/srs", 0, 0.0, status="diverged")
    assert read_evidence([coarse]).arms["coarse/srs"].errors() == {0: pytest.approx(95.0)}


def test_a_part_that_has_not_learnt_is_not_testable() -> None:
    def spoilt(arm: str, **result: Any) -> Judgement:
        config = ARMS[arm].config.with_seed(4)
        return judged([changed(run, **result) if run.config == config else run for run in made_study({SRS: -2.0})])

    found = spoilt("unit/reshuffling", clean_error=1.04)
    assert found["unit"].verdict == claim("unit", found) == "not testable here"
    assert claim("gain", found) == "observed here"
    assert claim("gain", spoilt(PLAIN, clean_error=1.04)) == "not testable here"
    assert claim("gain", spoilt(PLAIN, clean_error=1.0)) == "observed here"
    # Runs with SRS, and augmented ones, need not memorise their images.
    assert claim("gain", spoilt(SRS, clean_error=50.0)) == "observed here"
    assert claim("recipe", spoilt("augmented/reshuffling", clean_error=50.0)) == "not observed here"


def test_srs_as_reshuffling_at_a_larger_rate() -> None:
    rates = {"rates/reshuffling-low": 1.5, "rates/reshuffling-high": -2.0}
    # The prediction of the theory for a quadratic: SRS equals reshuffling at the next larger rate.
    assert claim("rate", judged(made_study({**rates, "rates/srs-low": 0.0, SRS: -2.0}))) == "held here"
    assert claim("rate", judged(made_study({**rates, "rates/srs-low": 1.5, SRS: 0.0}))) == "did not hold here"
    assert claim("rate", judged(made_study())) == "not testable here"
    assert claim("rate", judged(made_study(rates, spread=4.0))) == "undecided"
    # A difference that is not significant after Holm decides nothing.
    weak = {"rates/srs-low": 0.9, "rates/reshuffling-high": 0.5}
    assert claim("rate", judged(made_study(weak, spread=1.0))) == "undecided"


def test_interactions_are_differences_of_differences_on_the_first_ten_seeds() -> None:
    found = judged(made_study({SRS: -3.0, "unit/srs": -1.0}))
    assert found["unit-interaction"].effect is not None
    assert found["unit-interaction"].effect.mean == pytest.approx(2.0)
    assert found["unit-interaction"].effect.n == 10
    assert claim("unit", found) == "observed here"
    assert claim("unit", judged(made_study({SRS: -3.0, "unit/srs": -5.0}))) == "not observed here"
    assert claim("images", judged(made_study())) == "not observed here"


def test_holm_is_over_all_secondary_p_values() -> None:
    shifts = {"rates/replacement-paper": 0.9}
    found = judged(made_study(shifts, spread=1.0))
    replacement = found["replacement"]
    assert replacement.effect is not None
    p_value = replacement.effect.p_value
    assert p_value is not None
    assert p_value < 0.05 < 24 * p_value
    assert replacement.adjusted_p == pytest.approx(24 * p_value)
    assert (replacement.uncorrected, replacement.verdict, claim("replacement", found)) == (
        "worse",
        "undecided",
        "undecided",
    )
    assert found.primary.adjusted_p is found.primary.adjusted_equivalence_p is None
    # Comparisons not yet run count too, so that the correction does not depend on the time of the look.
    part = judged(made_study(shifts, spread=1.0, seeds={name: 0 for name in ARMS if not name.startswith("rates/")}))
    assert part["replacement"].adjusted_p == pytest.approx(24 * p_value)
    assert part["unit"].adjusted_p is None


def test_equivalences_are_two_one_sided_tests_and_corrected_too() -> None:
    found = judged(made_study({"mini/srs": 0.1}, spread=0.5))["mini"]
    assert found.effect is not None
    differences = np.array(found.effect.differences)
    tests = (
        stats.ttest_1samp(differences, 0.5, alternative="less").pvalue,
        stats.ttest_1samp(differences, -0.5, alternative="greater").pvalue,
    )
    assert found.equivalence_p == pytest.approx(max(tests))
    assert found.equivalence_p < 0.05 < 12 * found.equivalence_p
    assert (found.uncorrected, found.verdict) == ("equivalent", "undecided")


def test_the_second_reading_is_judged_separately() -> None:
    runs = [changed(run, held_out_error=70.0 + (run.config.seed % 3)) for run in made_study({SRS: -2.0})]
    first, second = judged(runs), judged(runs, "held_out_error")
    assert first.primary.sign == "better"
    assert second.primary.effect is not None
    assert second.primary.effect.mean == 0
    assert second.primary.verdict == "undecided"  # no spread, no interval


@pytest.mark.parametrize(
    ("what", "value"),
    [
        ("hardware", {"threads": 2, "device": "cpu"}),
        ("machine", {"processor": "Another"}),
        ("versions", {"torch": "2.12.0"}),
        ("steps", 2999),
        ("initial_sha256", "others"),
        ("data", {"fingerprint": "others"}),
        ("earlier_hardware", [{"threads": 4, "device": "cpu"}]),
    ],
)
def test_runs_not_executed_alike_are_refused(what: str, value: Any) -> None:
    runs = made_study()
    place = next(index for index, run in enumerate(runs) if run.config == ARMS[SRS].config.with_seed(2))
    runs[place] = changed(runs[place], **{what: value})
    with pytest.raises(ValueError, match="runs of one comparison should be alike, but") as caught:
        judged(runs)
    assert runs[place].path in str(caught.value)


def test_two_records_of_one_run_are_refused() -> None:
    twice = replace(made_run(SRS, 0, 80.0), path="copy/seed0")
    with pytest.raises(ValueError, match="are the same run; remove one of them"):
        read_evidence([made_run(SRS, 0, 80.0), twice])


def test_a_finished_run_without_its_reading_is_refused() -> None:
    runs = [changed(run, held_out_error=math.nan) for run in made_study()]
    with pytest.raises(ValueError, match="should have a number 'held_out_error' in its result, but has none"):
        judged(runs, "held_out_error")


def test_records_are_read_from_folders(tmp_path: Path) -> None:
    result = {"clean_error": 0.0, "held_out_error": 81.0, "initial_sha256": "equal", "earlier_hardware": []}
    for seed in range(20):
        for arm, error in {SRS: 78.0 + seed % 2, PLAIN: 80.0}.items():
            write_run(tmp_path, ARMS[arm].config.with_seed(seed), error, result=result)
    write_run(tmp_path, ARMS["unit/srs"].config, status=None)  # not ended yet
    found = judged(read_runs(tmp_path))
    assert found.primary.verdict == "better"
    assert found["unit"].pairs == 0


@pytest.mark.parametrize("sizes", [(7, 7), (5, 12)])
def test_a_difference_of_differences_uses_welchs_test(sizes: tuple[int, int]) -> None:
    rng = np.random.default_rng(4)
    first, second = (rng.normal(1, spread, n) for spread, n in zip((1, 3), sizes, strict=True))
    differences = (
        paired_difference(dict(enumerate(each)), dict.fromkeys(range(len(each)), 0.0)) for each in (first, second)
    )
    found = difference_of_differences(*differences)
    reference = stats.ttest_ind(first, second, equal_var=False)
    interval = found.interval()
    assert interval is not None
    bounds = reference.confidence_interval(0.95)
    assert (interval.low, interval.high) == pytest.approx((bounds.low, bounds.high))
    assert found.p_value == pytest.approx(reference.pvalue)
