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


def test_a_value_is_shown_as_text_and_html() -> None:
    source = "from replenish import ShuffleOnce\nprint(1)\nShuffleOnce(4, 2)"
    cell = {"cell_type": "code", "metadata": {}, "id": "a", "source": [source], "outputs": [], "execution_count": None}
    (ran,) = RUNNER["run"]({"cells": [cell]})["cells"]
    printed, value = ran["outputs"]
    assert printed["text"] == ["1\n"]
    assert value["data"]["text/plain"] == ["ShuffleOnce(num_samples=4, batch_size=2, seed=0, drop_last=False)"]
    assert "<td" in "".join(value["data"]["text/html"])
