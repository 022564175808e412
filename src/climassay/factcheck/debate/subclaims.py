"""What a claim says, before evidence is looked for: whether it can be checked, its statements, and what to search for.

A model that is asked with full prompts decides all three in one call. One that gets brief prompts is only asked for the
statements; rules take over where no model is asked, or where its quotations do not fit the claim.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from climassay.corpus.sentences import locate_quotation, split_sentences
from climassay.factcheck.configuration import Splitter
from climassay.factcheck.debate.steps import Steps, ask_text
from climassay.factcheck.transcript import Subclaim
from climassay.models.contract import GenerationRequest, Sampling, object_schema
from climassay.models.profiles import Profile
from climassay.prompts import Prompt

if TYPE_CHECKING:
    from climassay.factcheck.checkability import Kind


MOST = 5
"""Subclaims of one claim."""
_LONGEST = 400
_LONGEST_QUERY = 200
_REFUSED: Mapping[str, "Kind"] = {"not checkable": "not checkable", "not about climate": "not about climate"}
_FEWEST_WORDS = 3
"""A piece of fewer words is not a statement of its own."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read from a claim."""

    subclaims: tuple[Subclaim, ...]
    """At least one."""
    splitter: Splitter
    """Who made them."""
    kind: "Kind" = "checkable"
    reason: str = ""
    """Why it is not checkable or not about climate, in one sentence."""


def read_claim(
    text: str, splitter: Splitter, model: str, profile: Profile, templates: Mapping[str, Prompt]
) -> Steps[Reading]:
    """Read a claim.

    ``model`` asks for quotations of the claim, each with a statement that can stand alone, and falls back on rules
    where the quotations are not in the claim, overlap, or leave out half of it; ``rules`` splits at sentences and
    semicolons; ``none`` takes the claim whole. A full prompt, unlike a brief one, also asks whether the claim can be
    checked, and for search queries.
    """
    if splitter == "none":
        return Reading((whole(text),), "none")
    if splitter == "model":
        template = templates["split_brief" if profile.brief else "split"]
        rendered = template.render(
            claim=" ".join(text.split()),
            most=MOST,
            longest=_LONGEST,
            queries=profile.queries,
            longest_query=_LONGEST_QUERY,
        )
        schema = _schema(len(text), not profile.brief, 0 if profile.brief else profile.queries)
        request = GenerationRequest(
            rendered.messages, Sampling(max_tokens=None), schema=schema, assistant_prefix=rendered.assistant_prefix
        )
        completion = yield from ask_text(model, request)
        reading = None if completion.error is not None else _accepted(text, completion.text, profile)
        if reading is not None:
            return reading
    return Reading(by_rules(text), "rules")


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
    trimmed = []
    for number, (start, end) in enumerate(pieces, start=1):
        start += len(text[start:end]) - len(text[start:end].lstrip())
        piece = text[start:end].strip().rstrip(";").rstrip()
        trimmed.append(Subclaim(number, piece, start, start + len(piece)))
    return tuple(trimmed)


def _words(text: str) -> int:
    return len(re.findall(r"\w+", text))


def _schema(length: int, judged: bool, queries: int) -> dict[str, Any]:
    """JSON schema of the answer; ``judged``: it also says what kind of text the claim is."""
    text: dict[str, Any] = {"type": "string", "maxLength": _LONGEST}
    # A strong model may have to quote a long claim whole.
    quotation = {"type": "string", "maxLength": max(length, 1)} if judged else text
    part = {"quotation": quotation, "statement": text}
    if queries:
        query = {"type": "string", "maxLength": _LONGEST_QUERY}
        part["queries"] = {"type": "array", "maxItems": queries, "items": query}
    parts = {"type": "array", "minItems": 0 if judged else 1, "maxItems": MOST, "items": object_schema(part)}
    kinds = {"type": "string", "enum": ["checkable", *_REFUSED]}
    return object_schema({"reason": text, "kind": kinds, "parts": parts} if judged else {"parts": parts})


def _accepted(text: str, answer: str, profile: Profile) -> Reading | None:
    """The model's reading, where its parts are quotations that do not overlap and cover most of the claim."""
    try:
        data = json.loads(answer)
        if not profile.brief and (refused := _REFUSED.get(data["kind"])) is not None:
            return Reading((whole(text),), "model", refused, " ".join(str(data["reason"]).split()))
        parts = []
        for part in data["parts"]:
            written = (" ".join(str(query).split()) for query in part["queries"]) if profile.queries else ()
            # Each search query once, without those that say nothing.
            queries = tuple(dict.fromkeys(query for query in written if _words(query)))[: profile.queries]
            parts.append((str(part["quotation"]), str(part["statement"]), queries))
    except (ValueError, KeyError, TypeError):
        return None
    if len(parts) == 1 and not profile.brief:
        return Reading((replace(whole(text), queries=parts[0][2]),), "model")
    placed = [
        (span, statement, queries)
        for quotation, statement, queries in parts
        if (span := locate_quotation(text, quotation)) is not None
    ]
    if len(placed) < len(parts) or not 0 < len(placed) <= MOST:
        return None
    placed.sort()
    spans = [span for span, _, _ in placed]
    if any(first[1] > second[0] for first, second in pairwise(spans)):
        return None
    if sum(_words(text[slice(*span)]) for span in spans) < 0.5 * _words(text):
        return None
    if len(placed) == 1:
        return Reading((whole(text),), "model")
    subclaims = [
        Subclaim(
            number,
            _own_words(text[slice(*span)], statement) if profile.brief else " ".join(statement.split()),
            *span,
            queries,
        )
        for number, (span, statement, queries) in enumerate(placed, start=1)
    ]
    return Reading(tuple(subclaims), "model") if all(one.text for one in subclaims) else None


def _own_words(quotation: str, statement: str) -> str:
    """The statement, where it is about what the quotation says; else the quotation."""
    quoted, said = set(re.findall(r"\w+", quotation.lower())), set(re.findall(r"\w+", statement.lower()))
    kept = len(quoted & said) / max(1, len(quoted))
    return " ".join(statement.split()) if kept >= 0.5 else quotation
