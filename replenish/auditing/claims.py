"""What a loader claims to do: the order that its sampler promises, as far as its type and public attributes say."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

from replenish.auditing.reading import sampler_chain
from replenish.orders import IndependentDraws, RandomReshuffling
from replenish.orders.building import order_from_config
from replenish.orders.epochs import EpochOrder, ShuffleOnce
from replenish.orders.protocol import Order
from replenish.orders.repeated_augmentation import RepeatedAugmentation
from replenish.theory.noise_laws import NoiseLaw
from replenish.theory.order_laws import NoLawError, noise_law


@dataclass(frozen=True)
class Claim:
    """What the types of a loader and its sampler promise: plain values, which a recorder can write as JSON."""

    name: str  # the sampler's class
    # Whether samples may come more than once in an epoch, and others not at all; None if nothing says.
    repeats: bool | None = None
    fixed: bool | None = None  # whether all epochs are meant to be alike; None if nothing says
    set_epoch: str | None = None  # the class whose `set_epoch` must be called before each epoch, or None
    replicas: int = 1  # among how many processes the samples are divided
    workers: int = 0  # how many workers read for it
    chosen: bool = False  # whether the sampler was given a list of the samples to draw
    weighted: bool = False  # whether it draws by weights
    copies: int = 1  # how often a sample is meant to be in its batch
    is_order: bool = False  # whether it is an order of this library, so that what it does is intended
    config: dict[str, Any] | None = None  # names the order whose noise law should hold

    def law(self) -> NoiseLaw | None:
        """Return the law of the noise of the claimed order, or None where it is not known."""
        if self.config is None:
            return None
        try:
            return noise_law(order_from_config(self.config))
        except (NoLawError, ValueError):  # it has no law, or its config names arrays that are not at hand
            return None


def claim_of(source: Any, num_samples: int, batch_size: int) -> Claim:
    """Return what an order, a loader or a sampler claims."""
    if isinstance(source, Order):
        return _claim_of_order(source)
    chain = sampler_chain(source)
    inner, dataset = chain[-1], getattr(source, "dataset", None)
    workers, replicas = int(getattr(source, "num_workers", 0) or 0), int(getattr(inner, "num_replicas", 1) or 1)
    for sampler in chain:
        if isinstance(getattr(sampler, "order", None), Order):
            replicas = getattr(sampler, "num_replicas", 1)
            claim = replace(_claim_of_order(sampler.order), workers=workers)
            return claim if replicas == 1 else replace(claim, replicas=replicas, config=None)
    owner = next((part for part in (*chain, dataset, source) if hasattr(part, "set_epoch")), None)
    claim = Claim(
        name=type(inner).__name__,
        set_epoch=None if owner is None else type(owner).__name__,
        replicas=replicas,
        workers=workers,
        chosen=hasattr(inner, "indices"),
    )
    if "torch" not in sys.modules:
        return claim
    from replenish.torch.describe import describe_sampler

    found = describe_sampler(chain[0])
    kind = found.kind
    repeats = {"sequential": False, "shuffling": False, "subset": False, "replacement": True}.get(kind)
    if kind == "weighted":
        repeats = bool(found.sampler.replacement)
    order: Order | None = None
    whole = num_samples > 1 and kind in ("shuffling", "replacement") and len(found.sampler) == num_samples
    if whole and kind == "shuffling":
        drop_last = found.drop_last and batch_size <= num_samples
        order = RandomReshuffling(num_samples, batch_size, drop_last=drop_last)
    elif whole and num_samples % batch_size == 0:
        order = IndependentDraws(num_samples, batch_size)
    return replace(
        claim,
        repeats=repeats,
        fixed=True if kind == "sequential" else None,
        weighted=kind == "weighted",
        config=None if order is None else dict(order.config()),
    )


def _claim_of_order(order: Order) -> Claim:
    copies = order.repeats if isinstance(order, RepeatedAugmentation) else 1
    return Claim(
        type(order).__name__,
        repeats=copies > 1 or not isinstance(order, EpochOrder),
        fixed=isinstance(order, ShuffleOnce),
        copies=copies,
        is_order=True,
        config=dict(order.config()) if order.num_samples > 1 else None,
    )
