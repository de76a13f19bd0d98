"""Experiments by name, each a whole config: the paper's and the decisive one.

`find` returns the configs of a name or a group of names (`table3`, `table2/wrn-28-10`, `decisive`) at a scale.
Two names of the same config share their runs: figure 2 shows the runs of table 3.
"""

from __future__ import annotations

import difflib

from replenish import checks
from replenish.lab.config import RunConfig
from replenish.lab.experiments.published import DECISIVE, EXPERIMENTS, Stage, stage_of
from replenish.lab.experiments.scales import SCALES

__all__ = ["ADDED", "EXPERIMENTS", "SCALES", "Stage", "configs", "decisive_configs", "find", "names", "stage_of"]

#: Experiments that a caller adds before it calls `find`. They have their own size: only the scale `digits` changes it.
ADDED: dict[str, RunConfig] = {}


def configs(scale: str = "full") -> dict[str, RunConfig]:
    """Return the config of every experiment of the paper at a scale, with seed 0."""
    checks.one_of("scale", scale, SCALES)
    return {name: SCALES[scale](config) for name, config in EXPERIMENTS.items()}


def decisive_configs(scale: str = "full") -> dict[str, RunConfig]:
    """Return the runs of the decisive experiment's stages; scales other than `full` are for trials."""
    return {name: SCALES[scale](config) for name, config in DECISIVE.items()}


def find(name: str, scale: str = "full") -> dict[str, RunConfig]:
    """Return the experiments of a name, or else of a group, or else all whose names begin so.

    Raises:
        ValueError: There is none; the message names the nearest.

    Example:
        >>> list(find("figure2", scale="mini"))
        ['figure2/wrn-60-120-160', 'figure2/wrn-120-150-175', 'figure2/wrn-srs-120-150-175']
    """
    wanted = name.strip("/")
    added = {known: SCALES[scale](config) for known, config in ADDED.items()} if scale == "digits" else ADDED
    at_scale = {**configs(scale), **decisive_configs(scale), **added}
    found = {known: config for known, config in at_scale.items() if known == wanted or known.startswith(f"{wanted}/")}
    if not found and wanted:
        found = {known: config for known, config in at_scale.items() if known.startswith(wanted)}
    if not found:
        nearest = difflib.get_close_matches(wanted, names(), n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(nearest)}? " if nearest else ""
        raise ValueError(f"there is no experiment named {name!r}; {hint}`replenish list` shows them all")
    return found


def names() -> list[str]:
    """Return every name that `find` knows: the experiments, and the groups that they are in."""
    known = (*EXPERIMENTS, *DECISIVE, *ADDED)
    return sorted({"/".join(name.split("/")[:depth]) for name in known for depth in (1, 2, 3)})
