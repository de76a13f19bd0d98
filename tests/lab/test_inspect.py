"""What `replenish inspect` finds: the closed forms hold, and tables and charts show the measurement."""

from __future__ import annotations

import math
import re
from html import escape

import numpy as np
import pytest
from typer import Typer
from typer.testing import CliRunner

from replenish import BatchedReplacement, RandomReshuffling, SequencedReplacement, theory
from replenish.cli.inspect import inspect
from replenish.diagnostics import PARTS_PER_EPOCH, measure, shuffle_quality
from replenish.lab.inspect import Inspection, inspect_orders
from replenish.lab.inspect.charts import figures
from replenish.lab.inspect.independent_copies import IndependentCopies
from replenish.lab.inspect.page import page, picture
from replenish.lab.inspect.tables import class_table, draws_table, median_gap, tables, told_epochs
from replenish.lab.show import Table
from replenish.lab.show.chart import Axis, ticks

app = Typer()
app.command()(inspect)


def cells(table: Table) -> dict[str, list[str]]:
    """Return the cells of each line after its label."""
    return {row.name: list(row.texts[1:]) for row in table.rows}


@pytest.fixture(scope="module")
def inspection() -> Inspection:
    return inspect_orders(5000, 50, epochs=6, seed=1)


# ---- The closed forms ----

POOLS = [(20_000, 20, 20_000), (20_000, 20, 50_000), (20_000, 20, 6_000)]


@pytest.mark.parametrize("sizes", POOLS)
def test_gaps_of_a_settled_pool_obey_their_law(sizes: tuple[int, int, int]) -> None:
    pool, epochs = IndependentCopies(*sizes), 5
    law = pool.gaps(epochs)
    found = measure(SequencedReplacement(sizes[0], sizes[1], pool_size=sizes[2]), epochs, start=pool.settled)
    assert law.shares.sum() == pytest.approx(1)
    assert found.mean_gap == pytest.approx(law.mean, abs=0.01)
    assert median_gap(found.gaps) == pytest.approx(median_gap(law.shares), abs=0.015)
    number = found.gaps.sum()
    errors = np.abs(found.gaps - number * law.shares) / np.sqrt(number * law.shares + 1)
    assert errors.max() < 5
    assert abs(found.repeats - law.repeats) * number < 5 * math.sqrt(law.repeats * number + 1)


@pytest.mark.parametrize("sizes", POOLS)
def test_missed_samples_copies_and_counts_obey_their_laws(sizes: tuple[int, int, int]) -> None:
    pool = IndependentCopies(*sizes)
    found = measure(SequencedReplacement(sizes[0], sizes[1], pool_size=sizes[2]), 4)
    steps = pool.steps_per_epoch
    for epoch in range(4):
        assert found.unseen[epoch] == pytest.approx(pool.unseen(epoch * steps, (epoch + 1) * steps), abs=0.012)
        assert found.never_seen[epoch] == pytest.approx(pool.unseen(0, (epoch + 1) * steps), abs=0.012)
    _, copies = pool.copies(4 * steps)
    assert found.pool is not None
    held = found.pool.copies / sizes[0]
    assert copies.mean(axis=0)[: len(held)] == pytest.approx(held, abs=0.015)
    drawn = np.bincount(found.counts, minlength=len(pool.counts(4 * steps))) / sizes[0]
    assert pool.counts(4 * steps) == pytest.approx(drawn, abs=0.015)


def test_laws_agree_with_the_exact_ones() -> None:
    """Where `theory` has the same quantity without taking copies to be independent."""
    pool = IndependentCopies(3000, 30, 6000)
    assert pool.unseen(0, 250) == pytest.approx(theory.unseen_fraction(3000, 30, 250, pool_size=6000), abs=5e-4)
    late = IndependentCopies(100_000, 10, 100_000)
    assert late.unseen(late.settled, late.settled + 10_000) == pytest.approx(theory.limit_unseen_fraction(), abs=2e-4)
    inserted, shares = pool.copies(321)
    assert inserted.tolist() == theory.copies_inserted(3000, 30, 321, pool.places, pool_size=6000).tolist()
    expected = theory.expected_copies(3000, 30, 321, pool.places, pool_size=6000)
    assert shares @ np.arange(shares.shape[1]) == pytest.approx(expected, abs=1e-9)


def test_a_batch_as_large_as_the_pool() -> None:
    pool = IndependentCopies(10, 10, 10)
    assert pool.unseen(3, 4) == 0
    assert pool.counts(4)[4] == pool.counts(4).sum() == 1
    assert (pool.gaps(3).mean, pool.gaps(3).repeats) == (1, 1)
    assert math.isnan(pool.gaps(1).mean)


def test_closed_forms_beside_the_measurement(inspection: Inspection) -> None:
    laws, srs = inspection.laws, inspection.found["SRS"]
    steps = inspection.order.steps_per_epoch * inspection.epochs
    assert laws.unseen[0] == theory.unseen_fraction(5000, 50)
    assert laws.count_spread == theory.count_spread(5000, 50, steps)
    exact = np.mean([theory.expected_equal_pairs(5000, 50, step) for step in range(0, steps, 7)])
    assert laws.equal_pairs == pytest.approx(exact, rel=0.01)
    assert laws.mean_age == pytest.approx(sum(0.99**age for age in range(1, steps + 1)) / 100)
    assert srs.pool is not None
    copies = np.repeat(np.arange(len(srs.pool.copies)), srs.pool.copies)
    assert copies.var() == pytest.approx(laws.copy_spread, abs=0.06)
    assert srs.pool.mean_age == pytest.approx(laws.mean_age, abs=0.08)
    assert laws.swing == (pytest.approx(1.582, abs=1e-3), pytest.approx(0.582, abs=1e-3))


def test_a_sorted_dataset_swings_as_the_law_says(inspection: Inspection) -> None:
    identity, shuffled = inspection.identity.classes, inspection.found["SRS"].classes
    assert identity is not None
    assert shuffled is not None
    # 6 epochs of 5000 samples make 150 draws of a class in each part: a standard error of 8 %
    assert identity.rates[:, 0] == pytest.approx(inspection.laws.class_rates, abs=0.4)
    assert np.corrcoef(identity.rates[:, 0], inspection.laws.class_rates)[0, 1] > 0.9
    assert identity.spread == pytest.approx(inspection.laws.class_spread, abs=0.12)
    assert inspection.laws.class_spread > 1.25
    assert shuffled.spread == pytest.approx(1, abs=0.08)


# ---- What is shown ----


def test_what_is_measured_is_measure(inspection: Inspection) -> None:
    orders = {
        "SRS": SequencedReplacement(5000, 50, seed=1),
        "reshuffling": RandomReshuffling(5000, 50, seed=1),
        "replacement": BatchedReplacement(5000, 50, seed=1),
    }
    for name, order in orders.items():
        assert (inspection.found[name].counts == measure(order, 6).counts).all()
        assert inspection.found[name].config == order.config()
    assert inspection.identity.config["sequence"] == "identity"


def test_the_table_prints_the_measurement(inspection: Inspection) -> None:
    table = draws_table(inspection)
    assert [column.title for column in table.columns] == ["", "SRS, closed form", "SRS", "reshuffling", "replacement"]
    rows = cells(table)
    assert len(rows) == len(table.rows)
    found = list(inspection.found.values())
    assert rows["unseen in epoch 2"][1:] == [f"{100 * each.unseen[1]:.2f} %" for each in found]
    assert rows["variance of the draws in 6 epochs"][1:] == [f"{each.count_spread[-1]:.3f}" for each in found]
    assert rows["mean gap between two draws of a sample"][1:] == [f"{each.mean_gap:.3f} epochs" for each in found]
    assert rows["equal pairs in a batch"][1:] == [f"{each.equal_pairs:.4f}" for each in found]
    assert rows["draws of a sample in 6 epochs"][2] == "6"
    pool = inspection.found["SRS"].pool
    assert pool is not None
    assert rows["mean age of a slot's content"][1:] == [f"{pool.mean_age:.3f} epochs", "", ""]
    assert rows["samples without a copy in the pool"][1] == f"{100 * pool.copies[0] / 5000:.2f} %"
    classes = cells(class_table(inspection))
    spreads = classes["mean square of class counts in a batch; 1 = good shuffle"]
    every = [inspection.identity, *found]
    assert spreads[1:] == [f"{each.classes.spread:.2f}" for each in every if each.classes is not None]


def test_the_table_of_noise_has_the_laws(inspection: Inspection) -> None:
    rows = cells(tables(inspection)[2])
    orders = [one.order for one in inspection.noise.values()]
    laws = [f"({theory.visit_gaps(order).variance:.3f})" for order in orders]
    assert [cell.split()[1] for cell in rows["variance of the gap between two visits"]] == laws
    lowest = rows["noise at 0.167 cycles an epoch"]  # once in 6 epochs
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


def test_a_sample_in_a_million_is_not_called_none() -> None:
    found = inspect_orders(30_000, 64, epochs=9)
    rows = cells(draws_table(found))
    never = float(found.found["replacement"].never_seen[-1])
    assert 0 < never < 1e-3
    assert float(rows["unseen in all 9 epochs"][3].split()[0]) == pytest.approx(100 * never, rel=0.5)


def test_the_charts_hold_the_measurement(inspection: Inspection) -> None:
    srs = inspection.found["SRS"]
    lines = {one.name: {series.name: series for series in one.charts[0].series} for one in figures(inspection)}
    assert lines["coverage"]["SRS"].y == (100 * srs.unseen).tolist()
    assert lines["coverage"]["SRS, in no epoch so far"].y == (100 * srs.never_seen).tolist()
    assert lines["coverage"]["SRS, closed form"].y == (100 * inspection.laws.unseen).tolist()
    drawn = dict(lines["counts"]["replacement"].known())
    assert drawn[6] == 100 * np.mean(inspection.found["replacement"].counts == 6)
    assert sum(drawn.values()) == pytest.approx(100)
    assert len(lines["gaps"]["SRS"].x) == 4 * PARTS_PER_EPOCH
    # An epoch has 100 steps, a part 5; but the first part has no gap of 0 steps.
    shares = 100 * srs.gaps[: 4 * PARTS_PER_EPOCH] / srs.gaps.sum()
    assert lines["gaps"]["SRS"].y[1:] == pytest.approx(shares[1:])
    assert lines["gaps"]["SRS"].y[0] == pytest.approx(shares[0] * 5 / 4)
    assert inspection.identity.classes is not None
    assert lines["classes"]["SRS, identity"].y == inspection.identity.classes.rates[:, 0].tolist()
    for name, one in inspection.noise.items():
        law = theory.noise_spectrum(one.order, np.array(lines["noise"][name].x) / 100).continuous
        assert lines["noise"][f"{name}, closed form"].y == pytest.approx(law, abs=1e-3)
        # The lowest bands are of one frequency, each known to an eighth: 64 numbers for every sample.
        assert (np.abs(np.array(lines["noise"][name].y) - law) < 0.08 + 4 * law / 8).all()
        assert np.abs(np.array(lines["noise"][name].y) - law)[10:].mean() < 0.05
        shown = np.array(lines["gaps"][f"{name}, closed form"].y)
        assert np.abs(np.array(lines["gaps"][name].y) - shown).mean() < 0.5
    assert len(lines["shuffle"]["SRS"].y) == 100
    first = RandomReshuffling(5000, 50, seed=1).batch(7)
    assert lines["shuffle"]["reshuffling"].y[7] == pytest.approx((first.mean() + 0.5) / 5000, abs=1e-4)
    levels = figures(inspection)[3].charts[0].references
    assert [round(level.value, 2) for level in levels] == [0.58, 1.58]


SIZES = [
    (1, 1, None, 1, None),
    (3, 2, None, 2, 1),
    (20, 20, None, 1, None),
    (50, 7, 11, 3, 4),
    (50, 7, 400, 30, 50),
    (400, 3, 4000, 2, None),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("num_samples", "batch_size", "pool_size", "epochs", "classes"), SIZES)
def test_odd_sizes(num_samples: int, batch_size: int, pool_size: int | None, epochs: int, classes: int | None) -> None:
    found = inspect_orders(num_samples, batch_size, pool_size=pool_size, epochs=epochs, classes=classes)
    for table in tables(found):
        assert all("nan" not in text for row in table.rows for text in row.texts)
    shown = page(found, ["replenish"])
    assert not re.search(r"\bnan\b", shown, re.IGNORECASE)
    assert shown.count("<figure") == len(figures(found)) >= 4
    assert picture(found).startswith(b"\x89PNG")


def test_the_page_escapes_what_a_user_wrote(inspection: Inspection) -> None:
    hostile = "</code><script>alert(1)</script>.html"
    shown = page(inspection, ["replenish", "inspect", "--html", hostile])
    assert "<script>alert" not in shown
    assert escape(hostile) in shown.replace("&#39;", "&#x27;")
    assert "http://" not in shown
    assert "https://" not in shown
    assert 'src="' not in shown


def test_progress_and_bad_input() -> None:
    told: list[str] = []
    inspect_orders(100, 10, epochs=1, progress=told.append)
    assert told[0] == "running SRS"
    assert told[-1] == "working out the closed forms"
    with pytest.raises(ValueError, match="classes should be at most 100, but got 101"):
        inspect_orders(100, 10, classes=101)
    with pytest.raises(ValueError, match="epochs should be at least 1, but got 0"):
        inspect_orders(100, 10, epochs=0)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["100", "10", "--html", "x.png"], "replenish: --html should be the name of a .html file, but got x.png\n"),
        (["100", "10", "--png", "x.html"], "replenish: --png should be the name of a .png file, but got x.html\n"),
        (["100", "10", "--classes", "101"], "replenish: classes should be at most 100, but got 101\n"),
        (["100", "10", "--epochs", "0"], "replenish: epochs should be at least 1, but got 0\n"),
    ],
)
def test_the_command_says_what_is_wrong_in_one_sentence(arguments: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, arguments)
    assert (done.exit_code, done.stderr, done.stdout) == (2, sentence, "")


def test_ticks_and_axis() -> None:
    assert told_epochs(1) == [1]
    assert told_epochs(10) == [1, 2, 5, 10]
    assert told_epochs(200) == [1, 2, 5, 10, 20, 50, 100, 200]
    assert ticks(-0.1, 1.7, 6) == [0, 0.5, 1, 1.5]
    assert ticks(0.975, 2.025, 6, whole=True) == [1, 2]
    assert Axis(1, 3, start=10, stop=20).at(2) == 15
    assert math.isnan(median_gap([0, 0, 0]))
