"""Questions and model answers from elsewhere as items of the annotation queue, and the questions that experts accept.

An item is a draft without an origin. The document id of its main passage is the id of the question or answer, and the
passage's text is the question's context, which may be empty.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from climassay.evaluation import Experiment
from climassay.generation.annotation.labels import AnnotationItem, is_rating, is_rubric, outcome_of
from climassay.generation.dataset_store import StoredDraft
from climassay.generation.draft import Draft, SourcePassage, draft_id, question_draft
from climassay.questions import Question


def question_drafts(questions: Iterable[Question]) -> Iterator[StoredDraft]:
    """Yield an item for each question except long-form ones, whose answers are not accepted as a whole."""
    for question in questions:
        if question.kind == "longform":
            continue
        draft = question_draft(question)
        document, section = question.document or "", question.section or ""
        passage = SourcePassage(f"{question.id}-context", question.context or "", question.id, document, section)
        id_ = draft_id("question", question.id, question.question, question.answer, question.options)
        yield StoredDraft(replace(draft, id=id_, passages=(passage,)), question.id, 0)


def answer_drafts(experiment: Experiment) -> list[StoredDraft]:
    """Return an item for each freeform answer of an experiment, beside the reference answer and the context.

    Items name neither model nor setting, except in the id of the main passage's document, which files of labels show.
    """
    questions = {(name, question.id): question for name, listed in experiment.questions.items() for question in listed}
    results = []
    for outcome in experiment.outcomes:
        question = questions.get((outcome.cell.benchmark, outcome.question))
        if question is None or question.kind != "freeform" or outcome.error is not None or not outcome.answer.strip():
            continue
        name = " | ".join((outcome.cell.benchmark, question.id, outcome.cell.model, outcome.cell.setting))
        answered = replace(question, answer=outcome.answer)
        draft = question_draft(answered)
        id_ = draft_id("answer", name, question.question, outcome.answer)
        passages = [SourcePassage(f"{id_}-reference", question.answer, name, "Reference answer")]
        if question.context:
            document, section = question.document or "", question.section or ""
            passages.append(SourcePassage(f"{id_}-context", question.context, name, document, section))
        results.append(StoredDraft(replace(draft, id=id_, passages=tuple(passages)), name, 0))
    # In an order that says nothing of who answered.
    return sorted(results, key=lambda stored: stored.draft.id)


def source_id(draft: Draft) -> str:
    """Return the id of the question or answer that an item was made of; empty for a generated draft."""
    return "" if draft.origin.model else draft.main.document_id


def accepted_questions(items: Iterable[AnnotationItem], overlap: int) -> list[Question]:
    """Return the questions of settled items that experts accept, in the experts' wording, in the order of their ids.

    Args:
        items: Items with their labels.
        overlap: Number of labels that each item needs.
    """
    results = []
    for item in items:
        draft = item.draft
        if item.state != "settled" or is_rating(draft.wording) or is_rubric(draft.wording):
            continue
        outcome = outcome_of(item.labels, overlap, draft.wording)
        if outcome.decision is None or not outcome.decision.accepted:
            continue
        question = replace(draft, wording=outcome.wording or draft.wording).as_question()
        own_id, context, document = source_id(draft), question.context or None, question.document or None
        results.append(replace(question, id=own_id or question.id, context=context, document=document))
    return sorted(results, key=lambda question: question.id)
