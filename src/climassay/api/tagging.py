"""Confidence taggers: predict the confidence that the IPCC would state, and measure the predictions."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from climassay.api.learned import (
    check_model_path,
    comparison_table,
    is_table,
    open_weights,
    provenance_data,
    read_text_rows,
)
from climassay.claim_identity import bare_words
from climassay.confidence.statement import read_statements
from climassay.confidence.vocabulary import LEVELS
from climassay.errors import InputError
from climassay.io import require_column
from climassay.judging.settings import InsertMode
from climassay.reporting import Table, percent, percent_interval
from climassay.reporting.results import Shown
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.confidence.tagging import LabelledTable, Taggable, Tagger
    from climassay.confidence.tagging.labelled import LabelledItem
    from climassay.confidence.vocabulary import Level
    from climassay.learning import ClassifierSpec, HeldOutScores
    from climassay.learning.text_classifier import TrainingTexts

    _Scores = list[tuple[str, dict[str, HeldOutScores]]]

BUNDLED = "bundled"
_EXTRACTED_FIELDS = ("report", "document", "cycle", "working_group", "chapter", "page")
"""Fields of extracted statements that are copied to the results, besides id, text and level."""
_RESULT_FIELDS = ("statement", "tag", "probabilities", "equal_shares")
_MIXES = {
    "natural": "Levels as frequent as in these statements: for the text of reports, tagged as it comes",
    "equal": "All levels equally frequent: for single statements, and where rare levels have to be found",
    "climatex": "ClimateX's test mix, 50:100:100:50: for comparison with published figures",
}


class _TextRow(NamedTuple):
    """A statement to tag, with the fields of its row."""

    item: "Taggable"
    fields: Mapping[str, Any]
    """All fields of the row by their names in the file; empty for a statement that was passed as text."""
    copied_fields: dict[str, Any]
    """Fields that are copied to the results, including ``statement``."""

    def level(self, column: str) -> "Level | None":
        """Return the level in a column, spelt like ``very_high`` or ``High confidence``; None if there is none."""
        label = str(self.fields.get(column) or "").casefold().replace("_", " ").replace("-", " ")
        level_words = label.removesuffix("confidence").split()
        return next((level for level in LEVELS if level.split() == level_words), None)

    def value(self, column: str | None) -> str:
        """Return the cell of a column as text: ``unknown`` if the cell is empty, ``""`` if ``column`` is None."""
        return "" if column is None else str(self.fields.get(column) or "unknown")


def _load_rows(
    text: str | Sequence[str], context: str, column: str | None, context_column: str | None
) -> "list[_TextRow]":
    rows = [row for item in one_or_several(text) for row in _read_rows(item, context, column, context_column)]
    if not rows:
        raise InputError("There is nothing to tag: the list of statements is empty.")
    return rows


def _read_rows(text: str, context: str, column: str | None, context_column: str | None) -> "list[_TextRow]":
    if column is None and context_column is None:
        if not text.strip():
            raise InputError("There is nothing to tag: give a statement in quotes, or a file and --text COLUMN.")
        if not is_table(text):
            return [_TextRow((text, context), {}, {"statement": text})]
        if Path(text).suffix == ".jsonl":
            try:
                statements = read_statements(Path(text))
            except InputError as error:
                hint = "Of other tables, name the column of the statements with --text COLUMN."
                raise InputError(f"{error} {hint}") from None
            if not statements:
                raise InputError(f"{text} has no statements.")
            return [
                _TextRow(
                    statement,
                    fields := asdict(statement),
                    {"id": statement.id, "statement": statement.text, "authors": statement.tag}
                    | {name: fields[name] for name in _EXTRACTED_FIELDS},
                )
                for statement in statements
            ]
    if column is None:
        raise InputError(f"{text} is a file: name the column of its statements with --text COLUMN.")
    results = []
    for row in read_text_rows(Path(text), column, context_column):
        # Columns named as those of the results keep their values under another name.
        other_columns = {
            f"{name} (file)" if name in _RESULT_FIELDS else name: value for name, value in row.remaining.items()
        }
        id_field = {"id": other_columns.pop("id")} if "id" in other_columns else {}
        copied_fields = {**id_field, "statement": row.text, **other_columns}
        results.append(_TextRow((row.text, row.other), row.remaining, copied_fields))
    return results


def tag_statements(
    text: str | Sequence[str],
    tagger: str = BUNDLED,
    *,
    context: str = "",
    column: str | None = None,
    context_column: str | None = None,
    mix: str = "natural",
    workspace: Place = None,
) -> Shown:
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
    from climassay.learning import reweight

    statements = _load_rows(text, context, column, context_column)
    texts = [row.item for row in statements]
    loaded_tagger = _load_tagger(tagger)
    mixed_tagger = loaded_tagger
    if mix != "natural":
        try:
            shares = (1.0,) * len(loaded_tagger.levels) if mix == "equal" else tuple(map(float, mix.split(",")))
        except ValueError:
            raise InputError(f"--mix is natural, equal or shares as 50,100,100,50; got {mix!r}.") from None
        mixed_tagger = loaded_tagger.for_mix(shares)
    total = len(texts) * max(1, len(loaded_tagger.sources))
    with (
        Session.opened(workspace) as session,
        session.progress_of(len(texts)).task("Tagging", total) as task,
    ):
        natural_probabilities = loaded_tagger.for_mix(None).predict_proba(texts, on_progress=task.advance)
    equal_probabilities = reweight(natural_probabilities, loaded_tagger.shares)
    probabilities = (
        natural_probabilities
        if mixed_tagger.mix is None
        else reweight(natural_probabilities, loaded_tagger.shares, mixed_tagger.mix)
    )

    def prediction_data(row: Any) -> dict[str, Any]:
        shares = row.tolist()
        return {
            "tag": loaded_tagger.levels[int(row.argmax())],
            "probabilities": dict(zip(loaded_tagger.levels, shares, strict=True)),
        }

    rows = [
        {**statement.copied_fields, **prediction_data(row), "equal_shares": prediction_data(equal_row)}
        for statement, row, equal_row in zip(statements, probabilities, equal_probabilities, strict=True)
    ]
    cells = [
        (row["statement"], row["tag"], row["equal_shares"]["tag"], *map("{:.0%}".format, row["probabilities"].values()))
        for row in rows
    ]
    headings = ("statement", f"tag, {mix} mix", "tag, equal shares", *loaded_tagger.levels)
    measurements, note = loaded_tagger.provenance.measured, ""
    if "equal_accuracy" in measurements:
        natural_range, equal_range = (
            f"{measurements[name]:.0%} [{measurements[f'{name}_low']:.0%}, {measurements[f'{name}_high']:.0%}]"
            for name in ("accuracy", "equal_accuracy")
        )
        max_share = max(loaded_tagger.shares)
        most_frequent_level = loaded_tagger.levels[loaded_tagger.shares.index(max_share)]
        note = (
            f"Measured on {measurements['n']:,.0f} statements not seen in training. Natural mix, right for text of "
            f"reports where most is stated with {most_frequent_level} confidence: "
            f"{natural_range} of answers are the authors' (always that level: {max_share:.0%}). Equal shares, "
            f"right for single statements and to find rare levels: {equal_range} where all levels are equally frequent "
            f"(chance: {1 / len(loaded_tagger.levels):.0%}). A hint, no assessment."
        )
    data = {"tagger": _describe_tagger(loaded_tagger), "mix": mix, "statements": rows}
    return Shown(data, (Table.of("", headings, cells, left=3, note=note),), rows)


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
) -> Shown:
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
    from climassay.learning import Provenance

    labels, output = Path(labels), Path(output)
    paragraphs = None if paragraphs is None else Path(paragraphs)
    check_model_path(output)
    table, specs = tagging.read_labelled(labels, paragraphs), _find_specs(methods)
    source = Provenance(data=table.name, data_sha256=table.sha256, licence=table.licence)
    with (
        Session.opened(workspace) as session,
        _open_training(session, table, specs, model, layer) as (training, on_fit),
    ):
        training_result = tagging.train_tagger(
            table.items, training, specs=specs, folds=folds, seed=seed, provenance=source, on_fit=on_fit
        )
    classifier, name = training_result.classifier, training_result.chosen.spec.name
    classifier.save(output)
    scores = [
        (
            candidate.spec.name,
            tagging.evaluate_on_mixes(training.truth, candidate.probabilities, training.groups, seed=seed),
        )
        for candidate in training_result.candidates
    ]
    data = {
        "tagger": output,
        "chosen": name,
        "card": _describe_tagger(classifier),
        "candidates": _convert_scores(scores),
    }
    sentences = (f"Chosen: {name}; written to {output}.", *_note_missing_mixes(scores))
    return Shown(data, _make_score_tables(scores), printed_lines=sentences, noted=table.notes)


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
) -> Shown:
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

    from climassay.confidence.tagging import TAGGER_LEVELS, evaluate_on_mixes, read_labelled
    from climassay.learning import sample
    from climassay.learning.text_classifier import class_indices, compare_classifiers

    labels = Path(labels)
    paragraphs = None if paragraphs is None else Path(paragraphs)
    table = read_labelled(labels, paragraphs)
    items, n_omitted = table.items, 0
    scores: _Scores
    if tagger is not None:
        loaded_tagger = _load_tagger(tagger).for_mix(None)
        if loaded_tagger.levels != TAGGER_LEVELS:
            raise InputError(f"{tagger} predicts levels other than {', '.join(TAGGER_LEVELS)}.")
        source = loaded_tagger.provenance
        if not include_trained:
            items = tuple(item for item in items if not source.was_trained_on(item.item.text))
        n_omitted = len(table.items) - len(items)
        if not items or (source.data_sha256 == table.sha256 and not include_trained):
            raise InputError(f"{tagger} was trained on {table.name}: test it on other statements, or leave MODEL out.")
        items = sample(items, limit, seed)
        probabilities = loaded_tagger.predict_proba([item.item for item in items])
        truth, sections = class_indices([item.tag for item in items], TAGGER_LEVELS), [item.section for item in items]
        scores = [
            (
                Path(tagger).name,
                evaluate_on_mixes(truth, probabilities, sections, shares=loaded_tagger.shares, seed=seed),
            )
        ]
    else:
        items = sample(items, limit, seed)
        table, specs = replace(table, items=items), _find_specs(methods)
        documents = np.unique([item.document for item in items], return_inverse=True)[1]
        with (
            Session.opened(workspace) as session,
            _open_training(session, table, specs, model, layer) as (training, on_fit),
        ):
            groups = documents if split_by == "document" else None
            candidates = compare_classifiers(specs, training, fold_groups=groups, folds=folds, seed=seed, on_fit=on_fit)
        scores = [
            (
                candidate.spec.name,
                evaluate_on_mixes(training.truth, candidate.probabilities, training.groups, seed=seed),
            )
            for candidate in candidates
        ]
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
        "file": labels,
        "statements": len(items),
        "left_out": n_omitted,
        "notes": table.notes,
        "apart": split_by,
        "scores": _convert_scores(scores),
    }
    notes = [*table.notes]
    if n_omitted:
        notes.append(f"{n_omitted} statements are left out: the tagger was trained on them.")
    return Shown(data, _make_score_tables(scores), rows, printed_lines=_note_missing_mixes(scores), noted=notes)


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
) -> Shown:
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
    from climassay.learning import sample

    labelled = Path(labelled)
    paragraphs = None if paragraphs is None else Path(paragraphs)
    if by is not None and truth is None:
        raise InputError("--by breaks down the comparison with --truth: name the column of the authors' levels, too.")
    statements = _load_rows(text, context, column, context_column)
    names = list(dict.fromkeys(name for row in statements for name in row.fields))
    truth = require_column("The table", names, truth, "--truth") if truth else None
    by = require_column("The table", names, by, "--by") if by else None
    table = read_labelled(labelled, paragraphs)
    training = sample_balanced(table.items, train_items, by=train_by, seed=seed)
    anchors = sample_latest_anchors(table.items, training, train_items, seed=seed) if train_by == "cycle" else training
    notes = list(table.notes)
    if truth is not None:
        statements, note = _select_unseen(statements, truth, (*training, *anchors))
        notes.append(note)
    if limit is not None:
        groups = defaultdict(list)
        for row in statements:
            groups[row.value(by)].append(row)
        statements = [row for group in groups.values() for row in sample(group, limit, seed)]
    texts = [row.item for row in statements]
    with Session.opened(workspace) as session, open_weights(model) as loaded_model:
        assert loaded_model is not None
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
    tables = [Table.of("", ("statement", "tag"), cells, left=2, note=note_on_probe)]
    data: dict[str, Any] = {"probe": evidence, "notes": notes, "statements": rows}
    if truth is not None:
        scores = _score_by_value([(row.level(truth), tag, row.value(by)) for row, tag in tagged_rows], seed)
        tables.append(_make_accuracy_table(scores, by))
        data["scores"] = {name: evaluation.to_dict() for name, evaluation in scores.items()}
    return Shown(data, tuple(tables), rows, noted=tuple(notes))


def _select_unseen(
    statements: "Sequence[_TextRow]", truth: str, training_items: "Sequence[LabelledItem]"
) -> "tuple[list[_TextRow], str]":
    """Return the statements with a level that are not among ``training_items``, and a note on the omitted ones."""
    from climassay.confidence.tagging.labelled import TaggingItem

    labelled_rows = [row for row in statements if row.level(truth) is not None]
    if not labelled_rows:
        raise InputError(f"The column {truth!r} holds no level of confidence, such as {', '.join(LEVELS)}.")
    known_words = {bare_words(item.item.text) for item in training_items}
    unseen_rows = [row for row in labelled_rows if bare_words(TaggingItem.convert(row.item).text) not in known_words]
    if not unseen_rows:
        raise InputError("No statement is left to tag: the probe was trained on all of them or compares with them.")
    return unseen_rows, (
        f"Left out: {len(statements) - len(labelled_rows)} statements without a level, and "
        f"{len(labelled_rows) - len(unseen_rows)} that the probe was trained on or compares with."
    )


def _score_by_value(tagged_items: "Sequence[tuple[Level | None, Level, str]]", seed: int) -> "dict[str, HeldOutScores]":
    """Score tags overall (``all``), and by value of a column if there are several values.

    Each item of ``tagged_items`` has the authors' level, the predicted tag, and the value of the column.
    """
    import numpy as np

    from climassay.learning import evaluate

    values = sorted({value for _, _, value in tagged_items})
    results = {}
    for name in (*(values if len(values) > 1 else ()), "all"):
        pairs = [
            (LEVELS.index(level), LEVELS.index(tag))
            for level, tag, value in tagged_items
            if level and name in (value, "all")
        ]
        truth, answers = map(list, zip(*pairs, strict=True))
        results[name] = evaluate(truth, np.eye(len(LEVELS))[answers], LEVELS, seed=seed)
    return results


def _make_accuracy_table(scores: "Mapping[str, HeldOutScores]", column_name: str | None) -> Table:
    """Return a table of accuracy and macro-F1 by value of a column, with the majority-class baseline."""
    rows = [
        (
            name,
            str(group_scores.n),
            percent(group_scores.accuracy.value),
            percent_interval(group_scores.accuracy.interval),
            percent(group_scores.constant.value),
            percent(group_scores.macro_f1.value),
        )
        for name, group_scores in scores.items()
    ]
    return Table.of(
        "Tags that are the authors' (%)",
        (column_name or "", "n", "right", "95% interval", "most frequent level", "macro-F1"),
        rows,
        strong=[len(rows) - 1],
        note="A level that no anchor has, such as very low, is never given and counts as wrong.",
    )


def _load_tagger(tagger: str) -> "Tagger":
    from climassay.confidence.tagging import BUNDLED_TAGGER, load_tagger

    return load_tagger(BUNDLED_TAGGER if tagger == BUNDLED else Path(tagger))


def _find_specs(names: Sequence[str]) -> "tuple[ClassifierSpec, ...]":
    from climassay.confidence.tagging import SPECS, STATES

    specs_by_name = {spec.name: spec for spec in (*SPECS, *STATES)}
    unknown_name = next((name for name in names if name not in specs_by_name), None)
    if unknown_name is not None:
        raise InputError(f"There is no tagger {unknown_name!r} to try: there are {'; '.join(specs_by_name)}.")
    return tuple(specs_by_name[name] for name in names) if names else SPECS


@contextmanager
def _open_training(
    session: Session, table: "LabelledTable", specs: "tuple[ClassifierSpec, ...]", name: str, layer: int
) -> "Iterator[tuple[TrainingTexts, Callable[[], None]]]":
    """Yield the training data, and a callback that must be called after each tagger is fitted."""
    from climassay.confidence.tagging.tagger import make_training_texts
    from climassay.learning.features import FeatureModels, needs_model
    from climassay.models.encoders import load_encoder

    with (
        open_weights(name if any(needs_model(spec.sources) for spec in specs) else None) as model,
        session.progress.task("Reading statements") as reading_task,
        session.progress.task("Trying taggers", len(specs)) as fitting_task,
    ):
        models = FeatureModels(load_encoder(), model, layer)
        yield make_training_texts(table.items, models, on_progress=reading_task.advance), fitting_task.advance


def _describe_tagger(tagger: "Tagger") -> dict[str, Any]:
    facts = {"shares": tagger.shares, "sources": tagger.sources, "levels": tagger.levels}
    return {**provenance_data(tagger.provenance), **facts}


def _convert_scores(scores: "_Scores") -> list[dict[str, Any]]:
    return [
        {"tagger": name, **{mix: evaluation.to_dict() for mix, evaluation in mixes.items()}} for name, mixes in scores
    ]


def _make_score_tables(scores: "_Scores") -> list[Table]:
    from climassay.confidence.tagging import PUBLISHED

    tables = []
    for mix, title in _MIXES.items():
        if mix in scores[0][1]:
            tables.append(comparison_table([(name, mixes[mix]) for name, mixes in scores], title))
        if mix == "climatex" and mix in scores[0][1]:
            published_rows = tuple(
                (f"published: {name}", f"{value:.3f}", "", "", "") for name, value in PUBLISHED.items()
            )
            tables[-1] = replace(tables[-1], rows=tables[-1].rows + published_rows)
    return tables


def _note_missing_mixes(scores: "_Scores") -> tuple[str, ...]:
    from climassay.confidence.tagging import TAGGER_LEVELS

    if "equal" in scores[0][1]:
        return ()
    return (f"Other mixes need statements of each level: {', '.join(TAGGER_LEVELS)}.",)
