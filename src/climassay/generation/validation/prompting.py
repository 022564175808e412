"""How a draft is put before a model that is to call it VALID or INVALID."""

from pathlib import Path

from climassay.generation.draft import Draft, Subject
from climassay.models.contract import OptionRequest
from climassay.prompts import Prompt, load_prompt
from climassay.questions import option_letter

PROMPT = "validate"
ANSWERS = (" VALID", " INVALID")
"""Ends of the model's answer."""
_KINDS = {
    "mcq": "multiple-choice questions",
    "freeform": "freeform questions",
    "cloze": "fill-in-the-gap statements",
}
LONGEST_CONTEXT = 8000
"""Characters of a context that are shown: the main passage stands first and is never what is cut."""


def validation_prompt(overrides: Path | None = None) -> Prompt:
    """The template, the user's own where the folder has one."""
    return load_prompt(PROMPT, overrides)


def validation_request(
    draft: Draft, prompt: Prompt, subject: Subject, *, longest_context: int = LONGEST_CONTEXT
) -> OptionRequest:
    """The question whether a draft is valid (ClimaQA, appendix A.5.2: question, answer, context)."""
    wording = draft.wording
    return _request(
        prompt, subject, draft.kind, wording.question, wording.options, wording.answer, draft.context[:longest_context]
    )


def content_free_request(kind: str, options: int, text: str, prompt: Prompt, subject: Subject) -> OptionRequest:
    """The same with a text that says nothing in every place where content belongs.

    Args:
        kind: Of the drafts that are to be corrected.
        options: How many they have.
        text: That says nothing, for example ``N/A``.
        prompt: The template.
        subject: The science.
    """
    return _request(prompt, subject, kind, text, (text,) * options, text, text)


def _request(
    prompt: Prompt, subject: Subject, kind: str, question: str, options: tuple[str, ...], answer: str, context: str
) -> OptionRequest:
    rendered = prompt.render(
        kind=_KINDS[kind],
        field=subject.field,
        question=question,
        options=[{"letter": option_letter(place), "text": option} for place, option in enumerate(options)],
        answer=answer,
        context=context,
    )
    return OptionRequest(rendered.messages, ANSWERS, rendered.assistant_prefix)
