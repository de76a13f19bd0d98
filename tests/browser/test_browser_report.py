"""The report in a real browser: folded sections, ticks, cards on a phone, and values under the pointer."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from made_runs import experiments, mini_config, write_run, write_table3

from replenish.lab.report import write_report
from replenish.lab.show import Finding, Page, Section
from replenish.lab.show.page import page_html
from replenish.lab.statistics import paired_difference
from replenish.lab.verdict import decide

SRS = "table3/wrn-srs-b64-120-150-175"


@pytest.fixture(scope="module")
def page_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    write_table3(root)
    configs = experiments()["mini"]
    for seed in range(2):
        write_run(root, configs["table2/wrn-28-10-srs/cifar10"].with_seed(seed), 30.0 + seed)
        for order in ("srs", "replacement"):
            write_run(root, mini_config(dataset="<b>my data</b>", order=order, seed=seed), 20.0 + seed)
    write_run(root, configs[SRS].with_seed(8), None, status="diverged", epochs=11)
    write_run(root, configs[SRS].with_seed(9), 60.0, status=None, epochs=5)
    return write_report(root, experiments=experiments())[0]


@pytest.fixture
def open_page(open_page: Any) -> Any:
    """Open a page with all its sections unfolded."""

    def unfolded(*given: Any, **more: Any) -> Any:
        page = open_page(*given, **more)
        page.evaluate("for (const fold of document.querySelectorAll('details.fold')) fold.open = true")
        return page

    return unfolded


def test_a_link_to_a_folded_section_opens_it(open_page: Any, page_path: Path) -> None:
    page = open_page(page_path)
    page.evaluate("for (const fold of document.querySelectorAll('details.fold')) fold.open = false")
    table = page.locator("#mini-table3-table")
    assert not table.is_visible()
    assert page.locator("#verdicts .finding .chip").first.is_visible()
    page.evaluate("location.hash = 'scale-mini'")
    table.wait_for()
    assert table.is_visible()


@pytest.mark.parametrize("unit", [1e-9, 0.0013, 0.6, 30, 50_000, 2e7])
def test_ticks_of_a_finding_are_whole_and_apart(open_page: Any, unit: float, tmp_path: Path) -> None:
    difference = paired_difference({seed: unit * (1 + seed / 10) for seed in range(4)}, dict.fromkeys(range(4), 0.0))
    finding = Finding("f", decide(difference, names=("srs", "reshuffling")))
    written = tmp_path / "page.html"
    written.write_text(page_html(Page("T", "t", "k", (), (Section("s", "S", (), (finding,)),))))
    boxes = open_page(written).evaluate(
        """() => [...document.querySelectorAll("svg.forest .tick")].map((word) => {
          const box = word.getBBox(); return [box.x, box.x + box.width] })"""
    )
    assert len(boxes) >= 3
    assert boxes[0][0] >= 0
    assert boxes[-1][1] <= 400
    assert all(before[1] + 4 < after[0] for before, after in itertools.pairwise(boxes))


def test_short_tables_are_cards_on_a_phone(open_page: Any, page_path: Path) -> None:
    page = open_page(page_path, width="phone")
    box = page.locator("#mini-table3 .scroll")
    assert box.evaluate("box => box.scrollWidth <= box.clientWidth")
    ours = box.locator(f"tr[data-row='{SRS}'] td").nth(4)
    assert ours.evaluate("cell => getComputedStyle(cell, '::before').content") == '"Ours"'
    # A sentence takes the whole width of its card, a number half of it.
    widths = "cell => [cell.offsetWidth, cell.closest('tr').offsetWidth]"
    (half, whole), (long, card) = (cell.evaluate(widths) for cell in (ours, page.locator("#machines td.long").first))
    assert (half < 0.6 * whole, long == card) == (True, True)


def test_values_are_read_with_the_pointer_and_the_keyboard(open_page: Any, page_path: Path) -> None:
    page = open_page(page_path)
    panel = page.locator("#mini-figure2 .panel[data-chart='test_error']")
    panel.scroll_into_view_if_needed()
    box = panel.locator("svg").bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.5)
    tip = panel.locator(".tip")
    assert tip.is_visible()
    assert tip.locator(".value-of").count() == 3
    page.mouse.move(0, 0)
    assert not tip.is_visible()

    panel.focus()
    page.keyboard.press("ArrowRight")
    assert tip.locator(".x").inner_text() == "effective epoch 40"
    assert "60.80 (60.40\u201361.90)" in tip.inner_text()
    page.keyboard.press("ArrowLeft")
    assert tip.locator(".x").inner_text() == "effective epoch 39"
    page.keyboard.press("Home")
    assert tip.locator(".x").inner_text() == "effective epoch 1"
    page.keyboard.press("Escape")
    assert not tip.is_visible()
