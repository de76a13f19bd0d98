"""Orders built again from what they say of themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest
from contracts import CASES, FACTS

from replenish import SequencedReplacement, state, weighted_sequence
from replenish.orders.building import order_from_config
from replenish.orders.rebatched import FittedOrder

SHARDS = {"block-shuffle-staggered": [40, 7, 30, 20], "jitter-narrow": [40, 7, 30, 20]}


def named_by_checksum(name: str) -> dict[str, Any]:
    """Return the arrays of a case that its config has the checksums of."""
    own: dict[str, Any] = {"sequence": weighted_sequence(range(12), 55), "shard_size": SHARDS.get(name)}
    own |= {"weights": [0.1, 0, 0.7, 0.15, 0.05] if "stratified" in name else FACTS["weights"]}
    config = CASES[name]().config()
    return {
        field: own.get(field, FACTS.get(field)) for field, value in config.items() if str(value).startswith("sha256:")
    }


@pytest.mark.parametrize("name", list(CASES))
def test_every_order_is_built_again_from_its_state(name: str) -> None:
    order = CASES[name](seed=5)
    saved = json.loads(json.dumps(state.save(order, 40)))
    assert order_from_config(saved, **named_by_checksum(name)) == order


def test_an_order_fitted_to_a_loader() -> None:
    order = FittedOrder(SequencedReplacement(10, 4), steps=3, last_batch_size=2)
    assert order_from_config(order.config()) == order


def test_what_is_missing_or_wrong_is_named() -> None:
    config = CASES["stratified"]().config()
    with pytest.raises(ValueError, match="labels should be given too"):
        order_from_config(config)
    with pytest.raises(ValueError, match="labels is 'sha256:.*' in the config, but what it names has 'sha256:"):
        order_from_config(config, labels=[0, 1] * 48 + [0])
    with pytest.raises(ValueError, match="lengths should not be given for Stratified"):
        order_from_config(config, lengths=FACTS["lengths"])
    with pytest.raises(ValueError, match="the config has 'Own'"):
        order_from_config({"order": "Own"})
    with pytest.raises(ValueError, match="batch_size should be in the config"):
        order_from_config({"order": "FlipFlop", "num_samples": 4})
    with pytest.raises(ValueError, match="stream is 'v2' in the config"):
        order_from_config({**CASES["reshuffling"]().config(), "stream": "v2"})
