"""Builds the documentation for tests, and makes its extensions importable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
sys.path.append(str(DOCS / "_ext"))


def build_site(docs: Path = DOCS) -> Path:
    """Build the site as `make docs` does, and return the folder of its pages. After `make docs` it takes seconds."""
    pages = docs / "_build" / "html"
    command = ["-W", "--keep-going", "-n", "-q", "-b", "html"]
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", *command, str(docs), str(pages)], capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"the site was not built:\n{done.stderr}")
    return pages
