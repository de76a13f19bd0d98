"""The results in the README and the docs match the records in results/."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

from replenish.lab import paper
from replenish.lab.experiments import SCALES, configs
from replenish.lab.report import read_runs, report_page
from replenish.lab.report.findings import read_rules
from replenish.lab.show.markdown import page_markdown
from replenish.lab.show.page import page_html
from study import pages

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "results" / "table3-mini"
STUDY = ROOT / "results" / "study"
REPORT = ROOT / "results" / "report.html"


def test_what_we_found_matches_the_records() -> None:
    found = pages.groups(RESULTS)
    table, findings = pages.table3(found), pages.sentences(found)
    again = "run `python -m study pages`"
    page = (ROOT / "docs" / "what_we_found.md").read_text()
    assert table in page, again
    assert findings
    assert all(sentence in page for sentence in findings), again


def test_the_picture_matches_the_records() -> None:
    drawn = pages.picture(pages.groups(RESULTS))
    assert pages.PICTURE.read_text() == drawn, "run `python -m study pages`"
    assert len(drawn) < 60_000


def test_the_replication_matches_the_records() -> None:
    """Every generated part and picture of the page, and the README's headline, is made again and compared."""
    evidence, again = pages.study(), "run `python -m study pages`"
    page, readme = (ROOT / "docs" / "replication.md").read_text(), (ROOT / "README.md").read_text()
    made = pages.parts(evidence, pages.groups(RESULTS))
    for name, text in made.items():
        assert f"<!-- begin: {name} -->\n\n{text.strip()}\n\n<!-- end: {name} -->" in page, again
    assert page.count("<!-- begin: ") == len(made)
    assert pages.readme_part(evidence) in readme, again
    assert pages.DETAILS.read_text() == pages.details(evidence), again
    assert made["headline"].startswith(pages.readme_part(evidence).split("\n\n")[0])
    for name, picture in pages.pictures(evidence).items():
        assert (ROOT / "docs" / name).read_text() == picture, again
        assert f"]({name})" in page


def test_the_page_has_the_primary_comparisons_own_numbers() -> None:
    """Independently of the study's code, the mean of the pairs is on the page."""
    errors: dict[str, dict[str, float]] = {"srs": {}, "reshuffling": {}}
    for path in STUDY.rglob("result.json"):
        config, result = (json.loads((path.parent / f"{name}.json").read_text()) for name in ("config", "result"))
        plain = (config["model"], config["dataset"], config["learning_rate"], config["pad"], config["flip"])
        other = config.get("order_number") or config["order"] not in errors
        if plain == ("wrn-10-2", "cifar100", 0.1, 0, False) and not other:
            errors[config["order"]][path.parent.name] = result["test_error"]
    pairs = [errors["srs"][seed] - errors["reshuffling"][seed] for seed in errors["srs"].keys() & errors["reshuffling"]]
    assert len(pairs) == 20
    row = f"| SRS minus reshuffling, learning rate 0.1 | 20 | {sum(pairs) / 20:+.2f} |".replace("-", "\u2212")
    assert row in (ROOT / "docs" / "replication.md").read_text()


def test_the_studys_records_are_complete() -> None:
    """The committed runs have ended, have no checkpoints, and come from one commit."""
    folders = sorted(path.parent for path in STUDY.rglob("config.json"))
    results = [json.loads((folder / "result.json").read_text()) for folder in folders]
    assert not list(STUDY.rglob("*.pt"))
    assert len({result["commit"] for result in results}) == 1
    assert not any(result["commit"].endswith("-dirty") for result in results)
    assert {result["data"]["test_images"] for result in results} == {10_000}


def numbers(text: str) -> list[str]:
    """Return the numbers in a text, whose layout may change."""
    return re.findall(r"[+\u2212]?\d+(?:\.\d+)?", text)


def test_the_report_matches_the_records() -> None:
    """The committed report has the same numbers and table rows as a new one."""
    report = report_page(
        read_runs(REPORT.parent), {scale: configs(scale) for scale in SCALES}, read_rules(REPORT.parent)
    )
    html = page_html(report)
    again = "run `python -m study pages`"
    committed = REPORT.with_suffix(".md").read_text()
    assert numbers(committed) == numbers(page_markdown(report, REPORT.name)), again
    page = REPORT.read_text()
    assert re.findall(r'data-row="[^"]*"', page) == re.findall(r'data-row="[^"]*"', html), again
    data = r'<script type="application/json" class="data">(.*?)</script>'
    drawn, now = (
        [
            [(series["x"], series["y"]) for chart in json.loads(figure)["charts"] for series in chart["series"]]
            for figure in re.findall(data, source)
        ]
        for source in (page, html)
    )
    assert drawn
    assert drawn == now, again


def test_the_committed_report_has_the_records_errors() -> None:
    """Independently of the report's code, the mean of each row of table 3 is in the report."""
    committed = REPORT.with_suffix(".md").read_text()
    for row in paper.TABLE3:
        slug = dataclasses.replace(configs("mini")[row.name], drop_last=False).slug
        errors = [json.loads(path.read_text())["test_error"] for path in RESULTS.rglob(f"{slug}/seed*/result.json")]
        assert f"{sum(errors) / 5:.2f} (n = 5; " in committed


def test_the_records_are_complete() -> None:
    """Every row of table 3 has five finished seeds, all from one commit and on the real data."""
    results = {path.parent: json.loads(path.read_text()) for path in RESULTS.rglob("result.json")}
    assert {path.parent for path in RESULTS.rglob("config.json")} == set(results)
    assert not list(RESULTS.rglob("*.pt"))
    for name, config in configs("mini").items():
        if name.startswith("table3/"):
            slug = dataclasses.replace(config, drop_last=False).slug  # the default at that time
            folders = [folder for folder in results if folder.parent.name == slug]
            assert sorted(folder.name for folder in folders) == [f"seed{seed}" for seed in range(5)]
    for folder, result in results.items():
        assert len((folder / "metrics.jsonl").read_text().splitlines()) == result["epochs"]
        assert result["data"]["train_images"] == 10_000
        assert not result["commit"].endswith("-dirty")
    assert len({result["data"]["fingerprint"] for result in results.values()}) == 1
