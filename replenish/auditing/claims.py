"""What a loader claims to do: the order that the type and public attributes of its sampler promise."""

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
    """What a loader promises. All values are plain, so that a recorder can write them as JSON."""

    name: str  # the sampler's class
    repeats: bool | None = None  # whether an epoch may repeat samples and leave out others; None if unknown
    fixed: bool | None = None  # whether every epoch should have the same order; None if unknown
    set_epoch: str | None = None  # the class whose `set_epoch` must be called before each epoch, or None
    replicas: int = 1  # how many processes divide the samples
    workers: int = 0  # the loader's worker processes
    chosen: bool = False  # whether the sampler draws from a list of samples that it was given
    weighted: bool = False  # whether it draws by weights
    copies: int = 1  # how many times a batch should have each of its samples
    is_order: bool = False  # whether it is an order of this library, which does everything on purpose
    config: dict[str, Any] | None = None  # the config of the order whose noise law should hold

    def law(self) -> NoiseLaw | None:
        """Return the noise law of the claimed order, or None if it is not known."""
        if self.config is None:
            return None
        try:
            return noise_law(order_from_config(self.config))
        except (NoLawError, ValueError):  # it has no law, or needs arrays that its config only names
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
