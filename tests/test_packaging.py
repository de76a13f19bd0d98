"""The package and its maintenance: imports, exports, lower bounds, and workflows."""

from __future__ import annotations

import itertools
import re
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
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


WITHOUT_TORCH = """
import sys
from replenish import audit, diagnostics
from replenish.lab.experiments.table import experiments_table
from replenish.lab.data import load
audit([[0, 1], [2, 3]])
diagnostics.noise_spectrum([[0, 1], [2, 3]], 3)
diagnostics.measure_mixing([0, 1], 1, [2])
experiments_table("full").rows
load("digits")
print("torch" in sys.modules)
"""


def test_import_leaves_torch_out() -> None:
    assert run(sys.executable, "-c", ONLY_NUMPY) == replenish.__version__


def test_audits_diagnostics_lists_and_data_need_no_torch() -> None:
    assert run(sys.executable, "-c", WITHOUT_TORCH) == "False"


def test_exports_are_sorted_and_include_the_promised_names() -> None:
    source = (ROOT / "replenish" / "__init__.py").read_text()
    lines = [line.strip() for line in source.splitlines() if line.startswith("    from replenish")]
    assert lines == sorted(lines)
    assert sorted(line.split()[-1] for line in lines) == replenish.__all__  # type checkers see the same names
    promised = ["SequencedReplacement", "RandomReshuffling", "ShuffleOnce", "FlipFlop", "BatchedReplacement"]
    promised += ["IndependentDraws", "weighted_sequence", "theory", "diagnostics", "stream", "Order"]
    assert all(hasattr(replenish, name) for name in {*promised, *replenish.__all__})


def test_version_has_one_source_and_is_in_the_changelog_and_the_citation() -> None:
    assert CHECKS["source_version"]() == replenish.__version__
    CHECKS["check_version"](tag=f"v{replenish.__version__}")
    with pytest.raises(AssertionError, match="tag should be v"):
        CHECKS["check_version"](tag="v0")


def declared() -> dict[str, set[str]]:
    """Return the lower bounds in pyproject.toml by package, without packages that only developers need."""
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


def test_without_torch_the_adapters_name_the_extra() -> None:
    """Without torch the core works, and importing the adapters fails with advice."""
    blocked = 'import sys; sys.modules["torch"] = None\nimport replenish\nimport replenish.torch\n'
    done = subprocess.run([sys.executable, "-c", blocked], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "pip install 'replenish[torch]'" in done.stderr


# ---- Workflows, hooks and templates ----


WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w.-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
FILES = [*ROOT.glob(".github/**/*.*"), ROOT / ".pre-commit-config.yaml", ROOT / "SECURITY.md", ROOT / "hubconf.py"]


def parsed(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in parsed(workflow)["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflows:
    def test_their_make_targets_exist(self, workflow: Path) -> None:
        script = "\n".join(step.get("run", "") for step in steps(workflow))
        named = set(re.findall(r"\bmake ([a-z][\w-]*)", script))
        for job in parsed(workflow)["jobs"].values():
            matrix = job.get("strategy", {}).get("matrix", {})
            named |= {*matrix.get("target", []), *(row["target"] for row in matrix.get("include", []))}
        assert named <= TARGETS
        assert not re.findall(r"\bmake (?!\$\{\{ matrix\.target|\.venv/ready|[a-z])", script)

    def test_actions_are_pinned_by_version(self, workflow: Path) -> None:
        used = [step["uses"] for step in steps(workflow) if "uses" in step]
        assert used
        assert [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", name)] == []

    def test_they_may_only_read(self, workflow: Path) -> None:
        assert parsed(workflow)["permissions"] == {"contents": "read"}


def test_every_declared_python_is_tested_with_lowest_and_newest_versions() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    matrix = parsed(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["matrix"]["strategy"]["matrix"]
    assert matrix["python"] == [row["python"] for row in matrix["include"]] == declared
    lowest = dict(re.findall(r"^(\w+)==(.+)$", (ROOT / "constraints-lowest.txt").read_text(), flags=re.MULTILINE))
    floor = re.findall(r'"torch>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    for row in matrix["include"]:
        if row["target"] == "test-lowest":
            assert (row["numpy"], row["torch"]) == (lowest["numpy"], f"{floor[0]}.0")


def test_no_file_names_an_account_that_is_not_ours() -> None:
    for path in [
        *FILES,
        ROOT / "pyproject.toml",
        ROOT / "CITATION.cff",
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
    ]:
        text = path.read_text()
        assert "replenish-srs" not in text, path
        assert not re.findall(r"github\.(?:com|io)/replenish\b", text), path
        assert all('source="local"' in call for call in re.findall(r"hub\.load\([^)]*\)", text)), path


def test_a_release_without_the_publishers_address_is_refused() -> None:
    check = runpy.run_path(str(ROOT / ".ci" / "release_check.py"))["check_publisher"]
    if "Repository =" in (ROOT / "pyproject.toml").read_text().replace('nowhere else: Repository = "', ""):
        check()
    else:
        with pytest.raises(SystemExit, match="Repository"):
            check()
