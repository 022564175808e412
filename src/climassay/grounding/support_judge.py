"""Judgement of a language model on whether passages support a sentence."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from climassay.corpus.documents import Passage
from climassay.grounding.quotations import MIN_QUOTED_WORDS, is_quoted
from climassay.models.contract import (
    Completion,
    GenerationRequest,
    Generator,
    Sampling,
    Usage,
    object_schema,
)
from climassay.prompts import Prompt, load_prompt


@dataclass(frozen=True, slots=True)
class Judgement:
    """Judgement of a language model on whether passages support a sentence."""

    relation: Literal["supports", "contradicts", "settles nothing"] | None
    """Relation of the passages to the sentence; None if the request failed."""
    reason: str
    quotation: str = ""
    quoted: bool = False
    """Whether the quotation has at least three words and occurs in a passage."""
    error: str | None = None


class SupportJudge:
    """Asks a language model whether passages support a sentence, contradict it, or do neither."""

    def __init__(self, model: Generator, prompt: Prompt | None = None) -> None:
        """Store the model and the prompt.

        Args:
            model: Model that answers under a JSON schema.
            prompt: Template with ``statement``, ``before`` (the previous sentence, which may be empty) and ``passages``
                (``number``, ``citation``, ``text``); by default the built-in ``check_text``.
        """
        self.name = model.name
        self.usage = Usage()
        """Usage of all requests so far."""
        self._model = model
        self._prompt = prompt or load_prompt("check_text")

    def judge(
        self, questions: Sequence[tuple[str, str, Sequence[Passage]]], on_progress: Callable[[int], None] | None = None
    ) -> list[tuple[Judgement, Passage | None]]:
        """Judge sentences.

        Args:
            questions: Tuples of a sentence, the previous sentence, and the passages to read with it.
            on_progress: Callback that receives 1 for each judged sentence.

        Returns:
            For each question, the judgement and the passage that it refers to (None if it refers to none).
        """
        requests = []
        for sentence, previous, passages in questions:
            numbered_passages = [
                {"number": number, "citation": passage.citation, "text": passage.text}
                for number, passage in enumerate(passages, start=1)
            ]
            rendered_prompt = self._prompt.render(statement=sentence, before=previous, passages=numbered_passages)
            requests.append(
                GenerationRequest(
                    rendered_prompt.messages,
                    Sampling(max_tokens=400),
                    object_schema(
                        {
                            "reasoning": {"type": "string", "maxLength": 600},
                            "relation": {"type": "string", "enum": list(_RELATIONS)},
                            "passage": {"type": "integer", "minimum": 0, "maximum": len(passages)},
                            "quotation": {"type": "string", "maxLength": 600},
                        }
                    ),
                    assistant_prefix=rendered_prompt.assistant_prefix,
                )
            )
        on_result = None if on_progress is None else (lambda _index, _answer: on_progress(1))
        answers = self._model.generate(requests, on_result=on_result) if requests else []
        for answer in answers:
            self.usage += answer.usage
        return [_parse_judgement(answer, passages) for answer, (_, _, passages) in zip(answers, questions, strict=True)]


_RELATIONS = ("supports", "contradicts", "settles nothing")


def _parse_judgement(answer: Completion, passages: Sequence[Passage]) -> tuple[Judgement, Passage | None]:
    if answer.error is not None:
        return Judgement(None, "", error=answer.error), None
    try:
        data = json.loads(answer.text)
        relation, number = data["relation"], int(data["passage"])
        reason, quotation = str(data["reasoning"]).strip(), str(data["quotation"]).strip()
    except (KeyError, TypeError, ValueError, RecursionError):
        return Judgement(None, "", error="The reply is not what was asked for."), None
    if relation not in _RELATIONS:
        return Judgement(None, reason, error="The reply is not what was asked for."), None
    named_passage = passages[number - 1] if 0 < number <= len(passages) else None
    # The quotation may be right although the number is wrong. One or two words occur in many passages.
    is_long_enough = len(quotation.split()) >= MIN_QUOTED_WORDS
    candidates = (named_passage, *passages) if is_long_enough else ()
    quoted_passage = next(
        (passage for passage in candidates if passage is not None and is_quoted(quotation, passage.text)), None
    )
    return Judgement(relation, reason, quotation, quoted_passage is not None), quoted_passage or named_passage
