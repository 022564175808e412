"""Figures, which templates draw as inline SVG in the page's colours and width."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TypeVar

from climassay.reporting.tables import Column, Table, counted

T = TypeVar("T")

_N_DRAWING_PASSES = 8
"""Number of passes in which the clouds of a scatter plot are drawn. Each pass draws some points of every cloud, so that
no cloud covers the others."""
_CHARACTER_WIDTH, _LINE_HEIGHT = 5.8, 14.0
"""Average width of a character and height of a line of a label, in SVG units."""
_MIN_PART_WIDTH = 0.4
"""Minimum width of a part of a stacked bar in per cent of the bar, about two pixels in a wide window."""


@dataclass(frozen=True, slots=True)
class Dot:
    """Estimate with its interval in a dot plot."""

    label: str
    group: str
    """Name of the group, which determines the colour."""
    value: float
    low: float
    high: float
    reference: float | None = None
    """Value of a constant baseline, which is drawn as a tick; None for no baseline."""


@dataclass(frozen=True, slots=True)
class Axis:
    """Linear or logarithmic axis of a plot."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    percent: bool = False
    """Format values as percentages: 0.5 as 50%."""
    logarithmic: bool = False

    @classmethod
    def over(cls, label: str, values: Sequence[float], *, percent: bool = False, max_ticks: int = 6) -> "Axis":
        """Return a linear axis with round ticks that covers the values.

        If all values are equal, it is centred on them.
        """
        low, high = (min(values), max(values)) if values else (0.0, 1.0)
        if high - low < 1e-9 * max(1.0, abs(low), abs(high)):
            low, high = low - 0.5, high + 0.5
        # The smallest step of 1, 2, 2.5 or 5 times a power of ten that needs at most max_ticks ticks.
        min_step = (high - low) / (max_ticks - 1)
        power = 10.0 ** math.floor(math.log10(min_step))
        step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= min_step * (1 - 1e-9))
        first_index, last_index = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        ticks = tuple(round(index * step, 12) for index in range(first_index, last_index + 1))
        return cls(label, ticks[0], ticks[-1], ticks, percent)

    @classmethod
    def shares(cls, label: str, *, percent: bool = True) -> "Axis":
        """Return an axis for proportions from 0 to 1, by default formatted as 0% to 100%."""
        return cls(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=percent)

    @classmethod
    def logarithmic_at(cls, label: str, ticks: Sequence[float]) -> "Axis":
        """Return a logarithmic axis with ticks at these positive values."""
        sorted_ticks = tuple(sorted(set(ticks)))
        margin = 1.15 if sorted_ticks[0] < sorted_ticks[-1] else 2.0
        return cls(label, sorted_ticks[0] / margin, sorted_ticks[-1] * margin, sorted_ticks, logarithmic=True)

    def share(self, value: float) -> float:
        """Return the relative position of a value on the axis, from 0 (low end) to 1 (high end)."""
        if self.logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)

    @property
    def omits_zero(self) -> bool:
        """Whether the axis is linear and does not contain 0."""
        return bool(self.ticks) and not self.logarithmic and not self.low <= 0 <= self.high

    @property
    def caption(self) -> str:
        """Label of the axis, with a remark if the axis is logarithmic or does not contain 0."""
        if self.logarithmic:
            return f"{self.label} (logarithmic)"
        if self.omits_zero:
            limit = (
                f"starts at {self.format_value(self.ticks[0])}"
                if self.low > 0
                else f"ends at {self.format_value(self.ticks[-1])}"
            )
            return f"{self.label} (scale {limit}, not at 0)"
        return self.label

    def format_exactly(self, value: float) -> str:
        """Format a data value as a percentage with one decimal, or with three significant digits."""
        text = f"{100 * value:.1f}%" if self.percent else f"{value:.3g}"
        return text.replace("-", "\N{MINUS SIGN}")

    def format_value(self, value: float) -> str:
        """Format the value of a tick."""
        if not self.percent:
            return f"{value:g}".replace("-", "\N{MINUS SIGN}")
        steps = [abs(second - first) for first, second in pairwise(self.ticks)]
        # Ticks half a per cent apart need a decimal, or two of them would look the same.
        decimals = max(0, math.ceil(-math.log10(100 * min(steps)) - 1e-9)) if steps else 0
        return f"{100 * value:.{decimals}f}%"


@dataclass(frozen=True, slots=True)
class DotPlot:
    """Plot of estimates on one axis, with intervals and baselines."""

    title: str
    dots: tuple[Dot, ...]
    axis: str = "accuracy"
    note: str = ""
    scale: Axis | None = None
    """Axis of the values; by default from 0% to 100%."""
    has_shared_rows: bool = False
    """Whether dots with the same label share a row; a legend then names the groups."""
    order: tuple[str, ...] = ()
    """Names of groups in the order of their colours. Groups without dots can be included, so that a group has the same
    colour in several plots; groups that are not listed follow. If not empty, a legend names the groups."""
    decimals: int = 2
    """Number of decimals shown for values that are not percentages."""

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups that have dots, in the order of their colours."""
        group_names = dict.fromkeys(dot.group for dot in self.dots)
        return tuple(dict.fromkeys((*(name for name in self.order if name in group_names), *group_names)))

    @property
    def colours(self) -> dict[str, int]:
        """Index of the colour by group."""
        return {name: index for index, name in enumerate(dict.fromkeys((*self.order, *self.groups)))}

    @property
    def has_legend(self) -> bool:
        """Whether the plot has a legend of the groups."""
        return self.has_shared_rows or bool(self.order)

    @property
    def value_axis(self) -> Axis:
        """Axis of the values, by default from 0% to 100%."""
        return self.scale or Axis.shares(self.axis)

    @property
    def rows(self) -> tuple[tuple[str, tuple[Dot, ...]], ...]:
        """Label and dots of each row, from top to bottom."""
        if not self.has_shared_rows:
            return tuple((dot.label, (dot,)) for dot in self.dots)
        labels = dict.fromkeys(dot.label for dot in self.dots)
        return tuple((label, tuple(dot for dot in self.dots if dot.label == label)) for label in labels)

    @property
    def row_height(self) -> int:
        """Height of a row in SVG units; dots that share a row are drawn below each other."""
        return max(26, 18 * len(self.groups) + 8) if self.has_shared_rows else 26

    def row_offset(self, dot: Dot) -> float:
        """Return the vertical offset of a dot from the middle of its row, in SVG units."""
        return 18 * (self.groups.index(dot.group) - (len(self.groups) - 1) / 2) if self.has_shared_rows else 0.0

    def format_value(self, value: float) -> str:
        """Format the value of a dot."""
        if self.value_axis.percent:
            return f"{100 * value:.1f}%"
        return f"{round(value, self.decimals) + 0.0:.{self.decimals}f}".replace("-", "\N{MINUS SIGN}")

    def interval(self, dot: Dot) -> str:
        """Return a dot's interval in brackets."""
        return f"[{self.format_value(dot.low).rstrip('%')}, {self.format_value(dot.high).rstrip('%')}]"

    @property
    def label_width(self) -> int:
        """Approximate width of the longest label in SVG units."""
        return 24 + round(6.6 * max((len(dot.label) for dot in self.dots), default=0))


def thin_points(points: Sequence[T]) -> list[T]:
    """Return at most 25 evenly spaced points of a curve, including the first and the last."""
    step = max(1.0, (len(points) - 1) / 24)
    return [points[round(index * step)] for index in range(min(len(points), 25))]


@dataclass(frozen=True, slots=True)
class Point:
    """Point of a line, optionally with an interval of its y value."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None
    note: str = ""
    """Text shown when the pointer is over the point."""


@dataclass(frozen=True, slots=True)
class Series:
    """Named series of points that are connected by a line."""

    name: str
    points: tuple[Point, ...]
    reference: bool = False
    """Whether the series is a baseline or a diagonal, which is drawn as a dashed line without points."""


@dataclass(frozen=True, slots=True)
class LinePlot:
    """Plot of lines with intervals, for example a learning curve with its baseline, or a reliability curve."""

    title: str
    series: tuple[Series, ...]
    x: Axis
    y: Axis
    note: str = ""
    square: bool = False
    """Whether the plot is nearly as high as wide, for axes with the same range."""

    @property
    def description(self) -> str:
        """Text alternative of the figure, without the values, which are in the table."""
        names = [series.name for series in self.series if not series.reference]
        return (
            f"{self.y.caption} against {self.x.caption}. Lines: {', '.join(names)}. The values stand in a table below."
        )

    @property
    def table(self) -> Table:
        """Table of the points of all series, including references."""
        rows = [
            (
                series.name,
                self.x.format_exactly(point.x),
                self.y.format_exactly(point.y),
                self.interval(point) or "-",
                point.note or "-",
            )
            for series in self.series
            for point in series.points
        ]
        indices = [index for index in range(5) if index < 3 or any(row[index] != "-" for row in rows)]
        headings = ("line", self.x.label, self.y.label, "95% interval", "what")
        return Table(
            self.title,
            tuple(Column(headings[index], "left" if index in (0, 4) else "right") for index in indices),
            tuple(tuple(row[index] for index in indices) for row in rows),
        )

    def interval(self, point: Point) -> str:
        """Return the interval of a point in brackets; empty if the point has none."""
        if point.low is None or point.high is None:
            return ""
        return f"[{self.y.format_exactly(point.low).rstrip('%')}, {self.y.format_exactly(point.high).rstrip('%')}]"

    @property
    def height(self) -> int:
        """Height of the frame in units of the drawing."""
        return 360 if self.square else 270

    @property
    def styles(self) -> dict[str, int]:
        """Index of each series' colour, or of its dash pattern if it is a reference."""
        groups = ([series.name for series in self.series if series.reference is flag] for flag in (False, True))
        return {name: index for names in groups for index, name in enumerate(names)}


@dataclass(frozen=True, slots=True)
class Cloud:
    """Named group of points in a scatter plot."""

    name: str
    points: tuple[tuple[float, float], ...]
    position: float | None = None
    """Position on a colour scale from 0 to 1, which determines the colour of small points; None for grey."""


@dataclass(frozen=True, slots=True)
class PointLabel:
    """Text to be shown at a position in a scatter plot."""

    x: float
    y: float
    text: str


@dataclass(frozen=True, slots=True)
class ScatterPlot:
    """Scatter plot of clouds of points, which differ in colour and, unless points are small, in shape."""

    title: str
    clouds: tuple[Cloud, ...]
    x: Axis
    y: Axis
    note: str = ""
    small: bool = False
    """Whether points are small and coloured by the positions of their clouds, for plots of thousands of points."""
    wide: bool = False
    """Whether the plot is drawn larger than usual, for many points."""
    labels: tuple[PointLabel, ...] = ()
    """Labels, most important first; a label that would overlap an earlier label is left out."""

    @property
    def height(self) -> int:
        """Height of the frame in units of the drawing."""
        return 500 if self.wide else 360

    @property
    def has_large_points(self) -> bool:
        """Whether small points are drawn twice as large, because there are few."""
        return sum(len(cloud.points) for cloud in self.clouds) <= 2000

    def point_paths(self, width: float) -> list[tuple[Cloud, str]]:
        """Return SVG paths that draw the points as zero-length lines with round caps.

        The points of each cloud are divided among several paths, which alternate with those of other clouds, so that no
        cloud covers all others.

        Returns:
            Pairs of a cloud and a path, in drawing order, for a frame of the given width in SVG units.
        """

        def path(points: Sequence[tuple[float, float]]) -> str:
            return "".join(
                f"M{width * self.x.share(x):.1f} {self.height * (1 - self.y.share(y)):.1f}h0" for x, y in points
            )

        passes = (
            (cloud, cloud.points[pass_index::_N_DRAWING_PASSES])
            for pass_index in range(_N_DRAWING_PASSES)
            for cloud in self.clouds
        )
        return [(cloud, path(points)) for cloud, points in passes if points]

    def placed_labels(self, width: float) -> list[PointLabel]:
        """Return the labels that fit into a frame of the given width, with their coordinates; both in SVG units."""
        placed_labels: list[tuple[PointLabel, float]] = []
        for label in self.labels:
            half_width = _CHARACTER_WIDTH * len(label.text) / 2
            x = min(max(width * self.x.share(label.x), half_width), width - half_width)
            y = self.height * (1 - self.y.share(label.y))
            for shifted_y in (y, y - _LINE_HEIGHT, y + _LINE_HEIGHT):
                is_free = all(
                    abs(shifted_y - other_label.y) >= _LINE_HEIGHT
                    or abs(x - other_label.x) >= half_width + other_half_width
                    for other_label, other_half_width in placed_labels
                )
                if is_free and 2 * half_width <= width and _LINE_HEIGHT <= shifted_y <= self.height:
                    placed_labels.append((PointLabel(round(x, 1), round(shifted_y, 1), label.text), half_width))
                    break
        return [label for label, _ in placed_labels]

    @property
    def description(self) -> str:
        """Text alternative of the figure, with the mean of each cloud and the labels."""
        parts = []
        for cloud in self.clouds:
            mean_coordinates = ", ".join(
                f"{sum(values) / len(values):.3g}" for values in zip(*cloud.points, strict=True)
            )
            parts.append(
                f"{cloud.name}: {counted(len(cloud.points), 'point')}"
                + (f" around {mean_coordinates}" if mean_coordinates else "")
            )
        label_texts = ", ".join(label.text for label in self.labels)
        return f"{self.y.label} against {self.x.label}. {'; '.join(parts)}." + (
            f" Named: {label_texts}." if label_texts else ""
        )


@dataclass(frozen=True, slots=True)
class HeatMap:
    """Grid of counts, for example a confusion matrix."""

    title: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    """Counts, shape [rows, columns]."""
    row_axis: str
    column_axis: str
    note: str = ""

    def shade(self, row: int, column: int) -> int:
        """Return the count of a cell as a percentage of its row's total; it determines the cell's colour."""
        return round(100 * self.counts[row][column] / (sum(self.counts[row]) or 1))

    def is_agreement(self, row: int, column: int) -> bool:
        """Return whether a cell's row and column have the same name."""
        return self.rows[row] == self.columns[column]

    @property
    def description(self) -> str:
        """Text alternative of the figure."""
        total = sum(map(sum, self.counts))
        n_agreements = sum(
            count
            for row, cells in enumerate(self.counts)
            for column, count in enumerate(cells)
            if self.is_agreement(row, column)
        )
        axes = f"Rows: {self.row_axis}. Columns: {self.column_axis}."
        if not set(self.rows) & set(self.columns):
            return f"{axes} {total} in all."
        return f"{axes} {n_agreements} of {total} are the same in both (outlined)."


@dataclass(frozen=True, slots=True)
class Category:
    """Category in a plot of stacked bars."""

    name: str
    position: float | None = None
    """Position on a colour scale from 0 to 1; None for grey."""
    hatched: bool = False
    """Whether the parts are hatched, to distinguish two grey categories."""


@dataclass(frozen=True, slots=True)
class StackedBar:
    """Stacked bar that shows how cases are distributed over categories."""

    label: str
    counts: tuple[int, ...]
    """Number of cases in each category."""

    @property
    def total(self) -> int:
        """Number of cases in all categories."""
        return sum(self.counts)

    def share(self, category: int) -> float:
        """Return the proportion of cases in the category with the given index; 0 if there are no cases."""
        return self.counts[category] / self.total if self.total else 0.0


@dataclass(frozen=True, slots=True)
class BarPart:
    """Part of a stacked bar as it is drawn."""

    category: Category
    count: int
    share: float
    """Proportion of the bar's cases that are in the category."""
    start: float
    """Left end in per cent of the bar's length."""
    width: float
    """Width in per cent of the bar's length; parts that would be too narrow to see are widened."""


@dataclass(frozen=True, slots=True)
class StackedBars:
    """Plot of distributions over categories as stacked bars of equal length."""

    title: str
    categories: tuple[Category, ...]
    bars: tuple[StackedBar, ...]
    note: str = ""

    def description(self, bar: StackedBar) -> str:
        """Return the text alternative of a bar, with its counts and percentages."""
        parts = [
            f"{category.name} {count} ({100 * bar.share(index):.0f}%)"
            for index, (category, count) in enumerate(zip(self.categories, bar.counts, strict=True))
            if count
        ]
        return f"{bar.label}: " + (", ".join(parts) or "no cases")

    @property
    def table(self) -> Table:
        """Table of counts and percentages, with a row per bar."""
        headings = ["", "n", *(category.name for _, category in self.used_categories)]
        rows = [
            (
                bar.label,
                str(bar.total),
                *(f"{bar.counts[index]} ({100 * bar.share(index):.0f}%)" for index, _ in self.used_categories),
            )
            for bar in self.bars
        ]
        return Table.of(self.title, headings, rows)

    def parts(self, bar: StackedBar) -> tuple[BarPart, ...]:
        """Return the parts of a bar from left to right; parts of empty categories are left out."""
        indices = [index for index, _ in self.used_categories if bar.counts[index]]
        widths = [max(_MIN_PART_WIDTH, 100 * bar.share(index)) for index in indices]
        scale = 100 / (sum(widths) or 1)
        ends = list(accumulate((width * scale for width in widths), initial=0.0))
        return tuple(
            BarPart(self.categories[index], bar.counts[index], bar.share(index), start, end - start)
            for index, (start, end) in zip(indices, pairwise(ends), strict=True)
        )

    @property
    def used_categories(self) -> tuple[tuple[int, Category], ...]:
        """Index and category of each category that has cases in any bar."""
        return tuple(
            (index, category)
            for index, category in enumerate(self.categories)
            if any(bar.counts[index] for bar in self.bars)
        )
