"""Asking a model for questions: prompts that fit its window, the JSON schema of an answer, and reading its wording.

The paper (appendix A.4.1) asks for four options under letters and for the letter of the correct one. Here the correct
answer is a field of its own and the distractors are a list: nobody can then mark a wrong letter, and where the correct
answer stands is decided by code and not by a model's liking for the third place.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError
from climassay.generation.draft import Decision, Draft, SourcePassage, Step, Wording, is_blank
from climassay.models.contract import Completion, GenerationRequest, Generator, Sampling, token_count, window_of
from climassay.prompts import RenderedPrompt
from climassay.questions import TYPES, Kind, Question
from climassay.questions.types.base import Lengths
from climassay.questions.types.multiple_choice import OPTIONS
from climassay.records import RecordedModel

TERM = "term"
"""The text that a writer may leave empty."""


class UnreadableAnswerError(ValueError):
    """A model's answer gives no wording; the message is one sentence."""


class DeclinedError(ValueError):
    """A model found the passage unfit to write from; the message is its reason."""


FULL = Lengths(question=2000, answer=2000, option=1000, statement=1000, reason=500, term=60)
BRIEF = Lengths(question=250, answer=300, option=120, statement=250)
"""For very small models."""


def answer_schema(kind: Kind, lengths: Lengths = FULL) -> dict[str, Any]:
    """JSON schema of the answer about one question of a kind, its texts and lists bounded."""
    # Who declines leaves the other fields empty.
    least = {} if lengths.reason else {"minLength": 1}
    properties: dict[str, Any] = {"declined": {"type": "string", "maxLength": lengths.reason}} if lengths.reason else {}
    texts, lists = TYPES[kind].texts(lengths), TYPES[kind].lists(lengths)
    properties |= {name: {"type": "string", **least, "maxLength": most} for name, most in texts.items()}
    for name, (count, most) in lists.items():
        properties[name] = {
            "type": "array",
            "minItems": 0 if lengths.reason else count,
            "maxItems": count,
            "items": {"type": "string", **least, "maxLength": most},
        }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def example_answer(question: Question, lengths: Lengths = FULL) -> str:
    """A question as a perfect writer would have answered, in the very format of the schema.

    Raises:
        InputError: The question cannot be an example, such as one of multiple choice without four options.
    """
    given = question.type.written(question)
    asked = (*question.type.texts(lengths), *question.type.lists(lengths))
    accepted = {"declined": ""} if lengths.reason else {}
    return json.dumps({**accepted, **{name: given[name] for name in asked}}, ensure_ascii=False)


def read_wording(kind: Kind, text: str, lengths: Lengths, *, position: int = 0, seed: int = 0) -> Wording:
    """The wording that a model's answer holds.

    Raises:
        DeclinedError: The model declined the passage.
        UnreadableAnswerError: It is not JSON of the schema, a text of it is empty or cut off, or options are missing.
    """
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableAnswerError("The reply is not complete JSON.") from None
    if not isinstance(fields, dict):
        raise UnreadableAnswerError("The reply is not a JSON object.")
    declined = fields.get("declined")
    if lengths.reason and isinstance(declined, str) and not is_blank(declined):
        raise DeclinedError(" ".join(declined.split()))
    given: dict[str, Any] = {}
    for name, most in TYPES[kind].texts(lengths).items():
        if name != TERM:
            given[name] = _checked(fields.get(name), name, most)
            continue
        term = fields.get(TERM)
        # A statement without its term is as good as any other: a masker chooses it then.
        given[TERM] = "" if not isinstance(term, str) or is_blank(term) else term.strip()
    for name, (count, most) in TYPES[kind].lists(lengths).items():
        found = fields[name] if isinstance(fields.get(name), list) else []
        if len(found) < count:
            raise UnreadableAnswerError(f"The reply has {len(found)} {name} instead of {count}.")
        one = name.removesuffix("s")
        given[name] = [_checked(part, f"{one} {number}", most) for number, part in enumerate(found[:count], start=1)]
    return Wording(*TYPES[kind].worded(given, position, random.Random(seed)))


def assign_positions(seeds: Sequence[int]) -> list[int]:
    """Where the correct options of questions written together shall stand, every letter about equally often.

    Each four questions in a row use every position once, in an order that their seeds decide.
    """
    positions: list[int] = []
    for start in range(0, len(seeds), OPTIONS):
        hand = list(range(OPTIONS))
        dealt = seeds[start : start + OPTIONS]
        random.Random(" ".join(map(str, dealt))).shuffle(hand)
        positions += hand[: len(dealt)]
    return positions


def _checked(value: object, name: str, most: int) -> str:
    """A text that says something and was not cut off, without needless blanks and quotation marks around it."""
    if not isinstance(value, str) or re.search(r"\w", value) is None:
        raise UnreadableAnswerError(f"The reply leaves the {name} empty.")
    text = " ".join(value.split())
    inner = text[1:-1]
    if len(text) > 2 and (text[0], text[-1]) in _QUOTES and text[0] not in inner:
        text = inner.strip()
    # A grammar closes a text at its bound, wherever the sentence then is; a longer text was not written under one.
    if len(value) == most and not text.endswith((".", "?", "!")):
        raise UnreadableAnswerError(f"The {name} of the reply was cut off at {most} characters.")
    return text


_QUOTES = {('"', '"'), ("“", "”"), ("'", "'")}


UNREADABLE = "unreadable reply"
"""Reason of the decision against a draft whose reply gave no wording."""
DECLINED = "declined"
"""Reason of the decision against a draft whose writer found the passage unfit."""
Examples = Mapping[Kind, Sequence[Question]]
"""Questions that are shown as a writer's good work."""


@dataclass(frozen=True, slots=True)
class QuestionRequest:
    """One question to be asked for."""

    kind: Kind
    passages: tuple[SourcePassage, ...]
    """The main passage first."""
    seed: int
    """Decides the sampling and the options' order."""
    render: Callable[[Sequence[SourcePassage]], RenderedPrompt]
    """The prompt about these passages, the main one first."""


@dataclass(frozen=True, slots=True)
class QuestionResult:
    """What came of a request."""

    passages: tuple[SourcePassage, ...]
    """Those that were shown, each with the part of its text that was shown."""
    wording: Wording | None
    error: str | None = None
    """Why the call failed, in one sentence; asking again may help."""
    unreadable: str | None = None
    """Why the reply gives no wording, in one sentence; the same request would be answered the same."""
    declined: str | None = None
    """Why the model would not write from the main passage, in its own words."""

    def applied(self, draft: Draft, step: Step, by: str) -> Draft:
        """A draft with this wording; a refusal to write or an unreadable reply is a decision of the step against it."""
        made = replace(draft, wording=self.wording or Wording(""), passages=self.passages, error=self.error)
        if self.declined is not None:
            return made.decided(Decision(step, by, False, DECLINED, self.declined))
        if self.unreadable is not None:
            return made.decided(Decision(step, by, False, UNREADABLE, self.unreadable))
        return made


@dataclass(frozen=True, slots=True)
class QuestionAsker:
    """Asks one model for questions of all kinds; nothing that a model answers raises an error.

    Raises:
        InputError: The temperature is negative, or no token is allowed.
    """

    model: Generator
    temperature: float
    max_tokens: int
    """Maximum number of tokens of an answer; one that needs more is cut off and counts as failed."""
    lengths: Lengths

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise InputError(f"The temperature is {self.temperature}: it cannot be negative.")
        if self.max_tokens < 1:
            raise InputError(f"max_tokens is {self.max_tokens}: at least one token must be allowed.")

    def ask(self, requests: Sequence[QuestionRequest]) -> list[QuestionResult]:
        """Ask for all questions in one call of the model."""
        fitted = [self._fitted(request) for request in requests]
        # Questions with options are dealt the places of their correct ones by kind.
        positions = [0] * len(requests)
        for kind in dict.fromkeys(request.kind for request in requests if TYPES[request.kind].options):
            places = [place for place, request in enumerate(requests) if request.kind == kind]
            for place, position in zip(places, assign_positions([requests[one].seed for one in places]), strict=True):
                positions[place] = position
        completions = self.model.generate([request for _, request in fitted])
        return [
            self._result(request, shown, completion, position)
            for request, (shown, _), completion, position in zip(requests, fitted, completions, positions, strict=True)
        ]

    def _fitted(self, asked: QuestionRequest) -> tuple[tuple[SourcePassage, ...], GenerationRequest]:
        """The passages that the model's window holds, and the request about them."""
        model = self.model.wrapped if isinstance(self.model, RecordedModel) else self.model
        room = window_of(model) - self.max_tokens

        def request(passages: Sequence[SourcePassage]) -> GenerationRequest:
            rendered = asked.render(passages)
            return GenerationRequest(
                rendered.messages,
                Sampling(self.max_tokens, self.temperature, seed=asked.seed),
                answer_schema(asked.kind, self.lengths),
                rendered.assistant_prefix,
            )

        def fits(passages: Sequence[SourcePassage]) -> bool:
            one = request(passages)
            return token_count(model, model.render(one.messages, one.assistant_prefix)) <= room

        shown = fitting_passages(asked.passages, fits)
        return shown, request(shown)

    def _result(
        self, asked: QuestionRequest, shown: tuple[SourcePassage, ...], completion: Completion, position: int
    ) -> QuestionResult:
        if completion.error is not None:
            return QuestionResult(shown, None, completion.error)
        if completion.finish_reason == "length":
            return QuestionResult(shown, None, unreadable=f"The reply was cut off at {self.max_tokens} tokens.")
        try:
            wording = read_wording(asked.kind, completion.text, self.lengths, position=position, seed=asked.seed)
        except DeclinedError as refusal:
            return QuestionResult(shown, None, declined=str(refusal))
        except UnreadableAnswerError as fault:
            return QuestionResult(shown, None, unreadable=str(fault))
        return QuestionResult(shown, wording)


def fitting_passages(
    passages: tuple[SourcePassage, ...], fits: Callable[[Sequence[SourcePassage]], bool]
) -> tuple[SourcePassage, ...]:
    """The passages, the main one first, a prompt about which fits.

    Retrieved ones are dropped from the end, then the main one is cut at a sentence. Where not even its first sentence
    fits, that sentence is all that is left, and it is for the model to refuse.
    """
    for count in range(len(passages), 0, -1):
        if fits(passages[:count]):
            return passages[:count]
    main = passages[0]
    ends = [end for _, end in sentence_spans(main.text)] or [len(main.text)]
    fewest, most = 0, len(ends) - 1  # at least the first sentence stays, and the last one has to go
    while fewest + 1 < most:
        middle = (fewest + most) // 2
        if fits((replace(main, text=main.text[: ends[middle]].rstrip()),)):
            fewest = middle
        else:
            most = middle
    return (replace(main, text=main.text[: ends[fewest]].rstrip()),)


def passage_values(passages: Sequence[SourcePassage]) -> dict[str, Any]:
    """What templates read of the passages, the main one first: texts, and title and section of each."""
    main, *retrieved = passages
    return {
        "main": main.text,
        "main_source": main.source,
        "retrieved": [passage.text for passage in retrieved],
        "retrieved_sources": [passage.source for passage in retrieved],
    }
