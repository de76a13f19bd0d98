"""`compare_trainings` with the user's own training function."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.text import Text

from replenish import Order
from replenish.lab import compare_trainings
from replenish.lab.comparing.page import draw_card
from replenish.lab.comparing.question import parse_duration


def made_up(effect: float, spread: float = 1.0) -> Any:
    """Return a training in which SRS is better by `effect`, with different noise for every order and seed."""

    def train(order: Order, seed: int) -> float:
        is_srs = order.config()["order"] == "SequencedReplacement"
        noise = np.random.default_rng([seed, is_srs]).normal(0, spread)
        return 30.0 + noise - effect * is_srs

    return train


def test_a_real_training_gets_each_order_with_the_seed() -> None:
    """Linear regression by SGD: reshuffling ends closer to the least-squares solution than independent draws."""
    random = np.random.default_rng(0)
    x = random.normal(size=(64, 3))
    y = x @ np.array([1.0, -2.0, 0.5]) + random.normal(size=64)
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    seen: list[tuple[str, int, int]] = []

    def train(order: Order, seed: int) -> dict[str, float]:
        seen.append((str(order.config()["order"]), int(order.config()["seed"]), seed))
        weights = np.zeros(3)
        for batch in order.batches(0, 60 * order.steps_per_epoch):
            weights -= 0.05 * x[batch].T @ (x[batch] @ weights - y[batch]) / len(batch)
        return {"distance": float(np.sum((weights - best) ** 2)), "steps": 60}

    answer = compare_trainings(train, 64, 8, orders=("independent", "reshuffling"), seeds=8, metric="distance")
    assert seen[:4] == [
        ("IndependentDraws", 0, 0),
        ("RandomReshuffling", 0, 0),
        ("IndependentDraws", 1, 1),
        ("RandomReshuffling", 1, 1),
    ]
    (verdict,) = answer.verdicts
    assert verdict.outcome == "better"
    assert answer.lines()[0] == verdict.sentence
    assert answer.lines()[0].startswith("reshuffling is better than independent: ")
    assert answer.lines()[1].startswith("independent  mean ")
    plain = answer.to_dict()
    assert plain["verdicts"][0]["outcome"] == "better"
    assert len(plain["values"]["reshuffling"]) == 8


def test_until_decided_stops_at_a_verdict() -> None:
    answer = compare_trainings(made_up(4.0), 1000, 50, until_decided=True, max_seeds=40)
    assert answer.verdicts[0].outcome == "better"
    seeds = len(answer.values["srs"])
    assert 3 <= seeds <= 12
    before = {order: {s: v for s, v in by.items() if s < seeds - 1} for order, by in answer.values.items()}
    assert answer.question.verdicts(before)[0].outcome == "undecided"  # the last seed was needed


def test_a_budget_ends_the_comparison(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr("replenish.lab.comparing.question.monotonic", lambda: now[0])

    def slow(order: Order, seed: int) -> float:
        now[0] += 10.0
        return float(seed)

    answer = compare_trainings(slow, 1000, 50, seeds=1000, budget=70)
    assert sorted(answer.values["srs"]) == [0, 1, 2]  # 20 s per seed: a fourth would exceed the budget
    assert answer.stopped == "the budget of 70 s allows for no more than 3 seeds"
    assert "budget" in answer.lines()[1]
    with pytest.raises(ValueError, match=r"budget should allow for one run of each order, but these took 20 s"):
        compare_trainings(slow, 1000, 50, seeds=1000, budget=19)


def test_other_numbers_are_printed_and_the_page_has_the_verdict(tmp_path: Path) -> None:
    def train(order: Order, seed: int) -> dict[str, float]:
        return {"loss": made_up(4.0)(order, seed), "time": 3.0, "odd": math.nan}

    page = tmp_path / "answer.html"
    answer = compare_trainings(train, 1000, 50, seeds=6, metric="loss", margin=0.1, page=page)
    assert answer.besides == {"time": {order: dict.fromkeys(range(6), 3.0) for order in ("reshuffling", "srs")}}
    assert "time: reshuffling 3, srs 3" in answer.lines()
    text = page.read_text()
    assert answer.verdicts[0].outcome == "better"
    assert "srs is better than reshuffling" in text
    assert text.count('class="join"') == 6  # a line for each pair
    assert 'class="chart forest"' in text
    with pytest.raises(ValueError, match="page should be the name of a .html file"):
        compare_trainings(train, 1000, 50, metric="loss", page=tmp_path / "answer.txt")


def test_warnings_come_first() -> None:
    answer = compare_trainings(lambda order, seed: 0.0, 1000, 50, seeds=3)
    assert answer.warnings == (
        "all seeds gave the same value with reshuffling and with srs: the training may not use its seed and its order, "
        "or the metric may be saturated or too coarse",
        "srs and reshuffling gave the same value at every seed: the metric may be saturated or too coarse",
    )
    assert str(answer).startswith("Warning: all seeds gave the same value with reshuffling and with srs")
    assert answer.advice == ""  # more seeds of a constant decide nothing


@pytest.mark.parametrize(
    ("name", "higher_is_better", "warning"),
    [
        ("val_acc", False, "a smaller val_acc was taken as better; if that is wrong, ask again with higher_is_better"),
        ("loss", True, "a larger loss was taken as better; if that is wrong, ask again without higher_is_better"),
        ("val_acc", True, None),
        ("loss", False, None),
        ("space", False, None),
        ("recall loss", False, None),
    ],
)
def test_a_direction_that_contradicts_the_metrics_name(name: str, higher_is_better: bool, warning: str | None) -> None:
    answer = compare_trainings(
        lambda order, seed: {name: seed, "other": 0}, 100, 10, metric=name, higher_is_better=higher_is_better
    )
    assert (warning in answer.warnings) == (warning is not None)


@pytest.mark.parametrize(
    ("train", "options", "message"),
    [
        (
            lambda order, seed: float("nan"),
            {},
            "nothing to compare: 10 trainings diverged .* reshuffling with seeds 0, 1",
        ),
        (lambda order, seed: "good", {}, "should be a number, but got 'good'"),
        (lambda order, seed: {"a": 1.0, "b": 2.0}, {}, "metric should say which of a, b decides"),
        (lambda order, seed: {"a": 1.0, "b": 2.0}, {"metric": "c"}, "metric should be one of a, b, but got 'c'"),
        (lambda order, seed: 1.0, {"metric": "c"}, "metric should be None"),
        (made_up(0), {"orders": ("srs",)}, "two or more different orders"),
        (made_up(0), {"orders": ("srs", "sorted")}, "order should be one of"),
        (made_up(0), {"margin": -1}, "margin should be positive and finite"),
        (made_up(0), {"seeds": 0}, "seeds should be at least 1"),
        (made_up(0), {"seeds": 2.5}, "seeds should be an int, but got 2.5"),
        (made_up(0), {"until_decided": True, "seeds": 3}, "seeds should be left out with until_decided"),
        (made_up(0), {"max_seeds": 9}, "max_seeds should be left out without until_decided"),
        (made_up(0), {"possible": (0, 1)}, "possible should include every value of the metric, but got 0 to 1 and the"),
        (made_up(0), {"possible": (100, 0)}, "possible should be the least and the greatest value"),
        (made_up(0), {"possible": 100}, "possible should be the least and the greatest value, but got 100"),
        (made_up(0), {"budget": math.nan}, "budget should be positive and finite, but got nan"),
        (made_up(0), {"budget": -3}, "budget should be positive and finite, but got -3"),
        (made_up(0), {"until_decided": True, "max_seeds": 2}, "max_seeds should be at least 3"),
        (made_up(0), {"batch_size": 2000}, "batch_size should be at most pool_size"),
    ],
)
def test_wrong_arguments(train: Any, options: dict[str, Any], message: str) -> None:
    sizes = {"num_samples": 1000, "batch_size": 50, **options}
    with pytest.raises((TypeError, ValueError), match=message):
        compare_trainings(train, **sizes)


@pytest.mark.parametrize("text", ["", "2", "h2", "2h3", "0s", "two hours"])
def test_a_budget_is_a_time(text: str) -> None:
    with pytest.raises(ValueError, match="budget should be"):
        parse_duration(text)


def test_every_order_gives_as_many_samples_in_batches_of_one_size() -> None:
    seen: dict[str, list[int]] = {}

    def train(order: Order, seed: int) -> float:
        seen[repr(order)] = [len(batch) for batch in order.batches(0, 3 * order.steps_per_epoch)]
        return float(seed)

    compare_trainings(train, 130, 64, orders=("reshuffling", "srs", "shuffle-once", "independent"), seeds=1)
    assert list(seen.values()) == [[64] * 6] * 4


def test_a_training_that_fails_or_diverges_does_not_lose_the_others(tmp_path: Path) -> None:
    def train(order: Order, seed: int) -> float:
        is_srs = order.config()["order"] == "SequencedReplacement"
        if seed == 3 and is_srs:
            raise RuntimeError("out of memory")
        return math.nan if seed == 1 and not is_srs else made_up(0.0)(order, seed)

    answer = compare_trainings(train, 1000, 50, seeds=6, page=tmp_path / "answer.html")
    assert answer.verdicts[0].difference.seeds == (0, 2, 4, 5)
    diverged, failed = answer.warnings
    assert diverged.startswith("1 training diverged and is not in the numbers: reshuffling with seed 1;")
    assert failed == ("the training of srs with seed 3 failed and is not in the numbers: RuntimeError: out of memory")
    card = (tmp_path / "answer.png").read_bytes()
    assert card.startswith(b"\x89PNG")
    assert tuple(int.from_bytes(card[at : at + 4], "big") for at in (16, 20)) == (1200, 630)


@pytest.mark.parametrize(
    "orders", [("reshuffling", "srs"), ("block-reshuffling", "srs", "shuffle-buffer", "paired-reversal", "replacement")]
)
def test_the_card_shows_all_text(orders: tuple[str, ...]) -> None:
    answer = compare_trainings(made_up(0.0, 1e-4), 1000, 50, seeds=8, orders=orders)
    canvas = draw_card(answer, "A training function of your own")
    canvas.draw_without_rendering()
    for text in canvas.findobj(Text):
        if text.get_text() and text.get_visible():
            box = text.get_window_extent()
            assert box.x0 >= 0 <= box.y0, text
            assert box.x1 <= 1200, text
            assert box.y1 <= 630, text


def test_a_training_that_always_fails_ends_the_comparison() -> None:
    def broken(order: Order, seed: int) -> float:
        raise KeyError("weights")

    with pytest.raises(RuntimeError, match="the training of reshuffling with seed 0 failed: KeyError: 'weights'"):
        compare_trainings(broken, 1000, 50, seeds=3)


def test_an_interrupt_leaves_a_page_of_the_ended_trainings(tmp_path: Path) -> None:
    def train(order: Order, seed: int) -> float:
        if seed == 2:
            raise KeyboardInterrupt
        return float(seed)

    with pytest.raises(KeyboardInterrupt):
        compare_trainings(train, 1000, 50, seeds=6, page=tmp_path / "answer.html")
    assert "stopped: it was interrupted" in (tmp_path / "answer.html").read_text()


def test_an_undecided_answer_has_advice_and_assumptions() -> None:
    answer = compare_trainings(made_up(0.0), 1000, 50, seeds=10)
    assert answer.verdicts[0].outcome == "undecided"
    assert "at every look, where M is the largest difference that does not matter:" in answer.advice
    assert answer.next_command == "until_decided=True, margin=M"
    assert "strikes 26 % of an order's runs still leaves 10 runs without one" in answer.assumption
    (differences,) = [line for line in answer.lines() if line.startswith("srs minus reshuffling by seed: ")]
    assert differences.count(",") == 9
