"""The core needs numpy alone, in the source tree and in the built wheel."""

from __future__ import annotations

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

import replenish

ROOT = Path(__file__).parent.parent

ONLY_NUMPY = """
import sys
import replenish
order = replenish.SequencedReplacement(100, 10, seed=1)
assert len(order.batch(10**6)) == 10
assert replenish.theory is not None
heavy = {"torch", "scipy", "sklearn", "matplotlib", "rich", "typer", "pandas"} & set(sys.modules)
assert not heavy, heavy
print(replenish.__version__)
"""


def run(*command: str | Path) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def test_import_leaves_torch_out() -> None:
    assert run(sys.executable, "-c", ONLY_NUMPY) == replenish.__version__


def test_exports_are_sorted_and_promised() -> None:
    source = (ROOT / "replenish" / "__init__.py").read_text()
    lines = [line.strip() for line in source.splitlines() if line.startswith("    from replenish")]
    assert lines == sorted(lines)
    assert sorted(line.split()[-1] for line in lines) == replenish.__all__  # type checkers are told of what there is
    promised = ["SequencedReplacement", "RandomReshuffling", "ShuffleOnce", "FlipFlop", "BatchedReplacement"]
    promised += ["IndependentDraws", "weighted_sequence", "theory", "diagnostics", "stream", "Order"]
    assert all(hasattr(replenish, name) for name in {*promised, *replenish.__all__})


def test_version_is_said_once_more_in_the_package() -> None:
    assert f'version = "{replenish.__version__}"' in (ROOT / "pyproject.toml").read_text()
    assert f"version: {replenish.__version__}" in (ROOT / "CITATION.cff").read_text()


@pytest.mark.slow
def test_the_wheel_works_with_numpy_alone(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("replenish-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert "replenish/py.typed" in names
    assert "replenish/lab/explain/templates/player.html" in names
    assert "replenish/lab/show/templates/page.html" in names
    assert not [name for name in names if name.startswith(("tests/", "docs/", "benchmarks/"))]

    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    installed = run(python, "-m", "pip", "list", "--format=freeze", "--disable-pip-version-check").lower()
    names_installed = {line.split("==")[0] for line in installed.splitlines()} - {"pip", "setuptools"}
    assert names_installed == {"numpy", "replenish"}
    assert run(python, "-I", "-c", ONLY_NUMPY) == replenish.__version__


def test_torch_adapters_say_what_is_missing() -> None:
    """Without torch the core works, and the adapters fail with the name of what to install."""
    blocked = 'import sys; sys.modules["torch"] = None\nimport replenish\nimport replenish.torch\n'
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'replenish[torch]'" in done.stderr
