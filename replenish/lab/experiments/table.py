"""The table of the experiments: how each trains, the paper's error, and what a run costs."""

from __future__ import annotations

from replenish.lab.experiments import configs, decisive_configs
from replenish.lab.experiments.costs import duration, known_data, run_cost
from replenish.lab.paper import FIGURE3_ERRORS, published_error
from replenish.lab.show import Cell, Column, Table


def experiments_table(scale: str) -> Table:
    """Return every experiment at a scale, with the paper's error and what a run costs."""
    full = scale == "full"
    experiments = {**configs(scale), **decisive_configs(scale)}
    costs = {name: run_cost(config, known_data(config)) for name, config in experiments.items()}

    def decays(name: str) -> str:
        config = experiments[name]
        return f"{'-'.join(f'{epoch:g}' for epoch in config.decays)} of {config.epochs}, x{config.decay_factor:g}"

    def paper_error(name: str) -> str:
        error = published_error(name)
        return "" if error is None else f"{'about ' if name in FIGURE3_ERRORS else ''}{error:.2f} %"

    def parameters(name: str) -> str:
        count = costs[name].parameters
        return f"{count / 1e6:.1f}M" if count >= 1e6 else f"{count / 1e3:.0f}k"

    return Table(
        "experiments",
        f"Experiments at the scale {scale}",
        (
            Column("experiment", lambda name: Cell(name, code=True), numeric=False),
            Column("network", lambda name: experiments[name].model, numeric=False, brief=False),
            Column("order", lambda name: experiments[name].order, numeric=False, brief=False),
            Column("B", lambda name: str(experiments[name].batch_size), brief=False),
            Column("decays", decays, numeric=False, brief=False),
            Column("paper's error", paper_error),
            Column("parameters", parameters, brief=False),
            Column("cost of a run", lambda name: duration(costs[name].gpu_hours if full else costs[name].cpu_hours)),
        ),
        [(name, name) for name in experiments],
        f"Costs are estimates for one {'GPU' if full else 'CPU thread'}, good to a factor of two or so. Names with the "
        f"same config share their runs. Run one, or all whose names begin alike: replenish run table3 --scale {scale} "
        "--seeds 5",
    )
