"""What a batch is made of: its mean index, and its share of blocks, residues, bits and labels.

The null hypothesis is that the samples' numbers mean nothing: any renumbering of them is equally likely. Then, given
how often a batch has each of its samples, its number of draws from a class has a known mean and variance, which are
hypergeometric if all samples are distinct. So one law serves for reshuffling, SRS and independent draws.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from replenish.checks import Floats
from replenish.draws import Int64Array
from replenish.measure.reading import Epoch
from replenish.measure.shuffle.effects import Effect, correlation, gamma_p, most_surprising, ratio

_MODULI = (2, 3, 4, 5, 7, 8, 10, 16, 64, 100, 256, 1000)
_BLOCKS = (2, 4, 8, 16, 64, 256, 1024, 4096)
_CELLS = 2**23  # largest table of batches and classes
_MERGED = 16  # how many batches are merged to show slow drift
_FEWEST = 8  # fewest batches, or merged batches
_FEWEST_DRAWS = 200  # fewest draws for the composition of batches


@dataclass(frozen=True)
class Population:
    """What the draws are compared with.

    Attributes:
        num_samples: How many samples there are: N.
        drawn: None if every sample is equally likely; otherwise all draws, whose frequencies are the expected ones.
        even_is_ok: Whether batches should be more even than a uniform shuffle's.
    """

    num_samples: int
    drawn: Int64Array | None = None
    even_is_ok: bool = False

    @property
    def size(self) -> int:
        """How many draws without replacement exhaust the population."""
        return self.num_samples if self.drawn is None else len(self.drawn)

    def spread(self, epoch: Epoch) -> Floats:
        """Return for each batch the variance of its sum, for values of mean 0 and mean square 1."""
        squares, sizes = _squares(epoch), epoch.sizes
        if self.drawn is not None:
            squares = sizes.astype(np.float64)
        return np.maximum(squares - sizes**2 / self.size, 0) * self.size / max(self.size - 1, 1)

    def inflation(self, epoch: Epoch) -> float:
        """Return the factor by which dependent batches of an epoch increase the variance of a sum of their squares."""
        size = float(epoch.sizes.mean())
        if self.size <= size or (self.drawn is None and epoch.repeats):
            return 1.0
        return 1 + (len(epoch.sizes) - 1) * (size / (self.size - size)) ** 2


def batch_effects(epochs: list[Epoch], population: Population, labels: Int64Array | None) -> Iterator[Effect]:
    """Yield the effects of what the batches are made of; `labels` has the class of each sample, 0, 1, ..."""
    merged = [epoch.merged(_MERGED) for epoch in epochs if len(epoch.sizes) >= _MERGED * _FEWEST]
    for name, read, text in (
        ("batch mean", epochs, "The spread of a batch's mean index"),
        ("slow drift", merged, f"The spread of the mean index of {_MERGED} batches in a row"),
    ):
        if sum(len(epoch.sizes) for epoch in read) >= _FEWEST:
            yield _mean_index(name, f"{text}, against a uniform shuffle's", read, population)
    if sum(len(epoch.sizes) - 1 for epoch in epochs) >= 2 * _FEWEST:
        yield _successive(epochs, population)
    usual = float(np.median(epochs[0].sizes))
    if usual < 2:
        return
    for name, labellings in (
        ("blocks", _blocks(population.num_samples)),
        ("bits", _bits(population.num_samples)),
        ("residues", _residues(population.num_samples)),
    ):
        scanned = [found for each in labellings if (found := _composition(name, epochs, population, each)) is not None]
        if scanned:
            yield most_surprising(scanned)
    if labels is not None and labels.max() > 0:
        classes = _Labelling("the labels", int(labels.max()) + 1, labels.__getitem__, np.bincount(labels))
        if (found := _composition("labels", epochs, population, classes)) is not None:
            yield found


def share_effects(epochs: list[Epoch], num_samples: int) -> Effect:
    """Return the effect of samples drawn unequally often, by blocks and residues, for draws with replacement."""
    # Several copies of a sample in one batch count as one draw: repeated augmentation has three.
    drawn = np.concatenate([epoch.distinct().samples for epoch in epochs])
    found = []
    for labelling in (*_blocks(num_samples), *_residues(num_samples)):
        expected = labelling.shares(num_samples) * len(drawn)
        if labelling.classes < 2 or expected.min() < 5:
            continue
        counts = np.bincount(labelling.code(drawn), minlength=labelling.classes)
        square = float(((counts - expected) ** 2 / expected).sum()) / (labelling.classes - 1)
        # The effect is a ratio of frequencies: the root mean square departure beyond chance.
        excess = math.sqrt(max(square - 1, 0) * (labelling.classes - 1) / len(drawn))
        error = math.sqrt(math.sqrt(2 / (labelling.classes - 1)) * (labelling.classes - 1) / len(drawn))
        freedom = labelling.classes - 1
        # Draws more even than independent ones are fine.
        p = gamma_p(square * freedom, freedom, 2 * freedom) if square > 1 else 1.0
        text = f"How unequally samples are drawn, by {labelling.name} (1 is equally)"
        found.append(Effect("shares", text, 1 + excess, p, error))
    return most_surprising(found) if found else Effect("shares", "Too few draws for their shares", 1.0, 1.0, math.inf)


@dataclass(frozen=True, eq=False)
class _Labelling:
    """A division of the samples into classes, and the number of samples in each."""

    name: str
    classes: int
    code: Callable[[Int64Array], Int64Array]
    counts: Int64Array

    def shares(self, num_samples: int) -> Floats:
        return self.counts / num_samples


def _blocks(num_samples: int) -> Iterator[_Labelling]:
    for number in _BLOCKS:
        if 2 * number <= num_samples:
            edges = np.array([-(-each * num_samples // number) for each in range(number + 1)])
            yield _Labelling(
                f"{number} contiguous blocks",
                number,
                lambda indices, number=number: indices * number // num_samples,  # type: ignore[misc]
                np.diff(edges),
            )


def _residues(num_samples: int) -> Iterator[_Labelling]:
    for modulus in _MODULI:
        if 2 * modulus <= num_samples:
            counts = np.array([(num_samples - rest + modulus - 1) // modulus for rest in range(modulus)])
            yield _Labelling(
                f"the index modulo {modulus}",
                modulus,
                lambda indices, modulus=modulus: indices % modulus,  # type: ignore[misc]
                counts,
            )


def _bits(num_samples: int) -> Iterator[_Labelling]:
    for bit in range((num_samples - 1).bit_length()):
        period = 2 << bit
        ones = num_samples // period * (period // 2) + max(0, num_samples % period - period // 2)
        yield _Labelling(
            f"bit {bit} of the index",
            2,
            lambda indices, bit=bit: (indices >> bit) & 1,  # type: ignore[misc]
            np.array([num_samples - ones, ones]),
        )


def _composition(name: str, epochs: list[Epoch], population: Population, labelling: _Labelling) -> Effect | None:
    """Compare the class counts of batches with their law; None if there are too few batches or classes."""
    drawn, classes = population.drawn, labelling.classes
    if drawn is None:
        shares = labelling.shares(population.num_samples)
    else:
        shares = np.bincount(labelling.code(drawn), minlength=classes) / len(drawn)
    there = shares > 0
    freedom = int(there.sum()) - 1
    if freedom < 1:
        return None
    total = mean = variance = independent = 0.0
    drawn_from = 0
    for epoch in epochs:
        spread = population.spread(epoch)
        kept = (spread > 0) & (epoch.sizes >= 2)
        number = int(kept.sum())
        if not number or len(epoch.sizes) * classes > _CELLS:
            continue
        cells = np.bincount(
            epoch.batch_of * classes + labelling.code(epoch.samples), minlength=len(epoch.sizes) * classes
        ).reshape(-1, classes)[kept][:, there]
        away = (cells - epoch.sizes[kept, None] * shares[there]) ** 2 / shares[there]
        total += float((away.sum(axis=1) / spread[kept]).sum())
        mean += freedom * number
        size = epoch.sizes[kept]
        distinct = np.maximum(size**2 / np.maximum(_squares(epoch)[kept], 1), 1.0)
        # The variance of a multinomial chi-square of so many draws, with unequal classes.
        single = 2 * freedom * (1 - 1 / distinct) + (float((1 / shares[there]).sum()) - (freedom + 1) ** 2) / distinct
        variance += float(single.sum()) * population.inflation(epoch)
        independent += number / population.inflation(epoch)
        drawn_from += int(size.sum())
    # A few small batches are often perfectly even by chance, which the smooth law of `ratio` takes for impossible.
    if independent < _FEWEST or drawn_from < _FEWEST_DRAWS or variance <= 0:
        return None
    text = f"How unevenly batches are made of {labelling.name}, against a uniform shuffle's"
    return ratio(name, text, total, mean, variance, even_is_ok=population.even_is_ok)


def _standard_means(epoch: Epoch, population: Population) -> Floats:
    """Return each batch's mean index in standard deviations of a uniform shuffle's; nan if that has none."""
    number, drawn = population.num_samples, population.drawn
    centre, scale = (number - 1) / 2, math.sqrt((number**2 - 1) / 12)
    if drawn is not None:
        centre, scale = float(drawn.mean()), float(drawn.std())
    values = (epoch.samples - centre) / (scale or 1.0)
    sums = np.bincount(epoch.batch_of, weights=values, minlength=len(epoch.sizes))
    spread = population.spread(epoch)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(spread > 0, sums / np.sqrt(spread), np.nan)


def _mean_index(name: str, text: str, epochs: list[Epoch], population: Population) -> Effect:
    total = mean = variance = 0.0
    for epoch in epochs:
        means = _standard_means(epoch, population)
        known = np.isfinite(means)
        total += float((means[known] ** 2).sum())
        mean += int(known.sum())
        kurtosis = -1.2 / epoch.sizes[known]  # excess kurtosis of a mean of uniform draws
        variance += float((2 + kurtosis).sum()) * population.inflation(epoch)
    return ratio(name, text, total, mean, max(variance, 1e-12), even_is_ok=population.even_is_ok)


def _successive(epochs: list[Epoch], population: Population) -> Effect:
    products = squares = 0.0
    pairs, shift = 0, 0.0
    for epoch in epochs:
        means = np.nan_to_num(_standard_means(epoch, population))
        products += float(means[1:] @ means[:-1])
        squares += float(means @ means)
        pairs += len(means) - 1
        # Batches of one epoch avoid each other's samples.
        size = float(epoch.sizes.mean())
        shift -= (len(means) - 1) * (size / (population.size - size) if population.size > size else 1.0)
    number = sum(len(epoch.sizes) for epoch in epochs)
    value = (products - shift) / max(squares, 1e-12) if squares else 0.0
    text = "The correlation of the mean index of successive batches"
    return correlation("successive batches", text, max(-1.0, min(1.0, value)), math.sqrt(pairs) / number)


def _squares(epoch: Epoch) -> Floats:
    """Return for each batch the sum of the squared counts of its samples."""
    if not epoch.repeats:
        return epoch.sizes.astype(np.float64)
    order = np.lexsort((epoch.samples, epoch.batch_of))
    batches, indices = epoch.batch_of[order], epoch.samples[order]
    new = np.append(True, (batches[1:] != batches[:-1]) | (indices[1:] != indices[:-1]))
    times = np.diff(np.append(np.flatnonzero(new), len(indices)))
    weights = times.astype(np.float64) ** 2
    return np.bincount(batches[new], weights=weights, minlength=len(epoch.sizes)).astype(np.float64)
