"""The results in the records: for each band of kappa, variances measured over the seeds, and the law's."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from replenish import theory
from replenish.lab.statistics import Difference, Estimate, mean_with_interval, paired_difference
from study.noise.setting import ARMS, WHITE

MARGIN = 0.05
ON, OFF, UNDECIDED = "on the law", "off", "undecided"
FLAT = 0.3162  # prediction 3 is about the bands below
_MIDDLE = (0.3162, 3.1623)  # prediction 1 is about the bands between these


@dataclass(frozen=True)
class BandValue:
    """One order in one band, over the seeds.

    `kappa` is the geometric mean over the directions. Variances are divided by the variance under independent draws.
    `excess` is measured minus law, with Student's 95 % interval.
    """

    kappa: float
    measured: float
    law: float
    excess: Estimate
    directions: int

    @property
    def verdict(self) -> str:
        """`ON` if the interval lies within the margin, otherwise `OFF` if it excludes 0, otherwise `UNDECIDED`."""
        interval = self.excess.interval
        if interval is None:
            return UNDECIDED
        if interval.low >= -MARGIN and interval.high <= MARGIN:
            return ON
        return OFF if interval.low > 0 or interval.high < 0 else UNDECIDED


@dataclass(frozen=True)
class Results:
    """The records of all runs of an experiment, by seed."""

    records: dict[int, dict[str, Any]]

    @property
    def setting(self) -> dict[str, Any]:
        """The setting, which all records share."""
        return next(iter(self.records.values()))["setting"]

    @property
    def rates(self) -> list[float]:
        """The learning rates."""
        return self.setting["learning_rates"]

    def bands(self, low: float = 0.0, high: float = math.inf) -> list[tuple[float, float]]:
        """Return the bands of kappa between `low` and `high`."""
        bands = pairwise(self.setting["kappas"])
        return [band for band in bands if low * 0.999 <= band[0] and band[1] <= high * 1.001]

    def law(self, arm: str, kappas: ArrayLike) -> Any:
        """Return an order's law at these kappas."""
        n, b = 10 * self.setting["images_per_class"], self.setting["batch_size"]
        return theory.noise_variance(ARMS[arm].make(n, b, 0), kappas)

    def value(self, rate: float, arm: str, band: tuple[float, float]) -> BandValue | None:
        """Return the value of an order in a band; None if no seed has a direction there."""
        seeds = {seed: found for seed in self.records if (found := self._of_seed(seed, rate, arm, band)) is not None}
        if not seeds:
            return None
        kappas = np.concatenate([kappa for kappa, _, _ in seeds.values()])
        measured, law = ([float(found[part].mean()) for found in seeds.values()] for part in (1, 2))
        return BandValue(
            float(np.exp(np.log(kappas).mean())),
            float(np.mean(measured)),
            float(np.mean(law)),
            mean_with_interval([one - other for one, other in zip(measured, law, strict=True)]),
            len(kappas),
        )

    def values(self, rate: float, arm: str, low: float = 0.0, high: float = math.inf) -> list[BandValue]:
        """Return the values of an order in all bands between `low` and `high` that have directions."""
        return [value for band in self.bands(low, high) if (value := self.value(rate, arm, band)) is not None]

    def flat_excess(self, arm: str) -> Difference:
        """Return the difference of the excess in flat bands, first learning rate minus second, seed by seed."""
        by_rate: list[dict[int, float]] = []
        for rate in self.rates[:2]:
            excess = {}
            for seed in self.records:
                bands = [self._of_seed(seed, rate, arm, band) for band in self.bands(0, FLAT)]
                excess[seed] = float(np.mean([(one - law).mean() for _, one, law in filter(None, bands)]))
            by_rate.append(excess)
        first, second = by_rate
        return paired_difference(first, second)

    def in_predicted_order(self) -> list[tuple[float, tuple[float, float], bool]]:
        """Return (learning rate, band, whether the orders rank as in the law) for the bands in the middle."""
        found = []
        for rate in self.rates:
            for band in self.bands(*_MIDDLE):
                values = [self.value(rate, arm, band) for arm in ARMS if arm != WHITE]
                if None not in values:  # the arms are listed from the largest to the smallest
                    measured = [value.measured for value in values if value is not None]
                    found.append((rate, band, measured == sorted(measured, reverse=True)))
        return found

    def _of_seed(self, seed: int, rate: float, arm: str, band: tuple[float, float]) -> tuple[Any, Any, Any] | None:
        """Return kappas, measured ratios and the law's ratios for the directions in a band; None if there are none."""
        (record,) = [each for each in self.records[seed]["rates"] if each["learning_rate"] == rate]
        kappas = np.array(record["kappas"])
        inside = (kappas >= band[0]) & (kappas < band[1])
        if not inside.any():
            return None
        variances = {name: np.array(record["variances"][name])[inside] for name in (arm, WHITE)}
        return kappas[inside], variances[arm] / variances[WHITE], self.law(arm, kappas[inside])


def read_results(folder: Path, name: str) -> Results:
    """Return the records of an experiment; raise if there are none, or if their settings differ."""
    records = [json.loads(path.read_text()) for path in sorted(folder.glob(f"{name.replace('/', '-')}-seed*.json"))]
    if not records:
        raise ValueError(
            f"{folder} has no record of {name}; make them with: python -m study noise {name} --runs {folder}"
        )
    if any(record["setting"] != records[0]["setting"] for record in records):
        raise ValueError(f"{folder} has records of different settings of {name}; keep those of one")
    return Results({record["seed"]: record for record in sorted(records, key=lambda record: record["seed"])})
