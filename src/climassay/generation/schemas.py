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

from climassay.errors import InputError
from climassay.generation.draft import Wording, nothing
from climassay.questions import GAP, Kind, Question

DISTRACTORS = 3
OPTIONS = DISTRACTORS + 1


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
    properties |= {name: {"type": "string", **least, "maxLength": most} for name, most in _texts(kind, lengths).items()}
    if kind == "mcq":
        properties["distractors"] = {
            "type": "array",
            "minItems": 0 if lengths.reason else DISTRACTORS,
            "maxItems": DISTRACTORS,
            "items": {"type": "string", **least, "maxLength": lengths.option},
        }
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def example_answer(question: Question, lengths: Lengths = FULL) -> str:
    """A question as a perfect writer would have answered, in the very format of the schema.

    Raises:
        InputError: A multiple-choice question that has not four options, one of them correct.
    """
    accepted = {"declined": ""} if lengths.reason else {}
    if question.kind == "cloze":
        term = {"term": question.answer} if lengths.term else {}
        return _as_json({**accepted, "statement": question.question.replace(GAP, question.answer), **term})
    if question.kind == "freeform":
        return _as_json({**accepted, "question": question.question, "answer": question.answer})
    if question.correct is None or len(question.options) != OPTIONS:
        raise InputError(f"The question {question.id} cannot be an example: it has not four options, one correct.")
    distractors = [option for place, option in enumerate(question.options) if place != question.correct]
    right = question.options[question.correct]
    return _as_json({**accepted, "question": question.question, "answer": right, "distractors": distractors})


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
    texts = {name: _text(fields, name, most) for name, most in _texts(kind, lengths).items() if name != "term"}
    if kind == "cloze":
        term = fields.get("term") if lengths.term else None
        # A statement without its term is as good as any other: a masker chooses it then.
        return Wording(texts["statement"], "" if not isinstance(term, str) or nothing(term) else term.strip())
    if kind == "freeform":
        return Wording(texts["question"], texts["answer"])
    distractors = _distractors(fields, lengths.option)
    answer, *distractors = _without_labels([texts["answer"], *distractors])
    random.Random(seed).shuffle(distractors)
    options = (*distractors[:position], answer, *distractors[position:])
    return Wording(texts["question"], answer, options, position)


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


def _texts(kind: Kind, lengths: Lengths) -> dict[str, int]:
    """The texts of an answer, in their order, with their greatest lengths."""
    if kind == "cloze":
        return {"statement": lengths.statement} | ({"term": lengths.term} if lengths.term else {})
    return {"question": lengths.question, "answer": lengths.option if kind == "mcq" else lengths.answer}


def _as_json(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        raise UnreadableAnswerError("The reply is not complete JSON.") from None
    if not isinstance(value, dict):
        raise UnreadableAnswerError("The reply is not a JSON object.")
    return value


def _text(fields: dict[str, Any], name: str, most: int) -> str:
    return _checked(fields.get(name), name, most)


def _distractors(fields: dict[str, Any], most: int) -> list[str]:
    listed = fields.get("distractors")
    found = listed if isinstance(listed, list) else []
    if len(found) < DISTRACTORS:
        raise UnreadableAnswerError(f"The reply has {len(found)} distractors instead of {DISTRACTORS}.")
    return [_checked(text, f"distractor {number}", most) for number, text in enumerate(found[:DISTRACTORS], start=1)]


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
_LABEL = re.compile(r"\(?([A-Da-d1-4])[.):]\s+(?=\S)")


def _without_labels(options: list[str]) -> list[str]:
    """The options without the letters or numbers before them, where all four have one and no two the same."""
    labels = [_LABEL.match(option) for option in options]
    found = [label for label in labels if label is not None]
    if len(found) < len(options) or len({label[1].lower() for label in found}) < len(options):
        return options
    return [option[label.end() :] for option, label in zip(options, found, strict=True)]
