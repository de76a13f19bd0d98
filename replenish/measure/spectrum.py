"""The measured noise of anything that draws; `replenish.theory.noise_spectrum` has its law for orders."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from replenish import checks
from replenish.checks import Floats
from replenish.draws import KeyedWords, Purpose, derived_seed
from replenish.measure.reading import Draws, IndexSource, read_draws
from replenish.theory.noise_laws import NoiseLaw, fejer

_VALUES_AT_ONCE = 2**22
_LINES = 1000  # how many of a law's spectral lines are used, the strongest first


@dataclass(frozen=True, eq=False)
class MeasuredSpectrum:
    """A spectrum that was measured, relative to the white noise of independent draws.

    Attributes:
        frequencies: The frequencies in cycles per step, above 0 and up to 1/2.
        density: The spectral density at each frequency. A spectral line is a peak: its power times half the steps.
        error: The standard error of each density.
        steps: How many steps were measured.
    """

    frequencies: Floats
    density: Floats
    error: Floats
    steps: int

    def in_bands(self, bands: int = 20) -> MeasuredSpectrum:
        """Return the means over bands of frequencies, which become wider towards high frequencies."""
        bands = checks.integer("bands", bands, minimum=1)
        number = len(self.frequencies)
        edges = np.unique(np.round(np.geomspace(1, number + 1, bands + 1)).astype(int)) - 1
        counts = np.diff(edges)
        means = [np.add.reduceat(values, edges[:-1]) / counts for values in (self.frequencies, self.density)]
        error = np.sqrt(np.add.reduceat(self.error**2, edges[:-1])) / counts
        return MeasuredSpectrum(means[0], means[1], error, self.steps)


def noise_spectrum(
    source: IndexSource,
    epochs: int = 10,
    *,
    start: int = 0,
    num_samples: int | None = None,
    numbers: int = 64,
    seed: int = 0,
) -> MeasuredSpectrum:
    """Measure the spectrum of the noise that an order makes.

    Every sample gets `numbers` random signs. The spectrum is the periodogram of the batch means, averaged over the
    signs. Time and memory grow as epochs * num_samples * numbers.

    Args:
        source: An `Order`; a torch `DataLoader` over a map-style dataset or its sampler, of which only the indices are
            read; or any iterable of batches of indices.
        epochs: How many effective epochs of an order, or passes of anything else. Frequencies below one cycle in
            this many epochs are not measured.
        start: The first step, for an order; a late one shows the steady state.
        num_samples: How many samples there are; None takes the source's number, or one more than the largest index.
        numbers: How many signs each sample gets. The error falls as 1 / sqrt(numbers).
        seed: Chooses the signs.

    Example:
        >>> from replenish import RandomReshuffling, theory
        >>> order = RandomReshuffling(1000, 10)
        >>> found = noise_spectrum(order, epochs=5)
        >>> law = theory.noise_spectrum(order, found.frequencies).continuous
        >>> bool(abs(found.density - law).max() < 1), bool(abs(found.density - law).mean() < 0.1)
        (True, True)
    """
    draws = read_draws(source, epochs, start=start, num_samples=num_samples)
    return spectrum_of(draws, checks.integer("numbers", numbers, minimum=2), checks.seed(seed))


def spectrum_of(draws: Draws, numbers: int, seed: int = 0) -> MeasuredSpectrum:
    """Return the spectrum of steps that were read."""
    if draws.num_samples < 2:
        raise ValueError(f"num_samples should be at least 2 for there to be noise, but got {draws.num_samples}")
    if draws.steps < 2:
        raise ValueError(f"source should yield at least 2 batches for a spectrum, but got {draws.steps}")
    noise = batch_means(draws, random_signs(draws.num_samples, numbers, seed))
    transformed = np.abs(np.fft.rfft(noise, axis=0)[1:]) ** 2
    periodograms = transformed * float(np.median(draws.sizes)) / draws.steps
    return MeasuredSpectrum(
        frequencies=np.arange(1, draws.steps // 2 + 1) / draws.steps,
        density=periodograms.mean(axis=1),
        error=periodograms.std(axis=1, ddof=1) / np.sqrt(numbers),
        steps=draws.steps,
    )


def random_signs(num_samples: int, numbers: int, seed: int) -> Floats:
    """Return random signs, (num_samples, numbers), each column shifted to mean 0 and scaled to variance 1.

    Columns of equal signs, which have no variance, are drawn again.
    """
    if num_samples < 2:
        raise ValueError(f"num_samples should be at least 2, since one number has no variance, but got {num_samples}")
    words = KeyedWords(derived_seed(seed, "signs"), Purpose.INDEPENDENT)
    signs = _drawn_signs(words, num_samples, numbers)
    while (equal := np.flatnonzero((signs == signs[0]).all(axis=0))).size:
        signs[:, equal] = _drawn_signs(words, num_samples, equal.size)
    signs -= signs.mean(axis=0)
    return np.asarray(signs / signs.std(axis=0), dtype=np.float64)


def _drawn_signs(words: KeyedWords, num_samples: int, numbers: int) -> Floats:
    drawn = words.words(-(-num_samples * numbers // 64))
    bits = np.unpackbits(drawn.astype("<u8").view(np.uint8), count=num_samples * numbers)
    return np.asarray(2.0 * bits.reshape(num_samples, numbers) - 1, dtype=np.float64)


def batch_means(draws: Draws, values: Floats) -> Floats:
    """Return the mean over each batch of the values of its samples, (steps, columns of values); 0 where it is empty."""
    filled = np.flatnonzero(draws.sizes)
    means = np.zeros((draws.steps, values.shape[1]))
    if len(filled) < draws.steps:
        means[filled] = batch_means(replace(draws, sizes=draws.sizes[filled]), values)
        return means
    ends = np.cumsum(draws.sizes)
    first = 0
    while first < draws.steps:
        begin = ends[first] - draws.sizes[first]
        last = max(int(np.searchsorted(ends, begin + _VALUES_AT_ONCE // values.shape[1])), first + 1)
        rows = values[draws.samples[begin : ends[last - 1]]]
        places = ends[first:last] - draws.sizes[first:last] - begin
        means[first:last] = np.add.reduceat(rows, places, axis=0) / draws.sizes[first:last, None]
        first = last
    return means


def expected_density(law: NoiseLaw, steps: int) -> Floats:
    """Return the mean of a spectrum measured over so many steps: the law, smeared by the finite time.

    The law of whole independent blocks is not smeared. Otherwise a transform of the law, on a grid eight times as fine,
    gives the covariances; the covariance at lag d is multiplied by 1 - d/steps; and a transform back gives the result.
    """
    if law.block is not None and steps % law.block == 0:
        return law.continuous(np.arange(1, steps // 2 + 1) / steps)
    size = 8 * steps
    density = law.continuous(np.arange(size // 2 + 1) / size)
    seen = np.fft.irfft(density, size)[:steps] * (1 - np.arange(steps) / steps)
    seen[1:] *= 2
    smeared = np.fft.rfft(seen).real[1:]
    where, powers = law.lines()
    strong = np.flatnonzero(where > 0)
    strong = strong[np.argsort(-powers[strong])[:_LINES]]
    frequencies = np.arange(1, steps // 2 + 1) / steps
    for line, power in zip(where[strong], powers[strong], strict=True):  # half of the power is at -f
        smeared += power / 2 * (fejer(frequencies - line, steps) + fejer(frequencies + line, steps))
    return smeared
