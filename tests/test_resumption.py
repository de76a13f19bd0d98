"""The comparison of a resumed training with an uninterrupted one, on exact lists."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from replenish.auditing.resumption import compare_resumed
from replenish.exec.resume_test import ResumeTest, TrainedBatches
from replenish.exec.run_draws import ProcessDraws


def epochs(seed: int, number: int = 3, samples: int = 20, batch: int = 4) -> list[list[np.ndarray]]:
    generator = np.random.Generator(np.random.Philox(seed))
    return [np.split(generator.permutation(samples), samples // batch) for _ in range(number)]


RUN = epochs(1)  # five batches per epoch
OTHER = epochs(2)
SAVED = 7  # two batches of the second epoch are trained


@pytest.mark.parametrize(
    ("resumed", "level", "sentence"),
    [
        ([RUN[1][2:], RUN[2]], "ok", "Exact: the 8 batches from step 7 on"),
        ([RUN[1], RUN[2]], "fault", "Repeats 8 samples and skips 0 of the interrupted epoch, from step 7"),
        ([RUN[1][3:], RUN[2]], "fault", "Repeats 0 samples and skips 4 of the interrupted epoch, from step 7"),
        ([RUN[2]], "fault", "Repeats 8 samples and skips 0 of the interrupted epoch, from step 7"),
        (
            [RUN[1][2:], OTHER[2]],
            "warning",
            "epoch is exact; later epochs have another order, from step 10",
        ),
        (
            [RUN[1][2:][::-1], RUN[2]],
            "warning",
            "as often as it should, in another order from step 7",
        ),
        ([RUN[1][2:]], "warning", "It trained with 3 batches, where 8 were left"),
        ([[]], "fault", "it trained with no batch"),
    ],
)
def test_the_level_and_the_sentence_of_a_resume(resumed: list, level: str, sentence: str) -> None:
    found = compare_resumed("SIGKILL", RUN, [RUN[0], RUN[1][:3]], resumed, SAVED)
    assert (found.level, sentence in found.sentence) == (level, True), found


def test_processes_may_divide_a_batch_differently() -> None:
    turned = [[batch[::-1] for batch in epoch] for epoch in [RUN[1][2:], RUN[2]]]
    assert compare_resumed("SIGTERM", RUN, RUN[:1], turned, SAVED).level == "ok"


def test_a_script_without_a_seed_is_compared_with_its_own_epoch() -> None:
    rest = np.setdiff1d(np.arange(20), np.concatenate(OTHER[1][:2]))
    found = compare_resumed("SIGTERM", RUN, OTHER[:2], [np.split(rest, 3), OTHER[2]], SAVED)
    assert found.level == "warning"
    assert "seed it" in found.sentence
    found = compare_resumed("SIGTERM", RUN, OTHER[:2], [RUN[1][2:], OTHER[2]], SAVED)
    assert found.level == "fault"


def test_limited_runs_are_compared_up_to_their_end() -> None:
    short = [RUN[0], RUN[1][:4]]
    assert compare_resumed("SIGTERM", short, RUN[:1], [RUN[1][2:]], SAVED, limited=True).level == "ok"
    found = compare_resumed("SIGTERM", short, RUN[:1], [RUN[1]], SAVED, limited=True)
    assert found.numbers["repeats"] == 8


def test_processes_that_resume_at_different_steps_are_named() -> None:
    halves = [[np.split(batch, 2)[rank] for epoch in RUN for batch in epoch] for rank in range(2)]
    mixed = [np.concatenate(pair) for pair in zip(halves[0][SAVED:], halves[1][SAVED + 2 :], strict=False)]
    shares = [halves[0][SAVED:10], halves[1][SAVED + 2 : 10]]
    found = compare_resumed("SIGTERM", RUN, RUN[:1], [mixed], SAVED, shares=shares)
    assert found.level == "fault"
    assert "different steps: process 0 at step 7, process 1 at step 9 (the checkpoint is of step 7)" in found.sentence


def test_another_order_is_not_reported_as_different_steps() -> None:
    run = epochs(1, batch=2)
    again = [run[1][7:][::-1], run[2]]
    shares = [[batch[rank : rank + 1] for batch in again[0]] for rank in range(2)]  # each sample is in some batch
    found = compare_resumed("SIGTERM", run, run[:1], again, 17, shares=shares)
    assert (found.level, "in another order" in found.sentence) == ("warning", True)


def process(*counts: dict[str, object]) -> ProcessDraws:
    return ProcessDraws(0.0, [], [{"kind": "counts", "handed": each["steps"], **each} for each in counts])


def test_the_step_of_a_checkpoint_is_found_by_its_time() -> None:
    batches = TrainedBatches([], per_step=2, ahead=0)
    first = process({"steps": 3, "changed": {"last.pt": 100}}, {"steps": 6, "changed": {"last.pt": 200}})
    other = process({"steps": 8, "changed": {"last.pt": 200}})
    assert batches.trained_at([first, other], Path("last.pt"), 100) == 6
    assert batches.trained_at([first, other], Path("last.pt"), 200) == 12  # the process that wrote it saw it first
    assert batches.trained_at([other, first], Path("last.pt"), 200) == 12
    with pytest.raises(ValueError, match=r"last.pt was written at a time that is not known; try another --stop"):
        batches.trained_at([first, other], Path("last.pt"), 300)
    # A handler may save after the last logged change, since it ends with os._exit or runs again. Then the counts at the
    # stop are used.
    at_stop = [{"steps": 6, "changed": {"last.pt": 200}}, {"steps": 7, "changed": {}}]
    assert batches.trained_at([process(*at_stop), other], Path("last.pt"), 300) == 14
    again = process(*at_stop, {"steps": 7, "changed": {"last.pt": 250}})
    assert batches.trained_at([again, other], Path("last.pt"), 300) == 14


@pytest.mark.parametrize("command", ["", "  ", "python 'train.py"])
def test_an_invalid_command_is_refused_before_the_runs(command: str) -> None:
    with pytest.raises(ValueError, match="--resume should be a command, but got"):
        ResumeTest(["train.py"], command)
