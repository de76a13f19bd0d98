"""A run's folder and its jobs: no half-written files, damage is found, and no other run is overwritten."""

from __future__ import annotations

import dataclasses
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import TINY, same

from replenish.lab import Hardware
from replenish.lab.atomic_files import write_atomically, write_flushed
from replenish.lab.jobs import Job, job_from, plan
from replenish.lab.runs.checkpoints import CHECKPOINT, PREVIOUS_CHECKPOINT
from replenish.lab.runs.folder import CONFIG, METRICS, RESULT, RunFolder

# ---- The folder ----


NO_SPACE = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def checkpoint(step: int) -> dict[str, Any]:
    """Return a checkpoint with the same kinds of values as the trainer's."""
    rng = torch.Generator().manual_seed(step)
    return {
        "version": 1,
        "step": step,
        "sampler": {"step": step, "stream": "v1"},
        "model": {"weight": torch.randn(5, 3, generator=rng), "count": torch.tensor(step)},
        "optimizer": {
            "state": {0: {"momentum_buffer": torch.randn(5, 3, generator=rng)}},
            "param_groups": [{"lr": 0.1}],
        },
        "rng": [torch.randint(0, 255, (40,), generator=rng, dtype=torch.uint8)],
        "metrics": [{"epoch": 1, "test_error": 50.5}],
    }


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


@pytest.fixture
def two_saved(folder: RunFolder) -> RunFolder:
    folder.checkpoints.save(checkpoint(1))
    folder.checkpoints.save(checkpoint(2))
    return folder


def names(folder: RunFolder) -> set[str]:
    return {path.name for path in folder.path.iterdir()}


def full_disk(monkeypatch: pytest.MonkeyPatch, *, failures: int = 10**9) -> None:
    """Make the first `failures` calls of fsync fail with a full disk."""
    left = iter(range(failures))
    honest = os.fsync

    def fsync(descriptor: int) -> None:
        if next(left, None) is not None:
            raise NO_SPACE
        honest(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)


# -- config.json, result.json, metrics.jsonl


def test_a_folder_belongs_to_one_config(tmp_path: Path) -> None:
    path = tmp_path / "not" / "yet" / "there"
    with RunFolder(path).owned_by(TINY):
        assert json.loads((path / CONFIG).read_text()) == TINY.to_dict()
        assert RunFolder(path).config() == TINY
    before = (path / CONFIG).read_bytes()
    other = dataclasses.replace(TINY, learning_rate=0.3, seed=5)
    with (
        pytest.raises(ValueError, match="learning_rate is 0.05 there and 0.3 here; seed is 0 there and 5 here$"),
        RunFolder(path).owned_by(other),
    ):
        pass
    assert (path / CONFIG).read_bytes() == before
    with RunFolder(path).owned_by(TINY):  # a refusal leaves no lock behind
        pass


@pytest.mark.parametrize("left", [CHECKPOINT, RESULT])
def test_a_run_without_its_config_is_refused(folder: RunFolder, left: str) -> None:
    (folder.path / left).write_bytes(b"{}")
    with pytest.raises(ValueError, match="holds a run without its config.json; give another folder"):
        folder.claim(TINY)
    assert names(folder) == {left}


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe\x00", b"[]", b"3", b"null", b"{}"])
def test_a_damaged_config_is_a_sentence_that_names_the_file(folder: RunFolder, content: bytes) -> None:
    (folder.path / CONFIG).write_bytes(content)
    with pytest.raises(ValueError, match=r"config\.json") as caught:
        folder.claim(TINY)
    assert "\n" not in str(caught.value)


def test_a_file_removed_after_the_end_is_named(folder: RunFolder) -> None:
    folder.write_metrics([{"epoch": 1, "test_error": 50.5}])
    folder.write_result({"status": "finished", "test_error": 50.5})
    (folder.path / METRICS).unlink()
    with pytest.raises(ValueError, match=rf"^{METRICS} in .* was changed after the run had ended"):
        folder.result()


def test_a_second_owner_is_refused(folder: RunFolder) -> None:
    with folder.owned_by(TINY):
        refused = pytest.raises(BlockingIOError, match="another process is training in .*; wait for it or stop it")
        with refused, RunFolder(folder.path).owned_by(TINY):
            pass
    with RunFolder(folder.path).owned_by(TINY):
        pass


def test_a_failed_atomic_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"before")
    full_disk(monkeypatch)
    with pytest.raises(OSError, match="the disk is full: .*file could not be written; .*run the same command again"):
        write_atomically(path, b"after")
    assert [(found.name, found.read_bytes()) for found in tmp_path.iterdir()] == [("file", b"before")]


# -- checkpoints


def test_two_checkpoints_are_kept(folder: RunFolder) -> None:
    assert folder.checkpoints.load() == (None, [])
    for step in (1, 2, 3):
        folder.checkpoints.save(checkpoint(step))
    loaded, faults = folder.checkpoints.load()
    assert same(loaded, checkpoint(3))
    assert faults == []
    previous = torch.load(folder.path / PREVIOUS_CHECKPOINT, weights_only=True)
    assert same(previous, checkpoint(2))
    assert names(folder) == {CHECKPOINT, PREVIOUS_CHECKPOINT}


def damaged(whole: bytes) -> Iterator[bytes]:
    """Yield damaged contents: altered bytes (each one in the table of contents at the end), zeros, truncations."""
    for place in {*range(0, len(whole), 5), *range(len(whole) - 1500, len(whole))}:
        yield whole[:place] + bytes([whole[place] ^ (1 << place % 8)]) + whole[place + 1 :]
    for start in range(0, len(whole), 64):
        if any(whole[start : start + 512]):
            yield whole[:start] + bytes(min(512, len(whole) - start)) + whole[start + 512 :]
    for length in {*range(0, len(whole), 101), *range(len(whole) - 100, len(whole))}:
        yield whole[:length]


def test_every_altered_or_truncated_checkpoint_is_detected(folder: RunFolder) -> None:
    """Torch's format has checksums for its parts, but not for its table of contents."""
    folder.checkpoints.save(checkpoint(2))
    path = folder.path / CHECKPOINT
    for content in damaged(path.read_bytes()):
        path.write_bytes(content)
        loaded, (fault,) = folder.checkpoints.load()
        assert loaded is None
        assert fault == f"{path} is damaged (ValueError: its checksum is another); left out"


def test_after_a_damaged_checkpoint_the_previous_one_is_used(two_saved: RunFolder) -> None:
    path = two_saved.path / CHECKPOINT
    for content in list(damaged(path.read_bytes()))[::500]:
        path.write_bytes(content)
        loaded, faults = two_saved.checkpoints.load()
        assert len(faults) == 1
        assert same(loaded, checkpoint(1))


def test_a_checkpoint_that_would_run_code_is_not_loaded(two_saved: RunFolder, tmp_path: Path) -> None:
    class Hostile:
        def __reduce__(self) -> tuple[Any, ...]:
            return os.mkdir, (str(tmp_path / "owned"),)

    two_saved.checkpoints.save({"version": 1, "model": Hostile()})
    loaded, faults = two_saved.checkpoints.load()
    assert same(loaded, checkpoint(2))
    assert "UnpicklingError" in faults[0]
    assert not (tmp_path / "owned").exists()


def test_a_damaged_checkpoint_never_replaces_the_previous_one(
    two_saved: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a resume from the previous checkpoint, every moment of the next save leaves a valid checkpoint."""
    (two_saved.path / CHECKPOINT).write_bytes(b"damaged")
    assert same(two_saved.checkpoints.load()[0], checkpoint(1))
    honest = os.replace

    def replace(source: Path, target: Path) -> None:
        honest(source, target)
        loaded, _ = RunFolder(two_saved.path).checkpoints.load()  # the state if the process were killed now
        assert loaded is not None

    monkeypatch.setattr(os, "replace", replace)
    two_saved.checkpoints.save(checkpoint(3))
    assert same(two_saved.checkpoints.load(), (checkpoint(3), []))
    (two_saved.path / CHECKPOINT).unlink()
    assert same(two_saved.checkpoints.load(), (checkpoint(1), []))


# -- a full disk


def test_a_full_disk_loses_no_finished_epoch(two_saved: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch)
    with pytest.raises(OSError, match="the disk is full: .*checkpoint.pt could not be written; finished work is kept"):
        two_saved.checkpoints.save(checkpoint(3))
    assert same(two_saved.checkpoints.load(), (checkpoint(2), []))
    assert not [name for name in names(two_saved) if name.endswith(".new")]  # it would take space on the full disk


def test_the_older_checkpoint_is_removed_to_make_room(two_saved: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    full_disk(monkeypatch, failures=1)
    two_saved.checkpoints.save(checkpoint(3))
    assert same(two_saved.checkpoints.load(), (checkpoint(3), []))
    previous = torch.load(two_saved.path / PREVIOUS_CHECKPOINT, weights_only=True)
    assert same(previous, checkpoint(2))


def test_a_disk_that_fills_up_in_the_middle_of_a_file(two_saved: RunFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a real limit: a file may not grow beyond half of a checkpoint."""
    resource = pytest.importorskip("resource")
    import signal

    size = (two_saved.path / CHECKPOINT).stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, before[1]))
    try:
        with pytest.raises(OSError, match="checkpoint.pt could not be written"):
            two_saved.checkpoints.save(checkpoint(3))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, handler)
    assert same(two_saved.checkpoints.load(), (checkpoint(2), []))
    assert names(two_saved) == {CHECKPOINT, PREVIOUS_CHECKPOINT}


def test_a_planted_link_is_not_followed(tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "config.json"
    victim.write_text("mine")
    (tmp_path / "config.json.new").symlink_to(victim)
    write_atomically(target, b"new")
    assert (victim.read_text(), target.read_text(), target.is_symlink()) == ("mine", "new", False)
    link = tmp_path / "link"
    link.symlink_to(victim)
    write_flushed(link, b"new")
    assert (victim.read_text(), link.read_text()) == ("mine", "new")


# ---- Jobs from configs and seeds ----


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
    RunFolder(tmp_path / TINY.slug / "seed1").claim(TINY)  # has seed 0
    with pytest.raises(ValueError, match="of another config: seed is 0 there and 1 here$"):
        plan([TINY], [0, 1], tmp_path)
