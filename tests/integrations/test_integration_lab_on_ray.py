"""The lab's runs on a Ray of this machine: processes of their own, lost and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from integration_support import environment, free_port
from launching import CONFIG, Heard, at_step, in_this_process, signal_here, wait_for, weights

import replenish.lab.launch.ray
from replenish.lab.comparing.command import compare_commands
from replenish.lab.comparing.metric import OutputMetric
from replenish.lab.comparing.question import Question
from replenish.lab.config import Hardware, RunConfig
from replenish.lab.jobs import Execution, plan
from replenish.lab.launch import launch
from replenish.lab.launch.supervise import PROGRESS
from replenish.lab.runs.folder import METRICS, RunFolder

ray = pytest.importorskip("ray", reason="Ray is not installed: pip install 'replenish[ray]'")


TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module", autouse=True)
def local_ray() -> Iterator[None]:
    """One Ray for all tests, since it takes seconds to start; the launcher finds it there."""
    with pytest.MonkeyPatch.context() as variables:
        variables.delenv("RAY_ADDRESS", raising=False)
        variables.setenv("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent from a test
        # Ray's processes find the tests' own modules too.
        own = [str(TESTS / "helpers"), str(TESTS / "integrations")]
        variables.setenv("PYTHONPATH", os.pathsep.join([*own, os.environ.get("PYTHONPATH", "")]))
        ray.init(address="local", num_cpus=2, num_gpus=1, include_dashboard=False, log_to_driver=False)
        yield
        ray.shutdown()


@pytest.mark.slow
def test_runs_end_as_in_this_process_and_are_not_run_again(tmp_path: Path) -> None:
    jobs = plan([CONFIG], [0, 1], tmp_path / "cluster")
    heard = Heard()
    results = launch(jobs, "ray", 2, heard)
    assert weights(results) == in_this_process(CONFIG, [0, 1], tmp_path / "here")
    for place in (0, 1):
        assert heard.kinds(place) == ["start", "epoch", "epoch", "epoch", "end"]
    assert not list(tmp_path.glob(f"*/*/*/{PROGRESS}"))

    again = Heard()
    assert launch(jobs, "ray", 2, again) == results
    assert again.kinds(0) == again.kinds(1) == ["end"]


def after_30_steps(act: Callable[[], None], once: Path, patch: pytest.MonkeyPatch) -> None:
    """Have the run's process do something in the middle of its second epoch, once."""
    execute = replenish.lab.launch.ray._execute

    def execute_and_act(values: dict[str, Any], folder: str) -> None:
        at_step(30, act, once)
        execute(values, folder)

    patch.setattr(replenish.lab.launch.ray, "_execute", execute_and_act)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "goes_on_from"), [(signal.SIGKILL, 22), (signal.SIGTERM, 30)])
def test_a_run_whose_process_is_lost_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, goes_on_from: int
) -> None:
    """SIGTERM leaves time to save."""
    [job] = plan([CONFIG], [3], tmp_path / "cluster")
    after_30_steps(partial(signal_here, number), tmp_path / "signalled", monkeypatch)
    heard = Heard()
    results = launch([job], "ray", 1, heard)
    assert [event["step"] for _, event in heard.events if event["event"] == "start"] == [0, goes_on_from]
    assert weights(results) == in_this_process(CONFIG, [3], tmp_path / "here")


@pytest.mark.slow
def test_ctrl_c_saves_and_the_same_call_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = plan([CONFIG], [4, 5], tmp_path / "cluster")
    here = os.getpid()

    def interrupt() -> None:
        """Press Ctrl-C where the runs are waited for, and take no further step before that has come back."""
        os.kill(here, signal.SIGINT)
        wait_for(lambda: signal.getsignal(signal.SIGINT).__self__.asked)  # type: ignore[union-attr]

    after_30_steps(interrupt, tmp_path / "interrupted", monkeypatch)
    with pytest.raises(KeyboardInterrupt, match="every run has saved where it stands"):
        launch(jobs, "ray", 1, Heard())
    assert not jobs[1].folder.joinpath(METRICS).exists()  # one at once: it had not begun
    checkpoint, _ = RunFolder(jobs[0].folder).checkpoints.load()
    assert checkpoint is not None
    assert checkpoint["step"] == 30
    assert weights(launch(jobs, "ray", 1, Heard())) == in_this_process(CONFIG, [4, 5], tmp_path / "here")


@pytest.mark.slow
def test_a_run_that_fails_says_why_and_the_others_are_run(tmp_path: Path) -> None:
    good, bad = plan([CONFIG.for_epochs(1), RunConfig(dataset="nowhere.npz", epochs=1)], [0], tmp_path)
    heard = Heard()
    with pytest.raises(ChildProcessError) as raised:
        launch([bad, good], "ray", 2, heard)
    assert str(raised.value).startswith(f"the run in {bad.folder} could not be run: ")
    assert "nowhere.npz" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert heard.kinds(0) == ["error"]
    assert heard.kinds(1)[-1] == "end"


def test_a_run_of_several_processes_is_refused(tmp_path: Path) -> None:
    jobs = plan([CONFIG], [0], tmp_path / "runs", hardware=Hardware(devices=2))
    with pytest.raises(ValueError, match="one process, but got devices=2 and num_nodes=1; use the launcher 'slurm'"):
        launch(jobs, "ray", 1, Heard())
    assert not (tmp_path / "runs").exists()


def replenish_on_ray(folder: Path, *options: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish", "run", "figure2/wrn-60-120-160", "--launcher", "ray"]
    command += ["--scale", "digits", "--epochs", "1", *options]
    return subprocess.run(
        command, cwd=folder, env=environment(**variables), capture_output=True, text=True, check=False, timeout=300
    )


@pytest.mark.slow
def test_the_command_starts_a_ray_of_its_own_where_there_is_none_for_all(tmp_path: Path) -> None:
    """It does not take the one of these tests, which would be gone when they end."""
    done = replenish_on_ray(tmp_path)
    assert done.returncode == 0, done.stderr
    assert "replenish report runs" in done.stdout
    assert "test error" in done.stderr


def test_an_address_where_nobody_listens_is_refused(tmp_path: Path) -> None:
    address = f"127.0.0.1:{free_port()}"
    done = replenish_on_ray(tmp_path, RAY_ADDRESS=address)
    assert done.returncode == 2
    assert done.stderr.startswith(f"replenish: RAY_ADDRESS should be a Ray cluster that answers, but got '{address}': ")
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_a_command_is_compared_in_tasks(tmp_path: Path) -> None:
    script = Path(__file__).parents[1] / "processes" / "scripts" / "quick.py"
    question = Question(("reshuffling", "srs"), 2, higher_is_better=True)
    metric = OutputMetric(r"score: ([0-9.]+)")
    command, execution = f"python {script} --seed {{seed}}", Execution(tmp_path, "ray", 2, Hardware("cpu"))
    answer = compare_commands(command, metric, question, execution)
    assert answer.values["reshuffling"] == {0: 80.0, 1: 80.01}
    with pytest.raises(ChildProcessError, match=r"(?s)ended with exit code 1 .* something is wrong"):
        compare_commands(f"{command} --fail-at 0", metric, question, execution)
