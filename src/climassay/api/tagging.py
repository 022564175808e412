"""Confidence taggers: predict the confidence that the IPCC would state, and measure the predictions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from climassay.errors import InputError
from climassay.io import require_column
from climassay.judging.settings import InsertMode
from climassay.reporting import Table
from climassay.reporting.results import AssembledResult
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.confidence.tagging import LabelledTable, Tagger
    from climassay.learning import ClassifierSpec
    from climassay.learning.text_classifier import TrainingTexts

BUNDLED = "bundled"


def tag_statements(
    text: str | Sequence[str],
    tagger: str = BUNDLED,
    *,
    context: str = "",
    column: str | None = None,
    context_column: str | None = None,
    mix: str = "natural",
    workspace: Place = None,
) -> AssembledResult:
    """Predict the level of confidence that the IPCC would state, for a statement or for every row of a table.

    Args:
        text: A statement, a table of statements, or a file written by ``climassay confidence extract``; or several of
            these.
        context: Sentences around a statement given as text.
        column: Column of a table that contains the statements; not needed for files of ``climassay confidence
            extract``.
        context_column: Column of a table that contains the statements' contexts.
        tagger: File of a trained tagger, or ``bundled``.
        mix: Assumed frequencies of the levels, lowest level first: natural (as in training), equal, or relative
            frequencies such as 50,100,100,50. Tags for equal frequencies are always shown as well.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: There is no statement, a file cannot be read, the tagger does not exist, or ``mix`` is invalid.
    """
    from climassay.confidence.tagging.opened import open_tagger
    from climassay.confidence.tagging.statement_rows import load_rows
    from climassay.learning import reweight

    statements = load_rows(text, context, column, context_column)
    texts = [row.item for row in statements]
    opened_tagger = open_tagger(None if tagger == BUNDLED else Path(tagger))
    loaded_tagger = opened_tagger.tagger
    levels, shares = loaded_tagger.levels, loaded_tagger.shares
    assumed_shares: tuple[float, ...] | None = None
    if mix != "natural":
        try:
            assumed_shares = (1.0,) * len(levels) if mix == "equal" else tuple(map(float, mix.split(",")))
        except ValueError:
            raise InputError(f"--mix is natural, equal or shares as 50,100,100,50; got {mix!r}.") from None
        loaded_tagger.for_mix(assumed_shares)  # refuses impossible shares before texts are read
    total = len(texts) * max(1, len(loaded_tagger.sources))
    with (
        Session.opened(workspace) as session,
        session.progress_of(len(texts)).task("Tagging", total) as task,
    ):
        probabilities = loaded_tagger.for_mix(None).predict_proba(texts, on_progress=task.advance)
    equal_probabilities = reweight(probabilities, shares)
    if assumed_shares is not None:
        probabilities = reweight(probabilities, shares, assumed_shares)

    def prediction_data(row: Any) -> dict[str, Any]:
        return {"tag": levels[int(row.argmax())], "probabilities": dict(zip(levels, row.tolist(), strict=True))}

    rows = [
        {**statement.copied_fields, **prediction_data(row), "equal_shares": prediction_data(equal_row)}
        for statement, row, equal_row in zip(statements, probabilities, equal_probabilities, strict=True)
    ]
    cells = [
        (row["statement"], row["tag"], row["equal_shares"]["tag"], *map("{:.0%}".format, row["probabilities"].values()))
        for row in rows
    ]
    note = ""
    if opened_tagger.equal_accuracy is not None:
        note = (
            f"Natural mix, right for the text of reports: {opened_tagger.accuracy}. Equal shares, right for single "
            f"statements and to find rare levels: {opened_tagger.equal_accuracy}. A hint, no assessment."
        )
    headings = ("statement", f"tag, {mix} mix", "tag, equal shares", *levels)
    data = {"tagger": _describe_tagger(loaded_tagger), "mix": mix, "statements": rows}
    return AssembledResult(data, (Table.of("", headings, cells, left_columns=3, note=note),), rows)


def train_tagger(
    labels: Path | str,
    output: Path | str,
    *,
    paragraphs: Path | str | None = None,
    methods: Sequence[str] = (),
    model: str = "local:smollm2",
    layer: int = 20,
    folds: int = 5,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Train a tagger, choosing its features by log loss in cross-validation.

    All statements of a section are in the same fold.

    Args:
        labels: ClimateX's table (.tsv or .csv), or JSON lines written by ``climassay confidence extract``.
        output: File to save the tagger in.
        paragraphs: File of the reports' paragraphs, from which the contexts of ClimateX's statements are recovered.
        methods: Names of taggers to try; by default all that use no language model.
        model: Local model whose hidden states are the features of some taggers.
        layer: Layer of the hidden states; -1 is the last layer.
        folds: Number of cross-validation folds.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The labels cannot be read, or a tagger does not exist.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence import tagging
    from climassay.confidence.tagging.tagger_scores import TaggerScores
    from climassay.learning import Provenance
    from climassay.learning.model_file import check_model_path

    output = Path(output)
    check_model_path(output)
    table = tagging.read_labelled(Path(labels), None if paragraphs is None else Path(paragraphs))
    specs = tagging.find_specs(methods)
    with (
        Session.opened(workspace) as session,
        _open_training(session, table, specs, model, layer) as (training, on_fit),
    ):
        result = tagging.train_tagger(
            table.items,
            training,
            specs=specs,
            folds=folds,
            seed=seed,
            provenance=Provenance(data=table.name, data_sha256=table.sha256, licence=table.licence),
            on_fit=on_fit,
        )
    result.classifier.save(output)
    name, scores = result.chosen.spec.name, TaggerScores.compare(result.candidates, training, seed)
    data = {
        "tagger": output,
        "chosen": name,
        "card": _describe_tagger(result.classifier),
        "candidates": scores.to_list(),
    }
    sentences = (f"Chosen: {name}; written to {output}.", *scores.notes())
    return AssembledResult(data, [*scores.tables()], printed_lines=sentences, noted=table.notes)


def evaluate_tagger(
    labels: Path | str,
    tagger: str | None = None,
    *,
    paragraphs: Path | str | None = None,
    methods: Sequence[str] = (),
    model: str = "local:smollm2",
    layer: int = 20,
    split_by: Literal["statement", "document"] = "statement",
    include_trained: bool = False,
    limit: int | None = None,
    folds: int = 5,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Score a trained tagger on statements with known levels, or cross-validate several kinds of taggers.

    Args:
        labels: ClimateX's table (.tsv or .csv), or JSON lines written by ``climassay confidence extract``.
        tagger: ``bundled`` or the file of a trained tagger; None cross-validates ``methods``.
        paragraphs: File of the reports' paragraphs, from which the contexts of ClimateX's statements are recovered.
        methods: Names of taggers to try; by default all that use no language model.
        model: Local model whose hidden states are the features of some taggers.
        layer: Layer of the hidden states; -1 is the last layer.
        split_by: Whether test folds share no ``statement``, or no ``document``, with their training data.
        include_trained: Whether statements of the training data are scored as well.
        limit: Number of statements to draw at random; by default all are used.
        folds: Number of cross-validation folds.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Returns:
        The scores, with the best tagger's held-out probabilities as rows.

    Raises:
        InputError: The labels cannot be read, or the tagger was trained on all of them.
        ModelError: The model cannot be loaded.
    """
    import numpy as np

    from climassay.confidence.tagging import TAGGER_LEVELS, evaluate_on_mixes, find_specs, read_labelled
    from climassay.confidence.tagging.tagger_scores import TaggerScores
    from climassay.learning import sample
    from climassay.learning.text_classifier import class_indices, compare_classifiers

    table = read_labelled(Path(labels), None if paragraphs is None else Path(paragraphs))
    items = table.items
    notes = [*table.notes]
    if tagger is not None:
        loaded_tagger = _load_tagger(tagger).for_mix(None)
        if loaded_tagger.levels != TAGGER_LEVELS:
            raise InputError(f"{tagger} predicts levels other than {', '.join(TAGGER_LEVELS)}.")
        source = loaded_tagger.provenance
        if not include_trained:
            items = tuple(item for item in items if not source.was_trained_on(item.item.text))
        if not items or (source.data_sha256 == table.sha256 and not include_trained):
            raise InputError(f"{tagger} was trained on {table.name}: test it on other statements, or leave MODEL out.")
        if n_omitted := len(table.items) - len(items):
            notes.append(f"{n_omitted} statements are left out: the tagger was trained on them.")
    n_unseen, items = len(items), sample(items, limit, seed)
    if tagger is not None:
        probabilities = loaded_tagger.predict_proba([item.item for item in items])
        truth, sections = class_indices([item.tag for item in items], TAGGER_LEVELS), [item.section for item in items]
        by_mix = evaluate_on_mixes(truth, probabilities, sections, shares=loaded_tagger.shares, seed=seed)
        scores = TaggerScores({Path(tagger).name: by_mix})
    else:
        specs = find_specs(methods)
        documents = np.unique([item.document for item in items], return_inverse=True)[1]
        groups = documents if split_by == "document" else None
        with (
            Session.opened(workspace) as session,
            _open_training(session, replace(table, items=items), specs, model, layer) as (training, on_fit),
        ):
            candidates = compare_classifiers(specs, training, fold_groups=groups, folds=folds, seed=seed, on_fit=on_fit)
        scores = TaggerScores.compare(candidates, training, seed)
        probabilities = min(candidates, key=lambda candidate: candidate.evaluation.log_loss.value).probabilities
    rows = [
        {
            "id": item.id or str(position),
            "statement": item.item.text,
            "authors": item.tag,
            "tag": TAGGER_LEVELS[int(row.argmax())],
            "probabilities": dict(zip(TAGGER_LEVELS, row.tolist(), strict=True)),
        }
        for position, (item, row) in enumerate(zip(items, probabilities, strict=True), start=1)
    ]
    data = {
        "file": Path(labels),
        "statements": len(items),
        "left_out": len(table.items) - n_unseen,
        "notes": table.notes,
        "apart": split_by,
        "scores": scores.to_list(),
    }
    return AssembledResult(data, [*scores.tables()], rows, printed_lines=scores.notes(), noted=notes)


def insert_statements(
    text: str | Sequence[str],
    labelled: Path | str,
    *,
    context: str = "",
    column: str | None = None,
    context_column: str | None = None,
    paragraphs: Path | str | None = None,
    truth: str | None = None,
    by: str | None = None,
    limit: int | None = None,
    model: str = "local:smollm2",
    probe: Literal["ppairs", "pointwise"] = "ppairs",
    layer: int = 20,
    train_items: int = 100,
    train_by: Literal["level", "cycle"] = "level",
    context_sentences: int = 0,
    mode: InsertMode = "three-way",
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Tag statements with a probe that compares each of them with statements of known level (PPairS).

    Args:
        text: A statement, a table of statements, or a file written by ``climassay confidence extract``; or several of
            these.
        context: Sentences around a statement given as text.
        column: Column of a table that contains the statements; not needed for files of ``climassay confidence
            extract``.
        context_column: Column of a table that contains the statements' contexts.
        labelled: Statements of known level: ClimateX's table (.tsv or .csv), or JSON lines written by ``climassay
            confidence extract``.
        paragraphs: File of the reports' paragraphs, from which the contexts of ClimateX's statements are recovered.
        truth: Column of the authors' levels, with which the tags are compared; ``tag`` in files of ``climassay
            confidence extract``.
        by: Column by whose values the scores are broken down, for example cycle.
        limit: Number of statements to draw at random, separately for each value of the column ``by`` if it is named; by
            default all are used.
        model: Local model whose hidden states are the features.
        probe: Kind of probe: ``ppairs`` on contrast pairs of statements, or ``pointwise`` on single statements.
        layer: Layer of the hidden states; -1 is the last layer.
        train_items: Number of labelled statements on which the probe is trained.
        train_by: ``level`` draws the training statements evenly over levels. ``cycle`` draws them evenly over
            assessment cycles, as in the thesis; new statements are then compared with the same number of other
            statements from the latest cycle.
        context_sentences: Number of context sentences in the prompt of each statement (5 in the thesis).
        mode: Rule by which two statements count as equal: ``three-way`` for the most frequent of three answers,
            ``band`` for a probability near one half, or the rule as printed in the thesis.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: A file cannot be read, a column does not exist or contains no levels, or there are too few labelled
            statements.
        ModelError: The model cannot be loaded.
    """
    from climassay.confidence.tagging import read_labelled
    from climassay.confidence.tagging.insertion import sample_balanced, sample_latest_anchors, train_insertion
    from climassay.confidence.tagging.statement_rows import load_rows, select_unseen
    from climassay.confidence.tagging.tagger_scores import make_accuracy_table, score_by_value
    from climassay.judging.judges import open_weights
    from climassay.learning import sample

    if by is not None and truth is None:
        raise InputError("--by breaks down the comparison with --truth: name the column of the authors' levels, too.")
    statements = load_rows(text, context, column, context_column)
    names = list(dict.fromkeys(name for row in statements for name in row.fields))
    truth = require_column("The table", names, truth, "--truth") if truth else None
    by = require_column("The table", names, by, "--by") if by else None
    table = read_labelled(Path(labelled), None if paragraphs is None else Path(paragraphs))
    training = sample_balanced(table.items, train_items, by=train_by, seed=seed)
    anchors = sample_latest_anchors(table.items, training, train_items, seed=seed) if train_by == "cycle" else training
    notes = list(table.notes)
    if truth is not None:
        statements, note = select_unseen(statements, truth, (*training, *anchors))
        notes.append(note)
    if limit is not None:
        groups = defaultdict(list)
        for row in statements:
            groups[row.value(by)].append(row)
        statements = [row for group in groups.values() for row in sample(group, limit, seed)]
    texts = [row.item for row in statements]
    with Session.opened(workspace) as session:
        loaded_model = open_weights(session.load(model), "The probe")
        with session.progress.task("Comparing") as training_task, session.progress.task("Inserting") as tagging_task:
            tagger = train_insertion(
                training,
                loaded_model,
                method=probe,
                layers=(layer,),
                context=context_sentences,
                anchors=anchors,
                mode=mode,
                store=session.activations,
                seed=seed,
                on_progress=training_task.advance,
            )
            tagging_task.update(total=len(texts))
            tags = tagger.predict(texts, on_progress=tagging_task.advance)
    tagged_rows = list(zip(statements, tags, strict=True))
    rows = [{**row.copied_fields, "tag": tag} for row, tag in tagged_rows]
    accuracy, baseline = tagger.trained.accuracy, tagger.trained.longer
    evidence = {
        "trained_on": len(training),
        "train_by": train_by,
        "anchors": len(tagger.anchors),
        "levels": tagger.levels,
        "mode": mode,
        "pair_accuracy": accuracy,
        "longer_is_more": baseline,
        "failed": tagger.trained.failed,
    }
    note_on_probe = (
        f"The probe ordered {accuracy.value:.0%} [{accuracy.low:.0%}, {accuracy.high:.0%}] of {accuracy.n} pairs of "
        "held-out statements of different levels as their authors did; "
        f"that the longer one is the more confident is right for {baseline.value:.0%}."
    )
    cells = [(row["statement"], row["tag"]) for row in rows]
    tables = [Table.of("", ("statement", "tag"), cells, left_columns=2, note=note_on_probe)]
    data: dict[str, Any] = {"probe": evidence, "notes": notes, "statements": rows}
    if truth is not None:
        scores = score_by_value([(row.level(truth), tag, row.value(by)) for row, tag in tagged_rows], seed)
        tables.append(make_accuracy_table(scores, by))
        data["scores"] = {name: evaluation.to_dict() for name, evaluation in scores.items()}
    return AssembledResult(data, tuple(tables), rows, noted=tuple(notes))


def _load_tagger(tagger: str) -> "Tagger":
    from climassay.confidence.tagging import BUNDLED_TAGGER, load_tagger

    return load_tagger(BUNDLED_TAGGER if tagger == BUNDLED else Path(tagger))


@contextmanager
def _open_training(
    session: Session, table: "LabelledTable", specs: "tuple[ClassifierSpec, ...]", model: str, layer: int
) -> "Iterator[tuple[TrainingTexts, Callable[[], None]]]":
    """Yield the training data, and a callback that must be called after each tagger is fitted."""
    from climassay.confidence.tagging.tagger import make_training_texts
    from climassay.judging.judges import open_weights
    from climassay.learning.features import FeatureModels, needs_model

    reads_states = any(needs_model(spec.sources) for spec in specs)
    weights = open_weights(session.load(model), "The tagger") if reads_states else None
    with (
        session.progress.task("Reading statements") as reading_task,
        session.progress.task("Trying taggers", len(specs)) as fitting_task,
    ):
        models = FeatureModels(session.encoder(), weights, layer)
        yield make_training_texts(table.items, models, on_progress=reading_task.advance), fitting_task.advance


def _describe_tagger(tagger: "Tagger") -> dict[str, Any]:
    facts = {"shares": tagger.shares, "sources": tagger.sources, "levels": tagger.levels}
    return {**tagger.provenance.summary(), **facts}
