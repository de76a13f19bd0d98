"""The number that a command's run is judged by: what an expression finds in its output, or a key of a JSON file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from replenish.lab.comparing.question import checked_metric

#: How much of the end of an output is shown.
LAST_LINES = 10


class Metric(Protocol):
    """How a run's number is found."""

    @property
    def described(self) -> str:
        """What it looks for, for messages and for the record."""

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number of a run that has ended.

        Args:
            folder: The run's folder, which has its output.
            placeholders: What stands for {seed}, {order} and {folder} in this run.
            begun: When the run was started, in seconds since the epoch, if it has just ended.

        Raises:
            ValueError: There is none, or it is not a finite number.
        """


@dataclass(frozen=True)
class OutputMetric:
    """The last match of a regular expression in standard output, or in standard error if there is none.

    Attributes:
        pattern: The expression; its first group is the number, or the whole match if it has none.
    """

    pattern: str

    def __post_init__(self) -> None:
        try:
            re.compile(self.pattern)
        except re.error as error:
            raise ValueError(f"metric should be a regular expression, but got {self.pattern!r}: {error}") from None

    @property
    def described(self) -> str:
        """The expression."""
        return self.pattern

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number of the last match."""
        for name in ("stdout.txt", "stderr.txt"):
            text = (folder / name).read_text(errors="replace")
            if found := list(re.finditer(self.pattern, text, re.MULTILINE)):
                last = found[-1]
                _refuse_what_is_no_number_later(self.pattern, text[last.end() :], folder)
                number = last.group(1) if last.re.groups else last.group()
                return checked_metric(number, f"the metric of the run in {folder}")
        raise ValueError(
            f"metric should be a regular expression that matches what the command prints, but {self.pattern!r} matches "
            f"nothing in {folder}/stdout.txt, which ends:\n{last_lines(folder, 'stdout.txt')}"
        )


@dataclass(frozen=True)
class JsonMetric:
    """A key in a JSON file that the command writes.

    Attributes:
        path: The file, in which {seed}, {order} and {folder} stand for those of the run.
        key: The key; dots lead into objects within.
    """

    path: str
    key: str

    @classmethod
    def from_text(cls, text: str) -> JsonMetric:
        """Return the metric of "FILE:KEY"."""
        path, colon, key = text.rpartition(":")
        if not colon or not path or not key:
            raise ValueError(
                f"the JSON metric should be FILE:KEY, such as {{folder}}/result.json:accuracy, but got {text!r}"
            )
        return cls(path, key)

    @property
    def described(self) -> str:
        """The file and the key."""
        return f"{self.path}:{self.key}"

    @property
    def is_shared(self) -> bool:
        """Whether all runs write the same file, so that no two may run at once."""
        return not any(name in self.path for name in ("{folder}", "{seed}", "{order}"))

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number under the key."""
        path = Path(filled(self.path, placeholders))
        if not path.is_file():
            raise ValueError(
                f"the metric should be in {path}, but the run in {folder} did not write it; its output ends:\n"
                f"{last_lines(folder)}"
            )
        # File systems keep times less exactly than clocks.
        if "{folder}" not in self.path and (begun is None or path.stat().st_mtime < begun - 2):
            raise ValueError(f"the metric should be in {path}, but that file is not of the run in {folder}")
        try:
            value: Any = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} should be a JSON file, but: {error}") from None
        for part in self.key.split("."):
            if not isinstance(value, dict) or part not in value:
                known = f"has only {', '.join(value)}" if isinstance(value, dict) else f"is {value!r}"
                raise ValueError(f"{path} should have the key {self.key}, but where {part} should be it {known}")
            value = value[part]
        return checked_metric(value, f"{self.key} in {path}")


def filled(text: str, placeholders: dict[str, str]) -> str:
    """Return a text with its placeholders filled; other braces stay."""
    for name, value in placeholders.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def last_lines(folder: Path, *names: str) -> str:
    """Return the end of what a run printed: by default of standard error, if there is any, else of standard output."""
    for name in names or ("stderr.txt", "stdout.txt"):
        path = folder / name
        text = path.read_bytes().decode(errors="replace") if path.exists() else ""
        # As a terminal has it in the end: progress bars write over what they wrote.
        lines = [line.rstrip().rpartition("\r")[2] for line in text.rstrip().split("\n")]
        if lines := [line for line in lines if line]:
            return "\n".join(f"    {line}" for line in lines[-LAST_LINES:])
    return "    (it printed nothing)"


def _refuse_what_is_no_number_later(pattern: str, rest: str, folder: Path) -> None:
    """Refuse an output in which the last number is followed by nan or inf in the same words.

    An expression for digits does not match these, so that the number of an earlier epoch would be taken for the last.
    """
    group = _first_group(pattern)
    if group is None:
        return
    no_number = pattern[: group.start] + r"([-+]?(?:nan|inf(?:inity)?))" + pattern[group.stop :]
    try:
        found = re.search(no_number, rest, re.MULTILINE | re.IGNORECASE)
    except re.error:  # the group was referred to, or so
        return
    if found is not None:
        checked_metric(found.group(1), f"the metric of the run in {folder}")


def _first_group(pattern: str) -> slice | None:
    """Return where the first group of an expression stands, with its brackets."""
    depth, start, place, in_set = 0, None, 0, False
    while place < len(pattern):
        char = pattern[place]
        if char == "\\":
            place += 1
        elif in_set:
            in_set = char != "]"
        elif char == "[":
            in_set = True
        elif char == "(":
            if start is None and pattern[place + 1 : place + 2] != "?":
                start, outside = place, depth
            depth += 1
        elif char == ")":
            depth -= 1
            if start is not None and depth == outside:
                return slice(start, place + 1)
        place += 1
    return None
