"""The replication as a paper: its HTML has no dead links, and Chromium prints it."""

from __future__ import annotations

import re
import runpy
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture(scope="module")
def paper() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "paper.py"))


def test_the_page_as_a_paper(paper: dict[str, Any]) -> None:
    page = (DOCS / "replication.md").read_text()
    html = paper["paper_html"](page)
    pictures = re.findall(r'<img src="file://([^"]*)"', html)
    assert [Path(picture).name for picture in pictures] == re.findall(r"^!\[[^\]]*\]\(([^)]*)\)$", page, re.MULTILINE)
    assert all(Path(picture).exists() for picture in pictures)
    assert html.count("<figcaption>") == len(pictures) == 3
    assert html.count("<table>") == 6
    assert '<div class="abstract">' in html
    assert "<!--" not in html
    assert not re.findall(r'href="(?!https?:)', html)


def test_chromium_prints_it(paper: dict[str, Any], browser: object, tmp_path: Path) -> None:
    out = tmp_path / "paper.pdf"
    paper["print_pdf"](paper["paper_html"]((DOCS / "replication.md").read_text()), out)
    printed = out.read_bytes()
    assert printed.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) >= 4
