"""The page of `replenish inspect` in a browser: nothing overflows, what is drawn is what was measured."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest

from replenish.lab.inspect import Inspection, inspect_orders
from replenish.lab.inspect.charts import figures
from replenish.lab.inspect.page import page as make_page
from replenish.lab.inspect.tables import tables
from replenish.lab.show import NOTHING


@pytest.fixture(scope="module")
def inspection() -> Inspection:
    return inspect_orders(2000, 20, epochs=8)


@pytest.fixture(scope="module")
def path(inspection: Inspection, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("page") / "inspection.html"
    written.write_text(make_page(inspection, ["replenish", "inspect", "2000", "20", "--html", "a b<c>.html"]))
    return written


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", ["desktop", "phone"])
def test_nothing_overflows_and_text_can_be_read(open_page, path: Path, width: str, scheme: str) -> None:
    page = open_page(path, width=width, scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(details => details.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
    assert page.locator("figure svg.chart").count() == 6
    for chart in page.locator("svg.chart").all():
        inside = chart.evaluate(
            """svg => [...svg.querySelectorAll('text')].filter(text => {
                const frame = svg.getBoundingClientRect(), box = text.getBoundingClientRect();
                return box.left < frame.left - 1 || box.right > frame.right + 1 || box.bottom > frame.bottom + 3;
            }).map(text => text.textContent)"""
        )
        assert inside == []
        assert chart.locator("text.tick").first.evaluate("text => text.getBoundingClientRect().height") >= 10
    for low, selector in [
        (4.5, "figcaption"),
        (4.5, "h1"),
        (4.5, "summary"),
        (4.5, ".facts small"),
        (4.5, "thead th"),
    ]:
        assert _contrast(page, selector, "color") >= low, selector
    for look in ("h0", "h1", "h2"):  # SRS, reshuffling, replacement
        assert _contrast(page, f".panel .{look} .line", "stroke") >= 3, look
    assert _contrast(page, "path.law", "stroke") >= 3


def _contrast(page, selector: str, what: str) -> float:
    """WCAG's ratio of an element's colour to the ground that it stands on."""
    colours = page.locator(selector).first.evaluate(
        """(element, what) => {
            let ground = element;
            const clear = 'rgba(0, 0, 0, 0)';
            while (getComputedStyle(ground).backgroundColor === clear) ground = ground.parentElement;
            return [getComputedStyle(element)[what], getComputedStyle(ground).backgroundColor];
        }""",
        what,
    )

    def luminance(colour: str) -> float:
        channels = [int(value) / 255 for value in re.findall(r"\d+", colour)[:3]]
        linear = [value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
        return sum(share * value for share, value in zip((0.2126, 0.7152, 0.0722), linear, strict=True))

    dark, light = sorted(luminance(colour) for colour in colours)
    return (light + 0.05) / (dark + 0.05)


def test_the_data_are_the_measurement(open_page, path: Path, inspection: Inspection) -> None:
    page = open_page(path)
    for figure in figures(inspection):
        (chart,) = figure.charts
        shown_figure = page.locator(f"figure#{figure.name}")
        assert not shown_figure.locator("table").is_visible()
        shown_figure.locator("summary").focus()
        page.keyboard.press("Enter")
        assert shown_figure.locator("table").is_visible()
        heads = shown_figure.locator("thead th").all_text_contents()
        assert heads[1:] == [series.name for series in chart.series]
        rows = [row.locator("th, td").all_text_contents() for row in shown_figure.locator("tbody tr").all()]
        for column, series in enumerate(chart.series, start=1):
            shown = {float(row[0]): float(row[column]) for row in rows if row[column] != NOTHING}
            known = dict(series.known())
            assert list(shown) == pytest.approx(list(known))
            assert list(shown.values()) == pytest.approx(list(known.values()), rel=1e-3, abs=1e-9)


def test_the_values_are_read_by_the_keyboard(open_page, path: Path, inspection: Inspection) -> None:
    page = open_page(path)
    page.locator("#coverage .panel").focus()
    page.keyboard.press("ArrowLeft")
    told = page.locator("#coverage .tip").inner_text()
    assert "effective epoch 8" in told
    assert f"{100 * inspection.found['SRS'].unseen[-1]:.4g}" in told


def test_the_lines_are_where_the_data_are(open_page, path: Path, inspection: Inspection) -> None:
    """Read the picture backwards: from the marks on the axes and the corners of the lines to the values."""
    page = open_page(path)
    for figure in figures(inspection):
        (chart,) = figure.charts
        svg = page.locator(f"figure#{figure.name} svg.chart")
        along = _scale(svg, "x", "x", log=chart.log)
        up = _scale(svg, "y", "y")
        drawn = [path.get_attribute("d") for path in svg.locator("path.line, path.law").all()]
        assert len(drawn) == len(chart.series)
        for corners, series in zip(drawn, chart.series, strict=True):
            points = [tuple(map(float, corner.split("H")[0].split())) for corner in re.split("[ML]", corners)[1:]]
            shift = chart.part / 2 if series.kind == "law" else 0.0
            known = list(series.known())
            (low, high), (_, top, _) = chart.x_ends, chart.y_ends
            near = {"rel": 0.02} if chart.log else {"abs": (high - low) / 1000}
            assert [along(x) for x, _ in points] == pytest.approx([at + shift for at, _ in known], **near)
            assert [up(y) for _, y in points] == pytest.approx([value for _, value in known], abs=top / 1000)
            assert all(0 <= value <= top for _, value in known)


def _scale(svg, axis: str, attribute: str, log: bool = False):
    """Return the function from a place in the picture to a value, from the first and the last mark of an axis."""
    marks = svg.locator(f"text.tick.{axis}").all()
    offset = 4.5 if axis == "y" else 0  # the text's base line is below its mark
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


def test_the_tables_are_those_of_the_command(open_page, path: Path, inspection: Inspection) -> None:
    page = open_page(path, width="phone")
    for table in tables(inspection):
        rows = page.locator(f"#{table.name}-table tbody tr").all()
        assert [tuple(row.locator("th, td").all_text_contents()) for row in rows] == [row.texts for row in table.rows]
    assert page.locator("pre code").text_content() == "replenish inspect 2000 20 --html 'a b<c>.html'"


def test_a_screen_reader_is_told_what_is_where(open_page, path: Path) -> None:
    page = open_page(path, width="phone")
    assert page.get_by_role("group", name="Coverage over time").count() == 1
    assert page.get_by_role("img", name="samples not drawn, %").count() == 1
    assert page.get_by_role("heading", level=1).count() == 1
    assert page.get_by_role("table").count() == 4  # the others are folded
    assert page.get_by_role("rowheader", name="equal pairs in a batch").count() == 1
    assert page.locator("html").get_attribute("lang") == "en"
