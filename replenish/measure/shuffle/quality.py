"""`shuffle_quality`: how uniform a shuffle is, and the smallest effect that the measurement could have found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from replenish import checks
from replenish.draws import Int64Array
from replenish.measure.findings import Finding, Findings
from replenish.measure.reading import Epoch, IndexSource, known_samples, read_epochs
from replenish.measure.shuffle.batches import Population, batch_effects, share_effects
from replenish.measure.shuffle.effects import Effect, holm
from replenish.measure.shuffle.places import epoch_effects, place_effects, seed_effects
from replenish.orders import (
    BlockReshuffling,
    FlipFlop,
    Mixture,
    PairedReversal,
    RepeatedAugmentation,
    ShuffleOnce,
    Stratified,
    WeightedDraws,
    order_from_config,
)
from replenish.orders.epochs import EpochOrder
from replenish.orders.protocol import Order
from replenish.orders.random_batch_sizes import BallsInBins

RESHUFFLING, RELATED, REPLACEMENT, WEIGHTED = KINDS = ("reshuffling", "related epochs", "replacement", "weighted")
_COMPARED = {
    RESHUFFLING: "independent uniform permutations, one per epoch",
    RELATED: "a uniform permutation; only the first epoch is judged, since the others depend on it",
    REPLACEMENT: "draws in which every sample has the same part; repeats within an epoch are as meant",
    WEIGHTED: "independent draws with the frequencies that were observed",
}
_PADDING = 0.1  # if repeats are rarer than this, relative to independent draws, they are padding
_TOO_UNEQUAL = 0.1


@dataclass(frozen=True, repr=False)
class ShuffleQuality(Findings):
    """The result of `shuffle_quality`. Print it, or show it in a notebook.

    Attributes:
        num_samples: How many samples there are: N.
        batch_size: The usual size of a batch: B.
        epochs: How many epochs were read, completely or in part.
        draws: How many draws were read.
        kind: What the draws were compared with: one of `KINDS`.
        findings: One per statistic: `.name`, `.effect`, `.p` (before Holm's adjustment), `.level`, `.sentence`.
            `.numbers` has the adjusted p and the smallest effect that would have been found.
    """

    num_samples: int
    batch_size: int
    epochs: int
    draws: int
    kind: str
    findings: tuple[Finding, ...]

    def _title(self) -> str:
        return (
            f"shuffle quality: {self.level} (N = {self.num_samples:,}, B = {self.batch_size:,}, {self.draws:,} draws "
            f"of {self.epochs} epochs, compared with {_COMPARED[self.kind]})"
        )


def shuffle_quality(
    source: IndexSource,
    num_samples: int,
    *,
    labels: npt.ArrayLike | None = None,
    epochs: int | None = None,
    steps_per_epoch: int | None = None,
    batch_size: int | None = None,
    kind: str | None = None,
    other_seed: IndexSource | None = None,
    before_epoch: Callable[[int], object] | None = None,
    max_draws: int = 2**20,
) -> ShuffleQuality:
    """Compare the indices that a source draws with a uniform shuffle.

    A battery of statistics looks at the indices, not at data: what batches are made of (mean index, contiguous blocks,
    bits, residues), how far samples move, which neighbours stay together, and what two epochs or two seeds share. Each
    has an effect, which is a ratio to a uniform shuffle or a correlation, and a p-value from the statistic's mean and
    variance under a uniform shuffle. If the p-value, adjusted by Holm's method, is below 1e-4, the size of the effect
    decides between ok, warning and fault: ratios from 1.1 and 1.5 on (or their inverse), correlations from 0.05 and
    0.2, and rare events from 1 % and 10 % of the draws.

    Args:
        source: An `Order`; a torch `DataLoader` over a map-style dataset, of which only the indices are read; or an
            iterable of batches of indices, with its epochs in a row.
        num_samples: How many samples there are: N, up to 10**12.
        labels: One label per sample, integers or strings, to measure their mixing too.
        epochs: How many epochs to read; default: 3 of an order or loader, all of an iterable. With a number, every pass
            over an iterable is one epoch.
        steps_per_epoch: How many batches make an epoch of an iterable; default: as many as fit into N draws.
        batch_size: How many indices make a batch, for a source of single indices.
        kind: What the source should do: `"reshuffling"`, `"related epochs"` (as in shuffle once or flip-flop),
            `"replacement"` or `"weighted"`. By default it follows from the class of an order; anything else counts as
            reshuffling, unless its epochs repeat samples.
        other_seed: The same source with another seed, to compare with; not needed for an `Order` of replenish.
        before_epoch: A function called with the epoch's number before each pass, such as `sampler.set_epoch`.
        max_draws: How many draws to read at most, up to 2**22. Of longer epochs the first batches are read.

    Example:
        >>> from replenish import RandomReshuffling, ShuffleBuffer
        >>> shuffle_quality(RandomReshuffling(10_000, 50), 10_000).level
        'ok'
        >>> found = shuffle_quality(ShuffleBuffer(10_000, 50, buffer_size=500), 10_000)
        >>> found.level, found["distance moved"].effect < 0.2
        ('fault', True)
    """
    num_samples = checks.integer("num_samples", num_samples, minimum=2, maximum=10**12)
    for name, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch), ("batch_size", batch_size)):
        if value is not None:
            checks.integer(name, value, minimum=1)
    max_draws = checks.integer("max_draws", max_draws, minimum=100, maximum=2**22)
    if kind is not None:
        checks.one_of("kind", kind, KINDS)
    if isinstance(source, Order) and source.num_samples != num_samples:
        raise ValueError(f"num_samples should be the order's {source.num_samples}, but got {num_samples}")

    if hasattr(source, "dataset") and num_samples > (known := known_samples(source) or num_samples):
        raise ValueError(f"num_samples should be at most the loader's {known}, but got {num_samples}")

    def read(what: IndexSource, number: int | None) -> list[Epoch]:
        return read_epochs(
            what,
            num_samples,
            epochs=number,
            steps_per_epoch=steps_per_epoch,
            batch_size=batch_size,
            before_epoch=before_epoch,
            max_draws=max_draws,
        )

    others = _other_seed(source) if other_seed is None else other_seed
    return quality_of_epochs(
        read(source, epochs),
        num_samples,
        labels=labels,
        kind=_kind_of(source) if kind is None else kind,
        even_is_ok=isinstance(source, (Mixture, Stratified)),
        other=None if others is None else read(others, None if epochs is None else 1)[0],
    )


def quality_of_epochs(
    epochs: list[Epoch],
    num_samples: int,
    *,
    labels: npt.ArrayLike | None = None,
    kind: str | None = None,
    even_is_ok: bool = False,
    other: Epoch | None = None,
) -> ShuffleQuality:
    """Run the battery on epochs that were read; the arguments are the same as for `shuffle_quality`."""
    codes = None if labels is None else _codes(labels, num_samples)
    epochs = [epoch.without_sorting(number) for number, epoch in enumerate(epochs)]
    other = None if other is None else other.without_sorting(len(epochs))
    repeats = [_repeats(epoch, num_samples) for epoch in epochs]
    if kind is None:
        kind = RESHUFFLING if max(share for _, share in repeats) < _PADDING else REPLACEMENT
    effects: list[Effect] = []
    if kind in (RESHUFFLING, RELATED):
        drawn = sum(len(epoch.samples) for epoch in epochs)
        number = sum(number for number, _ in repeats)
        p = 1.0 if not number else 1e-300
        text = "Draws that repeat a sample of the same epoch, as a part of all (1 is none)"
        effects.append(Effect("repeats", text, 1 + number / drawn, p, 0.0, share=number / drawn, only_share=True))
    elif kind == REPLACEMENT and not even_is_ok:
        shares = share_effects(epochs, num_samples)
        effects.append(shares)
        if shares.p < 1e-6 and shares.size >= _TOO_UNEQUAL:
            kind = WEIGHTED
    population = Population(num_samples, even_is_ok=even_is_ok)
    if kind == WEIGHTED:
        population = replace(population, drawn=np.concatenate([epoch.samples for epoch in epochs]))
    # Epochs that depend on each other count as one piece of evidence.
    judged = epochs if kind in (RESHUFFLING, WEIGHTED) and not _alike(epochs) else epochs[:1]
    effects += batch_effects([epoch.regular() for epoch in judged], population, codes)
    if kind != WEIGHTED:
        effects += place_effects([epoch.distinct() for epoch in judged], num_samples)
    if kind == RESHUFFLING:
        effects += epoch_effects(epochs, num_samples)
    if other is not None and kind != WEIGHTED:
        effects += seed_effects(epochs[0].distinct(), other.distinct(), num_samples)
    adjusted = holm(each.p for each in effects)
    findings = (each.finding(p, len(effects)) for each, p in zip(effects, adjusted, strict=True))
    sizes = np.concatenate([epoch.sizes for epoch in epochs])
    return ShuffleQuality(
        num_samples=num_samples,
        batch_size=int(np.median(sizes)),
        epochs=len(epochs),
        draws=int(sizes.sum()),
        kind=kind,
        findings=tuple(findings),
    )


def _kind_of(source: IndexSource) -> str | None:
    """Return the kind of an order; None for anything else."""
    if isinstance(source, (ShuffleOnce, FlipFlop, PairedReversal, BlockReshuffling)):
        return RELATED
    if isinstance(source, (Mixture, WeightedDraws)):
        return WEIGHTED
    if isinstance(source, RepeatedAugmentation):
        return REPLACEMENT
    if isinstance(source, (EpochOrder, BallsInBins)):
        return RESHUFFLING
    return REPLACEMENT if isinstance(source, Order) else None


def _other_seed(source: IndexSource) -> Order | None:
    """Return the same order with another seed; None if its config does not suffice to build it."""
    if not isinstance(source, Order):
        return None
    try:
        return order_from_config({**source.config(), "seed": int(source.config()["seed"]) + 1})
    except (KeyError, TypeError, ValueError):
        return None


def _repeats(epoch: Epoch, num_samples: int) -> tuple[int, float]:
    """Return the number of draws that repeat a sample, and its ratio to independent draws, or 0 if these have none."""
    drawn = len(epoch.samples)
    expected = drawn - num_samples * -np.expm1(drawn * np.log1p(-1 / num_samples))
    return epoch.repeats, epoch.repeats / expected if expected > 1 else 0.0


def _alike(epochs: list[Epoch]) -> bool:
    """Return whether any epoch is nearly the same as the first, so that they are one piece of evidence."""
    first = epochs[0].samples
    for epoch in epochs[1:]:
        number = min(len(first), len(epoch.samples))
        if number and np.mean(first[:number] == epoch.samples[:number]) > max(0.5, 2 / number):
            return True
    return False


def _codes(labels: npt.ArrayLike, num_samples: int) -> Int64Array:
    array = checks.one_per_sample("labels", labels, num_samples)
    if array.dtype.kind not in "iubUS":
        raise TypeError(f"labels should be integers or strings, but got an array of dtype {array.dtype}")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)
