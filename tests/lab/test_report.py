"""The report has everything from the run folders, and nothing else."""

from __future__ import annotations

import dataclasses
import html.parser
import json
import random
import re
import shutil
import statistics
from pathlib import Path
from typing import Any

import pytest
from made_runs import TABLE3_ERRORS, experiments, metrics, mini_config, write_run, write_table3

from replenish.lab.report import read_runs, report_page, write_report
from replenish.lab.show.page import page_html

SRS = "table3/wrn-srs-b64-120-150-175"
WRN = "table3/wrn-b64-120-150-175"
MINUS = "\u2212"


class Page(html.parser.HTMLParser):
    """A parsed report: the cells of every table by row, the data of figures, and the text."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tables: dict[str, dict[str, list[str]]] = {}
        self.figures: dict[str, Any] = {}
        self.tags: list[str] = []
        self.text = ""
        self._rows: dict[str, list[str]] = {}
        self._cells: list[str] | None = None
        self._script = False
        self.feed(source)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = dict(attributes)
        self.tags.append(tag)
        if tag == "table":
            self._rows = self.tables[str(values["id"]).removesuffix("-table")] = {}
        if tag == "tr":
            self._cells = self._rows.setdefault(values["data-row"] or "", []) if "data-row" in values else None
        if tag in ("td", "th") and self._cells is not None:
            self._cells.append("")
        if tag == "small" and self._cells:
            self._cells[-1] += "; "
        self._script = tag == "script" and values.get("type") == "application/json"

    def handle_endtag(self, tag: str) -> None:
        if tag == "tr":
            self._cells = None

    def lines(self, figure: str, chart: str) -> dict[str, Any]:
        """Return the series of a figure's chart by their names."""
        (found,) = [one for one in self.figures[figure]["charts"] if one["name"] == chart]
        return {series["name"]: series for series in found["series"]}

    def handle_data(self, data: str) -> None:
        data = data.replace("\u00a0", " ")
        self.text += data
        if self._script:
            figure = json.loads(data)
            self.figures[figure["name"]] = figure
            self._script = False
        elif self._cells:
            self._cells[-1] += data


def report_of(root: Path) -> tuple[Page, str]:
    page, markdown = write_report(root, experiments=experiments())
    return Page(page.read_text()), markdown.read_text()


@pytest.fixture
def table3_runs(tmp_path: Path) -> Path:
    write_table3(tmp_path)
    return tmp_path


def test_table_3_has_the_papers_numbers_and_ours(table3_runs: Path) -> None:
    page, markdown = report_of(table3_runs)
    row = page.tables["mini-table3"][SRS]
    assert row[:5] == [
        "WRN-SRS; here wrn-10-1 on cifar100",
        "64",
        "(120, 150, 175); here 24, 30, 35 of 40",
        "0.1",
        "12.34",
    ]
    assert row[5] == "60.80; n = 5; 60.03 to 61.57"
    # 60.6 60.4 61.9 60.5 60.6 minus 60.0 60.6 61.2 59.8 60.4: mean 0.4, interval by scipy.stats.ttest_rel
    assert row[6:8] == [f"{MINUS}7.08", f"+0.40; n = 5; {MINUS}0.09 to +0.89"]
    assert page.tables["mini-table3"][WRN][6:8] == ["\u2013", "\u2013"]
    assert list(page.tables["mini-table3"]) == list(TABLE3_ERRORS)
    assert (
        "| WRN-SRS (here wrn-10-1 on cifar100) | 64 | (120, 150, 175) (here 24, 30, 35 of 40) | 0.1 | 12.34 |"
        in markdown
    )
    assert "| 60.80 (n = 5; 60.03 to 61.57) |" in markdown


def test_the_headline_follows_from_the_numbers(table3_runs: Path) -> None:
    page, markdown = report_of(table3_runs)
    verdict = (
        "Undecided between WRN-SRS and WRN with the same schedule: WRN-SRS 0.40 points higher (95 % interval "
        f"{MINUS}0.09 to +0.89, n = 5 seeds, paired)."
    )
    for text in (page.text, markdown):
        assert verdict in text
        assert "The paper reports 7.08 points below, at its own scale." in text
        assert "This is not the paper's scale" in text


def test_at_full_scale_results_are_compared_with_the_paper(tmp_path: Path) -> None:
    for seed, error in enumerate((12.0, 12.5, 13.0, 12.2, 12.8)):
        write_run(tmp_path, experiments()["full"][SRS].with_seed(seed), error)
        write_run(tmp_path, experiments()["full"][WRN].with_seed(seed), error + 7.0 + 0.1 * seed)
    page, _ = report_of(tmp_path)
    row = page.tables["full-table3"][SRS]
    assert row[2] == "(120, 150, 175)"
    assert "which lies inside this interval" in page.text


def test_table_2_shows_rows_with_runs_and_names_the_others(tmp_path: Path) -> None:
    configs = experiments()["mini"]
    for seed, error in enumerate((30.0, 31.0, 32.0)):
        write_run(tmp_path, configs["table2/wrn-28-10/cifar10"].with_seed(seed), error)
        write_run(tmp_path, configs["table2/wrn-28-10-srs/cifar10"].with_seed(seed), error - 1 - 0.1 * seed)
    page, markdown = report_of(tmp_path)
    table = page.tables["mini-table2"]
    assert list(table) == ["table2/wrn-28-10/cifar10", "table2/wrn-28-10-srs/cifar10"]
    row = [cell.replace(MINUS, "-") for cell in table["table2/wrn-28-10-srs/cifar10"]]
    assert row[:5] == ["WRN-SRS; here wrn-10-1 on cifar10", "CIFAR-10", "ours", "28-10", "36.5M; here 78,330"]
    assert row[5:8] == ["4.06", "29.90; n = 3; 27.66 to 32.14", "-0.31"]
    assert row[8] == "-1.10; n = 3; -1.35 to -0.85"
    for text in (page.text, markdown):
        assert "No runs yet on CIFAR-10 of 20 rows: nin, all-cnn, dsn," in text
        assert "No runs yet on CIFAR-100" not in text  # datasets without runs are not mentioned


def test_figures_have_the_values_of_the_folders(table3_runs: Path) -> None:
    page, _ = report_of(table3_runs)
    config = experiments()["mini"][SRS]
    for quantity in ("train_loss", "test_error"):
        lines = page.lines("mini-figure2", quantity)
        assert list(lines) == ["WRN 60-120-160", "WRN 120-150-175", "WRN-SRS 120-150-175"]
        line = lines["WRN-SRS 120-150-175"]
        seeds = [metrics(config.with_seed(seed), error, 40) for seed, error in enumerate(TABLE3_ERRORS[SRS])]
        by_epoch = [[run[epoch][quantity] for run in seeds] for epoch in range(40)]
        assert line["x"] == list(range(1, 41))
        assert line["y"] == [pytest.approx(statistics.fmean(values)) for values in by_epoch]
        assert line["low"] == [min(values) for values in by_epoch]
        assert line["high"] == [max(values) for values in by_epoch]
    # Figure 3 would only repeat a line of figure 2, and table 2 two rows of table 3.
    assert "mini-figure3" not in page.figures
    assert "mini-table2" not in page.tables
    seeds = page.lines("mini-table3-seeds", "value")
    assert seeds["seed 1"]["y"][3] == TABLE3_ERRORS[SRS][1]


def test_the_report_depends_only_on_the_folders(table3_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    write_run(table3_runs, mini_config(order="replacement"), 63.0)
    runs = read_runs(table3_runs)
    first = page_html(report_page(runs, experiments()), "report.md")
    random.Random(1).shuffle(runs)
    assert page_html(report_page(runs, experiments()), "report.md") == first
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "copy"
    shutil.copytree(table3_runs, elsewhere)
    page, _ = write_report(elsewhere, experiments=experiments())
    assert page.read_text() == first
    assert str(elsewhere) not in first
    # An earlier report among the runs changes nothing.
    write_report(elsewhere, experiments=experiments())
    assert page.read_text() == first
    assert not list(elsewhere.glob("*.new"))


def test_strings_from_users_are_escaped(tmp_path: Path) -> None:
    nasty = "<script>alert(1)</script>|`x` *y* </script>"
    for seed in range(2):
        for order in ("srs", "reshuffling"):
            config = mini_config(dataset=nasty, model=f"<img src=x onerror=alert(1)>{nasty}", order=order, seed=seed)
            result = {"command": nasty, "commit": nasty, "machine": {"processor": nasty}, "weights_sha256": nasty}
            write_run(tmp_path, config, 60.0 + seed, result=result, folder=f"a<b>|c/{order}{seed}")
    write_run(
        tmp_path, mini_config(model=nasty, seed=9), None, status="diverged", result={"message": nasty}, folder="d|<i>"
    )
    page, markdown = write_report(tmp_path, experiments=experiments())
    parsed = Page(page.read_text())
    # Besides the data of the figures, the page has two scripts: its own, and one for its height in a frame.
    assert parsed.tags.count("script") == 2 + len(parsed.figures)
    assert "img" not in parsed.tags
    assert nasty in parsed.text
    assert not re.search(
        r"(?<!\\)<(script|img|i)\b", re.sub(r"`+[^`\n]*`+", "", markdown.read_text().replace("`x`", "x"))
    )
    for line in markdown.read_text().splitlines():
        if line.startswith("|") and "---" not in line:
            assert line.endswith("|")
    rows = [line for line in markdown.read_text().splitlines() if line.startswith("| `a<b>")]
    assert len(rows) == 4
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {12}


def test_half_finished_and_diverged_runs_are_named_and_not_counted(table3_runs: Path) -> None:
    config = experiments()["mini"][SRS]
    write_run(table3_runs, config.with_seed(5), None, status="diverged", epochs=7)
    half = write_run(table3_runs, config.with_seed(6), 60.0, status=None, epochs=9)
    torn = half / "metrics.jsonl"
    torn.write_text(torn.read_text() + '{"epoch": 10, "test_er')
    page, markdown = report_of(table3_runs)
    row = page.tables["mini-table3"][SRS]
    assert row[5] == "60.80; n = 5; 60.03 to 61.57; 1 diverged; 1 unfinished"
    for text in (page.text, markdown.replace("\\", "")):
        assert f"{config.slug}/seed5: after 7 of 40 epochs, the loss was not a number at step 300" in text
        assert f"{config.slug}/seed6: 9 of 40 epochs" in text
    assert "WRN-SRS 120-150-175 n = 5" in page.text
    assert "Not in these numbers: 1 diverged of WRN-SRS, 1 unfinished of WRN-SRS." in page.text
    assert page.tables["runs"][f"{config.slug}/seed5"][3:6] == ["diverged", "7 of 40", "\u2013"]


def test_nan_losses_do_not_break_the_figures(tmp_path: Path) -> None:
    configs = experiments()["mini"]
    write_run(tmp_path, configs[WRN], 61.0)
    folder = write_run(tmp_path, configs[SRS], 60.0)
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    lines[4] = lines[4].replace('"train_loss": ', '"train_loss": NaN, "was": ')
    (folder / "metrics.jsonl").write_text("\n".join(lines) + "\n")
    page, _ = report_of(tmp_path)
    line = page.lines("mini-figure2", "train_loss")["WRN-SRS 120-150-175"]
    assert line["y"][4] is None
    assert line["y"][5] is not None
    assert "NaN" not in (tmp_path / "report.html").read_text()


def test_samplers_of_a_user_are_compared_pair_by_pair(tmp_path: Path) -> None:
    errors = {"srs": (3.0, 3.4, 3.1), "reshuffling": (2.5, 2.8, 2.7), "replacement": (3.2, 3.3, 3.5)}
    for order, by_seed in errors.items():
        for seed, error in enumerate(by_seed):
            config = mini_config(dataset="/home/somebody/digits", order=order, seed=seed, batch_size=32)
            write_run(tmp_path, config, error, result={"command": "replenish compare digits"})
    page, markdown = report_of(tmp_path)
    assert page.tables["orders-1-orders"]["srs"][1] == "3.17; n = 3; 2.65 to 3.68"
    first, second = page.tables["verdicts-all"].values()
    # By scipy.stats.ttest_rel: p = 0.0131 and 0.3701; Holm doubles the smaller.
    assert first == ["srs against reshuffling", "worse", "+0.50; n = 3; +0.25 to +0.75", "0.013", "0.026"]
    assert second[:2] == ["srs against replacement", "undecided"]
    assert second[3:] == ["0.370", "0.370"]
    for text in (page.text, markdown):
        assert (
            "srs is worse than reshuffling: 0.50 points higher (95 % interval +0.25 to +0.75, n = 3 seeds, paired)"
            in text
        )
        assert "/home/somebody" not in text
    lines = page.lines("orders-1-curves", "test_error")
    assert list(lines) == ["srs", "reshuffling", "replacement"]
    assert len({line["look"] for line in lines.values()}) == 3
    seeds = page.lines("orders-1-seeds", "value")
    assert seeds["seed 1"]["y"] == [errors[order][1] for order in lines]


def test_every_run_is_listed_with_its_origin(table3_runs: Path) -> None:
    page, _ = report_of(table3_runs)
    assert len(page.tables["runs"]) == 20
    path = f"{experiments()['mini'][WRN].slug}/seed3"
    result = json.loads((table3_runs / path / "result.json").read_text())
    row = page.tables["runs"][path]
    assert row[1:7] == ["reshuffling", "3", "finished", "40 of 40", "59.80", "4 min"]
    assert row[7:] == [result["weights_sha256"][:12], "abc1234", "1", result["command"]]
    assert "processor A processor, cores 2" in page.tables["machines"]["1"][2]
    assert "torch 2.13.0" in page.tables["machines"]["1"][4]


def test_the_same_run_in_two_folders_is_counted_once(tmp_path: Path) -> None:
    config = experiments()["mini"][WRN]
    write_run(tmp_path, config, 60.0, folder="a")
    write_run(tmp_path, config, 60.0, folder="b")
    write_run(tmp_path, config, 61.0, folder="c")
    page, _ = report_of(tmp_path)
    assert page.tables["mini-table3"][WRN][5] == "60.00; n = 1; no interval"
    assert "b is the same run as a, with the same weights" in page.text
    assert "c is the same run as a, with other weights: the run was not reproduced" in page.text


def test_without_runs_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no runs in .*: no folder below it has a config.json"):
        write_report(tmp_path, experiments=experiments())
    with pytest.raises(FileNotFoundError, match="there is no directory"):
        write_report(tmp_path / "absent", experiments=experiments())
    (tmp_path / "file").write_text("x")
    with pytest.raises(NotADirectoryError, match="is a file, and should be the directory"):
        write_report(tmp_path / "file", experiments=experiments())
    with pytest.raises(ValueError, match="ends in .html, but got 'a.pdf'"):
        write_report(tmp_path, "a.pdf", experiments=experiments())
    assert not list(tmp_path.glob("report.*"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("config.json", b"{", "config.json should hold JSON, but is garbled"),
        ("config.json", b"[]", "config.json should hold a JSON object, but holds list"),
        ("config.json", b'{"epochs": 3}', "config.json should hold a run's config, but: .* lacks batch_size"),
        ("result.json", b"\xff\xfe\x00", "result.json should hold text, but is garbled"),
        ("result.json", b'{"status": "great"}', "status of finished or diverged, but has 'great'"),
        ("result.json", b'{"status": "finished"}', "should have a test_error, but has None"),
        ("metrics.jsonl", b'{"epoch": 1}\n{"epo', "line 2 of .*metrics.jsonl should hold JSON"),
        (
            "metrics.jsonl",
            b'{"epoch": "one"}\n',
            "line 1 of .*metrics.jsonl should have an effective epoch, but has 'one'",
        ),
    ],
)
def test_garbled_files_are_named(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    folder = write_run(tmp_path, mini_config(), 60.0)
    (folder / name).write_bytes(content)
    with pytest.raises(ValueError, match=message) as caught:
        write_report(tmp_path, experiments=experiments())
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "report.html").exists()


def test_a_config_of_another_program_is_ignored(tmp_path: Path) -> None:
    mine = write_run(tmp_path / "runs", mini_config(), 60.0)
    other = tmp_path / "runs" / "model" / "config.json"
    other.parent.mkdir()
    other.write_text('{"architectures": ["Net"], "hidden_size": 8}')
    assert [tmp_path / "runs" / run.path for run in read_runs(tmp_path / "runs")] == [mine]


def test_a_stated_margin_is_used(tmp_path: Path) -> None:
    """It comes from the record of a comparison, or from a rule for a folder. Without a margin nothing is equivalent."""
    configs = {order: mini_config(dataset="digits", order=order, batch_size=32) for order in ("srs", "reshuffling")}
    for order, by_seed in {"srs": (3.0, 3.4, 3.1), "reshuffling": (2.9, 3.2, 3.1)}.items():
        for seed, error in enumerate(by_seed):
            write_run(tmp_path / "ours", dataclasses.replace(configs[order], seed=seed), error)

    def verdict() -> str:
        page, _ = report_of(tmp_path)
        return next(iter(page.tables["verdicts-all"].values()))[1]

    assert verdict() == "undecided"
    rule = tmp_path / "ours" / "rule.json"
    rule.write_text('{"margin": 0.5, "equivalence_coverage": 0.9}')
    assert verdict() == "equivalent"
    slugs = {order: config.slug for order, config in configs.items()}
    record = {"field": "test_error", "configs": slugs, "rule": {"margin": 0.01, "anytime": False}}
    (tmp_path / "compare-digits-0.json").write_text(json.dumps(record))
    assert verdict() == "undecided"
    two = {**record, "rule": {"margin": 0.01, "comparisons": 2}}
    (tmp_path / "compare-digits-0.json").write_text(json.dumps(two))
    page, _ = report_of(tmp_path)
    assert next(iter(page.tables["verdicts-all"].values()))[2].endswith("(97.5 %)")
    (tmp_path / "compare-digits-0.json").write_text(json.dumps({**record, "field": "test_loss"}))
    assert verdict() == "equivalent"
    for text, message in (
        ("{", "should hold JSON"),
        ('{"margin": 0}', "margin should be positive and finite"),
        ('{"m": 1}', "states m"),
    ):
        rule.write_text(text)
        with pytest.raises(ValueError, match=message):
            report_of(tmp_path)
