"""The second study's page on made-up records, and the committed page against the committed records."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

from replenish.lab.runs import RunRecord
from study.second import dose, fault_page, full_images
from study.second.arms import FEW_EPOCHS, FIRST_SEED, PARTS
from study.second.page import parts, pictures
from study.second.records import PartRecords
from study.second.rules import FEW_EPOCHS_ORDER, PREDICTED_ORDER, holm

ROOT = Path(__file__).parents[2]
RECORDS = ROOT / "study" / "records"


def made_runs(part: str, losses: dict[str, float], *, diverged: str = "", **result: Any) -> list[RunRecord]:
    """Return runs of a part with these losses and a wobble over the seeds; log-losses and errors follow the losses."""
    runs = []
    for place, (arm, config) in enumerate(PARTS[part].arms.items(), 1):
        for seed in range(FIRST_SEED, FIRST_SEED + PARTS[part].seeds):
            own, gone = config.with_seed(seed), arm == diverged and seed == 103
            loss = None if gone else losses[arm] + 0.01 * math.sin(seed * place)
            ended = {
                "status": "diverged" if gone else "finished",
                "test_error": None if loss is None else 80 + loss,
                "test_loss": None if loss is None else 4.5 + loss / 10,
                "train_loss": loss,
                "seconds": 90.0,
                "started_at": "2026-11-19T04:00:00+00:00",
                "ended_at": "2026-11-19T04:01:30+00:00",
                "commit": "abc1234",
                "command": f"python -m study.second {part}",
            }
            metrics = tuple({"epoch": epoch, "clean_loss": loss, "train_loss": loss} for epoch in range(1, 61))
            runs.append(RunRecord(f"{own.slug}/seed{seed}", own, metrics, {**ended, **result}))
    return runs


RISING = {arm: 0.2 * place for place, arm in enumerate(PREDICTED_ORDER)} | {"reshuffling-equal-variance": 0.6}
FULL = {"reshuffling": 0.0, "srs": 0.05, "reshuffling-equal-variance": 0.05}
FEW = {
    f"{order}-{epochs}": 2.0 * place / epochs for place, order in enumerate(FEW_EPOCHS_ORDER) for epochs in FEW_EPOCHS
}


def made_dose(losses: dict[str, float], **options: Any) -> PartRecords:
    return PartRecords("K", made_runs("K", losses, **options))


def dose_parts(records: PartRecords) -> dict[str, str]:
    return dose.parts(records, holm(dose.secondary(records)))


def test_nothing_is_judged_before_the_last_run() -> None:
    records = PartRecords("K", made_runs("K", RISING)[:-1])
    made = dose_parts(records)
    assert made["dose-headline"] == "139 of the 140 runs of part K have ended. Nothing is judged before the last one."
    assert {text for name, text in made.items() if name != "dose-headline"} == {""}
    assert dose.picture(records) is None
    full = full_images.full_parts(PartRecords("F", []))
    assert full["full-headline"].startswith("0 of the 48 runs of part F have ended.")


def test_part_k_reports_whether_its_law_held() -> None:
    held = dose_parts(made_dose(RISING))["dose-headline"]
    assert "K1, our law (primary): held." in held
    assert "are in the predicted order" in held
    assert "K2, test log-loss (co-primary): equivalent.** SRS minus reshuffling: +0.020 (+0." in held
    reverse = made_dose({arm: 1 - loss for arm, loss in RISING.items()})
    failed = dose_parts(reverse)["dose-headline"]
    assert "K1, our law (primary): did not hold." in failed
    assert "are not in the predicted order" in failed
    ElementTree.fromstring(dose.picture(reverse) or "")


def test_part_k_compares_every_arm_with_reshuffling() -> None:
    rising, lines = dose_parts(made_dose(RISING))["dose-exploratory"].split("\n\n")
    assert "their means rise as predicted. Each arm minus reshuffling, n = 20" in rising
    assert [line.split(" | ")[0] for line in lines.split("\n")[2:]] == [
        f"| {name}" for arm, name in dose.ARMS.items() if arm != "reshuffling"
    ]
    swapped = {**RISING, "srs": RISING["srs-four"], "srs-four": RISING["srs"]}
    assert "except that SRS, k = 4 is below SRS, k = 1." in dose_parts(made_dose(swapped))["dose-exploratory"]


def test_a_diverged_run_counts_with_the_loss_of_guessing() -> None:
    records = made_dose(RISING, diverged="srs-four")
    assert dose.clean_loss(records)["srs-four"][3] == pytest.approx(math.log(100))
    assert "| SRS, k = 4 | 20 | 1 |" in dose_parts(records)["dose-arms"]


def test_a_record_without_the_number_is_refused() -> None:
    with pytest.raises(ValueError, match="should have a test_loss after its last epoch"):
        dose_parts(made_dose(RISING, test_loss=None))


def test_part_f_has_verdicts_and_arms() -> None:
    made = full_images.full_parts(PartRecords("F", made_runs("F", FULL)))
    assert "F1, test error (primary): equivalent.** SRS minus reshuffling: +0.05 (" in made["full-headline"]
    assert "| reshuffling, rate 0.177 | 16 | 0 |" in made["full-arms"]
    assert made["full-verdicts"].count("\n") == 5
    better = full_images.full_parts(PartRecords("F", made_runs("F", {**FULL, "srs": -7.0})))
    assert "F1, test error (primary): better." in better["full-headline"]


@pytest.mark.parametrize(
    ("losses", "first", "second"),
    [(FEW, "held", "it shrank"), ({arm: -loss for arm, loss in FEW.items()}, "did not hold", "it grew")],
)
def test_part_e_reports_whether_its_predictions_held(losses: dict[str, float], first: str, second: str) -> None:
    records = PartRecords("E", made_runs("E", losses))
    made = full_images.few_parts(records, holm(full_images.secondary(records)))
    assert f"E1, the order after one epoch (ours): {first}." in made["few-headline"]
    assert f"after four epochs against after one: {second}." in made["few-headline"]
    assert made["few-arms"].count("\n") == 1 + len(FEW_EPOCHS)


def test_the_table_of_faults_needs_all_scores() -> None:
    scores = {
        name: {str(seed): 50.0 - 5 * place + 0.1 * seed**0.5 * (place + 1) for seed in range(100, 103)}
        for place, name in enumerate(("honest", *fault_page.PREDICTIONS))
    }
    shown = fault_page.parts(scores)["faults"].splitlines()
    assert len(shown) == 2 + 1 + len(fault_page.PREDICTIONS)
    assert shown[2].startswith("| honest | ")
    assert shown[3].startswith("| augmentation drawn once |")  # the lowest error here
    del scores["top-2 counted"]["102"]
    assert fault_page.parts(scores)["faults"].startswith("8 of the 9 faults have been scored.")


def test_the_committed_page_matches_the_records() -> None:
    page = (ROOT / "docs" / "second_study.md").read_text()
    for name, text in parts(RECORDS).items():
        begin, end = f"<!-- begin: {name} -->", f"<!-- end: {name} -->"
        assert page.split(begin)[1].split(end)[0].strip() == text.strip(), f"run `python -m study pages`: {name}"
    for name, drawn in pictures(RECORDS).items():
        assert (ROOT / "docs" / name).read_text() == drawn
