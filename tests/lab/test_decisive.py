"""The decisive experiment: what is run, when it is settled, and from the command to the page on digits."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from replenish import cli
from replenish.lab.config import RunConfig
from replenish.lab.experiments import decisive_configs, find, names, stated_seeds
from replenish.lab.experiments.costs import known_data, run_cost
from replenish.lab.report import make_report
from replenish.lab.report.decisive import HALF, PUBLISHED, settle
from replenish.lab.report.grouping import Group
from replenish.lab.runs import RunRecord

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
    assert stated_seeds(find("study/unit")) == 1


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
    assert settled(-7.4, -6.9) == ("unknown", "Not settled yet: 2 of 3 pairs have ended; the same command goes on.")
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


def test_the_page_shows_settled() -> None:
    runs = [*group("srs", [12.1, 12.4, 12.6]).runs, *group("reshuffling", [19.5, 19.2, 19.6]).runs]
    report = make_report(runs, {})
    assert '<p class="state">settled</p>' in report.html
    assert "Settled: the published gain is there." in report.html
    assert "## Are the 7 points there? The decisive experiment" in report.markdown
    assert "trial" not in report.markdown


def test_from_the_command_to_the_page_on_digits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)

    def typed(*arguments: str) -> str:
        monkeypatch.setattr(sys, "argv", ["replenish", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        said = capsys.readouterr()
        assert not left.value.code, said.err
        return said.out

    assert "6 runs have ended" in typed("run", "decisive", "--scale", "digits", "--epochs", "1")
    typed("report", "runs")
    page, markdown = ((tmp_path / "runs" / f"report.{kind}").read_text() for kind in ("html", "md"))
    assert '<p class="state">a trial</p>' in page
    assert "In this trial: " in markdown
    assert "n = 3 pairs" in markdown
    assert "settles nothing about the paper" in markdown
    assert "Orders on digits" not in markdown  # told once
