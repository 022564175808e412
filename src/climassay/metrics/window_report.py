"""How a calibration of the cloze window is shown: one table, one figure, every answer."""

from climassay.metrics.window_calibration import LEVEL, WindowCalibration
from climassay.reporting import Axis, LinePlot, Point, Report, Section, Series, Table
from climassay.statistics import Interval


def window_name(window: int | None) -> str:
    """A window in a table: a number of words, or the whole statement."""
    return "whole" if window is None else str(window)


def window_verdict(calibration: WindowCalibration) -> str:
    """What the calibration says, in sentences a reader can take away."""
    best = calibration.best
    words = (
        "the whole statement" if best.window is None else f"a window of {best.window} word{'s' * (best.window != 1)}"
    )
    among = (
        f"among the windows whose right answers keep a mean cosine of {calibration.floor:g}"
        if calibration.floor_kept
        else f"of all; no window keeps a mean cosine of {calibration.floor:g} for right answers"
    )
    verdict = (
        f"With {calibration.encoder}, {words} has the largest gap ({best.gap:.3f}, 95% interval "
        f"{_span(best.gap_interval)}) {among}. Resampled, it is chosen in {100 * best.chosen_share:.0f}% of the cases."
    )
    if best.gap_interval.low <= 0:
        verdict += (
            " The interval includes 0: these answers do not show that the encoder tells right from wrong ones, "
            "whatever the window."
        )
    return verdict


def window_table(calibration: WindowCalibration) -> Table:
    """One row a window: means, gap, AUROC."""
    rows = [
        (
            window_name(point.window),
            f"{point.right:.3f}",
            f"{point.wrong:.3f}",
            f"{point.gap:+.3f} ({_span(point.gap_interval, signed=True)})",
            f"{point.auroc:.2f} ({_span(point.auroc_interval, digits=2)})",
            "" if point.within is None else f"{100 * point.within:.0f}%",
            f"{100 * point.chosen_share:.0f}%",
        )
        for point in calibration.points
    ]
    return Table.of(
        f"Cosine of the phrases by window, {calibration.encoder}",
        (
            "words each side",
            "right answers",
            "wrong answers",
            "gap",
            "AUROC",
            "right above wrong,\nsame statement",
            "chosen when\nresampled",
        ),
        rows,
        note=f"{calibration.n_right} right and {calibration.n_wrong} wrong answers to {calibration.n_questions} "
        f"statements; {100 * LEVEL:.0f}% bootstrap intervals over statements ({calibration.resamples} resamples); "
        f"cosines before rescaling to 2 (cos - 0.5). {calibration.n_within} pairs of a right and a wrong answer share "
        "a statement. The chosen window is set off.",
        strong=[k for k, point in enumerate(calibration.points) if point.window == calibration.chosen],
    )


def window_figure(calibration: WindowCalibration) -> LinePlot:
    """Mean cosine of right and wrong answers against the window: Figure 4 of ClimaQA.

    The whole statement stands one step to the right of the largest window.
    """
    numbers = [point.window for point in calibration.points if point.window is not None]
    end = max(numbers, default=0) + 1
    places = [end if point.window is None else point.window for point in calibration.points]
    bands = [(point.right_interval, point.wrong_interval) for point in calibration.points]
    right = tuple(
        Point(x, point.right, *point.right_interval, note=f"{window_name(point.window)}: {point.right:.3f}")
        for x, point in zip(places, calibration.points, strict=True)
    )
    wrong = tuple(
        Point(x, point.wrong, *point.wrong_interval, note=f"{window_name(point.window)}: {point.wrong:.3f}")
        for x, point in zip(places, calibration.points, strict=True)
    )
    whole = any(point.window is None for point in calibration.points)
    return LinePlot(
        title="Right and wrong answers by window",
        series=(Series("right answers", right), Series("wrong answers", wrong)),
        x=Axis("words on each side of the gap", min(places) - 0.5, max(places) + 0.5, tuple(map(float, places))),
        y=Axis.over("mean cosine", [value for band in bands for interval in band for value in interval]),
        note="Bars are 95% intervals." + (f" At {end}: the whole statement." if whole else ""),
    )


def window_report(calibration: WindowCalibration, source: str) -> Report:
    """Verdict, figure, table, and every answer with its cosine in the chosen window.

    Args:
        calibration: What was measured.
        source: Where the answers came from, for the page's end.
    """
    place = next(k for k, point in enumerate(calibration.points) if point.window == calibration.chosen)
    order = sorted(range(len(calibration.answers)), key=lambda n: -calibration.cosines[place][n])
    answers = Table.of(
        f"Answers by cosine, window {window_name(calibration.chosen)}",
        ("statement", "reference", "answer", "label", "labelled by", "cosine"),
        [
            (
                one.statement,
                one.reference,
                one.answer,
                "right" if one.correct else "wrong",
                one.labelled_by,
                f"{calibration.cosines[place][n]:.3f}",
            )
            for n in order
            for one in (calibration.answers[n],)
        ],
        left=5,
    )
    return Report(
        title="Window of phrase similarity",
        lead=window_verdict(calibration),
        sections=(
            Section("Windows", (window_figure(calibration), window_table(calibration))),
            Section("Answers", (answers,)),
        ),
        facts=(("encoder", calibration.encoder), ("answers", source)),
    )


def _span(interval: Interval, *, digits: int = 3, signed: bool = False) -> str:
    form = f"{'+' if signed else ''}.{digits}f"
    return f"{interval.low:{form}} to {interval.high:{form}}"
