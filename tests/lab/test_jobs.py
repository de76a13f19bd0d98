"""Jobs: planned from configs and seeds, plain enough to be sent anywhere."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from small_runs import TINY

from replenish.lab import Hardware
from replenish.lab.jobs import Job, job_from, plan
from replenish.lab.runs import RunFolder

OTHER = dataclasses.replace(TINY, order="reshuffling")


def test_all_configs_of_a_seed_come_before_the_next_seed(tmp_path: Path) -> None:
    jobs = plan([TINY, OTHER], [0, 3], tmp_path)
    assert [(job.config.order, job.config.seed) for job in jobs] == [
        ("srs", 0),
        ("reshuffling", 0),
        ("srs", 3),
        ("reshuffling", 3),
    ]
    assert [job.folder for job in jobs] == [
        tmp_path / config.slug / f"seed{seed}" for seed in (0, 3) for config in (TINY, OTHER)
    ]
    assert list(tmp_path.iterdir()) == []  # a plan writes nothing


def test_a_job_survives_json(tmp_path: Path) -> None:
    job = Job(OTHER, tmp_path / "run", Hardware("cpu", 2, threads=2), tensorboard=True, command="replenish run 'a b'")
    assert job_from(json.loads(json.dumps(job.to_dict()))) == job


def test_a_folder_of_another_config_is_refused_before_anything_runs(tmp_path: Path) -> None:
    RunFolder(tmp_path / TINY.slug / "seed0").claim(TINY)
    assert len(plan([TINY], [0, 1], tmp_path)) == 2
    RunFolder(tmp_path / TINY.slug / "seed1").claim(TINY)  # of seed 0
    with pytest.raises(ValueError, match="of another config: seed is 0 there and 1 here$"):
        plan([TINY], [0, 1], tmp_path)
