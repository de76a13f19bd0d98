"""The experiments as a table: each with the paper's error, the parameters and about what a run costs."""

from __future__ import annotations

from dataclasses import dataclass

from replenish.lab.config import RunConfig
from replenish.lab.experiments import configs, decisive_configs
from replenish.lab.experiments.costs import RunCost, known_data, run_cost
from replenish.lab.paper import FIGURE3_ERRORS, published_error
from replenish.lab.show import Cell, Column, Table


@dataclass(frozen=True)
class _Listed:
    """What a row is about."""

    name: str
    config: RunConfig
    cost: RunCost

    @property
    def decays(self) -> str:
        epochs = "-".join(f"{epoch:g}" for epoch in self.config.decays)
        return f"{epochs} of {self.config.epochs}, x{self.config.decay_factor:g}"

    @property
    def paper_error(self) -> str:
        error = published_error(self.name)
        return "" if error is None else f"{'about ' if self.name in FIGURE3_ERRORS else ''}{error:.2f} %"


def experiments_table(scale: str) -> Table:
    """Return every experiment at a scale."""
    full = scale == "full"
    columns = (
        Column("experiment", lambda line: Cell(line.name, code=True), numeric=False),
        Column("network", lambda line: line.config.model, numeric=False, brief=False),
        Column("order", lambda line: line.config.order, numeric=False, brief=False),
        Column("B", lambda line: str(line.config.batch_size), brief=False),
        Column("decays", lambda line: line.decays, numeric=False, brief=False),
        Column("paper's error", lambda line: line.paper_error),
        Column("parameters", lambda line: _count(line.cost.parameters), brief=False),
        Column("cost of a run", lambda line: _duration(line.cost.gpu_hours if full else line.cost.cpu_hours)),
    )
    listed = {**configs(scale), **decisive_configs(scale)}
    lines = [_Listed(name, config, run_cost(config, known_data(config))) for name, config in listed.items()]
    return Table(
        "experiments",
        f"Experiments at the scale {scale}",
        columns,
        [(line.name, line) for line in lines],
        f"Costs are estimates for one {'GPU' if full else 'CPU thread'}, good to a factor of two or so. Names with the "
        f"same config share their runs. Run one, or all that begin alike: replenish run table3 --scale {scale} "
        "--seeds 5",
    )


def _count(parameters: int) -> str:
    return f"{parameters / 1e6:.1f}M" if parameters >= 1e6 else f"{parameters / 1e3:.0f}k"


def _duration(hours: float) -> str:
    if hours >= 10:
        return f"{hours:.0f} h"
    return f"{hours:.1f} h" if hours >= 1 else f"{max(hours * 60, 0.5):.0f} min"
