"""`replenish exec` with real scripts in real processes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest
from contracts import as_lists
from typer.testing import CliRunner

from replenish import SequencedReplacement
from replenish.cli import app
from replenish.exec.records import RecordWriter, RunRecords, read_records
from replenish.torch.loader_record import LoaderRecord

SCRIPTS = Path(__file__).parent / "scripts"
DIGITS, DDP = SCRIPTS / "digits_loop.py", SCRIPTS / "ddp_gloo.py"


def python(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *map(str, words)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, cwd=cwd, env=environment)


def execute(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return python("-m", "replenish", "exec", *words, cwd=cwd)


def written(folder: Path, text: str, name: str = "script.py") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.mark.slow
def test_a_plain_loop_trains_on_the_order(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    done = execute("--order=srs", "--seed=3", DIGITS, "--seed", 5, "--log", log, "--workers=1", "--start-method=spawn")
    assert done.returncode == 0, done.stderr
    drawn = as_lists(SequencedReplacement(450, 64, seed=3).batches(0, 16))
    cut = [batch if step % 8 < 7 else batch[:2] for step, batch in enumerate(drawn)]  # 450 = 7 * 64 + 2
    assert json.loads(log.read_text()) == cut
    assert done.stdout.count("test acc:") == 2
    train, test = done.stderr.splitlines()[-2:]
    distinct = len({index for batch in cut for index in batch})
    assert train == (
        "replenish: loader over Digits, N = 450, B = 64: replaced by srs, seed 3: 2 passes begun "
        f"(epochs 0 to 1), 0 left early, {distinct} of 450 samples drawn"
    )
    assert test.endswith("N = 250, B = 1,000: left alone, it does not shuffle")


def shares(folder: Path, world: int) -> list[list[int]]:
    ranks = [json.loads((folder / f"rank{rank}.json").read_text()) for rank in range(world)]
    return [list(chain.from_iterable(parts)) for parts in zip(*ranks, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("way", ["torchrun", "spawn"])
def test_two_processes_share_one_stream(way: str, tmp_path: Path) -> None:
    if way == "torchrun":
        launch = ["-m", "torch.distributed.run", "--nproc-per-node=2", "--master-port=0", "--rdzv-backend=c10d"]
        launch += ["--rdzv-endpoint=localhost:0", "-m"]
        done = python(*launch, "replenish", "exec", "--order=srs", "--seed=4", DDP, tmp_path, "--first-epoch", 3)
    else:
        done = execute("--order=srs", "--seed=4", DDP, tmp_path, "--first-epoch", 3, "--spawn", 2)
    assert done.returncode == 0, done.stderr
    drawn = as_lists(SequencedReplacement(101, 16, seed=4).batches(21, 35))
    # 51 samples per process: six batches of 8 and one of 3.
    assert shares(tmp_path, 2) == [batch if step % 7 < 6 else batch[:6] for step, batch in enumerate(drawn)]
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("replenish: ")]
    assert "N = 101, B = 16 over 2 processes: replaced by srs, seed 4: 2 passes begun (epochs 3 to 4)" in line


ABOUT_ITSELF = """
import json, sys
facts = {
    "argv": sys.argv, "name": __name__, "file": __file__, "package": __package__, "path": sys.path[0],
    "main": sys.modules["__main__"].__dict__ is globals(), "spec": getattr(__spec__, "name", None),
    "numpy": "numpy" in sys.modules, "flags": sys.flags.dont_write_bytecode,
}
print(json.dumps(facts))
sys.exit(3)
"""


@pytest.mark.parametrize("as_module", [False, True])
def test_a_script_has_the_same_environment_as_under_python(as_module: bool, tmp_path: Path) -> None:
    written(tmp_path, "", "package/__init__.py")
    written(tmp_path, ABOUT_ITSELF, "package/__main__.py")
    what = ["-m", "package"] if as_module else ["package/__main__.py"]
    words = [*what, "--seed", "9", "-m", "x", "--order=y", "--help"]
    ours, its = execute("--seed", 1, *words, cwd=tmp_path), python(*words, cwd=tmp_path)
    assert ours.returncode == its.returncode == 3
    assert json.loads(ours.stdout) == json.loads(its.stdout)


FAILING = "def outer():\n    1 / 0\n\nouter()\n"


def test_a_traceback_starts_in_the_script(tmp_path: Path) -> None:
    path = written(tmp_path, FAILING)
    ours, its = execute(path), python(path)
    assert ours.returncode == its.returncode == 1
    assert ours.stderr == its.stderr
    module_ours, module_its = execute("-m", "script", cwd=tmp_path), python("-m", "script", cwd=tmp_path)
    assert module_ours.returncode == module_its.returncode == 1
    in_the_script = module_its.stderr[module_its.stderr.index(f'  File "{path}"') :]
    assert module_ours.stderr == "Traceback (most recent call last):\n" + in_the_script


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_script_gets_signals_as_under_python(number: signal.Signals, tmp_path: Path) -> None:
    path = written(tmp_path, f"import os\nos.kill(os.getpid(), {int(number)})\nprint('deaf')\n")
    ours, its = execute(path), python(path)
    assert ours.returncode == its.returncode == -number
    assert (ours.stdout, ours.stderr) == (its.stdout, its.stderr)
    assert ours.stdout == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('done')", "the script made no torch DataLoader, and loaders of other libraries keep their own order"),
        (
            "from torch.utils.data import DataLoader\nlist(DataLoader(range(9)))\nDataLoader(range(9), shuffle=True)",
            "never iterated",
        ),
    ],
)
def test_an_order_that_is_not_used_is_an_error(text: str, why: str, tmp_path: Path) -> None:
    done = execute(written(tmp_path, text))
    assert done.returncode == 2
    assert "the order srs was not used" in done.stderr
    assert why in done.stderr
    assert "Traceback" not in done.stderr


def test_an_order_that_does_not_fit_a_loader_is_a_sentence(tmp_path: Path) -> None:
    path = written(tmp_path, "from torch.utils.data import DataLoader\nDataLoader(range(9), 4, shuffle=True)")
    done = execute("--pool-size=3", path)
    assert done.returncode == 2
    assert done.stderr.startswith("replenish: batch_size should be at most pool_size")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere.py"], "nowhere.py is not a file"),
        (["--order=sorted", "x.py"], "order should be one of"),
        (["--order=reshuffling", "--pool-size=9", "x.py"], "--pool-size should not be given"),
        (["--seed=-1", "x.py"], "--seed should be at least 0"),
        (["--start-epoch=-1", "x.py"], "--start-epoch should be at least 0"),
        (["--option=sequence", "x.py"], "--option should be NAME=VALUE"),
        (["-m"], "-m should be followed by the name of a module"),
    ],
)
def test_wrong_arguments_are_a_sentence(
    words: list[str], sentence: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    script = written(tmp_path, "", "x.py")
    done = CliRunner().invoke(app, ["exec", *words])
    assert done.exit_code == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [script]


def test_a_module_that_does_not_exist_is_a_sentence() -> None:
    """It needs a separate process: `exec` becomes the script, and only then the module is looked for."""
    done = execute("-m", "no.such.module")
    assert done.returncode == 2
    assert done.stderr.startswith("replenish: there is no module no.such.module")
    assert len(done.stderr.splitlines()) == 1


def test_a_sitecustomize_of_the_users_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "print('mine')", "site/sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    done = execute(written(tmp_path, "print('script')"))
    assert done.stdout.splitlines()[-2:] == ["mine", "script"]


@pytest.mark.parametrize("way", ["multiprocessing", "subprocess"])
def test_processes_that_train_independently_draw_independently(way: str, tmp_path: Path) -> None:
    """Hogwild seeds torch with the rank. The same batches in all processes would change the training."""
    script = written(
        tmp_path,
        """
import subprocess, sys, torch, torch.multiprocessing as mp
from torch.utils.data import DataLoader

def train(rank, path):
    torch.manual_seed(rank // 2)
    drawn = [index for batch in DataLoader(range(40), batch_size=4, shuffle=True) for index in batch.tolist()]
    open(f"{path}{rank}", "w").write(str(drawn))

if __name__ == "__main__":
    path, way = sys.argv[1:]
    if way == "multiprocessing":
        DataLoader(range(40), shuffle=True)  # forked processes inherit it
        processes = [mp.Process(target=train, args=(rank, path)) for rank in range(4)]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
    elif way == "subprocess":
        processes = [subprocess.Popen([sys.executable, __file__, path, str(rank)]) for rank in range(4)]
        sys.exit(max(process.wait() for process in processes))
    else:
        train(int(way), path)
""",
    )
    done = execute(script, tmp_path / "drawn", way)
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stderr.splitlines() if "N = 40, B = 4: replaced by srs, seed " in line]
    assert len(set(lines)) == len(lines) == 2, "one line for each seed"
    drawn = [(tmp_path / f"drawn{rank}").read_text() for rank in range(4)]
    assert drawn[0] == drawn[1] != drawn[2] == drawn[3]


STEPS = """
import json, sys
from torch.utils.data import DataLoader, SubsetRandomSampler

data = list(range(40))
train = DataLoader(data, 4, sampler=SubsetRandomSampler(range(10, 40)), collate_fn=list)
test = DataLoader(data, 8, shuffle=False, collate_fn=list)
print(json.dumps([next(iter(train)) for _ in range(5)] + list(test)))
"""


def test_an_iterator_for_every_step_draws_an_epoch_for_every_step(tmp_path: Path) -> None:
    done = execute("--seed=7", written(tmp_path, STEPS))
    assert done.returncode == 0, done.stderr
    order = SequencedReplacement(30, 4, seed=7)
    firsts = [[10 + index for index in order.batch(8 * epoch).tolist()] for epoch in range(5)]
    assert json.loads(done.stdout) == [*firsts, *(list(range(start, start + 8)) for start in range(0, 40, 8))]
    assert "N = 30, B = 4: replaced by srs, seed 7: 5 passes begun (epochs 0 to 4), 5 left early" in done.stderr


def test_start_epoch_and_all(tmp_path: Path) -> None:
    written(tmp_path, STEPS)
    done = execute("--seed=7", "--start-epoch=3", "--all", "-m", "script", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, last = SequencedReplacement(30, 4, seed=7).batch(24).tolist(), json.loads(done.stdout)[5:]
    assert json.loads(done.stdout)[0] == [10 + index for index in first]
    assert last != [list(range(start, start + 8)) for start in range(0, 40, 8)]
    assert "5 passes begun (epochs 3 to 7)" in done.stderr
    assert "N = 40, B = 8: replaced by srs, seed " in done.stderr


def test_the_users_process_imports_only_what_the_order_needs(tmp_path: Path) -> None:
    """It imports nothing of the audit, the theory or the streams."""
    script = written(
        tmp_path,
        """
import sys
from torch.utils.data import DataLoader

list(DataLoader(range(9), 4, shuffle=True))
print(*(name for name in sys.modules if name.startswith("replenish.")))
""",
    )
    found = set(execute(script).stdout.split())
    assert "replenish.torch.shuffle_patch" in found
    rooms = ("auditing", "diagnostics", "lab", "measure", "stream", "theory", "torch.stream", "exec.audit")
    assert [name for name in found if name.startswith(tuple(f"replenish.{room}" for room in rooms))] == []


KEPT = """
import os, sys
from torch.utils.data import DataLoader

loader = DataLoader(range(40), 4, shuffle=True)
kept = iter(loader)
first = [next(kept) for _ in range(3)]
other = DataLoader(range(20), 4, shuffle=True)
next(iter(other))
if os.fork() == 0:
    list(other)
    os._exit(0)
os.wait()
"""


def test_a_kept_iterator_and_a_fork_are_counted(tmp_path: Path) -> None:
    done = execute(written(tmp_path, KEPT))
    assert done.returncode == 0, done.stderr
    first, other = done.stderr.splitlines()
    distinct = len({index for batch in as_lists(SequencedReplacement(40, 4).batches(0, 3)) for index in batch})
    assert f"1 pass begun (epoch 0), 1 left early, {distinct} of 40 samples" in first
    assert "N = 20, B = 4: replaced by srs, seed " in other


def test_records_of_several_processes_give_one_line_and_a_warning_if_passes_differ(tmp_path: Path) -> None:
    for rank, passes in enumerate((2, 3)):
        record = LoaderRecord("list", 40, 8, num_replicas=2, order="srs", seed=1, passes=passes, epochs=(0, passes - 1))
        RecordWriter(str(tmp_path), [record, LoaderRecord("list", 9, reason="it does not shuffle")]).write()
        (tmp_path / f"{os.getpid()}.json").rename(tmp_path / f"{rank}.json")
    first, other = read_records(tmp_path).summaries()
    assert "N = 40, B = 8 over 2 processes: replaced by srs, seed 1: 2 passes begun (epochs 0 to 1)" in first
    assert first.endswith("; warning: processes began 2 and 3 passes, so their batches belong to different epochs")
    assert other == "loader over list, N = 9: left alone, it does not shuffle"


def test_records_of_earlier_releases_are_read() -> None:
    old = {"said": "train.py:3: N = 9: replaced by srs", "replaced": True}
    records = RunRecords(({**old, "num_samples": 9, "batch_size": 3, "num_replicas": 1},))
    assert records.summaries() == ["train.py:3: N = 9: replaced by srs"]
    assert records.sizes() == [(9, 3, 1)]
