"""Part S's table in docs/second_study.md: the effect of each deliberate fault, and its predictions for the paper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean

from replenish.lab.show import Column, Table
from replenish.lab.show.markdown import table_lines
from replenish.lab.show.table import NOTHING
from study.second.faults import SEEDS
from study.second.records import effect, mean
from study.second.rules import paired

#: The predictions of each fault, stated beforehand: whether the error on CIFAR-10 falls too, and what else changes.
PREDICTIONS = {
    "coarse labels": ("no, it has no coarse labels", "training loss begins near ln 20 = 3.0, not ln 100 = 4.6"),
    "scored on the coarse labels": ("no, it has no coarse labels", "every row scored so falls alike"),
    "test images in the pool": ("yes, to near 0", "the more a network memorises, the larger the gain"),
    "batch norm in training mode, shuffled test set": ("yes, little", "every row with batch norm changes alike"),
    "batch norm in training mode, sorted test set": ("yes", "every row with batch norm changes alike"),
    "best instead of last epoch": ("yes, little", "noisier runs gain more"),
    "top-2 counted": ("yes, by more than half", "every row scored so falls alike"),
    "twice the steps": ("yes, little", "published runs of 1,800 epochs gain little"),
    "augmentation drawn once": ("no, it raises the error", "training loss falls sooner"),
}

#: Test errors in percent by what is scored, then by seed.
Scores = Mapping[str, Mapping[str, float]]


def read_scores(folder: Path) -> Scores:
    """Return the scores in the folder of the study's records; an empty dict without scores."""
    path = folder / "S" / "scores.json"
    return json.loads(path.read_text()) if path.exists() else {}


def complete(scores: Scores) -> bool:
    """Return whether every fault has a score at every seed."""
    return all(set(scores.get(name, ())) == {str(seed) for seed in SEEDS} for name in ("honest", *PREDICTIONS))


def parts(scores: Scores) -> dict[str, str]:
    """Return part S's generated parts as Markdown, by name."""
    if not complete(scores):
        ended = sum(set(scores.get(name, ())) == {str(seed) for seed in SEEDS} for name in PREDICTIONS)
        return {
            "faults": f"{ended} of the {len(PREDICTIONS)} faults have been scored. The table is shown when all have."
        }
    honest = fmean(scores["honest"].values())
    ordered = sorted(PREDICTIONS, key=lambda name: fmean(scores[name].values()))
    columns = (
        Column("fault", lambda name: name, numeric=False),
        Column("test error, %", lambda name: mean(_by_seed(scores, name), 1)),
        Column("minus the honest runs, points", lambda name: _difference(scores, name)),
        Column(
            "relative",
            lambda name: f"{100 * (fmean(scores[name].values()) / honest - 1):+.0f} %".replace("-", "\u2212"),
        ),
        Column("would CIFAR-10 fall too?", lambda name: PREDICTIONS.get(name, ("", ""))[0] or NOTHING, numeric=False),
        Column("what else it predicts", lambda name: PREDICTIONS.get(name, ("", ""))[1] or NOTHING, numeric=False),
    )
    rows = [("honest", "honest"), *((name, name) for name in ordered)]
    return {"faults": "\n".join(table_lines(Table("faults", "Part S", columns, rows)))}


def _by_seed(scores: Scores, name: str) -> list[float]:
    return [scores[name][str(seed)] for seed in SEEDS]


def _difference(scores: Scores, name: str) -> str:
    return NOTHING if name == "honest" else effect(paired(_by_seed(scores, name), _by_seed(scores, "honest")), 1)
