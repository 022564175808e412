"""An advocate: judges a claim by its own passages, answers questions, and may revise its opinion in a further round."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from climassay.factcheck.certainty import Levels
from climassay.factcheck.debate.assessment import MAX_QUESTIONS, Assessment, AssessmentPrompt, assess
from climassay.factcheck.debate.context import (
    DebateContext,
    RetrievedPassage,
    VerifiedAssessment,
    follow_up_values,
    format_explanation,
    format_location,
    join_lines,
    quotation_values,
    statement_values,
    verify,
)
from climassay.factcheck.debate.requests import RELATED, RequestGenerator
from climassay.factcheck.debate.setup import Advocate
from climassay.factcheck.transcript import AdvocateOpinion, AdvocateProfile, FollowUp
from climassay.models.contract import CHARACTERS_PER_TOKEN

_ANSWER_TOKENS = 1000
"""Number of tokens in a model's context window that are reserved for an opinion."""


@dataclass(frozen=True, slots=True)
class DebateState:
    """State of a debate at the start of a round, as known to its advocates."""

    first_opinions: tuple[AdvocateOpinion, ...] = ()
    """Opinions of all advocates on the whole claim in the first round; empty during that round."""
    follow_ups: tuple[FollowUp, ...] = ()
    """Answered questions of all earlier rounds."""
    open_questions: tuple[FollowUp, ...] = ()
    """Questions that open this round; each advocate answers its own together with its opinion."""
    is_last: bool = False
    """Whether this is the last possible round; questions asked in it cannot be answered."""


class RoundOpinions(NamedTuple):
    """Contributions of an advocate to a round."""

    opinion: AdvocateOpinion
    """Opinion on the whole claim."""
    parts: tuple[AdvocateOpinion, ...]
    """Opinions on the individual statements; empty if the claim has only one."""
    replies: tuple[FollowUp, ...]
    """Questions to the advocate, with its replies."""


def give_opinions(
    advocate: Advocate,
    context: DebateContext,
    passages: Sequence[Sequence[RetrievedPassage]],
    state: DebateState,
    previous: AdvocateOpinion | None,
) -> RequestGenerator[RoundOpinions]:
    """Let an advocate judge the claim and its statements and answer questions, all in one call.

    Args:
        advocate: Advocate to ask.
        context: State shared by all participants.
        passages: Passages for each subclaim.
        state: Contributions of earlier rounds.
        previous: The advocate's opinion of the previous round; None in the first one.
    """
    number = 1 if previous is None else previous.round + 1
    context.report_activity(advocate.name, "judging", number)
    result = yield from _judge(advocate, context, passages, state, number)
    # A failed call is not a change of opinion: it must not keep open a debate that would close without it.
    verdict = result.opinion.verdict
    has_changed = previous is not None and verdict is not None and previous.verdict != verdict
    result = result._replace(opinion=replace(result.opinion, changed=has_changed))
    for follow_up in result.replies:
        context.on_event(follow_up)
    context.on_event(result.opinion)
    return result


def _judge(
    advocate: Advocate,
    context: DebateContext,
    passages: Sequence[Sequence[RetrievedPassage]],
    state: DebateState,
    number: int,
) -> RequestGenerator[RoundOpinions]:
    """Return the advocate's contributions to round ``number``.

    The call is skipped if there is no passage, or if all passages are only related to the claim's subject.
    """
    unique_passages = list({item.number: item for results in passages for item in results}.values())
    empty_opinion = _make_empty_opinion(advocate, context, number, None, unique_passages)
    subclaims = context.subclaims if len(context.subclaims) > 1 else ()
    empty_parts = tuple(
        _make_empty_opinion(advocate, context, number, subclaim.number, results)
        for subclaim, results in zip(subclaims, passages, strict=False)
    )
    questions = tuple(question for question in state.open_questions if question.to == advocate.name)
    if not advocate.is_plain and all(item.grade == RELATED for item in unique_passages):
        skipped_parts = tuple(replace(part, unasked=True) for part in empty_parts)
        return RoundOpinions(replace(empty_opinion, unasked=True), skipped_parts, questions)
    while True:
        fitting_passages = _select_fitting_passages(advocate, context, unique_passages, state, questions)
        prompt = _make_prompt(advocate, context, fitting_passages, state, questions)
        assessment = yield from assess(advocate.model, prompt, context.setup)
        # A server that refuses a prompt as too long states its window.
        if (
            assessment.error is None
            or _select_fitting_passages(advocate, context, unique_passages, state, questions) == fitting_passages
        ):
            break
    n_left_out = len(unique_passages) - len(fitting_passages)
    context.left_out[advocate.name] = max(context.left_out.get(advocate.name, 0), n_left_out)
    empty_opinion = replace(empty_opinion, retrieved=tuple(item.number for item in fitting_passages))
    if (error := assessment.error) is not None:
        return RoundOpinions(
            replace(empty_opinion, verdict=None, error=error),
            tuple(replace(part, verdict=None, error=error) for part in empty_parts),
            tuple(replace(question, error=error) for question in questions),
        )
    context.report_activity(advocate.name, "checking quotations", number)
    parts = []
    for subclaim, part, statement in zip(subclaims, empty_parts, assessment.statements, strict=True):
        # The reasoning on a statement is its explanation.
        explained_statement = replace(statement, explanation=statement.reasoning)
        verification = verify(
            context,
            explained_statement,
            subclaim.text,
            fitting_passages,
            allows_own_knowledge=advocate.is_plain,
        )
        parts.append(_make_opinion(context, part, statement, verification))
    quotations = [quotation for part in parts for quotation in part.quotations]
    verification = verify(
        context,
        assessment,
        context.claim,
        fitting_passages,
        quotations=quotations,
        allows_own_knowledge=advocate.is_plain,
    )
    opinion = _make_opinion(context, empty_opinion, assessment, verification)
    n_removed = sum(part.removed_quotations for part in (opinion, *parts))
    replies = tuple(
        replace(question, retrieved=empty_opinion.retrieved, reply=context.ground(text, fitting_passages)[0])
        for question, text in zip(questions, assessment.replies, strict=True)
    )
    return RoundOpinions(replace(opinion, removed_quotations=n_removed), tuple(parts), replies)


def _make_empty_opinion(
    advocate: Advocate, context: DebateContext, number: int, subclaim: int | None, passages: Sequence[RetrievedPassage]
) -> AdvocateOpinion:
    """Return an opinion with the verdict "not enough information"."""
    passage_numbers = tuple(item.number for item in passages)
    return AdvocateOpinion(advocate.name, number, subclaim, context.setup.scale.nei, False, retrieved=passage_numbers)


def _make_opinion(
    context: DebateContext, empty_opinion: AdvocateOpinion, assessment: Assessment, verification: VerifiedAssessment
) -> AdvocateOpinion:
    """Return ``empty_opinion``, filled in with a verified assessment."""
    questions = tuple(
        FollowUp(empty_opinion.round + 1, empty_opinion.advocate, question.to, question.text, queries=question.queries)
        for question in assessment.questions
    )
    return replace(
        empty_opinion,
        **verification._asdict(),
        informed=_is_informed(context, verification.verdict, verification.levels),
        placement=assessment.placement if verification.verdict != context.setup.scale.nei else None,
        draft=assessment.reasoning,
        asks=questions,
    )


def _is_informed(context: DebateContext, verdict: str | None, levels: Levels | None) -> bool:
    """Return whether a verdict counts, that is, does not express a lack of information.

    Labels such as "unsupported" express a lack of information if the evidence is limited.
    """
    scale = context.setup.scale
    lacks_evidence = verdict in scale.lack_labels and levels is not None and levels.evidence == "limited"
    return verdict is not None and verdict != scale.nei and not lacks_evidence


# ----------------------------------------------------------------------------------------------------------- prompt


def _select_fitting_passages(
    advocate: Advocate,
    context: DebateContext,
    passages: list[RetrievedPassage],
    state: DebateState,
    questions: Sequence[FollowUp],
) -> list[RetrievedPassage]:
    """Return the first passages that fit the model's context window together with prompt and answer, at least one.

    All passages are returned if the size of the window is unknown.
    """
    window = context.setup.read_window(advocate.model)
    if window is None:
        return passages
    max_characters = (window - _ANSWER_TOKENS) * CHARACTERS_PER_TOKEN
    count = len(passages)
    while count > 1:
        prompt = _make_prompt(advocate, context, passages[:count], state, questions)
        if sum(len(message.content) for message in prompt.messages) <= max_characters:
            break
        count -= 1
    return passages[:count]


def _make_prompt(
    advocate: Advocate,
    context: DebateContext,
    passages: Sequence[RetrievedPassage],
    state: DebateState,
    questions: Sequence[FollowUp],
) -> AssessmentPrompt:
    settings, profiles = advocate.settings, context.setup.profiles
    other_participants = [
        describe_participant(profile) for profile in profiles.values() if profile.name != advocate.name
    ]
    statements = statement_values(context.subclaims)
    prompt = context.render(
        "advocate",
        name=advocate.name,
        kind=settings.kind,
        stance=join_lines(settings.stance),
        about=join_lines(profiles[advocate.name].about),
        others=other_participants,
        ask=bool(other_participants) and not state.is_last,
        max_questions=MAX_QUESTIONS,
        claim=join_lines(context.claim),
        statements=statements,
        sources=[
            {"number": item.number, "where": format_location(item.passage), "text": join_lines(item.excerpt)}
            for item in passages
        ],
        opinions=[
            {
                "name": opinion.advocate,
                "verdict": opinion.verdict or "failed",
                "text": format_explanation(opinion.explanation),
                "quotations": quotation_values(opinion.quotations),
            }
            for opinion in state.first_opinions
        ],
        exchanges=follow_up_values(state.follow_ups),
        questions=[{"asker": item.asker, "question": join_lines(item.question)} for item in questions],
    )
    return AssessmentPrompt(
        prompt.messages,
        passages=tuple(item.number for item in passages),
        statements=tuple(subclaim.number for subclaim in context.subclaims) if statements else (),
        recipients=() if state.is_last else tuple(values["name"] for values in other_participants),
        is_advocate=True,
        n_replies=len(questions),
    )


def describe_participant(profile: AdvocateProfile) -> dict[str, str]:
    """Return the template values that describe an advocate in the prompts of other participants."""
    return {"name": profile.name, "kind": profile.kind, "about": join_lines(profile.about)}
