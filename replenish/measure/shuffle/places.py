"""Where an epoch puts its samples: how far they move, which stay, and which numbers stay together."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from replenish.draws import Int64Array
from replenish.measure.shuffle.effects import CORRELATION, Effect, count, most_surprising
from replenish.measure.shuffle.epochs import Epoch
from replenish.measure.shuffle.tails import gamma_p, normal_p

_FEWEST_DRAWS = 30
FEWEST_FOR_DIFFERENCES = 200  # samples; of fewer, equal differences have no simple law
_MOST_LAGS = 64


def place_effects(epochs: list[Epoch], num_samples: int) -> Iterator[Effect]:
    """Yield the effects of places within an epoch."""
    if sum(len(epoch.indices) for epoch in epochs) < _FEWEST_DRAWS:
        return
    yield _distance(epochs, num_samples)
    yield _fixed_points(epochs, num_samples)
    yield _drift(epochs)
    yield _neighbours(epochs, num_samples)
    if num_samples >= FEWEST_FOR_DIFFERENCES:
        yield _steps(epochs, num_samples)


def equal_values(values: Int64Array) -> int:
    """Return how many pairs of equal values there are."""
    times = np.diff(np.append(np.flatnonzero(np.diff(np.sort(values), prepend=-1)), len(values)))
    return int((times * (times - 1) // 2).sum())


def distinct_pairs(first: Int64Array, second: Int64Array) -> tuple[Int64Array, Int64Array]:
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
        places = np.arange(len(epoch.indices)) % num_samples
        total += float(np.abs(epoch.indices - places).sum(dtype=np.float64))
        place, number = places.astype(np.float64), float(num_samples)
        expected = (place * (place + 1) + (number - 1 - place) * (number - place)) / (2 * number)
        mean += float(expected.sum())
        squares = (number**2 - 1) / 12 + (place - (number - 1) / 2) ** 2
        variance += float((squares - expected**2).sum())
    error = math.sqrt(variance)
    p = normal_p((total - mean) / error) if error else 1.0
    return Effect("distance moved", "How far samples move from their own place", total / mean, p, error / mean)


def _fixed_points(epochs: list[Epoch], num_samples: int) -> Effect:
    number = sum(int((epoch.indices == np.arange(len(epoch.indices)) % num_samples).sum()) for epoch in epochs)
    drawn = sum(len(epoch.indices) for epoch in epochs)
    return count("fixed points", "Samples at their own place", number, drawn / num_samples, drawn)


def _drift(epochs: list[Epoch]) -> Effect:
    squares, sign, terms = 0.0, 0.0, 0
    drawn = 0
    for epoch in epochs:
        number = len(epoch.indices)
        if number < _FEWEST_DRAWS:
            continue
        value = rank_correlation(np.arange(number), epoch.indices)
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


def rank_correlation(first: Int64Array, second: Int64Array) -> float:
    """Return the correlation of two sets of numbers that are ranks already, or as good as ranks."""
    one, other = first - first.mean(), second - second.mean()
    scale = math.sqrt(float(one @ one) * float(other @ other))
    return float(one @ other) / scale if scale else 0.0


def _neighbours(epochs: list[Epoch], num_samples: int) -> Effect:
    """Count pairs in one batch whose indices are close, at several distances."""
    rows, drawn = [], 0
    expected_pairs = 0.0
    for epoch in epochs:
        keys = np.sort(epoch.batch_of * num_samples + epoch.indices)  # below 2**62, since both factors are bounded
        batches, indices = np.divmod(keys, num_samples)
        sizes = np.bincount(batches, minlength=len(epoch.sizes)).astype(np.float64)
        expected_pairs += float((sizes * (sizes - 1)).sum()) / 2
        rows.append((batches, indices))
        drawn += len(indices)
    usual = drawn / max(1, sum(len(epoch.sizes) for epoch in epochs))
    # Up to a quarter of the mean spacing within a batch, beyond which the blocks say more.
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
    """Count equal differences between successive draws, and between every second one."""
    found = []
    for lag in (1, 2):
        number, mean, drawn = 0, 0.0, 0
        for epoch in epochs:
            first, second = distinct_pairs(epoch.indices[:-lag], epoch.indices[lag:])
            number += equal_values((second - first) % num_samples)
            mean += len(first) * (len(first) - 1) / 2 / max(num_samples - 1, 1)
            drawn += len(first)
        text = f"Equal differences between {'successive' if lag == 1 else 'every second'} indices"
        found.append(count("steps", text, number, mean, drawn))
    return most_surprising(found)
