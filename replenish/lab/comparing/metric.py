"""The number that a command's run is judged by: what an expression finds in its output, or a key of a JSON file."""

from __future__ import annotations

import json
import os
import re
import shlex
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from replenish.lab.comparing.question import checked_metric

#: How much of the end of an output is shown.
LAST_LINES = 10
#: Characters of an output or of a value that a message repeats at most.
LONGEST = 400
#: A whole number as programs print it.
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
NO_NUMBER = r"(?<![A-Za-z])([-+]?(?:nan|inf(?:inity)?))(?![A-Za-z])"


class Metric(Protocol):
    """How a run's number is found."""

    @property
    def described(self) -> str:
        """What it looks for, for the record."""

    @property
    def name(self) -> str:
        """The metric's name, for people."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number of a run that has ended.

        Args:
            folder: The run's folder, which has its output.
            placeholders: What stands for {seed}, {order} and {folder} in this run.
            begun: When the run was started, in seconds since the epoch, if it has just ended.

        Raises:
            DivergedError: It is not finite.
            ValueError: There is none, or it is not a number.
        """


@dataclass(frozen=True)
class OutputMetric:
    """The last match of a regular expression in standard output, or in standard error if there is none.

    Attributes:
        pattern: The expression; its first group is the number.
        label: The metric's name, if not the text before the group.
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
        """The expression."""
        return self.pattern

    @property
    def name(self) -> str:
        """The label, or the text before the group."""
        return self.label or _text_before_group(self.pattern) or "metric"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

    def read(self, folder: Path, placeholders: dict[str, str], begun: float | None) -> float:
        """Return the number of the last match."""
        texts = [(folder / name).read_text(errors="replace") for name in ("stdout.txt", "stderr.txt")]
        for text in texts:
            if found := list(re.finditer(self.pattern, text, re.MULTILINE)):
                last = found[-1]
                self._refuse_no_number(text[last.end() :], folder)
                return checked_metric(_whole_number(last, text, folder), f"the metric of the run in {folder}")
        for text in texts:
            self._refuse_no_number(text, folder)
        raise ValueError(
            f"metric should be a regular expression that matches what the command prints, but {self.pattern!r} matches "
            f"nothing in {folder}/stdout.txt, which ends:\n{last_lines(folder, 'stdout.txt')}"
        )

    def _refuse_no_number(self, text: str, folder: Path) -> None:
        """Refuse an output in which nan or inf is where the number should be.

        An expression for digits does not match these, so that the number of an earlier epoch would be taken for the
        last, or the expression be blamed.
        """
        group = _first_group(self.pattern)
        if group is None:
            return
        pattern = self.pattern[: group.start] + NO_NUMBER + self.pattern[group.stop :]
        try:
            found = re.search(pattern, text, re.MULTILINE | re.IGNORECASE)
        except re.error:  # the group was referred to, or so
            return
        if found is not None:
            checked_metric(found.group(1), f"the metric of the run in {folder}")


@dataclass(frozen=True)
class JsonMetric:
    """A key in a JSON file that the command writes.

    Attributes:
        path: The file, in which {seed}, {order} and {folder} stand for those of the run.
        key: The key; dots lead into objects within.
        label: The metric's name, if not the key.
    """

    path: str
    key: str
    label: str = ""

    @classmethod
    def from_text(cls, text: str, label: str = "") -> JsonMetric:
        """Return the metric of "FILE:KEY"."""
        path, colon, key = text.rpartition(":")
        if not colon or not path or not key:
            raise ValueError(
                f"the JSON metric should be FILE:KEY, such as {{folder}}/result.json:accuracy, but got {text!r}"
            )
        return cls(path, key, label)

    @property
    def described(self) -> str:
        """The file and the key."""
        return f"{self.path}:{self.key}"

    @property
    def name(self) -> str:
        """The label, or the key."""
        return self.label or self.key

    @property
    def is_shared(self) -> bool:
        """Whether all runs write the same file, so that no two may run at once."""
        return not any(name in self.path for name in ("{folder}", "{seed}", "{order}"))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)

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
            raise ValueError(f"{path} should be a JSON file, but: {error!s:.200}") from None
        for part in self.key.split("."):
            if not isinstance(value, dict) or part not in value:
                known = f"has only {', '.join(value)}" if isinstance(value, dict) else f"is {value!r}"
                raise ValueError(
                    f"{path} should have the key {self.key}, but where {part} should be it {known:.{LONGEST}}"
                )
            value = value[part]
        return checked_metric(value, f"{self.key} in {path}")


def metric_of(values: dict[str, Any]) -> Metric:
    """Return the metric that `to_dict` wrote."""
    return OutputMetric(**values) if "pattern" in values else JsonMetric(**values)


def split_command(command: str, windows: bool = os.name == "nt") -> list[str]:
    r"""Return the words of a command as its shell reads them; on Windows a backslash is part of a path.

    Example:
        >>> split_command(r'python C:\new\train.py "a b"', windows=True)
        ['python', 'C:\\new\\train.py', 'a b']
    """
    if not windows:
        return shlex.split(command)
    words = shlex.split(command, posix=False)
    return [word[1:-1] if len(word) > 1 and word[0] == word[-1] and word[0] in "'\"" else word for word in words]


def check_words(metric: Metric, command: str) -> None:
    """Refuse a metric whose words stand nowhere in what the command starts: a look before the first training.

    The words are those of the expression, or of the JSON key. They are looked for in the command itself, in the files
    that it names, and in text files beside and below those. Without a Python file among them nothing is refused.
    """
    text = metric.pattern if isinstance(metric, OutputMetric) else metric.described.rpartition(":")[2]
    words = re.findall(r"[A-Za-z]{3,}", re.sub(r"\\[A-Za-z]|\[[^]]*\]|\(\?[A-Za-z<>=!:]*", " ", text))
    sources = _sources(command)
    if not words or not any(path.suffix == ".py" for path in sources):
        return
    rest = command.lower()
    texts = [rest, *(path.read_text(errors="replace").lower() for path in sources)]
    if any(word.lower() in each for word in words for each in texts):
        return
    named = ", ".join(str(path) for path in sources[:3]) + (" ..." if len(sources) > 3 else "")
    raise ValueError(
        f"metric should look for what the command prints, but {words[0]!r} stands in none of its {len(sources)} files "
        f"({named}); correct it, or skip this check with --no-checks if a library prints it"
    )


def _sources(command: str) -> list[Path]:
    """Return the text files that a command names, and those beside and below its scripts."""
    words = split_command(command)
    modules = [Path(*words[place + 1].split(".")) for place, word in enumerate(words[:-1]) if word == "-m"]
    places = [each for module in modules for each in (module.with_suffix(".py"), module / "__main__.py")]
    named = [path for path in (*map(Path, words), *places) if path.suffix in _TEXTS and path.is_file()]
    for script in [path for path in named if path.suffix in _SHELLS]:
        named += [path for path in map(Path, script.read_text().split()) if path.suffix in _TEXTS and path.is_file()]
    found = dict.fromkeys(named)
    for folder in dict.fromkeys(path.parent for path in named):
        for path in folder.rglob("*"):
            if len(found) >= _MOST_FILES:
                break
            if path.suffix in _TEXTS and path.is_file() and not any(part in _LIBRARIES for part in path.parts):
                found[path] = None
    return [path for path in found if path.stat().st_size < 10**6]


_TEXTS = (".py", ".sh", ".yaml", ".yml", ".toml", ".json", ".cfg", ".ini", ".ipynb", ".bat", ".ps1")
_SHELLS = (".sh", ".bat", ".ps1")
_LIBRARIES = ("site-packages", "node_modules", ".git", "__pycache__")
_MOST_FILES = 1000


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
            return "\n".join(f"    {line:.{LONGEST}}" for line in lines[-LAST_LINES:])
    return "    (it printed nothing)"


def _whole_number(match: re.Match[str], text: str, folder: Path) -> str:
    """Return the number that a group lies in: of "8.754e-06" all, where the expression took "8.754" only.

    Raises:
        ValueError: It is a part of something that is not one number, such as 1,234.
    """
    start, stop = match.span(1)
    if start < 0:
        raise ValueError(f"metric should have a group that takes part in each match, but {match.re.pattern!r} has not")
    taken = text[start:stop].strip()
    try:
        float(taken.rstrip("."))
    except ValueError:
        return taken
    begin, end = text.rfind("\n", 0, start) + 1, text.find("\n", stop)
    for found in NUMBER.finditer(text, begin, end if end >= 0 else len(text)):
        if found.start() < stop and start < found.end():
            return _checked_number(found, match, text, folder)
    return taken


def _checked_number(number: re.Match[str], match: re.Match[str], text: str, folder: Path) -> str:
    start, stop = number.span()
    if text[start] in "+-" and start > 0 and (text[start - 1].isalnum() or text[start - 1] in "_."):
        start += 1  # a hyphen, as in val-0.93
    explicit = match.start() < match.start(1), match.end(1) < match.end()  # whether the expression has text around it
    before = text[start - 2 : start] if start > 1 else ""
    after = text[stop : stop + 2]
    if (not explicit[1] and re.fullmatch(r",\d", after)) or (not explicit[0] and re.fullmatch(r"\d,", before)):
        line = text[text.rfind("\n", 0, start) + 1 :].partition("\n")[0]
        raise ValueError(
            f"the metric of the run in {folder} should be one number without commas, but got {line[:80]!r}; have the "
            "script print it plainly, or put the comma into the expression"
        )
    return text[start:stop]


def _text_before_group(pattern: str) -> str:
    r"""Return the plain text that an expression has before its first group, to name the metric by.

    Example:
        >>> _text_before_group(r"epoch \d+: test acc\.: +([0-9.]+)"), _text_before_group("([0-9.]+)")
        ('test acc.', '')
    """
    group = _first_group(pattern)
    before = pattern[: group.start] if group else ""
    before = re.sub(r"\\s[*+?]?| [*+?]", " ", before)
    plain = re.split(r"\\[A-Za-z][*+?]?|(?<!\\)[\[\](){}|^$*+?]", before)[-1]
    return re.sub(r"\\(.)", r"\1", plain).strip(" :=,\"'\t")


def _first_group(pattern: str) -> slice | None:
    """Return where the first group of an expression is, with its brackets."""
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
