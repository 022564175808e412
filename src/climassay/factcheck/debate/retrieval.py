"""The passages that go before the advocates: searched with several queries, fused, and graded by a model.

What a claim says is seldom how an assessment report says it. A strong model therefore writes queries in the reports'
language (:mod:`climassay.factcheck.debate.subclaims`), and after the search it reads the passages found for all
advocates, in one call, and says which of them bear on the claim. A model that is asked with brief prompts does neither.

The questions of a further round come with queries of their own and are searched in the same way; nothing is graded
anew, since that would be one more call to wait for. From a collection in which nothing bears on the claim, a
passage must be as similar to a query as the least similar one that bears, so that its advocate is not asked in vain.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from climassay.corpus.documents import Hit
from climassay.corpus.passages import excerpt
from climassay.corpus.search import RELEVANCE_COSINE, fuse
from climassay.corpus.sentences import split_sentences
from climassay.factcheck.debate.advocate import Advocate
from climassay.factcheck.debate.context import as_one_line, provenance
from climassay.factcheck.debate.steps import BEARS, ELSEWHERE, ON_SUBJECT, AskPassages, Found, Steps, ask_text, gather
from climassay.factcheck.transcript import FollowUp, Subclaim
from climassay.grounding import CollectionGroup
from climassay.models.contract import Encoder, GenerationRequest, Sampling, object_schema
from climassay.prompts import Prompt

MOST_CANDIDATES = 24
"""Passages that are graded for one claim, those of all its statements and advocates together."""
MOST_CHARACTERS = 48_000
"""Characters of these passages, about 12,000 tokens; a passage that would go beyond is left out, not cut."""


@dataclass(frozen=True, slots=True)
class Grader:
    """Who grades passages."""

    model: str
    """Name of the model."""
    prompt: Prompt
    """Template of ``claim``, ``statements`` (empty where the claim is its only one) and ``passages``."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a claim's advocates get."""

    passages: tuple[tuple[tuple[Found, ...], ...], ...]
    """For each advocate, for each subclaim: best first, as many as the advocate takes."""
    candidates: tuple[Found, ...] = ()
    """Those that were put before the grader, in their order there, with their grades."""
    warning: str = ""
    """Why they appear in the order of the search, where they should have been graded."""


def find_evidence(
    advocates: Sequence[Advocate], subclaims: Sequence[Subclaim], claim: str, grader: Grader | None
) -> Steps[Evidence]:
    """Search all advocates' collections for all statements, and choose what lies before each advocate.

    ``claim`` is worded as it is put before models. Without a grader the passages stay in the order of the search.
    """
    wanted = [(advocate, subclaim) for advocate in advocates for subclaim in subclaims]
    lists: list[tuple[Found, ...]] = yield from gather(
        [_search(advocate, (one.text, *one.queries), grader is not None) for advocate, one in wanted]
    )
    candidates = _deal(lists) if grader is not None else {}
    grades: dict[_Key, _Grade] = {}
    warning = ""
    if grader is not None and candidates:
        try:
            grades = yield from _grade(grader, claim, subclaims, list(candidates.values()))
        except ValueError as error:
            warning = f"The passages could not be graded ({error}), so they stand in the order of the search."
    graded = {key: replace(one, grade=grades[key].value) if key in grades else one for key, one in candidates.items()}
    width = len(subclaims)
    chosen = []
    for place, (advocate, subclaim) in enumerate(wanted):
        first = place - place % width
        own = dict.fromkeys(_key(one) for some in (lists[place], *lists[first : first + width]) for one in some)
        pool = {key: graded[key] for key in own if key in graded}
        shown = _that_bear(pool, lists[place], grades, subclaim.number) if grades else lists[place]
        chosen.append(tuple(shown[: advocate.passages]))
    shown_to = tuple(_without_fillers(chosen[place : place + width]) for place in range(0, len(chosen), width))
    return Evidence(shown_to, tuple(graded.values()), warning)


def find_for_questions(
    questions: Sequence[tuple[Advocate, FollowUp]], first: Evidence, *, graded: bool
) -> Steps[list[tuple[Found, ...]]]:
    """Passages for the questions of a further round, in order, best first; ``first`` is what the first round found."""
    lists: list[tuple[Found, ...]] = yield from gather(
        # A question is put to somebody; its queries are worded for a search.
        [_search(advocate, one.queries or (one.question,), graded) for advocate, one in questions]
    )
    grades = {_key(one): one.grade for one in first.candidates}
    bearing = [one for one in first.candidates if one.grade == BEARS]
    held = {one.collection for one in bearing}
    floor = min((one.cosine for one in bearing if one.cosine is not None), default=-1.0)
    found = []
    for (advocate, _), some in zip(questions, lists, strict=True):
        known = [replace(one, grade=grades.get(_key(one))) for one in some if grades.get(_key(one)) != ELSEWHERE]
        kept = [one for one in known if one.grade or one.collection in held or (one.cosine or 0.0) >= floor]
        found.append(tuple(kept[: advocate.passages]))
    return found


_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Grade:
    value: int | None
    statements: frozenset[int]
    """On which it bears; empty: on all for which it was found."""


def _key(found: Found) -> _Key:
    return found.collection, found.passage.id


def _search(advocate: Advocate, queries: Sequence[str], graded: bool) -> Steps[tuple[Found, ...]]:
    """What the queries find, fused by their ranks; each passage once. An advocate without collections finds nothing."""
    if advocate.settings.kind == "plain":
        return ()
    asks = [advocate.search(query) for query in dict.fromkeys(queries)]
    if graded:
        asks = [replace(ask, passages=max(ask.passages, MOST_CANDIDATES)) for ask in asks]
    lists: list[tuple[Found, ...]] = yield tuple(asks)
    if len(lists) == 1:
        return tuple(lists[0])
    found: dict[str, Found] = {}
    rankings: list[list[str]] = []
    for some in lists:
        rankings.append([])
        for one in some:
            name = "\n".join(_key(one))
            known = found.setdefault(name, one)
            cosines = [cosine for cosine in (known.cosine, one.cosine) if cosine is not None]
            found[name] = replace(known, cosine=max(cosines, default=None))
            rankings[-1].append(name)
    return tuple(found[name] for name in fuse(*rankings))


def _deal(lists: Sequence[Sequence[Found]]) -> dict[_Key, Found]:
    """The first of each list, then the second of each and so on, each passage once, as far as the budget goes."""
    dealt: dict[_Key, Found] = {}
    room = MOST_CHARACTERS
    for rank in range(max(map(len, lists), default=0)):
        for some in lists:
            if rank >= len(some) or len(dealt) == MOST_CANDIDATES:
                continue
            key, length = _key(some[rank]), len(some[rank].passage.text)
            if key not in dealt and length <= room:
                dealt[key] = some[rank]
                room -= length
    return dealt


def _that_bear(
    pool: dict[_Key, Found], own: Sequence[Found], grades: dict[_Key, _Grade], statement: int
) -> list[Found]:
    """The candidates that bear on a statement; where there is none, the others found for it, but those elsewhere."""
    found = {_key(one) for one in own}
    bearing = [
        one
        for key, one in pool.items()
        if one.grade == BEARS and (statement in grades[key].statements or (not grades[key].statements and key in found))
    ]
    return bearing or [one for key, one in pool.items() if one.grade != ELSEWHERE and key in found]


def _without_fillers(lists: Sequence[tuple[Found, ...]]) -> tuple[tuple[Found, ...], ...]:
    """An advocate's passages for each statement; those only on the subject stay where there are no others."""
    if all(one.grade == ON_SUBJECT for some in lists for one in some):
        return tuple(lists)
    return tuple(tuple(one for one in some if one.grade != ON_SUBJECT) for some in lists)


# ------------------------------------------------------------------------------------------------------------ grading


def _grade(
    grader: Grader, claim: str, subclaims: Sequence[Subclaim], candidates: Sequence[Found]
) -> Steps[dict[_Key, _Grade]]:
    """Grade all candidates in one call.

    Raises:
        ValueError: It failed; the message says why.
    """
    several = len(subclaims) > 1
    rendered = grader.prompt.render(
        claim=as_one_line(claim),
        statements=[as_one_line(subclaim.text) for subclaim in subclaims] if several else [],
        passages=[{"where": provenance(one.passage), "text": as_one_line(one.passage.text)} for one in candidates],
    )
    request = GenerationRequest(
        rendered.messages,
        Sampling(max_tokens=None),
        schema=_schema(len(candidates), len(subclaims)),
        assistant_prefix=rendered.assistant_prefix,
    )
    completion = yield from ask_text(grader.model, request)
    if completion.error is not None:
        raise ValueError(completion.error.rstrip("."))
    try:
        grades = {
            int(entry["passage"]): _Grade(int(entry["grade"]), frozenset(map(int, entry.get("statements", ()))))
            for entry in json.loads(completion.text)["grades"]
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("the answer has not the form that was asked for") from None
    # A passage that was passed over may bear: it is shown where nothing is said to, and its advocate is asked.
    passed_over = _Grade(None, frozenset())
    return {_key(one): grades.get(number, passed_over) for number, one in enumerate(candidates, start=1)}


def _schema(passages: int, statements: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "passage": {"type": "integer", "minimum": 1, "maximum": passages},
        "grade": {"type": "integer", "enum": [ELSEWHERE, ON_SUBJECT, BEARS]},
    }
    if statements > 1:
        number = {"type": "integer", "minimum": 1, "maximum": statements}
        entry["statements"] = {"type": "array", "maxItems": statements, "items": number}
    return object_schema({"grades": {"type": "array", "maxItems": passages, "items": object_schema(entry)}})


RERANK_FACTOR = 4
"""So many times as many passages are found as are kept when the best are chosen by their sentences."""
LATEST_FACTOR = 3
"""As many times as many where old editions will be left out."""
_BEST_SENTENCES = 2
"""Reranking takes the mean of so many nearest sentences."""


def search_all(
    asks: Sequence[AskPassages], collections: Mapping[str, CollectionGroup], latest_of: Callable[[str], frozenset[str]]
) -> list[tuple[Found, ...]]:
    """Answer searches, in order; queries of one collection are searched together.

    Several collections of one search take turns. ``latest_of`` gives the ids of the documents of a collection that are
    the latest of their kind.
    """
    found: dict[tuple[int, str], list[Found]] = {}
    for name in dict.fromkeys(name for ask in asks for name in ask.collections):
        places = [place for place, ask in enumerate(asks) if name in ask.collections]
        lists = _search_one([asks[place] for place in places], name, collections[name], latest_of)
        found.update(((place, name), some) for place, some in zip(places, lists, strict=True))
    merged = []
    for place, ask in enumerate(asks):
        # The first of each collection, then the second of each and so on: their similarities need not compare.
        lists = [found[place, name] for name in ask.collections]
        ranked = [(rank, number, one) for number, some in enumerate(lists) for rank, one in enumerate(some)]
        ranked.sort(key=lambda entry: entry[:2])
        merged.append(tuple(one for _, _, one in ranked[: ask.passages]))
    return merged


def _search_one(
    asks: Sequence[AskPassages], name: str, group: CollectionGroup, latest_of: Callable[[str], frozenset[str]]
) -> list[list[Found]]:
    [collection] = group.collections
    measured = RELEVANCE_COSINE.get(collection.settings.encoder)
    results: list[list[Found]] = [[] for _ in asks]
    keys = [(ask.passages, ask.min_cosine, ask.rerank, ask.latest_only) for ask in asks]
    for key in dict.fromkeys(keys):
        places = [place for place, other in enumerate(keys) if other == key]
        passages, limit, rerank, latest_only = key
        wanted = passages * (RERANK_FACTOR if rerank else 1) * (LATEST_FACTOR if latest_only else 1)
        queries = [asks[place].query for place in places]
        hits = group.search_many(queries, k=wanted, min_cosine=measured if limit is None else limit)
        if latest_only:
            kept = latest_of(name)
            hits = [[hit for hit in some if hit.passage.document_id in kept] for some in hits]
        chosen = cut_out([asks[place] for place in places], hits, group.encoder)
        for place, some in zip(places, chosen, strict=True):
            results[place] = [Found(hit.passage, name, hit.cosine, excerpt) for hit, excerpt in some]
    return results


def cut_out(
    asks: Sequence[AskPassages], hits: Sequence[Sequence[Hit]], encoder: Encoder
) -> list[list[tuple[Hit, str]]]:
    """Hits with their excerpts, reranked where that is asked for, at most as many as each search wants."""
    chosen: list[list[tuple[Hit, str]]] = []
    sentences = [[split_sentences(hit.passage.text) or [hit.passage.text] for hit in some] for some in hits]
    plain = [not (ask.rerank or ask.excerpt_words) for ask in asks]
    read = [some for some, whole in zip(sentences, plain, strict=True) if not whole]
    texts = [sentence for some in read for passage in some for sentence in passage]
    unique = list(dict.fromkeys(texts))
    vectors = dict(zip(unique, encoder.encode(unique), strict=True)) if unique else {}
    queries = encoder.encode([ask.query for ask in asks], role="query") if unique else np.zeros((len(asks), 0))
    for ask, query, some, parts, whole in zip(asks, queries, hits, sentences, plain, strict=True):
        if whole:
            chosen.append([(hit, hit.passage.text) for hit in some[: ask.passages]])
            continue
        near = [np.array([float(vectors[sentence] @ query) for sentence in passage]) for passage in parts]
        order = list(range(len(some)))
        if ask.rerank:
            order.sort(key=lambda place: -float(np.sort(near[place])[-_BEST_SENTENCES:].mean()))
        kept = order[: ask.passages]
        chosen.append([(some[place], excerpt(parts[place], near[place], ask.excerpt_words)) for place in kept])
    return chosen
