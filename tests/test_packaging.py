"""The core needs numpy alone, in the source tree and in the built wheel."""

from __future__ import annotations

import itertools
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import replenish

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent
DEVELOPERS = ("docs", "test", "lint")

CHECKS = runpy.run_path(str(ROOT / ".ci" / "release_check.py"))
ONLY_NUMPY: str = CHECKS["ONLY_NUMPY"]


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


def test_version_has_one_source_and_is_in_the_changelog_and_the_citation() -> None:
    assert CHECKS["source_version"]() == replenish.__version__
    CHECKS["check_version"](tag=f"v{replenish.__version__}")
    with pytest.raises(AssertionError, match="tag should be v"):
        CHECKS["check_version"](tag="v0")


def declared() -> dict[str, set[str]]:
    """The lower bounds of every package that pyproject.toml declares, by name, but of what only the developers need."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = {name: lines for name, lines in project["optional-dependencies"].items() if name not in DEVELOPERS}
    found: dict[str, set[str]] = {}
    for line in itertools.chain(project["dependencies"], *extras.values()):
        requirement = Requirement(line)
        if requirement.name != "replenish":
            bounds = {part.version for part in requirement.specifier if part.operator == ">="}
            found.setdefault(requirement.name, set()).update(bounds or {"none"})
    return found


def test_lower_bounds_are_the_tested_versions() -> None:
    tested = {name: Version(version) for name, version in CHECKS["lowest"]().items()}
    bounds = declared()
    assert set(bounds) - set(tested) == {"torch"}  # see constraints-lowest.txt
    differing = {
        name: bounds[name] for name in set(bounds) - {"torch"} if set(map(Version, bounds[name])) != {tested[name]}
    }
    assert not differing, "constraints-lowest.txt and pyproject.toml differ"


@pytest.mark.slow
@pytest.mark.skipif(sys.version_info >= (3, 13), reason="the lowest numpy has no build for this Python")
def test_the_wheel_works_with_the_lowest_numpy_alone(tmp_path: Path) -> None:
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT)
    (wheel,) = tmp_path.glob("replenish-*.whl")
    CHECKS["check_contents"](wheel)
    CHECKS["check_core"](wheel, tmp_path / "core")


def test_torch_adapters_say_what_is_missing() -> None:
    """Without torch the core works, and the adapters fail with the name of what to install."""
    blocked = 'import sys; sys.modules["torch"] = None\nimport replenish\nimport replenish.torch\n'
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'replenish[torch]'" in done.stderr
