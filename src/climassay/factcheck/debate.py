"""A debate from the claim to the verdict, as one coroutine (Leippold et al. 2024, figure 1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from climassay.factcheck.advocate import Advocate, Exchanges, ask_others, give_opinions, reply, retrieve
from climassay.factcheck.assessment import Manner
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.dating import dating_warning
from climassay.factcheck.mediator import (
    Consolidation,
    Mediator,
    ask_follow_ups,
    consolidate,
    decide,
    final_verdict,
)
from climassay.factcheck.scales import Scale
from climassay.factcheck.stage import Event, Exhibit, Stage
from climassay.factcheck.steps import AskEntailment, Found, Ledger, Steps, counted, together
from climassay.factcheck.subclaims import split_claim
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    AdvocateProfile,
    Claim,
    FollowUp,
    Outcome,
    PassageCitation,
    Round,
    Subclaim,
    Transcript,
    Verdict,
)
from climassay.grounding.citing import AnswerSentence
from climassay.models.contract import Encoder
from climassay.prompts import Prompt

CONTEXT_PREFIX = "This claim is made in a climate-change context: "
"""Leippold et al. (2024): claims without context get it, so that fewer end without enough information."""


@dataclass(frozen=True, slots=True)
class Table:
    """Everybody at the table, ready to debate any number of claims."""

    settings: DebateSettings
    scale: Scale
    advocates: tuple[Advocate, ...]
    profiles: tuple[AdvocateProfile, ...]
    mediator: Mediator
    templates: Mapping[str, Prompt]
    encoder: Encoder | None
    manner: Manner


def debate(claim: Claim, table: Table, tell: Callable[[Event], None] = lambda _: None) -> Steps[Transcript]:
    """Debate one claim.

    Args:
        claim: What is said.
        table: Who debates, and how.
        tell: Told of subclaims, passages, opinions, follow-ups, decisions and the verdict as they come.
    """
    ledger = Ledger()
    transcript = yield from counted(_debate(claim, table, tell), ledger)
    return replace(transcript, usage=ledger.usage, failures=ledger.failures)


def _debate(claim: Claim, table: Table, tell: Callable[[Event], None]) -> Steps[Transcript]:
    settings = table.settings
    prefix = CONTEXT_PREFIX if settings.context_prefix else ""
    has_head = bool(settings.head)
    stage = Stage(prefix + claim.text, table.scale, table.manner, table.templates, table.encoder, has_head, tell)
    subclaims, split = yield from split_claim(claim.text, settings.split, settings.model, table.templates["split"])
    tell(subclaims)
    asked = [replace(one, text=prefix + one.text) for one in subclaims]
    rounds, found = yield from _hold_rounds(stage, table, asked)
    verdict = yield from final_verdict(table.mediator, stage, claim.text, rounds[-1], found, stage.sources.citations())
    without = (yield from _leave_one_out(stage, table, asked, rounds[-1], found)) if settings.leave_one_out else ()
    transcript = Transcript(
        claim,
        table.scale.name,
        table.profiles,
        f"{table.mediator.style}, {table.mediator.model}",
        subclaims,
        tuple(rounds),
        verdict,
        stage.sources.citations(),
        prefixed=settings.context_prefix,
        split=split,
        without=without,
    )
    warning = dating_warning(claim, [source.passage for source in transcript.cited])
    transcript = replace(transcript, warnings=(warning,) if warning else ())
    if settings.entailment:
        transcript = yield from _measure_entailment(transcript)
    tell(transcript.verdict)
    return transcript


# ------------------------------------------------------------------------------------------------------------ rounds


def _hold_rounds(stage: Stage, table: Table, subclaims: Sequence[Subclaim]) -> Steps[tuple[list[Round], Consolidation]]:
    """Rounds until the debate closes; the mediator's consolidation of the last one."""
    exhibits = yield from _retrieve_all(stage, table, subclaims)
    names = tuple(advocate.name for advocate in table.advocates)
    rounds: list[Round] = []
    questions: tuple[FollowUp, ...] = ()
    while True:
        number = len(rounds) + 1
        asked = (*(one for held in rounds for one in held.follow_ups), *questions)
        said = Exchanges(names, rounds[0].opinions if rounds else (), asked)
        heard = yield from together(
            [
                give_opinions(advocate, stage, subclaims, shown, said, _of(rounds, advocate))
                for advocate, shown in zip(table.advocates, exhibits, strict=True)
            ]
        )
        opinions = tuple(opinion for opinion, _ in heard)
        parts = tuple(part for _, some in heard for part in some)
        found = yield from consolidate(table.mediator, stage, subclaims, opinions, parts, asked)
        changed = any(opinion.changed for opinion in opinions)
        decision = yield from decide(stage, number, table.settings.rounds, found, changed)
        rounds.append(Round(number, questions, opinions, parts, decision))
        if decision.closes or decision.error is not None:
            return rounds, found
        questions, exhibits = yield from _follow_up(stage, table, rounds[-1], found, exhibits)


def _of(rounds: Sequence[Round], advocate: Advocate) -> AdvocateOpinion | None:
    """An advocate's opinion in the last round."""
    if not rounds:
        return None
    return next(opinion for opinion in rounds[-1].opinions if opinion.advocate == advocate.name)


Shown = list[list[list[Exhibit]]]
"""The passages before each advocate, for each subclaim."""


def _retrieve_all(stage: Stage, table: Table, subclaims: Sequence[Subclaim]) -> Steps[Shown]:
    wanted = [(advocate, subclaim) for advocate in table.advocates for subclaim in subclaims]
    found: list[tuple[Found, ...]] = yield from together(
        [retrieve(advocate, subclaim.text) for advocate, subclaim in wanted]
    )
    # Numbered after all searches have come back, so that the numbers do not depend on who was faster.
    numbered = [stage.sources.add(some, advocate.name) for (advocate, _), some in zip(wanted, found, strict=True)]
    stage.tell_sources()
    width = len(subclaims)
    return [numbered[place : place + width] for place in range(0, len(numbered), width)]


def _follow_up(
    stage: Stage, table: Table, last: Round, found: Consolidation, exhibits: Shown
) -> Steps[tuple[tuple[FollowUp, ...], Shown]]:
    """Questions, new retrieval for them, and replies; what was found lies before the advocate in the next round."""
    asked = yield from ask_follow_ups(table.mediator, stage, last.decision, found)
    others = yield from together([_ask_others(stage, table, advocate, last) for advocate in table.advocates])
    questions = (*asked, *(one for some in others for one in some))
    named = {advocate.name: place for place, advocate in enumerate(table.advocates)}
    hits: list[tuple[Found, ...]] = yield from together(
        [retrieve(table.advocates[named[question.to]], question.question) for question in questions]
    )
    updated = [list(shown) for shown in exhibits]
    laid: list[list[Exhibit]] = []
    for question, some in zip(questions, hits, strict=True):
        place = named[question.to]
        new = stage.sources.add(some, question.to)
        laid.append(new or updated[place][0])
        most = table.advocates[place].settings.passages
        updated[place] = [_first(new, old, most) for old in updated[place]]
    stage.tell_sources()
    answered = yield from together(
        [
            reply(table.advocates[named[question.to]], stage, question, shown)
            for question, shown in zip(questions, laid, strict=True)
        ]
    )
    return tuple(answered), updated


def _first(new: Sequence[Exhibit], old: Sequence[Exhibit], most: int) -> list[Exhibit]:
    """Up to half of the places for what was found for a question, the rest for what lay there before."""
    fresh = [exhibit for exhibit in new if exhibit.number not in {one.number for one in old}]
    kept = fresh[: max(1, most // 2)]
    return [*kept, *old[: max(0, most - len(kept))]]


def _ask_others(stage: Stage, table: Table, advocate: Advocate, last: Round) -> Steps[tuple[FollowUp, ...]]:
    """An advocate's questions, put to the most authoritative of the other informed ones where it names nobody."""
    weights = table.mediator.weights
    others = [opinion for opinion in last.opinions if opinion.informed and opinion.advocate != advocate.name]
    if not others:
        return ()
    to = max(others, key=lambda opinion: weights[opinion.advocate]).advocate
    own = next(opinion for opinion in last.opinions if opinion.advocate == advocate.name)
    return (yield from ask_others(advocate, stage, own, last.opinions, to))


# ------------------------------------------------------------------------------------------------------ at the end


def _leave_one_out(
    stage: Stage, table: Table, subclaims: Sequence[Subclaim], last: Round, found: Consolidation
) -> Steps[tuple[tuple[str, str | None], ...]]:
    """The verdict that the mediator would have given without each informed advocate in turn."""
    informed = [opinion.advocate for opinion in found.informed]
    without = yield from together(
        [
            consolidate(
                table.mediator,
                stage,
                subclaims,
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
    sources = {source.number: source for source in transcript.sources}
    last = transcript.rounds[-1]
    texts = [transcript.verdict.explanation, *(opinion.explanation for opinion in last.opinions)]
    measured = yield from together([_entailed(text, sources) for text in texts])
    opinions = tuple(
        replace(opinion, explanation=text) for opinion, text in zip(last.opinions, measured[1:], strict=True)
    )
    rounds = (*transcript.rounds[:-1], replace(last, opinions=opinions))
    return replace(transcript, rounds=rounds, verdict=replace(transcript.verdict, explanation=measured[0]))


def _entailed(
    sentences: Sequence[AnswerSentence], sources: Mapping[int, PassageCitation]
) -> Steps[tuple[AnswerSentence, ...]]:
    asks = tuple(
        AskEntailment(sources[number].passage.text, sentence.text)
        for sentence in sentences
        for number in sentence.citations
    )
    answers = (yield asks) if asks else []
    measured, place = [], 0
    for sentence in sentences:
        count = len(sentence.citations)
        measured.append(replace(sentence, entailment=tuple(answers[place : place + count])))
        place += count
    return tuple(measured)


def unchecked(claim: Claim, table: Table, outcome: Outcome, reason: str) -> Transcript:
    """The transcript of a claim that is not debated: it cannot be checked, or is not about climate."""
    return Transcript(
        claim,
        table.scale.name,
        table.profiles,
        f"{table.mediator.style}, {table.mediator.model}",
        (),
        (),
        Verdict(outcome, None, claim.text, caveats=(reason,)),
        (),
    )
