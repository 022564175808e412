"""Figures as SVG files of their own, for papers and slides.

Reports draw figures inline, so that they follow the page's colours; here the same drawings carry a light style, their
title and their legend with them. Heat maps and stacked bars, which are HTML in reports, are drawn anew.
"""

from climassay.reporting.figures import DotPlot, HeatMap, LinePlot, ScatterPlot, StackedBars
from climassay.reporting.html import render_page

Figure = DotPlot | LinePlot | ScatterPlot | HeatMap | StackedBars
FIGURES = (DotPlot, LinePlot, ScatterPlot, HeatMap, StackedBars)


def as_svg(figure: Figure) -> str:
    """A figure as a whole SVG document with its title, its legend and its style."""
    return render_page("figure.svg.j2", figure=figure, kind=type(figure).__name__, shades=_shades(figure))


def _shades(figure: Figure) -> dict[str, str]:
    """Fill of categories and specks by name; programs other than browsers cannot mix colours themselves."""
    if isinstance(figure, ScatterPlot):
        return {cloud.name: _tone(cloud.place, _DEEP) for cloud in figure.clouds} if figure.small else {}
    if not isinstance(figure, StackedBars):
        return {}
    return {
        category.name: "url(#hatching)" if category.hatched else _tone(category.place) for _, category in figure.used
    }


_WRONG, _MIDDLE, _RIGHT, _OUTSIDE = (227, 139, 116), (240, 223, 166), (127, 186, 210), "#c3ccd4"
"""As ``--wrong``, ``--middle``, ``--right`` and ``--outside`` of the reports' style."""


_DEEP = ((178, 24, 43), (220, 168, 0), (18, 63, 158))
"""The same for small points, as ``--least``, ``--mid`` and ``--most``: pale ones could not be seen, and five levels
must be told apart by readers who see no red and green, too."""
_PALE = (_WRONG, _MIDDLE, _RIGHT)


def _tone(place: float | None, colours: tuple[tuple[int, int, int], ...] = _PALE) -> str:
    if place is None:
        return _OUTSIDE
    first, middle, last = colours
    low, high, share = (first, middle, 2 * place) if place <= 0.5 else (middle, last, 2 * place - 1)
    mixed = (round(a + (b - a) * share) for a, b in zip(low, high, strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)
