"""The explorer in a real Chromium: it plays, steps and scrubs, and shows what the library draws."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from replenish import SequencedReplacement
from replenish.lab.explain import pages as explorer
from replenish.measure.trace import ORDERS, Trace, compute_trace

pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

Page = Any  # playwright's, which may be absent
OpenPage = Callable[..., Page]

SEED = 5


@pytest.fixture(scope="module")
def trace() -> Trace:
    return compute_trace(num_samples=12, batch_size=3, steps=30, seed=SEED)


@pytest.fixture(scope="module")
def path(trace: Trace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("explorer") / "explorer.html"
    written.write_text(explorer.explorer_page(trace), encoding="utf-8")
    return written


@pytest.fixture
def open_at_start(open_page: OpenPage) -> OpenPage:
    """Open a page at its first step, paused. Without a step in its address, it would play."""

    def opened(path: Path, **options: Any) -> Page:
        page = open_page(path, **options)
        page.evaluate("window.location.hash = 'step=0'")
        page.wait_for_function(
            "() => document.documentElement.dataset.playing == 'false' && document.documentElement.dataset.step == 0"
        )
        return page

    return opened


def step_of(page: Page) -> int:
    return int(page.evaluate("document.documentElement.dataset.step"))


def wait_for(page: Page, step: int, phase: str = "rest") -> None:
    """Wait until a step is reached and nothing moves."""
    page.wait_for_function(
        "([step, phase]) => document.documentElement.dataset.step == step"
        " && document.documentElement.dataset.phase == phase && !document.getElementById('flight').children.length",
        arg=[step, phase],
    )


def samples(page: Page, tiles: str) -> list[int]:
    return page.eval_on_selector_all(tiles, "found => found.map(tile => Number(tile.dataset.sample))")


def counts(page: Page, chart: str) -> list[int]:
    return page.eval_on_selector_all(f"#{chart} rect.bar", "found => found.map(bar => Number(bar.dataset.count))")


def check(page: Page, trace: Trace, step: int) -> None:
    """Compare everything that the page shows after `step` steps with the library and with the trace."""
    wait_for(page, step)
    order = SequencedReplacement(trace.num_samples, trace.batch_size, seed=trace.seed, sequence="identity")
    pool = samples(page, "#pool [data-slot]")
    assert pool == order.samples_in_pool(step).tolist()
    written = page.eval_on_selector_all("#pool .slot .tile", "found => found.map(tile => Number(tile.textContent))")
    assert written == pool  # the visible numbers are the data of the page
    assert samples(page, "#queue .tile:not(.gone):not(.unused)") == trace.queues[step].tolist()
    if step:
        last = trace.step(step - 1)
        assert samples(page, "#batch .tile") == order.batch(step - 1).tolist()
        assert samples(page, "#queue .gone") == last.refill.tolist()
        marked = page.eval_on_selector_all(
            "#pool .slot:has(.refilled)", "found => found.map(slot => Number(slot.dataset.slot))"
        )
        assert marked == sorted(last.slots.tolist())
    for name in ORDERS:
        assert counts(page, f"counts-{name}") == trace.counts(name, step).tolist()
        dot = page.get_attribute(f"#unseen-chart .dot.{name}", "data-count")
        assert int(dot) == trace.unseen(name)[step]
        assert page.text_content(f"#unseen-{name}").split()[-1] == str(trace.unseen(name)[step])
    assert counts(page, "copies-chart") == trace.copies(step).tolist()
    assert int(page.input_value("#scrub")) == step
    assert page.text_content("#count") == f"{step} of {len(trace)} steps done"


def test_it_opens_in_motion(open_page: OpenPage, path: Path, trace: Trace) -> None:
    """It starts at the end of the first epoch, where the charts already show something, and plays."""
    page = open_page(path)
    page.wait_for_function("() => document.documentElement.dataset.step >= 5")
    assert page.get_attribute("html", "data-playing") == "true"
    seen = page.eval_on_selector_all(".lane", "found => found.map(lane => getComputedStyle(lane).opacity)")
    assert seen == ["1", "1", "1"]
    page.keyboard.press("Home")
    check(page, trace, 0)


def test_with_reduced_motion_it_does_not_play(open_page: OpenPage, path: Path, trace: Trace) -> None:
    page = open_page(path)
    page.emulate_media(reduced_motion="reduce")
    page.reload()
    check(page, trace, 4)
    assert page.get_attribute("html", "data-playing") == "false"


def test_other_sizes_can_be_tried(open_at_start: OpenPage, path: Path, trace: Trace) -> None:
    """The page's own draws obey the law of the method: draws = copies inserted - copies in the pool."""
    page = open_at_start(path)
    for name, value in (("num_samples", 20), ("pool_size", 15), ("batch_size", 4)):
        page.fill(f"[name={name}]", str(value))
        page.press(f"[name={name}]", "Tab")
    assert "Drawn in this page" in page.text_content("#drawn-by")
    page.fill("#scrub", "33")
    pool = samples(page, "#pool [data-slot]")
    assert len(pool) == 15
    assert len(samples(page, "#batch .tile")) == 4
    inserted = 15 + 4 * 33
    drawn = counts(page, "counts-srs")
    assert [drawn[at] + pool.count(at) for at in range(20)] == [
        inserted // 20 + (at < inserted % 20) for at in range(20)
    ]
    assert max(counts(page, "counts-reshuffling")) - min(counts(page, "counts-reshuffling")) <= 1
    page.fill("[name=batch_size]", "16")  # more than there are slots, so nothing changes
    page.press("[name=batch_size]", "Tab")
    assert len(samples(page, "#batch .tile")) == 4
    for name in ("batch_size", "num_samples", "pool_size"):
        page.fill(f"[name={name}]", str(trace.to_dict()[name]))
        page.press(f"[name={name}]", "Tab")
    assert page.text_content("#drawn-by") == "Drawn by the library."
    page.fill("#scrub", "7")
    check(page, trace, 7)


def test_play_and_pause(open_at_start: OpenPage, path: Path, trace: Trace) -> None:
    page = open_at_start(path)
    page.select_option("#speed", "4")  # 20 s to the end, so it still plays at the click on pause
    page.click("#play")
    page.wait_for_function("() => document.documentElement.dataset.step >= 2")
    assert page.get_attribute("#play", "aria-label") == "Pause"
    page.click("#play")
    held = step_of(page), page.get_attribute("html", "data-phase")
    assert page.get_attribute("#play", "aria-label") == "Play"
    page.wait_for_timeout(700)  # long enough for a step at this speed
    assert (step_of(page), page.get_attribute("html", "data-phase")) == held
    if held[1] == "drawn":
        page.keyboard.press(".")
    check(page, trace, held[0] + (held[1] == "drawn"))


def test_between_draw_and_refill(open_at_start: OpenPage, path: Path, trace: Trace) -> None:
    page = open_at_start(path)
    page.evaluate("window.location.hash = 'step=4'")
    check(page, trace, 4)
    page.keyboard.press(".")
    wait_for(page, 4, "drawn")
    step = trace.step(4)
    empty = "found => found.map(slot => Number(slot.dataset.slot))"
    assert page.eval_on_selector_all('#pool [data-sample=""]', empty) == sorted(step.slots.tolist())
    assert samples(page, "#batch .tile") == step.batch.tolist()
    assert samples(page, "#queue .next") == step.refill.tolist()
    assert counts(page, "counts-srs") == trace.counts("srs", 5).tolist()
    assert page.text_content("#sentence").startswith("Step 5, draw: samples ")
    page.keyboard.press(".")
    check(page, trace, 5)
    page.keyboard.press(",")
    wait_for(page, 4, "drawn")
    page.keyboard.press(",")
    check(page, trace, 4)
    for key, step in (("End", 30), ("ArrowLeft", 29), ("ArrowRight", 30)):
        page.keyboard.press(key)
        wait_for(page, step)


def test_the_keyboard_reaches_all_controls_and_they_have_names(open_at_start: OpenPage, path: Path) -> None:
    page = open_at_start(path)
    reached = []
    for _ in range(13):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("(at => at.id || at.name || at.tagName)(document.activeElement)"))
    expected = ["start", "back", "play", "forward", "end", "scrub", "speed"]
    assert reached[:12] == [*expected, "num_samples", "batch_size", "pool_size", "seed", "SUMMARY"]
    page.focus("#forward")
    page.keyboard.press("Space")  # presses the focused button and does not play
    wait_for(page, 1)
    assert page.get_attribute("html", "data-playing") == "false"
    for role, name in [("slider", "Step"), ("combobox", "Speed"), ("button", "Play"), ("button", "A step back")]:
        assert page.get_by_role(role, name=name).count() == 1
    assert (
        page.get_by_role("list", name="Pool").get_by_role("listitem").first.text_content().startswith("slot 0: sample")
    )
    described = page.eval_on_selector_all(".chart svg", "found => found.map(chart => chart.getAttribute('aria-label'))")
    assert len(described) == 5
    assert all("1 step" in text or "Copies" in text for text in described)


def test_a_step_can_be_linked(open_at_start: OpenPage, path: Path, trace: Trace) -> None:
    page = open_at_start(path)
    page.fill("#scrub", "7")
    assert page.url.endswith("#step=7")
    page.keyboard.press(".")
    wait_for(page, 7, "drawn")
    assert page.url.endswith("#step=7.5")
    page.goto(f"{path.resolve().as_uri()}#step=19")
    check(page, trace, 19)
    page.goto(f"{path.resolve().as_uri()}#step=1000")
    check(page, trace, 30)
    page.goto(f"{path.resolve().as_uri()}#step=x")
    assert step_of(page) == 30  # not a step: the page stays where it was


def test_a_link_shows_the_sizes_that_were_chosen(open_page: OpenPage, path: Path, trace: Trace) -> None:
    page = open_page(path)
    page.emulate_media(reduced_motion="reduce")
    page.fill("[name=seed]", "8")
    page.press("[name=seed]", "Tab")
    page.fill("#scrub", "6")
    assert page.url.endswith("#step=6&n=12&b=3&pool=12&seed=8")
    pool = samples(page, "#pool [data-slot]")
    again = open_page(path)
    again.emulate_media(reduced_motion="reduce")
    again.goto(page.url)
    wait_for(again, 6)
    assert samples(again, "#pool [data-slot]") == pool
    again.goto(f"{path.resolve().as_uri()}#step=6")  # the library's trace
    check(again, trace, 6)


def test_embedded_in_a_page(open_page: OpenPage, path: Path, trace: Trace, tmp_path: Path) -> None:
    """As in the documentation: the frame becomes as tall as the page in it."""
    script = Path(__file__).parents[2] / "docs" / "_static" / "frames.js"
    outer = tmp_path / "outer.html"
    outer.write_text(
        f'<!doctype html><title>docs</title><script src="{script.as_uri()}"></script><div class="explorer">'
        f'<iframe width="700" height="900" src="{path.as_uri()}#step=0"></iframe></div>'
    )
    page = open_page(outer)
    frame = page.frames[1]
    page.wait_for_function("() => document.querySelector('iframe').offsetHeight > 1500")
    assert frame.evaluate("document.documentElement.scrollHeight <= window.innerHeight")
    frame.wait_for_selector("#pool [data-slot]")
    frame.click("#forward")
    frame.wait_for_function("() => document.documentElement.dataset.step == 1")
    assert samples(frame, "#pool [data-slot]") == trace.pools[1].tolist()
    wide, inside = frame.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    assert wide <= inside
