"""Figures drawn as inline SVG, so that they follow the page's colours, its width and its printer."""

from dataclasses import dataclass


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
class DotPlot:
    """Estimates on one axis from 0 to 1, with intervals and baselines."""

    title: str
    dots: tuple[Dot, ...]
    axis: str = "accuracy"
    note: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """Group names in order of first appearance."""
        return tuple(dict.fromkeys(dot.group for dot in self.dots))

    @property
    def label_width(self) -> int:
        """Room for the longest label, in units of the drawing (about 6.6 a character at its font size)."""
        return 24 + round(6.6 * max((len(dot.label) for dot in self.dots), default=0))
