"""Questions that people have called valid or invalid: what a validator learns from and is measured on."""

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
from climassay.learning import Calibration, Evaluation, Threshold, calibration, evaluate, threshold_for
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
"""Rating of Pirá 2, the highest value that makes a question invalid, and what an expert here would call the fault;
the first that applies is the reason."""
_VALIDITY = ("Validation", "validation", "valid", "Valid")
_REASON = ("reason", "Reason")
_VALID = frozenset({"valid", "true", "1", "1.0", "yes"})
_INVALID = frozenset({"invalid", "false", "0", "0.0", "no"})


@dataclass(frozen=True, slots=True)
class LabelledDraft:
    """A draft and what an expert said about it."""

    draft: Draft
    valid: bool
    reason: str = ""
    """Why it is invalid, where that was said; empty for valid ones."""


class LabelSet(NamedTuple):
    """The labelled drafts of a file."""

    name: str
    drafts: tuple[LabelledDraft, ...]
    unlabelled: int
    """Drafts or rows that nobody has decided on."""
    skipped: tuple[str, ...]
    """One sentence for each row that has a label and cannot be used."""
    sha256: str
    """SHA-256 of the file's bytes."""


def read_label_set(path: str | Path) -> LabelSet:
    """Read labelled drafts and where they come from.

    The file is one of

    - drafts of climassay (JSON Lines): the latest word of an expert is the label;
    - the ratings of Pirá 2 (``pira_qa.csv``): invalid where the answer is not in the text, the question makes little
      sense (2 or less of 5), or a second person answered differently (2 or less); see :data:`PIRA_FAULTS`;
    - a question table with a column ``Validation`` or ``valid`` (and, if there is one, ``reason``), in any format that
      :func:`climassay.questions.read_questions` knows.

    Raises:
        InputError: The file cannot be read, is not one of these, or has no label.
    """
    file = Path(path)
    data = read_bytes(file)
    rows = list(parse_rows(file, data))
    if not rows:
        raise InputError(f"{file} is empty: a validator learns from labelled questions.")
    drafts = {"wording", "passages", "decisions"} <= set(rows[0])
    rated = {"question_en_origin", *(name for name, _, _ in PIRA_FAULTS)} <= set(rows[0])
    column = next((name for name in _VALIDITY if name in rows[0]), None)
    if not drafts and not rated and column is None:
        raise InputError(
            f"{file} does not say whether any question is valid: give drafts with expert decisions (climassay "
            "generate export), a question table with a column Validation or valid, or Pirá's rated questions."
        )
    labelled, unlabelled, skipped = [], 0, []
    for number, row in enumerate(rows, start=1):
        try:
            if drafts:
                result = label_of(draft_from_row(row))
            else:
                said = _rating(row) if rated else _word(row, str(column))
                result = None if said is None else LabelledDraft(_row_draft(file, row, number), *said)
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
    """The question of a row without its marks, since those of questions that are marked invalid are left out."""
    marks = {*(name for name, _, _ in PIRA_FAULTS), *_VALIDITY}
    plain = {name: value for name, value in row.items() if name not in marks}
    question = row_converter(file, plain)(plain, number)
    named = replace(question, id=str(row.get("id") or row.get("id_qa") or f"{file.stem}-{number:05d}"))
    draft = question_draft(named, file.stem)
    if draft.passages:
        return draft
    # What is learned reads the main passage, be it empty.
    title = question.document or file.stem
    return replace(draft, passages=(SourcePassage("", "", title, title, question.section or ""),))


def _rating(row: Row) -> tuple[bool, str] | None:
    """Whether Pirá's ratings make a question valid, and if not, why; None where one is missing."""
    reason = ""
    for name, worst, fault in PIRA_FAULTS:
        text = str(row.get(name) or "").strip()
        if not text or text.lower() == "nan":
            return None
        try:
            reason = reason or (fault if float(text) <= worst else "")
        except ValueError:
            raise InputError(f"the rating {text!r} in {name!r} is not a number") from None
    return not reason, reason


def _word(row: Row, column: str) -> tuple[bool, str] | None:
    value = row.get(column)
    word = ("" if value is None else str(value)).strip().casefold()
    if word in ("", "none", "nan"):
        return None
    if word not in _VALID | _INVALID:
        raise InputError(f"{value!r} in the column {column} is neither valid nor invalid")
    reason = next((str(row[name]) for name in _REASON if row.get(name)), "")
    return word in _VALID, "" if word in _VALID else reason


def label_of(draft: Draft) -> LabelledDraft | None:
    """What experts said about a draft: the latest word; None where nobody has decided, or there are no words."""
    if draft.error is not None:
        return None
    for decision in reversed(draft.decisions):
        if decision.step == "expert" and decision.accepted is not None:
            return LabelledDraft(draft, decision.accepted, "" if decision.accepted else decision.reason)
    return None


def source_groups(drafts: Iterable[Draft]) -> IntArray:
    """Number drafts by the text of their main passage, shape [drafts] from 0: what a split must not part."""
    numbers: dict[str, int] = {}
    return np.array(
        [numbers.setdefault(" ".join(draft.main.text.split()) or draft.id, len(numbers)) for draft in drafts],
        dtype=np.int64,
    )


def labels_array(labelled: Sequence[LabelledDraft]) -> IntArray:
    """1 for valid, 0 for invalid, shape [drafts]."""
    return np.array([one.valid for one in labelled], dtype=np.int64)


def check_labels(valid: Sequence[int] | IntArray) -> None:
    """Refuse labels, shape [items] of 0 or 1, from which nothing can be learned.

    Raises:
        InputError: Fewer than two of either kind.
    """
    labels = np.asarray(valid)
    invalid = int((labels == 0).sum())
    if min(invalid, len(labels) - invalid) < 2:
        raise InputError(
            f"Of {len(labels)} labelled questions {invalid} are invalid: a validator needs at least two valid and two "
            "invalid ones."
        )


def reason_figure(sets: Sequence[tuple[str, Sequence[LabelledDraft]]]) -> StackedBars | None:
    """Why experts rejected questions, one bar per named set and kind (the paper's Figure 7); None where nothing was."""
    counts: dict[str, Counter[str]] = {}
    for name, labelled in sets:
        for one in labelled:
            if not one.valid:
                counts.setdefault(f"{name}, {one.draft.kind}", Counter())[one.reason or "no reason given"] += 1
    if not counts:
        return None
    total = sum(counts.values(), Counter())
    named = sorted((reason for reason in total if reason != "no reason given"), key=lambda one: (-total[one], one))
    shades = [1.0 - 0.5 * place / max(1, len(named) - 1) for place in range(len(named))]
    parts = [Category(reason, shade) for reason, shade in zip(named, shades, strict=True)]
    if "no reason given" in total:
        parts.append(Category("no reason given"))
    bars = tuple(StackedBar(name, tuple(count[part.name] for part in parts)) for name, count in counts.items())
    return StackedBars("Why questions were rejected", tuple(parts), bars, note="Shares of the rejected questions.")


CLASSES = ("invalid", "valid")
KEPT_SHARES = (0.5, 0.8)
"""Shares kept at which precision is reported, since precision alone can be had by keeping little."""
RESAMPLES = 2000


@dataclass(frozen=True, slots=True)
class KeptShare:
    """Precision of a share of the questions."""

    name: str
    """Which are kept, in words."""
    share: float
    precision: Estimate
    """Share of valid ones among them, with its Wilson interval."""


@dataclass(frozen=True, slots=True)
class ValidatorScores:
    """Probabilities of labelled questions against their labels."""

    evaluation: Evaluation
    """Figures of the classes invalid and valid; intervals resample main passages."""
    kept: tuple[KeptShare, ...]
    """Everything, as a constant answer keeps it; those with P(valid) of at least one half, where there are some; and
    the likeliest :data:`KEPT_SHARES`."""
    calibration: Calibration

    @property
    def figures(self) -> dict[str, float]:
        """Those that are kept with a validator."""
        return {**self.evaluation.figures, "brier_constant": self.calibration.brier_constant}

    def tables(self) -> list[Table]:
        """The figures beside the constant's, and what is kept at which precision."""
        judged = self.calibration
        note = f"95% Wilson intervals. Brier score {judged.brier:.3f}, of a constant {judged.brier_constant:.3f}."
        shown = [(one.name, f"{one.share:.0%}", format_share(one.precision)) for one in self.kept]
        kept = Table.of("Questions kept", ("", "kept", "precision"), shown, note=note)
        return [*self.evaluation.tables(), kept]


def score_validator(
    valid: ArrayLike, probabilities: ArrayLike, groups: ArrayLike, *, folds: ArrayLike | None = None, seed: int = 0
) -> ValidatorScores:
    """Score probabilities of questions that were not trained on.

    Args:
        valid: Shape [items], 0 or 1; both must occur.
        probabilities: P(valid), shape [items]; NaN where a question could not be judged.
        groups: Shape [items], the main passage of each.
        folds: Shape [items]: who was predicted by the same fit, see :func:`climassay.learning.evaluate`.
        seed: Seed of the resampling.

    Raises:
        InputError: All questions that were judged have the same label, or shapes differ.
    """
    labels, given = np.asarray(valid, dtype=np.int64), np.asarray(probabilities, dtype=np.float64)
    if labels.shape != given.shape:
        raise InputError("Validators are scored with one probability for each label.")
    known = np.isfinite(given)
    if not 0 < labels[known].sum() < known.sum():
        raise InputError(
            "The judged questions are all valid or all invalid, so a validator cannot be measured on them."
        )
    at_half = given >= 0.5
    # What is as likely as not is kept.
    answers = np.where(known, at_half, -1)
    options: dict[str, Any] = {"groups": groups, "folds": folds, "resamples": RESAMPLES, "seed": seed}
    both = np.stack([1 - given, given], axis=1)
    judged, sure = labels[known], given[known]
    kept = [KeptShare("everything (constant)", 1.0, proportion(int(judged.sum()), len(judged)))]
    if at_half.any():
        precision = proportion(int(labels[at_half].sum()), int(at_half.sum()))
        kept.append(KeptShare("P(valid) of at least 1/2", float(at_half.sum() / known.sum()), precision))
    kept += [precision_at(share, judged, sure) for share in KEPT_SHARES]
    evaluation = evaluate(labels, both, CLASSES, answers=answers, **options)
    return ValidatorScores(evaluation, tuple(kept), calibration(sure, judged))


def precision_at(share: float, valid: IntArray, probabilities: FloatArray) -> KeptShare:
    """Precision of the likeliest share of questions (shape [questions]), at least one; equal ones in their order."""
    kept = max(1, round(share * len(valid)))
    chosen = np.argsort(-probabilities, kind="stable")[:kept]
    return KeptShare(f"likeliest {share:.0%}", share, proportion(int(valid[chosen].sum()), kept))


def chosen_threshold(
    precision: float | None, valid: IntArray, probabilities: FloatArray
) -> tuple[Threshold | None, str | None]:
    """A threshold for a precision, or why there is none; neither where none is wanted.

    Args:
        precision: Wanted share of valid items among those kept, above 0 to 1; None wants no threshold.
        valid: Shape [items], 0 or 1.
        probabilities: P(valid) by a validator that did not see the item, shape [items].

    Raises:
        InputError: The precision is not a share.
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
    """A threshold and what may be expected of it."""
    rows = [
        ("P(valid) of at least", f"{threshold.value:.3f}"),
        ("precision wanted", f"{threshold.wanted:.1%}"),
        ("precision on labels", format_share(threshold.precision)),
        ("share kept", f"{threshold.yield_.value:.1%}"),
    ]
    return Table.of("Threshold", ("", ""), rows, note="Chosen on these labels: new questions may do a little worse.")
