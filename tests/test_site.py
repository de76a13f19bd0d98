"""The documentation builds without warnings or dead links, and loads nothing from a network."""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
from pathlib import Path

import pytest

pytest.importorskip("sphinx", reason="the site needs the extra `docs`")
pytest.importorskip("furo", reason="the site needs the extra `docs`")

from site_pages import DOCS, build_site  # isort: skip  # makes the next two importable
from dead_links import Page
from mathml import mathml

#: Modules that only export, and the package that defines their names.
HOMES = {"replenish.diagnostics": "replenish.measure"}
DOCUMENTED = [
    "replenish",
    "replenish.theory",
    "replenish.diagnostics",
    "replenish.stream",
    "replenish.torch",
    "replenish.lab.data",
    "replenish.lab.models",
    "replenish.lab.statistics",
]


@pytest.fixture(scope="module")
def documented(site: Path) -> set[str]:
    return set().union(*(Page(path).anchors for path in (site / "api").glob("*.html")))


@pytest.mark.slow
def test_pages_load_nothing_from_a_network(site: Path) -> None:
    fetched = [(path.name, address) for path in site.rglob("*.html") for address in Page(path).fetched]
    assert len(fetched) > 100
    assert not [pair for pair in fetched if "://" in pair[1] or pair[1].startswith("//")]
    for style in site.rglob("*.css"):
        text = style.read_text(encoding="utf-8")
        assert not re.findall(r"""(?:url\(|@import )['"]?(?:https?:)?//""", text), style.name


@pytest.mark.slow
def test_formulas_are_mathml(site: Path) -> None:
    page = (site / "theory.html").read_text(encoding="utf-8")
    assert page.count('display="block"') > 20
    assert page.count('display="inline"') > 100
    assert "$" not in re.sub(r"<script.*?</script>", "", page, flags=re.DOTALL)  # no formula is left as TeX


@pytest.mark.slow
@pytest.mark.parametrize("module", DOCUMENTED)
def test_every_public_name_is_in_the_reference(documented: set[str], module: str) -> None:
    found = importlib.import_module(module)
    public = []
    for name in getattr(found, "__all__", vars(found)):
        value = getattr(found, name)
        if name.startswith("_") or not (inspect.isclass(value) or inspect.isfunction(value)):
            continue
        if f"{value.__module__}.".startswith(f"{HOMES.get(module, module)}."):  # without imports from elsewhere
            public.append(f"{module}.{name}")
    assert public
    assert not set(public) - documented


@pytest.mark.slow
def test_a_dead_link_in_raw_html_fails_the_build(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    for name in ("conf.py", "_ext", "_static"):
        copy = shutil.copytree if (DOCS / name).is_dir() else shutil.copy
        copy(DOCS / name, docs / name)
    (docs / "index.md").write_text('# Title\n\n```{raw} html\n<a href="gone.html">x</a>\n```\n')
    with pytest.raises(RuntimeError, match=r"a link leads nowhere: index\.html -> gone\.html"):
        build_site(docs)


@pytest.mark.parametrize("tex", [r"\unknowncommand x", r"\begin{aligned} a &= b \\ &= c \end{aligned}"])
def test_an_unsupported_formula_is_an_error(tex: str) -> None:
    with pytest.raises(ValueError, match="does not know a part of it"):
        mathml(tex, "block")
