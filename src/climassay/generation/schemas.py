"""What a writer's answer looks like: its JSON schema for each kind, and the wording that is read from it.

The paper (appendix A.4.1) asks for four options under letters and for the letter of the correct one. Here the correct
answer is a field of its own and the distractors are a list: nobody can then mark a wrong letter, and where the correct
answer stands is decided by code and not by a model's liking for the third place.
"""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from climassay.generation.draft import Wording, nothing
from climassay.questions import TYPES, Kind, Question
from climassay.questions.types.multiple_choice import OPTIONS

TERM = "term"
"""The text that a writer may leave empty."""


class UnreadableAnswerError(ValueError):
    """A model's answer gives no wording; the message is one sentence."""


class DeclinedError(ValueError):
    """A model found the passage unfit to write from; the message is its reason."""


@dataclass(frozen=True, slots=True)
class Lengths:
    """Most characters of what a model writes, and whether it has fields that ask for judgement.

    A weak model fills a text up to its bound. A strong one keeps to the lengths that the prompt names; its bounds only
    end a text that runs away, and a text that is longer than asked for is kept.
    """

    question: int
    answer: int
    """Of a freeform answer."""
    option: int
    statement: int
    reason: int = 0
    """Of the reason for declining a passage; 0 for models that are not asked whether it is fit."""
    term: int = 0
    """Of the term that the writer of a statement wants masked; 0 leaves the choice to a masker."""


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

    Args:
        kind: Of the question asked for.
        text: The answer.
        lengths: Those of the schema it was asked under.
        position: Where the correct option shall stand, from 0 (mcq).
        seed: Decides the order of the distractors (mcq).

    Raises:
        DeclinedError: The model declined the passage.
        UnreadableAnswerError: It is no JSON of the schema, a text of it is empty or cut off, or options are missing.
    """
    fields = _object(text)
    declined = fields.get("declined")
    if lengths.reason and isinstance(declined, str) and not nothing(declined):
        raise DeclinedError(" ".join(declined.split()))
    given: dict[str, Any] = {}
    for name, most in TYPES[kind].texts(lengths).items():
        if name != TERM:
            given[name] = _checked(fields.get(name), name, most)
            continue
        term = fields.get(TERM)
        # A statement without its term is as good as any other: a masker chooses it then.
        given[TERM] = "" if not isinstance(term, str) or nothing(term) else term.strip()
    for name, (count, most) in TYPES[kind].lists(lengths).items():
        given[name] = _listed(fields, name, count, most)
    return Wording(*TYPES[kind].worded(given, position, random.Random(seed)))


def deal_positions(seeds: Sequence[int]) -> list[int]:
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


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableAnswerError("The reply is not complete JSON.") from None
    if not isinstance(value, dict):
        raise UnreadableAnswerError("The reply is not a JSON object.")
    return value


def _listed(fields: dict[str, Any], name: str, count: int, most: int) -> list[str]:
    listed = fields.get(name)
    found = listed if isinstance(listed, list) else []
    if len(found) < count:
        raise UnreadableAnswerError(f"The reply has {len(found)} {name} instead of {count}.")
    one = name.removesuffix("s")
    return [_checked(text, f"{one} {number}", most) for number, text in enumerate(found[:count], start=1)]


def _checked(value: object, name: str, most: int) -> str:
    """A text that says something and was not cut off, its blanks and quotation marks tidied."""
    if not isinstance(value, str) or re.search(r"\w", value) is None:
        raise UnreadableAnswerError(f"The reply leaves the {name} empty.")
    text = _unquoted(" ".join(value.split()))
    # A grammar closes a text at its bound, wherever the sentence then is; a longer text was not written under one.
    if len(value) == most and not text.endswith((".", "?", "!")):
        raise UnreadableAnswerError(f"The {name} of the reply was cut off at {most} characters.")
    return text


def _unquoted(text: str) -> str:
    """The text without one pair of quotation marks around all of it."""
    inner = text[1:-1]
    return inner.strip() if len(text) > 2 and (text[0], text[-1]) in _QUOTES and text[0] not in inner else text


_QUOTES = {('"', '"'), ("“", "”"), ("'", "'")}
