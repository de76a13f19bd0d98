"""Run folders with known numbers, in the trainer's format."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from replenish.lab import paper
from replenish.lab.config import RunConfig

EPOCHS = 40


def mini_config(**changes: Any) -> RunConfig:
    base = RunConfig(
        dataset="cifar100",
        images_per_class=50,
        image_size=16,
        pad=2,
        model="wrn-10-1",
        order="reshuffling",
        epochs=EPOCHS,
    )
    return dataclasses.replace(base, **changes)


def experiments() -> dict[str, dict[str, RunConfig]]:
    """Return configs under the names of the paper's experiments, at two scales; the tests never run the full one."""
    return {
        "full": _named(RunConfig(order="reshuffling")),
        "mini": _named(mini_config()),
    }


def _named(base: RunConfig) -> dict[str, RunConfig]:
    def scheduled(decays: tuple[int, ...], **changes: Any) -> RunConfig:
        scaled = tuple(epoch * base.epochs / 200 for epoch in decays)
        return dataclasses.replace(base, decay_epochs=scaled, **changes)

    short: dict[str, Any] = {"decays": (60, 120, 160), "decay_factor": 0.2}
    configs = {
        "table3/wrn-b128-60-120-160": scheduled(**short, batch_size=128),
        "table3/wrn-b64-60-120-160": scheduled(**short),
        "table3/wrn-b64-120-150-175": scheduled((120, 150, 175)),
        "table3/wrn-srs-b64-120-150-175": scheduled((120, 150, 175), order="srs"),
        "figure2/wrn-60-120-160": scheduled(**short),
        "figure2/wrn-120-150-175": scheduled((120, 150, 175)),
        "figure2/wrn-srs-120-150-175": scheduled((120, 150, 175), order="srs"),
        "figure3/srs-60-120-160": scheduled((60, 120, 160), order="srs"),
        "figure3/srs-90-135-168": scheduled((90, 135, 168), order="srs"),
        "figure3/srs-120-150-175": scheduled((120, 150, 175), order="srs"),
        "figure3/srs-150-175-190": scheduled((150, 175, 190), order="srs"),
    }
    for row in paper.TABLE2:
        order = "srs" if row.name.endswith("-srs") else "reshuffling"
        model = base.model if row.name.startswith("wrn-28-10") else row.name.removesuffix("-srs")
        for data in paper.TABLE1:
            changes = {"dataset": data.name, "order": order, "model": model}
            configs[f"table2/{row.name}/{data.name}"] = scheduled((120, 150, 175), **changes)
    return configs


def write_run(
    root: Path,
    config: RunConfig,
    error: float | None = 60.0,
    *,
    status: str | None = "finished",
    epochs: int | None = None,
    result: Mapping[str, Any] | None = None,
    folder: str | None = None,
) -> Path:
    """Write a run whose last test error is `error`. Status None is for a run that has not ended."""
    path = root / (folder or f"{config.slug}/seed{config.seed}")
    path.mkdir(parents=True)
    (path / "config.json").write_text(json.dumps(config.to_dict(), indent=2))
    lines = metrics(config, 60.0 if error is None else error, config.epochs if epochs is None else epochs)
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (path / ".lock").touch()
    (path / "checkpoint.pt").write_bytes(b"no JSON at all")
    if status is None:
        return path
    best = min(lines, key=lambda line: line["test_error"])
    ended = {
        "status": status,
        "test_error": error if status == "finished" else None,
        "best_test_error": best["test_error"],
        "best_epoch": best["epoch"],
        "train_loss": lines[-1]["train_loss"],
        "test_loss": lines[-1]["test_loss"],
        "steps": lines[-1]["step"],
        "epochs": config.epochs,
        "seconds": 6.0 * len(lines),
        "weights_sha256": hashlib.sha256(f"{config}{error}".encode()).hexdigest(),
        "parameters": 78_330,
        "data": {"name": config.dataset, "classes": 100, "train_images": 5000, "test_images": 10_000},
        "versions": {"replenish": "0.1", "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"},
        "commit": "abc1234",
        "command": "replenish run table3 --scale mini --seeds 5",
        "machine": {"processor": "A processor", "cores": 2, "system": "Linux x86_64"},
        "hardware": {
            "accelerator": "cpu",
            "devices": 1,
            "num_nodes": 1,
            "threads": 1,
            "compile": False,
            "processes": 1,
        },
        "message": None if status == "finished" else "the loss was not a number at step 300",
        **(result or {}),
    }
    (path / "result.json").write_text(json.dumps(ended, indent=2))
    return path


def metrics(config: RunConfig, error: float, epochs: int) -> list[dict[str, Any]]:
    """Return curves that end at `error`. They fall with the epochs, and at every drop of the learning rate."""
    lines = []
    for epoch in range(1, epochs + 1):
        passed = sum(epoch > drop for drop in config.decays)
        left = math.exp(-epoch / (0.12 * config.epochs)) * 32 + 2.4 * (len(config.decays) - passed)
        ripple = 0.5 * math.sin(1.7 * epoch + config.seed) * (1 - epoch / config.epochs)
        wrong = error if epoch == config.epochs else error + left + ripple + 0.04
        lines.append(
            {
                "epoch": epoch,
                "step": 79 * epoch,
                "learning_rate": config.learning_rate * config.decay_factor**passed,
                "train_loss": round(0.035 * wrong + 0.02 * left, 4),
                "test_loss": round(0.04 * wrong, 4),
                "test_error": round(wrong, 4),
                "unseen": round(5000 * math.exp(-epoch)),
                "seconds": 6.0 * epoch,
            }
        )
    return lines


#: Errors of five seeds for each row of table 3.
TABLE3_ERRORS = {
    "table3/wrn-b128-60-120-160": (62.1, 61.5, 62.9, 61.8, 62.4),
    "table3/wrn-b64-60-120-160": (60.9, 60.2, 61.4, 60.5, 61.0),
    "table3/wrn-b64-120-150-175": (60.0, 60.6, 61.2, 59.8, 60.4),
    "table3/wrn-srs-b64-120-150-175": (60.6, 60.4, 61.9, 60.5, 60.6),
}


def write_table3(root: Path) -> None:
    """Write five finished seeds of each row of table 3, at the mini scale."""
    for name, errors in TABLE3_ERRORS.items():
        for seed, error in enumerate(errors):
            write_run(root, experiments()["mini"][name].with_seed(seed), error)
