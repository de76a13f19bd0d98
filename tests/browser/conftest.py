"""A real Chromium for the tests of pages. Every page is watched for errors and for network requests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = os.environ.get("REPLENISH_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
WIDTHS = {"desktop": (1280, 900), "phone": (375, 812)}

OpenPage = Callable[..., "playwright.Page"]


# One browser per file: processes that tests of other files fork would keep its pipes open, and closing it would hang.
@pytest.fixture(scope="module")
def browser() -> Iterator[playwright.Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here; install Debian's package `chromium` or name one in REPLENISH_CHROMIUM")
    with playwright.sync_playwright() as driver:
        flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"]
        flags += ["--disable-background-networking", "--disable-component-update"]
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=flags)
        yield chromium
        chromium.close()


@pytest.fixture
def open_page(browser: playwright.Browser) -> Iterator[OpenPage]:
    """Open a local HTML file. The test fails at its end if a page logged an error or made a network request."""
    faults: list[str] = []
    contexts = []

    def open_file(path: Path, *, width: str = "desktop", scheme: str = "light") -> playwright.Page:
        columns, rows = WIDTHS[width]
        context = browser.new_context(viewport={"width": columns, "height": rows}, color_scheme=scheme)
        context.set_default_timeout(120_000)  # milliseconds; so long that a busy machine never reaches it
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("request", lambda request: faults.append(request.url) if request.url.startswith("http") else None)
        page.goto(path.resolve().as_uri())
        return page

    yield open_file
    for context in contexts:
        context.close()
    assert not faults, faults
