"""Every Python block of the README and the docs runs, page by page, and docstring examples say the truth."""

from __future__ import annotations

import doctest
import importlib
import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # A file, not exec of a string: DataLoader workers and tracebacks want a real module.
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(blocks(page)))
    runpy.run_path(str(script))


def modules_with_examples() -> list[str]:
    files = sorted((ROOT / "replenish").rglob("*.py"))
    named = [path.relative_to(ROOT).with_suffix("") for path in files if ">>> " in path.read_text()]
    return [".".join(path.parts).removesuffix(".__init__") for path in named]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:  # an integration whose framework is not in this environment
        if not name.startswith("replenish.integrations."):
            raise
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


def test_links_between_pages_lead_somewhere() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_readme_is_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_the_picture_is_what_its_command_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "docs" / "pool_picture.py"))["picture"]()
    assert (ROOT / "docs" / "pool.svg").read_text() == drawn
