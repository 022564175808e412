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
from climassay.generation.annotation.long_answers import rubric_of
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
from climassay.reporting.marking import Piece, marked
from climassay.web.accounts import User
from climassay.web.app_state import AppState
from climassay.web.failures import missing
from climassay.web.jobs import Job, JobReport

LEVELS: dict[Level, str] = {"base": "base level", "reasoning": "needs reasoning", "hypothetical": "hypothetical"}
MAX_TEXT_LENGTH = 10_000
"""Maximum number of characters of one field."""
MAX_SECONDS = 86_400.0
"""Maximum number of seconds that are recorded for an item; longer times mean that a page was left open."""
_WORD = re.compile(r"\d+(?:[.,]\d+)*|\w+")
_TOKEN = re.compile(r"\s+|\w+|[^\w\s]")
KIND = "retrain"
"""Kind of the jobs that train a validator."""
MAX_TRAININGS = 5


class LabelForm(BaseModel):
    """Fields of the forms of an item; an answer that is rated also has fields ``rating-0``, ``rating-1`` and so on."""

    model_config = ConfigDict(extra="allow")

    key: str = ""
    """Key made with the page, so that a form that is sent twice is stored once."""
    verdict: str = ""
    """``valid`` accepts the draft's first wording, ``edit`` the wording in the form; ``invalid`` rejects."""
    reason: list[str] = []
    remark: str = ""
    seconds: str = ""
    """Seconds spent on the item; empty without scripts."""
    term: str = ""
    question: str = ""
    answer: str = ""
    option: list[str] = []
    correct: str = ""
    criterion: list[str] = []
    """Texts of the rows of a rubric; the next three fields have one entry per row."""
    weight: list[str] = []
    must: list[str] = []
    """``must`` or ``should``."""
    source: list[str] = []
    take: list[str] = []
    """Criteria of the labels that an adjudicator adopts; ``1-0`` is the first one of the second label."""
    act: str = ""
    """Change of the rows before the page is shown again; empty to store them."""

    def rows(self) -> list["CriterionRow"]:
        """Return the rows of a rubric that are not empty, as typed."""
        parts = zip_longest(self.criterion, self.weight, self.must, self.source, fillvalue="")
        rows = (CriterionRow(*map(_plain, row)) for row in parts)
        return [row for row in rows if row.text or row.source]

    def with_taken(self, item: AnnotationItem) -> Self:
        """Return the form with the selected criteria of the labels added to its rows."""
        rows = self.rows()
        for index, label in enumerate(item.labels):
            for number, criterion in enumerate(rubric_of(label, item)):
                if f"{index}-{number}" in self.take and criterion.text not in {row.text for row in rows}:
                    rows.append(CriterionRow.of(criterion))
        parts = {"criterion": "text", "weight": "weight", "must": "level", "source": "source"}
        return self.model_copy(update={name: [getattr(row, part) for row in rows] for name, part in parts.items()})

    def acted(self) -> tuple[list["CriterionRow"], int | None]:
        """Return the rows after an action like ``add``, ``take``, ``remove-2`` or ``up-2``, and the row to focus."""
        rows = self.rows()
        action, _, number = self.act.partition("-")
        index = focus = int(number) if number.isdecimal() else len(rows)
        if action == "add" and len(rows) < MAX_CRITERIA:
            rows.append(CriterionRow())
        elif action == "take":
            focus = len(rows) - 1
        elif action == "remove":
            del rows[index : index + 1]
            focus = min(index, len(rows) - 1)
        elif index < len(rows) and action in ("up", "down"):
            focus = min(max(index + (1 if action == "down" else -1), 0), len(rows) - 1)
            rows.insert(focus, rows.pop(index))
        return rows, focus if action and 0 <= focus < len(rows) else None

    def ratings(self, options: Sequence[str]) -> dict[str, str]:
        """Return the chosen rating by option."""
        fields = self.model_extra or {}
        choices = {option: str(fields.get(f"rating-{index}", "")) for index, option in enumerate(options)}
        return {option: choice for option, choice in choices.items() if choice}


class CriterionRow(NamedTuple):
    """A row of a rubric, as typed."""

    text: str = ""
    weight: str = "1"
    level: str = "must"
    source: str = ""

    @classmethod
    def of(cls, criterion: Criterion) -> "CriterionRow":
        """Return the row of a criterion."""
        return cls(criterion.text, f"{criterion.weight:g}", criterion.level, criterion.source)


def new_key() -> str:
    """Return a random key for the forms of one page."""
    return secrets.token_urlsafe(12)


def read_form(form: LabelForm, draft: Draft, annotator: str) -> Label:
    """Read the label of a draft from a form.

    Args:
        form: The form as it was sent.
        draft: The labelled draft.
        annotator: Name of the annotator.

    Returns:
        The label; its wording is None if the wording of the draft is unchanged.

    Raises:
        InputError: There is no verdict or no key, a text is too long, or a number is none.
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
    accepted = form.verdict != "invalid"
    wording = _wording(form, draft) if accepted else None
    return Label(
        draft.id,
        annotator,
        accepted=accepted,
        reasons=() if accepted else tuple(dict.fromkeys(form.reason)),
        remark=_plain(form.remark),
        wording=None if wording == draft.wording else wording,
        seconds=min(seconds, MAX_SECONDS) if form.seconds else None,
        key=form.key,
    )


def _wording(form: LabelForm, draft: Draft) -> Wording:
    """Return the wording of an accepted form."""
    if is_rating(draft.wording):
        options = draft.wording.options
        ratings = parse_ratings(format_ratings(form.ratings(options)), options)
        return Wording(draft.wording.question, format_ratings(ratings), options)
    if is_rubric(draft.wording):
        rubric = json.dumps([row._asdict() for row in form.rows()], ensure_ascii=False)
        return Wording(draft.wording.question, rubric, draft.wording.options)
    first = draft.wording
    if form.verdict == "valid" and not draft.type.has_gap:
        return first
    # A field of a page cannot hold every line end or margin of a text, and such a difference is no edit.
    question = first.question if form.verdict == "valid" else _plain(form.question)
    question = first.question if question == _plain(first.question) else question
    if not draft.type.has_options:
        answer = _plain(form.answer) or (form.term if draft.type.has_gap else "")
        if draft.type.has_gap and not answer:
            raise InputError("Choose the word that is left out, or write it into the edit of the statement.")
        return Wording(question, first.answer if answer == _plain(first.answer) else answer)
    options = tuple(map(_plain, form.option))
    options = first.options if options == tuple(map(_plain, first.options)) else options
    if not form.correct.isdecimal() or int(form.correct) >= len(options):
        raise InputError("Mark the option that is correct.")
    correct = int(form.correct)
    return Wording(question, options[correct], options, correct)


def is_reworded(draft: Draft, wording: Wording) -> bool:
    """Return whether a wording differs from the draft's in its words or its correct option, not only in its gap."""
    first = draft.wording
    if is_rating(first) or is_rubric(first):
        return False
    has_answer = not draft.type.has_gap and not draft.type.has_options
    return (wording.question, wording.options, wording.correct) != (first.question, first.options, first.correct) or (
        has_answer and wording.answer != first.answer
    )


def _plain(text: str) -> str:
    """Return a text with LF line ends, stripped."""
    return text.replace("\r\n", "\n").replace("\r", "\n").strip()


@dataclass(frozen=True, slots=True)
class WordingChange:
    """One part of a wording before and after an edit, with the differences marked."""

    part: str
    """Label: *question*, *answer*, *option b*, *correct option*."""
    before: tuple[Piece, ...]
    after: tuple[Piece, ...]


def changes(before: Wording, after: Wording) -> tuple[WordingChange, ...]:
    """Return the parts of a wording that differ, in reading order."""
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
        first, second = map(_TOKEN.findall, texts)
        spans = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        left = tuple(("".join(first[a:b]), kind != "equal") for kind, a, b, _, _ in spans if b > a)
        right = tuple(("".join(second[c:d]), kind != "equal") for kind, _, _, c, d in spans if d > c)
        if left != right:
            results.append(WordingChange(part, left, right))
    return tuple(results)


@dataclass(frozen=True, slots=True)
class StatementPart:
    """A part of a statement: a word that can be selected, or the text between words."""

    text: str
    choosable: bool = False
    """Whether the word can be the gap; of repeated words, only the first one can."""
    chosen: bool = False
    """Whether the word is selected."""
    hinted: bool = False
    """Whether the word is a suggested term, which the Tab key reaches."""


def statement_parts(
    statement: str, chosen: str | None = None, hinted: Collection[str] = ()
) -> tuple[StatementPart, ...]:
    """Split a statement into words that can be selected and the text between them.

    Args:
        statement: Statement without a gap.
        chosen: Selected term; a term of several words is one part.
        hinted: Suggested terms.

    Returns:
        Parts whose concatenation is the statement.
    """
    spans = {word.start: word.end for word in words(statement)}
    at = find_term(statement, chosen or "")
    if at is not None and chosen:
        # A term of several words, chosen by an expert elsewhere, takes the place of those words.
        spans = {start: end for start, end in spans.items() if end <= at or start >= at + len(chosen)}
        spans[at] = at + len(chosen)
    parts: list[StatementPart] = []
    done = 0
    for start, end in sorted(spans.items()):
        term = statement[start:end]
        if start > done:
            parts.append(StatementPart(statement[done:start]))
        first = find_term(statement, term) == start
        parts.append(StatementPart(term, first, start == at, first and term in hinted))
        done = end
    if done < len(statement):
        parts.append(StatementPart(statement[done:]))
    return tuple(parts)


def address(dataset: str, *parts: str) -> str:
    """Return the path of a page below ``/annotate``."""
    return "/".join(["/annotate", *(quote(part, safe="") for part in (dataset, *parts))])


def item_view(
    item: AnnotationItem, *, confidence: bool, own: Label | None = None, form: LabelForm | None = None
) -> dict[str, Any]:
    """Return the template values of an item and its draft.

    Args:
        item: The item to label.
        confidence: Whether to include the validator's probability that the draft is valid.
        own: Current label of the user, which fills the fields of the form.
        form: Form that the user sent and that was refused; its values take precedence over those of ``own``.
    """
    draft, first = item.draft, item.draft.wording
    wording = edited = own.wording if own is not None and own.wording is not None else first
    chosen = item.preselected if own is None else own.reasons
    term = (form.term if form else "") or edited.answer or item.suggested_term
    typed_answer, is_changed = "", False
    if form is not None:
        chosen = tuple(form.reason)
        if form.verdict == "edit":
            # As it was typed, whether it can be stored or not.
            correct = int(form.correct) if form.correct.isdecimal() else edited.correct
            before = [edited.question, *edited.options, edited.correct, "" if draft.type.has_gap else edited.answer]
            edited = Wording(form.question, form.answer, tuple(form.option), correct)
            typed_answer = form.answer
            is_changed = before != [edited.question, *edited.options, correct, form.answer]
    verdict = form.verdict if form else "invalid" if own is not None and not own.accepted else ""
    cloze = draft.type.has_gap
    # What the passages have to say for the draft to be right; the C of °C and the like are everywhere.
    support = [
        word for word in _WORD.findall(draft.type.supporting_text(draft.content)) if len(word) > 1 or word.isdigit()
    ]
    return {
        "id": draft.id,
        "type": draft.type,
        "level_words": LEVELS[draft.level],
        "wording": wording,
        "reworded": is_reworded(draft, wording),
        "first_term": first.answer if cloze else "",
        "parts": statement_parts(wording.question, term, item.term_candidates) if cloze else (),
        "suggested": item.suggested_term if cloze else None,
        "passages": [(source, marked(source.text, support)) for source in draft.passages if source.text],
        # Whether the question was generated, and not brought by people.
        "generated": bool(draft.origin.model),
        "reasons": [(reason, reason.name in chosen) for reason in ANNOTATION_REASONS],
        "rating": _rating(item, own, form) if is_rating(draft.wording) else None,
        "rubric": _rubric(item, own, form) if is_rubric(draft.wording) else None,
        "remark": form.remark if form else own.remark if own is not None else "",
        "edited": edited,
        "typed_answer": typed_answer,
        "confidence": item.p_valid if confidence else None,
        # Which part of the page begins open.
        "opened": "reject" if verdict == "invalid" else "edit" if is_changed else "",
    }


_NAMES = {"first": "The first", "second": "The second", "tie": "Neither"}


def _rating(item: AnnotationItem, own: Label | None, form: LabelForm | None) -> dict[str, Any]:
    """Return the template values of answers to be rated: groups of options with their choices."""
    draft, options = item.draft, item.draft.wording.options
    before = own.wording.answer if own is not None and own.wording is not None else ""
    chosen = form.ratings(options) if form else parse_ratings(before, options) if before else {}
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
            (choice, _NAMES.get(choice, choice), chosen.get(option) == choice) for choice in possible_ratings(option)
        ]
        groups.setdefault(group, []).append(part)
    has_several_passages = len(draft.passages) > 1
    names = ("First answer", "Second answer") if has_several_passages else ("Answer",)
    answers = [(name, passage.text) for name, passage in zip(names, draft.passages, strict=True)]
    return {"audience": draft.main.citation, "answers": answers, "groups": groups.items(), "pair": has_several_passages}


def _rubric(item: AnnotationItem, own: Label | None, form: LabelForm | None) -> dict[str, Any]:
    """Return the template values of a rubric: its sources and rows."""
    draft = item.draft
    answer, *texts = draft.passages
    stored = read_rubric(draft.wording.answer) if own is None else rubric_of(own, item)
    rows, focus = [CriterionRow.of(criterion) for criterion in stored], None
    if form is not None:
        rows, focus = form.acted()
    return {
        "audience": answer.citation,
        "answer": answer.text,
        "texts": texts,
        "rows": rows or [CriterionRow()],
        "focus": focus,
        "given": own is None and form is None and bool(stored),
        "full": len(rows) >= MAX_CRITERIA,
    }


Participant = tuple[str, bool]
"""Name of an annotator, and whether as an adjudicator."""


def shown_names(
    item: AnnotationItem, comments: Sequence[Comment], reader: User, name_of: Callable[[str], str] = str
) -> dict[Participant, str]:
    """Return the names of the participants of an item for a reader.

    Annotators are numbered; the numbers are the same for all readers of an item and differ between items. Adjudicators
    see display names once the item is settled.
    """
    labelled = {label.annotator for label in item.labels if not label.adjudicates}
    people = {(label.annotator, label.adjudicates) for label in item.labels}
    people |= {(comment.author, comment.adjudicates) for comment in comments}

    def order(participant: Participant) -> tuple[bool, bytes]:
        return participant[0] not in labelled, hashlib.sha256(f"{item.draft.id} {participant[0]}".encode()).digest()

    annotators = sorted((participant for participant in people if not participant[1]), key=order)
    names = {participant: f"Annotator {number}" for number, participant in enumerate(annotators, start=1)}
    names |= {participant: "Adjudicator" for participant in people if participant[1]}
    if reader.may("adjudicate") and item.state == "settled":
        return {participant: name_of(participant[0]) for participant in names}
    return {person: f"{name} (you)" if person[0] == reader.name else name for person, name in names.items()}


def label_view(label: Label, item: AnnotationItem, by: str = "") -> dict[str, Any]:
    """Return the template values of a label on an item; an accepted cloze statement also gets its term.

    Args:
        label: The label.
        item: The labelled item.
        by: Displayed name of the annotator.
    """
    before, after = item.draft.wording, label.wording
    rated = parse_ratings(after.answer, before.options) if after is not None and is_rating(before) else {}
    ratings = [(part.removeprefix(CRITERION), _NAMES.get(choice, choice)) for part, choice in rated.items()]
    rubric = rubric_of(label, item) if is_rubric(before) else ()
    return {
        "label": label,
        "by": by,
        "rubric": rubric,
        "place": item.labels.index(label) if label in item.labels else 0,
        "draft": item.draft,
        "term": (after or before).answer if item.draft.type.has_gap and label.accepted else "",
        "ratings": ratings,
        "changes": () if after is None or ratings or is_rubric(before) else changes(before, after),
    }


def store_of(app: AppState) -> AnnotationStore:
    """Return the annotations of a server's workspace."""
    return app.shared("annotations", lambda: AnnotationStore(app.records))


def queue_of(app: AppState, dataset: str) -> AnnotationStore:
    """Return the annotations of a dataset.

    Raises:
        Missing: There is no such dataset.
    """
    store = store_of(app)
    with missing():
        store.settings(dataset)
    return store


def agreement_of(app: AppState, dataset: str) -> AnnotatorAgreement:
    """Return the agreement of annotators with bootstrap intervals, computed once per state of the labels."""
    store = queue_of(app, dataset)
    return app.computed.get(("agreement", dataset, store.revision(dataset)), lambda: store.agreement(dataset))


def work_of(store: AnnotationStore, dataset: str) -> Literal["questions", "ratings", "rubrics"]:
    """Return the kind of work in a dataset."""
    first = next(store.items(dataset), None)
    if first is None:
        return "questions"
    return "rubrics" if is_rubric(first.draft.wording) else "ratings" if is_rating(first.draft.wording) else "questions"


def may_annotate(store: AnnotationStore, dataset: str, user: User) -> bool:
    """Return whether a dataset is assigned to a user; adjudicators and admins see all of them."""
    return user.may("adjudicate") or store.settings(dataset).admits(user.name)


def own_label(item: AnnotationItem, user: User) -> Label | None:
    """Return the current label of a user on an item, or None."""
    return next((label for label in item.labels if label.annotator == user.name and not label.adjudicates), None)


def total_of(progress: AnnotationProgress) -> int:
    """Return the number of items that an annotator has labelled, skipped or yet to label."""
    return progress.mine + progress.skipped + progress.left_for_me


def training_offered(store: AnnotationStore, dataset: str) -> bool:
    """Return whether enough items were settled since the validator was last trained."""
    return store.new_labels(dataset) >= store.settings(dataset).retrain_every


def retrain_work(app: AppState, payload: dict[str, Any], report: JobReport) -> dict[str, Any]:
    """Train the validator of a dataset on its settled items and reorder its queue."""
    from climassay.generation.annotation import retrain

    dataset = str(payload["dataset"])
    retrain(app.records, app.workspace, dataset, progress=report.progress)
    return {"page": f"{address(dataset, 'settings')}#retraining"}


def trainings(app: AppState, dataset: str) -> list[Job]:
    """Return the latest training jobs of a dataset, newest first."""
    return [job for job in app.jobs.list(KIND) if job.payload["dataset"] == dataset][:MAX_TRAININGS]


def train(app: AppState, dataset: str, user: User) -> str:
    """Submit a job that trains the validator and return its id; an unfinished job is reused."""
    queue_of(app, dataset)
    for job in trainings(app, dataset):
        if not job.ended:
            return job.id
    return app.jobs.submit(KIND, f"Train the validator of {dataset}", {"dataset": dataset}, by=user.name)
