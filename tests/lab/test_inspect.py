"""`replenish inspect`: measurements match the closed forms, and tables and charts show the measurements."""

from __future__ import annotations

import re
from html import escape

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from replenish import RandomReshuffling, theory
from replenish.cli.inspect import inspect
from replenish.diagnostics import PARTS_PER_EPOCH, shuffle_quality
from replenish.lab.inspect import Inspection, inspect_orders
from replenish.lab.inspect.page import figures, page
from replenish.lab.inspect.tables import class_table, draws_table, shown_epochs, tables
from replenish.lab.show import Table
from replenish.lab.show.chart import Axis, ticks

app = Typer()
app.command()(inspect)


def cells(table: Table) -> dict[str, list[str]]:
    """Return the cells of each row after its label."""
    return {row.name: list(row.texts[1:]) for row in table.rows}


@pytest.fixture(scope="module")
def inspection() -> Inspection:
    return inspect_orders(5000, 50, epochs=6, seed=1)


# ---- The closed forms ----


def test_the_measurement_matches_the_closed_forms(inspection: Inspection) -> None:
    laws, srs = inspection.laws, inspection.found["SRS"]
    steps = inspection.order.steps_per_epoch * inspection.epochs
    assert laws.unseen_first == theory.unseen_fraction(5000, 50)
    assert laws.count_spread == theory.count_spread(5000, 50, steps)
    assert laws.swing == (pytest.approx(1.582, abs=1e-3), pytest.approx(0.582, abs=1e-3))
    assert srs.unseen[0] == pytest.approx(laws.unseen_first, abs=0.02)
    assert srs.unseen[2:].mean() == pytest.approx(laws.unseen, abs=0.01)
    assert srs.equal_pairs == pytest.approx(laws.equal_pairs, rel=0.2)


@pytest.mark.parametrize("pool_size", [20_000, 50_000, 6_000])
def test_the_rate_of_a_class_obeys_its_law(pool_size: int) -> None:
    found = inspect_orders(20_000, 20, pool_size=pool_size, epochs=5)
    assert found.identity.classes is not None
    errors = found.first_class[0] - found.laws.class_rates
    # A part of an epoch has 100 draws of a class. In the mean of five epochs, the standard error is about 4 %.
    assert np.abs(errors).max() < 0.05 * 4 * found.laws.swing[0]
    assert found.identity.classes.spread == pytest.approx(found.laws.class_spread, rel=0.1)


# ---- Tables, charts and the page ----


def test_the_table_prints_the_measurement(inspection: Inspection) -> None:
    table = draws_table(inspection)
    assert [column.title for column in table.columns] == ["", "SRS, closed form", "SRS", "reshuffling", "replacement"]
    rows = cells(table)
    assert len(rows) == len(table.rows)
    found = list(inspection.found.values())
    assert rows["unseen in epoch 2"][1:] == [f"{100 * each.unseen[1]:.2f} %" for each in found]
    assert rows["variance of the draws in 6 epochs"][1:] == [f"{each.count_spread[-1]:.3f}" for each in found]
    assert rows["equal pairs in a batch"][1:] == [f"{each.equal_pairs:.4f}" for each in found]
    assert rows["draws of a sample in 6 epochs"][2] == "6"
    classes = cells(class_table(inspection))
    spreads = classes["mean square of class counts in a batch; 1 = good shuffle"]
    every = [inspection.identity, *found]
    assert spreads[1:] == [f"{each.classes.spread:.2f}" for each in every if each.classes is not None]


def test_the_table_of_noise_has_the_laws(inspection: Inspection) -> None:
    rows = cells(tables(inspection)[2])
    orders = [one.order for one in inspection.noise.values()]
    laws = [f"({theory.visit_gaps(order).variance:.3f})" for order in orders]
    assert [cell.split()[1] for cell in rows["variance of the gap between two visits"]] == laws
    lowest = rows["noise at 0.167 cycles per epoch"]  # once in 6 epochs
    assert [cell.split()[1] for cell in lowest] == [
        f"({theory.noise_spectrum(order, [1 / 600]).continuous[0]:.3f})" for order in orders
    ]
    assert not inspect_orders(1, 1, epochs=1).noise


def test_shuffles_are_judged_by_the_battery(inspection: Inspection) -> None:
    rows = cells(tables(inspection)[3])
    found = shuffle_quality(RandomReshuffling(5000, 50, seed=1), 5000, max_draws=2**18)
    assert rows["batch mean"][1] == f"{found['batch mean'].effect:.3g}"
    assert rows["repeats"] == ["", "1", ""]
    local = inspect_orders(5000, 50, epochs=2, other="shuffle-buffer", options={"buffer_size": 100})
    shown = cells(tables(local)[3])["distance moved"]
    assert [text.endswith("(fault)") for text in shown] == [False, False, False, True]


def test_the_charts_show_the_measurement(inspection: Inspection) -> None:
    srs = inspection.found["SRS"]
    lines = {one.name: {series.name: series for series in one.charts[0].series} for one in figures(inspection)}
    assert lines["coverage"]["SRS"].y == (100 * srs.unseen).tolist()
    assert lines["coverage"]["SRS, in no epoch so far"].y == (100 * srs.never_seen).tolist()
    drawn = dict(lines["counts"]["replacement"].known())
    assert drawn[6] == 100 * np.mean(inspection.found["replacement"].counts == 6)
    assert sum(drawn.values()) == pytest.approx(100)
    assert len(lines["gaps"]["SRS"].x) == 4 * PARTS_PER_EPOCH
    # An epoch has 100 steps, and a part has 5. The first part has no gap of 0 steps.
    gaps = inspection.noise["SRS"].gaps.counts
    assert lines["gaps"]["SRS"].y[1] == pytest.approx(100 * gaps[5:10].sum() / gaps.sum())
    assert lines["gaps"]["SRS"].y[0] == pytest.approx(100 * gaps[:5].sum() / gaps.sum() * 5 / 4)
    assert inspection.identity.classes is not None
    assert lines["classes"]["SRS, identity"].y == inspection.identity.classes.rates[:, 0].tolist()
    for name, one in inspection.noise.items():
        law = theory.noise_spectrum(one.order, np.array(lines["spectrum"][name].x) / 100).continuous
        assert lines["spectrum"][f"{name}, closed form"].y == pytest.approx(law, abs=1e-3)
        # The lowest bands have one frequency each, with an error of an eighth: 64 numbers for every sample.
        assert (np.abs(np.array(lines["spectrum"][name].y) - law) < 0.08 + 4 * law / 8).all()
        assert np.abs(np.array(lines["spectrum"][name].y) - law)[10:].mean() < 0.05
        shown = np.array(lines["gaps"][f"{name}, closed form"].y)
        assert np.abs(np.array(lines["gaps"][name].y) - shown).mean() < 0.5
    levels = figures(inspection)[2].charts[0].references
    assert [round(level.value, 2) for level in levels] == [0.58, 1.58]


SIZES = [
    (1, 1, None, 1, None),
    (50, 7, 11, 3, 4),
    (400, 3, 4000, 2, None),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("num_samples", "batch_size", "pool_size", "epochs", "classes"), SIZES)
def test_odd_sizes(num_samples: int, batch_size: int, pool_size: int | None, epochs: int, classes: int | None) -> None:
    found = inspect_orders(num_samples, batch_size, pool_size=pool_size, epochs=epochs, classes=classes)
    for table in tables(found):
        assert all("nan" not in text for row in table.rows for text in row.texts)
    shown = page(found, "replenish")
    assert not re.search(r"\bnan\b", shown, re.IGNORECASE)
    assert shown.count("<figure") == len(figures(found)) >= 3


def test_the_page_escapes_what_a_user_wrote(inspection: Inspection) -> None:
    hostile = "</code><script>alert(1)</script>.html"
    shown = page(inspection, f"replenish inspect --html {hostile}")
    assert "<script>alert" not in shown
    assert escape(hostile) in shown.replace("&#39;", "&#x27;")
    assert "http://" not in shown
    assert "https://" not in shown
    assert 'src="' not in shown


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["100", "10", "--html", "x.png"], "replenish: --html should be the name of a .html file, but got x.png\n"),
        (["100", "10", "--classes", "101"], "replenish: --classes should be at most 100, but got 101\n"),
        (["100", "10", "--epochs", "0"], "replenish: --epochs should be at least 1, but got 0\n"),
    ],
)
def test_bad_input_is_one_sentence(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stderr, done.stdout) == (2, sentence, "")


def test_ticks_and_axis() -> None:
    assert shown_epochs(1) == [1]
    assert shown_epochs(10) == [1, 2, 5, 10]
    assert shown_epochs(200) == [1, 2, 5, 10, 20, 50, 100, 200]
    assert ticks(-0.1, 1.7, 6) == [0, 0.5, 1, 1.5]
    assert ticks(0.975, 2.025, 6, whole=True) == [1, 2]
    assert Axis(1, 3, start=10, stop=20).at(2) == 15
