"""Experts' labels of generated questions: queues, progress, agreement, label files and retraining."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from climassay.api.validation import open_reader
from climassay.errors import InputError
from climassay.generation import annotation
from climassay.questions import RUBRIC_KIND, question_row, read_questions
from climassay.reporting import Table, counted
from climassay.reporting.results import AssembledResult, write_rows
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.generation.annotation import AnnotationItem
    from climassay.generation.annotation.long_answers import RubricAgreement
    from climassay.generation.dataset_store import StoredDraft
    from climassay.statistics import Estimate, ResampledEstimate

LabelFormat = Literal["jsonl", "csv", "label-studio", "argilla"]
ExportFormat = LabelFormat | Literal["rubrics", "questions"]


def open_annotation(dataset: str, *, workspace: Place = None, **changes: Any) -> AssembledResult:
    """Open a dataset for annotation, or change its annotation settings.

    Settings without a new value keep their old one.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        **changes: New settings (:class:`climassay.generation.annotation.AnnotationSettings`); None keeps a setting.

    Raises:
        InputError: The dataset does not exist, or a setting is invalid.
    """
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        changed_settings = {name: value for name, value in changes.items() if value is not None}
        settings = replace(store.settings(dataset), **changed_settings)
        store.configure(dataset, settings)
        progress = store.progress(dataset)
    data = {"dataset": dataset, "settings": settings, "items": progress.items, "open": progress.left_for_me}
    open_items = f"{progress.left_for_me} of {counted(progress.items, 'item')}"
    sentence = f"{dataset}: {open_items} to be labelled, {counted(settings.overlap, 'label')} each."
    return AssembledResult(data, printed_lines=(sentence,), noted=("Annotate in the browser: climassay serve",))


def begin_dataset(
    session: Session, dataset: str, origin: Mapping[str, Any], drafts: "Iterable[StoredDraft]", **changes: Any
) -> AssembledResult:
    """Create a dataset from drafts and open it for annotation; drafts that the dataset already has stay unchanged.

    Raises:
        InputError: The dataset exists and was created from other items.
    """
    from climassay.generation.dataset_store import DatasetStore

    store = DatasetStore(session.records)
    store.begin(dataset, dict(origin))
    existing_ids = {draft.id for draft in store.drafts(dataset)}
    store.save(dataset, [draft for draft in drafts if draft.draft.id not in existing_ids])
    return open_annotation(dataset, workspace=session, **changes)


def annotate_questions(
    questions: str | Path,
    dataset: str,
    *,
    overlap: int = 1,
    annotators: Sequence[str] = (),
    workspace: Place = None,
) -> AssembledResult:
    """Have annotators judge your own questions in the browser.

    ``climassay annotate export --format questions`` exports the accepted questions. A second call for the same dataset
    changes only its overlap and its annotators.

    Args:
        questions: File of questions with answers (JSONL, CSV ...) and, if available, their source passages; or
            ``primer``.
        dataset: Name of a new dataset for the questions.
        overlap: Number of annotators who label each question.
        annotators: User who may annotate the items; can be repeated. By default every user with the right to annotate.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read or has no question to judge, or the dataset was created from other items.
    """
    from climassay.generation.annotation.own_questions import question_drafts

    question_set = read_questions(questions)
    drafts = list(question_drafts(question_set.questions))
    n_long = len(question_set.questions) - len(drafts)
    if not drafts:
        raise InputError(
            f"{questions} has only long-form questions: climassay annotate rubrics has people write their rubrics."
        )
    with Session.opened(workspace) as session:
        changes = {"overlap": overlap, "annotators": tuple(annotators) or None}
        result = begin_dataset(session, dataset, {"questions": question_set.sha256}, drafts, **changes)
    notes = [f"{counted(n_long, 'long-form question')} left out: see climassay annotate rubrics."] if n_long else []
    return replace(result, noted=(*question_set.skipped, *notes, *result.noted))


def annotate_answers(
    run: str, dataset: str, *, overlap: int = 1, annotators: Sequence[str] = (), workspace: Place = None
) -> AssembledResult:
    """Have annotators judge a model's freeform answers in the browser, without showing them the model's name.

    For long answers, use ``climassay evaluate blind --dataset``.

    Args:
        run: Id of a run of ``climassay evaluate run``; ``climassay records runs`` lists them.
        dataset: Name of a new dataset for the answers.
        overlap: Number of annotators who label each answer.
        annotators: User who may annotate the items; can be repeated. By default every user with the right to annotate.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The run does not exist or has no freeform answer, or the dataset was created from other items.
    """
    from climassay import evaluation
    from climassay.generation.annotation.own_questions import answer_drafts

    with Session.opened(workspace) as session:
        drafts = answer_drafts(evaluation.load_experiment(session.records, run))
        if not drafts:
            raise InputError(f"The run {run} has no freeform answer to be judged.")
        changes = {"overlap": overlap, "annotators": tuple(annotators) or None}
        return begin_dataset(session, dataset, {"answers": run}, drafts, **changes)


def collect_rubrics(
    questions: str | Path, dataset: str, *, overlap: int = 2, workspace: Place = None
) -> AssembledResult:
    """Have annotators write rubrics for long-form questions in the browser.

    ``climassay annotate export --format rubrics`` exports the finished rubrics. A second call for the same dataset
    changes only its overlap.

    Args:
        questions: File of long-form questions (JSONL, CSV, .txt ...), with or without initial rubrics.
        dataset: Name of a new dataset for the questions.
        overlap: Number of annotators who write a rubric for each question.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read or has no long-form question, or the dataset was created from other items.
    """
    from climassay.generation.annotation.long_answers import rubric_drafts

    question_set = read_questions(questions)
    long_questions = question_set.of_kind(RUBRIC_KIND)
    if not long_questions:
        raise InputError(
            f"{questions} has no long-form question, for which rubrics are written: where one has an answer and no "
            "rubric, its kind must be given as longform."
        )
    n_other_questions = len(question_set.questions) - len(long_questions)
    with Session.opened(workspace) as session:
        result = begin_dataset(
            session, dataset, {"rubrics": question_set.sha256}, rubric_drafts(long_questions), overlap=overlap
        )
    notes = [f"{counted(n_other_questions, 'question')} of other kinds left out."] if n_other_questions else []
    return replace(result, noted=(*question_set.skipped, *notes, *result.noted))


def annotation_status(dataset: str, annotator: str | None = None, *, workspace: Place = None) -> AssembledResult:
    """Show the progress of a dataset's annotation and statistics on each annotator.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        annotator: Annotator whose own progress is shown as well.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist.
    """
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        progress, annotators = store.progress(dataset, annotator), store.annotators(dataset)
        n_new_labels, validator = store.new_labels(dataset), store.validator(dataset)
    rows = [
        ("items", str(progress.items)),
        ("settled", str(progress.settled)),
        ("conflicts", str(progress.conflicts)),
        ("settled since the last training", str(n_new_labels)),
        ("validator", validator or "none yet"),
    ]
    if annotator is not None:
        rows += [
            (f"labels of {annotator}", str(progress.mine)),
            (f"skipped by {annotator}", str(progress.skipped)),
            (f"left for {annotator}", str(progress.left_for_me)),
        ]
    tables = [Table.of(dataset, ("", ""), rows, left_columns=2)]
    columns = ("annotator", "labels", "accepted", "confirmed", "median seconds", "edits", "skips", "adjudications")
    cells = [
        (
            summary.annotator,
            str(summary.labels),
            _format_estimate(summary.accepted),
            _format_estimate(summary.agreement),
            "-" if summary.median_seconds is None else f"{summary.median_seconds:.0f}",
            *(str(count) for count in (summary.edits, summary.skips, summary.adjudications)),
        )
        for summary in annotators
    ]
    if cells:
        tables.append(Table.of("Annotators", columns, cells))
    facts = {**asdict(progress), "new_labels": n_new_labels, "validator": validator, "annotators": annotators}
    return AssembledResult({"dataset": dataset, **facts}, tables, [asdict(summary) for summary in annotators])


def annotator_agreement(dataset: str, *, workspace: Place = None) -> AssembledResult:
    """Measure the agreement of annotators on labels, ratings or rubrics.

    The agreement on labels is measured by Cohen's and Fleiss' kappa and Krippendorff's alpha, that on ratings by
    Krippendorff's alpha.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist.
    """
    from climassay.generation.annotation import is_rubric
    from climassay.generation.annotation.long_answers import rating_agreement, rubric_agreement

    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        store.progress(dataset)
        agreement = store.agreement(dataset)
        items = list(store.items(dataset))
        ratings = rating_agreement(items)
        if any(is_rubric(item.draft.wording) for item in items):
            return _make_rubric_result(dataset, rubric_agreement(items, session.encoder()))
    if ratings:
        cells = [(name, str(rating.n), _format_estimate(rating)) for name, rating in ratings.items()]
        columns = ("rated", "by two or more", "Krippendorff's alpha (95% interval)")
        return AssembledResult(
            {"dataset": dataset, "ratings": ratings}, (Table.of("Agreement on ratings", columns, cells),)
        )
    rows = [
        ("raw agreement", _format_estimate(agreement.raw)),
        ("Fleiss' kappa", _format_estimate(agreement.fleiss)),
        ("Krippendorff's alpha", _format_estimate(agreement.krippendorff)),
        *((f"Cohen's kappa, {pair.first} and {pair.second}", _format_estimate(pair.kappa)) for pair in agreement.pairs),
    ]
    table = Table.of(f"Agreement on {agreement.items} items", ("", "value (95% interval)"), rows, left_columns=2)
    notes = () if agreement.items else ("No item has labels of two annotators yet.",)
    return AssembledResult({"dataset": dataset, **asdict(agreement)}, (table,), noted=notes)


def _make_rubric_result(dataset: str, agreement: "RubricAgreement | None") -> AssembledResult:
    if agreement is None:
        return AssembledResult(
            {"dataset": dataset, "rubrics": None}, noted=("No question has rubrics by two people yet.",)
        )
    rows = [
        ("criteria that both have", _format_estimate(agreement.shared)),
        (
            "the same between halves of one rubric, which share nothing",
            "-" if agreement.floor is None else f"{agreement.floor:.2f}",
        ),
        ("Krippendorff's alpha of must or should, where both have it", _format_estimate(agreement.levels)),
        ("Krippendorff's alpha of weights, where both have it", _format_estimate(agreement.weights)),
    ]
    title = f"Agreement on the rubrics of {counted(agreement.questions, 'question')}"
    pairs = counted(agreement.matched, "pair")
    note = f"{pairs} of criteria matched by meaning, which sees neither a negation nor a figure."
    table = Table.of(title, ("", "value (95% interval)"), rows, left_columns=2, note=note)
    return AssembledResult({"dataset": dataset, "rubrics": agreement}, (table,))


def _format_estimate(estimate: "Estimate | ResampledEstimate | None") -> str:
    if estimate is None:
        return "-"
    interval = "no interval" if estimate.interval is None else " to ".join(f"{end:.2f}" for end in estimate.interval)
    return f"{estimate.value:.2f} ({interval}), n = {estimate.n}"


def export_labels(
    dataset: str,
    output: Path | str,
    form: ExportFormat | None = None,
    *,
    users: Path | str | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Write a dataset's labels, finished rubrics or accepted questions to a file.

    The format jsonl holds all labels, skips and comments. The other formats of labels hold each annotator's current
    labels, for a spreadsheet or a labelling tool.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        output: File to write (.jsonl, .csv, .xlsx), or folder for a labelling tool.
        form: Format of the labels, by default chosen by the suffix of the file; ``rubrics`` for questions with their
            finished rubrics; or ``questions`` for the accepted questions in their final wording.
        users: JSON file that maps annotators to Argilla's user ids.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist, or the file cannot be written.
    """
    from climassay.integrations.labelling_tools import read_user_ids, write_argilla, write_label_studio

    output = Path(output)
    label_format = form or ("csv" if output.suffix.lower() == ".xlsx" else _infer_format(output))
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        store.progress(dataset)
        settings = store.settings(dataset)
        if label_format == "rubrics":
            return _export_rubrics(dataset, output, list(store.items(dataset)))
        if label_format == "questions":
            return _export_questions(dataset, output, list(store.items(dataset)), settings.overlap)
        if label_format == "jsonl":
            labels, skipped = store.labels(dataset, current=False), store.skips(dataset)
            count = annotation.write_annotations(output, dataset, settings, labels, skipped, store.comments(dataset))
        elif label_format == "csv":
            count = annotation.write_table(output, store.items(dataset))
        elif label_format == "label-studio":
            write_label_studio(output, store.items(dataset), confidence=not settings.hide_confidence)
            count = len(store.labels(dataset))
        else:
            _, count = write_argilla(
                output, dataset, store.items(dataset), overlap=settings.overlap, users=read_user_ids(users)
            )
    data = {"dataset": dataset, "output": output, "format": label_format, "labels": count}
    return AssembledResult(data, printed_lines=(f"Wrote {counted(count, 'label')} to {output}",))


def _export_rubrics(dataset: str, output: Path, items: "list[AnnotationItem]") -> AssembledResult:
    from climassay.generation.annotation import is_rubric
    from climassay.generation.annotation.long_answers import finished_rubrics

    rubric_items = [item for item in items if is_rubric(item.draft.wording)]
    if not rubric_items:
        raise InputError(f"{dataset} does not collect rubrics: create such a dataset with climassay annotate rubrics.")
    rows = [question_row(finished_rubric) for finished_rubric in finished_rubrics(rubric_items)]
    if not rows:
        raise InputError(f"No rubric of {dataset} is final yet: annotators write them with climassay serve.")
    write_rows(output, rows)
    data = {"dataset": dataset, "output": output, "format": "rubrics", "questions": len(rows)}
    sentence = f"Wrote {counted(len(rows), 'question')} with rubrics to {output}"
    return _export_result(data, sentence, rubric_items, "rubrics")


def _export_questions(dataset: str, output: Path, items: "list[AnnotationItem]", overlap: int) -> AssembledResult:
    from climassay.generation.annotation.own_questions import accepted_questions

    rows = [question_row(question) for question in accepted_questions(items, overlap)]
    if not rows:
        raise InputError(f"Experts have accepted no question of {dataset} yet: they label with climassay serve.")
    write_rows(output, rows)
    n_rejected = sum(item.state == "settled" for item in items) - len(rows)
    data = {"dataset": dataset, "output": output, "format": "questions", "questions": len(rows), "rejected": n_rejected}
    sentence = f"Wrote {counted(len(rows), 'accepted question')} to {output}; {n_rejected} rejected."
    return _export_result(data, sentence, items, "labels")


def _export_result(
    data: dict[str, Any], sentence: str, items: "Sequence[AnnotationItem]", missing_content: str
) -> AssembledResult:
    """Return an export's result, with notes on how many items still lack ``missing_content`` (labels or rubrics)."""
    states = Counter(item.state for item in items)
    notes = [f"{states['open']} still wait for {missing_content}."] if states["open"] else []
    notes += [f"{states['conflict']} wait for an adjudicator."] if states["conflict"] else []
    data |= {"open": states["open"], "conflicts": states["conflict"]}
    return AssembledResult(data, printed_lines=(sentence,), noted=notes)


def import_labels(
    dataset: str,
    file: Path | str,
    form: LabelFormat | None = None,
    *,
    users: Path | str | None = None,
    workspace: Place = None,
) -> AssembledResult:
    """Import labels from a file; importing them again changes nothing.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        file: File written by ``climassay annotate export``, or a labelling tool's own export (JSON).
        form: Format of the labels; by default chosen by the suffix of the file.
        users: JSON file that maps annotators to Argilla's user ids.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist, or the file cannot be read.
    """
    from climassay.integrations.labelling_tools import read_argilla, read_label_studio, read_user_ids

    file = Path(file)
    label_format = form or _infer_format(file)
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        store.progress(dataset)
        if label_format == "jsonl":
            label_file = annotation.read_annotations(file)
        else:
            drafts = {item.draft.id: item.draft for item in store.items(dataset)}
            if label_format == "csv":
                label_file = annotation.read_table(file, drafts)
            elif label_format == "label-studio":
                label_file = read_label_studio(file, drafts)
            else:
                label_file = read_argilla(file, drafts, read_user_ids(users))
        import_counts = store.import_labels(dataset, label_file.labels, label_file.skips, label_file.comments)
    rejection_messages = [*label_file.unreadable, *import_counts.refused]
    counts = {name: getattr(import_counts, name) for name in ("stored", "known", "withdrawn", "comments")}
    sentence = (
        f"{counted(import_counts.stored, 'label')} stored, {import_counts.known} known before, "
        f"{import_counts.withdrawn} withdrawn."
    )
    sentence += f" {counted(import_counts.comments, 'comment')} stored." if import_counts.comments else ""
    data = {"dataset": dataset, "format": label_format, **counts, "refused": rejection_messages}
    return AssembledResult(data, printed_lines=(sentence,), noted=rejection_messages)


def _infer_format(file: Path) -> LabelFormat:
    match file.suffix.lower():
        case ".jsonl":
            return "jsonl"
        case ".csv":
            return "csv"
    raise InputError(f"{file} does not show its format: add --format jsonl, csv, label-studio or argilla.")


def retrain_validator(
    dataset: str,
    *,
    method: Literal["features", "probe"] = "features",
    model: str = "local:smollm2",
    encoder: str = "local:minilm",
    precision: float | None = None,
    folds: int = 5,
    seed: int = 0,
    workspace: Place = None,
) -> AssembledResult:
    """Train a validator on the settled labels, apply it to the open items, and queue the least certain items first.

    Args:
        dataset: Name of the dataset; ``climassay generate list`` lists them.
        method: Kind of validator: ``features`` of text and embeddings, or a ``probe`` of a model's hidden states.
        model: Local model whose hidden states a probe uses.
        encoder: Encoder whose embeddings are used as features, or ``none``.
        precision: Minimum proportion of valid questions among those that the validator accepts, for example 0.95.
        folds: Number of cross-validation folds.
        seed: Random seed for sampling, splits, folds and resampling.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist or has too few labels.
        ModelError: The model cannot be loaded.
    """
    with Session.opened(workspace) as session, session.progress.task("Reading labels") as task:

        def progress(finished: int, total: int, message: str) -> None:
            task.update(completed=finished, total=total, description=message)

        result = annotation.retrain(
            session.records,
            session.workspace,
            dataset,
            reader=open_reader(session, method, model=model, encoder=encoder),
            precision=precision,
            folds=folds,
            seed=seed,
            progress=progress,
        )
    scores = result.cross_validated
    sentence = (
        f"{result.validator}: {result.labels} labels, {result.invalid} invalid; AUROC {scores['auroc']:.3f} "
        f"({scores['auroc_low']:.3f} to {scores['auroc_high']:.3f}). {result.judged} items judged and put in order."
    )
    return AssembledResult({"dataset": dataset, **asdict(result)}, printed_lines=(sentence,))
