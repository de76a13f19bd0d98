"""The paper's numbers: against the paper's own text if it is available, and against each other."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from replenish.lab import paper
from replenish.lab.experiments import configs


def printed(name: str) -> float:
    error = paper.published_error(name)
    assert error is not None, name
    return error


def test_the_improvements_that_the_text_claims_follow_from_the_tables() -> None:
    """Section 3.2 gives relative improvements in percent, an independent check of seven numbers."""
    shake_shake = printed("table2/shake-shake-29-2x4x64d/cifar100")
    for name, other, percent in (
        ("table2/wrn-28-10-srs/cifar100", shake_shake, 22),
        ("table2/wrn-28-10-srs/cifar100", printed("table2/wrn-28-10/cifar100"), 36),
        ("table2/wrn-70-10-srs/cifar100", shake_shake, 36),
        ("table2/densenet-bc-190-40-srs/cifar100", shake_shake, 1.4),
        ("table2/densenet-bc-190-40-srs/cifar100", printed("table2/densenet-bc-190-40/cifar100"), 9.0),
    ):
        assert 100 * (1 - printed(name) / other) == pytest.approx(percent, abs=0.5 if percent > 10 else 0.1)


def test_the_paper_and_the_experiments_have_the_same_names() -> None:
    names = {f"table2/{row.name}/{data.name}" for row in paper.TABLE2 for data in paper.TABLE1}
    names |= {row.name for row in paper.TABLE3}
    names |= {name for figure in (paper.FIGURE2, paper.FIGURE3) for name, _ in figure.lines}
    known = set(configs("full"))
    assert known <= names
    # Rows without a number ("-") need no experiment.
    assert all(paper.published_error(name) is None for name in names - known)
    assert {name for claim in paper.CLAIMS for name in (claim.first, claim.second)} <= names


def test_missing_numbers_of_the_paper_are_none() -> None:
    missing = [row.name for row in paper.TABLE2 if row.cifar10 is None]
    assert missing == ["shake-shake-29-2x4x64d", "densenet-bc-190-40-srs"]
    missing = [row.name for row in paper.TABLE2 if row.cifar100 is None]
    assert missing == ["resnet-1202-stochastic-depth", "shake-shake-26-2x96d"]
    assert sum(row.ours for row in paper.TABLE2) == 6
    assert paper.MEDIAN_OF == 5


def rows_of(source: str, label: str) -> list[list[str]]:
    """Return the cells of the LaTeX table with a label, without its commands."""
    table = next(
        part for part in source.split(r"\begin{tab")[1:] if rf"\label{{{label}}}" in part.split(r"\end{table")[0]
    )
    body = table[table.index(r"\hline") : table.index(r"\end{tabular}")]
    body = re.sub(r"\\(hline|cdashline\{[^}]*\})", "", body)
    body = re.sub(r"\\multirow\{\d+\}\{\*\}\s*|\\cite|\\textbf", "", body)
    return [[re.sub(r"[{}$]", "", cell).strip() for cell in row.split("&")] for row in body.split(r"\\") if "&" in row]


@pytest.fixture
def source() -> str:
    paths = [os.environ.get("REPLENISH_PAPER", ""), f"{os.environ.get('REPLENISH_DATA', '')}/../paper.tex"]
    for path in paths:
        if path and Path(path).is_file():
            return Path(path).read_text()
    pytest.skip("the paper's source is not here; name it in REPLENISH_PAPER")


def test_table_2_equals_the_papers(source: str) -> None:
    def shown(error: float | None) -> str:
        return "-" if error is None else f"{error:.2f}"

    ours = [[row.depth, row.parameters, shown(row.cifar10), shown(row.cifar100)] for row in paper.TABLE2]
    printed_rows = rows_of(source, "tab:error")
    assert ours == [row[2:] for row in printed_rows]
    methods = [row[0].strip() for row in printed_rows]
    assert all(method in ("", row.method) for method, row in zip(methods, paper.TABLE2, strict=True))
    assert [row.ours for row in paper.TABLE2] == [row[1] == "ours" for row in printed_rows]


def test_tables_1_and_3_equal_the_papers(source: str) -> None:
    ours = [
        [str(row.batch_size), f"({', '.join(map(str, row.schedule))})", f"{row.decay:g}", f"{row.error:.2f}"]
        for row in paper.TABLE3
    ]
    assert ours == [row[1:] for row in rows_of(source, "tab:fair")]
    statistics = [
        [
            f"{data.classes}",
            f"{data.image_size}\\times{data.image_size}",
            f"{data.channels}",
            f"{data.train_images_per_class:,}",
            f"{data.test_images_per_class:,}",
        ]
        for data in paper.TABLE1
    ]
    assert [
        list(column) for column in zip(*(row[1:] for row in rows_of(source, "tab:data")), strict=True)
    ] == statistics
    assert "final best error rate of about 23" in source
