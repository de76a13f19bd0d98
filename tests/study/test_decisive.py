"""The decisive experiment: its runs, when it is settled, and the whole way from the command to a verdict on digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from replenish.lab.config import RunConfig
from replenish.lab.experiments import SCALES, decisive_configs, digits, find, names, stage_of
from replenish.lab.experiments.costs import known_data, run_cost
from replenish.lab.report.grouping import Group
from replenish.lab.runs import RunRecord
from study.__main__ import app
from study.decisive import HALF, PUBLISHED, settle, settle_runs
from study.experiments import EXPERIMENTS

PLAIN = 19.4


def group(order: str, errors: list[float | None], **result: Any) -> Group:
    """Return the runs of one side; an error of None marks a diverged run."""
    config = decisive_configs()[f"decisive/{order}"]
    runs = [
        RunRecord(
            f"{order}/seed{seed}",
            config.with_seed(seed),
            (),
            {"status": "diverged" if error is None else "finished", "test_error": error, "hardware": {"threads": 1}}
            | result,
        )
        for seed, error in enumerate(errors)
    ]
    return Group(order, config, tuple(runs))


def settled(*differences: float | None, plain: float = PLAIN, **result: Any) -> tuple[str, str]:
    errors = [None if each is None else plain + each for each in differences]
    found = settle(group("srs", errors, **result), group("reshuffling", [plain] * len(errors)))
    return found.state, found.sentence


def test_it_is_rows_3_and_4_of_table_3_in_stages() -> None:
    rows = {"srs": "table3/wrn-srs-b64-120-150-175", "reshuffling": "table3/wrn-b64-120-150-175"}
    for order, row in rows.items():
        config, printed = decisive_configs()[f"decisive/{order}"], find(row)[row]
        assert set(config.differences(printed)) == {"clean_every"}
        assert decisive_configs()[f"decisive-five/{order}"] == config
    assert round(PUBLISHED, 2) == -7.08
    assert {"decisive", "decisive/srs", "decisive-five", "decisive-beside"} <= set(names())
    assert list(find("decisive")) == ["decisive/reshuffling", "decisive/srs"]
    stages = [stage_of(find(group)) for group in ("decisive", "decisive-five", "decisive-beside")]
    assert [stage.seeds for stage in stages if stage is not None] == [1, 5, 1]
    beside = find("decisive-beside")
    assert {config.order for config in beside.values()} == {"srs"}


def test_its_cost() -> None:
    """The cost of the paper's runs and of some clean losses."""
    config = decisive_configs()["decisive/srs"]
    data = known_data(config)
    plain, found = run_cost(RunConfig(), data), run_cost(config, data)
    assert found.multiply_adds / plain.multiply_adds == pytest.approx(
        (3 * 200 * 5 + 200 + 20 * 5) / (3 * 200 * 5 + 200)
    )


def test_the_first_pair_decides_whether_to_continue() -> None:
    state, sentence = settled(-7.0)
    assert state == "continue"
    assert sentence.startswith(
        "Stage 1: SRS ended at 12.40 %, \u22127.00 points from reshuffling. Continue with: replenish run"
    )
    state, sentence = settled(-1.0)
    assert state == "stop"
    assert "above 16 %, so the published gain is not there: stop." in sentence
    assert settled(None)[0] == "stop"
    assert settled()[0] == "waiting"


@pytest.mark.parametrize(
    ("differences", "state"),
    [
        ((-7.4, -6.9, -7.1, -7.0, -7.2), "published size"),
        ((-1.1, -1.2, -1.0, -1.3, -1.1), "smaller"),
        ((0.3, -0.2, 0.1, 0.0, -0.1), "equivalent"),
        ((-0.3, -0.25, -0.2, -0.3, -0.25), "equivalent"),  # significant, but within the margin
        ((1.1, 1.2, 1.0, 1.3, 1.1), "worse"),
        ((-3.0, -4.0, HALF, -3.5, -3.6), "open"),
        ((-1.5, 1.2, -0.8, 0.9, 0.2), "open"),
        ((-7.0,) * 5, "open"),
    ],
)
def test_five_pairs_have_a_verdict(differences: tuple[float, ...], state: str) -> None:
    assert settled(*differences)[0] == state
    # Seeds that were not stated never count.
    assert settled(*differences, 5.0, 5.0) == settled(*differences)


def test_a_diverged_run_counts_with_the_error_of_guessing() -> None:
    srs, plain = group("srs", [None, *[PLAIN] * 4]), group("reshuffling", [PLAIN] * 5)
    assert settle(srs, plain).difference.differences[0] == pytest.approx(99 - PLAIN)
    assert settle(srs, plain).state == "open"


def test_pairs_that_were_not_executed_alike_settle_nothing() -> None:
    state, sentence = settled(-7.4, -6.9, -7.1, hardware={"threads": 2})
    assert state == "waiting"
    assert sentence == "Not settled: the runs of a pair were not executed alike: threads (2 and 1)."


def test_only_the_runs_of_the_experiment_count() -> None:
    srs, plain = [12.1, 12.4, 12.6, 12.2, 12.3], [19.5, 19.2, 19.6, 19.4, 19.3]
    runs = [*group("srs", [*srs]).runs, *group("reshuffling", [*plain]).runs]
    other = RunRecord("other/seed0", RunConfig(dataset="digits"), (), {"status": "finished", "test_error": 1.0})
    assert settle_runs([*runs, other]).state == "published size"
    assert settle_runs([*runs, other], "mini").state == "waiting"


def test_from_the_command_to_the_verdict_on_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "digits", lambda config: digits(config).for_epochs(4))  # instead of twenty
    done = CliRunner().invoke(app, ["run", "decisive", "--scale", "digits", "--runs", str(tmp_path)])
    assert done.stderr.startswith("Stage 1 of 2: one pair.")
    assert "2 runs have ended" in done.stdout, done.stderr
    done = CliRunner().invoke(app, ["decisive", str(tmp_path), "--scale", "digits"])
    assert done.exit_code == 0, done.stderr
    assert "Stage 1: SRS ended at" in done.stdout
    assert "It settles nothing about the paper." in done.stdout


def test_the_study_has_its_own_experiments() -> None:
    done = CliRunner().invoke(app, ["run", "study/ratez"])
    assert done.exit_code == 2
    assert "did you mean study/rates" in done.stderr
    assert len(find("study")) == len(EXPERIMENTS) == 16
    assert stage_of(find("study/unit")) is None
