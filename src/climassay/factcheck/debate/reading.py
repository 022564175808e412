"""Reading of a claim: whether it can be checked, which statements it makes, and what to search for.

A model decides all three in one call. Rules split the claim if no model is asked, or if the model's quotations do not
match the claim.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from climassay.corpus.sentences import locate_quotation, split_sentences
from climassay.factcheck.configuration import Splitter
from climassay.factcheck.debate.context import join_lines
from climassay.factcheck.debate.requests import RequestGenerator, request_text
from climassay.factcheck.transcript import Subclaim
from climassay.models.contract import GenerationRequest, Sampling, object_schema
from climassay.prompts import Profile, Prompt

if TYPE_CHECKING:
    from climassay.factcheck.claims import CheckabilityKind

MAX_SUBCLAIMS = 5
_MAX_LENGTH = 400
"""Maximum number of characters of a statement."""
_MAX_QUERY_LENGTH = 200
"""Maximum number of characters of a search query."""
_MIN_WORDS = 3
"""Minimum number of words of a statement."""
_REFUSAL_KINDS: Mapping[str, "CheckabilityKind"] = {
    "not checkable": "not checkable",
    "not about climate": "not about climate",
}


@dataclass(frozen=True, slots=True)
class ClaimReading:
    """Statements of a claim, and whether the claim can be checked."""

    subclaims: tuple[Subclaim, ...]
    """Statements of the claim, at least one."""
    splitter: Splitter
    """Method that split the claim."""
    kind: "CheckabilityKind" = "checkable"
    reason: str = ""
    """Reason why the claim is not checkable or not about climate, in one sentence; empty if it is checkable."""


def read_claim(
    text: str, splitter: Splitter, model: str, profile: Profile, prompt: Prompt
) -> RequestGenerator[ClaimReading]:
    """Split a claim into statements and, with a model, decide whether it can be checked.

    Args:
        text: Claim to split.
        splitter: ``model`` requests quotations of the claim, each with a statement that can be understood alone, and
            falls back on rules if the quotations are not in the claim, overlap, or omit half of it; ``rules`` splits at
            sentences and semicolons; ``whole`` takes the claim as one statement.
        model: Name of the model.
        profile: Limits of the model's prompts.
        prompt: Template of the prompt.
    """
    if splitter == "whole":
        return ClaimReading((single_subclaim(text),), "whole")
    if splitter == "model":
        rendered_prompt = prompt.render(
            claim=join_lines(text),
            max_statements=MAX_SUBCLAIMS,
            max_length=_MAX_LENGTH,
            queries=profile.queries,
            max_query_length=_MAX_QUERY_LENGTH,
        )
        request = GenerationRequest(
            rendered_prompt.messages,
            Sampling(max_tokens=None),
            schema=answer_schema(len(text), profile.queries),
            assistant_prefix=rendered_prompt.assistant_prefix,
        )
        completion = yield from request_text(model, request)
        instructions = " ".join(message.content for message in rendered_prompt.messages if message.role == "system")
        if completion.error is None:
            reading = _parse_answer(text, completion.text, profile.queries, instructions)
            if reading is not None:
                return reading
    return ClaimReading(split_by_rules(text), "rules")


def single_subclaim(text: str) -> Subclaim:
    """Return the whole claim as its only subclaim."""
    return Subclaim(1, text, 0, len(text))


# ------------------------------------------------------------------------------------------------------------ rules


def split_by_rules(text: str) -> tuple[Subclaim, ...]:
    """Split a claim at sentences and semicolons; pieces of fewer than three words are joined to their neighbours."""
    borders = {0, len(text)}
    position = 0
    for sentence in split_sentences(text):
        position = max(text.find(sentence, position), position)
        borders.add(position)
    borders.update(match.end() for match in re.finditer(r";\s+", text))
    spans: list[tuple[int, int]] = []
    n_words_of_last = 0
    for start, end in pairwise(sorted(borders)):
        n_words = _count_words(text[start:end])
        if spans and min(n_words, n_words_of_last) < _MIN_WORDS:
            spans[-1] = (spans[-1][0], end)
            n_words_of_last += n_words
        else:
            spans.append((start, end))
            n_words_of_last = n_words
    if len(spans) > MAX_SUBCLAIMS:
        spans = [*spans[: MAX_SUBCLAIMS - 1], (spans[MAX_SUBCLAIMS - 1][0], spans[-1][1])]
    if len(spans) < 2:
        return (single_subclaim(text),)
    subclaims = []
    for number, (start, end) in enumerate(spans, start=1):
        start += len(text[start:end]) - len(text[start:end].lstrip())
        piece = text[start:end].strip().rstrip(";").rstrip()
        subclaims.append(Subclaim(number, piece, start, start + len(piece)))
    return tuple(subclaims)


def _count_words(text: str) -> int:
    return len(re.findall(r"\w+", text))


# ------------------------------------------------------------------------------------------------------------ model


def answer_schema(claim_length: int, max_queries: int) -> dict[str, Any]:
    """Return the JSON schema of the model's answer about a claim of ``claim_length`` characters."""
    text: dict[str, Any] = {"type": "string", "maxLength": _MAX_LENGTH}
    # A model may quote a long claim as a whole.
    part = {"quotation": {"type": "string", "maxLength": max(claim_length, 1)}, "statement": text}
    if max_queries:
        query = {"type": "string", "maxLength": _MAX_QUERY_LENGTH}
        part["queries"] = {"type": "array", "maxItems": max_queries, "items": query}
    parts = {"type": "array", "minItems": 0, "maxItems": MAX_SUBCLAIMS, "items": object_schema(part)}
    kind = {"type": "string", "enum": ["checkable", *_REFUSAL_KINDS]}
    return object_schema({"reason": text, "kind": kind, "parts": parts})


def _parse_answer(text: str, answer: str, max_queries: int, instructions: str) -> ClaimReading | None:
    """Parse the model's JSON answer; return None if it is unusable.

    An answer is unusable if it is malformed, or if it accepts the claim but :func:`_locate_parts` rejects its
    quotations. A claim that the model refuses without usable quotations is split by rules. Duplicate queries and those
    without words of their own (:func:`_has_own_words`) are dropped.
    """
    try:
        data = json.loads(answer)
        refusal = _REFUSAL_KINDS.get(data["kind"])
        reason = join_lines(str(data["reason"])) if refusal else ""
        parts = []
        for part in data["parts"]:
            queries = [join_lines(str(query)) for query in part["queries"]] if max_queries else []
            usable_queries = dict.fromkeys(query for query in queries if _has_own_words(query, instructions, text))
            parts.append((str(part["quotation"]), str(part["statement"]), tuple(usable_queries)[:max_queries]))
    except (ValueError, KeyError, TypeError):
        return None
    subclaims = _locate_parts(text, parts)
    if refusal is None:
        return None if subclaims is None else ClaimReading(subclaims, "model")
    if subclaims is None:
        return ClaimReading(split_by_rules(text), "rules", refusal, reason)
    return ClaimReading(subclaims, "model", refusal, reason)


def _has_own_words(query: str, instructions: str, claim: str) -> bool:
    """Return whether a query is more than a copy of the instructions.

    It must have a word that the instructions lack, or share a word of at least four letters with the claim.
    """
    words, instruction_words = (set(re.findall(r"\w+", part.lower())) for part in (query, instructions))
    return bool(words - instruction_words or words.intersection(re.findall(r"\w{4,}", claim.lower())))


def _locate_parts(text: str, parts: Sequence[tuple[str, str, tuple[str, ...]]]) -> tuple[Subclaim, ...] | None:
    """Convert triples of a model's quotation, statement and queries to subclaims.

    The result is None if quotations are not in the claim, overlap, or cover less than half of its words.
    """
    if len(parts) == 1:
        return (replace(single_subclaim(text), queries=parts[0][2]),)
    located_parts = sorted(
        (span, statement, queries)
        for quotation, statement, queries in parts
        if (span := locate_quotation(text, quotation)) is not None
    )
    if len(located_parts) < len(parts) or not 0 < len(located_parts) <= MAX_SUBCLAIMS:
        return None
    spans = [span for span, _, _ in located_parts]
    if any(first[1] > second[0] for first, second in pairwise(spans)):
        return None
    if sum(_count_words(text[slice(*span)]) for span in spans) < 0.5 * _count_words(text):
        return None
    subclaims = tuple(
        Subclaim(number, join_lines(statement), *span, part_queries)
        for number, (span, statement, part_queries) in enumerate(located_parts, start=1)
    )
    return subclaims if all(subclaim.text for subclaim in subclaims) else None
