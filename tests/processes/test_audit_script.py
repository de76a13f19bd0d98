"""`replenish audit` with real scripts in real processes: each planted fault is found, and nothing else is claimed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

AUDITED = Path(__file__).parent / "scripts" / "audited.py"


def audited(*words: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "replenish", "audit", *map(str, words)]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, cwd=cwd, env=environment)


@pytest.mark.slow
def test_every_training_loader_is_audited_and_faults_are_found(tmp_path: Path) -> None:
    html, plain = tmp_path / "audit.html", tmp_path / "audit.json"
    done = audited("--epochs=2", "--steps=0", "--html", html, "--json", plain, AUDITED, 1, cwd=tmp_path)
    assert done.returncode == 1, done.stderr
    assert "epoch 0" in done.stdout  # the script went on to its end
    found = json.loads(plain.read_text())["loaders"]
    assert [each["state"] for each in found] == ["audited"] * 7 + ["evaluated"]
    wrong: list[Any] = [
        [finding["name"] for finding in each["audit"]["findings"] if finding["level"] == "fault"] for each in found[:7]
    ]
    # Labels that a dataset has are looked at: data that are not shuffled have them in bunches.
    assert wrong == [[], ["epochs"], [], ["coverage", "labels"], [], ["augmentation"], []]
    assert found[6]["audit"]["subject"].startswith("DataLoader (Stream), 200 items")
    assert "expected, since WeightedRandomSampler draws samples more than once" in done.stdout
    assert "call DistributedSampler.set_epoch(epoch) before every epoch" in done.stdout
    assert done.stdout.count("not audited, it was iterated with gradients off alone, as in an evaluation") == 1
    page = html.read_text()
    assert "What the loaders really do" in page
    assert page.count("call DistributedSampler.set_epoch(epoch) before every epoch") == 2  # at the top, in its table


def test_the_script_is_ended_after_some_batches(tmp_path: Path) -> None:
    script = tmp_path / "loop.py"
    script.write_text(
        "import sys, torch\nfrom torch.utils.data import DataLoader\nassert sys.argv[1:] == ['--steps', '7']\n"
        "loader = DataLoader(range(1000), shuffle=True)\ndone = 0\n"
        "try:\n    for _ in loader:\n        done += 1\nfinally:\n    print('did', done)\n"
    )
    done = audited("--steps=5", "--epochs=2", "-m", "loop", "--steps", 7, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("did 5\n")
    assert "loop.py:4: DataLoader (RandomSampler), 1000 samples, batches of 1, 2 epochs: ok" in done.stdout


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ("print('nothing')", 2, "replenish: nothing was audited: it made no DataLoader"),
        (
            "from torch.utils.data import DataLoader\nDataLoader(range(3))",
            2,
            "replenish: nothing was audited: it trained with none of its loaders",
        ),
        ("raise SystemExit(7)", 7, ""),
    ],
)
def test_scripts_without_a_training(text: str, code: int, said: str, tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(text)
    done = audited("script.py", cwd=tmp_path)
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--epochs=1", AUDITED], "--epochs should be at least 2, but got 1"),
        (["--html=page.txt", AUDITED], "--html should be the name of a .html file, but got page.txt"),
        (["nowhere.py"], "nowhere.py is not a file; give the path of a Python script, or -m and a module"),
    ],
)
def test_wrong_arguments(words: list[object], said: str, tmp_path: Path) -> None:
    done = audited(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert done.stderr == f"replenish: {said}\n"
    assert not list(tmp_path.iterdir())
