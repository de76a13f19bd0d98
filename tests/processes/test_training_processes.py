"""Processes that are killed, that share a run, or that compete for one."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import pytest
import torch
from small_runs import TINY, Plain, blobs, dropping, lines, replenish

from replenish.lab import train
from replenish.lab.runs import RunFolder

ROW = "table3/wrn-srs-b64-120-150-175"

#: Options of a command with two runs, each on two processes.
ON_TWO = "--scale digits --epochs 1 --seeds 1 --devices 2 --accelerator cpu --runs runs"

# -- killed


class Writes:
    """Counts the writes of a process to the disk, and kills the process at one of them."""

    def __init__(self, fatal: int | None = None) -> None:
        self.count, self._fatal = 0, fatal
        self._replace, self._fsync = os.replace, os.fsync

    def replace(self, source: Any, target: Any) -> None:
        self._may_die()
        self._replace(source, target)

    def fsync(self, descriptor: int) -> None:
        self._may_die(descriptor)
        self._fsync(descriptor)

    def _may_die(self, descriptor: int | None = None) -> None:
        self.count += 1
        if self.count == self._fatal:
            if descriptor is not None and stat.S_ISREG(os.fstat(descriptor).st_mode):
                # After a power failure, data that were not flushed may be written in part.
                os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
            os.kill(os.getpid(), signal.SIGKILL)

    def watch_over(self, patch: pytest.MonkeyPatch) -> None:
        patch.setattr(os, "replace", self.replace)
        patch.setattr(os, "fsync", self.fsync)


def train_and_die_writing(folder: str, fatal: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        Writes(fatal).watch_over(patch)
        train(TINY, folder, model=dropping, dataset=blobs())


@pytest.fixture(scope="module")
def processes() -> multiprocessing.context.ForkServerContext:
    """Return a fork server that has imported torch, which takes seconds."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["replenish.lab.training"])
    return context


def ended(process: BaseProcess) -> int | None:
    process.start()
    process.join(300)
    return process.exitcode


@pytest.mark.slow
def test_killed_at_any_write(tmp_path: Path, processes: multiprocessing.context.ForkServerContext) -> None:
    """Kill it at every flush and rename of a file: the config, checkpoints, metrics, the result."""
    writes = Writes()
    with pytest.MonkeyPatch.context() as patch:
        writes.watch_over(patch)
        expected = train(TINY, tmp_path / "whole", model=dropping, dataset=blobs())
    assert writes.count > 25
    for fatal in range(1, writes.count + 1):
        folder = tmp_path / str(fatal)
        died = ended(processes.Process(target=train_and_die_writing, args=(str(folder), fatal)))
        assert died == -signal.SIGKILL
        steps: list[int] = []
        result = train(
            TINY,
            folder,
            model=dropping,
            dataset=blobs(),
            watch=lambda event: steps.append(event["step"]) if event["event"] == "start" else None,  # noqa: B023
        )
        assert result["weights_sha256"] == expected["weights_sha256"], fatal
        assert result["test_error"] == expected["test_error"], fatal
        assert lines(folder) == lines(tmp_path / "whole"), fatal
        # After the writes of the config and the first checkpoint, some progress is always kept.
        assert fatal <= 8 or not steps or steps[0] > 0, fatal
        assert not list(folder.glob("*.new")), fatal


# -- two processes that want the same run


def hold(folder: str, held: Any, release: Any) -> None:
    def watch(event: dict[str, Any]) -> None:
        held.set()
        release.wait(300)

    train(TINY, folder, model=Plain, dataset=blobs(), watch=watch)


def test_a_killed_process_leaves_no_lock(tmp_path: Path, processes: multiprocessing.context.ForkServerContext) -> None:
    held, release = processes.Event(), processes.Event()
    process = processes.Process(target=hold, args=(str(tmp_path), held, release))
    process.start()
    assert held.wait(300)
    process.kill()
    process.join(300)
    assert train(TINY, tmp_path, model=Plain, dataset=blobs())["status"] == "finished"


# -- two processes that share a run

# With several devices, a script starts itself again for every further process.
SCRIPT = '''
import dataclasses, json, os, sys
import torch
sys.path.insert(0, sys.argv[1])
from small_runs import DIGITS, TINY, Plain, blobs
from torch.optim.optimizer import register_optimizer_step_post_hook

from replenish.lab import Hardware, train

folder, devices = sys.argv[2], int(sys.argv[3])
rank = int(os.environ.get("LOCAL_RANK", "0"))
hardware = Hardware("cpu", devices)

class Told(Plain):
    """Keeps its inputs."""
    def __init__(self, bad_step=None):
        super().__init__()
        self.calls, self.bad_step, self.seen = 0, bad_step, []
    def forward(self, images):
        logits = super().forward(images)
        if self.training:
            self.seen.append(images.tolist())
            self.calls += 1
            if self.calls - 1 == self.bad_step:
                logits = logits * float("nan")
        return logits

def told(name, config, dataset, **arguments):
    made = []
    def make():
        made.append(Told(**arguments))
        return made[-1]
    train(config, f"{folder}/{name}", hardware=hardware, model=make, dataset=dataset)
    with open(f"{folder}/{name}-{int(os.environ.get('LOCAL_RANK', '0'))}.json", "w") as file:
        json.dump(made[0].seen, file)

told("srs", TINY, blobs())
# 58 = 3 * 16 + 10: the last batch of an epoch is smaller.
told("reshuffling", dataclasses.replace(TINY, order="reshuffling", drop_last=False), blobs(train=58))
# Only on the last process, at a step without a measurement.
bad_step = 7 if rank == devices - 1 else None
told("diverging", dataclasses.replace(TINY, epochs=10, decay_epochs=()), blobs(), bad_step=bad_step)
train(dataclasses.replace(DIGITS, model="resnet-8-stochastic-depth", epochs=1, decay_epochs=()), f"{folder}/depth",
      hardware=hardware)
train(TINY, f"{folder}/resumed", hardware=hardware, model=Plain, dataset=blobs())
'''


@pytest.fixture(scope="module")
def one_and_two(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """Run a script with one process and with two. One of its runs was begun in a single process and is resumed."""
    folder = tmp_path_factory.mktemp("processes")
    (folder / "script.py").write_text(SCRIPT)
    folders = {}
    for devices in (1, 2):
        folders[devices] = folder / str(devices)
        folders[devices].mkdir()
        stop_after_an_epoch(folders[devices] / "resumed")
        arguments = [str(Path(__file__).parents[1] / "lab"), str(folders[devices]), str(devices)]
        done = subprocess.run(
            [sys.executable, str(folder / "script.py"), *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
    return folders


def stop_after_an_epoch(folder: Path) -> None:
    def watch(event: dict[str, Any]) -> None:
        if event["event"] == "epoch":
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        train(TINY, folder, model=Plain, dataset=blobs(), watch=watch)


def result_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "result.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["srs", "reshuffling"])
def test_two_processes_see_the_samples_of_one_at_the_same_steps(one_and_two: dict[int, Path], name: str) -> None:
    alone = json.loads((one_and_two[1] / f"{name}-0.json").read_text())
    ranks = [json.loads((one_and_two[2] / f"{name}-{rank}.json").read_text()) for rank in (0, 1)]
    assert len(alone) == TINY.epochs * 4
    assert [first + second for first, second in zip(*ranks, strict=True)] == alone
    assert all(len(first) == len(second) for first, second in zip(*ranks, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["srs", "reshuffling", "resumed"])
def test_two_processes_compute_the_same_as_one(one_and_two: dict[int, Path], name: str) -> None:
    one, two = (result_of(one_and_two[devices] / name) for devices in (1, 2))
    assert (one["hardware"]["processes"], two["hardware"]["processes"]) == (1, 2)
    assert two["status"] == "finished"
    for alone, together in zip(lines(one_and_two[1] / name), lines(one_and_two[2] / name), strict=True):
        assert together == pytest.approx(alone, rel=1e-4)
    weights = [
        torch.load(one_and_two[devices] / name / "checkpoint.pt", weights_only=True)["model"] for devices in (1, 2)
    ]
    for key, value in weights[0].items():
        torch.testing.assert_close(weights[1][key], value, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_two_processes_name_the_step_that_broke(one_and_two: dict[int, Path]) -> None:
    for devices in (1, 2):
        result = result_of(one_and_two[devices] / "diverging")
        assert result["status"] == "diverged"
        assert result["message"].startswith("the loss is not a finite number at step 7 (")
        assert str(TINY.build_order(64).batch(7).tolist()) in result["message"]


@pytest.mark.slow
def test_stochastic_depth_trains_on_two_processes(one_and_two: dict[int, Path]) -> None:
    for devices in (1, 2):
        result = result_of(one_and_two[devices] / "depth")
        assert (result["status"], result["steps"], result["hardware"]["processes"]) == ("finished", 23, devices)


@pytest.fixture(scope="module")
def command_on_two(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Run a command with two runs, each on two processes, under torchrun."""
    folder = tmp_path_factory.mktemp("torchrun")
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone", "-m"]
    done = subprocess.run(
        [*torchrun, "replenish", "run", "decisive", *ON_TWO.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    return folder / "runs", done


@pytest.mark.slow
def test_torchrun(command_on_two: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    runs, done = command_on_two
    assert done.returncode == 0, done.stderr
    results = [result_of(path.parent) for path in runs.glob("*/*/result.json")]
    assert [(result["status"], result["hardware"]["processes"]) for result in results] == [("finished", 2)] * 2
    assert done.stdout.count("runs have ended") == 1  # only the first process prints


@pytest.mark.slow
def test_the_command_starts_its_processes_by_itself(
    tmp_path: Path, command_on_two: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    """It has several runs, which end in the same weights as under torchrun."""
    done = replenish("run", "decisive", *ON_TWO.split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("runs have ended") == 1
    assert done.stderr.count("test error") == 2
    for path in (tmp_path / "runs").glob("*/*"):
        result, other = result_of(path), result_of(command_on_two[0] / path.parent.name / path.name)
        assert result["hardware"]["processes"] == 2
        assert result["weights_sha256"] == other["weights_sha256"]


@pytest.mark.slow
def test_two_processes_refuse_in_one_sentence(
    command_on_two: tuple[Path, subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Another process is training in the folder."""
    runs, _ = command_on_two
    folder = next(runs.glob("*srs*/seed0"))
    held = tmp_path / "runs" / folder.parent.name / "seed0"
    with RunFolder(held).owned_by(RunFolder(folder).config()):
        done = replenish("run", "decisive/srs", *ON_TWO.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr.count("another process is training in") == 1
    assert "Traceback" not in done.stderr
