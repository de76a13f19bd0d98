"""Where an epoch puts its samples, and what two epochs or two seeds have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from replenish.draws import Int64Array
from replenish.measure.reading import Epoch
from replenish.measure.shuffle.effects import (
    CORRELATION,
    Effect,
    correlation,
    count,
    gamma_p,
    most_surprising,
    normal_p,
)

_FEWEST_DRAWS = 30
_FEWEST_FOR_DIFFERENCES = 200  # with fewer samples, the number of equal differences has no simple law
_MOST_LAGS = 64
_MOST_EPOCHS = 6


def place_effects(epochs: list[Epoch], num_samples: int) -> Iterator[Effect]:
    """Yield the effects of the places of samples within an epoch."""
    if sum(len(epoch.samples) for epoch in epochs) < _FEWEST_DRAWS:
        return
    yield _distance(epochs, num_samples)
    yield _fixed_points(epochs, num_samples)
    yield _drift(epochs)
    yield _neighbours(epochs, num_samples)
    if num_samples >= _FEWEST_FOR_DIFFERENCES:
        yield _steps(epochs, num_samples)


def _equal_values(values: Int64Array) -> int:
    """Return how many pairs of equal values there are."""
    times = np.diff(np.append(np.flatnonzero(np.diff(np.sort(values), prepend=-1)), len(values)))
    return int((times * (times - 1) // 2).sum())


def _distinct_pairs(first: Int64Array, second: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return the pairs (first, second) without repetitions."""
    if not len(first) or np.diff(np.sort(first)).all():
        return first, second
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    new = np.append(True, (np.diff(first) != 0) | (np.diff(second) != 0))
    return first[new], second[new]


def _distance(epochs: list[Epoch], num_samples: int) -> Effect:
    total = mean = variance = 0.0
    for epoch in epochs:
        places = np.arange(len(epoch.samples)) % num_samples
        total += float(np.abs(epoch.samples - places).sum(dtype=np.float64))
        place, number = places.astype(np.float64), float(num_samples)
        expected = (place * (place + 1) + (number - 1 - place) * (number - place)) / (2 * number)
        mean += float(expected.sum())
        squares = (number**2 - 1) / 12 + (place - (number - 1) / 2) ** 2
        variance += float((squares - expected**2).sum())
    error = math.sqrt(variance)
    p = normal_p((total - mean) / error) if error else 1.0
    return Effect("distance moved", "How far samples move from their own place", total / mean, p, error / mean)


def _fixed_points(epochs: list[Epoch], num_samples: int) -> Effect:
    number = sum(int((epoch.samples == np.arange(len(epoch.samples)) % num_samples).sum()) for epoch in epochs)
    drawn = sum(len(epoch.samples) for epoch in epochs)
    return count("fixed points", "Samples at their own place", number, drawn / num_samples, drawn)


def _drift(epochs: list[Epoch]) -> Effect:
    squares, sign, terms = 0.0, 0.0, 0
    drawn = 0
    for epoch in epochs:
        number = len(epoch.samples)
        if number < _FEWEST_DRAWS:
            continue
        value = _rank_correlation(np.arange(number), epoch.samples)
        squares += value**2 * (number - 1)
        sign += value
        terms += 1
        drawn += number
    text = "The correlation of the index with the place in an epoch"
    if not terms:
        return Effect("drift", text, 0.0, 1.0, math.inf, is_correlation=True)
    size = math.sqrt(squares / drawn)
    return Effect(
        "drift",
        text,
        math.copysign(min(size, 1.0), sign),
        gamma_p(squares, terms, 2 * terms) if squares > terms else 1.0,
        math.sqrt(terms / drawn),
        fault_from=CORRELATION[1],
        is_correlation=True,
    )


def _rank_correlation(first: Int64Array, second: Int64Array) -> float:
    """Return the correlation of two arrays of numbers that are ranks, or nearly so."""
    one, other = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / scale if scale else 0.0


def _neighbours(epochs: list[Epoch], num_samples: int) -> Effect:
    """Count pairs within a batch whose indices are close, for several distances."""
    rows, drawn = [], 0
    expected_pairs = 0.0
    for epoch in epochs:
        keys = np.sort(epoch.batch_of * num_samples + epoch.samples)  # below 2**62, since both factors are bounded
        batches, indices = np.divmod(keys, num_samples)
        sizes = np.bincount(batches, minlength=len(epoch.sizes)).astype(np.float64)
        expected_pairs += float((sizes * (sizes - 1)).sum()) / 2
        rows.append((batches, indices))
        drawn += len(indices)
    usual = drawn / max(1, sum(len(epoch.sizes) for epoch in epochs))
    # Up to a quarter of the mean spacing within a batch; at larger distances the blocks show more.
    largest = max(1, int(num_samples / (4 * usual)))
    widths = sorted({1, *(max(1, largest // 8**power) for power in range(8))})
    found = []
    for width in widths:
        close = sum(_close_pairs(batches, indices, width) for batches, indices in rows)
        chance = min(1.0, (width * num_samples - width * (width + 1) / 2) / (num_samples * (num_samples - 1) / 2))
        text = f"Pairs within a batch whose indices differ by at most {width}"
        found.append(count("neighbours", text, close, expected_pairs * chance, drawn))
    return most_surprising(found)


def _close_pairs(batches: Int64Array, indices: Int64Array, width: int) -> int:
    number = 0
    for lag in range(1, _MOST_LAGS):
        near = int(((indices[lag:] - indices[:-lag] <= width) & (batches[lag:] == batches[:-lag])).sum())
        number += near
        if not near:
            break
    return number


def _steps(epochs: list[Epoch], num_samples: int) -> Effect:
    """Count equal differences between successive draws, and between draws two apart."""
    found = []
    for lag in (1, 2):
        number, mean, drawn = 0, 0.0, 0
        for epoch in epochs:
            first, second = _distinct_pairs(epoch.samples[:-lag], epoch.samples[lag:])
            number += _equal_values((second - first) % num_samples)
            mean += len(first) * (len(first) - 1) / 2 / max(num_samples - 1, 1)
            drawn += len(first)
        text = f"Equal differences between {'successive' if lag == 1 else 'every second'} indices"
        found.append(count("steps", text, number, mean, drawn))
    return most_surprising(found)


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
        number = min(len(one.samples), len(other.samples))
        first, second = one.samples[:number], other.samples[:number]
        if number >= _FEWEST_DRAWS:
            text = f"The correlation of the indices that {who} have at the same place"
            correlations.append(correlation(name, text, _rank_correlation(first, second), 1 / math.sqrt(number - 1)))
        text = f"Places that hold the same sample in {who}"
        same.append(count(f"same places of {name}", text, int((first == second).sum()), number / num_samples, number))
        text = f"Equal differences between the indices that {who} have at the same place"
        if number >= _FEWEST_FOR_DIFFERENCES:
            shifted.append(_shifted(f"shift of {name}", text, *_distinct_pairs(first, second), num_samples))
        places, again = _places_of_common(one, other)
        if len(places) >= _FEWEST_DRAWS:
            text = f"The correlation of the places that {who} give to a sample"
            error = 1 / math.sqrt(len(places) - 1)
            correlations.append(correlation(name, text, _rank_correlation(places, again), error))
        if len(places) >= _FEWEST_FOR_DIFFERENCES:
            text = f"Equal differences between the places that {who} give to a sample"
            shifted.append(_shifted(f"shift of {name}", text, places, again, max(len(one.samples), len(other.samples))))
    if correlations:
        yield most_surprising(correlations)
    yield most_surprising(same)
    if shifted:
        yield most_surprising(shifted)


def _shifted(name: str, text: str, first: Int64Array, second: Int64Array, modulus: int) -> Effect:
    number = len(first)
    mean = number * (number - 1) / 2 / max(modulus - 1, 1)
    return count(name, text, _equal_values((second - first) % modulus), mean, number)


def _places_of_common(one: Epoch, other: Epoch) -> tuple[Int64Array, Int64Array]:
    _, first, second = np.intersect1d(one.samples, other.samples, return_indices=True)
    return first, second


def _together_again(one: Epoch, other: Epoch, num_samples: int) -> Effect | None:
    """Count pairs of samples that share a batch in both epochs; None if too few samples were read in both."""
    first, second = _places_of_common(one, other)
    before, after = one.batch_of[first], other.batch_of[second]
    again = _equal_values(before * len(other.sizes) + after)
    pairs = [float((epoch.sizes * (epoch.sizes - 1)).sum()) / 2 for epoch in (one, other)]
    mean = pairs[0] * pairs[1] / (num_samples * (num_samples - 1) / 2)
    # How many pairs both epochs would show if no pair were ever separated; fewer if they were read only in part.
    most = min(pairs) * min(1.0, len(one.samples) / num_samples)
    if most < _FEWEST_DRAWS:
        return None
    return count("pairs", "Pairs of samples that share a batch in two epochs", again, mean, most)
