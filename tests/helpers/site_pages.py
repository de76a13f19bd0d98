"""How the tests build the documentation, and reach the extensions that it is built with."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
sys.path.append(str(DOCS / "_ext"))


def build_site(docs: Path = DOCS) -> Path:
    """Build the site as `make docs` does, which takes seconds after `make docs`, and return where its pages are."""
    pages = docs / "_build" / "html"
    command = ["-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command, str(docs), str(pages)], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the site was not built:\n{done.stderr}")
    return pages
