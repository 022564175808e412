"""Items of the annotation queue made from other questions and answers, and the questions that experts accepted.

Such an item is a draft without an origin. The document id of its main passage is the id of the question or answer, and
the text of the passage is the question's context, which may be empty.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from climassay.evaluation import Experiment
from climassay.generation.annotation.labels import AnnotationItem, decide_outcome, is_rating, is_rubric
from climassay.generation.dataset_store import StoredDraft
from climassay.generation.draft import Draft, SourcePassage, draft_id, question_draft
from climassay.questions import Question


def question_drafts(questions: Iterable[Question]) -> Iterator[StoredDraft]:
    """Yield an annotation item for each question; long-form questions, whose answers are rated instead, are skipped."""
    for question in questions:
        if question.type.is_judged:
            continue
        draft = question_draft(question)
        document, section = question.document or "", question.section or ""
        passage = SourcePassage(f"{question.id}-context", question.context or "", question.id, document, section)
        item_id = draft_id("question", question.id, question.question, question.answer, question.options)
        yield StoredDraft(replace(draft, id=item_id, passages=(passage,)), question.id, 0)


def answer_drafts(experiment: Experiment) -> list[StoredDraft]:
    """Return an annotation item for each freeform answer of an experiment, with the reference answer and the context.

    Model and setting appear only in the document id of the main passage, which annotators do not see, but exported
    files of labels contain.
    """
    questions = {(name, question.id): question for name, group in experiment.questions.items() for question in group}
    results = []
    for outcome in experiment.outcomes:
        question = questions.get((outcome.cell.benchmark, outcome.question))
        if question is None or not question.type.is_prose or question.type.is_judged:
            continue
        if outcome.error is not None or not outcome.answer.strip():
            continue
        name = " | ".join((outcome.cell.benchmark, question.id, outcome.cell.model, outcome.cell.setting))
        answered_question = replace(question, answer=outcome.answer)
        draft = question_draft(answered_question)
        item_id = draft_id("answer", name, question.question, outcome.answer)
        passages = [SourcePassage(f"{item_id}-reference", question.answer, name, "Reference answer")]
        if question.context:
            document, section = question.document or "", question.section or ""
            passages.append(SourcePassage(f"{item_id}-context", question.context, name, document, section))
        results.append(StoredDraft(replace(draft, id=item_id, passages=tuple(passages)), name, 0))
    # Sorted by a hash, so that the order does not reveal the model.
    return sorted(results, key=lambda stored: stored.draft.id)


def source_id(draft: Draft) -> str:
    """Return the id of the question or answer from which an item was made; empty for a generated draft."""
    return "" if draft.origin.model else draft.main.document_id


def accepted_questions(items: Iterable[AnnotationItem], overlap: int) -> list[Question]:
    """Return the questions that experts accepted, in the experts' wording, sorted by id.

    Only settled items count; an item needs ``overlap`` labels.
    """
    results = []
    for item in items:
        draft = item.draft
        if item.state != "settled" or is_rating(draft.wording) or is_rubric(draft.wording):
            continue
        outcome = decide_outcome(item.labels, overlap, draft.wording)
        if outcome.decision is None or not outcome.decision.accepted:
            continue
        question = replace(draft, wording=outcome.wording or draft.wording).as_question()
        question_id, context, document = source_id(draft), question.context or None, question.document or None
        results.append(replace(question, id=question_id or question.id, context=context, document=document))
    return sorted(results, key=lambda question: question.id)
