"""A run's config: the recipe, its schedule, and the names of folders."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from replenish.lab import Hardware, RunConfig
from replenish.lab.config import ORDER_NAMES, PRECISIONS
from replenish.orders import ORDERS

OTHER_VALUES: dict[str, Any] = {
    "dataset": "cifar10",
    "images_per_class": 100,
    "image_size": 16,
    "pad": 2,
    "flip": False,
    "model": "wrn-28-9",
    "order": "reshuffling",
    "pool_size": 10,
    "sequence": "identity",
    "batch_size": 128,
    "epochs": 201,
    "learning_rate": 0.2,
    "decay_epochs": (120.0, 150.0),
    "decay_factor": 0.2,
    "momentum": 0.8,
    "weight_decay": 0.0,
    "precision": "bf16-mixed",
    "drop_last": False,
    "order_number": 1,
    "test_every": 5,
    "clean_every": 5,
    "held_out": True,
    "optimizer": "adamw",
    "nesterov": True,
    "schedule": "constant",
    "warm_up_epochs": 5.0,
    "label_smoothing": 0.1,
    "dropout": 0.0,
    "alternating_flip": True,
}


@st.composite
def configs(draw: st.DrawFn) -> RunConfig:
    order = draw(st.sampled_from([name for name in ORDER_NAMES if not ORDERS[name].batch_sizes_vary]))
    epochs = draw(st.integers(1, 400))
    srs = {"pool_size": st.none() | st.integers(1, 99), "sequence": st.sampled_from(("shuffled", "identity"))}
    decays = st.lists(st.floats(0.01, epochs - 0.01), unique=True, max_size=4).map(lambda found: tuple(sorted(found)))
    positive = st.floats(1e-6, 10)
    return RunConfig(
        dataset=draw(st.sampled_from(("digits", "cifar10", "a/b.npz", "a/c/b.npz", "Ω/ü")) | st.text(min_size=1)),
        images_per_class=draw(st.none() | st.integers(1, 99)),
        image_size=draw(st.none() | st.integers(1, 99)),
        pad=draw(st.integers(0, 8)),
        flip=draw(st.booleans()),
        model=draw(st.sampled_from(("wrn-10-1", "wrn-10-2", "mine")) | st.text(min_size=1, max_size=300)),
        order=order,
        **({name: draw(values) for name, values in srs.items()} if order == "srs" else {}),
        batch_size=draw(st.integers(1, 512)),
        epochs=epochs,
        learning_rate=draw(positive),
        decay_epochs=draw(st.none() | decays),
        decay_factor=draw(positive),
        momentum=draw(st.floats(0, 1, exclude_max=True)),
        weight_decay=draw(st.just(0.0) | positive),
        precision=draw(st.sampled_from(PRECISIONS)),
        seed=draw(st.integers(0, 2**63 - 1)),
        drop_last=draw(st.booleans()),
        order_number=draw(st.integers(0, 3)),
        clean_every=draw(st.none() | st.integers(1, 9)),
    )


def test_the_default_is_the_papers_recipe() -> None:
    assert RunConfig().to_dict() == {
        "dataset": "cifar100",
        "images_per_class": None,
        "image_size": None,
        "pad": 4,
        "flip": True,
        "model": "wrn-28-10",
        "order": "srs",
        "pool_size": None,
        "sequence": "shuffled",
        "batch_size": 64,
        "epochs": 200,
        "learning_rate": 0.1,
        "decay_epochs": [120.0, 150.0, 175.0],
        "decay_factor": 0.1,
        "momentum": 0.9,
        "weight_decay": 0.0005,
        "precision": "32-true",
        "seed": 0,
        "drop_last": True,
        "version": "0.1.0",
    }


def test_schedules_scale_with_the_total() -> None:
    assert RunConfig(epochs=40).decays == (24, 30, 35)
    assert RunConfig().for_epochs(40) == RunConfig(epochs=40)
    assert RunConfig(decay_epochs=(60, 120, 160)).for_epochs(40).decays == (12, 24, 32)
    assert RunConfig(epochs=40).for_epochs(200) == RunConfig()
    assert RunConfig(decay_epochs=()).for_epochs(3).decays == ()
    assert RunConfig(epochs=1).decays == (0.6, 0.75, 0.875)


@pytest.mark.parametrize(
    ("config", "steps_per_epoch", "decay_steps"),
    [
        (RunConfig(), 782, (93_840, 117_300, 136_850)),
        (RunConfig(epochs=40), 23, (552, 690, 805)),
        (RunConfig(epochs=1), 23, (14, 17, 20)),  # 13.8, 17.25 and 20.125 steps, to the nearest
        (RunConfig(epochs=3, decay_epochs=()), 5, ()),
    ],
)
def test_the_learning_rate_at_every_step(config: RunConfig, steps_per_epoch: int, decay_steps: tuple[int, ...]) -> None:
    steps = config.epochs * steps_per_epoch
    rates = np.array([config.learning_rate_at(step, steps_per_epoch) for step in range(steps)])
    expected = np.full(steps, 0.1)
    for decay in decay_steps:
        expected[decay:] *= 0.1
    assert np.flatnonzero(np.diff(rates)).tolist() == [decay - 1 for decay in decay_steps]
    np.testing.assert_allclose(rates, expected, rtol=1e-12)


def test_other_schedules_and_the_warm_up() -> None:
    def rates(**changes: Any) -> list[float]:
        config = RunConfig(epochs=4, learning_rate=1.0, **changes)
        return [config.learning_rate_at(step, 2) for step in range(8)]

    assert rates(schedule="constant") == [1.0] * 8
    cosine = [(1 + np.cos(np.pi * step / 8)) / 2 for step in range(8)]
    np.testing.assert_allclose(rates(schedule="cosine"), cosine, rtol=1e-12)
    assert rates(schedule="constant", warm_up_epochs=1.5) == [0.25, 0.5, 0.75, *[1.0] * 5]
    warm = rates(schedule="cosine", warm_up_epochs=1)
    np.testing.assert_allclose(
        warm, [1 / 3, 2 / 3, *[(1 + np.cos(np.pi * step / 6)) / 2 for step in range(6)]], rtol=1e-12
    )
    with pytest.raises(ValueError, match="decay_epochs should be left out with the schedule 'cosine'"):
        RunConfig(schedule="cosine", decay_epochs=(100,))


@given(configs())
def test_a_config_survives_json(drawn: RunConfig) -> None:
    again = RunConfig.from_dict(json.loads(json.dumps(drawn.to_dict())))
    assert again == drawn
    assert again.slug == drawn.slug


def test_a_missing_field_of_the_first_release_is_refused() -> None:
    values = RunConfig().to_dict()
    del values["seed"]
    with pytest.raises(ValueError, match="should have every field of the first release, but lacks seed$"):
        RunConfig.from_dict(values)


def test_an_unknown_field_is_refused_with_the_release_that_is_needed() -> None:
    values = {**RunConfig().to_dict(), "warm_up": 5, "version": "7.3.0"}
    with pytest.raises(ValueError, match=r"but got warm_up: it needs replenish 7\.3\.0 or later$"):
        RunConfig.from_dict(values)


def test_a_record_leaves_out_added_fields_with_their_earlier_values() -> None:
    plain = RunConfig(drop_last=False).to_dict()
    assert plain["version"] == "0.1.0.dev0"
    assert not {"drop_last", "order_number", "test_every"} & set(plain)
    assert RunConfig.from_dict(plain) == RunConfig(drop_last=False)


def test_every_field_has_another_value_below() -> None:
    assert {*OTHER_VALUES, "seed"} == {field.name for field in dataclasses.fields(RunConfig)}


@pytest.mark.parametrize(("name", "value"), OTHER_VALUES.items())
def test_a_change_of_any_field_is_another_slug_and_is_named(name: str, value: Any) -> None:
    before, after = RunConfig(), RunConfig(**{name: value})
    assert before.slug != after.slug
    also = {"decay_epochs"} if name in ("schedule", "epochs") else set()  # it follows from these
    assert before.differences(after).keys() - also == {name}
    assert before.differences(after)[name] == (getattr(before, name), value)


@given(configs(), configs())
@example(RunConfig(dataset="a/data.npz"), RunConfig(dataset="b/data.npz"))
@example(RunConfig(dataset="a b"), RunConfig(dataset="a_b"))
@example(RunConfig(model="m" * 300), RunConfig(model="n" + "m" * 299))
@example(RunConfig(learning_rate=0.1), RunConfig(learning_rate=0.1 + 1e-17))
@example(RunConfig(learning_rate=0.1), RunConfig(learning_rate=np.nextafter(0.1, 1)))
@example(RunConfig(decay_epochs=(60, 120)), RunConfig(decay_epochs=(60.0, 120.0)))
@example(RunConfig(momentum=0.0), RunConfig(momentum=-0.0))
def test_equal_configs_share_a_slug_and_different_ones_never_do(one: RunConfig, two: RunConfig) -> None:
    assert (one.slug == two.slug) == (one.with_seed(0) == two.with_seed(0))


@given(configs())
def test_a_slug_is_the_name_of_a_folder(config: RunConfig) -> None:
    slug = config.slug
    assert slug.isascii()
    assert 0 < len(slug) <= 180
    assert not set(slug) & set("/\\: \t\n\0*?\"'")
    assert slug.strip(".")
    assert slug == config.with_seed(7).slug
    assert slug.endswith(f"-of{config.epochs}-{slug[-8:]}")


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("dataset", "", TypeError),
        ("model", 3, TypeError),
        ("images_per_class", 0, ValueError),
        ("pad", -1, ValueError),
        ("flip", 1, TypeError),
        ("order", "random", ValueError),
        ("sequence", "sorted", ValueError),
        ("batch_size", 0, ValueError),
        ("epochs", 1.5, TypeError),
        ("learning_rate", 0.0, ValueError),
        ("learning_rate", float("nan"), ValueError),
        ("learning_rate", "0.1", TypeError),
        pytest.param("learning_rate", 10**400, ValueError, id="learning_rate-huge"),
        ("decay_epochs", (150, 120), ValueError),
        ("decay_epochs", (0, 120), ValueError),
        ("decay_epochs", (120, 200), ValueError),
        ("decay_epochs", ("120",), TypeError),
        ("decay_epochs", 120, TypeError),
        ("momentum", -0.1, ValueError),
        ("momentum", 1.0, ValueError),
        ("precision", "8", ValueError),
        ("seed", -1, ValueError),
        ("seed", 2**63, ValueError),
        ("optimizer", "lion", ValueError),
        ("dropout", 1.0, ValueError),
        ("warm_up_epochs", 200, ValueError),
    ],
)
def test_bad_values_are_named(name: str, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match=rf"^{name} should .*, but got ") as caught:
        RunConfig(**{name: value})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", [{"pool_size": 10}, {"sequence": "identity"}])
def test_only_srs_has_a_pool_and_a_sequence(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(change))} should not be given for the order 'reshuffling'"):
        RunConfig(order="reshuffling", **change)


@pytest.mark.parametrize(
    ("name", "value"),
    [("accelerator", "tpu"), ("devices", 0), ("num_nodes", 0), ("threads", -1), ("compile", 1)],
)
def test_bad_hardware_is_named(name: str, value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match=rf"^{name} should .*, but got {value!r}"):
        Hardware(**{name: value})


def test_an_order_that_needs_labels_gets_them_from_the_data():
    order = RunConfig(order="stratified", batch_size=4).build_order(8, np.array([0, 1] * 4))
    assert [sorted((batch % 2).tolist()) for batch in order.batches(0, 3)] == [[0, 0, 1, 1]] * 3
    with pytest.raises(ValueError, match="labels should be given for the order 'stratified'"):
        RunConfig(order="stratified").build_order(100)


def test_batches_of_random_sizes_are_refused():
    with pytest.raises(ValueError, match="order should have batches of one size in the lab.*'poisson'"):
        RunConfig(order="poisson")
