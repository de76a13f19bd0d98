"""What two epochs have in common, or two seeds, that uniform and independent shuffles would not."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from replenish.draws import Int64Array
from replenish.measure.shuffle.effects import Effect, correlation, count, most_surprising
from replenish.measure.shuffle.epochs import Epoch
from replenish.measure.shuffle.places import FEWEST_FOR_DIFFERENCES, distinct_pairs, equal_values, rank_correlation

_MOST_EPOCHS = 6
_FEWEST = 30


def epoch_effects(epochs: list[Epoch], num_samples: int) -> Iterator[Effect]:
    """Yield the effects of pairs of epochs, each pair of the first six."""
    pairs = list(combinations(epochs[:_MOST_EPOCHS], 2))
    if pairs:
        yield from _alike("epochs", "two epochs", pairs, num_samples)
        again = [_together_again(one, other, num_samples) for one, other in pairs]
        if known := [found for found in again if found is not None]:
            yield most_surprising(known)


def seed_effects(one: Epoch, other: Epoch, num_samples: int) -> Iterator[Effect]:
    """Yield the effects of the same epoch under two seeds."""
    yield from _alike("seeds", "two seeds", [(one, other)], num_samples)


def _alike(name: str, who: str, pairs: list[tuple[Epoch, Epoch]], num_samples: int) -> Iterator[Effect]:
    correlations, same, shifted = [], [], []
    for one, other in pairs:
        number = min(len(one.indices), len(other.indices))
        first, second = one.indices[:number], other.indices[:number]
        if number >= _FEWEST:
            text = f"The correlation of the indices that {who} have at the same place"
            correlations.append(correlation(name, text, rank_correlation(first, second), 1 / math.sqrt(number - 1)))
        text = f"Places that hold the same sample in {who}"
        same.append(count(f"same places of {name}", text, int((first == second).sum()), number / num_samples, number))
        text = f"Equal differences between the indices that {who} have at the same place"
        if number >= FEWEST_FOR_DIFFERENCES:
            shifted.append(_shifted(f"shift of {name}", text, *distinct_pairs(first, second), num_samples))
        places, again = _places_of_common(one, other)
        if len(places) >= _FEWEST:
            text = f"The correlation of the places that {who} give to a sample"
            error = 1 / math.sqrt(len(places) - 1)
            correlations.append(correlation(name, text, rank_correlation(places, again), error))
        if len(places) >= FEWEST_FOR_DIFFERENCES:
            text = f"Equal differences between the places that {who} give to a sample"
            shifted.append(_shifted(f"shift of {name}", text, places, again, max(len(one.indices), len(other.indices))))
    if correlations:
        yield most_surprising(correlations)
    yield most_surprising(same)
    if shifted:
        yield most_surprising(shifted)


def _shifted(name: str, text: str, first: Int64Array, second: Int64Array, modulus: int) -> Effect:
    number = len(first)
    mean = number * (number - 1) / 2 / max(modulus - 1, 1)
    return count(name, text, equal_values((second - first) % modulus), mean, number)


def _places_of_common(one: Epoch, other: Epoch) -> tuple[Int64Array, Int64Array]:
    _, first, second = np.intersect1d(one.indices, other.indices, return_indices=True)
    return first, second


def _together_again(one: Epoch, other: Epoch, num_samples: int) -> Effect | None:
    """Count pairs of samples that share a batch in both epochs; None where too few samples were read in both."""
    first, second = _places_of_common(one, other)
    before, after = one.batch_of[first], other.batch_of[second]
    again = equal_values(before * len(other.sizes) + after)
    pairs = [float((epoch.sizes * (epoch.sizes - 1)).sum()) / 2 for epoch in (one, other)]
    mean = pairs[0] * pairs[1] / (num_samples * (num_samples - 1) / 2)
    # Of epochs read in part, so many pairs would be read in both if no pair were ever parted.
    most = min(pairs) * min(1.0, len(one.indices) / num_samples)
    if most < _FEWEST:
        return None
    return count("pairs", "Pairs of samples that share a batch in two epochs", again, mean, most)
