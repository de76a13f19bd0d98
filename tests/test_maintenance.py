"""The workflows, hooks and templates: they parse, name what is there, and invent no address."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TARGETS = set(re.findall(r"^([\w.-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
FILES = [*ROOT.glob(".github/**/*.*"), ROOT / ".pre-commit-config.yaml", ROOT / "SECURITY.md", ROOT / "hubconf.py"]


def parsed(path: Path) -> dict[str, Any]:
    return yaml.safe_load(path.read_text())


def steps(workflow: Path) -> list[dict[str, Any]]:
    return [step for job in parsed(workflow)["jobs"].values() for step in job.get("steps", [])]


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
class TestWorkflows:
    def test_what_they_make_is_there(self, workflow: Path) -> None:
        said = "\n".join(step.get("run", "") for step in steps(workflow))
        named = set(re.findall(r"\bmake ([a-z][\w-]*)", said))
        for job in parsed(workflow)["jobs"].values():
            matrix = job.get("strategy", {}).get("matrix", {})
            named |= {*matrix.get("target", []), *(row["target"] for row in matrix.get("include", []))}
        assert named <= TARGETS
        assert not re.findall(r"\bmake (?!\$\{\{ matrix\.target|\.venv/ready|[a-z])", said)

    def test_actions_are_pinned_by_version(self, workflow: Path) -> None:
        used = [step["uses"] for step in steps(workflow) if "uses" in step]
        assert used
        assert [name for name in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+\.\d+\.\d+", name)] == []

    def test_nobody_may_more_than_needed(self, workflow: Path) -> None:
        assert parsed(workflow)["permissions"] == {"contents": "read"}


def test_every_python_that_is_declared_is_tested_with_lowest_and_newest() -> None:
    declared = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    matrix = parsed(ROOT / ".github" / "workflows" / "tests.yml")["jobs"]["matrix"]["strategy"]["matrix"]
    assert matrix["python"] == [row["python"] for row in matrix["include"]] == declared
    lowest = dict(re.findall(r"^(\w+)==(.+)$", (ROOT / "constraints-lowest.txt").read_text(), flags=re.MULTILINE))
    floor = re.findall(r'"torch>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())
    for row in matrix["include"]:
        if row["target"] == "test-lowest":
            assert (row["numpy"], row["torch"]) == (lowest["numpy"], f"{floor[0]}.0")


def test_no_file_names_an_account_that_nobody_here_owns() -> None:
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
