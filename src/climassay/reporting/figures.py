"""Figures drawn as inline SVG, so that they follow the page's colours, its width and its printer."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

from climassay.reporting.tables import Column, Table, counted

T = TypeVar("T")

_TURNS = 8
"""Turns in which clouds of specks are drawn."""
_CHARACTER, _LINE = 5.8, 14.0
"""Width of a character and height of a line of a label, in units of the drawing."""
_LEAST_WIDTH = 0.4
"""Least width of a part of a stacked bar, in per cent: about two pixels in a wide window."""


@dataclass(frozen=True, slots=True)
class Dot:
    """One estimate with its interval."""

    label: str
    group: str
    """Dots of one group share a colour."""
    value: float
    low: float
    high: float
    reference: float | None = None
    """Where the constant baseline lies, drawn as a tick."""


@dataclass(frozen=True, slots=True)
class Axis:
    """A linear or logarithmic axis."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    percent: bool = False
    """Show 0.5 as 50%."""
    logarithmic: bool = False

    @classmethod
    def over(cls, label: str, values: Sequence[float], *, percent: bool = False, at_most: int = 6) -> "Axis":
        """A linear axis with round ticks that covers the values; nearly equal values lie in its middle."""
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if high - low < 1e-9 * max(1.0, abs(low), abs(high)):
            low, high = low - 0.5, high + 0.5
        # The smallest of 1, 2, 2.5 and 5 times a power of ten with which so many ticks are enough.
        least = (high - low) / (at_most - 1)
        power = 10.0 ** math.floor(math.log10(least))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= least * (1 - 1e-9))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = tuple(round(number * step, 12) for number in range(first, last + 1))
        return cls(label, ticks[0], ticks[-1], ticks, percent)

    @classmethod
    def shares(cls, label: str, *, percent: bool = True) -> "Axis":
        """An axis from 0 to 1, by default written as 0 to 100%."""
        return cls(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=percent)

    @classmethod
    def at(cls, label: str, ticks: Sequence[float]) -> "Axis":
        """A logarithmic axis with the ticks given, all above 0; for sizes that double or so."""
        places = tuple(sorted(set(ticks)))
        spread = 1.15 if places[0] < places[-1] else 2.0
        return cls(label, places[0] / spread, places[-1] * spread, places, logarithmic=True)

    def share(self, value: float) -> float:
        """Where a value lies, 0 at the axis's low end, 1 at its high end."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    @property
    def broken(self) -> bool:
        """Whether values are measured from 0, which lies off the axis."""
        return bool(self.ticks) and not self.logarithmic and not self.low <= 0 <= self.high

    @property
    def caption(self) -> str:
        """The label; of an axis that leaves out 0 or is not linear, also how far it goes."""
        if self.logarithmic:
            return f"{self.label} (logarithmic)"
        if self.broken:
            end = f"starts at {self.words(self.ticks[0])}" if self.low > 0 else f"ends at {self.words(self.ticks[-1])}"
            return f"{self.label} (scale {end}, not at 0)"
        return self.label

    def exactly(self, value: float) -> str:
        """A value as it is written where it is read off: a tenth of a per cent, or three digits."""
        text = f"{100 * value:.1f}%" if self.percent else f"{value:.3g}"
        return text.replace("-", "\N{MINUS SIGN}")

    def words(self, value: float) -> str:
        """A value as it is written at a tick."""
        if not self.percent:
            return f"{value:g}".replace("-", "\N{MINUS SIGN}")
        steps = [abs(second - first) for first, second in pairwise(self.ticks)]
        # Ticks half a per cent apart need a decimal, or two of them would read the same.
        decimals = max(0, math.ceil(-math.log10(100 * min(steps)) - 1e-9)) if steps else 0
        return f"{100 * value:.{decimals}f}%"


@dataclass(frozen=True, slots=True)
class DotPlot:
    """Estimates on one axis, with intervals and baselines."""

    title: str
    dots: tuple[Dot, ...]
    axis: str = "accuracy"
    note: str = ""
    scale: Axis | None = None
    """By default the axis goes from 0 to 100%."""
    together: bool = False
    """Dots of one label share a row; a legend names their groups."""
    order: tuple[str, ...] = ()
    """Order of the groups, which keep their colours where some of them have no dots; those that it does not name follow
    by first appearance. Where it is given, a legend names the groups."""
    decimals: int = 2
    """Decimals of values that are not written in per cent."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups that have dots, in order."""
        present = dict.fromkeys(dot.group for dot in self.dots)
        return tuple(dict.fromkeys((*(name for name in self.order if name in present), *present)))

    @property
    def tones(self) -> dict[str, int]:
        """Number of each group's colour."""
        return {name: number for number, name in enumerate(dict.fromkeys((*self.order, *self.groups)))}

    @property
    def keyed(self) -> bool:
        """Whether a legend tells what the colours mean."""
        return self.together or bool(self.order)

    @property
    def measure(self) -> Axis:
        """The axis that dots are placed on."""
        return self.scale or Axis.shares(self.axis)

    @property
    def rows(self) -> tuple[tuple[str, tuple[Dot, ...]], ...]:
        """Labels from top to bottom, and the dots of each."""
        if not self.together:
            return tuple((dot.label, (dot,)) for dot in self.dots)
        labels = dict.fromkeys(dot.label for dot in self.dots)
        return tuple((label, tuple(dot for dot in self.dots if dot.label == label)) for label in labels)

    @property
    def row_height(self) -> int:
        """Room of a row, in pixels or units of the drawing; dots that share it appear below each other."""
        return max(26, 18 * len(self.groups) + 8) if self.together else 26

    def shift(self, dot: Dot) -> float:
        """How far below the middle of its row a dot stands, so that intervals do not hide each other."""
        return 18 * (self.groups.index(dot.group) - (len(self.groups) - 1) / 2) if self.together else 0.0

    def words(self, value: float) -> str:
        """A value as it is written beside its dot."""
        if self.measure.percent:
            return f"{100 * value:.1f}%"
        return f"{round(value, self.decimals) + 0.0:.{self.decimals}f}".replace("-", "\N{MINUS SIGN}")

    def interval(self, dot: Dot) -> str:
        """Both ends of a dot's interval, in brackets."""
        return f"[{self.words(dot.low).rstrip('%')}, {self.words(dot.high).rstrip('%')}]"

    @property
    def label_width(self) -> int:
        """Room for the longest label, in units of the drawing (about 6.6 a character at its font size)."""
        return 24 + round(6.6 * max((len(dot.label) for dot in self.dots), default=0))


def thinned(points: Sequence[T], at_most: int = 25) -> list[T]:
    """So many of the points of a curve at most, about evenly apart, first and last included."""
    step = max(1.0, (len(points) - 1) / (at_most - 1))
    return [points[round(number * step)] for number in range(min(len(points), at_most))]


@dataclass(frozen=True, slots=True)
class Point:
    """A value, with its interval where it has one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    """Shown when the reader points at it."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points joined by a line."""

    name: str
    points: tuple[Point, ...]
    reference: bool = False
    """Drawn dashed, without marks: a baseline or a diagonal."""


@dataclass(frozen=True, slots=True)
class LinePlot:
    """Lines with intervals, for example a learning curve with its baseline, or a reliability curve."""

    title: str
    series: tuple[Series, ...]
    x: Axis
    y: Axis
    note: str = ""
    square: bool = False
    """Both axes go alike: drawn nearly as high as wide."""

    @property
    def description(self) -> str:
        """What a reader who does not see the figure is told; the values are in the table."""
        names = [series.name for series in self.series if not series.reference]
        return (
            f"{self.y.caption} against {self.x.caption}. Lines: {', '.join(names)}. The values stand in a table below."
        )

    @property
    def table(self) -> Table:
        """All values, those of references too."""
        rows = [
            (series.name, self.x.exactly(p.x), self.y.exactly(p.y), self.interval(p) or "-", p.note or "-")
            for series in self.series
            for p in series.points
        ]
        kept = [place for place in range(5) if place < 3 or any(row[place] != "-" for row in rows)]
        headings = ("line", self.x.label, self.y.label, "95% interval", "what")
        return Table(
            self.title,
            tuple(Column(headings[place], "left" if place in (0, 4) else "right") for place in kept),
            tuple(tuple(row[place] for place in kept) for row in rows),
        )

    def interval(self, point: Point) -> str:
        """Both ends of a point's interval, in brackets; empty where it has none."""
        if point.low is None or point.high is None:
            return ""
        return f"[{self.y.exactly(point.low).rstrip('%')}, {self.y.exactly(point.high).rstrip('%')}]"

    @property
    def height(self) -> int:
        """Height of the frame, in pixels or units of the drawing."""
        return 360 if self.square else 270

    @property
    def tones(self) -> dict[str, int]:
        """Number of each series' colour, or of a reference's dashes."""
        kinds = ([one.name for one in self.series if one.reference is reference] for reference in (False, True))
        return {name: number for names in kinds for number, name in enumerate(names)}


@dataclass(frozen=True, slots=True)
class Cloud:
    """Points of one kind in a scatter plot."""

    name: str
    points: tuple[tuple[float, float], ...]
    place: float | None = None
    """On an order from 0 to 1, which decides the colour where the points are small."""


@dataclass(frozen=True, slots=True)
class Label:
    """A name at a place of a scatter plot."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class ScatterPlot:
    """Clouds of points that share their axes; kinds differ in colour and, where they are few, in shape."""

    title: str
    clouds: tuple[Cloud, ...]
    x: Axis
    y: Axis
    note: str = ""
    small: bool = False
    """Thousands of points: specks without shape, some ten bytes each; colours follow the clouds' places."""
    wide: bool = False
    """For many points: drawn higher."""
    labels: tuple[Label, ...] = ()
    """Names of places, the most important first; one that would cover an earlier one is left out."""

    @property
    def height(self) -> int:
        """Height of the frame, in pixels or units of the drawing."""
        return 500 if self.wide else 360

    @property
    def few(self) -> bool:
        """Whether specks can be drawn twice as large without covering each other."""
        return sum(len(cloud.points) for cloud in self.clouds) <= 2000

    def specks(self, width: float) -> list[tuple[Cloud, str]]:
        """All points as SVG paths in a frame of that width: lines of no length, whose round ends are the specks.

        Clouds take turns with a part of their points each, so that none lies on top of the others everywhere.
        """

        def path(points: Sequence[tuple[float, float]]) -> str:
            return "".join(
                f"M{width * self.x.share(x):.1f} {self.height * (1 - self.y.share(y)):.1f}h0" for x, y in points
            )

        turns = ((cloud, cloud.points[turn::_TURNS]) for turn in range(_TURNS) for cloud in self.clouds)
        return [(cloud, path(points)) for cloud, points in turns if points]

    def placed_labels(self, width: float) -> list[Label]:
        """The labels that have room in a frame of that width, at their places in it; see :meth:`specks`."""
        placed: list[tuple[Label, float]] = []
        for label in self.labels:
            half = _CHARACTER * len(label.text) / 2
            x = min(max(width * self.x.share(label.x), half), width - half)
            y = self.height * (1 - self.y.share(label.y))
            for moved in (y, y - _LINE, y + _LINE):
                free = all(abs(moved - o.y) >= _LINE or abs(x - o.x) >= half + other for o, other in placed)
                if free and 2 * half <= width and _LINE <= moved <= self.height:
                    placed.append((Label(round(x, 1), round(moved, 1), label.text), half))
                    break
        return [label for label, _ in placed]

    @property
    def description(self) -> str:
        """What a reader who does not see the figure is told: where each cloud has its middle, and the names on it."""
        parts = []
        for cloud in self.clouds:
            middle = ", ".join(f"{sum(values) / len(values):.3g}" for values in zip(*cloud.points, strict=True))
            parts.append(
                f"{cloud.name}: {counted(len(cloud.points), 'point')}" + (f" around {middle}" if middle else "")
            )
        named = ", ".join(label.text for label in self.labels)
        return f"{self.y.label} against {self.x.label}. {'; '.join(parts)}." + (f" Named: {named}." if named else "")


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Counts in a grid, for example of true against given verdicts; each cell has its number."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """One tuple per row, as long as ``columns``."""
    row_axis: str
    column_axis: str
    note: str = ""

    def shade(self, row: int, column: int) -> int:
        """How dark a cell is, in per cent: its share of the row, so that rare rows can be read too."""
        return round(100 * self.counts[row][column] / (sum(self.counts[row]) or 1))

    def agrees(self, row: int, column: int) -> bool:
        """Whether a cell's row and column are the same."""
        return self.rows[row] == self.columns[column]

    @property
    def description(self) -> str:
        """What the figure shows, in a sentence."""
        total = sum(map(sum, self.counts))
        same = sum(
            count
            for row, cells in enumerate(self.counts)
            for column, count in enumerate(cells)
            if self.agrees(row, column)
        )
        axes = f"Rows: {self.row_axis}. Columns: {self.column_axis}."
        if not set(self.rows) & set(self.columns):
            return f"{axes} {total} in all."
        return f"{axes} {same} of {total} are the same in both (outlined)."


@dataclass(frozen=True, slots=True)
class Category:
    """One part that every bar has."""

    name: str
    place: float | None = None
    """On an order from 0 to 1, which decides the colour; None appears outside of it and is grey."""
    hatched: bool = False
    """Tells two grey categories apart."""


@dataclass(frozen=True, slots=True)
class StackedBar:
    """How the cases of one kind are shared out among the categories."""

    label: str
    counts: tuple[int, ...]
    """One a category."""

    @property
    def total(self) -> int:
        """Number of cases."""
        return sum(self.counts)

    def share(self, category: int) -> float:
        """Share of the cases that are in a category; 0 where there are no cases."""
        return self.counts[category] / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class BarPart:
    """One part of a stacked bar as it is drawn."""

    category: Category
    count: int
    share: float
    """Share of the bar's cases."""
    start: float
    """Where it begins, in per cent of the bar's length."""
    width: float
    """In per cent; the least part can still be seen and pointed at."""


@dataclass(frozen=True, slots=True)
class StackedBars:
    """Distributions side by side, each drawn as one bar of the same length."""

    title: str
    categories: tuple[Category, ...]
    bars: tuple[StackedBar, ...]
    note: str = ""

    def description(self, bar: StackedBar) -> str:
        """What a reader who does not see the bar is told: all its counts."""
        parts = [
            f"{category.name} {count} ({100 * bar.share(number):.0f}%)"
            for number, (category, count) in enumerate(zip(self.categories, bar.counts, strict=True))
            if count
        ]
        return f"{bar.label}: " + (", ".join(parts) or "no cases")

    @property
    def table(self) -> Table:
        """All counts with their shares."""
        headings = ["", "n", *(category.name for _, category in self.used)]
        rows = [
            (
                bar.label,
                str(bar.total),
                *(f"{bar.counts[number]} ({100 * bar.share(number):.0f}%)" for number, _ in self.used),
            )
            for bar in self.bars
        ]
        return Table.of(self.title, headings, rows)

    def parts(self, bar: StackedBar) -> tuple[BarPart, ...]:
        """The parts of a bar from left to right; their widths are those of the shares, but none vanishes."""
        present = [number for number, _ in self.used if bar.counts[number]]
        widths = [max(_LEAST_WIDTH, 100 * bar.share(number)) for number in present]
        scale = 100 / (sum(widths) or 1)
        ends = list(accumulate((width * scale for width in widths), initial=0.0))
        return tuple(
            BarPart(self.categories[number], bar.counts[number], bar.share(number), start, end - start)
            for number, (start, end) in zip(present, pairwise(ends), strict=True)
        )

    @property
    def used(self) -> tuple[tuple[int, Category], ...]:
        """Categories that some bar has, with their numbers."""
        return tuple(
            (number, category)
            for number, category in enumerate(self.categories)
            if any(bar.counts[number] for bar in self.bars)
        )
