"""Retrieval of evidence for a debate.

A claim is seldom worded as an assessment report would word it, so a strong model writes search queries in the reports'
language. After the search it grades the passages found for all advocates, in one call, by their relevance to the claim.
A small model does neither.

The questions of a further round come with queries of their own and are searched in the same way. Their passages are not
graded, which would take another call: a passage of a collection without any relevant passage must be as similar to its
query as the least similar relevant passage, so that its advocate is not asked in vain.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from climassay.corpus.search import fuse_rankings
from climassay.factcheck.debate.context import format_location, join_lines
from climassay.factcheck.debate.requests import (
    RELATED,
    RELEVANT,
    UNRELATED,
    FoundPassage,
    RequestGenerator,
    gather,
    request_text,
)
from climassay.factcheck.debate.setup import Advocate
from climassay.factcheck.transcript import FollowUp, Subclaim
from climassay.models.contract import CHARACTERS_PER_TOKEN, GenerationRequest, Sampling, object_schema
from climassay.prompts import Prompt

MAX_CANDIDATES = 24
"""Maximum number of passages graded for one claim, over all its statements and advocates."""
MAX_CHARACTERS = 48_000
"""Maximum total number of characters of the graded passages, about 12,000 tokens. Passages are never truncated."""
_RESERVED_TOKENS = 1500
"""Number of tokens of a model's context window that are reserved for the grader's instructions and answer."""
_Key = tuple[str, str]
"""Pair of collection name and passage id."""


@dataclass(frozen=True, slots=True)
class Grader:
    """Model and prompt that grade passages."""

    model: str
    """Name of the model."""
    prompt: Prompt
    """Template with the variables ``claim``, ``statements`` (empty if the claim has only one) and ``passages``."""
    read_window: Callable[[], int | None] = lambda: None
    """Function that returns the model's context length in tokens; None if it is not known yet."""

    @property
    def max_characters(self) -> int:
        """Maximum total number of characters of passages in a prompt, limited by the model's context window."""
        window = self.read_window()
        if window is None:
            return MAX_CHARACTERS
        return min(MAX_CHARACTERS, int(max(0, window - _RESERVED_TOKENS) * CHARACTERS_PER_TOKEN))


@dataclass(frozen=True, slots=True)
class RetrievedEvidence:
    """Passages retrieved for a claim."""

    passages: tuple[tuple[tuple[FoundPassage, ...], ...], ...]
    """Passages by advocate and subclaim, best first. The advocate's settings limit the number per subclaim."""
    candidates: tuple[FoundPassage, ...] = ()
    """Passages that were graded, with their grades."""
    warning: str = ""
    """Reason why grading failed; empty otherwise."""

    @property
    def is_found(self) -> bool:
        """Whether the search found any passage, whatever its grade."""
        return bool(self.candidates) or any(results for advocate in self.passages for results in advocate)


@dataclass(frozen=True, slots=True)
class _Grade:
    value: int | None
    """Relevance grade of the passage; None if the model skipped it."""
    statements: frozenset[int]
    """Numbers of the statements to which the passage is relevant. If empty, it is relevant to the statements for which
    it was found."""


def find_evidence(
    advocates: Sequence[Advocate], subclaims: Sequence[Subclaim], claim: str, grader: Grader | None
) -> RequestGenerator[RetrievedEvidence]:
    """Search all advocates' collections for all subclaims, and select the passages for each advocate.

    Args:
        advocates: Advocates whose collections are searched.
        subclaims: Statements of the claim.
        claim: Claim in the form used in prompts.
        grader: Grader of the passages; if None, they stay in the order of the search.
    """
    pairs = [(advocate, subclaim) for advocate in advocates for subclaim in subclaims]
    results: list[tuple[FoundPassage, ...]] = yield from gather(
        [
            _search(advocate, (subclaim.text, *subclaim.queries), is_graded=grader is not None)
            for advocate, subclaim in pairs
        ]
    )
    candidates: dict[_Key, FoundPassage] = {}
    grades: dict[_Key, _Grade] = {}
    warning = ""
    if grader is not None:
        max_characters = grader.max_characters
        candidates = _select_candidates(results, max_characters)
        try:
            try:
                grades = yield from _grade_candidates(grader, claim, subclaims, list(candidates.values()))
            except ValueError:
                # A server that refuses a prompt as too long states its window.
                if grader.max_characters >= max_characters:
                    raise
                candidates = _select_candidates(results, grader.max_characters)
                grades = yield from _grade_candidates(grader, claim, subclaims, list(candidates.values()))
        except ValueError as error:
            warning = f"The passages could not be graded ({error}), so they stand in the order of the search."
    graded_passages = {
        key: replace(candidate, grade=grades[key].value) if key in grades else candidate
        for key, candidate in candidates.items()
    }
    selected_passages: list[list[tuple[FoundPassage, ...]]] = []
    for start_index in range(0, len(pairs), len(subclaims)):
        advocate, advocate_results = pairs[start_index][0], results[start_index : start_index + len(subclaims)]
        passages = [
            _select_relevant(subclaim, subclaim_results, advocate_results, graded_passages, grades)
            if grades
            else subclaim_results
            for subclaim, subclaim_results in zip(subclaims, advocate_results, strict=True)
        ]
        selected_passages.append(
            _without_subject_passages([tuple(selection[: advocate.passages]) for selection in passages])
        )
    return RetrievedEvidence(tuple(map(tuple, selected_passages)), tuple(graded_passages.values()), warning)


def _select_candidates(results: Sequence[Sequence[FoundPassage]], n_characters: int) -> dict[_Key, FoundPassage]:
    """Select passages to grade: the first of each result list, then the second and so on, without duplicates.

    Passages beyond the limits on number and total characters are skipped.
    """
    candidates: dict[_Key, FoundPassage] = {}
    for rank in range(max(map(len, results), default=0)):
        for candidate in (passages[rank] for passages in results if rank < len(passages)):
            length = len(candidate.passage.text)
            if candidate.key not in candidates and length <= n_characters and len(candidates) < MAX_CANDIDATES:
                candidates[candidate.key] = candidate
                n_characters -= length
    return candidates


def _select_relevant(
    subclaim: Subclaim,
    results: Sequence[FoundPassage],
    advocate_results: Sequence[Sequence[FoundPassage]],
    graded_passages: Mapping[_Key, FoundPassage],
    grades: Mapping[_Key, _Grade],
) -> tuple[FoundPassage, ...]:
    """Return the passages relevant to a subclaim; if there are none, those at least related to its subject."""
    keys = dict.fromkeys(
        item.key for items in (results, *advocate_results) for item in items if item.key in graded_passages
    )
    found_keys = {item.key for item in results}
    relevant_passages = []
    for key in keys:
        numbers = grades[key].statements
        if graded_passages[key].grade == RELEVANT and (
            subclaim.number in numbers or (not numbers and key in found_keys)
        ):
            relevant_passages.append(graded_passages[key])
    return tuple(
        relevant_passages
        or [graded_passages[key] for key in keys if key in found_keys and graded_passages[key].grade != UNRELATED]
    )


def _without_subject_passages(passages: list[tuple[FoundPassage, ...]]) -> list[tuple[FoundPassage, ...]]:
    """Remove passages that are only related to the subject, unless the advocate has no others."""
    if all(item.grade == RELATED for results in passages for item in results):
        return passages
    return [tuple(item for item in results if item.grade != RELATED) for results in passages]


def find_for_questions(
    questions: Sequence[tuple[Advocate, FollowUp]], evidence: RetrievedEvidence, *, is_graded: bool
) -> RequestGenerator[list[tuple[FoundPassage, ...]]]:
    """Search for the questions of a further round and return the passages for each one, best first.

    Args:
        questions: Questions with the advocates to whom they are addressed.
        evidence: Evidence of the first round.
        is_graded: Whether that evidence was graded.
    """
    results: list[tuple[FoundPassage, ...]] = yield from gather(
        [
            # A question is worded for an advocate, its queries for a search.
            _search(advocate, question.queries or (question.question,), is_graded=is_graded)
            for advocate, question in questions
        ]
    )
    grades = {passage.key: passage.grade for passage in evidence.candidates}
    relevant_passages = [passage for passage in evidence.candidates if passage.grade == RELEVANT]
    collections = {passage.collection for passage in relevant_passages}
    min_cosine = min((passage.cosine for passage in relevant_passages if passage.cosine is not None), default=-1.0)
    selections = []
    for (advocate, _), passages in zip(questions, results, strict=True):
        graded_passages = [replace(passage, grade=grades.get(passage.key)) for passage in passages]
        usable_passages = [
            passage
            for passage in graded_passages
            if passage.grade != UNRELATED
            and (passage.grade or passage.collection in collections or (passage.cosine or 0.0) >= min_cosine)
        ]
        selections.append(tuple(usable_passages[: advocate.passages]))
    return selections


def _search(
    advocate: Advocate, queries: Sequence[str], *, is_graded: bool
) -> RequestGenerator[tuple[FoundPassage, ...]]:
    """Return the passages found for several queries, without duplicates, fused by rank."""
    if advocate.is_plain:
        return ()
    requests = [advocate.search(query) for query in dict.fromkeys(queries)]
    if is_graded:
        requests = [replace(request, passages=max(request.passages, MAX_CANDIDATES)) for request in requests]
    results: list[tuple[FoundPassage, ...]] = yield tuple(requests)
    if len(results) == 1:
        return tuple(results[0])
    passage_by_key: dict[str, FoundPassage] = {}
    rankings: list[list[str]] = []
    for passages in results:
        rankings.append([])
        for passage in passages:
            key = "\n".join(passage.key)
            known_passage = passage_by_key.setdefault(key, passage)
            cosines = [cosine for cosine in (known_passage.cosine, passage.cosine) if cosine is not None]
            passage_by_key[key] = replace(known_passage, cosine=max(cosines, default=None))
            rankings[-1].append(key)
    return tuple(passage_by_key[key] for key in fuse_rankings(*rankings))


def _grade_candidates(
    grader: Grader, claim: str, subclaims: Sequence[Subclaim], candidates: Sequence[FoundPassage]
) -> RequestGenerator[dict[_Key, _Grade]]:
    """Grade all candidates in one call; without candidates no model is called.

    Raises:
        ValueError: The call failed or its answer is malformed; the message states the reason.
    """
    if not candidates:
        return {}
    entry: dict[str, Any] = {
        "passage": {"type": "integer", "minimum": 1, "maximum": len(candidates)},
        "grade": {"type": "integer", "enum": [UNRELATED, RELATED, RELEVANT]},
    }
    statements = [join_lines(subclaim.text) for subclaim in subclaims] if len(subclaims) > 1 else []
    if statements:
        number = {"type": "integer", "minimum": 1, "maximum": len(subclaims)}
        entry["statements"] = {"type": "array", "maxItems": len(subclaims), "items": number}
    rendered_prompt = grader.prompt.render(
        claim=join_lines(claim),
        statements=statements,
        passages=[
            {"where": format_location(candidate.passage), "text": join_lines(candidate.passage.text)}
            for candidate in candidates
        ],
    )
    request = GenerationRequest(
        rendered_prompt.messages,
        Sampling(max_tokens=None),
        schema=object_schema({"grades": {"type": "array", "maxItems": len(candidates), "items": object_schema(entry)}}),
        assistant_prefix=rendered_prompt.assistant_prefix,
    )
    completion = yield from request_text(grader.model, request)
    if completion.error is not None:
        raise ValueError(completion.error.rstrip("."))
    try:
        grades = {
            int(item["passage"]): _Grade(int(item["grade"]), frozenset(map(int, item.get("statements", ()))))
            for item in json.loads(completion.text)["grades"]
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("the answer does not have the requested form") from None
    if not grades:
        raise ValueError("the answer grades none of them")
    # A skipped passage may be relevant: it is used if no passage is graded as relevant.
    missing_grade = _Grade(None, frozenset())
    return {candidate.key: grades.get(number, missing_grade) for number, candidate in enumerate(candidates, start=1)}
