"""Questions of a file as drafts, so that they can be screened like generated ones."""

from typing import cast

from climassay.generation.draft import Draft, Origin, SourcePassage, Wording
from climassay.primer import ScreeningExample
from climassay.questions import GAP, Level, Question

GIVEN = Origin(model="", fingerprint="", prompts=(), seed=0)
"""Of questions that no model wrote, as far as their file says."""


def question_draft(question: Question) -> Draft:
    """A question as a draft with its context as the one passage; a cloze statement gets its term back into the gap.

    A question without a context has no passages, and what needs them finds no fault.
    """
    context = question.context or ""
    passage = SourcePassage(
        id=f"{question.id}-context",
        text=context,
        document_id=question.document or "",
        document=question.document or "",
        section=question.section or "",
    )
    wording = Wording(
        question.question.replace(GAP, question.answer) if question.type.gap else question.question,
        question.answer,
        question.options,
        question.correct,
    )
    passages = (passage,) if context else ()
    return Draft(question.id, question.kind, question.level or "base", wording, passages, GIVEN)


def example_draft(example: ScreeningExample) -> Draft:
    """A screening example of the primer as a draft."""
    passage = SourcePassage(
        id=f"{example.id}-passage",
        text=example.passage,
        document_id=example.document,
        document=example.document,
        section=example.section,
    )
    wording = Wording(example.question, example.answer, example.options, example.correct)
    kind, level = example.kind, cast(Level, example.level)
    return Draft(example.id, kind, level, wording, (passage,), GIVEN)
