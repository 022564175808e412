"""The figures of an experiment, in the shape of the paper's Figures 5 and 6, and settings side by side."""

from collections import Counter
from collections.abc import Sequence

from climassay.evaluation.experiment_scores import OVERALL, ExperimentScores, Score
from climassay.evaluation.outcome import METRICS, Metric
from climassay.questions import KINDS, LEVELS, Kind, Question
from climassay.reporting import Axis, Category, Dot, DotPlot, LinePlot, Point, Series, StackedBar, StackedBars

_LINES = 5
"""As many colours as a figure has."""
_SPREAD = 0.24
"""How far apart the models of one level stand, so that their intervals do not hide each other."""


def level_figures(scores: ExperimentScores, benchmark: str, setting: str | None = None) -> list[LinePlot]:
    """Models by level, one figure a metric (the paper's Figure 5).

    Args:
        scores: Of the experiment.
        benchmark: Whose questions.
        setting: The one shown; by default the first of the experiment.

    Returns:
        Figures of at most five models each; none where questions have no levels.
    """
    ours = [score for score in scores.scores if score.cell.benchmark == benchmark]
    shown = setting or next((score.cell.setting for score in ours), "")
    figures = []
    for metric in METRICS.values():
        chosen = [s for s in ours if s.metric == metric.name and s.cell.setting == shown and s.level in LEVELS]
        models = list(dict.fromkeys(score.cell.model for score in chosen))
        levels = [level for level in LEVELS if any(score.level == level for score in chosen)]
        if metric.published and len(levels) > 1:
            figures += [
                _level_plot(metric, shown, levels, models[start : start + _LINES], chosen)
                for start in range(0, len(models), _LINES)
            ]
    return figures


def _level_plot(
    metric: Metric, setting: str, levels: Sequence[str], models: Sequence[str], scores: Sequence[Score]
) -> LinePlot:
    lines = tuple(
        Series(
            model,
            tuple(
                Point(
                    levels.index(score.level) + (_SPREAD * (place / (len(models) - 1) - 0.5) if len(models) > 1 else 0),
                    score.estimate.value,
                    *score.estimate.interval,
                    f"{model}, {score.level}, n = {score.estimate.n}",
                )
                for score in scores
                if score.cell.model == model
            ),
        )
        for place, model in enumerate(models)
    )
    ends = [value for line in lines for point in line.points for value in (point.low, point.high) if value is not None]
    places = tuple(float(place) for place in range(len(levels)))
    return LinePlot(
        f"{metric.label[0].upper()}{metric.label[1:]} by level, setting {setting}",
        lines,
        Axis("level", -0.5, len(levels) - 0.5, places, names=tuple(levels)),
        Axis.over(metric.label, ends, percent=metric.binary),
        note="Bars: 95% interval. Models of one level stand side by side.",
        square=True,
    )


def setting_figures(scores: ExperimentScores, benchmark: str) -> list[DotPlot]:
    """All models and settings with their intervals, one forest plot a published metric, over all levels."""
    constants = {
        constant.metric: constant.value
        for constant in scores.constants
        if constant.benchmark == benchmark and constant.level == OVERALL
    }
    figures = []
    for metric in METRICS.values():
        chosen = [
            score
            for score in scores.scores
            if score.cell.benchmark == benchmark and score.metric == metric.name and score.level == OVERALL
        ]
        if metric.published and chosen:
            dots = tuple(_dot(score, constants.get(metric.name)) for score in chosen)
            note = "Dots: mean over questions. Bars: 95% interval."
            if metric.name in constants:
                note += " Dashed tick: the best constant answer."
            figures.append(DotPlot(f"{metric.label[0].upper()}{metric.label[1:]}", dots, metric.label, note))
    return figures


def _dot(score: Score, constant: float | None) -> Dot:
    low, high = score.estimate.interval
    # The axis goes from 0 to 1; phrase similarity can fall below 0, where nothing is drawn.
    value, low, high = (min(1.0, max(0.0, end)) for end in (score.estimate.value, low, high))
    return Dot(f"{score.cell.model}, {score.cell.setting}", score.cell.model, value, low, high, constant)


def source_figure(questions: Sequence[Question], title: str) -> StackedBars | None:
    """Questions over the books they were made from, parted by task (the paper's Figure 6).

    Returns:
        None where no question says where it comes from.
    """
    tasks: tuple[Kind, ...] = KINDS
    counts: Counter[tuple[str | None, Kind]] = Counter((question.document, question.kind) for question in questions)
    books = list(dict.fromkeys(question.document for question in questions))
    if books in ([], [None]):
        return None
    named = sorted((book for book in books if book), key=lambda book: -sum(counts[book, task] for task in tasks))
    bars = [StackedBar(book, tuple(counts[book, task] for task in tasks)) for book in named]
    if None in books:
        bars.append(StackedBar("source not named", tuple(counts[None, task] for task in tasks)))
    # The blue half of the scale: the red half means wrong elsewhere.
    places = (1.0, 0.75, 0.5)
    return StackedBars(
        title,
        tuple(Category(task, place) for task, place in zip(tasks, places, strict=True)),
        tuple(bars),
        note="Each bar is one source; its parts are the shares of the tasks, with the number of questions.",
    )
