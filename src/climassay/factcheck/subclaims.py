"""Splitting a claim into statements that can be checked one by one, each with its place in the claim."""

import json
import re
from itertools import pairwise
from typing import Any, Literal

from climassay.corpus.sentences import split_sentences
from climassay.factcheck.steps import Steps, ask_text
from climassay.factcheck.transcript import Subclaim
from climassay.models.contract import GenerationRequest, Sampling
from climassay.prompts import Prompt

Splitter = Literal["model", "rules", "none"]
MOST = 5
"""Subclaims of one claim."""
_LONGEST = 400
_FEWEST_WORDS = 3
"""A piece of fewer words is no statement of its own."""


def split_claim(
    text: str, splitter: Splitter, model: str, prompt: Prompt
) -> Steps[tuple[tuple[Subclaim, ...], Splitter]]:
    """Subclaims, and who made them.

    Args:
        text: The claim.
        splitter: ``model`` asks the model for quotations of the claim, each with a statement that can stand alone, and
            falls back on rules where the quotations are not in the claim, overlap, or leave out half of it; ``rules``
            splits at sentences and semicolons; ``none`` takes the claim whole.
        model: Name of the model to ask.
        prompt: Template with ``claim`` and ``most``.
    """
    if splitter == "none":
        return (whole(text),), "none"
    if splitter == "model":
        rendered = prompt.render(claim=text, most=MOST)
        request = GenerationRequest(
            rendered.messages, Sampling(max_tokens=None), schema=_SCHEMA, assistant_prefix=rendered.assistant_prefix
        )
        completion = yield from ask_text(model, request)
        found = None if completion.error is not None else _accepted(text, completion.text)
        if found is not None:
            return found, "model"
    return by_rules(text), "rules"


def whole(text: str) -> Subclaim:
    """The claim as its only subclaim."""
    return Subclaim(1, text, 0, len(text))


def by_rules(text: str) -> tuple[Subclaim, ...]:
    """Sentences and parts between semicolons; pieces too short to be statements stay with the one before."""
    borders = [0]
    for sentence in split_sentences(text):
        place = text.find(sentence, borders[-1])
        if place > borders[-1]:
            borders.append(place)
    borders += [match.end() for match in re.finditer(r";\s+", text)]
    pieces: list[tuple[int, int]] = []
    places = sorted({*borders, len(text)})
    for start, end in pairwise(places):
        if pieces and (_words(text[start:end]) < _FEWEST_WORDS or _words(text[slice(*pieces[-1])]) < _FEWEST_WORDS):
            pieces[-1] = (pieces[-1][0], end)
        else:
            pieces.append((start, end))
    if len(pieces) > MOST:
        pieces = [*pieces[: MOST - 1], (pieces[MOST - 1][0], pieces[-1][1])]
    if len(pieces) < 2:
        return (whole(text),)
    return tuple(_trimmed(text, number, *piece) for number, piece in enumerate(pieces, start=1))


def _trimmed(text: str, number: int, start: int, end: int) -> Subclaim:
    piece = text[start:end]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip().rstrip(";").rstrip()
    return Subclaim(number, piece, start, start + len(piece))


def _words(text: str) -> int:
    return len(re.findall(r"\w+", text))


_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "parts": {
            "type": "array",
            "minItems": 1,
            "maxItems": MOST,
            "items": {
                "type": "object",
                "properties": {
                    "quotation": {"type": "string", "maxLength": _LONGEST},
                    "statement": {"type": "string", "maxLength": _LONGEST},
                },
                "required": ["quotation", "statement"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["parts"],
    "additionalProperties": False,
}


def _accepted(text: str, answer: str) -> tuple[Subclaim, ...] | None:
    """The model's subclaims, where they are quotations of the claim that do not overlap and cover most of it."""
    try:
        parts = json.loads(answer)["parts"]
        pairs = [(str(part["quotation"]), str(part["statement"])) for part in parts]
    except (ValueError, KeyError, TypeError):
        return None
    placed = [(span, statement) for quotation, statement in pairs if (span := locate(text, quotation)) is not None]
    if len(placed) < len(pairs) or not 0 < len(placed) <= MOST:
        return None
    placed.sort()
    spans = [span for span, _ in placed]
    if any(first[1] > second[0] for first, second in pairwise(spans)):
        return None
    if sum(_words(text[slice(*span)]) for span in spans) < 0.5 * _words(text):
        return None
    if len(placed) == 1:
        return (whole(text),)
    return tuple(
        Subclaim(number, _own_words(text[slice(*span)], statement), *span)
        for number, (span, statement) in enumerate(placed, start=1)
    )


def _own_words(quotation: str, statement: str) -> str:
    """The statement, where it is about what the quotation says; else the quotation."""
    quoted, said = set(re.findall(r"\w+", quotation.lower())), set(re.findall(r"\w+", statement.lower()))
    kept = len(quoted & said) / max(1, len(quoted))
    return " ".join(statement.split()) if kept >= 0.5 else quotation


def locate(text: str, quotation: str) -> tuple[int, int] | None:
    """Where a quotation of whole words stands in a text, whatever its case, blanks and quotation marks, or None.

    Signs at its ends belong to it where the text has them too: without them "-2" would be 2, and "50%" would be 50.
    """
    words = re.findall(r"\w+", quotation)
    if not words:
        return None
    match = re.search(r"\b" + r"\W+".join(map(re.escape, words)) + r"\b", text, re.IGNORECASE)
    if match is None:
        return None
    start, end = match.span()
    before = quotation[: quotation.index(words[0])].strip()
    after = quotation[quotation.rindex(words[-1]) + len(words[-1]) :].strip()
    return start - len(before) * text[:start].endswith(before), end + len(after) * text.startswith(after, end)
