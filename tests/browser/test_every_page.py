"""Every page that the product writes, in a real browser: it fits, is readable, and draws its data."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import pytest
from made_runs import experiments, mini_config, write_run, write_table3

from replenish.lab.comparing.answer import make_answer
from replenish.lab.comparing.page import write_page
from replenish.lab.comparing.question import Outcomes, Question
from replenish.lab.explain import pages as explain
from replenish.lab.inspect import Inspection, inspect_orders
from replenish.lab.inspect.page import figures
from replenish.lab.inspect.page import page as inspection_page
from replenish.lab.report import write_report
from replenish.measure.trace import compute_trace

PAGES = ("explorer", "large explorer", "noise", "inspection", "report", "few runs", "comparison")


@pytest.fixture(scope="module")
def inspection() -> Inspection:
    return inspect_orders(2000, 20, epochs=8)


def write_comparison(path: Path) -> None:
    """Write an undecided comparison of three orders, with a long command and paths without spaces."""
    orders, command = ("reshuffling", "srs", "block-reshuffling"), "replenish compare --command 'python train.py'" * 4
    outcomes = Outcomes(Question(orders, 6, metric="validation_perplexity_of_the_average", ask_again=command))
    for seed in range(6):
        for place, order in enumerate(orders):
            outcomes.add(order, seed, 30.0 + math.sin(seed + place))
    outcomes.fail("srs", 6, f"the run in {'a_folder_with_a_long_name/' * 6} ended")
    proofs = [("srs", 0, f"loader over {'TensorDataset' * 6}: replaced by srs, seed 0")]
    write_page(make_answer(outcomes, proofs=proofs, page=path), "A command of your own", (command,), command=command)


@pytest.fixture(scope="module")
def paths(inspection: Inspection, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    texts = {
        "explorer": explain.explorer_page(compute_trace(num_samples=48, batch_size=6, steps=30)),
        "large explorer": explain.explorer_page(compute_trace(num_samples=400, batch_size=40, steps=60)),
        "noise": explain.noise_page(),
        "inspection": inspection_page(inspection, ["replenish", "inspect", "2000", "20", "--html", "a b<c>.html"]),
    }
    for name, text in texts.items():
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    write_table3(folder)
    srs = experiments()["mini"]["table3/wrn-srs-b64-120-150-175"]
    write_run(folder, srs.with_seed(8), None, status="diverged", epochs=11)
    for order in ("srs", "replacement"):
        write_run(folder, mini_config(dataset="<b>my data</b>", order=order), 20.0)
    write_report(folder, experiments=experiments())
    few = tmp_path_factory.mktemp("few")  # few enough that a phone shows every run as a card
    result = {
        "command": "replenish compare digits --epochs 3 --seeds 3 --orders reshuffling,srs,replacement --runs runs"
    }
    for order in ("srs", "replacement"):
        write_run(few, mini_config(order=order), 20.0, result=result)
    write_report(few, folder / "few runs.html", experiments={})
    write_comparison(folder / "comparison.html")
    return {name: folder / f"{name}.html" for name in PAGES}


CUT = """() => [...document.querySelectorAll("svg.chart text")].filter((word) => {
  if (!word.checkVisibility()) return false;
  const box = word.getBoundingClientRect(), whole = word.ownerSVGElement.getBoundingClientRect();
  return box.left < whole.left - 1 || box.right > whole.right + 1 || box.bottom > whole.bottom + 3;
}).map((word) => word.textContent)"""
# WCAG's contrast ratio of each text to its background.
CONTRAST = """(texts) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const light = (colour) => {
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    const linear = (c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    const [r, g, b] = [...canvas.getImageData(0, 0, 1, 1).data].map((c) => linear(c / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/^rgba\\(.*, 0\\)$|transparent/.test(colour)) return colour;
    }
  };
  const found = [];
  for (const element of document.querySelectorAll(texts)) {
    if (!element.checkVisibility() || !element.textContent.trim()) continue;
    const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => y - x);
    found.push([(a + 0.05) / (b + 0.05), element.className || element.tagName]);
  }
  return found;
}"""
TEXTS = "h1, h2, h3, p, b, label, select, button, summary, th, td, caption, figcaption, .tile[data-sample], .phase span"


@pytest.mark.parametrize(("width", "scheme"), [("desktop", "light"), ("phone", "dark")])
@pytest.mark.parametrize("name", PAGES)
def test_it_fits_and_is_readable(open_page: Any, paths: dict[str, Path], name: str, width: str, scheme: str) -> None:
    page = open_page(paths[name], width=width, scheme=scheme)
    page.emulate_media(reduced_motion="reduce")  # colours change without a transition
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    if "explorer" in name:
        page.evaluate("window.location.hash = 'step=25.5'")
        page.wait_for_function("() => document.documentElement.dataset.step == 25")
        # The pool, the batch and the controls are inside their card.
        right = page.evaluate("document.querySelector('main > .card').getBoundingClientRect().right")
        for place in ("#pool .slot", "#batch .tile", ".controls *"):
            rightmost = "all => Math.max(...all.map(x => x.getBoundingClientRect().right))"
            assert page.eval_on_selector_all(place, rightmost) <= right
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), "it scrolls sideways"
    assert page.evaluate(CUT) == []
    contrasts = page.evaluate(CONTRAST, TEXTS)
    assert len(contrasts) > 20
    assert min(contrasts)[0] >= 4.5, min(contrasts)
    assert page.locator("h1").count() == 1
    ids = page.eval_on_selector_all("[id]", "all => all.map(one => one.id)")
    assert len(ids) == len(set(ids))
    assert page.locator("b", has_text="my data").count() == 0


def test_the_lines_match_the_data(open_page: Any, paths: dict[str, Path], inspection: Inspection) -> None:
    """Compute the values from the picture: from the ticks on the axes and the corners of the lines."""
    page = open_page(paths["inspection"])
    for figure in figures(inspection):
        (chart,) = figure.charts
        svg = page.locator(f"figure#{figure.name} svg.chart")
        along = _scale(svg, "x", "x", log=chart.log)
        up = _scale(svg, "y", "y")
        drawn = [path.get_attribute("d") for path in svg.locator("path.line, path.law").all()]
        assert len(drawn) == len(chart.series)
        for corners, series in zip(drawn, chart.series, strict=True):
            points = [tuple(map(float, corner.split("H")[0].split())) for corner in re.split("[ML]", corners)[1:]]
            shift = chart.step_width / 2 if series.kind == "law" else 0.0
            known = list(series.known())
            (low, high), (_, top, _) = chart.x_ends, chart.y_ends
            near = {"rel": 0.02} if chart.log else {"abs": (high - low) / 1000}
            assert [along(x) for x, _ in points] == pytest.approx([at + shift for at, _ in known], **near)
            assert [up(y) for _, y in points] == pytest.approx([value for _, value in known], abs=top / 1000)
            assert all(0 <= value <= top for _, value in known)


def _scale(svg: Any, axis: str, attribute: str, log: bool = False) -> Any:
    """Return the function from a place in the picture to a value, by the first and the last tick of an axis."""
    marks = svg.locator(f"text.tick.{axis}").all()
    offset = 4.5 if axis == "y" else 0  # the text's base line is below its tick
    (first, last), (low, high) = zip(
        *(
            (float(mark.get_attribute(attribute)) - offset, float(mark.get_attribute("data-value")))
            for mark in (marks[0], marks[-1])
        ),
        strict=True,
    )
    assert not math.isclose(first, last)
    if log:
        return lambda place: low * (high / low) ** ((place - first) / (last - first))
    return lambda place: low + (place - first) / (last - first) * (high - low)
