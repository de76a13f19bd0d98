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

from replenish import SequencedReplacement
from replenish.draws import derived_seed

SCRIPTS = Path(__file__).parent / "scripts"
DIGITS, DDP = SCRIPTS / "digits_loop.py", SCRIPTS / "ddp_gloo.py"


def environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}


def execute(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish", "exec", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=200, cwd=cwd, env=environment())


def python(*words: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *map(str, words)],
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
        cwd=cwd,
        env=environment(),
    )


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
    drawn = as_lists(SequencedReplacement(450, 64, seed=derived_seed(3, "loader", 0)).batches(0, 16))
    cut = [batch if step % 8 < 7 else batch[:2] for step, batch in enumerate(drawn)]  # 450 = 7 * 64 + 2
    assert json.loads(log.read_text()) == cut
    assert done.stdout.count("test acc:") == 2
    train, test = done.stderr.splitlines()[-2:]
    assert "digits_loop.py:" in train
    assert train.endswith("N = 450, B = 64, 1 process: replaced by srs, seed 3")
    assert test.endswith("N = 250, B = 1,000, 1 process: left alone, it does not shuffle")


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
    drawn = as_lists(SequencedReplacement(101, 16, seed=derived_seed(4, "shared loader", 0)).batches(21, 35))
    # 51 samples a process: six batches of 8 and one of 3.
    assert shares(tmp_path, 2) == [batch if step % 7 < 6 else batch[:6] for step, batch in enumerate(drawn)]
    said = [line for line in done.stderr.splitlines() if line.startswith("replenish: ")]
    assert len(said) == 1
    assert said[0].endswith("N = 101, B = 16, 2 processes: replaced by srs, seed 4")


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
def test_a_script_finds_what_python_would_give_it(as_module: bool, tmp_path: Path) -> None:
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


def test_a_syntax_error_is_pythons(tmp_path: Path) -> None:
    path = written(tmp_path, "x = = 1\n")
    assert execute(path).stderr == python(path).stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_are_the_scripts(number: signal.Signals, tmp_path: Path) -> None:
    path = written(tmp_path, f"import os\nos.kill(os.getpid(), {int(number)})\nprint('deaf')\n")
    ours, its = execute(path), python(path)
    assert ours.returncode == its.returncode == -number
    assert (ours.stdout, ours.stderr) == (its.stdout, its.stderr)
    assert ours.stdout == ""


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("print('done')", "it never made a DataLoader"),
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
        (["--option=sequence", "x.py"], "--option should be NAME=VALUE"),
        (["-m", "no.such.module"], "there is no module no.such.module"),
        (["-m"], "-m should be followed by the name of a module"),
    ],
)
def test_wrong_arguments_are_a_sentence(words: list[str], sentence: str, tmp_path: Path) -> None:
    script = written(tmp_path, "", "x.py")
    done = execute(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == [script]


def test_a_sitecustomize_of_the_users_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written(tmp_path, "print('mine')", "site/sitecustomize.py")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    done = execute(written(tmp_path, "print('script')"))
    assert done.stdout.splitlines()[-2:] == ["mine", "script"]


@pytest.mark.parametrize("way", ["multiprocessing", "subprocess"])
def test_processes_that_train_side_by_side_draw_for_themselves(way: str, tmp_path: Path) -> None:
    """As Hogwild's do, which seed torch with their rank: the same batches in all would be another training."""
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
        DataLoader(range(40), shuffle=True)  # one that the others inherit if they are forked
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
    for _ in range(2):
        done = execute(script, tmp_path / "drawn", way)
        assert done.returncode == 0, done.stderr
        assert "script.py:7: N = 40, B = 4, 1 process: replaced by srs, seed 0" in done.stderr
        drawn = [(tmp_path / f"drawn{rank}").read_text() for rank in range(4)]
        assert drawn[0] == drawn[1] != drawn[2] == drawn[3]
