"""Check the links between the built pages: each must lead to a file, and to an anchor that the file has.

MyST checks the links in the Markdown. This also checks what themes, raw HTML and the reference put into pages.
"""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from sphinx.application import Sphinx
from sphinx.util import logging

#: The elements whose files a browser fetches by itself, and the attribute that names the file.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
log = logging.getLogger(__name__)


class Page(HTMLParser):
    """The anchors, links and fetched files of one HTML file."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Record the element's anchor and link."""
        found = {name: value or "" for name, value in attributes}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in FETCHED and FETCHED[tag] in found:
            self.fetched.append(found[FETCHED[tag]])


def find_dead_links(folder: Path) -> list[str]:
    """Return the dead links between local files, and the files that pages fetch but that do not exist."""
    pages = {path.resolve(): Page(path) for path in sorted(folder.rglob("*.html"))}
    dead = []
    for path, page in pages.items():
        for link in [*page.links, *page.fetched]:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment)
            known = pages[target].anchors if target in pages else {anchor}
            if not target.is_file() or (anchor and anchor not in known):
                dead.append(f"{path.relative_to(folder.resolve())} -> {link}")
    return dead


def warn(app: Sphinx, error: Exception | None) -> None:
    """Warn of each dead link, so that a build with -W fails."""
    if error is None and app.builder.name == "html":
        for dead in find_dead_links(Path(app.outdir)):
            log.warning("a link leads nowhere: %s", dead)


def setup(app: Sphinx) -> dict[str, bool]:
    """Check after all pages are written, the explorer (priority 500) included."""
    app.connect("build-finished", warn, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
