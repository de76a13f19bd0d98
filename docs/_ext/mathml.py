"""Turn formulas into MathML while the site is built. Browsers draw it without a script."""

from __future__ import annotations

import re
from xml.etree import ElementTree

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator

MATHML = "{http://www.w3.org/1998/Math/MathML}"
LIMITS = {"msub": "munder", "msup": "mover", "msubsup": "munderover"}
WITH_LIMITS = {"∑", "∏", "lim", "max", "min"}
log = logging.getLogger(__name__)


def mathml(tex: str, display: str) -> str:
    """Return a formula as a `math` element; raise ValueError if latex2mathml does not know a part of it."""
    root = ElementTree.fromstring(convert(tex, display=display).replace("<mi>&</mi>", "<mi>&amp;</mi>"))
    for element in root.iter():
        element.tag = element.tag.removeprefix(MATHML)
        if re.search(r"[\\&]", element.text or "") or "linebreak" in element.attrib:
            raise ValueError(f"latex2mathml does not know a part of it ({element.text!r})")
        if element.tag in LIMITS and element[0].text in WITH_LIMITS:
            element.tag = LIMITS[element.tag]  # limits above and below; within a line of text, browsers move them
        if element.tag == "mo" and "minsize" in element.attrib and element.text in ("(", ")"):
            del element.attrib["minsize"], element.attrib["maxsize"]  # as tall as the content
        if element.text == "/":
            element.set("lspace", "0.06em")  # as in TeX; browsers put more space there
            element.set("rspace", "0.06em")
        if element.text == "∞":
            element.tag = "mi"
        if side := element.attrib.pop("columnalign", None):
            element.set("style", f"text-align: {side}")  # MathML Core has only the CSS property
    root.set("xmlns", MATHML.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode")


def rendered(node: nodes.Element, display: str) -> str:
    """Return the MathML of a node; if that fails, warn and return the source in red."""
    tex = node.astext()
    try:
        return mathml(tex, display)
    except (ValueError, ElementTree.ParseError) as error:
        log.warning("the formula %s cannot be shown: %s", tex, error, location=node)
        return f'<code class="error">{nodes.unescape(tex)}</code>'


def visit_inline(translator: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula in a line of text."""
    translator.body.append(rendered(node, "inline"))
    raise nodes.SkipNode


def visit_block(translator: HTML5Translator, node: nodes.Element) -> None:
    r"""Write a displayed formula; a `\tag{1}` at its end becomes the number next to it."""
    tex, tag = re.fullmatch(r"(.*?)\s*(?:\\tag\{(.*?)\})?\s*", node.astext(), flags=re.DOTALL).groups()
    node.children = [nodes.Text(tex)]
    number = f'<span class="equation-number" id="equation-{tag}">({tag})</span>' if tag else ""
    translator.body.append(f'<div class="equation"><div>{rendered(node, "block")}</div>{number}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer; conf.py chooses it."""
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
