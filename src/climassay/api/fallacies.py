"""Apply, score and train classifiers of fallacies and contrarian claims."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.io import read_bytes
from climassay.reporting import Table
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.factcheck.fallacies import FallacyClassifier
    from climassay.learning import HeldOutScores


def name_fallacies(
    texts: str | Path | Sequence[str],
    classifier: str = "fallacies",
    *,
    column: str | None = None,
    truth: str | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Name the most probable fallacy of a text, or of each text in a table, with a trained classifier.

    Args:
        texts: A text, a sequence of texts, or the file of a table of texts.
        classifier: ``fallacies``, ``claims``, or the file of a trained classifier.
        column: Column of a table that contains the texts.
        truth: Column of a table that contains the true labels; the predictions are then scored.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The classifier does not exist, or the table or a column cannot be used.
    """
    from climassay.factcheck.fallacies import find_fallacies, load_fallacy_classifier, score_fallacies
    from climassay.learning.text_rows import is_table

    labels: list[str] = []
    if isinstance(texts, (str, Path)):
        column = column or ("text" if isinstance(texts, Path) else None)
        if column is not None:
            texts, labels = _read_table(Path(texts), column, truth)
        elif truth is not None or is_table(str(texts)):
            raise InputError(f"{texts} is a table: name the column of its texts with --text COLUMN.")
        else:
            texts = [str(texts)]
    elif not texts:
        raise InputError("There is no text to name the fallacy of.")
    fallacy_classifier = load_fallacy_classifier(classifier)
    with Session.opened(workspace) as session, session.progress_of(len(texts)).task("Reading texts") as task:
        predictions = find_fallacies(texts, classifier=fallacy_classifier, on_progress=task.advance)
    rows = [{"text": text, **asdict(fallacy)} for text, fallacy in zip(texts, predictions, strict=True)]
    data: dict[str, Any] = {"classifier": _describe(fallacy_classifier), "texts": rows}
    scores: dict[str, HeldOutScores] = {}
    if truth is not None:
        rows = data["texts"] = [{**row, "truth": label} for row, label in zip(rows, labels, strict=True)]
        scores = score_fallacies(fallacy_classifier, texts, labels, seed=seed)
        data |= _convert_scores(scores)
    measurements, threshold = fallacy_classifier.provenance.measured, fallacy_classifier.threshold
    threshold_note = (
        "" if threshold is None else f"; {threshold.precision.value:.0%} from {threshold.value:.0%} on (strong)"
    )
    note = (f"{predictions[0].name}: {predictions[0].meaning} " if len(texts) == 1 else "") + (
        f"Right for {measurements['accuracy']:.0%} of {measurements['n']:.0f} held-out texts of climate misinformation"
        f" (the most frequent class: {measurements['constant']:.0%}){threshold_note}."
        " A text that does not mislead gets a name, too."
    )
    cells = [
        [text, fallacy.name, f"{fallacy.probability:.0%}"] for text, fallacy in zip(texts, predictions, strict=True)
    ]
    likely_rows = [index for index, fallacy in enumerate(predictions) if fallacy.likely]
    table = Table.of("", ["text", "most probable", "probability"], cells, left_columns=2, strong=likely_rows, note=note)
    return AssembledResult(data, [table, *_make_score_tables(scores)], rows)


def evaluate_fallacies(
    classifier: str,
    labels: Path | str,
    *,
    text: str = "text",
    truth: str | None = None,
    exclude: Sequence[Path | str] = (),
    include_trained: bool = False,
    encoder: str = "local:minilm",
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Score a classifier on labelled texts that it was not trained on.

    Args:
        classifier: File of a trained classifier, or ``fallacies`` or ``claims`` for a bundled one.
        labels: File of a table with a column of texts and a column of labels.
        text: Column of the texts.
        truth: Column of the labels; by default fallacy or cards_claim, as in FLICC.
        exclude: Table of texts, such as the training data; labelled texts that are nearly equal to one of them are not
            scored. Can be repeated.
        include_trained: Whether texts of the training data are scored as well.
        encoder: Encoder that finds near-duplicates.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The classifier or a table cannot be used, or no text remains to be scored.
    """
    import numpy as np

    from climassay.factcheck.fallacies import load_fallacy_classifier, score_fallacies
    from climassay.learning import NearDuplicates
    from climassay.learning.text_rows import read_text_rows

    labels = Path(labels)
    fallacy_classifier = load_fallacy_classifier(classifier)
    texts, classes = _read_table(labels, text, truth or fallacy_classifier.subject.column)
    excluded_texts = [item for file in exclude for item, *_ in read_text_rows(Path(file), text)]
    duplicate_indices: set[int] = set()
    if excluded_texts:
        with Session.opened(workspace) as session:
            duplicates = NearDuplicates([*texts, *excluded_texts], session.encoder(encoder))
        duplicate_indices = set(duplicates.of(np.arange(len(texts), len(texts) + len(excluded_texts))).tolist())
    indices = [
        index
        for index, item in enumerate(texts)
        if index not in duplicate_indices
        and (include_trained or not fallacy_classifier.provenance.was_trained_on(item))
    ]
    if not indices:
        raise InputError(f"{labels} has no text that the classifier was not trained on.")
    scores = score_fallacies(fallacy_classifier, [texts[i] for i in indices], [classes[i] for i in indices], seed=seed)
    n_excluded = len(texts) - len(indices)
    data = {"classifier": _describe(fallacy_classifier), "left_out": n_excluded, **_convert_scores(scores)}
    notes = [f"{n_excluded} texts left out: training texts, or nearly equal to one."] if n_excluded else []
    return AssembledResult(data, _make_score_tables(scores), noted=notes)


def train_fallacies(
    labels: Path | str,
    output: Path | str,
    *,
    subject: str = "fallacies",
    text: str = "text",
    truth: str | None = None,
    encoder: str = "local:minilm",
    folds: int = 5,
    precision: float = 0.8,
    licence: str = "",
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Train a classifier, choosing its features by log loss in cross-validation.

    Near-duplicates are always in the same fold.

    Args:
        labels: File of a table with a column of texts and a column of labels.
        output: File to which the classifier is saved.
        subject: Kind of labels: ``fallacies`` or ``claims``.
        text: Column of the texts.
        truth: Column of the labels; by default fallacy or cards_claim, as in FLICC.
        encoder: Encoder whose embeddings are used as features.
        folds: Number of cross-validation folds.
        precision: Minimum proportion of correct predictions above the threshold for strong predictions.
        licence: Licence of the data, stored with the classifier.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The table cannot be used, or the classifier cannot be saved to the file.
    """
    from climassay.factcheck import fallacies
    from climassay.learning import Provenance
    from climassay.learning.evaluation import comparison_table
    from climassay.learning.model_file import check_model_path

    labels, output = Path(labels), Path(output)
    check_model_path(output)
    label_kind = fallacies.SUBJECTS[subject]
    texts, classes = _read_table(labels, text, truth or label_kind.column)
    provenance = Provenance(
        data=labels.name,
        data_sha256=hashlib.sha256(read_bytes(labels)).hexdigest(),
        licence=licence,
        trained_on=tuple(dict.fromkeys(map(words_id, texts))),
    )
    with Session.opened(workspace) as session, session.progress.task("Reading texts") as task:
        training_result = fallacies.train_fallacies(
            texts,
            classes,
            label_kind,
            encoder=session.encoder(encoder),
            folds=folds,
            seed=seed,
            precision=precision,
            provenance=provenance,
            on_progress=task.advance,
        )
    training_result.classifier.save(output)
    best_candidate = training_result.chosen
    data = {
        "output": output,
        "chosen": best_candidate.spec.name,
        "classifier": _describe(training_result.classifier),
        "left_out": len(texts) - best_candidate.evaluation.n,
        **best_candidate.evaluation.to_dict(),
        "candidates": [
            {"name": candidate.spec.name, "scores": candidate.evaluation.to_dict()}
            for candidate in training_result.candidates
        ],
    }
    lines = [f"Chosen: {best_candidate.spec.name}; written to {output}."]
    if (threshold := training_result.classifier.threshold) is not None:
        share, precision = threshold.yield_.value, threshold.precision.value
        lines.append(
            f"From a probability of {threshold.value:.2f} on, {precision:.0%} are right ({share:.0%} of the texts)."
        )
    tables = [
        comparison_table([(candidate.spec.name, candidate.evaluation) for candidate in training_result.candidates])
    ]
    return AssembledResult(data, [*tables, *best_candidate.evaluation.tables()], printed_lines=lines)


def _read_table(file: Path, text: str, truth: str | None) -> tuple[list[str], list[str]]:
    """Return the texts and the labels of a table; there are no labels if ``truth`` is None."""
    from climassay.learning.text_rows import read_text_rows

    rows = read_text_rows(file, text, truth)
    return [row.text for row in rows], [row.other for row in rows]


def _describe(classifier: "FallacyClassifier") -> dict[str, Any]:
    return {**classifier.provenance.summary(), "sources": classifier.sources, "classes": classifier.classes}


def _convert_scores(scores: "dict[str, HeldOutScores]") -> dict[str, Any]:
    data = {name: evaluation.to_dict() for name, evaluation in scores.items()}
    return {**next(iter(data.values())), "scores": data}


def _make_score_tables(scores: "dict[str, HeldOutScores]") -> list[Table]:
    return [
        replace(table, title=f"{table.title}: {name}")
        for name, evaluation in scores.items()
        for table in evaluation.tables()
    ]
