"""How texts mislead: classifiers of fallacies and contrarian claims applied, measured and trained."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.api.learned import card, check_model_path, comparison_table, is_table, open_weights, text_rows
from climassay.claim_identity import words_id
from climassay.errors import InputError
from climassay.io import read_bytes
from climassay.reporting import Table
from climassay.reporting.results import Shown
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.factcheck.fallacies import LabelledTexts
    from climassay.learning import Evaluation, TextClassifier


def _labelled_texts(file: Path, text: str, truth: str | None) -> "LabelledTexts":
    """Texts of a table with their labels, which are empty where no column of them is named."""
    from climassay.factcheck.fallacies import LabelledTexts

    rows = text_rows(file, text, truth)
    labels = ("" if truth is None else str(row[truth] or "") for _, row in rows)
    return LabelledTexts(tuple(said for said, _ in rows), tuple(labels))


def name_fallacies(
    given: str | Path | Sequence[str],
    classifier: str = "fallacies",
    *,
    column: str | None = None,
    truth: str | None = None,
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Name the most probable fallacy of a text, or of each text in a table, with the bundled classifier.

    Args:
        given: A text, or several, or a table of them.
        classifier: ``fallacies``, ``claims``, or the file of one that was trained.
        column: Column of a table that holds the texts.
        truth: Column of the true labels, to score the result.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session tells progress.

    Raises:
        InputError: There is no such classifier, or the table or a column cannot be used.
    """
    from climassay.factcheck.fallacies import (
        LabelledTexts,
        find_fallacies,
        load_fallacies,
        score_fallacies,
        threshold_of,
    )

    if isinstance(given, Path):
        column = column or "text"
    if not isinstance(given, (str, Path)):
        if not given:
            raise InputError("There is no text to name the fallacy of.")
        known = LabelledTexts(tuple(given), ("",) * len(given))
    elif column is not None:
        known = _labelled_texts(Path(given), column, truth)
    elif truth is not None or is_table(str(given)):
        raise InputError(f"{given} is a table: name the column of its texts with --text COLUMN.")
    else:
        known = LabelledTexts((str(given),), ("",))
    loaded, texts, labelled = load_fallacies(classifier), known.texts, any(known.labels)
    with Session.opened(workspace) as session, session.progress_of(len(texts)).task("Reading texts") as task:
        result = find_fallacies(texts, classifier=loaded, on_progress=task.advance)
    scores = score_fallacies(loaded, known, seed=seed) if labelled else {}
    rows = [
        {"text": text, **asdict(one), **({"truth": label} if labelled else {})}
        for text, one, label in zip(texts, result, known.labels, strict=True)
    ]
    data = {"classifier": _facts(loaded), "texts": rows}
    if scores:
        data |= {**next(iter(scores.values())).to_dict(), "scores": _data(scores)}
    cells = [[text, one.name, f"{one.probability:.0%}"] for text, one in zip(texts, result, strict=True)]
    sure = [place for place, one in enumerate(result) if one.sure]
    figures, limit = loaded.provenance.measured, threshold_of(loaded)
    from_there = "" if limit is None else f"; {limit.precision.value:.0%} from {limit.value:.0%} on (strong)"
    trust = (
        f"Right for {figures['accuracy']:.0%} of {figures['n']:.0f} texts of climate misinformation that it had not"
        f" seen (the most frequent: {figures['constant']:.0%}){from_there}. A text that does not mislead gets a name,"
        " too."
    )
    meaning = f"{result[0].name}: {result[0].meaning} " if len(texts) == 1 else ""
    table = Table.of("", ["text", "most probable", "probability"], cells, left=2, strong=sure, note=meaning + trust)
    return Shown(data, [table, *_tables(scores)], rows)


def evaluate_fallacies(
    classifier: str,
    labels: Path,
    *,
    text: str = "text",
    truth: str | None = None,
    apart: Sequence[Path] = (),
    include_trained: bool = False,
    limit: int | None = None,
    encoder: str = "local:minilm",
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Score a classifier on labelled texts it was not trained on.

    Args:
        classifier: File of train; or fallacies, claims (bundled).
        labels: Table of texts and labels.
        text: Column of the texts.
        truth: Column of the labels; by default fallacy or cards_claim, as in FLICC.
        apart: Table whose texts and their near-duplicates are left out (the training data); repeat.
        include_trained: Also score items of the training data.
        limit: Number of items drawn at random; all by default.
        encoder: Encoder whose vectors are used, or none.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session loads the encoder.

    Raises:
        InputError: A table cannot be used, or nothing is left of it.
    """
    from climassay.factcheck.fallacies import load_fallacies, score_fallacies, subject_of

    loaded = load_fallacies(classifier)
    given = _labelled_texts(labels, text, truth or subject_of(loaded).column)
    fresh = [place for place, one in enumerate(given.texts) if include_trained or not loaded.provenance.knows(one)]
    kept = given.at(fresh)
    if apart:
        others = [one for file in apart for one, _ in text_rows(file, text)]
        with Session.opened(workspace) as session:
            kept = kept.without(others, None if encoder == "none" else session.encoder(encoder))
    if not kept:
        raise InputError(f"{labels} has no text that the classifier was not trained on.")
    scores = score_fallacies(loaded, kept.drawn(limit, seed), seed=seed)
    left = len(given) - len(kept)
    data = {
        "classifier": _facts(loaded),
        "left_out": left,
        **next(iter(scores.values())).to_dict(),
        "scores": _data(scores),
    }
    notes = [f"{left} texts left out: training texts, or nearly equal to one."] if left else []
    return Shown(data, _tables(scores), noted=notes)


def train_fallacies(
    labels: Path,
    output: Path,
    *,
    subject: str = "fallacies",
    text: str = "text",
    truth: str | None = None,
    encoder: str = "local:minilm",
    model: str | None = None,
    layers: Sequence[int] = (24,),
    folds: int = 5,
    precision: float = 0.8,
    limit: int | None = None,
    licence: str = "",
    seed: int = 0,
    workspace: Place = None,
) -> Shown:
    """Train a classifier; its features are chosen by log loss on folds that share no near-duplicates.

    Args:
        labels: Table of texts and labels.
        output: File to save the classifier in.
        subject: ``fallacies`` or ``claims``.
        text: Column of the texts.
        truth: Column of the labels; by default fallacy or cards_claim, as in FLICC.
        encoder: Encoder whose vectors are used, or none.
        model: Local model whose hidden states are also tried as features.
        layers: Layer of that model, 24 by default; repeat for several.
        folds: Number of cross-validation folds.
        precision: Wanted share of right answers above the threshold.
        limit: Number of items drawn at random; all by default.
        licence: Licence of the data, stored with the classifier.
        seed: Seed of samples, splits, folds and resampling.
        workspace: Whose session loads the encoder.

    Raises:
        InputError: The table or the file cannot be used.
        ModelError: The model cannot be loaded.
    """
    from climassay.factcheck import fallacies
    from climassay.learning import Provenance

    check_model_path(output)
    wanted = fallacies.SUBJECTS[subject]
    given = _labelled_texts(labels, text, truth or wanted.column).drawn(limit, seed)
    facts = Provenance(
        data=labels.name,
        data_sha256=hashlib.sha256(read_bytes(labels)).hexdigest(),
        licence=licence,
        trained_on=tuple(dict.fromkeys(map(words_id, given.texts))),
    )
    with (
        Session.opened(workspace) as session,
        open_weights(model) as weights,
        session.progress.task("Reading texts") as task,
    ):
        trained = fallacies.train_fallacies(
            given,
            wanted,
            encoder=session.encoder(encoder),
            model=weights,
            layers=tuple(layers),
            folds=folds,
            seed=seed,
            precision=precision,
            provenance=facts,
            on_progress=task.advance,
        )
    trained.classifier.save(output)
    chosen = trained.chosen
    data = {
        "output": output,
        "chosen": chosen.spec.name,
        "classifier": _facts(trained.classifier),
        "left_out": len(given) - chosen.evaluation.n,
        **chosen.evaluation.to_dict(),
        "tried": [{"name": one.spec.name, "scores": one.evaluation.to_dict()} for one in trained.tried],
    }
    said = [f"Chosen: {chosen.spec.name}; written to {output}."]
    if (one := fallacies.threshold_of(trained.classifier)) is not None:
        kept, right = one.yield_.value, one.precision.value
        said.append(f"From a probability of {one.value:.2f} on, {right:.0%} are right ({kept:.0%} of the texts).")
    tables = [comparison_table([(one.spec.name, one.evaluation) for one in trained.tried])]
    return Shown(data, [*tables, *chosen.evaluation.tables()], said=said)


def _facts(loaded: "TextClassifier") -> dict[str, Any]:
    return {**card(loaded.provenance), "sources": loaded.sources, "classes": loaded.classes}


def _data(scores: "dict[str, Evaluation]") -> dict[str, Any]:
    return {name: one.to_dict() for name, one in scores.items()}


def _tables(scores: "dict[str, Evaluation]") -> list[Table]:
    return [replace(one, title=f"{one.title}: {name}") for name, each in scores.items() for one in each.tables()]
