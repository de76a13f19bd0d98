"""The explorer's noise page in a browser: its laws equal those of `theory`, and sliders and keys change it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from replenish import theory
from replenish.lab.explain import pages
from replenish.orders.building import build_order

SIZES = [(50_000, 50, 1.0), (1000, 500, 0.5), (1000, 1, 16.0), (20_000, 200, 0.05), (1_000_000, 250, 4.0)]
FREQUENCIES = [0.0, 1e-6, 3e-4, 0.0123, 0.25, 0.4999, 0.5]
KAPPAS = [0.01, 0.1, 0.9, 1.0, 1.7]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = tmp_path_factory.mktemp("noise") / "noise.html"
    written.write_text(pages.noise_page(), encoding="utf-8")
    return written


def order_of(name: str, n: int, b: int, k: float) -> Any:
    return build_order(name, n, b, **({"pool_size": round(k * n)} if name == "srs" else {}))


@pytest.mark.parametrize("name", pages.SHOWN)
def test_the_laws_equal_those_of_theory(open_page, path: Path, name: str) -> None:
    page = open_page(path)
    for n, b, k in SIZES:
        order, sizes = order_of(name, n, b, k), {"n": n, "b": b, "k": k}
        found = page.evaluate(
            "([name, sizes, at]) => at.map((f) => laws[name].continuous(sizes, f))", [name, sizes, FREQUENCIES]
        )
        law = theory.noise_spectrum(order, FREQUENCIES)
        assert found == pytest.approx(law.continuous.tolist(), rel=1e-6, abs=1e-9)
        kappas = [kappa for kappa in (*KAPPAS, 1 / k) if kappa * b / n < 1]  # at 1/k, both decays are equal
        found = page.evaluate(
            "([name, sizes, at]) => at.map((u) => laws[name].variance(u, sizes))",
            [name, sizes, [kappa * b / n for kappa in kappas]],
        )
        assert found == pytest.approx(theory.noise_variance(order, kappas).tolist(), rel=1e-6, abs=1e-9)
        if len(law.line_frequencies) > 2:
            where = law.line_frequencies[:2].tolist()
            found = page.evaluate(
                "([name, sizes, at]) => at.map((f) => laws[name].line(sizes, f))", [name, sizes, where]
            )
            assert found == pytest.approx(law.line_powers[:2].tolist(), rel=1e-6)


def test_the_equivalent_learning_rate_equals_that_of_theory(open_page, path: Path) -> None:
    page = open_page(path)
    sizes = {"n": 50_000, "b": 50, "k": 1}
    srs, reshuffling = (order_of(name, 50_000, 50, 1) for name in ("srs", "reshuffling"))
    for kappa in (0.1, 1.0, 10.0):
        found = page.evaluate("([u, sizes]) => equivalentRate('reshuffling', 'srs', u, sizes)", [kappa / 1000, sizes])
        assert found == pytest.approx(theory.equivalent_learning_rate(reshuffling, srs, kappa), rel=1e-6)


def shown(page) -> dict[str, str]:
    names = ("n-value", "b-value", "k-value", "rate-value", "curvature-value", "kappa", "first-variance")
    return {name: page.locator(f"#{name}").inner_text() for name in (*names, "second-variance", "sentence")}


def test_values_follow_the_sliders_and_the_keys(open_page, path: Path) -> None:
    page = open_page(path)
    first = shown(page)
    assert (first["n-value"], first["b-value"], first["k-value"], first["kappa"]) == ("50,000", "50", "1", "1")
    assert (first["first-variance"], first["second-variance"]) == ("0.264", "0.503")
    assert "With 1.44 times the learning rate reshuffling has as much." in first["sentence"]
    page.locator("#curvature").focus()
    for _ in range(20):  # a power of ten
        page.keyboard.press("ArrowRight")
    assert shown(page)["kappa"] == "10"
    assert shown(page)["second-variance"] == "0.918"
    page.fill("#k", "7")
    assert shown(page)["k-value"] == "4"
    order = order_of("srs", 50_000, 50, 4)
    assert shown(page)["second-variance"] == f"{float(theory.noise_variance(order, 10.0)):.3f}"
    page.select_option("#second", "independent")
    assert shown(page)["second-variance"] == "1.000"
    assert page.locator("#second-name").inner_text() == "independent draws"
    page.fill("#rate", "0")
    page.fill("#curvature", "1")
    assert "SGD diverges" in shown(page)["sentence"]
    assert shown(page)["first-variance"] == "–"  # noqa: RUF001


def test_values_are_read_under_the_pointer_and_by_keys(open_page, path: Path) -> None:
    page = open_page(path)
    order = order_of("srs", 50_000, 50, 1)
    reading = page.locator(".panel:has(#variance) .reading")
    assert "arrow keys" in reading.inner_text()
    page.locator("#variance").hover()
    kappa = float(reading.inner_text().removeprefix("At ").split(":")[0])
    assert f"SRS {float(theory.noise_variance(order, kappa)):.3f}." in reading.inner_text()
    page.locator(".panel:has(#spectrum)").focus()
    for key in ("Home", "End", *["ArrowLeft"] * 3, "Escape"):
        page.keyboard.press(key)
    reading = page.locator(".panel:has(#spectrum) .reading")
    assert "arrow keys" in reading.inner_text()
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")
    read = re.fullmatch(r"At (\S+): reshuffling \S+, SRS (\d\.\d+)( and a line of \S+)?\.", reading.inner_text())
    assert read
    law = theory.noise_spectrum(order, [float(read[1]) / 1000])
    assert float(read[2]) == pytest.approx(float(law.continuous[0]), abs=0.002)
