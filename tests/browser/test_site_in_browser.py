"""The site in a browser: pages open from files, formulas are drawn, the search works, the explorer is there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow
PAGES = ["index", "how_it_works", "api/orders"]


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_pages_open(open_page: Any, site: Path, name: str, width: str, scheme: str) -> None:
    page = open_page(site / f"{name}.html", width=width, scheme=scheme)
    assert page.locator("h1").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "the body scrolls sideways"


def test_formulas_are_drawn(open_page: Any, site: Path) -> None:
    page = open_page(site / "theory.html")
    sizes = page.eval_on_selector_all("math", "all => all.map(one => one.getBoundingClientRect().height)")
    assert len(sizes) > 100
    assert min(sizes) > 5
    # The limits of a sum are above and below it, so the formula is much taller than a line.
    assert page.locator(".equation math").first.bounding_box()["height"] > 45


def test_search_works_from_files(open_page: Any, site: Path) -> None:
    page = open_page(site / "index.html")
    page.get_by_role("textbox", name="Search").fill("geometric")
    page.keyboard.press("Enter")
    page.wait_for_selector("#search-results li a")
    assert "Theory" in page.locator("#search-results").inner_text()


def test_the_explorer_is_embedded_and_opens_by_itself(open_page: Any, site: Path) -> None:
    page = open_page(site / "how_it_works.html")
    frame = page.locator(".explorer iframe")
    assert frame.get_attribute("title")
    frame.scroll_into_view_if_needed()
    explorer = page.frame_locator(".explorer iframe")
    assert "Sequenced-replacement" in explorer.locator("h1").inner_text()
    page.get_by_role("link", name="Open the explorer by itself").click()
    assert page.url.endswith("_static/explorer.html")


def test_the_explorer_follows_the_colour_scheme_of_the_site(open_page: Any, site: Path) -> None:
    page = open_page(site / "how_it_works.html", scheme="null")  # the system's scheme, which is light in tests
    page.evaluate("document.body.dataset.theme = 'dark'")
    page.locator(".explorer iframe").scroll_into_view_if_needed()
    page.frame_locator(".explorer iframe").locator("h1").wait_for()
    assert page.frames[1].evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
