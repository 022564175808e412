"""Stores, forms and views that the pages of annotation share."""

import hashlib
import json
import math
import re
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Any, Literal, NamedTuple, Self
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict

from climassay.errors import InputError
from climassay.generation import Draft, Wording
from climassay.generation.annotation import (
    ANNOTATION_REASONS,
    AnnotationItem,
    AnnotationProgress,
    AnnotationStore,
    AnnotatorAgreement,
    Comment,
    Label,
    is_rating,
    is_rubric,
)
from climassay.generation.annotation.long_answers import get_rubric
from climassay.generation.draft import find_term
from climassay.generation.terms import words
from climassay.metrics.long_answers import DIMENSIONS, GROUP_OF
from climassay.questions import Criterion, Level, option_letter
from climassay.questions.types.longform import (
    BETTER,
    CRITERION,
    MAX_CRITERIA,
    format_ratings,
    parse_ratings,
    possible_ratings,
    read_rubric,
)
from climassay.reporting.marking import Piece, highlight_words
from climassay.web.accounts import User
from climassay.web.app_state import AppState
from climassay.web.failures import not_found_if_invalid
from climassay.web.jobs import Job, JobReport

LEVEL_LABELS: dict[Level, str] = {"base": "base level", "reasoning": "needs reasoning", "hypothetical": "hypothetical"}
MAX_TEXT_LENGTH = 10_000
"""Maximum length of a text field in characters."""
MAX_SECONDS = 86_400.0
"""Maximum time in seconds that is recorded for an item; longer times are reduced to this maximum."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
JOB_KIND = "retrain"
"""Kind of the jobs that train a validator."""
MAX_TRAININGS = 5


class LabelForm(BaseModel):
    """Fields of the forms for labelling an item. Forms for rating answers have further fields (:meth:`ratings`)."""

    model_config = ConfigDict(extra="allow")

    key: str = ""
    """Random key of the page. A form that is sent twice has the same key and is stored only once."""
    verdict: str = ""
    """``valid`` accepts the draft's original wording, ``edit`` the wording in the form; ``invalid`` rejects the draft.
    """
    reason: list[str] = []
    remark: str = ""
    seconds: str = ""
    """Seconds spent on the item; empty if the browser runs no JavaScript."""
    term: str = ""
    question: str = ""
    answer: str = ""
    option: list[str] = []
    correct: str = ""
    criterion: list[str] = []
    """Criteria of a rubric, one per row. ``weight``, ``must`` and ``source`` have one entry per row, too."""
    weight: list[str] = []
    must: list[str] = []
    """Level of each row: ``must`` or ``should``."""
    source: list[str] = []
    take: list[str] = []
    """Criteria from the labels that an adjudicator adopts, as LABEL-CRITERION with two indices, for example ``1-0``."""
    act: str = ""
    """Action on the form's rows, such as adding one (see :meth:`apply_action`); the form is then shown again. If empty,
    the label is stored."""

    def rows(self) -> list["CriterionRow"]:
        """Return the rows of the rubric as entered, without rows that have neither text nor source."""
        parts = zip_longest(self.criterion, self.weight, self.must, self.source, fillvalue="")
        rows = (CriterionRow(*map(_normalise_text, row)) for row in parts)
        return [row for row in rows if row.text or row.source]

    def with_adopted_criteria(self, item: AnnotationItem) -> Self:
        """Return a copy of the form with additional rows for the criteria that ``take`` selects from the labels."""
        rows = self.rows()
        for index, label in enumerate(item.labels):
            for number, criterion in enumerate(get_rubric(label, item)):
                if f"{index}-{number}" in self.take and criterion.text not in {row.text for row in rows}:
                    rows.append(CriterionRow.of(criterion))
        parts = {"criterion": "text", "weight": "weight", "must": "level", "source": "source"}
        return self.model_copy(update={name: [getattr(row, part) for row in rows] for name, part in parts.items()})

    def apply_action(self) -> tuple[list["CriterionRow"], int | None]:
        """Apply the action in ``act`` to the rows: ``add``, ``take``, ``remove-INDEX``, ``up-INDEX`` or ``down-INDEX``.

        Returns:
            The changed rows, and the index of the row to focus (None for no row).
        """
        rows = self.rows()
        action, _, number = self.act.partition("-")
        index = focused_index = int(number) if number.isdecimal() else len(rows)
        if action == "add" and len(rows) < MAX_CRITERIA:
            rows.append(CriterionRow())
        elif action == "take":
            focused_index = len(rows) - 1
        elif action == "remove":
            del rows[index : index + 1]
            focused_index = min(index, len(rows) - 1)
        elif index < len(rows) and action in ("up", "down"):
            focused_index = min(max(index + (1 if action == "down" else -1), 0), len(rows) - 1)
            rows.insert(focused_index, rows.pop(index))
        return rows, focused_index if action and 0 <= focused_index < len(rows) else None

    def ratings(self, options: Sequence[str]) -> dict[str, str]:
        """Return the selected ratings by option, without unrated options; their fields are ``rating-0`` and so on."""
        fields = self.model_extra or {}
        choices = {option: str(fields.get(f"rating-{index}", "")) for index, option in enumerate(options)}
        return {option: choice for option, choice in choices.items() if choice}


class CriterionRow(NamedTuple):
    """Row of a rubric as entered, with all fields as text."""

    text: str = ""
    weight: str = "1"
    level: str = "must"
    source: str = ""

    @classmethod
    def of(cls, criterion: Criterion) -> "CriterionRow":
        """Return a row with a criterion's fields as text."""
        return cls(criterion.text, f"{criterion.weight:g}", criterion.level, criterion.source)


def new_key() -> str:
    """Return a random key that identifies the forms of one rendered page."""
    return secrets.token_urlsafe(12)


def parse_label_form(form: LabelForm, draft: Draft, annotator: str) -> Label:
    """Parse a submitted form into the label of a draft.

    Returns:
        The label; its wording is None if it equals the wording of the draft.

    Raises:
        InputError: The key or the verdict is missing, a text is too long, a number is invalid, or the wording is
            incomplete.
    """
    if not form.key:
        raise InputError("The form has no key: reload the page, and send it again.")
    if form.verdict not in ("valid", "invalid", "edit"):
        raise InputError(f"The verdict is valid, invalid or edit, not {form.verdict!r}.")
    for text in (form.remark, form.term, form.question, form.answer, *form.option):
        if len(text) > MAX_TEXT_LENGTH:
            raise InputError(f"A text has {len(text)} characters; the limit is {MAX_TEXT_LENGTH}.")
    try:
        seconds = float(form.seconds or 0)
    except ValueError:
        seconds = math.nan
    if not math.isfinite(seconds) or seconds < 0:
        raise InputError(f"The time spent is a number of seconds, not {form.seconds[:40]!r}.")
    is_accepted = form.verdict != "invalid"
    wording = _parse_wording(form, draft) if is_accepted else None
    return Label(
        draft.id,
        annotator,
        accepted=is_accepted,
        reasons=() if is_accepted else tuple(dict.fromkeys(form.reason)),
        remark=_normalise_text(form.remark),
        wording=None if wording == draft.wording else wording,
        seconds=min(seconds, MAX_SECONDS) if form.seconds else None,
        key=form.key,
    )


def _parse_wording(form: LabelForm, draft: Draft) -> Wording:
    if is_rating(draft.wording):
        options = draft.wording.options
        ratings = parse_ratings(format_ratings(form.ratings(options)), options)
        return Wording(draft.wording.question, format_ratings(ratings), options)
    if is_rubric(draft.wording):
        rubric = json.dumps([row._asdict() for row in form.rows()], ensure_ascii=False)
        return Wording(draft.wording.question, rubric, draft.wording.options)
    original_wording = draft.wording
    if form.verdict == "valid" and not draft.type.has_gap:
        return original_wording
    # Form fields change line ends and white space at the ends of a text, which is not an edit.
    question = original_wording.question if form.verdict == "valid" else _normalise_text(form.question)
    question = original_wording.question if question == _normalise_text(original_wording.question) else question
    if not draft.type.has_options:
        answer = _normalise_text(form.answer) or (form.term if draft.type.has_gap else "")
        if draft.type.has_gap and not answer:
            raise InputError("Choose the word that is left out, or write it into the edit of the statement.")
        return Wording(
            question, original_wording.answer if answer == _normalise_text(original_wording.answer) else answer
        )
    options = tuple(map(_normalise_text, form.option))
    options = original_wording.options if options == tuple(map(_normalise_text, original_wording.options)) else options
    if not form.correct.isdecimal() or int(form.correct) >= len(options):
        raise InputError("Mark the option that is correct.")
    correct_index = int(form.correct)
    return Wording(question, options[correct_index], options, correct_index)


def is_reworded(draft: Draft, wording: Wording) -> bool:
    """Return whether a wording differs from the draft's in its text or correct option.

    Changes of a cloze statement's gap, of ratings and of rubrics do not count.
    """
    original_wording = draft.wording
    if is_rating(original_wording) or is_rubric(original_wording):
        return False
    has_answer = not draft.type.has_gap and not draft.type.has_options
    return (
        wording.question != original_wording.question
        or wording.options != original_wording.options
        or wording.correct != original_wording.correct
        or (has_answer and wording.answer != original_wording.answer)
    )


def _normalise_text(text: str) -> str:
    """Convert line ends to LF and strip white space."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


@dataclass(frozen=True, slots=True)
class WordingChange:
    """Part of a wording before and after an edit, with the differences marked."""

    part: str
    """Name of the part: ``question``, ``answer``, ``option b`` or ``correct option``."""
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def list_changes(before: Wording, after: Wording) -> tuple[WordingChange, ...]:
    """Return the parts in which two wordings differ, in reading order."""
    parts = [("question", before.question, after.question)]
    if before.options or after.options:
        pairs = zip_longest(before.options, after.options, fillvalue="")
        parts += [(f"option {option_letter(index)}", *pair) for index, pair in enumerate(pairs)]
        letters = ["" if wording.correct is None else option_letter(wording.correct) for wording in (before, after)]
        parts.append(("correct option", letters[0], letters[1]))
    else:
        parts.append(("answer", before.answer, after.answer))
    results = []
    for part, *texts in parts:
        tokens_before, tokens_after = map(_TOKEN.findall, texts)
        opcodes = SequenceMatcher(None, tokens_before, tokens_after, autojunk=False).get_opcodes()
        pieces_before = tuple(
            ("".join(tokens_before[start_before:end_before]), kind != "equal")
            for kind, start_before, end_before, _, _ in opcodes
            if end_before > start_before
        )
        pieces_after = tuple(
            ("".join(tokens_after[start_after:end_after]), kind != "equal")
            for kind, _, _, start_after, end_after in opcodes
            if end_after > start_after
        )
        if pieces_before != pieces_after:
            results.append(WordingChange(part, pieces_before, pieces_after))
    return tuple(results)


@dataclass(frozen=True, slots=True)
class StatementPart:
    """Part of a cloze statement: a word or term that can be selected as the gap, or the text between words."""

    text: str
    is_selectable: bool = False
    """Whether the word can be selected as the gap; if a word is repeated, only its first occurrence can."""
    is_selected: bool = False
    """Whether the word is the selected gap."""
    is_suggested: bool = False
    """Whether the word is a suggested gap; only suggested words can be reached with the Tab key."""


def statement_parts(
    statement: str, selected_term: str | None = None, suggested_terms: Collection[str] = ()
) -> tuple[StatementPart, ...]:
    """Split a statement into words that can be selected and the text between them.

    Args:
        statement: Complete statement.
        selected_term: Selected term; a term of several words is one part.
        suggested_terms: Suggested terms.

    Returns:
        Parts whose concatenation is the statement.
    """
    spans = {word.start: word.end for word in words(statement)}
    selected_start = find_term(statement, selected_term or "")
    if selected_start is not None and selected_term:
        # A selected term may have several words, which it replaces.
        selected_end = selected_start + len(selected_term)
        spans = {start: end for start, end in spans.items() if end <= selected_start or start >= selected_end}
        spans[selected_start] = selected_end
    parts: list[StatementPart] = []
    position = 0
    for start, end in sorted(spans.items()):
        term = statement[start:end]
        if start > position:
            parts.append(StatementPart(statement[position:start]))
        is_first = find_term(statement, term) == start
        parts.append(StatementPart(term, is_first, start == selected_start, is_first and term in suggested_terms))
        position = end
    if position < len(statement):
        parts.append(StatementPart(statement[position:]))
    return tuple(parts)


def page_path(dataset: str, *parts: str) -> str:
    """Return the path of a page about a dataset, ``/annotate/DATASET/PART/…``, with escaped parts."""
    return "/".join(["/annotate", *(quote(part, safe="") for part in (dataset, *parts))])


def item_view(
    item: AnnotationItem, *, confidence: bool, label: Label | None = None, form: LabelForm | None = None
) -> dict[str, Any]:
    """Return the template values of the page on which an item is labelled.

    Args:
        item: The item to label.
        confidence: Whether to include the validator's probability that the draft is valid.
        label: The user's current label of the item, with which the form is filled in; None if there is none.
        form: Form that the user submitted and that is shown again; its values take precedence over those of ``label``.
    """
    draft, original_wording = item.draft, item.draft.wording
    wording = form_wording = label.wording if label is not None and label.wording is not None else original_wording
    selected_reasons = item.preselected if label is None else label.reasons
    term = (form.term if form else "") or form_wording.answer or item.suggested_term
    typed_answer, is_changed = "", False
    if form is not None:
        selected_reasons = tuple(form.reason)
        if form.verdict == "edit":
            # The fields are shown as typed, even if they cannot be stored.
            correct_index = int(form.correct) if form.correct.isdecimal() else form_wording.correct
            stored_fields = [
                form_wording.question,
                *form_wording.options,
                form_wording.correct,
                "" if draft.type.has_gap else form_wording.answer,
            ]
            form_wording = Wording(form.question, form.answer, tuple(form.option), correct_index)
            typed_answer = form.answer
            is_changed = stored_fields != [form_wording.question, *form_wording.options, correct_index, form.answer]
    verdict = form.verdict if form else "invalid" if label is not None and not label.accepted else ""
    has_gap = draft.type.has_gap
    # Words that the passages must contain for the draft to be right; single letters, such as the C of °C, are useless.
    supporting_words = [
        word for word in _WORD.findall(draft.type.supporting_text(draft.content)) if len(word) > 1 or word.isdigit()
    ]
    return {
        "id": draft.id,
        "type": draft.type,
        "level_words": LEVEL_LABELS[draft.level],
        "wording": wording,
        "reworded": is_reworded(draft, wording),
        "first_term": original_wording.answer if has_gap else "",
        "parts": statement_parts(wording.question, term, item.term_candidates) if has_gap else (),
        "suggested": item.suggested_term if has_gap else None,
        "passages": [
            (source, highlight_words(source.text, supporting_words)) for source in draft.passages if source.text
        ],
        "generated": bool(draft.origin.model),
        "reasons": [(reason, reason.name in selected_reasons) for reason in ANNOTATION_REASONS],
        "rating": _rating_values(item, label, form) if is_rating(draft.wording) else None,
        "rubric": _rubric_values(item, label, form) if is_rubric(draft.wording) else None,
        "remark": form.remark if form else label.remark if label is not None else "",
        "edited": form_wording,
        "typed_answer": typed_answer,
        "confidence": item.p_valid if confidence else None,
        "opened": "reject" if verdict == "invalid" else "edit" if is_changed else "",
    }


_CHOICE_LABELS = {"first": "The first", "second": "The second", "tie": "Neither"}


def _rating_values(item: AnnotationItem, label: Label | None, form: LabelForm | None) -> dict[str, Any]:
    """Return the template values for rating answers: the answers, and groups of options with the selected ratings."""
    draft, options = item.draft, item.draft.wording.options
    stored_answer = label.wording.answer if label is not None and label.wording is not None else ""
    ratings = form.ratings(options) if form else parse_ratings(stored_answer, options) if stored_answer else {}
    meanings = {dimension.name: dimension.meaning for dimension in DIMENSIONS}
    titles = {"presentation": "How it reads", "epistemics": "What it is worth"}
    groups: dict[str, list[dict[str, Any]]] = {}
    for index, option in enumerate(options):
        if option == BETTER:
            group, name, meaning = "Which of the two is better?", "The better answer", ""
        elif option.startswith(CRITERION):
            group, name, meaning = "What it should say", option.removeprefix(CRITERION), ""
        else:
            group, name, meaning = titles[GROUP_OF[option]], option.capitalize(), meanings[option]
        part = {"field": f"rating-{index}", "name": name, "meaning": meaning, "scale": option in meanings}
        part["choices"] = [
            (choice, _CHOICE_LABELS.get(choice, choice), ratings.get(option) == choice)
            for choice in possible_ratings(option)
        ]
        groups.setdefault(group, []).append(part)
    has_several_passages = len(draft.passages) > 1
    answer_names = ("First answer", "Second answer") if has_several_passages else ("Answer",)
    answers = [(name, passage.text) for name, passage in zip(answer_names, draft.passages, strict=True)]
    return {"audience": draft.main.citation, "answers": answers, "groups": groups.items(), "pair": has_several_passages}


def _rubric_values(item: AnnotationItem, label: Label | None, form: LabelForm | None) -> dict[str, Any]:
    """Return the template values for editing a rubric: the answer, its source texts, and the rubric's rows."""
    draft = item.draft
    answer, *texts = draft.passages
    criteria = read_rubric(draft.wording.answer) if label is None else get_rubric(label, item)
    rows, focused_index = [CriterionRow.of(criterion) for criterion in criteria], None
    if form is not None:
        rows, focused_index = form.apply_action()
    return {
        "audience": answer.citation,
        "answer": answer.text,
        "texts": texts,
        "rows": rows or [CriterionRow()],
        "focus": focused_index,
        "given": label is None and form is None and bool(criteria),
        "full": len(rows) >= MAX_CRITERIA,
    }


Participant = tuple[str, bool]
"""User who labelled an item or commented on it: user name, and whether the user acted as an adjudicator."""


def participant_names(
    item: AnnotationItem, comments: Sequence[Comment], reader: User, name_of: Callable[[str], str] = str
) -> dict[Participant, str]:
    """Return the displayed names of an item's participants.

    Annotators are anonymous: each has a number that is the same for all readers of the item, but differs between items.
    When the item is settled, adjudicators see display names.

    Args:
        item: Item with its labels.
        comments: Comments on the item.
        reader: User who sees the names.
        name_of: Function that returns the display name for a user name.
    """
    labellers = {label.annotator for label in item.labels if not label.adjudicates}
    participants = {(label.annotator, label.adjudicates) for label in item.labels}
    participants |= {(comment.author, comment.adjudicates) for comment in comments}

    def sort_key(person: Participant) -> tuple[bool, bytes]:
        return person[0] not in labellers, hashlib.sha256(f"{item.draft.id} {person[0]}".encode()).digest()

    annotators = sorted((participant for participant in participants if not participant[1]), key=sort_key)
    names = {participant: f"Annotator {number}" for number, participant in enumerate(annotators, start=1)}
    names |= {participant: "Adjudicator" for participant in participants if participant[1]}
    if reader.may("adjudicate") and item.state == "settled":
        return {participant: name_of(participant[0]) for participant in names}
    return {person: f"{name} (you)" if person[0] == reader.name else name for person, name in names.items()}


def label_view(label: Label, item: AnnotationItem, by: str = "") -> dict[str, Any]:
    """Return the template values of a label, such as its changes to the draft's wording.

    ``by`` is the displayed name of the annotator.
    """
    original_wording, new_wording = item.draft.wording, label.wording
    ratings_by_option = (
        parse_ratings(new_wording.answer, original_wording.options)
        if new_wording is not None and is_rating(original_wording)
        else {}
    )
    ratings = [
        (part.removeprefix(CRITERION), _CHOICE_LABELS.get(choice, choice)) for part, choice in ratings_by_option.items()
    ]
    rubric = get_rubric(label, item) if is_rubric(original_wording) else ()
    return {
        "label": label,
        "by": by,
        "rubric": rubric,
        "place": item.labels.index(label) if label in item.labels else 0,
        "draft": item.draft,
        "term": (new_wording or original_wording).answer if item.draft.type.has_gap and label.accepted else "",
        "ratings": ratings,
        "changes": ()
        if new_wording is None or ratings or is_rubric(original_wording)
        else list_changes(original_wording, new_wording),
    }


def annotation_store(app: AppState) -> AnnotationStore:
    """Return the server's store of annotations."""
    return app.shared("annotations", lambda: AnnotationStore(app.records))


def require_dataset(app: AppState, dataset: str) -> AnnotationStore:
    """Return the store of annotations after checking that it contains a dataset.

    Raises:
        NotFound: The dataset does not exist.
    """
    store = annotation_store(app)
    with not_found_if_invalid():
        store.settings(dataset)
    return store


def agreement_of(app: AppState, dataset: str) -> AnnotatorAgreement:
    """Return the agreement between a dataset's annotators with bootstrap intervals, cached until a label changes."""
    store = require_dataset(app, dataset)
    return app.computed.get(("agreement", dataset, store.revision(dataset)), lambda: store.agreement(dataset))


def find_work_type(store: AnnotationStore, dataset: str) -> Literal["questions", "ratings", "rubrics"]:
    """Return the task of a dataset's annotators: check questions, rate answers, or write rubrics."""
    first_item = next(store.items(dataset), None)
    if first_item is None:
        return "questions"
    wording = first_item.draft.wording
    return "rubrics" if is_rubric(wording) else "ratings" if is_rating(wording) else "questions"


def may_annotate(store: AnnotationStore, dataset: str, user: User) -> bool:
    """Return whether a user may annotate a dataset: it is assigned to the user, or the user is an adjudicator."""
    return user.may("adjudicate") or store.settings(dataset).includes(user.name)


def find_own_label(item: AnnotationItem, user: User) -> Label | None:
    """Return a user's current label of an item, excluding decisions; None if there is none."""
    return next((label for label in item.labels if label.annotator == user.name and not label.adjudicates), None)


def count_assigned_items(progress: AnnotationProgress) -> int:
    """Return the number of items that an annotator has labelled, has skipped or still has to label."""
    return progress.mine + progress.skipped + progress.left_for_me


def is_training_due(store: AnnotationStore, dataset: str) -> bool:
    """Return whether the validator should be trained again: enough labels have been settled since its last training."""
    return store.new_labels(dataset) >= store.settings(dataset).retrain_every


def run_training_job(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Run a job: train a dataset's validator on its settled items and reorder the dataset's queue.

    Args:
        app: State of the server.
        payload: Payload of the job with the key ``dataset``.
        report: Report of the job's progress.

    Returns:
        Result of the job, with the path of the page that shows it.
    """
    from climassay.generation.annotation import retrain

    dataset = str(payload["dataset"])
    retrain(app.records, app.workspace, dataset, progress=report.progress)
    return {"page": f"{page_path(dataset, 'settings')}#retraining"}


def list_trainings(app: AppState, dataset: str) -> list[Job]:
    """Return the :data:`MAX_TRAININGS` latest training jobs of a dataset, newest first."""
    return [job for job in app.jobs.list(JOB_KIND) if job.payload["dataset"] == dataset][:MAX_TRAININGS]


def submit_training(app: AppState, dataset: str, user: User) -> str:
    """Submit a job that trains a dataset's validator and return its id; an unfinished job is reused."""
    require_dataset(app, dataset)
    for job in list_trainings(app, dataset):
        if not job.has_ended:
            return job.id
    return app.jobs.submit(JOB_KIND, f"Train the validator of {dataset}", {"dataset": dataset}, by=user.name)
