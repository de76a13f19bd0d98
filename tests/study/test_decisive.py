"""The decisive experiment: what is run, when it is settled, and from the command to the verdict on digits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from replenish.lab.config import RunConfig
from replenish.lab.experiments import decisive_configs, find, names, stated_seeds
from replenish.lab.experiments.costs import known_data, run_cost
from replenish.lab.report.grouping import Group
from replenish.lab.runs import RunRecord
from study.__main__ import app
from study.decisive import HALF, PUBLISHED, settle, settle_runs
from study.experiments import EXPERIMENTS

PLAIN = 19.4


def group(order: str, errors: list[float | None], **result: Any) -> Group:
    """Return runs of one side; None for one that diverged."""
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


def settled(*differences: float | None, **result: Any) -> tuple[str, str]:
    errors = [None if each is None else PLAIN + each for each in differences]
    found = settle(group("srs", errors, **result), group("reshuffling", [PLAIN] * len(errors)))
    return found.state, found.sentence


def test_it_is_rows_3_and_4_of_table_3() -> None:
    rows = {"srs": "table3/wrn-srs-b64-120-150-175", "reshuffling": "table3/wrn-b64-120-150-175"}
    for order, row in rows.items():
        config, printed = decisive_configs()[f"decisive/{order}"], find(row)[row]
        assert set(config.differences(printed)) == {"test_every", "clean_every"}
    assert round(PUBLISHED, 2) == -7.08
    assert {"decisive", "decisive/srs"} <= set(names())
    assert stated_seeds(find("decisive")) == 3
    assert stated_seeds(find("decisive/srs")) == 3


def test_what_it_costs() -> None:
    """Fewer tests than table 3, and a clean loss now and then."""
    config = decisive_configs()["decisive/srs"]
    data = known_data(config)
    plain, found = run_cost(RunConfig(), data), run_cost(config, data)
    assert found.multiply_adds / plain.multiply_adds == pytest.approx((3 * 200 * 5 + 20 * 5 + 20) / (3 * 200 * 5 + 200))


def test_settled_either_way_or_not() -> None:
    state, said = settled(-7.4, -6.9, -7.1)
    assert state == "settled"
    assert said.startswith("Settled: the published gain is there. SRS minus reshuffling is \u22127.13 points")
    state, said = settled(0.3, -0.2, 0.1)
    assert state == "settled"
    assert said.startswith("Settled: the published gain is not there.")
    assert "smaller" not in said
    state, said = settled(-1.1, -1.2, -1.0)
    assert state == "settled"
    assert said.endswith("A smaller one is: the interval leaves out 0.")
    state, said = settled(-3.0, -4.0, HALF)
    assert state == "open"
    assert said.startswith("Not settled: SRS minus")


def test_not_before_the_last_pair() -> None:
    assert settled(-7.4, -6.9) == ("unknown", "Not settled yet: 2 of 3 pairs have ended; the same command continues.")
    assert settled()[1].startswith("Not settled yet: 0 of 3 pairs")
    assert settled(-7.0, -7.0, -7.0)[1].startswith("Not settled: all pairs have one difference")
    # Seeds that were not stated never count.
    assert settled(-7.4, -6.9, -7.1, 0.0, 0.0) == settled(-7.4, -6.9, -7.1)


def test_a_diverged_run_counts_with_the_error_of_guessing() -> None:
    srs, plain = group("srs", [None, PLAIN, PLAIN]), group("reshuffling", [PLAIN] * 3)
    assert settle(srs, plain).difference.differences[0] == pytest.approx(99 - PLAIN)
    assert settle(srs, plain).state == "open"


def test_pairs_that_were_not_executed_alike_settle_nothing() -> None:
    state, said = settled(-7.4, -6.9, -7.1, hardware={"threads": 2})
    assert state == "unknown"
    assert said == "Not settled: the runs of a pair were not executed alike: threads (2 and 1)."


def test_only_the_runs_of_the_experiment_count() -> None:
    runs = [*group("srs", [12.1, 12.4, 12.6]).runs, *group("reshuffling", [19.5, 19.2, 19.6]).runs]
    other = RunRecord("other/seed0", RunConfig(dataset="digits"), (), {"status": "finished", "test_error": 1.0})
    assert settle_runs([*runs, other]).sentence.startswith("Settled: the published gain is there.")
    assert settle_runs([*runs, other], "mini").sentence.startswith("Not settled yet: 0 of 3 pairs")


def test_from_the_command_to_the_verdict_on_digits(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["run", "decisive", "--scale", "digits", "--runs", str(tmp_path)])
    assert "6 runs have ended" in done.stdout, done.stderr
    done = CliRunner().invoke(app, ["decisive", str(tmp_path), "--scale", "digits"])
    assert done.exit_code == 0, done.stderr
    assert "n = 3 pairs" in done.stdout
    assert "It settles nothing about the paper." in done.stdout


def test_the_study_has_experiments_of_its_own() -> None:
    done = CliRunner().invoke(app, ["run", "study/ratez"])
    assert done.exit_code == 2
    assert "did you mean study/rates" in done.stderr
    assert len(find("study")) == len(EXPERIMENTS) == 16
    assert stated_seeds(find("study/unit")) == 1
