"""A debate from the claim to the verdict, as one coroutine (Leippold et al. 2024, figure 1)."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from climassay.factcheck.claims import assess_claims, dating_warning
from climassay.factcheck.debate.advocate import DebateState, give_opinions
from climassay.factcheck.debate.context import DebateContext, RetrievedPassage
from climassay.factcheck.debate.evidence import Grader, RetrievedEvidence, find_evidence, find_for_questions
from climassay.factcheck.debate.mediator import (
    NAME,
    Consolidation,
    ask_follow_ups,
    choose_question_mode,
    consolidate,
    decide,
    final_verdict,
)
from climassay.factcheck.debate.reading import ClaimReading, read_claim
from climassay.factcheck.debate.requests import (
    RELATED,
    EntailmentRequest,
    RequestGenerator,
    UsageTotals,
    count_usage,
    gather,
)
from climassay.factcheck.debate.setup import DebateSetup
from climassay.factcheck.transcript import Claim, Event, FollowUp, Outcome, Round, Transcript
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import Encoder

CONTEXT_PREFIX = "This claim is made in a climate-change context: "
"""Prefix that gives claims a context (Leippold et al. 2024); fewer debates then end with "not enough information"."""
PassageTable = list[list[list[RetrievedPassage]]]
"""Passages of each advocate (outer list) for each subclaim (inner list)."""


def debate(
    claim: Claim, setup: DebateSetup, on_event: Callable[[Event], None] = lambda _: None
) -> RequestGenerator[Transcript]:
    """Debate one claim.

    Args:
        claim: Claim to debate.
        setup: Participants and settings.
        on_event: Callback that receives each event.
    """
    totals = UsageTotals()
    transcript = yield from count_usage(_hold_debate(claim, setup, on_event), totals)
    return replace(transcript, usage=totals.usage, failures=totals.failures)


def _hold_debate(claim: Claim, setup: DebateSetup, on_event: Callable[[Event], None]) -> RequestGenerator[Transcript]:
    """Read the claim, find passages, hold rounds until the mediator closes the debate, and give the verdict."""
    settings = setup.settings
    reading = yield from read_claim(claim.text, settings.split, settings.model, setup.profile, setup.templates["split"])
    refusal: Outcome | None = None if reading.kind == "checkable" or not settings.check_claims else reading.kind
    if refusal and not _is_accepted_by_classifier(claim, setup.encoder):
        return setup.refused_transcript(claim, refusal, reading.reason)
    on_event(reading.subclaims)
    prefix = CONTEXT_PREFIX if settings.context_prefix else ""
    subclaims = tuple(replace(subclaim, text=prefix + subclaim.text) for subclaim in reading.subclaims)
    context = DebateContext(setup, prefix + claim.text, subclaims, on_event)

    for advocate in setup.advocates:
        if not advocate.is_plain:
            context.report_activity(advocate.name, "searching", 1)
    grader = None
    if setup.profile.grade_passages:
        grader = Grader(settings.model, setup.templates["grade"], lambda: setup.read_window(settings.model))
    evidence = yield from find_evidence(setup.advocates, context.subclaims, context.claim, grader)
    if refusal and not evidence.is_found and not any(advocate.is_plain for advocate in setup.advocates):
        return setup.refused_transcript(claim, refusal, reading.reason)

    rounds, consolidation = yield from _hold_rounds(context, evidence)
    context.report_activity(NAME, "concluding", len(rounds))
    verdict = final_verdict(context, claim.text, rounds[-1], consolidation)
    ablated_verdicts: tuple[tuple[str, str | None], ...] = ()
    if settings.leave_one_out:
        ablated_verdicts = yield from _leave_one_out(context, rounds[-1], consolidation)
    transcript = replace(
        setup.make_transcript(claim, verdict),
        subclaims=reading.subclaims,
        rounds=tuple(rounds),
        sources=context.sources.citations(),
        prefixed=settings.context_prefix,
        split=reading.splitter,
        without=ablated_verdicts,
    )
    warnings = (
        _refusal_warning(reading) if refusal else "",
        evidence.warning,
        *(
            f"{name} did not see all passages found for it: {count} did not fit the model's context window."
            for name, count in context.left_out.items()
            if count
        ),
        dating_warning(claim, [source.passage for source in transcript.cited]),
    )
    transcript = replace(transcript, warnings=tuple(filter(None, warnings)))
    if settings.entailment:
        transcript = yield from _score_entailment(transcript)
    on_event(transcript.verdict)
    return transcript


def _is_accepted_by_classifier(claim: Claim, encoder: Encoder | None) -> bool:
    return encoder is not None and assess_claims([claim.text], encoder)[0].kind == "checkable"


def _refusal_warning(reading: ClaimReading) -> str:
    """Return a warning that a claim was debated although a model had called it not checkable or not about climate."""
    reason = f" ({reading.reason.rstrip('.')})" if reading.reason else ""
    return (
        f"The model that read the claim called it {reading.kind}{reason}. It was debated all the same, because its "
        "words and the sources speak of climate."
    )


# ----------------------------------------------------------------------------------------------------------- rounds


def _hold_rounds(
    context: DebateContext, evidence: RetrievedEvidence
) -> RequestGenerator[tuple[list[Round], Consolidation]]:
    """Hold rounds until the debate closes. Return the rounds and the mediator's assessment of the last round."""
    setup = context.setup
    # Passages are numbered after all searches, so that the numbers do not depend on the order of the answers.
    passages: PassageTable = [
        [context.sources.add(found_passages, advocate.name) for found_passages in results]
        for advocate, results in zip(setup.advocates, evidence.passages, strict=True)
    ]
    context.report_sources()
    rounds: list[Round] = []
    questions: tuple[FollowUp, ...] = ()
    while True:
        number = len(rounds) + 1
        first_opinions = rounds[0].opinions if rounds else ()
        answered_questions = tuple(follow_up for past_round in rounds for follow_up in past_round.follow_ups)
        state = DebateState(first_opinions, answered_questions, questions, number >= setup.settings.rounds)
        previous_opinions = {opinion.advocate: opinion for opinion in rounds[-1].opinions} if rounds else {}
        results = yield from gather(
            [
                give_opinions(advocate, context, advocate_passages, state, previous_opinions.get(advocate.name))
                for advocate, advocate_passages in zip(setup.advocates, passages, strict=True)
            ]
        )
        opinions = tuple(result.opinion for result in results)
        parts = tuple(part for result in results for part in result.parts)
        replies = {(item.asker, item.to, item.question): item for result in results for item in result.replies}
        questions = tuple(replies[item.asker, item.to, item.question] for item in questions)

        context.report_activity(NAME, "weighing", number)
        question_mode = choose_question_mode(context, number, opinions)
        consolidation = yield from consolidate(
            context, opinions, parts, (*answered_questions, *questions), question_mode
        )
        decision = decide(context, number, consolidation, opinions)
        rounds.append(Round(number, questions, opinions, parts, decision))
        if decision.closes or decision.error is not None:
            return rounds, consolidation

        context.report_activity(NAME, "asking", number + 1)
        mediator_questions = ask_follow_ups(context, decision, consolidation)
        advocate_questions = [question for opinion in opinions for question in opinion.asks]
        questions = tuple(dict.fromkeys([*mediator_questions, *advocate_questions]))
        passages = yield from _find_more_passages(context, questions, passages, evidence)


def _find_more_passages(
    context: DebateContext, questions: Sequence[FollowUp], passages: PassageTable, evidence: RetrievedEvidence
) -> RequestGenerator[PassageTable]:
    """Return the advocates' passages for the next round, with those found for the questions that open it."""
    setup = context.setup
    indices = {advocate.name: index for index, advocate in enumerate(setup.advocates)}
    recipients = [setup.advocates[indices[question.to]] for question in questions]
    for question in questions:
        context.report_activity(question.to, "searching", question.round)
    results = yield from find_for_questions(
        list(zip(recipients, questions, strict=True)), evidence, is_graded=setup.profile.grade_passages
    )
    updated_passages = [list(advocate_passages) for advocate_passages in passages]
    for recipient, found_passages in zip(recipients, results, strict=True):
        index = indices[recipient.name]
        new_passages = context.sources.add(found_passages, recipient.name)
        if any(item.grade != RELATED for item in new_passages):
            # Passages that are only related to the subject were used for lack of relevant ones.
            updated_passages[index] = [
                [item for item in current_passages if item.grade != RELATED]
                for current_passages in updated_passages[index]
            ]
        updated_passages[index] = [
            add_follow_up_passages(new_passages, current_passages, recipient.passages)
            for current_passages in updated_passages[index]
        ]
    context.report_sources()
    return updated_passages


def add_follow_up_passages(
    new_passages: Sequence[RetrievedPassage], old_passages: Sequence[RetrievedPassage], max_passages: int
) -> list[RetrievedPassage]:
    """Return the passages for an advocate's next prompt: those that are new to it, then all of ``old_passages``.

    At most half of ``max_passages`` are added. An advocate keeps all passages that its opinion may be based on.
    """
    numbers = {item.number for item in old_passages}
    added_passages = [item for item in new_passages if item.number not in numbers]
    return [*added_passages[: max(1, max_passages // 2)], *old_passages]


# ------------------------------------------------------------------------------------------------ after the verdict


def _leave_one_out(
    context: DebateContext, last_round: Round, consolidation: Consolidation
) -> RequestGenerator[tuple[tuple[str, str | None], ...]]:
    """Return pairs of an informed advocate's name and the mediator's verdict without that advocate."""
    names = [opinion.advocate for opinion in consolidation.informed]
    results = yield from gather(
        [
            consolidate(
                context,
                [opinion for opinion in last_round.opinions if opinion.advocate != name],
                [part for part in last_round.parts if part.advocate != name],
                [
                    item
                    for item in consolidation.follow_ups
                    # A question from the template repeats the verdicts of other advocates.
                    if name not in (item.to, item.asker) and f"{name} says" not in item.question
                ],
            )
            for name in names
        ]
    )
    return tuple((name, result.assessment.verdict) for name, result in zip(names, results, strict=True))


def _score_entailment(transcript: Transcript) -> RequestGenerator[Transcript]:
    """Add the probability of entailment to each citation in the explanations of the verdict and the last opinions."""
    passage_texts = {source.number: source.passage.text for source in transcript.sources}

    def score_sentences(sentences: Sequence[AnswerSentence]) -> RequestGenerator[tuple[AnswerSentence, ...]]:
        requests = tuple(
            EntailmentRequest(passage_texts[number], sentence.text)
            for sentence in sentences
            for number in sentence.citations
        )
        scores = iter((yield requests) if requests else [])
        return tuple(
            replace(sentence, entailment=tuple(next(scores) for _ in sentence.citations)) for sentence in sentences
        )

    last_round = transcript.rounds[-1]
    explanations = [transcript.verdict.explanation, *(opinion.explanation for opinion in last_round.opinions)]
    verdict_explanation, *opinion_explanations = yield from gather(
        [score_sentences(sentences) for sentences in explanations]
    )
    opinions = tuple(
        replace(opinion, explanation=sentences)
        for opinion, sentences in zip(last_round.opinions, opinion_explanations, strict=True)
    )
    rounds = (*transcript.rounds[:-1], replace(last_round, opinions=opinions))
    return replace(transcript, rounds=rounds, verdict=replace(transcript.verdict, explanation=verdict_explanation))
