"""The notebooks of examples/ run, and show what stands in them."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
RUNNER = runpy.run_path(str(EXAMPLES / "run_notebooks.py"))


def shown(notebook: dict[str, Any]) -> list[str]:
    """Return what the cells show as text; trained numbers, which may differ from machine to machine, are left out."""
    texts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "compare_trainings(" not in "".join(cell["source"]):
            for output in cell["outputs"]:
                texts.append("".join(output.get("text") or output["data"]["text/plain"]))
    return texts


@pytest.mark.parametrize("path", RUNNER["NOTEBOOKS"], ids=lambda path: path.stem)
def test_notebooks_run_and_show_what_stands_in_them(path: Path) -> None:
    committed = json.loads(path.read_text())
    ran = RUNNER["run"](committed)
    assert shown(ran) == shown(committed), "run `python examples/run_notebooks.py`"
    assert any("text/html" in output.get("data", {}) for cell in ran["cells"] for output in cell.get("outputs", []))
    assert path.stat().st_size < 30_000
    assert all(cell["id"] for cell in committed["cells"])
    assert (committed["nbformat"], committed["nbformat_minor"]) == (4, 5)
