"""What a loader claims to do: the order that its sampler stands for, as far as its type says."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from replenish.orders import IndependentDraws, RandomReshuffling
from replenish.orders.epochs import EpochOrder
from replenish.orders.protocol import Order
from replenish.orders.repeated_augmentation import RepeatedAugmentation
from replenish.orders.shuffle_once import ShuffleOnce
from replenish.theory.noise_laws import NoiseLaw
from replenish.theory.order_laws import NoLawError, noise_law


@dataclass(frozen=True)
class Claim:
    """What the types of a loader and its sampler promise."""

    name: str  # what to call it
    # Whether samples may come more than once in an epoch, and others not at all; None if nothing says.
    repeats: bool | None = None
    fixed: bool | None = None  # whether all epochs are meant to be alike; None if nothing says
    set_epoch: str | None = None  # who has a `set_epoch` that must be called before each epoch, or None
    replicas: int = 1  # among how many processes the samples are divided
    workers: int = 0  # how many workers read for it
    chosen: bool = False  # whether the sampler was given a list of the samples to draw
    copies: int = 1  # how often a sample is meant to be in its batch
    is_order: bool = False  # whether it is an order of this library, so that what it does is meant
    law: NoiseLaw | None = None  # the law of its noise, where it is known


def claim_of(source: Any, num_samples: int, batch_size: int) -> Claim:
    """Return what an order, a loader or a sampler claims."""
    if isinstance(source, Order):
        return _claim_of_order(source)
    batch_sampler = getattr(source, "batch_sampler", None)
    outer = source if batch_sampler is None else batch_sampler
    inner = getattr(outer, "sampler", None) or outer
    for sampler in (outer, inner):
        if isinstance(getattr(sampler, "order", None), Order):
            replicas = getattr(sampler, "num_replicas", 1)
            claim = _claim_of_order(sampler.order)
            return claim if replicas == 1 else replace(claim, replicas=replicas, law=None)
    name = type(inner).__name__
    dataset = getattr(source, "dataset", None)
    owner = next((part for part in (outer, inner, dataset, source) if hasattr(part, "set_epoch")), None)
    plain = type(outer).__name__ == "BatchSampler" and type(inner).__module__.startswith("torch.utils.data")
    law, repeats, fixed = None, None, None
    if plain and name == "RandomSampler":
        repeats = bool(inner.replacement)
        if num_samples > 1 and len(inner) == num_samples:
            kind: Order = (
                IndependentDraws(num_samples, batch_size)
                if repeats
                else RandomReshuffling(num_samples, batch_size, drop_last=outer.drop_last and batch_size <= num_samples)
            )
            law = None if repeats and num_samples % batch_size else noise_law(kind)
    elif plain and name == "WeightedRandomSampler":
        repeats = bool(inner.replacement)
    elif plain and name == "SequentialSampler":
        repeats, fixed = False, True
    return Claim(
        name=name,
        repeats=repeats,
        fixed=fixed,
        set_epoch=None if owner is None else type(owner).__name__,
        replicas=int(getattr(inner, "num_replicas", 1) or 1),
        workers=int(getattr(source, "num_workers", 0) or 0),
        chosen=hasattr(inner, "indices"),
        law=law,
    )


def _claim_of_order(order: Order) -> Claim:
    try:
        law = noise_law(order) if order.num_samples > 1 else None
    except NoLawError:
        law = None
    copies = order.repeats if isinstance(order, RepeatedAugmentation) else 1
    return Claim(
        type(order).__name__,
        repeats=copies > 1 or not isinstance(order, EpochOrder),
        fixed=isinstance(order, ShuffleOnce),
        copies=copies,
        is_order=True,
        law=law,
    )
