"""An advocate: judges the statements of a claim by its own passages, answers questions, and may revise its opinion."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from climassay.errors import ModelError
from climassay.factcheck.certainty import Levels, combine_levels
from climassay.factcheck.configuration import AdvocateSettings
from climassay.factcheck.debate.assessment import (
    MAX_QUESTIONS,
    Assessment,
    AssessmentPrompt,
    assess,
    explain,
    index_of_maximum,
    score_options,
)
from climassay.factcheck.debate.context import (
    DebateContext,
    RetrievedPassage,
    VerifiedAssessment,
    extract_question,
    follow_up_values,
    join_lines,
    quotation_values,
    source_values,
    verify,
)
from climassay.factcheck.debate.steps import RELATED, SearchRequest, Steps, gather, request_text
from climassay.factcheck.transcript import AdvocateOpinion, AdvocateProfile, FollowUp, Subclaim
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import BLANK, CHARACTERS_PER_TOKEN, GenerationRequest
from climassay.prompts import STRONG

_ANSWER_TOKENS = 1000
"""Number of tokens in a model's context window that are reserved for an opinion (``schema`` only)."""
_QUESTION_TOKENS = 48
"""Maximum number of tokens of a question (``scored`` only)."""


@dataclass(frozen=True, slots=True)
class Advocate:
    """Advocate of a debate: its settings and its model."""

    settings: AdvocateSettings
    model: str
    """Name of the model."""
    latest_only: bool = False
    """Whether the advocate searches only the latest edition of each document."""

    @property
    def name(self) -> str:
        """Name used by the other participants."""
        return self.settings.name

    @property
    def is_plain(self) -> bool:
        """Whether the advocate has no collections and uses the model's own knowledge."""
        return self.settings.kind == "plain"

    @property
    def passages(self) -> int:
        """Maximum number of passages in a prompt."""
        return self.settings.passages or STRONG.passages

    def search(self, query: str) -> SearchRequest:
        """Return a request to search the advocate's collections."""
        settings = self.settings
        return SearchRequest(
            settings.collections,
            query,
            self.passages,
            settings.excerpt_words or 0,
            settings.rerank,
            self.latest_only,
            settings.min_cosine,
        )


@dataclass(frozen=True, slots=True)
class DebateState:
    """State of a debate at the start of a round, as known to its advocates."""

    profiles: tuple[AdvocateProfile, ...] = ()
    """Profiles of all advocates."""
    first_opinions: tuple[AdvocateOpinion, ...] = ()
    """Opinions of all advocates on the whole claim in the first round; empty during that round."""
    follow_ups: tuple[FollowUp, ...] = ()
    """Answered questions of all rounds."""
    open_questions: tuple[FollowUp, ...] = ()
    """Questions that an advocate answers together with its opinion (``schema`` only)."""
    is_last: bool = False
    """Whether this is the last possible round; questions asked in it cannot be answered."""


class RoundOpinions(NamedTuple):
    """Contributions of an advocate to a round."""

    opinion: AdvocateOpinion
    """Opinion on the whole claim."""
    parts: tuple[AdvocateOpinion, ...]
    """Opinions on the individual statements; empty if the claim has only one."""
    replies: tuple[FollowUp, ...] = ()
    """Questions to the advocate, with its replies (``schema`` only)."""


def give_opinions(
    advocate: Advocate,
    context: DebateContext,
    passages: Sequence[Sequence[RetrievedPassage]],
    state: DebateState,
    previous: AdvocateOpinion | None,
) -> Steps[RoundOpinions]:
    """Judge the claim and, if there are several, its statements.

    Args:
        advocate: Advocate to ask.
        context: State shared by all participants.
        passages: Passages for each subclaim.
        state: Contributions of earlier rounds.
        previous: The advocate's opinion of the previous round; None in the first one.
    """
    number = 1 if previous is None else previous.round + 1
    context.report_activity(advocate.name, "judging", number)
    if context.config.elicitation == "schema":
        result = yield from _judge_by_schema(advocate, context, passages, state, number)
    else:
        result = yield from _judge_by_scores(advocate, context, passages, state, number)
    # A failed call is not a change of opinion: it must not keep open a debate that would close without it.
    verdict = result.opinion.verdict
    has_changed = previous is not None and verdict is not None and previous.verdict != verdict
    result = result._replace(opinion=replace(result.opinion, changed=has_changed))
    for follow_up in result.replies:
        context.on_event(follow_up)
    context.on_event(result.opinion)
    return result


def _make_uninformed_opinion(
    advocate: Advocate, context: DebateContext, number: int, subclaim: int | None, passages: Sequence[RetrievedPassage]
) -> AdvocateOpinion:
    """Return an opinion with the verdict "not enough information"."""
    passage_numbers = tuple(item.number for item in passages)
    return AdvocateOpinion(advocate.name, number, subclaim, context.scale.nei, False, retrieved=passage_numbers)


# ---------------------------------------------------------------------------------------------- one call, by schema


def _judge_by_schema(
    advocate: Advocate,
    context: DebateContext,
    passages: Sequence[Sequence[RetrievedPassage]],
    state: DebateState,
    number: int,
) -> Steps[RoundOpinions]:
    """Judge all statements and the whole claim and answer questions in one call.

    The call is skipped if there is no passage, or if all passages are only related to the claim's subject.
    """
    unique_passages = list({item.number: item for results in passages for item in results}.values())
    empty_opinion = _make_uninformed_opinion(advocate, context, number, None, unique_passages)
    subclaims = context.subclaims if len(context.subclaims) > 1 else ()
    empty_parts = tuple(
        _make_uninformed_opinion(advocate, context, number, subclaim.number, results)
        for subclaim, results in zip(subclaims, passages, strict=False)
    )
    questions = [question for question in state.open_questions if question.to == advocate.name]
    unanswered_questions = tuple(replace(question, retrieved=()) for question in questions)
    if not advocate.is_plain and all(item.grade == RELATED for item in unique_passages):
        skipped_parts = tuple(replace(part, unasked=True) for part in empty_parts)
        return RoundOpinions(replace(empty_opinion, unasked=True), skipped_parts, unanswered_questions)
    while True:
        fitting_passages = _select_fitting_passages(advocate, context, unique_passages, state, questions)
        prompt = _assessment_prompt(advocate, context, context.subclaims, fitting_passages, state, questions)
        assessment = yield from assess(prompt, context.config)
        # A server that refuses a prompt as too long states its window.
        if (
            assessment.error is None
            or _select_fitting_passages(advocate, context, unique_passages, state, questions) == fitting_passages
        ):
            break
    context.left_out[advocate.name] = max(
        context.left_out.get(advocate.name, 0), len(unique_passages) - len(fitting_passages)
    )
    unique_passages = fitting_passages
    empty_opinion = replace(empty_opinion, retrieved=tuple(item.number for item in unique_passages))
    if (error := assessment.error) is not None:
        return RoundOpinions(
            replace(empty_opinion, verdict=None, error=error),
            tuple(replace(part, verdict=None, error=error) for part in empty_parts),
            tuple(replace(question, error=error) for question in unanswered_questions),
        )
    context.report_activity(advocate.name, "checking quotations", number)
    in_house = advocate.is_plain
    parts = []
    for subclaim, part, statement in zip(subclaims, empty_parts, assessment.statements, strict=True):
        # The reasoning on a statement is its explanation.
        explained_statement = replace(statement, explanation=statement.draft)
        verification = verify(context, explained_statement, subclaim.text, unique_passages, in_house=in_house)
        parts.append(_make_opinion(context, part, statement, verification))
    quotations = [quotation for part in parts for quotation in part.quotations]
    verification = verify(context, assessment, context.claim, unique_passages, quotations=quotations, in_house=in_house)
    opinion = _make_opinion(context, empty_opinion, assessment, verification)
    n_removed = sum(part.removed_quotations for part in (opinion, *parts))
    replies = tuple(
        replace(question, retrieved=empty_opinion.retrieved, reply=context.ground(text, False, unique_passages)[0])
        for question, text in zip(questions, assessment.replies, strict=True)
    )
    return RoundOpinions(replace(opinion, removed_quotations=n_removed), tuple(parts), replies)


def _make_opinion(
    context: DebateContext, empty_opinion: AdvocateOpinion, assessment: Assessment, verification: VerifiedAssessment
) -> AdvocateOpinion:
    """Return ``empty_opinion``, filled in with a verified assessment."""
    questions = tuple(
        FollowUp(empty_opinion.round + 1, empty_opinion.advocate, question.to, question.text, queries=question.queries)
        for question in assessment.questions
    )
    has_verdict = verification.verdict != context.scale.nei
    # The draft of a withheld verdict is kept with it.
    keeps_draft = has_verdict or verification.withheld or context.config.elicitation == "schema"
    return replace(
        empty_opinion,
        **verification._asdict(),
        informed=_is_informed(context, verification.verdict, verification.levels),
        placement=assessment.placement if has_verdict else None,
        probabilities=assessment.probabilities if has_verdict else (),
        draft=assessment.draft if keeps_draft else "",
        asks=questions,
    )


def _is_informed(context: DebateContext, verdict: str | None, levels: Levels | None) -> bool:
    """Return whether a verdict counts, that is, does not express a lack of information.

    Labels such as "unsupported" express a lack of information if the evidence is limited.
    """
    lacks_evidence = verdict in context.scale.lack and levels is not None and levels.evidence == "limited"
    return verdict is not None and verdict != context.scale.nei and not lacks_evidence


# ------------------------------------------------------------------------------------------- several calls, by scores


def _judge_by_scores(
    advocate: Advocate,
    context: DebateContext,
    passages: Sequence[Sequence[RetrievedPassage]],
    state: DebateState,
    number: int,
) -> Steps[RoundOpinions]:
    """Judge each statement separately and, if there are several, judge the whole claim from their verdicts."""
    parts = yield from gather(
        [
            _judge_statement(advocate, context, subclaim, results, state, number)
            for subclaim, results in zip(context.subclaims, passages, strict=True)
        ]
    )
    if len(parts) == 1:
        return RoundOpinions(replace(parts[0], subclaim=None), ())
    opinion = yield from _aggregate(advocate, context, parts)
    return RoundOpinions(opinion, tuple(parts))


def _judge_statement(
    advocate: Advocate,
    context: DebateContext,
    subclaim: Subclaim,
    passages: Sequence[RetrievedPassage],
    state: DebateState,
    round_number: int,
) -> Steps[AdvocateOpinion]:
    """Judge one statement; without passages the opinion is "not enough information" and no model is called."""
    empty_opinion = _make_uninformed_opinion(advocate, context, round_number, subclaim.number, passages)
    if not passages and not advocate.is_plain:
        return empty_opinion
    prompt = _assessment_prompt(advocate, context, [subclaim], passages, state)
    assessment = yield from assess(prompt, context.config)
    assessment = yield from explain(prompt, context.config, assessment)
    if assessment.error is not None:
        return replace(empty_opinion, verdict=None, error=assessment.error)
    context.report_activity(advocate.name, "checking quotations", round_number)
    verification = verify(context, assessment, subclaim.text, passages, in_house=advocate.is_plain)
    opinion = _make_opinion(context, empty_opinion, assessment, verification)
    if opinion.verdict == context.scale.nei:
        return opinion
    contradiction = yield from find_contradiction(
        context, advocate.model, subclaim.text, opinion.verdict, opinion.explanation
    )
    return replace(opinion, contradicts=contradiction)


def _aggregate(advocate: Advocate, context: DebateContext, parts: Sequence[AdvocateOpinion]) -> Steps[AdvocateOpinion]:
    """Judge the whole claim from the verdicts on its statements, ignoring statements without information."""
    opinion = AdvocateOpinion(
        advocate.name,
        parts[0].round,
        None,
        context.scale.nei,
        False,
        explanation=tuple({sentence.text: sentence for part in parts for sentence in part.explanation}.values()),
        retrieved=tuple(dict.fromkeys(number for part in parts for number in part.retrieved)),
        removed_citations=sum(part.removed_citations for part in parts),
        quotations=tuple(dict.fromkeys(quotation for part in parts for quotation in part.quotations)),
        removed_quotations=sum(part.removed_quotations for part in parts),
        withheld=next((part.withheld for part in parts if part.withheld), None),
        asks=tuple(question for part in parts for question in part.asks),
        draft=" ".join(part.draft for part in parts if part.draft),
    )
    errors = [part.error for part in parts if part.error is not None]
    if errors:
        return replace(opinion, verdict=None, error=errors[0])
    judged_parts = [part for part in parts if part.levels is not None]
    if not judged_parts:
        return opinion
    statements = [
        (join_lines(subclaim.text), part.verdict) for subclaim, part in zip(context.subclaims, parts, strict=True)
    ]
    prompts = [
        context.render(
            "whole",
            parts=[{"statement": statement, "verdict": verdict} for statement, verdict in values],
            claim=claim,
        )
        for values, claim in (
            (statements, join_lines(context.claim)),
            ([(BLANK, BLANK)] * len(statements), BLANK),
        )
    ]
    options = tuple(f" {label}" for label in context.scale.labels)
    try:
        probabilities = yield from score_options(advocate.model, prompts, options, context.config)
    except ModelError as error:
        return replace(opinion, verdict=None, error=str(error))
    verdict = context.scale.labels[index_of_maximum(probabilities)]
    levels = combine_levels([part.levels for part in judged_parts if part.levels])
    contradictions = [part.contradicts for part in judged_parts if part.contradicts is not None]
    return replace(
        opinion,
        verdict=verdict,
        withheld=None,
        informed=any(part.informed for part in judged_parts) and _is_informed(context, verdict, levels),
        levels=levels,
        placement=judged_parts[0].placement,
        probabilities=probabilities,
        contradicts=any(contradictions) if contradictions else None,
    )


def find_contradiction(
    context: DebateContext, model: str, claim: str, verdict: str | None, explanation: Sequence[AnswerSentence]
) -> Steps[bool | None]:
    """Return whether an explanation argues for the side of the scale opposite to its verdict.

    The model is shown the explanation without the verdict and names the side for which it argues. The result is None if
    there is no explanation, the check is disabled, or the call failed.
    """
    if not explanation or verdict is None or not context.config.side_check:
        return None
    text = " ".join(sentence.text for sentence in explanation)
    prompts = [
        context.render("side", claim=join_lines(claim), explanation=join_lines(text)),
        context.render("side", claim=BLANK, explanation=BLANK),
    ]
    try:
        p_right, p_wrong = yield from score_options(model, prompts, (" right", " wrong"), context.config)
    except ModelError:
        return None
    return (p_right > p_wrong) != context.scale.is_correct(verdict)


# ---------------------------------------------------------------------------------------------------------- prompts


def _assessment_prompt(
    advocate: Advocate,
    context: DebateContext,
    subclaims: Sequence[Subclaim],
    passages: Sequence[RetrievedPassage],
    state: DebateState,
    questions: Sequence[FollowUp] = (),
) -> AssessmentPrompt:
    """Return the prompt in which an advocate judges subclaims; several are judged in one answer."""
    profiles = {profile.name: profile for profile in state.profiles}
    other_participants = [participant_values(*item) for item in profiles.items() if item[0] != advocate.name]
    source_description = profiles[advocate.name].about if advocate.name in profiles else ""
    statements = subclaims if len(subclaims) > 1 else ()
    common_values = {
        **_advocate_values(advocate),
        "about": join_lines(source_description),
        "others": other_participants,
        "ask": bool(other_participants) and not state.is_last,
        "max_questions": MAX_QUESTIONS,
    }
    prompt = context.render(
        "advocate",
        **common_values,
        claim=join_lines(context.claim),
        statement=join_lines(context.claim if statements else subclaims[0].text),
        statements=[{"number": subclaim.number, "text": join_lines(subclaim.text)} for subclaim in statements],
        sources=source_values(passages),
        opinions=[_opinion_values(context, opinion) for opinion in state.first_opinions],
        exchanges=follow_up_values(context, state.follow_ups),
        questions=[{"asker": item.asker, "question": join_lines(item.question)} for item in questions],
    )
    blank = context.render(
        "advocate",
        **common_values,
        claim=BLANK,
        statement=BLANK,
        statements=[],
        sources=[{"number": 1, "where": BLANK, "text": BLANK}] if passages else [],
        opinions=[],
        exchanges=[],
        questions=[],
    )
    return AssessmentPrompt(
        advocate.model,
        prompt.messages,
        blank.messages,
        context.scale,
        recipients=() if state.is_last else tuple(values["name"] for values in other_participants),
        passages=tuple(item.number for item in passages),
        statements=tuple(subclaim.number for subclaim in statements),
        n_replies=len(questions),
    )


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
    window = context.read_window(advocate.model)
    if window is None:
        return passages
    max_characters = (window - _ANSWER_TOKENS) * CHARACTERS_PER_TOKEN
    count = len(passages)
    while count > 1:
        prompt = _assessment_prompt(advocate, context, context.subclaims, passages[:count], state, questions)
        if sum(len(message.content) for message in prompt.messages) <= max_characters:
            break
        count -= 1
    return passages[:count]


def _advocate_values(advocate: Advocate) -> dict[str, str]:
    settings = advocate.settings
    return {"name": settings.name, "kind": settings.kind, "stance": join_lines(settings.stance)}


def participant_values(name: str, profile: AdvocateProfile | None) -> dict[str, str]:
    """Return the template values that describe an advocate in the prompts of other participants."""
    kind, source_description = (profile.kind, profile.about) if profile else ("collection", "")
    return {"name": name, "kind": kind, "about": join_lines(source_description)}


def _opinion_values(context: DebateContext, opinion: AdvocateOpinion) -> dict[str, object]:
    return {
        "name": opinion.advocate,
        "verdict": opinion.verdict or "failed",
        "text": context.format_explanation(opinion.explanation),
        "quotations": quotation_values(opinion.quotations),
    }


# --------------------------------------------------------------------------------- questions and replies, by scores


def write_question(
    context: DebateContext, model: str, asker: str, opinions: Sequence[AdvocateOpinion], to: str
) -> Steps[str | None]:
    """Let a model write a question to an advocate and return it; None if the text is not a usable question."""
    rendered_prompt = context.render(
        "question",
        asker=asker,
        to=to,
        claim=join_lines(context.claim),
        opinions=[_opinion_values(context, opinion) for opinion in opinions],
    )
    sampling = replace(context.config.sampling, max_tokens=_QUESTION_TOKENS, stop=("\n",))
    request = GenerationRequest(rendered_prompt.messages, sampling, assistant_prefix=rendered_prompt.assistant_prefix)
    completion = yield from request_text(model, request)
    return None if completion.error is not None else extract_question(completion.text)


def write_reply(
    advocate: Advocate, context: DebateContext, follow_up: FollowUp, passages: Sequence[RetrievedPassage]
) -> Steps[FollowUp]:
    """Return a question with the advocate's reply, requested in a separate call (``scored``)."""
    rendered_prompt = context.render(
        "reply",
        **_advocate_values(advocate),
        sources=source_values(passages),
        claim=join_lines(context.claim),
        asker=follow_up.asker,
        question=join_lines(follow_up.question),
    )
    request = GenerationRequest(
        rendered_prompt.messages, context.config.sampling, assistant_prefix=rendered_prompt.assistant_prefix
    )
    context.report_activity(advocate.name, "replying", follow_up.round)
    completion = yield from request_text(advocate.model, request)
    answered_question = replace(follow_up, retrieved=tuple(item.number for item in passages), error=completion.error)
    if completion.error is None:
        sentences, _ = context.ground(completion.text, completion.finish_reason == "length", passages)
        answered_question = replace(answered_question, reply=sentences)
    context.on_event(answered_question)
    return answered_question
