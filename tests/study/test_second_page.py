"""What the second study's page says, on made-up records, and that the committed page is that of the records."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from replenish.lab.runs import RunRecord
from study.rules import PREDICTED_ORDER
from study.second import PARTS
from study.second_page import PICTURE, by_arm, clean_loss, doses, parts, picture

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "study" / "records"


def made_doses(losses: dict[str, float], *, diverged: str = "", **result: Any) -> list[RunRecord]:
    """Return runs of part K whose clean losses are `losses`; log-losses and errors follow them, and seeds wobble."""
    runs = []
    for place, (arm, config) in enumerate(PARTS["K"].arms.items(), 1):
        for seed in range(100, 120):
            own, gone = config.with_seed(seed), arm == diverged and seed == 103
            loss = None if gone else losses[arm] + 0.01 * math.sin(seed * place)
            told = {
                "status": "diverged" if gone else "finished",
                "test_error": None if loss is None else 80 + loss,
                "test_loss": None if loss is None else 4.5 + loss / 10,
                "seconds": 90.0,
                "started_at": "2026-11-19T04:00:00+00:00",
                "ended_at": "2026-11-19T04:01:30+00:00",
                "commit": "abc1234",
                "command": "python -m study.second K",
            }
            metrics = tuple({"epoch": epoch, "clean_loss": loss} for epoch in range(1, 61))
            runs.append(RunRecord(f"{own.slug}/seed{seed}", own, metrics, {**told, **result}))
    return runs


RISING = {arm: 0.2 * place for place, arm in enumerate(PREDICTED_ORDER)} | {"reshuffling-equal-variance": 0.6}


def test_nothing_is_said_before_the_last_run() -> None:
    runs = by_arm(made_doses(RISING)[:-1])
    said = parts(runs)
    assert said["dose-headline"] == "139 of the 140 runs of part K have ended. Nothing is judged before the last one."
    assert {text for name, text in said.items() if name != "dose-headline"} == {""}
    assert picture(runs) is None


def test_a_law_that_holds_is_said_to_hold_and_one_that_fails_to_fail() -> None:
    held = parts(by_arm(made_doses(RISING)))["dose-headline"]
    assert "K1, our law (primary): held." in held
    assert "are ordered as predicted" in held
    assert "K2, test log-loss (co-primary): equivalent.** SRS minus reshuffling: +0.020 (+0." in held
    runs = by_arm(made_doses({arm: 1 - loss for arm, loss in RISING.items()}))
    failed = parts(runs)["dose-headline"]
    assert "K1, our law (primary): did not hold." in failed
    assert "not exactly as predicted" in failed
    ElementTree.fromstring(picture(runs) or "")


def test_a_run_that_diverged_keeps_the_loss_of_guessing_and_is_counted() -> None:
    runs = by_arm(made_doses(RISING, diverged="srs-four"))
    assert clean_loss(runs)["srs-four"][3] == pytest.approx(math.log(100))
    assert "| SRS, k = 4 | 20 | 1 |" in parts(runs)["dose-arms"]


def test_a_record_without_the_number_is_refused() -> None:
    with pytest.raises(ValueError, match="should have a test_loss after its last epoch"):
        parts(by_arm(made_doses(RISING, test_loss=None)))


def test_the_committed_page_is_that_of_the_records() -> None:
    page = (ROOT / "docs" / "second_study.md").read_text()
    runs = doses(RECORDS)
    for name, text in parts(runs).items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        assert page.split(begin)[1].split(end)[0].strip() == text.strip(), f"run `python -m study pages`: {name}"
    drawn = picture(runs)
    if drawn is not None:
        assert (ROOT / "docs" / PICTURE).read_text() == drawn
