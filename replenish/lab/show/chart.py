"""Charts and findings as data, for every renderer: axes, series, reference lines, verdicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from replenish.lab.verdict import Verdict
from replenish.palette import DASHES, Look, free_look, look_of

Values = Sequence[float | None]
Kind = Literal["line", "steps", "points", "law", "join"]


@dataclass(frozen=True)
class Axis:
    """An axis from `low` to `high`, drawn from `start` to `stop`: linear, or by the logarithm of values above 0.

    Example:
        >>> Axis(0, 10, start=100, stop=0).at(2.5)
        75.0
        >>> Axis(0.1, 10, start=0, stop=100, log=True).at(1)
        50.0
    """

    low: float
    high: float
    start: float
    stop: float
    log: bool = False

    def at(self, value: float) -> float:
        """Return where a value is drawn."""
        part = (value - self.low) / (self.high - self.low)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        return self.start + part * (self.stop - self.start)


def round_step(span: float, parts: int) -> float:
    """Return the least round number (1, 2 or 5 times a power of ten) that divides a span into at most `parts`.

    Example:
        >>> round_step(200, 5), round_step(0.7, 5)
        (50.0, 0.2)
    """
    raw = span / parts
    power = 10.0 ** math.floor(math.log10(raw))
    for factor in (1, 2, 5, 10):
        if factor * power >= raw * (1 - 1e-9):
            return float(f"{factor * power:.12g}")
    raise AssertionError(raw)


def round_reach(values: Iterable[float]) -> float:
    """Return how far an axis must go to either side of zero to hold all values.

    Example:
        >>> round_reach([-0.4, 1.3])
        1.5
    """
    farthest = max(map(abs, values), default=0.0) or 1.0
    step = round_step(2 * farthest, 6)
    return math.ceil(farthest / step - 1e-9) * step


def ticks(low: float, high: float, most: int, *, whole: bool = False) -> list[float]:
    """Return round values within [low, high], at most about `most`.

    Example:
        >>> ticks(0, 37.2, 5), ticks(1, 3, 6, whole=True)
        ([0.0, 10.0, 20.0, 30.0], [1.0, 2.0, 3.0])
    """
    step = round_step(high - low, most)
    if whole:
        step = max(1.0, round(step))
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return [float(f"{number * step:.12g}") for number in range(first, last + 1)]


def log_ticks(low: float, high: float) -> list[float]:
    """Return round values within [low, high] for a logarithmic axis: powers of ten, with 2 and 5 between few of them.

    Example:
        >>> log_ticks(0.08, 12), log_ticks(0.5, 4)
        ([0.1, 1.0, 10.0], [0.5, 1.0, 2.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1,) if high > 30 * low else (1, 2, 5)
    values = [float(f"{digit}e{power}") for power in powers for digit in digits]
    return [value for value in values if low <= value <= high]


def tick_label(value: float) -> str:
    """Return a tick's text: 0.5, 10, 2,000."""
    return f"{value:,.6g}"


@dataclass(frozen=True)
class Series:
    """Values along an axis."""

    name: str  # its name in the legend, unique within its chart
    x: Sequence[float]  # where the values are
    y: Values  # the values; None where there is none
    low: Values = ()  # the lower end of a band at each x, such as the smallest value over the seeds; empty for no band
    high: Values = ()  # the upper end
    # `line`; `steps` for values that hold from their x up to the next; `points`; `law` for a closed form; `join` for
    # a line between points, without a place in the legend.
    kind: Kind = "line"
    order: str = ""  # the data order, which decides colour and mark; "" for other things
    like: str = ""  # the name of another series whose look it shares
    note: str = ""  # a smaller line in the legend
    thin: bool = False  # whether it is secondary, and drawn thinner
    whiskers: bool = False  # whether low and high are drawn as a vertical line at each x instead of a band

    @property
    def readable(self) -> bool:
        """Whether a pointer can read its values: it has one value at each x."""
        return len(set(self.x)) == len(self.x)

    def known(self) -> Iterator[tuple[float, float]]:
        """Yield (x, y) where there is a value."""
        return ((at, value) for at, value in zip(self.x, self.y, strict=True) if value is not None)

    def band(self) -> Iterator[tuple[float, float, float]]:
        """Yield (x, low, high) where there are both."""
        for at, low, high in zip(self.x, self.low, self.high, strict=False):
            if low is not None and high is not None:
                yield at, low, high


@dataclass(frozen=True)
class Reference:
    """A labelled horizontal line at a value, or a vertical one at an x."""

    value: float
    label: str = ""
    upright: bool = False


@dataclass(frozen=True)
class Chart:
    """One pair of axes."""

    name: str  # a name without spaces, unique within its figure
    x_label: str  # what the horizontal axis shows, with its unit
    y_label: str  # what the vertical axis shows
    series: tuple[Series, ...]  # what is drawn
    references: tuple[Reference, ...] = ()  # lines to compare with
    x_range: tuple[float, float] | None = None  # the ends of the horizontal axis; None for the ends of the data
    x_names: tuple[str, ...] = ()  # names in place of the numbers 0, 1, 2, ... on the horizontal axis
    from_zero: bool = True  # whether the vertical axis includes 0
    whole: bool = False  # whether only whole numbers make sense on the horizontal axis
    log: bool = False  # whether the horizontal axis is logarithmic; all x are then above 0
    decimals: int | None = None  # how many decimals a value is printed with; None for four digits

    @property
    def step_width(self) -> float:
        """The width of one value of a `steps` series; 0 without such a series."""
        for series in self.series:
            if series.kind == "steps":
                return float(series.x[1] - series.x[0]) if len(series.x) > 1 else 1.0
        return 0.0

    @property
    def x_ends(self) -> tuple[float, float]:
        """The ends of the horizontal axis."""
        if self.x_range is not None:
            return self.x_range
        if self.x_names:
            return -0.5, len(self.x_names) - 0.5
        every = [at for series in self.series for at in series.x] or [0.0]
        first, last = min(every), max(every) + self.step_width
        if self.log:
            return float(first / 1.1), float(last * 1.1)
        margin = 0.0 if self.step_width else (last - first) / 40 or 0.5
        return float(first - margin), float(last + margin)

    @property
    def y_ends(self) -> tuple[float, float, float]:
        """The ends of the vertical axis, which are round numbers, and the step of its ticks."""
        values = [value for series in self.series for _, value in series.known()]
        values += [end for series in self.series for _, *ends in series.band() for end in ends]
        values += [reference.value for reference in self.references if not reference.upright]
        low, high = min(values, default=0.0), max(values, default=1.0)
        if self.from_zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high - low <= 1e-9 * max(abs(high), 1.0):
            low, high = (low, low + 1.0) if self.from_zero else (low - 0.5, high + 0.5)
        step = round_step(high - low, 5)
        return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, step

    @property
    def looks(self) -> dict[str, tuple[Look | None, int]]:
        """The look of every series by name (None for laws and joins), and the index of its dashes in `DASHES`."""
        looks: dict[str, tuple[Look | None, int]] = {}
        used: dict[int, int] = {}
        free = 0
        for series in self.series:
            if series.like:
                looks[series.name] = looks[series.like]
            elif series.kind in ("law", "join"):
                looks[series.name] = None, 0
            else:
                look = look_of(series.order) if series.order else free_look(free)
                free += not series.order
                used[look.hue] = used.get(look.hue, -1) + 1
                looks[series.name] = look, used[look.hue] % len(DASHES)
        return looks


@dataclass(frozen=True)
class Figure:
    """One chart, or several with the same series, under one legend."""

    name: str
    title: str
    caption: str
    charts: tuple[Chart, ...]

    @property
    def legend(self) -> list[Series]:
        """The series in the legend; all closed forms look alike and share an entry."""
        named = [series for series in self.charts[0].series if series.kind != "join"]
        laws = [series for series in named if series.kind == "law"]
        if len(laws) < 2:
            return named
        return [*(series for series in named if series.kind != "law"), replace(laws[0], name="closed forms")]


def pairs_figure(
    values: Mapping[str, Mapping[int, float]], orders: Mapping[str, str], label: str, name: str, caption: str
) -> Figure:
    """Return a figure of every seed's value, by name and seed, with a line that joins each seed's values.

    Args:
        values: The values by seed, by name.
        orders: The data order of each name, which decides its colour.
        label: What the values are.
        name: The figure's name.
        caption: The figure's caption.
    """
    columns = list(values.values())
    joined = [
        Series(f"seed {seed}", range(len(columns)), [by_seed.get(seed) for by_seed in columns], kind="join")
        for seed in sorted({seed for by_seed in columns for seed in by_seed})
    ]
    points = [
        Series(each, [index] * len(by_seed), list(by_seed.values()), kind="points", order=orders[each])
        for index, (each, by_seed) in enumerate(values.items())
    ]
    chart = Chart("value", "order", label, (*joined, *points), x_names=tuple(values), from_zero=False)
    return Figure(name, "Every seed", caption, (chart,))


@dataclass(frozen=True)
class Finding:
    """A verdict, and what the paper says about the same difference."""

    name: str  # a name without spaces, unique within the page
    verdict: Verdict
    remark: str = ""  # sentences about runs that are not in the numbers, or that were executed differently
    paper: float | None = None  # the paper's difference, where it prints both errors
    paper_sentence: str = ""  # what the paper says, in words
    order: str = "srs"  # the order of the first side, for its colour

    @property
    def sentence(self) -> str:
        """The verdict and the remark."""
        return f"{self.verdict.sentence} {self.remark}".strip()

    @property
    def full_sentence(self) -> str:
        """The verdict, the remark, and what the paper says."""
        return f"{self.sentence} {self.paper_sentence}".strip()


def common_reach(findings: Iterable[Finding]) -> float:
    """Return how far an axis must go to either side of zero to hold all findings."""
    ends: list[float | None] = []
    for finding in findings:
        interval = finding.verdict.interval
        ends += [finding.verdict.difference.mean, finding.paper, finding.verdict.rule.margin]
        ends += [] if interval is None else [interval.low, interval.high]
    return round_reach(end for end in ends if end is not None)
