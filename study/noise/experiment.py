"""One run of the experiment: train a network to a minimum, run SGD around it with every order, write the record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from replenish.draws import derived_seed
from replenish.lab import machine
from replenish.lab.atomic_files import write_atomically
from study.noise.plateau import Plateau, find_plateau, problem_of
from study.noise.setting import ARMS, Setting
from study.noise.sgd_variance import variances


def run_noise(
    name: str,
    setting: Setting,
    seed: int,
    folder: Path,
    command: str,
    progress: Callable[[float], object] = lambda done: None,
) -> Path:
    """Make a run and write its record, unless the record exists; return the record's path.

    Raises:
        ValueError: The record exists, but was made with another setting.
    """
    path = folder / f"{name.replace('/', '-')}-seed{seed}.json"
    if path.exists():
        if json.loads(path.read_text())["setting"] != setting.config():
            raise ValueError(f"{path} was made with another setting; choose another folder for runs")
        return path
    folder.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    began, used = time.monotonic(), time.process_time()
    found = measure(setting, seed, progress)
    record = {
        "experiment": name,
        "seed": seed,
        "setting": setting.config(),
        **found,
        "command": command,
        "commit": machine.commit(),
        "machine": machine.describe(),
        "versions": machine.versions(),
        "seconds": round(time.monotonic() - began, 1),
        "processor_seconds": round(time.process_time() - used, 1),
    }
    write_atomically(path, (json.dumps(record, indent=1) + "\n").encode())
    return path


def measure(setting: Setting, seed: int, progress: Callable[[float], object] = lambda done: None) -> dict[str, Any]:
    """Return the record of a run: the minimum, and the variances along chosen directions for each learning rate."""
    problem = problem_of(setting)
    plateau = find_plateau(problem, seed)
    chosen = [_directions(setting, plateau, rate) for rate in setting.learning_rates]
    every = np.unique(np.concatenate(chosen))
    trainings = [
        (rate, arm.make(setting.num_samples, setting.batch_size, derived_seed(seed, "noise", number, name, repeat)))
        for number, rate in enumerate(setting.learning_rates)
        for name, arm in ARMS.items()
        for repeat in range(setting.repeats)
    ]
    found = variances(problem, plateau, plateau.directions[:, every], trainings, setting, progress).numpy()
    found = found.reshape(len(setting.learning_rates), len(ARMS), setting.repeats, len(every)).mean(axis=2)
    curvatures = plateau.curvatures.numpy()
    return {
        "plateau": {
            "weights": len(curvatures),
            "loss": plateau.loss,
            "gradient": plateau.gradient,
            "error": plateau.error,
            "curvatures": _rounded(np.quantile(curvatures, [0, 0.25, 0.5, 0.75, 1])),
        },
        "rates": [
            {
                "learning_rate": rate,
                "curvatures": _rounded(curvatures[places]),
                "kappas": _rounded(_kappas(setting, rate, curvatures[places])),
                "variances": {
                    name: _rounded(variance[np.searchsorted(every, places)])
                    for name, variance in zip(ARMS, by_arm, strict=True)
                },
            }
            for rate, places, by_arm in zip(setting.learning_rates, chosen, found, strict=True)
        ],
    }


def _directions(setting: Setting, plateau: Plateau, rate: float) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the eigenvectors to measure: some from each band of kappa, evenly from flat to sharp."""
    kappas = _kappas(setting, rate, plateau.curvatures.numpy())
    chosen = []
    for low, high in zip(setting.kappas, setting.kappas[1:], strict=False):
        inside = np.flatnonzero((kappas >= low) & (kappas < high))
        count = min(len(inside), setting.directions)
        chosen.append(inside[np.linspace(0, len(inside) - 1, count).round().astype(int)])
    return np.concatenate(chosen)


def _kappas(setting: Setting, rate: float, curvatures: Any) -> Any:
    return rate * curvatures * setting.steps_per_epoch


def _rounded(values: Any) -> list[float]:
    return [float(f"{value:.6g}") for value in values]
