"""The metric of a command's run: a regular expression's match in its output, or a key of a JSON file."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from replenish.lab.comparing.question import checked_metric

#: How many of the last lines of an output a message quotes, and how many characters of a line or a value.
LAST_LINES, LONGEST = 10, 400
#: A number as programs print it. A hyphen after a word, as in val-0.93, is not its sign.
NUMBER = re.compile(r"(?:(?<![\w.])[-+])?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NO_NUMBER = r"(?<![A-Za-z])([-+]?(?:nan|inf(?:inity)?))(?![A-Za-z])"
#: The brackets that open or close a group. Brackets after a backslash or in a set are skipped.
_BRACKETS = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^]\\])*\]|(?P<group>\((?:\?P<|(?!\?)))|(?P<other>\()|(?P<close>\))", re.DOTALL
)


@dataclass(frozen=True)
class OutputMetric:
    """The last match of a regular expression in standard output, or in standard error if there is none.

    Attributes:
        pattern: The expression; its first group is the number.
        label: The metric's name; by default the text before the group.
    """

    pattern: str
    label: str = ""

    def __post_init__(self) -> None:
        try:
            groups = re.compile(self.pattern).groups
        except re.error as error:
            raise ValueError(f"metric should be a regular expression, but got {self.pattern!r}: {error}") from None
        if not groups:
            raise ValueError(
                f"metric should have a group, brackets around the number, such as 'accuracy: ([0-9.]+)', but got "
                f"{self.pattern!r}"
            )

    @property
    def described(self) -> str:
        """The expression, for the record."""
        return self.pattern

    @property
    def name(self) -> str:
        """The label, or else the plain text before the group."""
        before = re.sub(r"\\s[*+?]?| [*+?]", " ", self._around_group()[0])
        plain = re.split(r"\\[A-Za-z][*+?]?|(?<!\\)[\[\](){}|^$*+?]", before)[-1]
        return self.label or re.sub(r"\\(.)", r"\1", plain).strip(" :=,\"'\t") or "metric"

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number of the last match in the output of a run that has ended.

        Raises:
            ValueError: Nothing matches, or the match is not a number.
        """
        texts = [(folder / name).read_text(errors="replace") for name in ("stdout.txt", "stderr.txt")]
        for text in texts:
            if found := list(re.finditer(self.pattern, text, re.MULTILINE)):
                if (diverged := self._no_number(text[found[-1].end() :])) is not None:
                    return diverged
                return checked_metric(_whole_number(found[-1], folder), f"the metric of the run in {folder}")
        for text in texts:
            if (diverged := self._no_number(text)) is not None:
                return diverged
        raise ValueError(
            f"metric should be a regular expression that matches what the command prints, but {self.pattern!r} matches "
            f"nothing in {folder}/stdout.txt, which ends:\n{last_lines(folder, 'stdout.txt')}"
        )

    def _no_number(self, text: str) -> float | None:
        """Return the nan or inf in the place of the number; None if there is none.

        An expression for digits does not match nan or inf, so an earlier epoch's number would pass for the last one.
        """
        try:
            found = re.search(NO_NUMBER.join(self._around_group()), text, re.MULTILINE | re.IGNORECASE)
        except re.error:  # such as an expression that refers back to the group
            return None
        return None if found is None else float(found.group(1))

    def _around_group(self) -> tuple[str, str]:
        """Return the parts of the expression before and after its first group."""
        depth, start, outside = 0, 0, -1
        for bracket in _BRACKETS.finditer(self.pattern):
            if bracket.lastgroup == "close":
                depth -= 1
                if depth == outside:
                    return self.pattern[:start], self.pattern[bracket.end() :]
            elif bracket.lastgroup is not None:
                if bracket.lastgroup == "group" and outside < 0:
                    start, outside = bracket.start(), depth
                depth += 1
        return self.pattern, ""  # brackets in a comment of the expression


@dataclass(frozen=True)
class JsonMetric:
    """A key in a JSON file that the command writes.

    Attributes:
        path: The file's path, in which {seed}, {order} and {folder} stand for the run's values.
        key: The key; dots separate the keys of nested objects.
        label: The metric's name; by default the key.
    """

    path: str
    key: str
    label: str = ""

    @classmethod
    def from_text(cls, text: str, label: str = "") -> JsonMetric:
        """Return the metric of "FILE:KEY"."""
        path, _, key = text.rpartition(":")
        if not path or not key:
            raise ValueError(
                f"the JSON metric should be FILE:KEY, such as {{folder}}/result.json:accuracy, but got {text!r}"
            )
        return cls(path, key, label)

    @property
    def described(self) -> str:
        """The file and the key, for the record."""
        return f"{self.path}:{self.key}"

    @property
    def name(self) -> str:
        """The label, or else the key."""
        return self.label or self.key

    @property
    def is_shared(self) -> bool:
        """Whether all runs write the same file, so that no two may run at once."""
        return not any(name in self.path for name in ("{folder}", "{seed}", "{order}"))

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number under the key, for a run that has ended.

        Args:
            folder: The run's folder.
            placeholders: The values of {seed}, {order} and {folder} in this run.
            begun: When the run was started, in seconds since 1970; None if it ended in an earlier comparison.

        Raises:
            ValueError: The file or the key is missing, or the value is not a number.
        """
        path = Path(filled(self.path, placeholders))
        if not path.is_file():
            raise ValueError(
                f"the metric should be in {path}, but the run in {folder} did not write it; its output ends:\n"
                f"{last_lines(folder)}"
            )
        # Allow 2 s, since file systems record times less exactly than clocks.
        if "{folder}" not in self.path and (begun is None or path.stat().st_mtime < begun - 2):
            raise ValueError(f"the metric should be in {path}, but that file is not of the run in {folder}")
        try:
            value: Any = json.loads(path.read_text())
        except ValueError as error:
            raise ValueError(f"{path} should be a JSON file, but: {error!s:.200}") from None
        for part in self.key.split("."):
            if not isinstance(value, dict) or part not in value:
                known = f"has only {', '.join(value)}" if isinstance(value, dict) else f"is {value!r}"
                raise ValueError(
                    f"{path} should have the key {self.key}, but where {part} should be it {known:.{LONGEST}}"
                )
            value = value[part]
        return checked_metric(value, f"{self.key} in {path}")


#: Where a run's number is found.
Metric: TypeAlias = OutputMetric | JsonMetric


def filled(text: str, placeholders: dict[str, str]) -> str:
    """Return a text with its placeholders filled in, and other braces as they are."""
    for name, value in placeholders.items():
        text = text.replace(f"{{{name}}}", value)
    return text


def last_lines(folder: Path, *names: str) -> str:
    """Return the last lines that a run printed, by default to standard error, or else to standard output."""
    for name in names or ("stderr.txt", "stdout.txt"):
        path = folder / name
        text = path.read_bytes().decode(errors="replace") if path.exists() else ""
        # As a terminal shows it: progress bars overwrite their line.
        lines = [line.rstrip().rpartition("\r")[2] for line in text.rstrip().split("\n")]
        if lines := [line for line in lines if line]:
            return "\n".join(f"    {line:.{LONGEST}}" for line in lines[-LAST_LINES:])
    return "    (it printed nothing)"


def _whole_number(match: re.Match[str], folder: Path) -> str:
    """Return the whole number around a group's match: "8.754e-06" if the expression matched only "8.754".

    Raises:
        ValueError: The match is a part of something that is not one number, such as 1,234.
    """
    text, (start, stop) = match.string, match.span(1)
    if start < 0:
        raise ValueError(f"metric should have a group that takes part in each match, but {match.re.pattern!r} has not")
    taken = match.group(1).strip()
    if NUMBER.fullmatch(taken.rstrip(".")) is None:
        return taken
    begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
    line = text[begin : end if end >= 0 else len(text)]
    numbers = [found for found in NUMBER.finditer(line) if found.start() < stop - begin and start - begin < found.end()]
    before, after = line[: numbers[0].start()], line[numbers[0].end() :]
    # If the expression itself has a comma next to its group, that comma separates two numbers.
    ends_open, begins_open = match.end(1) == match.end(), match.start(1) == match.start()
    if (ends_open and re.match(r",\d", after)) or (begins_open and re.search(r"\d,$", before)):
        raise ValueError(
            f"the metric of the run in {folder} should be one number without commas, but got {line[:80]!r}; have the "
            "script print it plainly, or put the comma into the expression"
        )
    return numbers[0].group()
