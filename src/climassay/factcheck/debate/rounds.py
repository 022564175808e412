"""A debate from the claim to the verdict, as one coroutine (Leippold et al. 2024, figure 1).

First the claim is read. A model that is asked with full prompts decides in one call whether a claim can be checked,
what statements it makes and what to search for. One that gets brief prompts is only asked for the statements; rules
take over where no model is asked, or where its quotations do not fit the claim.

Then passages are searched. What a claim says is seldom how an assessment report says it: the queries of a strong model
are in the reports' language, and after the search it reads the passages found for all advocates, in one call, and says
which of them bear on the claim. A model that is asked with brief prompts does neither.

The questions of a further round come with queries of their own and are searched in the same way; nothing is graded
anew, since that would be one more call to wait for. From a collection in which nothing bears on the claim, a
passage must be as similar to a query as the least similar one that bears, so that its advocate is not asked in vain.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from climassay.corpus.documents import locate_quotation, split_sentences
from climassay.corpus.search import fuse
from climassay.factcheck.claims import dating_warning
from climassay.factcheck.configuration import DebateSettings, Splitter
from climassay.factcheck.debate.advocate import Advocate, Exchanges, give_opinions, reply, write_question
from climassay.factcheck.debate.assessment import ElicitationConfig
from climassay.factcheck.debate.context import DebateContext, RetrievedPassage, as_one_line, provenance
from climassay.factcheck.debate.mediator import (
    NAME,
    Consolidation,
    Mediator,
    ask_follow_ups,
    consolidate,
    decide,
    final_verdict,
    whether_to_ask,
)
from climassay.factcheck.debate.scheduler import (
    BEARS,
    ELSEWHERE,
    ON_SUBJECT,
    AskEntailment,
    Found,
    Ledger,
    Steps,
    ask_text,
    counted,
    gather,
)
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    UNCERTAIN,
    AdvocateProfile,
    Claim,
    Event,
    FollowUp,
    Outcome,
    Round,
    Subclaim,
    Transcript,
    Verdict,
)
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import Encoder, GenerationRequest, Sampling, object_schema
from climassay.prompts import STRONG, Profile, Prompt

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
            claim=as_one_line(text),
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
            return Reading((whole(text),), "model", refused, as_one_line(str(data["reason"])))
        parts = []
        for part in data["parts"]:
            written = (as_one_line(str(query)) for query in part["queries"]) if profile.queries else ()
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

    def strays(quotation: str, statement: str) -> bool:
        """Whether a statement has less than half of the words that its quotation has."""
        quoted, said = set(re.findall(r"\w+", quotation.lower())), set(re.findall(r"\w+", statement.lower()))
        return len(quoted & said) < 0.5 * max(1, len(quoted))

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
            text[slice(*span)] if profile.brief and strays(text[slice(*span)], statement) else as_one_line(statement),
            *span,
            queries,
        )
        for number, (span, statement, queries) in enumerate(placed, start=1)
    ]
    return Reading(tuple(subclaims), "model") if all(one.text for one in subclaims) else None


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
    candidates: dict[_Key, Found] = {}
    if grader is not None:
        # The first of each list, then the second of each and so on, each passage once, as far as the budget goes.
        room = MOST_CHARACTERS
        for rank in range(max(map(len, lists), default=0)):
            for one in (some[rank] for some in lists if rank < len(some)):
                length = len(one.passage.text)
                if _key(one) not in candidates and length <= room and len(candidates) < MOST_CANDIDATES:
                    candidates[_key(one)] = one
                    room -= length
    grades: dict[_Key, _Grade] = {}
    warning = ""
    if grader is not None and candidates:
        try:
            grades = yield from _grade(grader, claim, subclaims, list(candidates.values()))
        except ValueError as error:
            warning = f"The passages could not be graded ({error}), so they stand in the order of the search."
    graded = {key: replace(one, grade=grades[key].value) if key in grades else one for key, one in candidates.items()}
    width = len(subclaims)
    chosen: list[tuple[Found, ...]] = []
    for place, (advocate, subclaim) in enumerate(wanted):
        first = place - place % width
        keys = dict.fromkeys(_key(one) for some in (lists[place], *lists[first : first + width]) for one in some)
        own = {_key(one) for one in lists[place]}
        pool = [(graded[key], key in own, grades[key].statements) for key in keys if key in graded] if grades else []
        # What bears on the statement; where nothing does, what was found for it, but for what is about something else.
        bearing = [
            one
            for one, its_own, statements in pool
            if one.grade == BEARS and (subclaim.number in statements or (not statements and its_own))
        ]
        shown = bearing or [one for one, its_own, _ in pool if its_own and one.grade != ELSEWHERE]
        chosen.append(tuple((shown if grades else lists[place])[: advocate.passages]))
    passages = [tuple(chosen[place : place + width]) for place in range(0, len(chosen), width)]
    # What is only on the subject lies before an advocate who has nothing else.
    for place, given in enumerate(passages):
        if any(one.grade != ON_SUBJECT for some in given for one in some):
            passages[place] = tuple(tuple(one for one in some if one.grade != ON_SUBJECT) for some in given)
    return Evidence(tuple(passages), tuple(graded.values()), warning)


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


def _grade(
    grader: Grader, claim: str, subclaims: Sequence[Subclaim], candidates: Sequence[Found]
) -> Steps[dict[_Key, _Grade]]:
    """Grade all candidates in one call.

    Raises:
        ValueError: It failed; the message says why.
    """
    several = len(subclaims) > 1
    entry: dict[str, Any] = {
        "passage": {"type": "integer", "minimum": 1, "maximum": len(candidates)},
        "grade": {"type": "integer", "enum": [ELSEWHERE, ON_SUBJECT, BEARS]},
    }
    if several:
        number = {"type": "integer", "minimum": 1, "maximum": len(subclaims)}
        entry["statements"] = {"type": "array", "maxItems": len(subclaims), "items": number}
    rendered = grader.prompt.render(
        claim=as_one_line(claim),
        statements=[as_one_line(subclaim.text) for subclaim in subclaims] if several else [],
        passages=[{"where": provenance(one.passage), "text": as_one_line(one.passage.text)} for one in candidates],
    )
    request = GenerationRequest(
        rendered.messages,
        Sampling(max_tokens=None),
        schema=object_schema({"grades": {"type": "array", "maxItems": len(candidates), "items": object_schema(entry)}}),
        assistant_prefix=rendered.assistant_prefix,
    )
    completion = yield from ask_text(grader.model, request)
    if completion.error is not None:
        raise ValueError(completion.error.rstrip("."))
    try:
        grades = {
            int(one["passage"]): _Grade(int(one["grade"]), frozenset(map(int, one.get("statements", ()))))
            for one in json.loads(completion.text)["grades"]
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ValueError("the answer does not have the requested form") from None
    # A passage that was passed over may bear: it is shown where nothing is said to, and its advocate is asked.
    passed_over = _Grade(None, frozenset())
    return {_key(one): grades.get(number, passed_over) for number, one in enumerate(candidates, start=1)}


# --------------------------------------------------------------------------------------------------------- debate

CONTEXT_PREFIX = "This claim is made in a climate-change context: "
"""Leippold et al. (2024): claims without context get it, so that fewer end without enough information."""


Shown = list[list[list[RetrievedPassage]]]
"""The passages before each advocate, for each subclaim."""


@dataclass(frozen=True, slots=True)
class DebateSetup:
    """Everybody who debates, ready for any number of claims."""

    settings: DebateSettings
    scale: Scale
    advocates: tuple[Advocate, ...]
    profiles: tuple[AdvocateProfile, ...]
    mediator: Mediator
    templates: Mapping[str, Prompt]
    encoder: Encoder | None
    config: ElicitationConfig
    profile: Profile = STRONG
    """How the debate's model is asked when it reads the claim and grades passages."""

    @property
    def reads_claims(self) -> bool:
        """Whether the model that splits a claim also tells if it can be checked."""
        return self.settings.split == "model" and not self.profile.brief

    def transcript(self, claim: Claim, verdict: Verdict) -> Transcript:
        """The transcript of a claim, so far without a debate."""
        mediator = f"{self.mediator.style}, {self.mediator.model}"
        return Transcript(claim, self.scale.name, self.profiles, mediator, (), (), verdict, ())

    def unchecked(self, claim: Claim, outcome: Outcome, reason: str) -> Transcript:
        """The transcript of a claim that is not debated: it cannot be checked, or is not about climate."""
        return self.transcript(claim, Verdict(outcome, None, claim.text, caveats=(reason,)))


def debate(claim: Claim, setup: DebateSetup, on_event: Callable[[Event], None] = lambda _: None) -> Steps[Transcript]:
    """Debate one claim.

    Args:
        claim: What is said.
        setup: Who debates, and how.
        on_event: Called with subclaims, passages, opinions, follow-ups, decisions and the verdict as they come.
    """
    ledger = Ledger()
    transcript = yield from counted(_debate(claim, setup, on_event), ledger)
    return replace(transcript, usage=ledger.usage, failures=ledger.failures)


def _debate(claim: Claim, setup: DebateSetup, on_event: Callable[[Event], None]) -> Steps[Transcript]:
    settings, profile = setup.settings, setup.profile
    prefix = CONTEXT_PREFIX if settings.context_prefix else ""
    reading = yield from read_claim(claim.text, settings.split, settings.model, profile, setup.templates)
    if reading.kind != "checkable" and settings.check_claims:
        return setup.unchecked(claim, reading.kind, reading.reason)
    on_event(reading.subclaims)
    context = DebateContext(
        prefix + claim.text,
        setup.scale,
        setup.config,
        setup.templates,
        setup.encoder,
        on_event,
        tuple(replace(one, text=prefix + one.text) for one in reading.subclaims),
    )
    for advocate in setup.advocates:
        if advocate.settings.kind != "plain":
            context.tell(advocate.name, "searching", 1)
    grader = Grader(settings.model, setup.templates["grade"]) if profile.grade_passages else None
    evidence = yield from find_evidence(setup.advocates, context.subclaims, context.claim, grader)
    rounds, result = yield from _hold_rounds(context, setup, evidence)
    context.tell(NAME, "concluding", len(rounds))
    verdict = yield from final_verdict(setup.mediator, context, claim.text, rounds[-1], result)
    without = (yield from _leave_one_out(context, setup, rounds[-1], result)) if settings.leave_one_out else ()
    transcript = replace(
        setup.transcript(claim, verdict),
        subclaims=reading.subclaims,
        rounds=tuple(rounds),
        sources=context.sources.citations(),
        prefixed=settings.context_prefix,
        split=reading.splitter,
        without=without,
    )
    warning = dating_warning(claim, [source.passage for source in transcript.cited])
    transcript = replace(transcript, warnings=tuple(text for text in (evidence.warning, warning) if text))
    if settings.entailment:
        transcript = yield from _measure_entailment(transcript)
    on_event(transcript.verdict)
    return transcript


def _hold_rounds(
    context: DebateContext, setup: DebateSetup, evidence: Evidence
) -> Steps[tuple[list[Round], Consolidation]]:
    """Rounds until the debate closes; the mediator's consolidation of the last one."""
    # Numbered after all searches have come back, so that the numbers do not depend on who was faster.
    exhibits = [
        [context.sources.add(result, advocate.name) for result in lists]
        for advocate, lists in zip(setup.advocates, evidence.passages, strict=True)
    ]
    context.tell_sources()
    limit = setup.settings.rounds
    rounds: list[Round] = []
    questions: tuple[FollowUp, ...] = ()
    while True:
        number = len(rounds) + 1
        earlier = tuple(one for held in rounds for one in held.follow_ups)
        # By scores every question has had its reply before the round; by schema it comes with the opinion.
        open_ones = tuple(one for one in questions if context.config.elicitation == "schema")
        heard_of = (*earlier, *(one for one in questions if one not in open_ones))
        first = rounds[0].opinions if rounds else ()
        said = Exchanges(setup.profiles, first, heard_of, open_ones, number >= limit)
        last = {one.advocate: one for one in rounds[-1].opinions} if rounds else {}
        heard = yield from gather(
            [
                give_opinions(advocate, context, shown, said, last.get(advocate.name))
                for advocate, shown in zip(setup.advocates, exhibits, strict=True)
            ]
        )
        replies = {(one.asker, one.to, one.question): one for given in heard for one in given.replies}
        questions = tuple(replies.get((one.asker, one.to, one.question), one) for one in questions)
        opinions = tuple(given.opinion for given in heard)
        parts = tuple(part for given in heard for part in given.parts)
        asking = whether_to_ask(number, limit, opinions, setup.scale)
        asked = (*earlier, *questions)
        context.tell(NAME, "weighing", number)
        result = yield from consolidate(setup.mediator, context, opinions, parts, asked, asking)
        changed = any(opinion.changed for opinion in opinions)
        decision = yield from decide(context, number, limit, result, changed)
        rounds.append(Round(number, questions, opinions, parts, decision))
        if decision.closes or decision.error is not None:
            return rounds, result
        questions, exhibits = yield from _follow_up(context, setup, rounds[-1], result, exhibits, evidence)


def _follow_up(
    context: DebateContext, setup: DebateSetup, last: Round, found: Consolidation, exhibits: Shown, evidence: Evidence
) -> Steps[tuple[tuple[FollowUp, ...], Shown]]:
    """Questions and new retrieval for them; what was found lies before the advocate in the next round.

    By ``scored`` the replies are written here; by ``schema`` they come with the advocates' second view.
    """
    by_schema = context.config.elicitation == "schema"
    following = last.number + 1
    context.tell(NAME, "asking", following)
    asked = yield from ask_follow_ups(setup.mediator, context, last.decision, found)
    if by_schema:
        others = [opinion.asks for opinion in last.opinions]
    else:
        others = yield from gather([_ask_others(context, setup, advocate, last) for advocate in setup.advocates])
    questions = tuple(dict.fromkeys([*asked, *(one for some in others for one in some)]))
    named = {advocate.name: place for place, advocate in enumerate(setup.advocates)}
    searched = [(setup.advocates[named[question.to]], question) for question in questions]
    for question in questions:
        context.tell(question.to, "searching", following)
    hits = yield from find_for_questions(searched, evidence, graded=setup.profile.grade_passages)
    updated = [list(shown) for shown in exhibits]
    laid: list[list[RetrievedPassage]] = []
    for question, some in zip(questions, hits, strict=True):
        place = named[question.to]
        new = context.sources.add(some, question.to)
        laid.append(new or updated[place][0])
        if any(one.grade != ON_SUBJECT for one in new):
            # What says nothing for or against the claim lay there for want of anything better.
            updated[place] = [[one for one in old if one.grade != ON_SUBJECT] for old in updated[place]]
        # A model that can read many passages keeps all that its view may rest on; a small one has room for a few.
        most = setup.advocates[place].passages
        updated[place] = [with_follow_up_passages(new, old, most, keeps_all=by_schema) for old in updated[place]]
    context.tell_sources()
    if by_schema:
        return questions, updated
    answered = yield from gather(
        [
            reply(setup.advocates[named[question.to]], context, question, shown)
            for question, shown in zip(questions, laid, strict=True)
        ]
    )
    return tuple(answered), updated


def with_follow_up_passages(
    new: Sequence[RetrievedPassage], old: Sequence[RetrievedPassage], most: int, *, keeps_all: bool
) -> list[RetrievedPassage]:
    """Up to half of the places for what was found for a question; behind it what lay there before, or what fits."""
    fresh = [exhibit for exhibit in new if exhibit.number not in {one.number for one in old}][: max(1, most // 2)]
    return [*fresh, *old[: len(old) if keeps_all else max(0, most - len(fresh))]]


def _ask_others(
    context: DebateContext, setup: DebateSetup, advocate: Advocate, last: Round
) -> Steps[tuple[FollowUp, ...]]:
    """An advocate's question by scores, where it is uncertain, to the most authoritative of the informed others."""
    weights = setup.mediator.weights
    others = [opinion for opinion in last.opinions if opinion.informed and opinion.advocate != advocate.name]
    own = next(opinion for opinion in last.opinions if opinion.advocate == advocate.name)
    if not others or own.levels is None or own.levels.confidence not in UNCERTAIN:
        return ()
    to = max(others, key=lambda opinion: weights[opinion.advocate]).advocate
    context.tell(advocate.name, "asking", own.round + 1)
    text = yield from write_question(context, advocate.model, advocate.name, last.opinions, to)
    return (FollowUp(own.round + 1, advocate.name, to, text),) if text else ()


def _leave_one_out(
    context: DebateContext, setup: DebateSetup, last: Round, found: Consolidation
) -> Steps[tuple[tuple[str, str | None], ...]]:
    """The verdict that the mediator would have given without each informed advocate in turn."""
    informed = [opinion.advocate for opinion in found.informed]
    without = yield from gather(
        [
            consolidate(
                setup.mediator,
                context,
                [opinion for opinion in last.opinions if opinion.advocate != name],
                [part for part in last.parts if part.advocate != name],
                [one for one in found.follow_ups if name not in (one.to, one.asker)],
            )
            for name in informed
        ]
    )
    return tuple((name, one.assessment.verdict) for name, one in zip(informed, without, strict=True))


def _measure_entailment(transcript: Transcript) -> Steps[Transcript]:
    """Fill in how far the cited passages entail the sentences of the verdict and of the last opinions."""
    if not transcript.rounds:
        return transcript
    texts = {source.number: source.passage.text for source in transcript.sources}

    def measured(sentences: Sequence[AnswerSentence]) -> Steps[tuple[AnswerSentence, ...]]:
        asks = tuple(
            AskEntailment(texts[number], sentence.text) for sentence in sentences for number in sentence.citations
        )
        answers = iter((yield asks) if asks else [])
        return tuple(
            replace(sentence, entailment=tuple(next(answers) for _ in sentence.citations)) for sentence in sentences
        )

    last = transcript.rounds[-1]
    explanations = [transcript.verdict.explanation, *(opinion.explanation for opinion in last.opinions)]
    verdict, *others = yield from gather([measured(sentences) for sentences in explanations])
    opinions = tuple(
        replace(opinion, explanation=sentences) for opinion, sentences in zip(last.opinions, others, strict=True)
    )
    rounds = (*transcript.rounds[:-1], replace(last, opinions=opinions))
    return replace(transcript, rounds=rounds, verdict=replace(transcript.verdict, explanation=verdict))
