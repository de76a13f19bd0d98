"""Every renderer shows the contents of charts, tables and pages, and escapes them."""

from __future__ import annotations

import io
import re
import xml.etree.ElementTree as ElementTree

import pytest
from rich.console import Console

from replenish.lab.show import (
    Cell,
    Chart,
    Column,
    Figure,
    Finding,
    Page,
    Reference,
    Section,
    Series,
    Table,
)
from replenish.lab.show.chart import common_reach
from replenish.lab.show.markdown import page_markdown
from replenish.lab.show.page import page_html
from replenish.lab.show.svg import chart_svg, finding_svg, swatch
from replenish.lab.show.table import print_table
from replenish.lab.statistics import Interval, paired_difference
from replenish.lab.verdict import Rule, decide
from replenish.palette import look_of
from study.pictures import ForestRow, figure_picture, forest_picture

NASTY = "</script><b>|`x`"
KINDS = (
    Series("srs runs", [0, 1, 2], [3.0, None, 5.0], [2.0, None, 4.0], [4.0, None, 6.5], order="srs"),
    Series("the other srs", [0, 1, 2], [2.0, 2.5, 3.0], order="srs"),
    Series(NASTY, [0, 1, 2], [1.0, 1.5, 2.0], order="reshuffling", kind="steps"),
    Series("dots", [0, 1], [0.5, 0.25], kind="points"),
    Series("law", [0, 1, 2], [1.0, 2.0, 3.0], kind="law"),
    Series("as the first", [0, 1], [3.0, 2.0], like="srs runs", thin=True),
)
CHART = Chart("all", "step", "height", KINDS, (Reference(4.5, f"level {NASTY}"), Reference(1.0, upright=True)))
FIGURE = Figure("figure", f"A figure {NASTY}", "Its caption.", (CHART,))


def drawn(chart: Chart) -> str:
    return chart_svg(chart, "figure")


def test_a_figure_as_a_separate_file() -> None:
    svg = figure_picture(FIGURE)
    ElementTree.fromstring(svg)
    assert NASTY not in svg
    assert "prefers-color-scheme:dark" in svg
    assert all(f">{each.name}<" in svg for each in KINDS if each.name != NASTY)


def test_a_forest_plot_draws_its_rows_on_one_axis() -> None:
    rows = [
        ForestRow("A question", heading=True),
        ForestRow(NASTY, -0.4, Interval(-0.9, 0.1, 0.95), "-0.4", "undecided", strong=True),
        ForestRow("half", 2.6, Interval(1.0, 4.2, 0.95), "2.6", "not run yet", provisional=True),
        ForestRow("nothing yet", verdict="not run yet (0 of 10)"),
    ]
    svg = forest_picture("Differences", rows, 0.5, "points")
    root = ElementTree.fromstring(svg)
    assert NASTY not in svg
    circles = [float(each.get("cx", "")) for each in root.iter() if each.tag.endswith("circle")]
    lines = [each for each in root.iter() if each.tag.endswith("line") and each.get("class") == "interval"]
    assert len(circles) == len(lines) == 2  # a row without a mean is only text
    assert all(
        float(line.get("x1", "")) < at < float(line.get("x2", "")) for line, at in zip(lines, circles, strict=True)
    )
    assert all(text in svg for text in ("A question", "not run yet (0 of 10)", "\u22124", "points"))


def test_the_axes_include_all_values() -> None:
    low, high, step = CHART.y_ends
    assert (low, high, step) == (0, 8, 2)
    assert CHART.x_ends == (0, 3)  # the last step of a step curve has a width
    below = Chart("below", "x", "y", (Series("a", [5], [-3.0]),))
    assert below.y_ends[0] <= -3
    assert below.y_ends[1] >= 0
    same = Chart("same", "x", "y", (Series("a", [1, 2], [7.0, 7.0]),), from_zero=False)
    assert same.y_ends[0] < 7 < same.y_ends[1]
    empty = Chart("empty", "x", "y", (Series("a", [], []),))
    assert empty.y_ends == (0, 1, 0.2)
    drawn(empty)


def test_an_order_keeps_its_colour_and_its_lines_differ_in_dashes() -> None:
    looks = CHART.looks
    assert looks["srs runs"] == (look_of("srs"), 0)
    assert looks["the other srs"] == (look_of("srs"), 1)
    assert looks["as the first"] == looks["srs runs"]
    assert looks["law"] == (None, 0)
    assert looks["dots"][0] not in (look_of("srs"), look_of("reshuffling"))
    elsewhere = Chart("other", "x", "y", (Series("x", [0], [1.0], order="replacement"), KINDS[0]))
    assert elsewhere.looks["srs runs"] == looks["srs runs"]


def test_every_kind_is_drawn_and_text_is_escaped() -> None:
    svg = drawn(CHART)
    assert svg.count('class="line"') == 3
    assert svg.count('class="band"') == svg.count('class="law"') - 1 == svg.count('class="line thin"') == 1
    assert "<b>" not in svg
    assert svg.count("level &lt;/script&gt;") == 1
    assert "h0 d1" in svg
    assert "<b>" not in swatch(FIGURE, KINDS[2])


def test_named_places_on_the_axis() -> None:
    chart = Chart(
        "pairs",
        "sampler",
        "error",
        (
            Series("seed 0", [0, 1], [3.0, 2.0], kind="join"),
            Series("srs", [0, 0], [3.0, 4.0], kind="points", order="srs"),
        ),
        x_names=("srs", NASTY),
        from_zero=False,
    )
    svg = drawn(chart)
    assert "&lt;/script&gt;" in svg
    assert svg.count('class="join"') == 1
    assert svg.count('class="mark"') == 2
    crowded = Chart("many", "order", "y", chart.series, x_names=tuple(f"an order of name {n}" for n in range(4)))
    heights = re.findall(r'class="tick x".*?y="(\d+)"', drawn(crowded))
    assert heights[0] == heights[2] != heights[1] == heights[3]
    figure = Figure("pairs", "Pairs", "", (chart,))
    assert [series.name for series in figure.legend] == ["srs"]


def found(*differences: float, first: str = NASTY, paper: float | None = None) -> Finding:
    difference = paired_difference(dict(enumerate(differences)), dict.fromkeys(range(len(differences)), 0.0))
    return Finding("f", decide(difference, Rule(unit="points"), (first, "b")), f"sentence {NASTY}", paper=paper)


def test_findings_are_drawn_on_one_scale() -> None:
    findings = (found(-1.0, -1.5, -2.0, paper=-7.08), found(2.0), found())
    assert common_reach(findings) == 10
    first, single, nothing = (finding_svg(finding, 10) for finding in findings)
    assert [svg.count('class="mean"') for svg in (first, single, nothing)] == [1, 1, 0]
    assert [svg.count('class="interval"') for svg in (first, single, nothing)] == [1, 0, 0]
    assert [svg.count('class="reference"') for svg in (first, single, nothing)] == [1, 0, 0]
    assert "<b>" not in first + single + nothing
    assert "minus b: \u22121.50 [\u22122.74, \u22120.26]; reference \u22127.08" in first
    ticks = {text: float(x) for x, text in re.findall(r'class="tick x" x="([\d.]+)".*?>([^<]+)<', first)}
    (mean,) = re.findall(r'class="mean" cx="([\d.]+)"', first)
    zero, five = ticks["0"], ticks["\u22125"]
    assert float(mean) == pytest.approx(zero + (five - zero) * 1.5 / 5, abs=0.1)
    assert common_reach([found()]) == 1


@pytest.fixture
def page() -> Page:
    columns = [
        Column(NASTY, lambda word: Cell(word, (NASTY,), code=True), numeric=False),
        Column("length", lambda word: str(len(word)), group="Numbers"),
        Column("left out", lambda word: "unseen", brief=False),
    ]
    table = Table("words", NASTY, columns, [(NASTY, NASTY), ("b", "bb")], remarks=[NASTY])
    section = Section("section", NASTY, (NASTY,), (found(0.0, 1.0, paper=1.0),), (table, FIGURE), code=NASTY)
    return Page(NASTY, NASTY, "kicker", (), (section,))


def test_every_renderer_shows_and_escapes_all(page: Page) -> None:
    html = page_html(page, "other.md")
    assert "<b>|" not in html
    assert html.count("<script") == html.count("</script>") == 3
    assert 'data-row="b"' in html
    assert "://" not in html
    assert len(html) < 50_000
    markdown = page_markdown(page, "a page.html")
    assert "[the page](a%20page.html)" in markdown
    assert not re.search(r"(?<!\\)</?b>", re.sub(r"`+.*?`+|^    .*$", "", markdown, flags=re.MULTILINE))
    assert "| Numbers: length |" in markdown
    (table, _), written = page.sections[0].blocks, io.StringIO()
    assert isinstance(table, Table)
    print_table(table, Console(file=written, width=100))
    assert NASTY in written.getvalue()
    narrow = io.StringIO()
    print_table(table, Console(file=narrow, width=30))
    assert "also shows:" in " ".join(narrow.getvalue().split())  # names the columns left out
    assert narrow.getvalue().count("│") < written.getvalue().count("│")
