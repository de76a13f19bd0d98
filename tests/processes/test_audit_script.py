"""replenish audit and its flight record with real scripts: it finds each planted fault and records every batch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from replenish.cli import app
from replenish.exec import script_audit
from replenish.exec.draw_log import append_chunk, pack, read_chunks, unpack, wait_until
from replenish.exec.environment import AuditTask, run_environment
from replenish.exec.flight_record import parts_folder, read_record
from replenish.exec.run_draws import read_run

# ---- Audits ----


SCRIPTS = Path(__file__).parent / "scripts"
AUDITED, RANKS = SCRIPTS / "audited.py", SCRIPTS / "ranks.py"
RESUMES = SCRIPTS / "resumes.py"
SET_EPOCH, PRIVATE_GENERATOR = SCRIPTS / "set_epoch.py", SCRIPTS / "private_generator.py"


def replenish(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=cwd)


def audited(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return replenish("audit", *words, cwd=cwd)


@pytest.mark.slow
def test_every_training_loader_is_audited_and_faults_are_found(tmp_path: Path) -> None:
    html, plain = tmp_path / "audit.html", tmp_path / "audit.json"
    done = audited("--html", html, "--json", plain, AUDITED, 4, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "epoch 2" in done.stdout
    assert "epoch 3" not in done.stdout  # the script was ended after three epochs
    found = json.loads(plain.read_text())["loaders"]
    faults: list[Any] = [
        [finding["name"] for finding in each["findings"] if finding["level"] == "fault"] for each in found
    ]
    # The audit reads the labels of a dataset. In data that are not shuffled, they come in bunches.
    assert faults == [[], ["epochs"], [], ["coverage", "labels"], [], ["augmentation"], []]
    assert found[6]["subject"].startswith("DataLoader (Stream), 200 items")
    assert "expected, since WeightedRandomSampler draws samples more than once" in done.stdout
    assert "call DistributedSampler.set_epoch(epoch) before every epoch" in done.stdout
    assert done.stdout.count("not audited, its passes are those of an evaluation") == 1
    page = html.read_text()
    assert "What the loaders really do" in page
    assert page.count("call DistributedSampler.set_epoch(epoch) before every epoch") == 2  # at the top, in its table


def test_steps_ends_the_script_after_as_many_batches(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(
        "import sys, torch\nfrom torch.utils.data import DataLoader\nassert sys.argv[1:] == ['--steps', '7']\n"
        "loader = DataLoader(range(1000), shuffle=True)\ndone = 0\n"
        "try:\n    for _ in loader:\n        done += 1\nfinally:\n    print('did', done)\n"
    )
    done = audited("--steps=5", "-m", "loop", "--steps", 7, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("did 5\n")
    assert "loader 1: range, N = 1,000, B = 1\nDataLoader (RandomSampler), 1000 samples" in done.stdout
    assert "No pass reached its end: " in done.stdout


def test_an_audit_does_not_change_the_draws(tmp_path: Path) -> None:
    done = audited("--epochs=0", PRIVATE_GENERATOR, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    plain = subprocess.run([sys.executable, PRIVATE_GENERATOR], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(plain.stdout)


def test_setting_epoch_0_each_time_and_setting_the_next_epoch_at_the_end(tmp_path: Path) -> None:
    done = audited(SET_EPOCH, "0", cwd=tmp_path)
    assert "was at epoch 0 in all of them" in done.stdout
    assert done.returncode == 1, done.stdout
    done = audited(SET_EPOCH, "epoch + 1", cwd=tmp_path)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_a_script_that_waits_for_ended_processes_is_ended_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "waits.py").write_text(
        "import multiprocessing, sys\nfrom torch.utils.data import DataLoader\n"
        "def train(results):\n    for epoch in range(3):\n        for _ in DataLoader(range(100), shuffle=True):\n"
        "            pass\n    results.put('done')\n"
        "if __name__ == '__main__':\n    context = multiprocessing.get_context('spawn')\n"
        "    results = context.Queue()\n    context.Process(target=train, args=(results,)).start()\n    results.get()\n"
    )
    monkeypatch.setattr(script_audit, "_GRACE", 1.0)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["audit", "--steps=8", "waits.py"])
    assert done.exit_code == 0, done.stderr
    assert "8 batches in 1 pass" in done.stdout


def test_a_launcher_gets_sigterm_and_ends_its_processes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "launcher.py").write_text(
        "import signal, subprocess, sys\n"
        "child = subprocess.Popen(['sleep', '60'], start_new_session=True)\n"
        "def end(*ignored):\n    child.kill()\n    child.wait()\n    sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, end)\nopen('child', 'w').write(str(child.pid))\n"
        "open('1.ended', 'w').close()\nsignal.pause()\n"
    )
    monkeypatch.setattr(script_audit, "_GRACE", 0.0)
    script_audit.run_until_ended([sys.executable, "launcher.py"], dict(os.environ), tmp_path, cwd=tmp_path)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "child").read_text()), 0)


def test_sigterm_ends_the_script_too(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import os, pathlib, time\npathlib.Path('new').write_text(str(os.getpid()))\n"
        "os.rename('new', 'pid')\ntime.sleep(60)\n"
    )
    audit = subprocess.Popen([sys.executable, "-m", "replenish", "audit", "train.py"], cwd=tmp_path)
    wait_until((tmp_path / "pid").exists, 30)
    script = int((tmp_path / "pid").read_text())
    audit.terminate()
    assert audit.wait(60) == 143
    with pytest.raises(ProcessLookupError):
        os.kill(script, 0)


@pytest.mark.parametrize("started", ["torchrun", "spawn"])
def test_ranks_are_judged_together(started: str, tmp_path: Path) -> None:
    healthy, equal = (_ranks(started, kind, tmp_path) for kind in ("distributed", "whole"))
    assert healthy.returncode == 0, healthy.stdout + healthy.stderr
    assert healthy.stdout.count("No sample is drawn by two of the 2 ranks") == 1
    assert "Every one of the 40 samples comes once in every epoch" in healthy.stdout
    assert equal.returncode == 1, equal.stdout + equal.stderr
    assert "All 2 ranks draw the same samples" in equal.stdout


def _ranks(started: str, kind: str, folder: Path) -> subprocess.CompletedProcess[str]:
    if started == "spawn":
        return audited("--steps=8", RANKS, started, kind, cwd=folder)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", "-m", "replenish"]
    words = [*command, "audit", "--epochs=2", str(RANKS), started, kind]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=300, cwd=folder)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("print('nothing')", 2, "replenish: nothing was audited: the script made no torch DataLoader"),
        (
            "from torch.utils.data import DataLoader\nDataLoader(range(3))",
            2,
            "replenish: nothing was audited: it trained with none of its loaders",
        ),
        ("raise SystemExit(7)", 7, ""),
    ],
)
def test_scripts_without_a_training(text: str, code: int, message: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(text)
    done = audited("script.py", cwd=tmp_path)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epochs=-1", AUDITED], "--epochs should be at least 0, but got -1"),
        (
            ["--resume", "x", "--html=page.html", AUDITED],
            "--html should be left out with --resume, which makes no use of it",
        ),
        (["--resume", "", AUDITED], "--resume should be a command, but got ''"),
        (["--html=page.txt", AUDITED], "--html should be the name of a .html file, but got page.txt"),
        (["nowhere.py"], "nowhere.py is not a file; give the path of a Python script, or -m and a module"),
    ],
)
def test_wrong_arguments(words: list[object], message: str, tmp_path: Path) -> None:
    done = audited(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"replenish: {message}\n"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("way", "level", "sentence"),
    [
        ("epoch", "fault", "Repeats 40 samples and skips 0 of the interrupted epoch, from step 24"),
        ("rng", "ok", "Exact: the 16 batches from step 24 on"),
    ],
)
@pytest.mark.slow
def test_the_audit_of_a_resume_counts_repeated_and_skipped_samples(
    way: str, level: str, sentence: str, tmp_path: Path
) -> None:
    command = f"{sys.executable} {RESUMES} {way} --resume {{checkpoint}}"
    done = audited("--resume", command, "--json", tmp_path / "found.json", RESUMES, way, cwd=tmp_path)
    assert done.returncode == (level == "fault"), done.stdout + done.stderr
    found = {each["name"]: each for each in json.loads((tmp_path / "found.json").read_text())["findings"]}
    assert found["SIGKILL"]["level"] == level
    assert sentence in found["SIGKILL"]["sentence"]
    assert found["SIGTERM"]["level"] == level
    assert found["SIGTERM"]["numbers"]["saved"] == 25  # by the script's own handler
    assert [path.name for path in tmp_path.iterdir()] == ["found.json"]


@pytest.mark.slow
def test_a_resume_on_two_processes_that_read_the_checkpoint_at_different_times(
    tmp_path: Path,
) -> None:
    launch = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command = " ".join(["python", *launch, str(RESUMES), "ours", "--resume", "{checkpoint}"])
    done = audited("--resume", command, *launch, RESUMES, "ours", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SIGTERM  Exact: the 15 batches from step 25 on" in done.stdout
    assert "SIGKILL  Exact: the 16 batches from step 24 on" in done.stdout


def test_a_script_that_saves_nothing_has_nothing_to_resume(tmp_path: Path) -> None:
    done = audited("--resume", "python x.py", "--steps", 6, SET_EPOCH, "0", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("No checkpoint was written before the end of the run") == 2


def test_a_checkpoint_from_the_end_is_reported(tmp_path: Path) -> None:
    (tmp_path / "final.py").write_text(
        "import signal, torch\nfrom torch.utils.data import DataLoader\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nfor batch in DataLoader(range(8), shuffle=True):\n    pass\n"
        "torch.save({}, 'final.pt')\n"
    )
    done = audited("--resume", "python final.py", "final.py", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SIGTERM  The newest checkpoint is of the end of the training: the script did not stop" in done.stdout
    assert "SIGKILL  The newest checkpoint is of the end of the training: the script did not save" in done.stdout


def test_a_script_that_saves_at_every_batch(tmp_path: Path) -> None:
    (tmp_path / "saves.py").write_text(
        "import sys, torch\nfrom torch.utils.data import DataLoader\n"
        "start = torch.load(sys.argv[1]) if sys.argv[1:] else 0\n"
        "loader = DataLoader(range(20), sampler=range(start, 20))\n"
        "for step, batch in enumerate(loader, start + 1):\n    torch.save(step, 'last.pt')\n"
    )
    done = audited("--resume", "python saves.py {checkpoint}", "--stop=8", "saves.py", cwd=tmp_path)
    assert "SIGKILL  Exact: the 12 batches from step 8 on" in done.stdout, done.stdout + done.stderr
    assert done.stdout.startswith("20 batches in 1 epoch, stopped after 8: ok")


def test_a_killed_rank_has_logged_every_earlier_batch(tmp_path: Path) -> None:
    script = tmp_path / "killed.py"
    script.write_text(
        "import os, signal\nfrom torch.utils.data import DataLoader\n"
        "for step, batch in enumerate(DataLoader(range(9))):\n"
        "    if step == 5:\n        os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    task = AuditTask(str(tmp_path), facts=False, stop=8, kill=True)
    subprocess.run([sys.executable, script], env=run_environment(task=task), check=False, timeout=300)
    (process,) = read_run(tmp_path)
    assert process.loaders[0].passes[0].batches_trained == 5


# ---- The flight recorder, against the batches that the script prints ----


SCRIPT = Path(__file__).parent / "scripts" / "prints_batches.py"


def printed(text: str) -> list[list[int]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("[")]


@pytest.mark.parametrize("kind", ["shuffled", "srs"])
def test_a_record_has_the_batches_that_the_script_trained_with(kind: str, tmp_path: Path) -> None:
    done = replenish("audit", "--epochs=0", "--record", "run.rec", SCRIPT, kind, cwd=tmp_path)
    batches = printed(done.stdout)
    record = read_record(tmp_path / "run.rec")
    assert record.whole
    assert [record.batch(step)[0].tolist() for step in range(record.steps)] == batches
    assert record.steps_with(17).tolist() == [step for step, batch in enumerate(batches) if 17 in batch]
    assert not parts_folder(tmp_path / "run.rec").exists()
    has_order = [each.order is not None for each in record.loaders[0][0].training]
    assert has_order == [kind == "srs"] * 3
    found = replenish("what", "run.rec", 12, "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["ranks"] == [batches[12]]
    found = replenish("when", "run.rec", 17, "--json", cwd=tmp_path)
    assert json.loads(found.stdout)["steps"] == record.steps_with(17).tolist()
    found = replenish("when", "run.rec", 100, cwd=tmp_path)
    assert (found.returncode, found.stderr) == (2, "replenish: SAMPLE should be at most 99, but got 100\n")


def test_exec_records_the_config_of_the_order(tmp_path: Path) -> None:
    done = replenish("exec", "--order", "srs", "--seed", 3, "--record", "run.rec", SCRIPT, "plain", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    batches = printed(done.stdout)
    assert f"{len(batches)} training batches recorded in" in done.stderr
    assert "Traceback" not in done.stderr
    record = read_record(tmp_path / "run.rec")
    assert [record.batch(step)[0].tolist() for step in range(record.steps)] == batches
    assert all(each.order is not None for each in record.loaders[0][0].training)
    assert (tmp_path / "run.rec").stat().st_size < 2000


def test_the_record_of_a_killed_run_can_be_read(tmp_path: Path) -> None:
    done = replenish("audit", "--epochs=0", "--record", "run.rec", SCRIPT, "srs", "kill", cwd=tmp_path)
    batches = printed(done.stdout)
    assert len(batches) == 31
    # Only the script was killed, so the command has finished the record.
    record = read_record(tmp_path / "run.rec")
    assert record.steps >= 30
    assert [record.batch(step)[0].tolist() for step in range(record.steps)] == batches[: record.steps]
    # With `exec`, the command and the killed script are one process.
    replenish("exec", "--record", "killed.rec", SCRIPT, "plain", "kill", cwd=tmp_path)
    assert not (tmp_path / "killed.rec").exists()
    found = replenish("what", "killed.rec", 29, cwd=tmp_path)
    assert "The run was killed: its last second may be missing." in " ".join(found.stdout.split()), found.stderr


def test_a_cut_log_is_read_up_to_the_cut(tmp_path: Path) -> None:
    log = tmp_path / "1.draws"
    for number in range(3):
        header, payload = pack(np.arange(number, 100))
        append_chunk(log, {"kind": "batches", "number": number, **header}, payload)
    whole = log.read_bytes()
    for length in range(len(whole)):
        log.write_bytes(whole[:length])
        found = [header["number"] for header, _ in read_chunks(log)]
        assert found == list(range(len(found)))
        assert len(found) < 3


@pytest.mark.parametrize("values", [[], [7], [0, 255, 256], [-(2**63), 2**63 - 1, 5], [10**12, 10**12 + 3]])
def test_packed_integers_survive_a_round_trip(values: list[int]) -> None:
    assert unpack(*pack(np.array(values, dtype=np.int64))).tolist() == values


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    replenish("audit", "--epochs=1", "--record", "run.rec", SCRIPT, "srs", cwd=tmp_path)
    path = tmp_path / "run.rec"
    path.write_bytes(path.read_bytes()[:-10])
    found = replenish("what", "run.rec", 1, cwd=tmp_path)
    assert (found.returncode, found.stderr.startswith("replenish: run.rec is cut off or damaged")) == (2, True)
    (tmp_path / "notes.txt").write_text("mine")
    refused = replenish("audit", "--record", "notes.txt", SCRIPT, "srs", cwd=tmp_path)
    assert "should name a new file, or an earlier record" in refused.stderr
    assert (tmp_path / "notes.txt").read_text() == "mine"
