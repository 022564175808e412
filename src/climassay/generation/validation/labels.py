"""Labelled questions, which validators are trained and scored on, and the scores."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.generation.draft import Draft, SourcePassage, draft_from_row, question_draft
from climassay.generation.screening.catalogue import format_share
from climassay.io import Row, parse_rows, read_bytes
from climassay.learning import Calibration, HeldOutScores, Threshold, calibration, evaluate, threshold_for
from climassay.questions.formats import row_converter
from climassay.reporting import Category, StackedBar, StackedBars, Table
from climassay.statistics import Estimate, proportion

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

PIRA_FAULTS = (
    ("answer_in_text", 0.0, "not enough information"),
    ("question_meaningful", 2.0, "makes no sense"),
    ("answer_equivalent", 2.0, "wrong answer"),
)
"""For each of Pirá 2's ratings: column, highest value of an invalid question, and the experts' reason. The first rating
that applies gives the reason of the label."""
_VALIDITY = ("Validation", "validation", "valid", "Valid")
_REASON = ("reason", "Reason")
_VALID = frozenset({"valid", "true", "1", "1.0", "yes"})
_INVALID = frozenset({"invalid", "false", "0", "0.0", "no"})


@dataclass(frozen=True, slots=True)
class LabelledDraft:
    """A draft with an expert's label."""

    draft: Draft
    valid: bool
    reason: str = ""
    """Reason if the draft is invalid and the reason is known; else empty."""


class LabelSet(NamedTuple):
    """The labelled drafts of a file."""

    name: str
    drafts: tuple[LabelledDraft, ...]
    unlabelled: int
    """Number of drafts or rows without a label."""
    skipped: tuple[str, ...]
    """One sentence for each labelled row that cannot be used."""
    sha256: str
    """SHA-256 of the file's bytes."""


def read_label_set(path: str | Path) -> LabelSet:
    """Read labelled drafts from a file.

    The file is one of

    - drafts of climassay (JSON Lines): an expert's latest decision is the label;
    - the ratings of Pirá 2 (``pira_qa.csv``): invalid if the answer is not in the text, the question makes little
      sense (2 or less of 5), or a second person answered differently (2 or less); see :data:`PIRA_FAULTS`;
    - a question table with a column ``Validation`` or ``valid`` and optionally ``reason``, in any format that
      :func:`climassay.questions.read_questions` reads.

    Raises:
        InputError: The file cannot be read, has another format, or has no label.
    """
    file = Path(path)
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} is empty: a validator learns from labelled questions.")
    is_drafts = {"wording", "passages", "decisions"} <= set(rows[0])
    is_pira = {"question_en_origin", *(name for name, _, _ in PIRA_FAULTS)} <= set(rows[0])
    column = next((name for name in _VALIDITY if name in rows[0]), None)
    if not is_drafts and not is_pira and column is None:
        raise InputError(
            f"{file} does not say whether any question is valid: give drafts with expert decisions (climassay "
            "generate export), a question table with a column Validation or valid, or Pirá's rated questions."
        )
    labelled, unlabelled, skipped = [], 0, []
    for number, row in enumerate(rows, start=1):
        try:
            if is_drafts:
                result = label_of(draft_from_row(row))
            else:
                label = _pira_label(row) if is_pira else _column_label(row, str(column))
                result = None if label is None else LabelledDraft(_row_draft(file, row, number), *label)
        except InputError as error:
            skipped.append(f"row {number}: {error}")
            continue
        if result is None:
            unlabelled += 1
        else:
            labelled.append(result)
    if not labelled:
        first = f" The first row that cannot be used: {skipped[0]}." if skipped else ""
        raise InputError(f"Nobody has called a question of {file} valid or invalid.{first}")
    return LabelSet(file.name, tuple(labelled), unlabelled, tuple(skipped), hashlib.sha256(data).hexdigest())


def _row_draft(file: Path, row: Row, number: int) -> Draft:
    """Return the draft of a table's row; the label columns are dropped, because they make readers skip the row."""
    label_columns = {*(name for name, _, _ in PIRA_FAULTS), *_VALIDITY}
    cells = {name: value for name, value in row.items() if name not in label_columns}
    question = row_converter(file, cells)(cells, number)
    named = replace(question, id=str(row.get("id") or row.get("id_qa") or f"{file.stem}-{number:05d}"))
    draft = question_draft(named, file.stem)
    if draft.passages:
        return draft
    # Validators need a main passage, even an empty one.
    title = question.document or file.stem
    return replace(draft, passages=(SourcePassage("", "", title, title, question.section or ""),))


def _pira_label(row: Row) -> tuple[bool, str] | None:
    """Return label and reason by Pirá's ratings, or None if a rating is missing."""
    reason = ""
    for name, max_invalid, fault in PIRA_FAULTS:
        text = str(row.get(name) or "").strip()
        if not text or text.lower() == "nan":
            return None
        try:
            reason = reason or (fault if float(text) <= max_invalid else "")
        except ValueError:
            raise InputError(f"the rating {text!r} in {name!r} is not a number") from None
    return not reason, reason


def _column_label(row: Row, column: str) -> tuple[bool, str] | None:
    value = row.get(column)
    word = ("" if value is None else str(value)).strip().casefold()
    if word in ("", "none", "nan"):
        return None
    if word not in _VALID | _INVALID:
        raise InputError(f"{value!r} in the column {column} is neither valid nor invalid")
    reason = next((str(row[name]) for name in _REASON if row.get(name)), "")
    return word in _VALID, "" if word in _VALID else reason


def label_of(draft: Draft) -> LabelledDraft | None:
    """Return a draft with the latest expert decision as its label; None if no expert decided or writing failed."""
    if draft.error is not None:
        return None
    for decision in reversed(draft.decisions):
        if decision.step == "expert" and decision.accepted is not None:
            return LabelledDraft(draft, decision.accepted, "" if decision.accepted else decision.reason)
    return None


def source_groups(drafts: Iterable[Draft]) -> IntArray:
    """Return the group of each draft, shape [drafts]: drafts with the same main passage have the same number."""
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(" ".join(draft.main.text.split()) or draft.id, len(numbers)) for draft in drafts],
        dtype=np.int64,
    )


def labels_array(labelled: Sequence[LabelledDraft]) -> IntArray:
    """Return 1 for valid and 0 for invalid drafts, shape [drafts]."""
    return np.array([example.valid for example in labelled], dtype=np.int64)


def check_labels(valid: Sequence[int] | IntArray) -> None:
    """Check that there are enough labels, shape [items] of 0 or 1, to train on.

    Raises:
        InputError: There are fewer than two labels of a class.
    """
    labels = np.asarray(valid)
    invalid = int((labels == 0).sum())
    if min(invalid, len(labels) - invalid) < 2:
        raise InputError(
            f"Of {len(labels)} labelled questions {invalid} are invalid: a validator needs at least two valid and two "
            "invalid ones."
        )


def reason_figure(sets: Sequence[tuple[str, Sequence[LabelledDraft]]]) -> StackedBars | None:
    """Return a chart of the reasons for rejection, one bar per named set and kind (ClimaQA, Figure 7), or None."""
    counts: dict[str, Counter[str]] = {}
    for name, labelled in sets:
        for example in labelled:
            if not example.valid:
                reason = example.reason or "no reason given"
                counts.setdefault(f"{name}, {example.draft.kind}", Counter())[reason] += 1
    if not counts:
        return None
    total = sum(counts.values(), Counter())
    named = sorted((reason for reason in total if reason != "no reason given"), key=lambda name: (-total[name], name))
    shades = [1.0 - 0.5 * index / max(1, len(named) - 1) for index in range(len(named))]
    parts = [Category(reason, shade) for reason, shade in zip(named, shades, strict=True)]
    if "no reason given" in total:
        parts.append(Category("no reason given"))
    bars = tuple(StackedBar(name, tuple(count[part.name] for part in parts)) for name, count in counts.items())
    return StackedBars("Why questions were rejected", tuple(parts), bars, note="Shares of the rejected questions.")


CLASSES = ("invalid", "valid")
ACCEPTED_SHARES = (0.5, 0.8)
"""Accepted shares at which precision is reported, since accepting few questions alone raises precision."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class PrecisionAtShare:
    """Precision among an accepted share of the questions."""

    name: str
    """Description of the accepted questions."""
    share: float
    precision: Estimate
    """Share of valid questions among them, with its Wilson interval."""


@dataclass(frozen=True, slots=True)
class ValidatorScores:
    """Scores of a validator's probabilities on labelled questions."""

    evaluation: HeldOutScores
    """Scores of the classes invalid and valid; intervals resample main passages."""
    precisions: tuple[PrecisionAtShare, ...]
    """Precision of all questions, of those with P(valid) of at least 0.5 if there are any, and of the most probable
    :data:`ACCEPTED_SHARES`."""
    calibration: Calibration

    @property
    def figures(self) -> dict[str, float]:
        """Scores that are saved with a validator, by name."""
        return {**self.evaluation.figures, "brier_constant": self.calibration.brier_constant}

    def tables(self) -> list[Table]:
        """Return the scores beside the constant baseline's, and the precision by accepted share."""
        brier, baseline = self.calibration.brier, self.calibration.brier_constant
        note = f"95% Wilson intervals. Brier score {brier:.3f}, of a constant {baseline:.3f}."
        rows = [(entry.name, f"{entry.share:.0%}", format_share(entry.precision)) for entry in self.precisions]
        precision = Table.of("Questions kept", ("", "kept", "precision"), rows, note=note)
        return [*self.evaluation.tables(), precision]


def score_validator(
    valid: ArrayLike, probabilities: ArrayLike, groups: ArrayLike, *, folds: ArrayLike | None = None, seed: int = 0
) -> ValidatorScores:
    """Score probabilities of questions that were not trained on.

    Args:
        valid: Shape [items], 0 or 1; both must occur.
        probabilities: P(valid), shape [items]; NaN for a question that could not be judged.
        groups: Shape [items], the main passage of each.
        folds: Fold of each item, shape [items]; see :func:`climassay.learning.evaluate`.
        seed: Seed of the resampling.

    Raises:
        InputError: All questions that were judged have the same label, or shapes differ.
    """
    labels, p_valid = np.asarray(valid, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    if labels.shape != p_valid.shape:
        raise InputError("Validators are scored with one probability for each label.")
    is_judged = np.isfinite(p_valid)
    if not 0 < labels[is_judged].sum() < is_judged.sum():
        raise InputError(
            "The judged questions are all valid or all invalid, so a validator cannot be measured on them."
        )
    is_accepted = p_valid >= 0.5
    answers = np.where(is_judged, is_accepted, -1)
    options: dict[str, Any] = {"groups": groups, "folds": folds, "resamples": RESAMPLES, "seed": seed}
    class_probabilities = np.stack([1 - p_valid, p_valid], axis=1)
    judged_labels, judged_p_valid = labels[is_judged], p_valid[is_judged]
    precisions = [
        PrecisionAtShare("everything (constant)", 1.0, proportion(int(judged_labels.sum()), len(judged_labels)))
    ]
    if is_accepted.any():
        precision = proportion(int(labels[is_accepted].sum()), int(is_accepted.sum()))
        precisions.append(
            PrecisionAtShare("P(valid) of at least 1/2", float(is_accepted.sum() / is_judged.sum()), precision)
        )
    precisions += [precision_at(share, judged_labels, judged_p_valid) for share in ACCEPTED_SHARES]
    evaluation = evaluate(labels, class_probabilities, CLASSES, answers=answers, **options)
    return ValidatorScores(evaluation, tuple(precisions), calibration(judged_p_valid, judged_labels))


def precision_at(share: float, valid: IntArray, probabilities: FloatArray) -> PrecisionAtShare:
    """Return the precision among the most probable share of questions, at least one; ties keep their order.

    Args:
        share: Share of the questions, 0 to 1.
        valid: Labels 0 or 1, shape [questions].
        probabilities: P(valid), shape [questions].
    """
    size = max(1, round(share * len(valid)))
    accepted = np.argsort(-probabilities, kind="stable")[:size]
    return PrecisionAtShare(f"most probable {share:.0%}", share, proportion(int(valid[accepted].sum()), size))


def chosen_threshold(
    precision: float | None, valid: IntArray, probabilities: FloatArray
) -> tuple[Threshold | None, str | None]:
    """Return a threshold for a precision, or the reason why there is none; both None if no precision is requested.

    Args:
        precision: Requested share of valid items among the accepted ones, in (0, 1]; None chooses no threshold.
        valid: Shape [items], 0 or 1.
        probabilities: P(valid) by a validator that was not trained on the item, shape [items].

    Raises:
        InputError: The precision is outside (0, 1].
    """
    if precision is None:
        return None, None
    try:
        return threshold_for(precision, valid, probabilities), None
    except InputError as error:
        if not 0 < precision <= 1:
            raise
        return None, str(error)


def threshold_table(threshold: Threshold) -> Table:
    """Return a threshold with its precision and accepted share as a table."""
    rows = [
        ("P(valid) of at least", f"{threshold.value:.3f}"),
        ("precision wanted", f"{threshold.wanted:.1%}"),
        ("precision on labels", format_share(threshold.precision)),
        ("share kept", f"{threshold.yield_.value:.1%}"),
    ]
    return Table.of(
        "Threshold", ("", ""), rows, note="Chosen on these labels: new questions may have a lower precision."
    )
