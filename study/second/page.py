"""The generated parts and pictures of docs/second_study.md, from the records of the second study.

No result of a part is judged or shown before its last run has ended.
"""

from __future__ import annotations

from pathlib import Path

from study.second import dose, fault_page, full_images
from study.second.records import PartRecords
from study.second.rules import holm


def parts(records: Path) -> dict[str, str]:
    """Return the page's generated parts as Markdown, by name, from the folder of the study's records."""
    doses, full, few = (PartRecords.read(name, records) for name in ("K", "F", "E"))
    adjusted = holm({**dose.secondary(doses), **full_images.secondary(few)})
    return {
        **dose.parts(doses, adjusted),
        **full_images.full_parts(full),
        **full_images.few_parts(few, adjusted),
        **fault_page.parts(fault_page.read_scores(records)),
    }


def pictures(records: Path) -> dict[str, str]:
    """Return the page's pictures as SVG, by file name. A part that has not ended has none."""
    drawn = dose.picture(PartRecords.read("K", records))
    return {} if drawn is None else {dose.PICTURE: drawn}
