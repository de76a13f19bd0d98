"""The audits of a script's loaders as a page."""

from __future__ import annotations

from collections.abc import Sequence

from replenish import __version__
from replenish.auditing import Audit, Finding
from replenish.lab.show import Cell, Column, Fact, Notice, Page, Section, Table
from replenish.lab.show.page import page_html
from replenish.measure.findings import FAULT, WARNING


def page(audits: Sequence[tuple[str, Audit]], others: Sequence[str], command: str) -> str:
    """Return the page as HTML that needs no other file.

    Args:
        audits: The name of each loader, and its audit.
        others: Lines about the loaders that were not audited.
        command: The command that made the page.
    """
    findings = [finding for _, one in audits for finding in one.findings]
    counts = {level: sum(finding.level == level for finding in findings) for level in (FAULT, WARNING)}
    faults = tuple(
        f"{place}, {finding.name}: {finding.sentence}"
        for place, one in audits
        for finding in one.findings
        if finding.level == FAULT
    )
    sections = [
        Section(f"loader-{number}", place, blocks=(_table(number, one),)) for number, (place, one) in enumerate(audits)
    ]
    if others:
        sections.append(Section("others", "Not audited", tuple(others)))
    again = f"replenish {__version__}. An audit does not change what the loaders draw."
    sections.append(Section("again", "To make this page again", (again,), code=command))
    return page_html(
        Page(
            title="What the loaders really do",
            lead="Every loader that the script trained with, question by question.",
            kicker="Replenish · audit",
            facts=(
                Fact(str(len(audits)), "loaders audited" if len(audits) > 1 else "loader audited"),
                *(Fact(str(count), level if count == 1 else f"{level}s") for level, count in counts.items()),
                Fact(str(len(findings)), "questions"),
            ),
            sections=tuple(sections),
            notices=(Notice("Faults", faults),) if faults else (),
        )
    )


def _table(number: int, one: Audit) -> Table:
    columns = (
        Column("question", lambda finding: finding.name, numeric=False),
        Column("level", lambda finding: Cell(finding.level, level=finding.level), numeric=False),
        Column("finding", lambda finding: finding.sentence, numeric=False),
        Column("numbers", _numbers, numeric=False),
    )
    return Table(f"findings-{number}", one.subject, columns, [(each.name, each) for each in one.findings])


def _numbers(finding: Finding) -> Cell:
    lines = [f"{name.replace('_', ' ')} {value:.4g}" for name, value in finding.numbers.items()]
    return Cell(lines[0] if lines else "", tuple(lines[1:]), muted=True)
