"""The example scripts of the integrations train on the promised stream, also after resumes."""

from __future__ import annotations

import importlib.metadata
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from integration_support import EXAMPLES, check_log, environment, free_port, run, stream, take_log
from torchvision_operators import __file__ as with_torchvision
from torchvision_operators import is_installed

#: The package that a script needs, and its launches: (step to stop at, processes, options).
Launch = tuple[int, int | None, list[object]]
LAUNCHES: dict[str, tuple[str, list[Launch]]] = {
    "accelerate": ("accelerate", [(7, 1, []), (33, 2, []), (60, None, [])]),
    "ddp": ("torch", [(33, 2, []), (38, 1, []), (50, 2, []), (58, 4, [])]),
    "fabric": ("lightning", [(7, None, ["--devices", 2]), (33, None, ["--devices", 1])]),
    "grain": ("jax", [(7, None, ["--workers", 2]), (33, None, ["--workers", 2])]),
    "keras": ("keras", [(7, None, []), (33, None, [])]),
    "lightning": ("lightning", [(7, None, ["--devices", 1]), (33, None, ["--devices", 2])]),
    "ray": ("ray", [(7, None, []), (33, None, ["--workers", 2])]),
    "tf_data": ("tensorflow", [(7, None, []), (30, None, []), (52, None, [])]),
    "timm": ("timm", [(7, None, []), (30, None, [])]),
    "torchdata": ("torchdata", [(7, None, []), (50, None, []), (53, None, [])]),
    "transformers": (
        "transformers",
        [(7, 2, ["--accumulate", 1]), (33, None, ["--accumulate", 2]), (60, 2, ["--accumulate", 1])],
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LAUNCHES)
def test_a_script_continues_where_it_ended(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package, launches = LAUNCHES[name]
    if not is_installed(package):
        pytest.skip(f"needs {package}")
    if name == "transformers" and importlib.metadata.version("transformers") < "5":
        # Before version 5, it loads the optimizer's state to the device cpu:0, which torch 2.13 refuses.
        pytest.skip("this Trainer cannot resume on several CPU processes")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent from a test
    script = EXAMPLES / f"train_{name}.py"
    start = 0
    for stop, processes, options in launches:
        words = [script, tmp_path, "--until", stop, *options]
        run(*([Path(with_torchvision), *words] if name == "timm" else words), processes=processes)
        check_log(tmp_path, start, stop)
        start = stop


def test_hydra(tmp_path: Path) -> None:
    pytest.importorskip("hydra", reason="needs Hydra: pip install hydra-core")
    script, run_folder = EXAMPLES / "train_hydra.py", f"hydra.run.dir={tmp_path / 'hydra'}"
    for start, stop in ((0, 7), (7, 30), (30, 52)):
        run(script, f"folder={tmp_path}", f"until={stop}", run_folder)
        check_log(tmp_path, start, stop)
    with pytest.raises(AssertionError, match="seed is 3 in the state but 4 here"):
        run(script, f"folder={tmp_path}", "until=60", "sampler.seed=4", run_folder)


def finish(commands: list[tuple[list[object], dict[str, str]]]) -> None:
    """Run commands at the same time, each with its own environment variables, and wait for all."""
    processes = [
        subprocess.Popen(
            list(map(str, command)),
            env=environment(**variables),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for command, variables in commands
    ]
    for process in processes:
        output, _ = process.communicate(timeout=200)
        assert process.returncode == 0, output


@pytest.mark.slow
def test_two_agents_of_torchrun(tmp_path: Path) -> None:
    """Simulate two machines on one."""
    rendezvous = ["--rdzv-backend=c10d", f"--rdzv-endpoint=127.0.0.1:{free_port()}", "--rdzv-id=7"]
    agent = ["-m", "torch.distributed.run", "--nnodes=2", "--nproc-per-node=1", *rendezvous]
    finish([([sys.executable, *agent, EXAMPLES / "train_ddp.py", tmp_path, "--until", 33], {})] * 2)
    check_log(tmp_path, 0, 33)


@pytest.mark.slow
def test_the_variables_of_slurm(tmp_path: Path) -> None:
    """As in the script of the page: srun starts one process per rank, and SLURM's variables give the rank."""
    line = 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS; exec "$@"'
    page = EXAMPLES.parent.parent / "docs" / "integrations" / "many_machines.md"
    assert line in page.read_text()
    command = ["bash", "-c", line, "task", sys.executable, EXAMPLES / "train_ddp.py", tmp_path, "--until", 12]
    common = {"SLURM_NTASKS": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [{"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), **common} for rank in range(2)]
    finish([(command, rank) for rank in ranks])
    check_log(tmp_path, 0, 12)


class Ranks:
    """The processes of one launch, which can be killed without warning."""

    def __init__(self, folder: Path, world: int, workers: int) -> None:
        port = str(free_port())
        command = [
            sys.executable,
            str(EXAMPLES / "train_ddp.py"),
            str(folder),
            "--until=1000000",
            f"--workers={workers}",
        ]
        self.ranks = [
            subprocess.Popen(
                command,
                env=environment(RANK=str(rank), WORLD_SIZE=str(world), MASTER_ADDR="127.0.0.1", MASTER_PORT=port),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for rank in range(world)
        ]

    def kill_after(self, folder: Path, steps: int) -> None:
        file, limit = folder / "rank0.jsonl", time.monotonic() + 300
        while not file.exists() or file.read_bytes().count(b"\n") < steps:
            assert time.monotonic() < limit
            assert all(rank.poll() is None for rank in self.ranks), "a rank died by itself"
            time.sleep(0.01)
        for rank in random.sample(self.ranks, len(self.ranks)):
            rank.send_signal(signal.SIGKILL)
        for rank in self.ranks:
            rank.wait()


@pytest.mark.slow
def test_kills_and_resumes_at_other_world_sizes(tmp_path: Path) -> None:
    """Every launch is killed at a random point; the next one has other numbers of processes and workers."""
    choose = random.Random(5)
    trained, world = 0, 1
    for _ in range(5):
        world = choose.choice([size for size in (1, 2, 4) if size != world])
        launch = Ranks(tmp_path, world, workers=choose.choice([0, 1, 2]))
        launch.kill_after(tmp_path, choose.randrange(7, 60))
        log = take_log(tmp_path)
        steps = list(log)
        # It continues from the last checkpoint: it may repeat steps, but skips none.
        assert steps == list(range(steps[0], steps[-1] + 1))
        assert 0 <= steps[0] <= trained
        assert list(log.values()) == stream(steps[0], steps[-1] + 1)
        # One rank may be a step ahead of the others' logs, and the checkpoint may hold that step.
        assert steps[-1] + 1 >= trained - 5
        trained = steps[-1] + 2
    assert trained > 40
