"""Seed after seed until a question is answered: all of them, or until it is decided, or until a budget is spent."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from time import monotonic

from replenish.lab.question import Question, Values

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def run_seeds(
    question: Question,
    values: Values,
    run: Callable[[Sequence[int]], None],
    *,
    parallel: int = 1,
    budget: float | None = None,
) -> str | None:
    """Run seeds until the question is answered, and return why there are fewer than asked for, if there are.

    `run` runs all orders of some seeds, as many together as keep all of `parallel` busy, and adds to `values`. With a
    budget, in seconds, a round is begun only if one as long as the longest before would end in time.

    Raises:
        ValueError: The first round alone took more than the budget.
    """
    in_rounds = question.until_decided or budget is not None
    at_once = -(-parallel // len(question.orders)) if in_rounds else len(question.seeds)
    begun, longest = monotonic(), 0.0
    for first in range(0, len(question.seeds), at_once):
        before = monotonic()
        if budget is not None and first and before - begun + longest > budget:
            return f"the budget of {budget:g} s allows for no more than {first} seeds"
        run(question.seeds[first : first + at_once])
        longest = max(longest, monotonic() - before)
        if budget is not None and not first and longest > budget:
            raise ValueError(
                f"budget should allow for one run of each order, but these took {longest:.3g} s and it is {budget:g} s"
            )
        if question.is_decided(values):
            break
    return None


def parse_duration(text: str) -> float:
    """Return the seconds of "2h", "90m", "1h30m" or "45s".

    Example:
        >>> parse_duration("1h30m"), parse_duration("45s")
        (5400.0, 45.0)
    """
    parts = re.findall(r"(\d+(?:\.\d+)?)([smhd])", text)
    if not parts or "".join(number + unit for number, unit in parts) != text.replace(" ", ""):
        raise ValueError(f"budget should be a time such as 2h, 90m or 1h30m, but got {text!r}")
    seconds = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if seconds <= 0:
        raise ValueError(f"budget should be more than no time, but got {text!r}")
    return seconds
