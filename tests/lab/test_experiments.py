"""The experiments: every row and curve of the paper by name, and the scales."""

from __future__ import annotations

import pytest

from replenish.lab import RunConfig
from replenish.lab.experiments import EXPERIMENTS, SCALES, configs, decisive_configs, find
from replenish.lab.experiments.costs import counted_networks, known_data
from replenish.lab.models import cost

TABLE2_ROWS = {
    *("nin", "all-cnn", "dsn", "fitnet", "highway", "elu", "resnet-110", "resnet-1202"),
    *("resnet-110-stochastic-depth", "resnet-1202-stochastic-depth", "shake-shake-26-2x96d", "shake-shake-29-2x4x64d"),
    *("densenet-bc-190-40", "densenet-bc-190-40-srs", "wide-resnet-40-4", "wide-resnet-16-8", "wide-resnet-28-10"),
    *("wide-resnet-28-10-srs", "wrn-28-10", "wrn-28-10-srs", "wrn-70-10", "wrn-70-10-srs"),
}
TABLE3_ROWS = ("wrn-b128-60-120-160", "wrn-b64-60-120-160", "wrn-b64-120-150-175", "wrn-srs-b64-120-150-175")
CLASSES = {"cifar10": 10, "cifar100": 100, "digits": 10}


def test_table_3_equals_the_papers() -> None:
    rows = [EXPERIMENTS[f"table3/{row}"] for row in TABLE3_ROWS]
    assert [(row.order, row.batch_size, row.decays, row.decay_factor) for row in rows] == [
        ("reshuffling", 128, (60, 120, 160), 0.2),
        ("reshuffling", 64, (60, 120, 160), 0.2),
        ("reshuffling", 64, (120, 150, 175), 0.1),
        ("srs", 64, (120, 150, 175), 0.1),
    ]
    for row in rows:
        same = ("batch_size", "order", "decay_epochs", "decay_factor")
        assert set(row.differences(RunConfig())) <= set(same)
    assert rows[3] == RunConfig() == EXPERIMENTS["table2/wrn-28-10-srs/cifar100"]
    assert rows[2] == EXPERIMENTS["table2/wrn-28-10/cifar100"]


def test_table_2_trains_every_row_with_the_papers_recipe() -> None:
    for row in TABLE2_ROWS:
        for dataset in CLASSES.keys() - {"digits"}:
            config = EXPERIMENTS[f"table2/{row}/{dataset}"]
            model, srs = row.removesuffix("-srs"), row.endswith("-srs")
            expected = {"model": model, "order": "srs" if srs else "reshuffling", "dataset": dataset}
            found = {name: value for name, (_, value) in RunConfig().differences(config).items()}
            # Without batch normalization 0.1 overflows.
            if model in ("nin", "all-cnn", "dsn", "fitnet", "highway", "elu"):
                assert found.pop("learning_rate") == 0.01
            assert {name: getattr(config, name) for name in expected} == expected
            assert set(found) <= set(expected)


@pytest.mark.parametrize("scale", SCALES)
def test_figure_2_shows_rows_2_to_4_of_table_3(scale: str) -> None:
    rows = list(find("table3", scale).values())
    assert list(find("figure2", scale).values()) == rows[1:4]
    assert find("figure3/srs-120-150-175", scale) == {"figure3/srs-120-150-175": rows[3]}


@pytest.mark.parametrize("scale", SCALES)
def test_a_scale_leaves_the_comparison_as_it_is(scale: str) -> None:
    for name, config in configs(scale).items():
        full = EXPERIMENTS[name]
        for field in ("order", "batch_size", "learning_rate", "decay_factor", "momentum", "weight_decay", "seed"):
            assert getattr(config, field) == getattr(full, field)
        assert [decay / config.epochs for decay in config.decays] == pytest.approx(
            [decay / 200 for decay in full.decays]
        )
    # Names share a run at every scale if they share one in the paper. Only the scale digits also merges datasets.
    slugs = {name: config.slug for name, config in configs(scale).items()}
    for name, config in configs("full").items():
        for other, second in configs("full").items():
            if config == second:
                assert slugs[name] == slugs[other]
            elif scale != "digits" or config.dataset == second.dataset:
                assert slugs[name] != slugs[other]


def test_find_by_name_and_by_group() -> None:
    assert list(find("table3")) == [f"table3/{row}" for row in TABLE3_ROWS]
    assert list(find("table2/wrn-28-10")) == ["table2/wrn-28-10/cifar10", "table2/wrn-28-10/cifar100"]  # not -srs
    assert list(find("table3/wrn-b64-60-120-160/")) == ["table3/wrn-b64-60-120-160"]
    assert len(find("table2")) == 2 * len(TABLE2_ROWS)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("tabel3", "table3"), ("figure4", "figure3"), ("table3/wrn-srs-b65", "table3/wrn-srs-b64-120-150-175")],
)
def test_an_unknown_name_suggests_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(
        ValueError, match=f"there is no experiment named '{name}'; did you mean .*{nearest}.*"
    ) as caught:
        find(name)
    assert "`replenish list` shows them all" in str(caught.value)


@pytest.mark.parametrize("name", ["", "/", "qqqqqq", "tables"])
def test_a_name_without_a_suggestion(name: str) -> None:
    with pytest.raises(ValueError, match="there is no experiment named"):
        find(name)


def test_an_unknown_scale() -> None:
    with pytest.raises(ValueError, match="scale should be one of full, mini, digits, but got 'huge'"):
        configs("huge")


@pytest.mark.slow
def test_the_recorded_costs_of_networks_are_right() -> None:
    """`network_costs.json` has the costs of every network of every experiment, as `cost` counts them."""
    wanted = {
        (config.model, data.channels, data.classes, data.image_size)
        for scale in SCALES
        for config in {**configs(scale), **decisive_configs(scale)}.values()
        for data in [known_data(config)]
    }
    counted = counted_networks()
    assert set(counted) == wanted
    for key, (parameters, multiply_adds) in counted.items():
        found = cost(*key)
        assert (found.parameters, found.multiply_adds) == (parameters, multiply_adds), key
        assert parameters > 10_000
        assert key[0] != "wrn-28-10" or round(parameters / 1e6, 1) == 36.5
