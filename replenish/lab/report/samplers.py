"""Runs outside the paper's experiments, such as those of `replenish compare`: one table a recipe, one row a sampler."""

from __future__ import annotations

from collections.abc import Mapping

from replenish.lab.config import RunConfig
from replenish.lab.report.cells import (
    best_cell,
    data_words,
    dataset_name,
    duration,
    mean_cell,
    median_cell,
    schedule_words,
)
from replenish.lab.report.comparisons import differences_table, findings, sampler_pairs
from replenish.lab.report.document import NOTHING, Cell, Column, Figure, Row, Section, Table
from replenish.lab.report.figures import curves
from replenish.lab.report.grouping import Group, origins
from replenish.lab.report.reading import finite
from replenish.lab.report.tables import BEST_EPOCH


def samplers_section(samplers: Mapping[str, Group], name: str) -> Section:
    """Return the section of one recipe: what was found, a table of the samplers, their curves.

    Args:
        samplers: The groups by the name of their sampler, all of one recipe.
        name: The name of the section.
    """
    pairs = sampler_pairs(samplers)
    made = findings(pairs, f"{name}-finding")
    config = next(iter(samplers.values())).config
    blocks: list[Table | Figure] = [samplers_table(samplers, f"{name}-samplers")]
    if made:
        blocks.append(differences_table(made, pairs, f"{name}-differences"))
    figure = curves(
        [(label, label, group) for label, group in samplers.items()],
        name=f"{name}-curves",
        title="Training loss and test error",
    )
    if figure is not None:
        blocks.append(figure)
    return Section(
        name=name,
        title=(
            f"Samplers on {dataset_name(config)} with {config.model}, batches of {config.batch_size}, "
            f"decays at {schedule_words(config)}"
        ),
        paragraphs=(recipe_words(config),),
        findings=made,
        blocks=tuple(blocks),
    )


def samplers_table(samplers: Mapping[str, Group], name: str) -> Table:
    """Return a table with one row a sampler: mean and median of the test error, and how long a run takes."""
    rows = []
    for label, group in samplers.items():
        seconds = [finite((run.result or {}).get("seconds")) for run in group.finished]
        known = [value for value in seconds if value is not None]
        took = duration(sum(known) / len(known)) if known else NOTHING
        cells = (Cell(label), mean_cell(group), median_cell(group), best_cell(group), Cell(took))
        rows.append(Row(label, cells))
    return Table(
        name=name,
        title="Test error by sampler",
        caption="Test error in percent at the last epoch, over the seeds that finished.",
        columns=(
            Column("Sampler"),
            Column("Mean", "n, interval (coverage)", numeric=True),
            Column("Median", "n, interval (coverage)", numeric=True),
            Column("Best epoch", BEST_EPOCH.removeprefix("best epoch "), numeric=True),
            Column("Time", "a run, mean", numeric=True),
        ),
        rows=tuple(rows),
        origins=origins(samplers.values()),
    )


def recipe_words(config: RunConfig) -> str:
    """Return what every sampler of a recipe was trained with, in a sentence.

    Example:
        >>> recipe_words(RunConfig(dataset="digits", model="wrn-10-1", epochs=40, pad=0, flip=False))
        'Data: digits. Network: wrn-10-1. Batches of 64, 40 effective epochs, learning rate 0.1, times 0.1 at \
24, 30, 35 of 40; momentum 0.9, weight decay 0.0005; images neither cropped nor mirrored; precision 32-true.'
    """
    images = [f"padded by {config.pad} and cropped"] if config.pad else []
    images += ["mirrored"] if config.flip else []
    augmented = f"images {' and '.join(images)}" if images else "images neither cropped nor mirrored"
    return (
        f"Data: {data_words(config)}. Network: {config.model}. Batches of {config.batch_size}, {config.epochs} "
        f"effective epochs, learning rate {config.learning_rate:g}, times {config.decay_factor:g} at "
        f"{schedule_words(config)}; momentum {config.momentum:g}, weight decay {config.weight_decay:g}; {augmented}; "
        f"precision {config.precision}."
    )
