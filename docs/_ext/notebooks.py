"""Put the cells of a notebook in examples/ in place of a line `<!-- notebook: NAME -->`."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def insert_notebooks(app: Sphinx, docname: str, source: list[str]) -> None:
    """Replace every line that names a notebook with its cells, as Markdown."""
    examples = Path(app.srcdir).parent / "examples"

    def cells(found: re.Match[str]) -> str:
        path = examples / f"{found[1]}.ipynb"
        app.env.note_dependency(str(path))
        return "\n\n".join(_markdown(json.loads(path.read_text(encoding="utf-8"))))

    source[0] = re.sub(r"^<!-- notebook: (\w+) -->$", cells, source[0], flags=re.MULTILINE)


def _markdown(notebook: dict[str, Any]) -> Iterator[str]:
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            text = re.sub(r"^#", "##", text, flags=re.MULTILINE)  # the page has the title
            text = re.sub(r"\]\(\w+\.ipynb\)", "](notebooks.md)", text)
            yield text.replace("](../docs/", "](")
            continue
        yield f"```python\n{text}\n```"
        for output in cell["outputs"]:
            data = output.get("data", {"text/plain": output.get("text", "")})
            if "text/html" in data:
                yield f"```{{raw}} html\n{''.join(data['text/html'])}\n```"
            else:
                yield f"```text\n{''.join(data['text/plain']).rstrip()}\n```"


def setup(app: Sphinx) -> dict[str, bool]:
    """Insert the notebooks as pages are read."""
    app.connect("source-read", insert_notebooks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
