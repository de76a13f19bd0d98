"""What a comparison leaves: a page, a card to show to others, and a record in JSON with every look that was taken."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from replenish.lab.atomic_files import write_atomically
from replenish.lab.comparing.answer import Answer
from replenish.lab.comparing.card import card_png
from replenish.lab.comparing.question import Question
from replenish.lab.show import Page
from replenish.lab.show.page import page_html


def write_page(answer: Answer, page: Page, path: str | os.PathLike[str]) -> Path:
    """Write a page, and beside it the card as a PNG if there is a verdict to show, and return the page's path."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    card = path.with_suffix(".png")
    if any(verdict.difference.n for verdict in answer.verdicts):
        write_atomically(card, card_png(answer, page.sections[-1].title))
        page = dataclasses.replace(page, card=card.name)
    write_atomically(path, page_html(page).encode())
    return path


def write_record(answer: Answer, page: Path, **more: Any) -> Path:
    """Write an answer as JSON beside its page, with all looks that were taken so far, and return its path."""
    path = page.with_suffix(".json")
    look = {"seeds": _seeds(answer), "anytime": answer.question.rule.anytime}
    looks = [*(each for each in _looks(path) if each != look), look]
    values = {**answer.to_dict(), **more, "page": page.name, "looks": looks}
    write_atomically(path, (json.dumps(values, indent=2, allow_nan=False) + "\n").encode())
    return path


def optional_stopping(question: Question, seeds: Sequence[int], page: Path) -> list[str]:
    """Return a warning if an earlier answer about the same runs looked at other seeds.

    Student's interval is for one look. Whoever looks, adds a seed and looks again finds a difference that is not there
    more often than in one of twenty comparisons.
    """
    if question.rule.anytime:
        return []
    others = [look["seeds"] for look in _looks(page.with_suffix(".json")) if look["seeds"] != sorted(seeds)]
    if not others:
        return []
    again = f": {question.ask_again}" if question.ask_again else ""
    return [
        f"an earlier answer about these runs looked at {len(others[-1])} seeds, and this one looks at {len(seeds)}. "
        f"An interval for a fixed number of seeds misses more often than stated if seeds change after a look. Ask for "
        f"one that holds at every look{again}"
    ]


def _seeds(answer: Answer) -> list[int]:
    return sorted({seed for verdict in answer.verdicts for seed in verdict.difference.seeds})


def _looks(path: Path) -> list[dict[str, Any]]:
    try:
        looks = json.loads(path.read_text())["looks"]
        return [{"seeds": list(look["seeds"]), "anytime": bool(look["anytime"])} for look in looks]
    except (OSError, ValueError, TypeError, KeyError):  # not there, or of another program
        return []
