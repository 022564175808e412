"""What happens before the advocates speak: the claim is read, and the passages that go before each of them are found.

A model that is asked with full prompts decides in one call whether a claim can be checked, what statements it makes and
what to search for. One that gets brief prompts is only asked for the statements; rules take over where no model is
asked, or where its quotations do not fit the claim.

What a claim says is seldom how an assessment report says it. The queries of a strong model are in the reports'
language, and after the search it reads the passages found for all advocates, in one call, and says which of them bear
on the claim. A model that is asked with brief prompts does neither.

The questions of a further round come with queries of their own and are searched in the same way; nothing is graded
anew, since that would be one more call to wait for. From a collection in which nothing bears on the claim, a
passage must be as similar to a query as the least similar one that bears, so that its advocate is not asked in vain.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from climassay.corpus.documents import locate_quotation, split_sentences
from climassay.corpus.search import fuse
from climassay.factcheck.configuration import Splitter
from climassay.factcheck.debate.advocate import Advocate
from climassay.factcheck.debate.context import as_one_line, provenance
from climassay.factcheck.debate.scheduler import (
    BEARS,
    ELSEWHERE,
    ON_SUBJECT,
    Found,
    Steps,
    ask_text,
    gather,
)
from climassay.factcheck.transcript import FollowUp, Subclaim
from climassay.models.contract import GenerationRequest, Sampling, object_schema
from climassay.prompts import Profile, Prompt

if TYPE_CHECKING:
    from climassay.factcheck.claims import Kind


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
        schema = _reading_schema(len(text), not profile.brief, 0 if profile.brief else profile.queries)
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


def _reading_schema(length: int, judged: bool, queries: int) -> dict[str, Any]:
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
    results = []
    for (advocate, _), some in zip(questions, lists, strict=True):
        known = [replace(one, grade=grades.get(_key(one))) for one in some if grades.get(_key(one)) != ELSEWHERE]
        kept = [one for one in known if one.grade or one.collection in held or (one.cosine or 0.0) >= floor]
        results.append(tuple(kept[: advocate.passages]))
    return results


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
    results: dict[str, Found] = {}
    rankings: list[list[str]] = []
    for some in lists:
        rankings.append([])
        for one in some:
            name = "\n".join(_key(one))
            known = results.setdefault(name, one)
            cosines = [cosine for cosine in (known.cosine, one.cosine) if cosine is not None]
            results[name] = replace(known, cosine=max(cosines, default=None))
            rankings[-1].append(name)
    return tuple(results[name] for name in fuse(*rankings))


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
    results = {_key(one) for one in own}
    bearing = [
        one
        for key, one in pool.items()
        if one.grade == BEARS
        and (statement in grades[key].statements or (not grades[key].statements and key in results))
    ]
    return bearing or [one for key, one in pool.items() if one.grade != ELSEWHERE and key in results]


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
        schema=_grades_schema(len(candidates), len(subclaims)),
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


def _grades_schema(passages: int, statements: int) -> dict[str, Any]:
    entry: dict[str, Any] = {
        "passage": {"type": "integer", "minimum": 1, "maximum": passages},
        "grade": {"type": "integer", "enum": [ELSEWHERE, ON_SUBJECT, BEARS]},
    }
    if statements > 1:
        number = {"type": "integer", "minimum": 1, "maximum": statements}
        entry["statements"] = {"type": "array", "maxItems": statements, "items": number}
    return object_schema({"grades": {"type": "array", "maxItems": passages, "items": object_schema(entry)}})
