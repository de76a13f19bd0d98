"""The pages include the examples, and name the tested versions."""

from __future__ import annotations

import importlib.metadata
import re
from pathlib import Path

import pytest
from integration_support import EXAMPLES, ROOT
from packaging.version import parse
from ways import WAYS, exact, lost, named_in, refused, table

PAGES = sorted((ROOT / "docs" / "integrations").glob("*.md"))
INDEX = (ROOT / "docs" / "integrations" / "index.md").read_text()
#: Name, lowest version, recent version. The lowest is "" if it equals the recent one, or was not tested.
TESTED = re.findall(r"\| `([\w-]+)` (?:([\d.]+) to )?([\d.]+) \|", INDEX)
LOWEST = dict(re.findall(r"^([\w-]+)==(.+)$", (ROOT / "constraints-lowest.txt").read_text(), flags=re.MULTILINE))


def test_every_script_of_a_page_is_an_example_and_every_example_is_on_a_page() -> None:
    shown = []
    for page in PAGES:
        blocks = re.findall(r"^```\{literalinclude\} (\S+)$", page.read_text(), flags=re.MULTILINE)
        shown += [(page.parent / block).resolve() for block in blocks]
    assert sorted(shown) == sorted((*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.sh")))


def test_the_table_names_every_page() -> None:
    assert all(f"({page.name})" in INDEX for page in PAGES if page.name != "index.md")


@pytest.mark.parametrize(("package", "lowest", "recent"), TESTED)
def test_versions(package: str, lowest: str, recent: str) -> None:
    assert LOWEST.get(package, recent) == (lowest or recent), "the table and constraints-lowest.txt differ"
    try:
        installed = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        pytest.skip(f"{package} is not installed")
    newer = parse(installed).release >= parse(recent).release
    assert newer or installed == lowest, "the table names a version that was not tested"


def test_the_table_of_ways_is_the_tests() -> None:
    """Every row is named in a test file, which fails if it does not assert the row."""
    assert table() in INDEX, "put ways.table() into the page"
    tests = [*Path(__file__).parent.glob("test_*.py"), *(ROOT / "tests" / "torch").glob("test_*.py")]
    held = set().union(*(named_in(file) for file in tests if file != Path(__file__)))
    assert [(stack, way) for stack, ways in WAYS.items() for way in ways if (stack, way) not in held] == []


def test_a_wrong_result_of_a_row_fails() -> None:
    same, other, refuses = (
        "whole epochs, with or without `set_epoch`",
        "`itertools.cycle(loader)`",
        "a step counted within the epoch",
    )
    exact("PyTorch", same, seen=[1], whole=[1])
    with refused("PyTorch", refuses, match="x"):
        raise ValueError("x")
    lost("PyTorch", other, seen=[1], whole=[2])
    for wrong in (
        lambda: exact("PyTorch", same, seen=[1], whole=[2]),
        lambda: exact("PyTorch", refuses, seen=[1], whole=[1]),
        lambda: refused("PyTorch", same, match="x").__enter__(),
        lambda: lost("PyTorch", other, seen=[1], whole=[1]),
        lambda: exact("PyTorch", "no such row", seen=[1], whole=[1]),
    ):
        with pytest.raises(AssertionError):
            wrong()


def test_versions_are_read() -> None:
    assert len(TESTED) >= 7
