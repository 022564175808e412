"""A debate from the claim to the verdict, as one coroutine (Leippold et al. 2024, figure 1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from climassay.factcheck.claims import dating_warning
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.debate.advocate import Advocate, Exchanges, give_opinions, reply, write_question
from climassay.factcheck.debate.assessment import ElicitationConfig
from climassay.factcheck.debate.context import DebateContext, RetrievedPassage
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
from climassay.factcheck.debate.preparation import Evidence, Grader, find_evidence, find_for_questions, read_claim
from climassay.factcheck.debate.scheduler import ON_SUBJECT, AskEntailment, Ledger, Steps, counted, gather
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
from climassay.models.contract import Encoder
from climassay.prompts import STRONG, Profile, Prompt

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
    context = DebateContext(
        prefix + claim.text, setup.scale, setup.config, setup.templates, setup.encoder, bool(settings.head), on_event
    )
    reading = yield from read_claim(claim.text, settings.split, settings.model, profile, setup.templates)
    if reading.kind != "checkable" and settings.check_claims:
        return setup.unchecked(claim, reading.kind, reading.reason)
    on_event(reading.subclaims)
    asked = [replace(one, text=prefix + one.text) for one in reading.subclaims]
    for advocate in setup.advocates:
        if advocate.settings.kind != "plain":
            context.tell(advocate.name, "searching", 1)
    grader = Grader(settings.model, setup.templates["grade"]) if profile.grade_passages else None
    evidence = yield from find_evidence(setup.advocates, asked, context.claim, grader)
    rounds, result = yield from _hold_rounds(context, setup, asked, evidence)
    context.tell(NAME, "concluding", len(rounds))
    verdict = yield from final_verdict(setup.mediator, context, claim.text, rounds[-1], result)
    without = (yield from _leave_one_out(context, setup, asked, rounds[-1], result)) if settings.leave_one_out else ()
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
    context: DebateContext, setup: DebateSetup, subclaims: Sequence[Subclaim], evidence: Evidence
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
                give_opinions(advocate, context, subclaims, shown, said, last.get(advocate.name))
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
        result = yield from consolidate(setup.mediator, context, subclaims, opinions, parts, asked, asking)
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
    context: DebateContext, setup: DebateSetup, subclaims: Sequence[Subclaim], last: Round, found: Consolidation
) -> Steps[tuple[tuple[str, str | None], ...]]:
    """The verdict that the mediator would have given without each informed advocate in turn."""
    informed = [opinion.advocate for opinion in found.informed]
    without = yield from gather(
        [
            consolidate(
                setup.mediator,
                context,
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
