"""Judging in figures."""

from collections.abc import Sequence

import numpy as np

from climassay.judging.experiment import JudgeResult
from climassay.judging.report_tables import quality_name
from climassay.judging.training import Picture, TrainedProbe
from climassay.learning.evaluation import Calibration
from climassay.reporting import Axis, Cloud, Dot, DotPlot, LinePlot, Point, Prose, ScatterPlot, Series
from climassay.reporting.html import Block

MOST_POINTS = 1500
"""Points drawn in one picture; more only make the file large."""


def reliability_plot(title: str, curves: Sequence[tuple[str, Calibration]]) -> LinePlot:
    """Observed against predicted shares, with the diagonal on which honest probabilities lie."""
    axis_x, axis_y = (
        Axis(label, 0.0, 1.0, (0.0, 0.25, 0.5, 0.75, 1.0), percent=True)
        for label in ("predicted probability", "observed share")
    )
    series = [
        Series(
            name,
            tuple(
                Point(
                    bin_.confidence,
                    bin_.accuracy.value,
                    # Intervals of several curves would hide each other.
                    bin_.accuracy.interval.low if len(curves) == 1 else None,
                    bin_.accuracy.interval.high if len(curves) == 1 else None,
                    f"{bin_.accuracy.n} predictions",
                )
                for bin_ in known.curve
            ),
        )
        for name, known in curves
    ]
    briers = "; ".join(
        f"{name}: Brier score {known.brier:.3f} (constant {known.brier_constant:.3f}), calibration error "
        f"{known.expected_calibration_error:.3f}"
        for name, known in curves
    )
    diagonal = Series("perfectly calibrated", (Point(0, 0), Point(1, 1)), reference=True)
    return LinePlot(title, (*series, diagonal), axis_x, axis_y, note=f"{briers}.", square=True)


def picture_blocks(picture: Picture, quality: str) -> tuple[Block, ...]:
    """Contrast differences on their principal components, from two sides (thesis, Figure C.1)."""
    lead = (
        "Each point is one ordered pair of training items: the difference between the model's state after the answer "
        "that names the first item and after the one that names the second, on its first principal components. Labels "
        "did not make the components; they only decide that right on component 1 speaks for the first item."
    )
    others = range(1, picture.coordinates.shape[1])
    return (Prose(lead), *(_scatter(picture, other, quality) for other in others))


def _scatter(picture: Picture, other: int, quality: str) -> ScatterPlot:
    points = picture.coordinates
    chosen = np.arange(len(points))
    if len(points) > MOST_POINTS:
        chosen = np.sort(np.random.default_rng(0).permutation(len(points))[:MOST_POINTS])
    shown = points[chosen][:, [0, other]]
    kinds = ((1, f"first has more {quality}"), (-1, f"second has more {quality}"), (0, "equal labels"))
    clouds = [
        Cloud(name, tuple((float(x), float(y)) for x, y in shown[picture.truth[chosen] == sign].round(4)))
        for sign, name in kinds
    ]
    axes = [
        Axis.over(f"component {number + 1} ({picture.explained[number]:.0%} of the variance)", values.tolist())
        for number, values in zip((0, other), shown.T, strict=True)
    ]
    drawn = "" if len(chosen) == len(points) else f"{len(chosen)} of {len(points)} pairs, drawn at random."
    return ScatterPlot(
        f"Components 1 and {other + 1}", tuple(cloud for cloud in clouds if cloud.points), axes[0], axes[1], note=drawn
    )


def path_plot(trained: TrainedProbe) -> LinePlot:
    """Held-out loss for each regularisation; the probe must have been fitted with a choice of them."""
    assert trained.path is not None
    points = tuple(Point(c, loss) for c, loss in zip(trained.path.values, trained.path.losses, strict=True))
    decades = [c for c in trained.path.values if abs(np.log10(c) - round(np.log10(c))) < 1e-6] or trained.path.values
    reach = (min(trained.path.values), max(trained.path.values))
    x = Axis("regularisation C (larger: looser)", reach[0] / 1.5, reach[1] * 1.5, tuple(decades), logarithmic=True)
    y = Axis.over("held-out log-loss (nats)", [0.0, *(min(loss, 3.0) for loss in trained.path.losses)])
    capped = tuple(Point(p.x, min(p.y, 3.0)) for p in points)
    guess = Series("a coin", (Point(reach[0], float(np.log(2))), Point(reach[1], float(np.log(2)))), reference=True)
    note = f"Chosen: C = {trained.path.chosen:g}."
    return LinePlot("Choice of the regularisation", (Series("probe", capped), guess), x, y, note=note)


def agreement_plots(results: Sequence[JudgeResult]) -> list[Block]:
    """Accuracy on differing pairs with intervals, one figure for each quality."""
    plots: list[Block] = []
    for quality in dict.fromkeys(quality_name(result) for result in results):
        dots = [
            Dot(result.scores.method, result.scores.method, ours.value, ours.low, ours.high, longer.value)
            for result in results
            if quality_name(result) == quality
            and (ours := result.scores.agreement.accuracy_differing).value is not None
            and ours.low is not None
            and ours.high is not None
            and (longer := result.scores.baselines["longer"].accuracy_differing)
        ]
        if dots:
            note = "Dots: accuracy on pairs that differ. Bars: 95% interval. Dashed tick: 'the longer text is better'."
            plots.append(DotPlot(quality.capitalize(), tuple(dots), note=note))
    return plots


def learning_plots(results: Sequence[JudgeResult]) -> list[Block]:
    """Accuracy against labelled items, one figure for each quality that has learning curves."""
    plots: list[Block] = []
    for quality in dict.fromkeys(quality_name(result) for result in results):
        ours = [result for result in results if quality_name(result) == quality and result.scores.learning_curve]
        if not ours:
            continue
        series = [
            Series(
                result.scores.method,
                tuple(
                    Point(point.items, figure.value, figure.low, figure.high)
                    for point in result.scores.learning_curve
                    if (figure := point.accuracy_differing).value is not None
                ),
            )
            for result in ours
        ]
        x = Axis.at("labelled items", [point.x for one in series for point in one.points])
        longer = ours[0].scores.baselines["longer"].accuracy_differing.value
        if longer is not None:
            line = (Point(x.ticks[0], longer), Point(x.ticks[-1], longer))
            series.append(Series("longer text", line, reference=True))
        values = [v for one in series for p in one.points for v in (p.y, p.low, p.high) if v is not None]
        y = Axis.over("accuracy on pairs that differ", values, percent=True)
        plots.append(LinePlot(f"Learning curve, {quality}", tuple(series), x, y))
    return plots


def reliability_plots(results: Sequence[JudgeResult]) -> list[Block]:
    """Reliability curves, one figure for each quality."""
    plots: list[Block] = []
    for quality in dict.fromkeys(quality_name(result) for result in results):
        curves = [
            (result.scores.method, result.scores.calibration)
            for result in results
            if quality_name(result) == quality and result.scores.calibration is not None
        ]
        if curves:
            plots.append(reliability_plot(f"Reliability, {quality}", curves))
    return plots
