"""A debate from the claim to the verdict, as one coroutine (Leippold et al. 2024, figure 1)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from climassay.factcheck.certainty import UNCERTAIN
from climassay.factcheck.claims import assess_claims, dating_warning
from climassay.factcheck.configuration import DebateSettings
from climassay.factcheck.debate.advocate import Advocate, DebateState, give_opinions, write_question, write_reply
from climassay.factcheck.debate.assessment import ElicitationConfig
from climassay.factcheck.debate.context import DebateContext, RetrievedPassage
from climassay.factcheck.debate.evidence import Grader, RetrievedEvidence, find_evidence, find_for_questions
from climassay.factcheck.debate.mediator import (
    NAME,
    Consolidation,
    Mediator,
    ask_follow_ups,
    choose_question_mode,
    consolidate,
    decide,
    final_verdict,
)
from climassay.factcheck.debate.reading import ClaimReading, read_claim
from climassay.factcheck.debate.steps import RELATED, EntailmentRequest, Ledger, Steps, count_usage, gather
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    AdvocateProfile,
    Claim,
    Event,
    FollowUp,
    Outcome,
    Round,
    Transcript,
    Verdict,
)
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import Encoder
from climassay.prompts import STRONG, Profile, Prompt

CONTEXT_PREFIX = "This claim is made in a climate-change context: "
"""Prefix that gives claims a context (Leippold et al. 2024); fewer debates then end with "not enough information"."""
PassageTable = list[list[list[RetrievedPassage]]]
"""Passages of each advocate (outer list) for each subclaim (inner list)."""


@dataclass(frozen=True, slots=True)
class DebateSetup:
    """Participants and settings of debates about any number of claims."""

    settings: DebateSettings
    scale: Scale
    advocates: tuple[Advocate, ...]
    profiles: tuple[AdvocateProfile, ...]
    mediator: Mediator
    templates: Mapping[str, Prompt]
    encoder: Encoder | None
    config: ElicitationConfig
    profile: Profile = STRONG
    """Settings of the prompts for reading the claim and grading passages."""
    read_window: Callable[[str], int | None] = lambda _: None
    """Function that takes a model's name and returns its context length in tokens; None if it is not known yet."""

    @property
    def reads_claims(self) -> bool:
        """Whether the model that splits a claim also decides if it can be checked."""
        return self.settings.split == "model" and not self.profile.brief

    @property
    def calls_of_one_round(self) -> int | None:
        """Number of model calls in a debate of one round.

        None for ``scored``, where the number depends on the answers.
        """
        if self.config.elicitation == "scored":
            return None
        return (self.settings.split == "model") + self.profile.grade_passages + len(self.advocates) + 1

    def transcript(self, claim: Claim, verdict: Verdict) -> Transcript:
        """Return a transcript that has a verdict but no rounds of debate."""
        mediator = f"{self.mediator.style}, {self.mediator.model}"
        return Transcript(claim, self.scale.name, self.profiles, mediator, (), (), verdict, ())

    def unchecked(self, claim: Claim, outcome: Outcome, reason: str) -> Transcript:
        """Return the transcript of a claim that is refused as not checkable or not about climate."""
        return self.transcript(claim, Verdict(outcome, None, claim.text, caveats=(reason,)))


def debate(claim: Claim, setup: DebateSetup, on_event: Callable[[Event], None] = lambda _: None) -> Steps[Transcript]:
    """Debate one claim.

    Args:
        claim: Claim to debate.
        setup: Participants and settings.
        on_event: Callback that receives each event.
    """
    ledger = Ledger()
    transcript = yield from count_usage(_run_debate(claim, setup, on_event), ledger)
    return replace(transcript, usage=ledger.usage, failures=ledger.failures)


def _run_debate(claim: Claim, setup: DebateSetup, on_event: Callable[[Event], None]) -> Steps[Transcript]:
    settings, profile = setup.settings, setup.profile
    prefix = CONTEXT_PREFIX if settings.context_prefix else ""
    reading = yield from read_claim(claim.text, settings.split, settings.model, profile, setup.templates)
    refusal: Outcome | None = None if reading.kind == "checkable" or not settings.check_claims else reading.kind
    if refusal and not _is_accepted_by_classifier(claim, setup.encoder):
        return setup.unchecked(claim, refusal, reading.reason)
    on_event(reading.subclaims)
    context = DebateContext(
        prefix + claim.text,
        setup.scale,
        setup.config,
        setup.templates,
        setup.encoder,
        on_event,
        tuple(replace(subclaim, text=prefix + subclaim.text) for subclaim in reading.subclaims),
        read_window=setup.read_window,
    )
    for advocate in setup.advocates:
        if not advocate.is_plain:
            context.report_activity(advocate.name, "searching", 1)
    grader = None
    if profile.grade_passages:
        grader = Grader(settings.model, setup.templates["grade"], lambda: setup.read_window(settings.model))
    evidence = yield from find_evidence(setup.advocates, context.subclaims, context.claim, grader)
    if refusal and not evidence.is_found and not any(advocate.is_plain for advocate in setup.advocates):
        return setup.unchecked(claim, refusal, reading.reason)
    rounds, consolidation = yield from _run_rounds(context, setup, evidence)
    context.report_activity(NAME, "concluding", len(rounds))
    verdict = yield from final_verdict(setup.mediator, context, claim.text, rounds[-1], consolidation)
    ablated_verdicts: tuple[tuple[str, str | None], ...] = ()
    if settings.leave_one_out:
        ablated_verdicts = yield from _leave_one_out(context, setup, rounds[-1], consolidation)
    transcript = replace(
        setup.transcript(claim, verdict),
        subclaims=reading.subclaims,
        rounds=tuple(rounds),
        sources=context.sources.citations(),
        prefixed=settings.context_prefix,
        split=reading.splitter,
        without=ablated_verdicts,
    )
    warning = dating_warning(claim, [source.passage for source in transcript.cited])
    refusal_warning = _refusal_warning(reading) if refusal else ""
    omission_warnings = [
        f"{name} did not see all passages found for it: {count} did not fit the model's context window."
        for name, count in context.left_out.items()
        if count
    ]
    transcript = replace(
        transcript, warnings=tuple(filter(None, (refusal_warning, evidence.warning, *omission_warnings, warning)))
    )
    if settings.entailment:
        transcript = yield from _measure_entailment(transcript)
    on_event(transcript.verdict)
    return transcript


def _is_accepted_by_classifier(claim: Claim, encoder: Encoder | None) -> bool:
    """Return whether the checkability classifier accepts a claim."""
    return encoder is not None and assess_claims([claim.text], encoder)[0].kind == "checkable"


def _refusal_warning(reading: ClaimReading) -> str:
    """Return a warning that a claim was debated although a model had called it not checkable or not about climate."""
    reason = f" ({reading.reason.rstrip('.')})" if reading.reason else ""
    return (
        f"The model that read the claim called it {reading.kind}{reason}. It was debated all the same, because its "
        "words and the sources speak of climate."
    )


def _run_rounds(
    context: DebateContext, setup: DebateSetup, evidence: RetrievedEvidence
) -> Steps[tuple[list[Round], Consolidation]]:
    """Hold rounds until the debate closes. Return the rounds and the mediator's assessment of the last round."""
    # Passages are numbered after all searches, so that the numbers do not depend on the order of the answers.
    passages: PassageTable = [
        [context.sources.add(found_passages, advocate.name) for found_passages in results]
        for advocate, results in zip(setup.advocates, evidence.passages, strict=True)
    ]
    context.report_sources()
    max_rounds = setup.settings.rounds
    rounds: list[Round] = []
    questions: tuple[FollowUp, ...] = ()
    while True:
        number = len(rounds) + 1
        earlier_questions = tuple(follow_up for past_round in rounds for follow_up in past_round.follow_ups)
        # With scores, the questions have been answered before the round; with a schema, opinions include the replies.
        answers_in_opinions = context.config.elicitation == "schema"
        state = DebateState(
            setup.profiles,
            rounds[0].opinions if rounds else (),
            earlier_questions if answers_in_opinions else (*earlier_questions, *questions),
            questions if answers_in_opinions else (),
            number >= max_rounds,
        )
        previous_opinions = {opinion.advocate: opinion for opinion in rounds[-1].opinions} if rounds else {}
        results = yield from gather(
            [
                give_opinions(advocate, context, advocate_passages, state, previous_opinions.get(advocate.name))
                for advocate, advocate_passages in zip(setup.advocates, passages, strict=True)
            ]
        )
        replies = {(item.asker, item.to, item.question): item for result in results for item in result.replies}
        questions = tuple(replies.get((item.asker, item.to, item.question), item) for item in questions)
        opinions = tuple(result.opinion for result in results)
        parts = tuple(part for result in results for part in result.parts)
        question_mode = choose_question_mode(number, max_rounds, opinions, setup.scale)
        context.report_activity(NAME, "weighing", number)
        consolidation = yield from consolidate(
            setup.mediator, context, opinions, parts, (*earlier_questions, *questions), question_mode
        )
        has_changed = any(opinion.changed for opinion in opinions)
        decision = yield from decide(context, number, max_rounds, consolidation, has_changed)
        rounds.append(Round(number, questions, opinions, parts, decision))
        if decision.closes or decision.error is not None:
            return rounds, consolidation
        questions, passages = yield from _prepare_next_round(
            context, setup, rounds[-1], consolidation, passages, evidence
        )


def _prepare_next_round(
    context: DebateContext,
    setup: DebateSetup,
    last_round: Round,
    consolidation: Consolidation,
    passages: PassageTable,
    evidence: RetrievedEvidence,
) -> Steps[tuple[tuple[FollowUp, ...], PassageTable]]:
    """Return the questions of the next round and the advocates' passages, updated with those found for the questions.

    With ``scored`` the questions are also answered; with ``schema`` the advocates' next opinions include the replies.
    """
    uses_schema = context.config.elicitation == "schema"
    number = last_round.number + 1
    context.report_activity(NAME, "asking", number)
    mediator_questions = yield from ask_follow_ups(setup.mediator, context, last_round.decision, consolidation)
    if uses_schema:
        advocate_questions = [opinion.asks for opinion in last_round.opinions]
    else:
        advocate_questions = yield from gather(
            [_ask_other_advocate(context, setup, advocate, last_round) for advocate in setup.advocates]
        )
    questions = tuple(dict.fromkeys([*mediator_questions, *(item for group in advocate_questions for item in group)]))
    indices = {advocate.name: index for index, advocate in enumerate(setup.advocates)}
    recipients = [setup.advocates[indices[question.to]] for question in questions]
    for question in questions:
        context.report_activity(question.to, "searching", number)
    results = yield from find_for_questions(
        list(zip(recipients, questions, strict=True)), evidence, is_graded=setup.profile.grade_passages
    )
    updated_passages = [list(advocate_passages) for advocate_passages in passages]
    reply_passages: list[list[RetrievedPassage]] = []
    for question, recipient, found_passages in zip(questions, recipients, results, strict=True):
        index = indices[question.to]
        new_passages = context.sources.add(found_passages, question.to)
        reply_passages.append(new_passages or updated_passages[index][0])
        if any(item.grade != RELATED for item in new_passages):
            # Passages that are only related to the subject were used for lack of relevant ones.
            updated_passages[index] = [
                [item for item in current_passages if item.grade != RELATED]
                for current_passages in updated_passages[index]
            ]
        # A model that can read many passages keeps all that its opinion may be based on; a small one has limited room.
        updated_passages[index] = [
            add_follow_up_passages(new_passages, current_passages, recipient.passages, keep_all=uses_schema)
            for current_passages in updated_passages[index]
        ]
    context.report_sources()
    if uses_schema:
        return questions, updated_passages
    answered_questions = yield from gather(
        [
            write_reply(recipient, context, question, question_passages)
            for recipient, question, question_passages in zip(recipients, questions, reply_passages, strict=True)
        ]
    )
    return tuple(answered_questions), updated_passages


def add_follow_up_passages(
    new_passages: Sequence[RetrievedPassage],
    old_passages: Sequence[RetrievedPassage],
    max_passages: int,
    *,
    keep_all: bool,
) -> list[RetrievedPassage]:
    """Return the passages found for a question, at most half of ``max_passages``, followed by the earlier passages.

    The list is truncated to ``max_passages`` unless ``keep_all`` is set.
    """
    numbers = {item.number for item in old_passages}
    added_passages = [item for item in new_passages if item.number not in numbers][: max(1, max_passages // 2)]
    return [
        *added_passages,
        *old_passages[: len(old_passages) if keep_all else max(0, max_passages - len(added_passages))],
    ]


def _ask_other_advocate(
    context: DebateContext, setup: DebateSetup, advocate: Advocate, last_round: Round
) -> Steps[tuple[FollowUp, ...]]:
    """Let an uncertain advocate ask the informed advocate with the greatest authority; return at most one question."""
    weights = setup.mediator.weights
    candidates = [opinion for opinion in last_round.opinions if opinion.informed and opinion.advocate != advocate.name]
    opinion = next(opinion for opinion in last_round.opinions if opinion.advocate == advocate.name)
    if not candidates or opinion.levels is None or opinion.levels.confidence not in UNCERTAIN:
        return ()
    recipient = max(candidates, key=lambda opinion: weights[opinion.advocate]).advocate
    context.report_activity(advocate.name, "asking", opinion.round + 1)
    text = yield from write_question(context, advocate.model, advocate.name, last_round.opinions, recipient)
    return (FollowUp(opinion.round + 1, advocate.name, recipient, text),) if text else ()


def _leave_one_out(
    context: DebateContext, setup: DebateSetup, last_round: Round, consolidation: Consolidation
) -> Steps[tuple[tuple[str, str | None], ...]]:
    """Return pairs of an informed advocate's name and the mediator's verdict without that advocate."""
    names = [opinion.advocate for opinion in consolidation.informed]
    results = yield from gather(
        [
            consolidate(
                setup.mediator,
                context,
                [opinion for opinion in last_round.opinions if opinion.advocate != name],
                [part for part in last_round.parts if part.advocate != name],
                [item for item in consolidation.follow_ups if name not in (item.to, item.asker)],
            )
            for name in names
        ]
    )
    return tuple((name, result.assessment.verdict) for name, result in zip(names, results, strict=True))


def _measure_entailment(transcript: Transcript) -> Steps[Transcript]:
    """Add the probability of entailment to each citation in the explanations of the verdict and the last opinions."""
    if not transcript.rounds:
        return transcript
    texts = {source.number: source.passage.text for source in transcript.sources}

    def measure(sentences: Sequence[AnswerSentence]) -> Steps[tuple[AnswerSentence, ...]]:
        requests = tuple(
            EntailmentRequest(texts[number], sentence.text) for sentence in sentences for number in sentence.citations
        )
        answers = iter((yield requests) if requests else [])
        return tuple(
            replace(sentence, entailment=tuple(next(answers) for _ in sentence.citations)) for sentence in sentences
        )

    last_round = transcript.rounds[-1]
    explanations = [transcript.verdict.explanation, *(opinion.explanation for opinion in last_round.opinions)]
    verdict, *measured_explanations = yield from gather([measure(sentences) for sentences in explanations])
    opinions = tuple(
        replace(opinion, explanation=sentences)
        for opinion, sentences in zip(last_round.opinions, measured_explanations, strict=True)
    )
    rounds = (*transcript.rounds[:-1], replace(last_round, opinions=opinions))
    return replace(transcript, rounds=rounds, verdict=replace(transcript.verdict, explanation=verdict))
