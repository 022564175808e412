"""Experts' labels of generated questions: queues, progress, agreement, label files and retraining."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from climassay.api.validation import open_reader
from climassay.errors import InputError
from climassay.generation import annotation
from climassay.io import parse_json, read_text
from climassay.questions import question_row, read_questions
from climassay.reporting import Table, counted
from climassay.reporting.results import Shown, write_rows
from climassay.session import Place, Session

if TYPE_CHECKING:
    from climassay.generation.annotation import AnnotationItem
    from climassay.generation.annotation.long_answers import RubricAgreement
    from climassay.generation.dataset_store import StoredDraft
    from climassay.statistics import Estimate, ResampledEstimate

LabelFormat = Literal["jsonl", "csv", "label-studio", "argilla"]
ExportFormat = LabelFormat | Literal["rubrics", "questions"]


def open_annotation(dataset: str, *, workspace: Place = None, **changes: Any) -> Shown:
    """Open a dataset for annotation, or change its settings; settings not given stay as they are.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.
        **changes: Settings of :class:`climassay.generation.annotation.AnnotationSettings`; None leaves one as it is.

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
    return Shown(data, printed_lines=(sentence,), noted=("Annotate in the browser: climassay serve",))


def begin_dataset(
    session: Session, dataset: str, origin: Mapping[str, Any], drafts: "Iterable[StoredDraft]", **changes: Any
) -> Shown:
    """Create a dataset from drafts and open it for annotation; existing drafts stay unchanged.

    Raises:
        InputError: The dataset was begun with other items.
    """
    from climassay.generation.dataset_store import DatasetStore

    store = DatasetStore(session.records)
    store.begin(dataset, dict(origin))
    there = {draft.id for draft in store.drafts(dataset)}
    store.save(dataset, [draft for draft in drafts if draft.draft.id not in there])
    return open_annotation(dataset, workspace=session, **changes)


def annotate_questions(
    questions: str | Path,
    dataset: str,
    *,
    overlap: int = 1,
    annotators: Sequence[str] = (),
    workspace: Place = None,
) -> Shown:
    """Have people judge your own questions in the browser; see export --format questions.

    Running it again changes only the overlap and who annotates.

    Args:
        questions: Questions with answers (JSONL, CSV ...), with the passages that they rest on if there are any; or
            primer.
        dataset: Name of a new dataset for the questions.
        overlap: Number of labels per question, by different people.
        annotators: User who annotates them, by default everybody who may; repeat.
        workspace: Where the dataset lies.

    Raises:
        InputError: The file cannot be read or has no question to judge, or the dataset was begun with something else.
    """
    from climassay.generation.annotation.own_questions import question_drafts

    read = read_questions(questions)
    drafts = list(question_drafts(read.questions))
    n_long = len(read.questions) - len(drafts)
    if not drafts:
        raise InputError(
            f"{questions} has only long-form questions: climassay annotate rubrics has people write their rubrics."
        )
    with Session.opened(workspace) as session:
        changes = {"overlap": overlap, "annotators": tuple(annotators) or None}
        opened = begin_dataset(session, dataset, {"questions": read.sha256}, drafts, **changes)
    left_out = [f"{counted(n_long, 'long-form question')} left out: see climassay annotate rubrics."] if n_long else []
    return replace(opened, noted=(*read.skipped, *left_out, *opened.noted))


def annotate_answers(
    run: str, dataset: str, *, overlap: int = 1, annotators: Sequence[str] = (), workspace: Place = None
) -> Shown:
    """Have people judge a model's freeform answers in the browser, without saying whose they are.

    Long answers are rated with climassay evaluate blind --dataset.

    Args:
        run: Id of a run of climassay evaluate run; see climassay records runs.
        dataset: Name of a new dataset for the answers.
        overlap: Number of labels per answer, by different people.
        annotators: User who annotates them, by default everybody who may; repeat.
        workspace: Where run and dataset lie.

    Raises:
        InputError: There is no such run, it has no freeform answer, or the dataset was begun with something else.
    """
    from climassay import evaluation
    from climassay.generation.annotation.own_questions import answer_drafts

    with Session.opened(workspace) as session:
        drafts = answer_drafts(evaluation.load_experiment(session.records, run))
        if not drafts:
            raise InputError(f"The run {run} has no freeform answer to be judged.")
        changes = {"overlap": overlap, "annotators": tuple(annotators) or None}
        return begin_dataset(session, dataset, {"answers": run}, drafts, **changes)


def collect_rubrics(questions: str | Path, dataset: str, *, overlap: int = 2, workspace: Place = None) -> Shown:
    """Have people write rubrics for long-form questions in the browser; see export --format rubrics.

    Running it again changes only the overlap.

    Args:
        questions: Long-form questions (JSONL, CSV, .txt ...), with or without rubrics to begin with.
        dataset: Name of a new dataset for the questions.
        overlap: Number of rubrics per question, by different people.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The file cannot be read or has no long-form question, or the dataset was begun with other items.
    """
    from climassay.generation.annotation.long_answers import rubric_drafts

    read = read_questions(questions)
    result = read.of_kind("longform")
    if not result:
        raise InputError(
            f"{questions} has no long-form question, for which rubrics are written: where one has an answer and no "
            "rubric, its kind must be given as longform."
        )
    n_others = len(read.questions) - len(result)
    with Session.opened(workspace) as session:
        opened = begin_dataset(session, dataset, {"rubrics": read.sha256}, rubric_drafts(result), overlap=overlap)
    left_out = [f"{counted(n_others, 'question')} of other kinds left out."] if n_others else []
    return replace(opened, noted=(*read.skipped, *left_out, *opened.noted))


def annotation_status(dataset: str, annotator: str | None = None, *, workspace: Place = None) -> Shown:
    """Show a dataset's progress and what each annotator did.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        annotator: Also show this annotator's progress.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist.
    """
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        progress, people = store.progress(dataset, annotator), store.annotators(dataset)
        new, validator = store.new_labels(dataset), store.validator(dataset)
    rows = [
        ("items", str(progress.items)),
        ("settled", str(progress.settled)),
        ("conflicts", str(progress.conflicts)),
        ("settled since the last training", str(new)),
        ("validator", validator or "none yet"),
    ]
    if annotator is not None:
        rows += [
            (f"labels of {annotator}", str(progress.mine)),
            (f"skipped by {annotator}", str(progress.skipped)),
            (f"left for {annotator}", str(progress.left_for_me)),
        ]
    tables = [Table.of(dataset, ("", ""), rows, left=2)]
    columns = ("annotator", "labels", "accepted", "confirmed", "median seconds", "edits", "skips", "adjudications")
    cells = [
        (
            person.annotator,
            str(person.labels),
            _estimate(person.accepted),
            _estimate(person.agreement),
            "-" if person.median_seconds is None else f"{person.median_seconds:.0f}",
            *(str(count) for count in (person.edits, person.skips, person.adjudications)),
        )
        for person in people
    ]
    if cells:
        tables.append(Table.of("Annotators", columns, cells))
    facts = {**asdict(progress), "new_labels": new, "validator": validator, "annotators": people}
    return Shown({"dataset": dataset, **facts}, tables, [asdict(person) for person in people])


def annotator_agreement(dataset: str, *, workspace: Place = None) -> Shown:
    """Measure agreement of annotators: Cohen's and Fleiss' kappa, Krippendorff's alpha, ratings, rubrics.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist.
    """
    from climassay.generation.annotation import is_rubric
    from climassay.generation.annotation.long_answers import rating_agreement, rubric_agreement

    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        store.progress(dataset)
        result = store.agreement(dataset)
        items = list(store.items(dataset))
        ratings = rating_agreement(items)
        if any(is_rubric(item.draft.wording) for item in items):
            return _rubric_agreement(dataset, rubric_agreement(items, session.encoder()))
    if ratings:
        cells = [(name, str(rating.n), _estimate(rating)) for name, rating in ratings.items()]
        columns = ("rated", "by two or more", "Krippendorff's alpha (95% interval)")
        return Shown({"dataset": dataset, "ratings": ratings}, (Table.of("Agreement on ratings", columns, cells),))
    rows = [
        ("raw agreement", _estimate(result.raw)),
        ("Fleiss' kappa", _estimate(result.fleiss)),
        ("Krippendorff's alpha", _estimate(result.krippendorff)),
        *((f"Cohen's kappa, {pair.first} and {pair.second}", _estimate(pair.kappa)) for pair in result.pairs),
    ]
    table = Table.of(f"Agreement on {result.items} items", ("", "value (95% interval)"), rows, left=2)
    none = () if result.items else ("No item has labels of two annotators yet.",)
    return Shown({"dataset": dataset, **asdict(result)}, (table,), noted=none)


def _rubric_agreement(dataset: str, agreement: "RubricAgreement | None") -> Shown:
    if agreement is None:
        return Shown({"dataset": dataset, "rubrics": None}, noted=("No question has rubrics by two people yet.",))
    rows = [
        ("criteria that both have", _estimate(agreement.shared)),
        (
            "the same between halves of one rubric, which share nothing",
            "-" if agreement.floor is None else f"{agreement.floor:.2f}",
        ),
        ("Krippendorff's alpha of must or should, where both have it", _estimate(agreement.levels)),
        ("Krippendorff's alpha of weights, where both have it", _estimate(agreement.weights)),
    ]
    title = f"Agreement on the rubrics of {counted(agreement.questions, 'question')}"
    pairs = counted(agreement.matched, "pair")
    note = f"{pairs} of criteria matched by meaning, which sees neither a negation nor a figure."
    table = Table.of(title, ("", "value (95% interval)"), rows, left=2, note=note)
    return Shown({"dataset": dataset, "rubrics": agreement}, (table,))


def _estimate(estimate: "Estimate | ResampledEstimate | None") -> str:
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
) -> Shown:
    """Write experts' labels: everything (jsonl), current labels for a spreadsheet or tool, rubrics, or questions.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        output: File (jsonl, csv, xlsx), or folder of other tools.
        form: Format of the labels, by default by the ending; or rubrics, written as questions; or questions, the
            accepted ones in their final wording.
        users: JSON object that maps annotators to user ids, for argilla.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist, or the file cannot be written.
    """
    from climassay.integrations.labelling_tools import write_argilla, write_label_studio

    output = Path(output)
    users = None if users is None else Path(users)
    chosen = form or ("csv" if output.suffix.lower() == ".xlsx" else _form_of(output))
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        store.progress(dataset)
        settings = store.settings(dataset)
        if chosen == "rubrics":
            return _export_rubrics(dataset, output, list(store.items(dataset)))
        if chosen == "questions":
            return _export_questions(dataset, output, list(store.items(dataset)), settings.overlap)
        if chosen == "jsonl":
            labels, skipped = store.labels(dataset, current=False), store.skips(dataset)
            count = annotation.write_annotations(output, dataset, settings, labels, skipped, store.comments(dataset))
        elif chosen == "csv":
            count = annotation.write_table(output, store.items(dataset))
        elif chosen == "label-studio":
            write_label_studio(output, store.items(dataset), confidence=not settings.hide_confidence)
            count = len(store.labels(dataset))
        else:
            _, count = write_argilla(
                output, dataset, store.items(dataset), overlap=settings.overlap, users=_users(users)
            )
    data = {"dataset": dataset, "output": output, "format": chosen, "labels": count}
    return Shown(data, printed_lines=(f"Wrote {counted(count, 'label')} to {output}",))


def _export_rubrics(dataset: str, output: Path, items: "list[AnnotationItem]") -> Shown:
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
    return _with_unsettled(data, sentence, rubric_items, "rubrics")


def _export_questions(dataset: str, output: Path, items: "list[AnnotationItem]", overlap: int) -> Shown:
    from climassay.generation.annotation.own_questions import accepted_questions

    rows = [question_row(question) for question in accepted_questions(items, overlap)]
    if not rows:
        raise InputError(f"Experts have accepted no question of {dataset} yet: they label with climassay serve.")
    write_rows(output, rows)
    n_rejected = sum(item.state == "settled" for item in items) - len(rows)
    data = {"dataset": dataset, "output": output, "format": "questions", "questions": len(rows), "rejected": n_rejected}
    sentence = f"Wrote {counted(len(rows), 'accepted question')} to {output}; {n_rejected} rejected."
    return _with_unsettled(data, sentence, items, "labels")


def _with_unsettled(data: dict[str, Any], sentence: str, items: "Sequence[AnnotationItem]", awaited: str) -> Shown:
    """Return the result of an export, with the number of items that are not settled."""
    states = Counter(item.state for item in items)
    noted = [f"{states['open']} still wait for {awaited}."] if states["open"] else []
    noted += [f"{states['conflict']} wait for an adjudicator."] if states["conflict"] else []
    data |= {"open": states["open"], "conflicts": states["conflict"]}
    return Shown(data, printed_lines=(sentence,), noted=noted)


def import_labels(
    dataset: str,
    file: Path | str,
    form: LabelFormat | None = None,
    *,
    users: Path | str | None = None,
    workspace: Place = None,
) -> Shown:
    """Import labels from a file; importing them again changes nothing.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        file: File that export wrote, or a tool's own export (JSON).
        form: Format of the labels; by default by the ending.
        users: JSON object that maps annotators to user ids, for argilla.
        workspace: Session, workspace or folder of a workspace; by default the workspace of the command line.

    Raises:
        InputError: The dataset does not exist, or the file cannot be read.
    """
    from climassay.integrations.labelling_tools import read_argilla, read_label_studio

    file = Path(file)
    users = None if users is None else Path(users)
    chosen = form or _form_of(file)
    with Session.opened(workspace) as session:
        store = annotation.AnnotationStore(session.records)
        store.progress(dataset)
        if chosen == "jsonl":
            result = annotation.read_annotations(file)
        else:
            drafts = {item.draft.id: item.draft for item in store.items(dataset)}
            if chosen == "csv":
                result = annotation.read_table(file, drafts)
            elif chosen == "label-studio":
                result = read_label_studio(file, drafts)
            else:
                result = read_argilla(file, drafts, _users(users))
        imported = store.import_labels(dataset, result.labels, result.skips, result.comments)
    refused = [*result.unreadable, *imported.refused]
    counts = {name: getattr(imported, name) for name in ("stored", "known", "withdrawn", "comments")}
    sentence = (
        f"{counted(imported.stored, 'label')} stored, {imported.known} known before, {imported.withdrawn} withdrawn."
    )
    sentence += f" {counted(imported.comments, 'comment')} stored." if imported.comments else ""
    data = {"dataset": dataset, "format": chosen, **counts, "refused": refused}
    return Shown(data, printed_lines=(sentence,), noted=refused)


def _form_of(file: Path) -> LabelFormat:
    match file.suffix.lower():
        case ".jsonl":
            return "jsonl"
        case ".csv":
            return "csv"
    raise InputError(f"{file} does not show its format: add --format jsonl, csv, label-studio or argilla.")


def _users(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    try:
        result = parse_json(read_text(file))
        if not isinstance(result, dict) or not all(isinstance(row, str) for row in result.values()):
            raise ValueError('it should look like {"anna": "6b1b3e0c-..."}')
    except (OSError, ValueError) as error:
        raise InputError(f"{file} does not map annotators to Argilla users: {error}.") from None
    return result


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
) -> Shown:
    """Train a validator on the settled labels, judge the waiting items, and put the least certain first.

    Args:
        dataset: Name of the dataset, see climassay generate list.
        method: Kind of validator, by its features.
        model: Local model for a probe.
        encoder: Encoder whose vectors are used, or none.
        precision: Minimum share of valid questions among the accepted ones, for example 0.95.
        folds: Number of cross-validation folds.
        seed: Seed of samples, splits, folds and resampling.
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
    figures = result.cross_validated
    sentence = (
        f"{result.validator}: {result.labels} labels, {result.invalid} invalid; AUROC {figures['auroc']:.3f} "
        f"({figures['auroc_low']:.3f} to {figures['auroc_high']:.3f}). {result.judged} items judged and put in order."
    )
    return Shown({"dataset": dataset, **asdict(result)}, printed_lines=(sentence,))
