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
from climassay.generation.screening.catalogue import format_proportion
from climassay.io import Row, parse_rows, read_bytes
from climassay.learning import Calibration, HeldOutScores, Threshold, calibration, evaluate, find_threshold
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
"""Column, maximum rating that makes a question invalid, and reason for rejection, for each of Pirá 2's ratings. If
several ratings make a question invalid, the first one gives the reason."""
_LABEL_COLUMNS = ("Validation", "validation", "valid", "Valid")
_REASON_COLUMNS = ("reason", "Reason")
_VALID_WORDS = frozenset({"valid", "true", "1", "1.0", "yes"})
_INVALID_WORDS = frozenset({"invalid", "false", "0", "0.0", "no"})


@dataclass(frozen=True, slots=True)
class LabelledDraft:
    """Draft with an expert's label."""

    draft: Draft
    valid: bool
    reason: str = ""
    """Reason why the draft is invalid; empty if it is valid or the reason is unknown."""


class LabelSet(NamedTuple):
    """Labelled drafts of a file."""

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

    The file can be

    - climassay's drafts (JSON Lines), whose label is the latest decision of an expert;
    - Pirá 2's rated questions (``pira_qa.csv``). A question is invalid if its answer is not in the text, if its
      meaningfulness is rated 2 or less of 5, or if the agreement of a second person's answer is rated 2 or less; see
      :data:`PIRA_FAULTS`;
    - a question table in any format of :func:`climassay.questions.read_questions`, with a column ``Validation`` or
      ``valid`` and optionally a column ``reason``.

    Raises:
        InputError: The file cannot be read, has another format, or has no label.
    """
    file = Path(path)
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} is empty: a validator learns from labelled questions.")
    has_drafts = {"wording", "passages", "decisions"} <= set(rows[0])
    has_ratings = {"question_en_origin", *(name for name, _, _ in PIRA_FAULTS)} <= set(rows[0])
    label_column = next((name for name in _LABEL_COLUMNS if name in rows[0]), None)
    if not has_drafts and not has_ratings and label_column is None:
        raise InputError(
            f"{file} does not say whether any question is valid: give drafts with expert decisions (climassay "
            "generate export), a question table with a column Validation or valid, or Pirá's rated questions."
        )
    labelled_drafts, n_unlabelled, skipped_rows = [], 0, []
    for row_number, row in enumerate(rows, start=1):
        try:
            if has_drafts:
                labelled_draft = label_by_experts(draft_from_row(row))
            else:
                label = _pira_label(row) if has_ratings else _column_label(row, str(label_column))
                labelled_draft = None if label is None else LabelledDraft(_to_draft(file, row, row_number), *label)
        except InputError as error:
            skipped_rows.append(f"row {row_number}: {error}")
            continue
        if labelled_draft is None:
            n_unlabelled += 1
        else:
            labelled_drafts.append(labelled_draft)
    if not labelled_drafts:
        first_fault = f" The first row that cannot be used: {skipped_rows[0]}." if skipped_rows else ""
        raise InputError(f"Nobody has called a question of {file} valid or invalid.{first_fault}")
    return LabelSet(
        file.name, tuple(labelled_drafts), n_unlabelled, tuple(skipped_rows), hashlib.sha256(data).hexdigest()
    )


def _to_draft(file: Path, row: Row, row_number: int) -> Draft:
    """Convert a row of a question table to a draft.

    The label columns are removed first, because invalid rows could not be converted otherwise.
    """
    label_columns = {*(name for name, _, _ in PIRA_FAULTS), *_LABEL_COLUMNS}
    cells = {name: value for name, value in row.items() if name not in label_columns}
    question = row_converter(file, cells)(cells, row_number)
    named_question = replace(question, id=str(row.get("id") or row.get("id_qa") or f"{file.stem}-{row_number:05d}"))
    draft = question_draft(named_question, file.stem)
    if draft.passages:
        return draft
    # Validators need a main passage, even an empty one.
    title = question.document or file.stem
    return replace(draft, passages=(SourcePassage("", "", title, title, question.section or ""),))


def _pira_label(row: Row) -> tuple[bool, str] | None:
    """Return whether a question is valid by Pirá's ratings, and why not; None if a rating is missing."""
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
    if word not in _VALID_WORDS | _INVALID_WORDS:
        raise InputError(f"{value!r} in the column {column} is neither valid nor invalid")
    reason = next((str(row[name]) for name in _REASON_COLUMNS if row.get(name)), "")
    return word in _VALID_WORDS, "" if word in _VALID_WORDS else reason


def label_by_experts(draft: Draft) -> LabelledDraft | None:
    """Label a draft by the latest decision of an expert; None if no expert decided, or the draft was never written."""
    if draft.error is not None:
        return None
    for decision in reversed(draft.decisions):
        if decision.step == "expert" and decision.accepted is not None:
            return LabelledDraft(draft, decision.accepted, "" if decision.accepted else decision.reason)
    return None


def source_groups(drafts: Iterable[Draft]) -> IntArray:
    """Return the group index of each draft, shape [drafts]; drafts with the same main passage form a group."""
    group_indices: dict[str, int] = {}
    return np.array(
        [
            group_indices.setdefault(" ".join(draft.main.text.split()) or draft.id, len(group_indices))
            for draft in drafts
        ],
        dtype=np.int64,
    )


def labels_array(examples: Sequence[LabelledDraft]) -> IntArray:
    """Return 1 for valid and 0 for invalid drafts, shape [drafts]."""
    return np.array([example.valid for example in examples], dtype=np.int64)


def check_labels(valid: Sequence[int] | IntArray) -> None:
    """Check that there are enough labels to train a validator.

    Args:
        valid: Labels 0 or 1, shape [items].

    Raises:
        InputError: There are fewer than two labels of a class.
    """
    labels = np.asarray(valid)
    n_invalid = int((labels == 0).sum())
    if min(n_invalid, len(labels) - n_invalid) < 2:
        raise InputError(
            f"Of {len(labels)} labelled questions {n_invalid} are invalid: a validator needs at least two valid and "
            "two invalid ones."
        )


def reason_figure(sets: Sequence[tuple[str, Sequence[LabelledDraft]]]) -> StackedBars | None:
    """Return a chart of the reasons for rejection, as in Figure 7 of ClimaQA; None if no draft is invalid.

    ``sets`` has pairs of a name and labelled drafts. There is one bar for each set and kind.
    """
    counts: dict[str, Counter[str]] = {}
    for name, labelled_drafts in sets:
        for example in labelled_drafts:
            if not example.valid:
                reason = example.reason or "no reason given"
                counts.setdefault(f"{name}, {example.draft.kind}", Counter())[reason] += 1
    if not counts:
        return None
    total = sum(counts.values(), Counter())
    reasons = sorted((reason for reason in total if reason != "no reason given"), key=lambda name: (-total[name], name))
    shades = [1.0 - 0.5 * index / max(1, len(reasons) - 1) for index in range(len(reasons))]
    parts = [Category(reason, shade) for reason, shade in zip(reasons, shades, strict=True)]
    if "no reason given" in total:
        parts.append(Category("no reason given"))
    bars = tuple(StackedBar(name, tuple(count[part.name] for part in parts)) for name, count in counts.items())
    return StackedBars("Why questions were rejected", tuple(parts), bars, note="Proportions of the rejected questions.")


CLASSES = ("invalid", "valid")
ACCEPTED_SHARES = (0.5, 0.8)
"""Proportions of accepted questions at which precision is reported. They are fixed, because accepting fewer questions
raises the precision of any validator."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class PrecisionAtShare:
    """Precision if a given proportion of the questions is accepted."""

    name: str
    """Description of the accepted questions."""
    share: float
    """Proportion of accepted questions."""
    precision: Estimate
    """Proportion of valid questions among the accepted ones, with Wilson's interval."""


@dataclass(frozen=True, slots=True)
class ValidatorScores:
    """Scores of a validator's probabilities on labelled questions."""

    evaluation: HeldOutScores
    """Scores as a classifier with the classes invalid and valid; intervals resample main passages."""
    precisions: tuple[PrecisionAtShare, ...]
    """Precision if all questions are accepted; if those with P(valid) of at least 0.5 are accepted, unless there are
    none; and if the most probable :data:`ACCEPTED_SHARES` of the questions are accepted."""
    calibration: Calibration

    @property
    def figures(self) -> dict[str, float]:
        """Scores that are saved with a validator, by name."""
        return {**self.evaluation.figures, "brier_constant": self.calibration.brier_constant}

    def tables(self) -> list[Table]:
        """Return a table of the scores and a constant baseline, and a table of precision by accepted questions."""
        brier, baseline = self.calibration.brier, self.calibration.brier_constant
        note = f"95% Wilson intervals. Brier score {brier:.3f}, of a constant {baseline:.3f}."
        rows = [(entry.name, f"{entry.share:.0%}", format_proportion(entry.precision)) for entry in self.precisions]
        precision = Table.of("Questions kept", ("", "kept", "precision"), rows, note=note)
        return [*self.evaluation.tables(), precision]


def score_validator(
    valid: ArrayLike, probabilities: ArrayLike, groups: ArrayLike, *, folds: ArrayLike | None = None, seed: int = 0
) -> ValidatorScores:
    """Score the predicted probabilities of held-out questions.

    Args:
        valid: Labels 0 or 1, shape [items].
        probabilities: P(valid), shape [items]; NaN for a question that could not be judged.
        groups: Main passage of each question, shape [items].
        folds: Fold of each question, shape [items]; see :func:`climassay.learning.evaluate`.
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
    """Return the precision if the most probable questions are accepted.

    Args:
        share: Proportion of questions to accept, 0 to 1; at least one question is accepted.
        valid: Labels 0 or 1, shape [questions].
        probabilities: P(valid), shape [questions]; of equally probable questions, the first come first.
    """
    n_accepted = max(1, round(share * len(valid)))
    indices = np.argsort(-probabilities, kind="stable")[:n_accepted]
    return PrecisionAtShare(f"most probable {share:.0%}", share, proportion(int(valid[indices].sum()), n_accepted))


def choose_threshold(
    precision: float | None, valid: IntArray, probabilities: FloatArray
) -> tuple[Threshold | None, str | None]:
    """Choose a threshold that reaches a precision.

    Args:
        precision: Requested proportion of valid items among the accepted ones, in (0, 1]; None for no threshold.
        valid: Labels 0 or 1, shape [items].
        probabilities: P(valid) by a validator that was not trained on the item, shape [items].

    Returns:
        The threshold, and the reason why the precision cannot be reached; at least one of the two is None.

    Raises:
        InputError: The precision is outside (0, 1].
    """
    if precision is None:
        return None, None
    try:
        return find_threshold(precision, valid, probabilities), None
    except InputError as error:
        if not 0 < precision <= 1:
            raise
        return None, str(error)


def threshold_table(threshold: Threshold) -> Table:
    """Return a table with a threshold, its precision, and the proportion of accepted items."""
    rows = [
        ("P(valid) of at least", f"{threshold.value:.3f}"),
        ("precision wanted", f"{threshold.wanted:.1%}"),
        ("precision on labels", format_proportion(threshold.precision)),
        ("proportion kept", f"{threshold.yield_.value:.1%}"),
    ]
    return Table.of(
        "Threshold", ("", ""), rows, note="Chosen on these labels: new questions may have a lower precision."
    )
