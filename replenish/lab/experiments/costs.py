"""The cost of an experiment: parameters, multiply-adds, and roughly how long it takes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources

from replenish.lab.config import RunConfig

#: Multiply-adds per second that training reaches. On one CPU thread: measured with WRN-10-1 on an AMD EPYC. On a GPU in
#: single precision: a round number for a data-centre card of about 15 TFLOPS. Good to a factor of two or so.
CPU_THREAD_RATE = 20e9
GPU_RATE = 5e12


@dataclass(frozen=True)
class DataSize:
    """The sizes of a dataset on which the cost depends."""

    train_images: int
    test_images: int
    classes: int
    channels: int
    image_size: int


@dataclass(frozen=True)
class RunCost:
    """The cost of one run, including its tests and the measurements of its clean loss.

    Multiply-adds are the sum over all passes. A backward pass counts as two forward passes.
    """

    parameters: int
    multiply_adds: float

    @property
    def cpu_hours(self) -> float:
        """Approximate hours on one CPU thread."""
        return self.multiply_adds / CPU_THREAD_RATE / 3600

    @property
    def gpu_hours(self) -> float:
        """Approximate hours on one GPU."""
        return self.multiply_adds / GPU_RATE / 3600


def known_data(config: RunConfig) -> DataSize:
    """Return the size of a known dataset as a config uses it, without reading the data."""
    from replenish.lab.data import DATASETS

    data = DATASETS[config.dataset]
    return DataSize(
        train_images=data.kept_images(config.images_per_class),
        test_images=data.test_images,
        classes=data.classes,
        channels=data.channels,
        image_size=config.image_size or data.image_size,
    )


def run_cost(config: RunConfig, data: DataSize) -> RunCost:
    """Return the cost of a run of a named network.

    Example:
        >>> config = RunConfig()
        >>> found = run_cost(config, known_data(config))
        >>> f"{found.parameters / 1e6:.1f}M parameters, about {found.gpu_hours:.0f} GPU hours"
        '36.5M parameters, about 9 GPU hours'
    """
    key = (config.model, data.channels, data.classes, data.image_size)
    counted = counted_networks().get(key)
    if counted is None:
        from replenish.lab.models import cost  # importing torch and counting take seconds

        network = cost(*key)
        counted = network.parameters, network.multiply_adds
    clean = config.epochs // config.clean_every if config.clean_every else 0
    tests = config.epochs // config.test_every
    passes = (3 * config.epochs + clean) * data.train_images + tests * data.test_images
    return RunCost(counted[0], float(counted[1]) * passes)


def duration(hours: float) -> str:
    """Return a readable time.

    Example:
        >>> [duration(hours) for hours in (0.001, 0.4, 3, 30, 300)]
        ['1 min', '24 min', '3.0 h', '30 h', '12 days']
    """
    if hours >= 72:
        return f"{hours / 24:,.0f} days"
    if hours >= 1:
        return f"{hours:.0f} h" if hours >= 10 else f"{hours:.1f} h"
    return f"{max(round(hours * 60), 1)} min"


def counted_networks() -> dict[tuple[str, int, int, int], tuple[int, int]]:
    """Return parameters and multiply-adds of the experiments' networks, by name, channels, classes and image size.

    They are stored, so that listing the experiments does not need torch. A test checks them against
    `replenish.lab.models.cost`.
    """
    rows = json.loads(resources.files("replenish.lab.experiments").joinpath("network_costs.json").read_text())
    return {tuple(row[:4]): tuple(row[4:]) for row in rows}
