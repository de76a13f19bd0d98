"""The experiments as a list: each with the paper's error, the parameters and about what a run costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass

from replenish.lab.experiments import configs
from replenish.lab.experiments.costs import RunCost, known_data, run_cost
from replenish.lab.experiments.paper import FIGURE3_ERRORS, published_error

HEADINGS = ("experiment", "network", "order", "B", "decays", "paper's error", "parameters", "cost of a run")


@dataclass(frozen=True)
class ListedExperiment:
    """A line of the list, as text; its fields are in the order of `HEADINGS`."""

    name: str
    network: str
    order: str
    batch_size: str
    decays: str
    paper_error: str
    parameters: str
    cost: str


def listed(scale: str) -> list[ListedExperiment]:
    """Return every experiment at a scale; networks are counted without their weights, which takes some seconds."""
    costs: dict[tuple[str, str], RunCost] = {}
    lines = []
    for name, config in configs(scale).items():
        key = (config.model, config.dataset)
        if key not in costs:
            costs[key] = run_cost(config, known_data(config))
        error = published_error(name)
        decays = "-".join(f"{epoch:g}" for epoch in config.decays)
        lines.append(
            ListedExperiment(
                name=name,
                network=config.model,
                order=config.order,
                batch_size=str(config.batch_size),
                decays=f"{decays} of {config.epochs}, x{config.decay_factor:g}",
                paper_error="" if error is None else f"{'about ' if name in FIGURE3_ERRORS else ''}{error:.2f} %",
                parameters=_count(costs[key].parameters),
                cost=_duration(costs[key].gpu_hours if scale == "full" else costs[key].cpu_hours),
            )
        )
    return lines


def where(scale: str) -> str:
    """Return what the costs of a scale are counted on."""
    return "one GPU" if scale == "full" else "one CPU thread"


def markdown(lines: Sequence[ListedExperiment]) -> str:
    """Return a list as a Markdown table."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *map(astuple, lines)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _count(parameters: int) -> str:
    return f"{parameters / 1e6:.1f}M" if parameters >= 1e6 else f"{parameters / 1e3:.0f}k"


def _duration(hours: float) -> str:
    if hours >= 10:
        return f"{hours:.0f} h"
    return f"{hours:.1f} h" if hours >= 1 else f"{max(hours * 60, 0.5):.0f} min"
