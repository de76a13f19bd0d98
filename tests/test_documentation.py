"""The README, the docs, the docstrings, the notebooks and the examples: their code runs, and their output is true."""

from __future__ import annotations

import doctest
import importlib
import json
import re
import runpy
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from replenish.cli import app
from replenish.cli.commands import ScriptCommand

ROOT = Path(__file__).parent.parent
COMMANDS = typer.main.get_command(app)
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=lambda page: page.name)
def test_code_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    # Pages and other tests write modules with the same names, such as `networks`, below the same folder.
    for name, module in list(sys.modules.items()):
        if str(getattr(module, "__dict__", {}).get("__file__")).startswith(str(tmp_path.parent)):
            monkeypatch.delitem(sys.modules, name)
    # A file instead of a string: DataLoader workers and tracebacks need a real module.
    script = tmp_path / "page.py"
    script.write_text("\n\n".join(blocks(page)))
    runpy.run_path(str(script))


def modules_with_examples() -> list[str]:
    files = sorted((ROOT / "replenish").rglob("*.py"))
    named = [path.relative_to(ROOT).with_suffix("") for path in files if ">>> " in path.read_text()]
    return [".".join(path.parts).removesuffix(".__init__") for path in named]


@pytest.mark.parametrize("name", modules_with_examples())
def test_docstring_examples(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ImportError as error:  # the framework of an integration is not installed
        if not name.startswith("replenish.integrations."):
            raise
        pytest.skip(str(error))
    assert doctest.testmod(module).failed == 0


def test_links_between_pages_work() -> None:
    for page in [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_pictures_match_their_script() -> None:
    draws = runpy.run_path(str(ROOT / "docs" / "pool_picture.py"))
    assert (ROOT / "docs" / "pool.svg").read_text() == draws["picture"]()
    assert (ROOT / "docs" / "pool_moving.svg").read_text() == draws["moving_picture"]()


def commands_of(text: str) -> Iterator[list[str]]:
    """Yield the words after `replenish` in every command line in code, without phrases such as `--command`."""
    code = [line for line in _blocks_of_commands(text).splitlines() if re.search(r"\breplenish(\.cli)? [a-z-]", line)]
    code += re.findall(r"`((?:[^`\n]* )?replenish [a-z-][^`\n]*)`", text)
    for line in code:
        words = shlex.split(re.split(r" [|&;>]", line)[0], comments=True)
        start = next((place for place, word in enumerate(words) if word == "replenish"), None)
        if start is not None and words[:start] != ["from"] and words[start + 1 :]:
            yield words[start + 1 :]


def _blocks_of_commands(text: str) -> str:
    """Return the lines of code blocks that are not Python, with continued lines joined."""
    text = re.sub(r"^```python\n.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    fenced = re.findall(r"^```\w*\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    indented = re.findall(r"^    .*$", text, flags=re.MULTILINE)
    return "\n".join([*fenced, *indented]).replace("\\\n", " ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_options_exist(page: Path) -> None:
    for words in commands_of(page.read_text()):
        if words == ["compare", "--command"]:  # a phrase in the text
            continue
        line, command = " ".join(words), COMMANDS
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]  # type: ignore[attr-defined]
        context = command.make_context("replenish", [], resilient_parsing=True)
        context.resilient_parsing = False
        if isinstance(command, ScriptCommand) and "-m" in words:
            words.insert(words.index("-m"), "--")
        _, rest, _ = command.make_parser(context).parse_args(list(words))
        assert not rest, f"{page.name} has `replenish {line}`, but {rest} means nothing there"


# ---- The notebooks of examples/ run, and give their stored output ----


EXAMPLES = Path(__file__).parent.parent / "examples"
RUNNER = runpy.run_path(str(EXAMPLES / "run_notebooks.py"))


def shown(notebook: dict[str, Any]) -> list[str]:
    """Return the text output of the cells, without trained numbers, which may differ between machines."""
    texts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code" and "compare_trainings(" not in "".join(cell["source"]):
            for output in cell["outputs"]:
                texts.append("".join(output.get("text") or output["data"]["text/plain"]))
    return texts


@pytest.mark.parametrize("path", RUNNER["NOTEBOOKS"], ids=lambda path: path.stem)
def test_notebooks_run_and_give_their_stored_output(path: Path) -> None:
    committed = json.loads(path.read_text())
    ran = RUNNER["run"](committed)
    assert shown(ran) == shown(committed), "run `python examples/run_notebooks.py`"
    assert any("text/html" in output.get("data", {}) for cell in ran["cells"] for output in cell.get("outputs", []))
    assert path.stat().st_size < 30_000
    assert all(cell["id"] for cell in committed["cells"])
    assert (committed["nbformat"], committed["nbformat_minor"]) == (4, 5)


# ---- The example scripts of streams run ----


def run_example(name: str, folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_generator(tmp_path: Path) -> None:
    assert "resumed with 100 items in the state" in run_example("stream_generator.py", tmp_path)


def test_text(tmp_path: Path) -> None:
    assert "200,000 lines found" in run_example("stream_text.py", tmp_path, "--lines", "200000")
    path = tmp_path / "own.txt"
    path.write_text("one\ntwo\nthree")
    assert "3 lines found" in run_example("stream_text.py", tmp_path, "--file", str(path))


def test_webdataset(tmp_path: Path) -> None:
    pytest.importorskip("webdataset", reason="the example of .tar shards needs webdataset: pip install webdataset")
    assert "1200 samples in 38 batches; resumed" in run_example("stream_webdataset.py", tmp_path)


def test_parquet(tmp_path: Path) -> None:
    pytest.importorskip("datasets", reason="the example of Parquet files needs datasets: pip install datasets")
    assert "resumed from" in run_example("stream_parquet.py", tmp_path)
