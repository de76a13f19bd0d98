"""The replication as a PDF: docs/replication.md, printed by Chromium with docs/paper.css (`make paper`).

python docs/paper.py [docs/_build/replication.pdf]
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent
PAGE, STYLE, OUT = DOCS / "replication.md", DOCS / "paper.css", DOCS / "_build" / "replication.pdf"
AUTHORS = "The Replenish authors"


def paper_html(markdown: str) -> str:
    """Return the page as an HTML document for printing: headline as summary, pictures as numbered figures.

    Links to other pages of the site become plain text.
    """
    from markdown_it import MarkdownIt

    plain = re.sub(r"<!--.*?-->\n*", lambda found: "" if "headline" not in found[0] else found[0], markdown)
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(plain)
    body = re.sub(r'<a href="(?!https?:)[^"]*">(.*?)</a>', r"\1", body, flags=re.DOTALL)
    body = re.sub(
        r'<p><img src="([^"]*)" alt="([^"]*)" ?/?></p>',
        lambda found: (
            f'<figure><img src="{(DOCS / found[1]).as_uri()}" alt=""><figcaption>{found[2]}.</figcaption></figure>'
        ),
        body,
    )
    body = body.replace("</h1>", f'</h1>\n<p class="authors">{AUTHORS}</p>', 1)
    body = body.replace("<!-- begin: headline -->", '<div class="abstract">', 1).replace(
        "<!-- end: headline -->", "</div>", 1
    )
    title = re.search(r"^# (.*)$", markdown, flags=re.MULTILINE)
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title[1] if title else ""}</title>'
        f"<style>{STYLE.read_text()}</style></head><body>{body}</body></html>"
    )


def print_pdf(html: str, out: Path) -> None:
    """Print an HTML document with Chromium."""
    chromium = os.environ.get("REPLENISH_CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit(
            "there is no Chromium here; install Debian's package `chromium` or name one in REPLENISH_CHROMIUM"
        )
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "paper.html"
        page.write_text(html)
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            "--allow-file-access-from-files",
        ]
        flags += [f"--user-data-dir={folder}/profile", f"--print-to-pdf={out}"]
        done = subprocess.run([chromium, *flags, page.as_uri()], capture_output=True, text=True, check=False)
    if done.returncode or not out.exists():
        raise SystemExit(f"Chromium did not print: {done.stderr.strip()[-400:]}")


if __name__ == "__main__":
    made = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else OUT
    print_pdf(paper_html(PAGE.read_text()), made)
    print(made)
