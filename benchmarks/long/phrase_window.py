"""Which window around a cloze gap tells right answers from wrong ones best (ClimaQA, Figure 4).

python benchmarks/long/phrase_window.py [ANSWERS.csv] [--encoder local:minilm] [--html window.html]
"""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.io import Row, parse_rows, read_bytes
from climassay.metrics.cloze import exact_match, phrase_cosines, phrases, sentence_encoder
from climassay.models.contract import Encoder
from climassay.questions import Question
from climassay.reporting import Axis, LinePlot, Point, Report, Section, Series, Table, as_markdown
from climassay.statistics import Interval, percentile_interval

WINDOWS: tuple[int | None, ...] = (*range(1, 11), None)
"""Words on each side of the gap; None is the whole statement."""
FLOOR = 0.75
"""Mean cosine that right answers must keep for a window to be chosen: a phrase similarity of 0.5."""
LEVEL = 0.95

_TRUE = ("true", "1", "yes", "right", "correct")
_FALSE = ("false", "0", "no", "wrong", "incorrect")


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """An answer to a cloze statement that differs from the reference, judged right or wrong by people."""

    question: str
    """Id of the statement; answers to one statement are resampled together."""
    statement: str
    reference: str
    answer: str
    correct: bool
    labelled_by: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class WindowPoint:
    """How right and wrong answers score with one window; cosines before rescaling, -1 to 1."""

    window: int | None
    right: float
    right_interval: Interval
    wrong: float
    wrong_interval: Interval
    gap: float
    gap_interval: Interval
    auroc: float
    """Probability that a right answer has a higher cosine than a wrong one, equal ones counting half; 0.5 is chance."""
    auroc_interval: Interval
    within: float | None
    """AUROC among the answers to one statement, :attr:`WindowCalibration.n_within` pairs; None without pairs."""
    chosen_share: float
    """Share of the resamples in which this window would have been chosen."""


@dataclass(frozen=True, slots=True)
class WindowCalibration:
    """Figure 4 of ClimaQA for an encoder and a set of labelled answers."""

    encoder: str
    points: tuple[WindowPoint, ...]
    chosen: int | None
    """The window with the largest gap among those whose right answers keep :attr:`floor`; the smaller one of equals."""
    floor: float
    floor_kept: bool
    """False where no window keeps the floor; the largest gap of all then decides."""
    n_right: int
    n_wrong: int
    n_questions: int
    n_within: int
    """Pairs of a right and a wrong answer to one statement."""
    resamples: int
    answers: tuple[LabelledAnswer, ...] = field(repr=False)
    cosines: tuple[tuple[float, ...], ...] = field(repr=False)
    """One tuple per window, one cosine per answer."""

    @property
    def best(self) -> WindowPoint:
        """The chosen window's point."""
        return next(point for point in self.points if point.window == self.chosen)


def calibrate_window(
    answers: Sequence[LabelledAnswer],
    encoder: Encoder | str | None = None,
    *,
    windows: Sequence[int | None] = WINDOWS,
    floor: float = FLOOR,
    resamples: int = 2000,
    seed: int = 0,
) -> WindowCalibration:
    """Mean cosine of right and of wrong answers for each window, their gap, and the window to take.

    The paper takes the window with the largest difference "while maintaining sufficiently high scores for correct
    answers"; here that is a mean cosine of at least ``floor``. Intervals are percentile bootstraps over statements.

    Args:
        answers: Right and wrong ones, all different from their references; at least two statements with each.
        encoder: An encoder or its name, ``local:minilm`` by default.
        windows: Words on each side of the gap; None is the whole statement.
        floor: Least mean cosine of right answers.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.

    Raises:
        InputError: Too few answers, an answer that equals its reference, or a statement without exactly one gap.

    Notes:
        An answer that equals its reference has cosine 1 by definition and says nothing about a window; the paper, too,
        takes only the 32 of 219 answers that differ. With some tens of answers the intervals of the gaps overlap:
        :attr:`WindowPoint.chosen_share` says how much of the choice is chance.

    References:
        ClimaQA, section 3.2.2 and Figure 4.
    """
    _check(answers)
    if not windows:
        raise InputError("A calibration needs at least one window.")
    model = sentence_encoder(encoder)
    cosines = np.array(
        [
            phrase_cosines([phrases(one.statement, one.reference, one.answer, window) for one in answers], model)
            for window in windows
        ]
    )
    correct = np.array([one.correct for one in answers])
    questions = list(dict.fromkeys(one.question for one in answers))
    groups = np.array([questions.index(one.question) for one in answers])
    generator, size = np.random.default_rng(seed), len(questions)
    drawn: list[NDArray[np.float64]] = []
    while len(drawn) < resamples:
        # How often each answer is in a resample; one without any right or any wrong answer has no gap.
        often = np.bincount(generator.integers(0, size, size), minlength=size).astype(np.float64)[groups]
        if often[correct].any() and often[~correct].any():
            drawn.append(often)
    weights = np.array(drawn)
    everything = np.ones((1, len(answers)))
    right, wrong = _means(cosines, weights * correct), _means(cosines, weights * ~correct)
    point_right, point_wrong = _means(cosines, everything * correct)[0], _means(cosines, everything * ~correct)[0]
    aurocs, point_aurocs = _aurocs(cosines, correct, weights), _aurocs(cosines, correct, everything)[0]
    chosen = _choose(point_right[None], point_wrong[None], floor)[0]
    shares = np.bincount(_choose(right, wrong, floor), minlength=len(windows)) / len(weights)
    together = groups[correct][:, None] == groups[~correct][None]
    within = [_above(row, correct)[together] for row in cosines]
    points = tuple(
        WindowPoint(
            window=window,
            right=float(point_right[k]),
            right_interval=percentile_interval(right[:, k]),
            wrong=float(point_wrong[k]),
            wrong_interval=percentile_interval(wrong[:, k]),
            gap=float(point_right[k] - point_wrong[k]),
            gap_interval=percentile_interval(right[:, k] - wrong[:, k]),
            auroc=float(point_aurocs[k]),
            auroc_interval=percentile_interval(aurocs[:, k]),
            within=float(within[k].mean()) if together.any() else None,
            chosen_share=float(shares[k]),
        )
        for k, window in enumerate(windows)
    )
    return WindowCalibration(
        encoder=model.name,
        points=points,
        chosen=windows[chosen],
        floor=floor,
        floor_kept=bool((point_right >= floor).any()),
        n_right=int(correct.sum()),
        n_wrong=int((~correct).sum()),
        n_questions=len(questions),
        n_within=int(together.sum()),
        resamples=len(weights),
        answers=tuple(answers),
        cosines=tuple(tuple(map(float, row)) for row in cosines),
    )


def primer_answers() -> tuple[LabelledAnswer, ...]:
    """20 right and 20 wrong answers to cloze statements of the primer, labelled by the authors of climassay.

    They were written and labelled before they were scored in these statements. They are not experts' judgements: of a
    calibration on them no more can be said than that it treats the authors' examples in this way.
    """
    from climassay import primer

    statements = {question.id: question for question in primer.gold_questions().of_kind("cloze")}
    return read_labelled_answers(Path(__file__).with_name("cloze_answers.jsonl"), statements)


def read_labelled_answers(
    path: str | Path, statements: Mapping[str, Question] | None = None
) -> tuple[LabelledAnswer, ...]:
    """Labelled answers from a table (CSV, JSON lines, Parquet).

    Args:
        path: Columns ``answer``, ``correct`` (true or false, yes or no, 1 or 0, right or wrong), ``statement`` and
            ``reference``; ``question`` (the statement's id), ``labelled_by`` and ``reason`` where they are.
        statements: Cloze questions by id, for rows that name their ``question`` instead of carrying it.

    Raises:
        InputError: The file cannot be read, or a row lacks something.
    """
    file = Path(path)
    known = statements or {}
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows: a calibration needs labelled answers.")
    return tuple(_answer(row, f"{file}, row {number}", known) for number, row in enumerate(rows, start=1))


def _answer(row: Row, place: str, known: Mapping[str, Question]) -> LabelledAnswer:
    cells = {name: "" if value is None else str(value).strip() for name, value in row.items()}
    result = known.get(cells.get("question", ""))
    statement = cells.get("statement") or (result.question if result else "")
    reference = cells.get("reference") or (result.answer if result else "")
    answer, label = cells.get("answer", ""), cells.get("correct", "").lower()
    for name, value in (("statement", statement), ("reference", reference), ("answer", answer)):
        if not value:
            raise InputError(f"{place} has no {name}: columns are statement, reference, answer and correct.")
    if label not in _TRUE + _FALSE:
        raise InputError(f"{place}: correct is {label!r}, which is neither true nor false.")
    return LabelledAnswer(
        question=cells.get("question") or statement,
        statement=statement,
        reference=reference,
        answer=answer,
        correct=label in _TRUE,
        labelled_by=cells.get("labelled_by", ""),
        reason=cells.get("reason", ""),
    )


def _check(answers: Sequence[LabelledAnswer]) -> None:
    for correct, word in ((True, "right"), (False, "wrong")):
        if len({one.question for one in answers if one.correct is correct}) < 2:
            raise InputError(f"A calibration needs {word} answers to at least two statements.")
    same = exact_match([one.reference for one in answers], [one.answer for one in answers])
    equal = next((one for one, match in zip(answers, same, strict=True) if match), None)
    if equal is not None:
        raise InputError(
            f"The answer {equal.answer!r} is identical to its reference ({equal.question}): only answers that differ "
            "from their reference say anything about a window."
        )


def _means(cosines: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weighted means, shape [weights, windows]."""
    means: NDArray[np.float64] = weights @ cosines.T / weights.sum(axis=1, keepdims=True)
    return means


def _aurocs(
    cosines: NDArray[np.float64], correct: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Share of (right, wrong) pairs in which the right one is higher, shape [weights, windows]."""
    right, wrong = weights[:, correct], weights[:, ~correct]
    pairs = right.sum(axis=1) * wrong.sum(axis=1)
    # Weighted sums over right answers first, then over wrong ones.
    return np.stack([((right @ _above(row, correct)) * wrong).sum(axis=1) / pairs for row in cosines], axis=1)


def _above(cosines: NDArray[np.float64], correct: NDArray[np.bool_]) -> NDArray[np.float64]:
    """1 where the right answer has the higher cosine, 0.5 where they are equal, else 0; shape [right, wrong]."""
    above: NDArray[np.float64] = (np.sign(cosines[correct][:, None] - cosines[~correct][None]) + 1) / 2
    return above


def _choose(right: NDArray[np.float64], wrong: NDArray[np.float64], floor: float) -> NDArray[np.int64]:
    """Place of the window with the largest gap among those that keep the floor, or of all where none does, [rows]."""
    gaps = right - wrong
    allowed = right >= floor
    allowed[~allowed.any(axis=1)] = True
    places: NDArray[np.int64] = np.argmax(np.where(allowed, gaps, -np.inf), axis=1)
    return places


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
    """One row per window: means, gap, AUROC."""
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
    points = calibration.points
    end = max((point.window for point in points if point.window is not None), default=0) + 1
    places = [end if point.window is None else point.window for point in points]
    series, ends = [], []
    for kind in ("right", "wrong"):
        shown = []
        for x, point in zip(places, points, strict=True):
            value, interval = getattr(point, kind), getattr(point, f"{kind}_interval")
            shown.append(Point(x, value, interval.low, interval.high, f"{window_name(point.window)}: {value:.3f}"))
            ends += interval
        series.append(Series(f"{kind} answers", tuple(shown)))
    whole = any(point.window is None for point in points)
    return LinePlot(
        title="Right and wrong answers by window",
        series=tuple(series),
        x=Axis("words on each side of the gap", min(places) - 0.5, max(places) + 0.5, tuple(map(float, places))),
        y=Axis.over("mean cosine", ends),
        note="Bars are 95% intervals." + (f" At {end}: the whole statement." if whole else ""),
    )


def window_report(calibration: WindowCalibration, source: str) -> Report:
    """Verdict, figure, table, and every answer with its cosine in the chosen window; ``source`` says where from."""
    place = next(k for k, point in enumerate(calibration.points) if point.window == calibration.chosen)
    ranked = sorted(
        zip(calibration.answers, calibration.cosines[place], strict=True), key=lambda pair: pair[1], reverse=True
    )
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
                f"{near:.3f}",
            )
            for one, near in ranked
        ],
        left_columns=5,
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("answers", type=Path, nargs="?", help="Table: statement, reference, answer, correct.")
    parser.add_argument("--encoder", default="local:minilm")
    parser.add_argument("--min-cosine", type=float, default=FLOOR)
    parser.add_argument("--html", type=Path)
    options = parser.parse_args()
    answers = read_labelled_answers(options.answers) if options.answers else primer_answers()
    calibration = calibrate_window(answers, options.encoder, floor=options.min_cosine)
    print(window_verdict(calibration), as_markdown(window_table(calibration)), sep="\n\n")
    if options.html:
        window_report(calibration, str(options.answers or "primer")).write(options.html)


if __name__ == "__main__":
    main()
