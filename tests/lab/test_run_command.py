"""`replenish run`: its folders, its output and its errors."""

from __future__ import annotations

import dataclasses
import re
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from small_runs import lines, only_run

from replenish import cli
from replenish.lab.experiments import find
from replenish.lab.runs import RunFolder

ROW = "table3/wrn-srs-b64-120-150-175"
Typed = Callable[..., tuple[int, str, str]]


@pytest.fixture
def typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Typed:
    """Return a function that runs a command in this process, in an empty folder: exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REPLENISH_DATA", str(tmp_path / "no-data"))

    def give(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["replenish", *arguments])
        with pytest.raises(SystemExit) as left:
            cli.main()
        printed = capsys.readouterr()
        return int(left.value.code or 0), printed.out, printed.err

    return give


def test_a_run(typed: Typed, tmp_path: Path) -> None:
    code, out, err = typed("run", ROW, "--scale", "digits", "--epochs", "2", "--runs", "my runs", "--tensorboard")
    assert code == 0, err
    folder = only_run(tmp_path / "my runs")
    config = find(ROW, "digits")[ROW].for_epochs(2)
    assert folder == tmp_path / "my runs" / config.slug / "seed0"
    assert RunFolder(folder).config() == config
    assert [line["epoch"] for line in lines(folder)] == [1, 2]
    assert list(folder.glob("events.out.tfevents.*"))
    result = RunFolder(folder).result()
    assert result is not None
    assert result["command"] == f"replenish run {ROW} --scale digits --epochs 2 --runs 'my runs' --tensorboard"
    assert f"{ROW}, seed 0: test error {result['test_error']:.2f} %" in err
    assert "\x1b" not in err + out
    assert "replenish report 'my runs'" in out

    again, _, err = typed("run", ROW, "--scale", "digits", "--epochs", "2", "--runs", "my runs")
    assert again == 0
    assert RunFolder(folder).result() == result
    assert "resuming" not in err


def test_names_that_share_runs_share_folders(typed: Typed, tmp_path: Path) -> None:
    """Figure 2 shows the runs of table 3, so nothing is left to run."""
    assert typed("run", ROW, "--scale", "digits", "--epochs", "1", "--seeds", "0,3")[0] == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("runs/*/*/result.json")}
    assert sorted(path.parent.name for path in before) == ["seed0", "seed3"]
    assert typed("run", "figure2/wrn-srs-120-150-175", "--scale", "digits", "--epochs", "1", "--seeds", "0,3")[0] == 0
    assert {path: path.read_bytes() for path in tmp_path.glob("runs/*/*/result.json")} == before


def test_a_folder_that_cannot_be_written_to_is_named(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    def read_only(self: Path, *_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", read_only)
    code, _, err = typed("run", ROW, "--scale", "digits", "--epochs", "1")
    assert code == 2
    assert err.startswith("replenish: runs/")
    assert err.endswith("cannot be used: Read-only file system\n")


def test_a_lost_process_is_one_sentence(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    def lose(*_: object) -> None:
        raise RuntimeError("[../third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [1.2.3.4]:5")

    monkeypatch.setattr("replenish.lab.jobs.Job.run", lose)
    code, _, err = typed("run", ROW, "--scale", "digits", "--epochs", "1")
    assert code == 1
    assert "another process of the run was lost (Connection closed by peer" in err
    assert err.endswith("give the same command again to resume\n")


def test_a_diverged_run_is_exit_code_1(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from replenish.lab import experiments

    config = dataclasses.replace(find(ROW)[ROW], learning_rate=1e30)
    hot = {"hot/one": config}
    monkeypatch.setattr(experiments, "EXPERIMENTS", hot)
    code, out, err = typed("run", "hot", "--scale", "digits", "--epochs", "1")
    assert code == 1
    assert "hot/one, seed 0: diverged: the loss is not a finite number at step 1 " in err
    assert "1 of them diverged" in out
    result = RunFolder(only_run(tmp_path / "runs")).result()
    assert result is not None
    assert result["status"] == "diverged"
    assert typed("run", "hot", "--scale", "digits", "--epochs", "1")[0] == 1  # still


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("tabel3",), "there is no experiment named 'tabel3'; did you mean table3"),
        (("table3", "--scale", "huge"), "scale should be one of full, mini, digits, but got 'huge'"),
        (
            ("table3", "--seeds", "five"),
            "--seeds should be how many, such as 5, or which, such as 0,3,7 or 5-9, but got 'five'",
        ),
        (("table3", "--precision", "8"), "precision should be one of"),
        (("table3", "--accelerator", "abacus"), "accelerator should be one of auto, cpu, cuda"),
        (("table3", "--num-nodes", "2"), "num_nodes=2 needs a process on each machine, but this one was started alone"),
        (("table3", "--scale", "mini"), "replenish data get cifar100"),
        pytest.param(
            ("table3", "--scale", "digits", "--accelerator", "cuda"),
            "accelerator='cuda' with devices=1 cannot be used here, where there is cpu",
            marks=pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here"),
        ),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(
    typed: Typed, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = typed("run", *arguments, "--yes")
    assert code == 2
    assert message in err
    *cost, sentence = err.splitlines()
    assert sentence.startswith("replenish: ")
    assert all(" to do: about " in line for line in cost)
    assert "Traceback" not in err
    assert out == ""
    assert list(tmp_path.iterdir()) == []  # no file is left


def test_days_of_training_need_a_yes(typed: Typed, tmp_path: Path) -> None:
    code, _, err = typed("run", "table2/wrn-28-10", "--accelerator", "cpu", "--seeds", "3")
    assert code == 2
    assert re.match(r"replenish: --yes should be given to start this: \d+ runs to do: about [\d,]+ days on 1 CPU", err)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("arguments", [("--epochs", "0"), ("--seed", "1"), ("--jobs", "x")])
def test_bad_options_are_exit_code_2(typed: Typed, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    code, _, err = typed("run", "table3", *arguments)
    assert code == 2
    assert arguments[0] in err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_use_is_refused(typed: Typed, tmp_path: Path) -> None:
    config = find(ROW, "digits")[ROW]
    with RunFolder(tmp_path / "runs" / config.slug / "seed0").owned_by(config):
        code, _, err = typed("run", ROW, "--scale", "digits")
    assert code == 2
    assert err.startswith("replenish: another process is training in runs/")


def test_a_full_disk_is_one_sentence(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    def no_space(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    code, _, err = typed("run", ROW, "--scale", "digits", "--epochs", "1")
    assert code == 2
    assert err.startswith("replenish: the disk is full: runs/")
    assert err.count("\n") == 1


def test_ctrl_c_in_the_first_of_two_runs_does_not_begin_the_second(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if it comes so late that the first run ends."""
    import os
    import signal

    from replenish.lab.runs import RunFolder as Folder

    honest = Folder.write_result

    def write_result(self: Folder, result: dict[str, object]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        honest(self, result)

    monkeypatch.setattr(Folder, "write_result", write_result)
    code, _, _ = typed("run", ROW, "--scale", "digits", "--epochs", "1", "--seeds", "2")
    assert code == 130
    assert not list(tmp_path.glob("runs/*/seed1"))


def test_batches_that_cannot_be_shared_are_refused_before_processes_start(typed: Typed, tmp_path: Path) -> None:
    code, _, err = typed("run", ROW, "--scale", "digits", "--devices", "3", "--accelerator", "cpu")
    assert code == 2
    assert "batch_size=64 and num_replicas=3" in err
    assert err.startswith("replenish: ")
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
