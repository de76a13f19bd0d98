"""`replenish compare --command`: real commands in real processes, each with every order."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from replenish.lab.comparing.command_job import CommandJob
from replenish.lab.comparing.metric import JsonMetric, OutputMetric
from replenish.lab.stopping import OutOfTimeError

QUICK = Path(__file__).parent / "scripts" / "quick.py"
SCORE = r"score: ([0-9.]+)"


def start(*words: object, cwd: Path) -> subprocess.Popen[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    command = [sys.executable, "-m", "replenish", "compare", *map(str, words)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, cwd=cwd, env=environment)


def compare(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    process = start(*words, cwd=cwd)
    try:
        out, err = process.communicate(timeout=300)
    finally:
        process.kill()
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def waited_for(path: Path, process: subprocess.Popen[str]) -> int:
    """Wait for the number that a process writes to a file, and return it."""
    while process.poll() is None:
        if path.exists() and path.read_text().endswith("\n"):
            return int(path.read_text())
        time.sleep(0.05)
    raise AssertionError(process.communicate())


@pytest.mark.slow
def test_a_command_is_compared_and_not_run_again(tmp_path: Path) -> None:
    command = f"python {QUICK} --seed {{seed}} --out {{folder}}/result.json"
    words = ["--command", command, "--metric", SCORE, "--higher-is-better", "--orders", "reshuffling,srs", "--jobs=2"]
    done = compare(*words, "--seeds=3", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, *numbers = done.stdout.splitlines()
    assert first.startswith("srs is worse than reshuffling: ")  # SRS sees fewer distinct samples
    assert numbers[0].startswith("reshuffling  mean 80.01 ")
    assert done.stderr.count(" s)") == 7  # one more run with another seed, which tests whether the script uses it
    assert "N = 40, B = 4: replaced by srs, seed 0: 2 passes begun (epochs 0 to 1)" in done.stdout
    (folder,) = tmp_path.glob("runs/command-*/srs/seed1")
    written = sorted(path.name for path in folder.iterdir())
    assert written == ["loaders", "outcome.json", "result.json", "stderr.txt", "stdout.txt"]
    outcome = json.loads((folder / "outcome.json").read_text())
    assert (outcome["exit_code"], outcome["replaced"]) == (0, True)
    assert f"score: {outcome['metric']['value']:.2f}" in (folder / "stdout.txt").read_text().splitlines()[-1]
    assert (outcome["loaders"][0]["order"], outcome["loaders"][0]["seed"]) == ("srs", 1)

    # With another expression and --json, no run is repeated, and the outputs are read again.
    words[3] = r"epoch 0: score: (\S+)"
    again = compare(*words, "--seeds=3", "--margin=100", "--json", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("finished before") == 7
    found = json.loads(again.stdout)
    assert found["verdicts"][0]["outcome"] == "equivalent"
    assert found["values"]["reshuffling"] == {"0": 40.0, "1": 40.01, "2": 40.02}

    # With --until-decided and a metric from a file: existing runs count, a stopped run is run again, and more runs are
    # added as needed.
    (folder / "outcome.json").unlink()
    words = ["--command", command, "--metric-json", "{folder}/result.json:test.score", "--orders", "srs,reshuffling"]
    last = compare(*words, "--until-decided", "--max-seeds=20", "--jobs=2", cwd=tmp_path)
    assert last.returncode == 0, last.stderr
    assert last.stdout.startswith("reshuffling is worse than srs: ")  # without --higher-is-better
    assert "valid at every look" in last.stdout
    assert last.stderr.count("finished before") == 5
    assert "srs, seed 1: " in last.stderr
    assert 3 <= len(list(tmp_path.glob("runs/*/srs/*"))) < 12


# `settings` is in another folder, and `scoring` is imported late.
TRAIN = f"import settings\n{QUICK.read_text()}\nimport scoring"


def project(folder: Path) -> list[str]:
    """Write a script with every kind of file that can change, and return the options that compare it."""
    (folder / "elsewhere").mkdir()
    for name, text in {
        "train.py": TRAIN,
        "launch.py": "import subprocess, sys, grid\nsubprocess.run([sys.executable, *sys.argv[1:]], check=True)",
        "grid.py": "",
        "elsewhere/settings.py": "",
        "scoring.py": "",
        "rates.yaml": "",
        "log.txt": "",
        "train.sh": f"PYTHONPATH=$PYTHONPATH:elsewhere {sys.executable} launch.py train.py $1; echo >> log.txt",
    }.items():
        (folder / name).write_text(text)
    command = "sh train.sh --seed={seed} rates=rates.yaml log.txt"
    return ["--command", command, "--metric", SCORE, "--orders", "reshuffling,srs", "--runs", str(folder / "runs")]


def test_runs_from_before_a_change_are_refused(tmp_path: Path) -> None:
    words = project(tmp_path)
    assert compare(*words, "--seeds=1", cwd=tmp_path).returncode == 0
    for name in ("grid.py", "elsewhere/settings.py", "rates.yaml"):
        path = tmp_path / name
        before = path.read_text()
        path.write_text(f"{before}\n# changed")
        again = compare(*words, "--seeds=2", cwd=tmp_path)
        assert again.returncode == 2
        assert f"seed0 holds a run from before {path} was changed; keep those runs apart, with" in again.stderr
        path.write_text(before)
    again = compare(*words, "--seeds=1", cwd=tmp_path / "elsewhere")
    assert again.returncode == 2
    assert f"was started in {tmp_path}, but this is {tmp_path / 'elsewhere'}, where" in again.stderr
    assert compare(*words, "--seeds=1", cwd=tmp_path).stderr.count("finished before") == 2


def test_a_run_that_reads_another_runs_file_gives_a_warning(tmp_path: Path) -> None:
    resuming = """
import os, sys, torch
from torch.utils.data import DataLoader
kept = torch.load(sys.argv[2]) if os.path.exists(sys.argv[2]) else torch.zeros(())
torch.save(kept + sum(batch.sum() for batch in DataLoader(range(40), 4, shuffle=True)), sys.argv[2])
print("score:", 1 + int(sys.argv[1]))
"""
    (tmp_path / "train.py").write_text(resuming)
    words = ["--metric", SCORE, "--orders", "reshuffling,srs", "--seeds=1"]
    done = compare("--command", "python train.py {seed} kept.pt", *words, cwd=tmp_path)
    assert f"the run of srs with seed 0 began where other runs had left {tmp_path / 'kept.pt'}: " in done.stderr
    apart = compare("--command", "python train.py {seed} {folder}/kept.pt", *words, cwd=tmp_path)
    assert apart.returncode == 0
    assert "had left" not in apart.stderr


def test_a_change_between_two_runs_of_a_comparison_is_refused(tmp_path: Path) -> None:
    name = "scoring.py"
    words = project(tmp_path)
    # The first run of SRS, the second run of all, changes the file while the comparison is under way.
    edit = f"\nimport os\nif '\"srs\"' in os.environ['REPLENISH_EXEC']:\n    open({name!r}, 'a').write('# changed')\n"
    (tmp_path / "elsewhere" / "settings.py").write_text(edit)
    done = compare(*words, "--seeds=1", cwd=tmp_path)
    assert done.returncode == 2
    assert f"{tmp_path / name} was changed between the runs in {tmp_path}" in done.stderr


def test_a_script_that_ignores_its_seed_is_found_by_one_repeated_run(tmp_path: Path) -> None:
    command = f"python {QUICK} --seed 0 --out {{folder}}/{{seed}}.json"
    done = compare("--command", command, "--metric", SCORE, "--seeds=2", "--orders=srs,independent", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    # The numbers differ from seed to seed, since the orders do. Only the run with another {seed} shows the fault.
    assert "Warning: all seeds gave the same value" not in done.stderr
    assert "Warning: the script may ignore its seed: with 0 and with 1 for {seed}, and with one order" in done.stderr
    assert done.stdout.startswith("Undecided between independent and srs")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ([], "compare should have data, or --command"),
        (["digits", "--command", "x {seed}"], "but got both"),
        (["--command", "python x.py --seed {seed}"], "but got neither"),
        (["--command", "python x.py", "--metric=(x)"], "command should have {seed}"),
        (["--command", "python 'x {seed}", "--metric=(x)"], "No closing quotation"),
        (["--command", "", "--metric=(x)"], "command should have {seed}"),
        (["--command", "CUDA_VISIBLE_DEVICES=1 x {seed}", "--metric=(x)"], "no shell runs it, but got CUDA_VISIBLE"),
        (["--command", "x {seed} && y", "--metric=(x)"], "no shell runs it, but got &&; for a line of a shell write"),
        (["--command", "x {seed}", "--metric=(x)", "--epochs=3"], "--epochs is of the lab's own training"),
        (["--command", "x {seed}", "--metric=(x)", "--threads=3"], "--threads is of the lab's own training"),
        (["digits", "--higher-is-better"], "--higher-is-better should be given with --command only"),
        (["--command", "x {seed}", "--metric=("], "metric should be a regular expression"),
        (["--command", "x {seed}", "--metric=acc"], "metric should have a group, brackets around the number"),
        (["--command", "x {seed}", "--metric-json=result.json"], "should be FILE:KEY"),
        (["--command", "x {seed}", "--metric-json=r.json:a", "--jobs=2"], "the JSON file should have {folder}"),
        (["--command", "x {seed}", "--metric=(x)", "--orders=srs"], "two or more different orders"),
        (["--command", "x {seed}", "--metric=(x)", "--orders=srs,sorted"], "order should be one of"),
        (["--command", "x {seed}", "--metric=(x)", "--margin=0"], "margin should be positive and finite"),
        (["--command", "x {seed}", "--metric=(x)", "--budget=soon"], "budget should be a time"),
        (["--command", "no-such-program {seed}", "--metric=(x)"], "the command should begin with a program"),
    ],
)
def test_wrong_arguments_are_a_sentence(
    options: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from typer.testing import CliRunner

    from replenish.cli import app

    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["compare", *options])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("options", "sentences"),
    [
        ("--fail-at 0", ["ended with exit code 1", "    something is wrong"]),
        ("--nan", ["no training ended with a number", "6 trainings diverged", "reshuffling with seeds 0, 1, 2"]),
        ("--sleep 60", ["budget should allow for one run of each order"]),
    ],
    ids=["fails", "nan", "budget"],
)
def test_runs_that_cannot_be_compared(options: str, sentences: list[str], tmp_path: Path) -> None:
    command = f"python {QUICK} --seed {{seed}} {options}"
    budget = ["--budget=1s"] if "sleep" in options else []
    done = compare("--command", command, "--metric", SCORE, "--seeds=3", *budget, cwd=tmp_path)
    assert done.returncode == 2
    for sentence in sentences:
        assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_a_command_that_does_not_use_the_order(tmp_path: Path) -> None:
    done = compare("--command", "python -c 'print({seed})'", "--metric=(.*)", "--seeds=3", cwd=tmp_path)
    assert done.returncode == 2
    assert (
        "did not use the order, so that there is nothing to compare: the script made no torch DataLoader" in done.stderr
    )


def has_ended(process: int) -> bool:
    """Return whether a process is gone, or has ended without being waited for."""
    listed = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return listed.stdout[:1] in ("", "Z")


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize(("number", "exit_code"), [(2, 130), (15, 143)], ids=["INT", "TERM"])
def test_a_signal_ends_running_commands_and_keeps_finished_runs(number: int, exit_code: int, tmp_path: Path) -> None:
    command = f"{sys.executable} {QUICK} --seed $1; test $1 = 0 || {{ sleep 100 & echo $! > child; wait; }}"
    (tmp_path / "train.sh").write_text(command)
    words = ["--command", "sh train.sh {seed}", "--metric", SCORE, "--seeds=2", "--no-checks"]
    process = start(*words, cwd=tmp_path)
    child = waited_for(tmp_path / "child", process)
    process.send_signal(number)
    _, err = process.communicate(timeout=9)
    assert process.returncode == exit_code
    assert err.endswith("replenish: stopped; runs that had ended are kept, so give the same command again\n")
    assert len(list(tmp_path.glob("runs/*/*/seed0/outcome.json"))) == 2
    assert has_ended(child)


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_process_that_ignores_a_stop_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if the command's own process has already ended."""
    monkeypatch.setattr("replenish.lab.comparing.command_job.SECONDS_TO_END", 0.5)
    child = tmp_path / "child"
    command = f"sh -c '(trap \"\" TERM; sleep 100) & echo $! > {child}; wait' {{seed}}"
    until = time.monotonic() + 0.5

    def watch(event: dict[str, Any]) -> None:
        if time.monotonic() > until:
            raise OutOfTimeError

    with pytest.raises(OutOfTimeError):
        CommandJob(command, "srs", 0, tmp_path / "run", OutputMetric(SCORE)).run(watch)
    assert has_ended(int(child.read_text()))


def output(folder: Path, text: str) -> Path:
    (folder / "stdout.txt").write_text(text)
    (folder / "stderr.txt").write_text("")
    return folder


def test_the_last_match_counts(tmp_path: Path) -> None:
    folder = output(tmp_path, "acc: 1\nacc: 2.5\nother: 9\n")
    assert OutputMetric(r"acc: (\S+)").read(folder, {}, None) == 2.5
    assert OutputMetric(r"(?<=acc: )([0-9.]+)").read(folder, {}, None) == 2.5
    (tmp_path / "stdout.txt").write_text("")
    (tmp_path / "stderr.txt").write_text("acc: 7")
    assert OutputMetric(r"acc: (\S+)").read(folder, {}, None) == 7


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"acc: ([0-9.]+)", "acc: 1.5\nacc: nan\n"),
        (r"acc: ([0-9.]+)", "acc: nan\nacc: nan\n"),
        (r"[(]acc: (?P<value>[0-9.]+)[)]", "(acc: 1.5)\n(acc: nan)\n"),
        (r"(?:val|test) [(]acc[)] = ([0-9.]+)%", "test (acc) = 1.5%\nval (acc) = -inf%\n"),
    ],
)
def test_a_value_that_is_not_a_number_is_not_skipped(pattern: str, text: str, tmp_path: Path) -> None:
    """An expression for digits would find the value of an epoch before the training diverged."""
    assert not math.isfinite(OutputMetric(pattern).read(output(tmp_path, text), {}, None))


@pytest.mark.parametrize(
    ("pattern", "text", "message"),
    [
        (r"acc: (\S+)", "acc: good\n", "should be a number, but got 'good'"),
        (r"acc=([0-9]+)", "one\ntwo\n", "matches nothing .*\n    one\n    two"),
        (r"acc=([0-9]+)", "one\n10 %\r90 %\r100 %\ntwo\r\n", "\n    one\n    100 %\n    two$"),
    ],
)
def test_an_output_without_the_number_is_quoted(pattern: str, text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=message):
        OutputMetric(pattern).read(output(tmp_path, text), {}, None)


def test_keys_of_json_files(tmp_path: Path) -> None:
    folder = output(tmp_path, "")
    metric = JsonMetric.from_text("{folder}/r.json:a.b")
    placeholders = {"folder": str(tmp_path)}
    with pytest.raises(ValueError, match="did not write it"):
        metric.read(folder, placeholders, None)
    for content, message in [
        ("{", "should be a JSON file"),
        ('{"a": {"c": 1}}', "has only c"),
        ('{"a": 3}', "it is 3"),
    ]:
        (tmp_path / "r.json").write_text(content)
        with pytest.raises(ValueError, match=message):
            metric.read(folder, placeholders, None)
    (tmp_path / "r.json").write_text('{"a": {"b": 4}}')
    assert metric.read(folder, placeholders, None) == 4
    with pytest.raises(ValueError, match="is not of the run"):  # a file from an earlier run
        JsonMetric(str(tmp_path / "r.json"), "a.b").read(folder, {}, (tmp_path / "r.json").stat().st_mtime + 60)


@pytest.mark.parametrize(
    ("pattern", "text", "value"),
    [
        (r"loss ([0-9.]+)", "loss 8.754e-06 done", 8.754e-06),
        (r"([0-9.]+)", "8.754e-06", 8.754e-06),
        (r"loss ([0-9.]+)", "loss 1E+3", 1000),
        (r"loss.*?([0-9.]+)", "loss -0.25", -0.25),
        (r"val-([0-9.]+)", "val-0.93", 0.93),
        (r"acc: (\d+)", "acc: 93.5%", 93.5),
        (r"acc: ([0-9.]+)", "acc: 93.5.", 93.5),
        (r"^\d+,([0-9.]+),", "7,0.5,0.1", 0.5),
        (r"([0-9.]+)", "0.5 after some information", 0.5),
        (r"n = (\w+)", "n = 1_000", 1000),
    ],
)
def test_a_number_is_read_whole(pattern: str, text: str, value: float, tmp_path: Path) -> None:
    """An expression for digits and points matches 8.754 in 8.754e-06, which once reversed a verdict."""
    assert OutputMetric(pattern).read(output(tmp_path, f"{text}\n"), {}, None) == value


@pytest.mark.parametrize("text", ["loss 1,234.5", "loss 0,93"])
def test_a_number_with_commas_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="one number without commas"):
        OutputMetric(r"loss ([0-9.]+)").read(output(tmp_path, text), {}, None)


@pytest.mark.parametrize(
    ("metric", "name"),
    [
        (OutputMetric(r"epoch \d+: test acc: +([0-9.]+)"), "test acc"),
        (OutputMetric(r"\* Acc@1 ([0-9.]+)"), "* Acc@1"),
        (OutputMetric(r"'eval_loss': ([0-9.]+)"), "eval_loss"),
        (OutputMetric(r"([0-9.]+)"), "metric"),
        (OutputMetric(r"x=(.*)", "accuracy"), "accuracy"),
        (JsonMetric("r.json", "test.acc"), "test.acc"),
    ],
)
def test_the_name_of_a_metric_has_no_regular_expression(metric: OutputMetric, name: str) -> None:
    assert metric.name == name


FRAGILE = """
import sys, time
from torch.utils.data import DataLoader
seed, order = int(sys.argv[1]), sys.argv[2]
list(DataLoader(range(40), batch_size=4, shuffle=True))
if seed == 1 and order == "srs":
    sys.exit("out of memory")
print("score:", "nan" if seed == 2 and order == "reshuffling" else 50 + seed + (seed * 7919 % 13) / 10)
"""


def test_a_seed_that_fails_or_diverges_does_not_lose_the_others(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FRAGILE)
    words = ["--command", "python train.py {seed} {order}", "--metric", SCORE, "--seeds=5", "--json"]
    done = compare(*words, cwd=tmp_path)
    assert done.returncode == 1, done.stderr  # a training diverged
    found = json.loads(done.stdout)
    assert set(found["values"]["srs"]) == {"0", "2", "3", "4"}
    assert set(found["values"]["reshuffling"]) == {"0", "1", "3", "4"}
    assert "Warning: 1 training diverged and is not in the numbers: reshuffling with seed 2;" in done.stderr
    assert "Warning: the training of srs with seed 1 failed and is not in the numbers: the run of srs" in done.stderr
    assert "out of memory" in done.stderr
    # The next call repeats the failed run, but not the diverged one. Here it is refused, since the script changed.
    (tmp_path / "train.py").write_text(FRAGILE.replace("seed == 1", "False"))
    again = compare(*words, cwd=tmp_path)
    assert "was changed; keep those runs apart" in again.stderr


def test_a_python_without_the_hook_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(FRAGILE)
    done = compare("--command", "python -I train.py {seed} srs", "--metric", SCORE, cwd=tmp_path)
    assert done.returncode == 2
    assert "loaded replenish's hook; leave out the options -I, -E and -S of python" in done.stderr
