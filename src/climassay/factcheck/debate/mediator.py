"""The mediator: combines the advocates' opinions, decides whether the debate goes on, and gives the verdict."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from climassay.errors import ModelError
from climassay.factcheck.certainty import UNCERTAIN, Levels
from climassay.factcheck.configuration import MediatorSettings
from climassay.factcheck.debate.advocate import find_contradiction, participant_values, write_question
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
    follow_up_values,
    format_location,
    join_lines,
    quotation_values,
    verify,
)
from climassay.factcheck.debate.steps import Steps
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    AdvocateProfile,
    CloseReason,
    FollowUp,
    MediatorDecision,
    OpenReason,
    PassageCitation,
    Round,
    Verdict,
    cited_numbers,
    supporting_numbers,
    withheld_caveat,
)
from climassay.models.contract import BLANK
from climassay.prompts import RenderedPrompt

NAME = "mediator"
_MAX_REASONING_WORDS = 120
"""Maximum number of words of an advocate's reasoning in the mediator's prompt."""
_CLOSE_STEPS = 1
"""Maximum distance between verdicts that count as close, in steps of the scale."""


@dataclass(frozen=True, slots=True)
class Mediator:
    """Mediator of a debate: its settings and its model."""

    settings: MediatorSettings
    model: str
    """Name of the model."""
    style: str
    """``expert`` or ``neutral``."""
    weights: Mapping[str, float]
    """Authority of each advocate."""
    profiles: Mapping[str, AdvocateProfile] = field(default_factory=dict)
    """Profiles of the advocates by name."""


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The mediator's assessment of a round."""

    prompt: AssessmentPrompt | None
    """Prompt of the assessment; None if no advocate has information."""
    assessment: Assessment
    informed: tuple[AdvocateOpinion, ...]
    """Opinions that do not express a lack of information."""
    spread: int | None
    """Number of scale steps between the most distant verdicts; None if there are fewer than two."""
    follow_ups: tuple[FollowUp, ...] = ()
    """Questions and replies in the prompt."""
    sources: tuple[PassageCitation, ...] = ()
    """Passages that the verdict may cite and quote."""


def informed_opinions(opinions: Sequence[AdvocateOpinion]) -> tuple[AdvocateOpinion, ...]:
    """Return the opinions of all advocates with information and successful model calls."""
    return tuple(opinion for opinion in opinions if opinion.informed and opinion.verdict is not None)


def compute_spread(opinions: Sequence[AdvocateOpinion], scale: Scale) -> int | None:
    """Return the number of scale steps between the most distant verdicts; None if there are fewer than two."""
    positions = [scale.position(opinion.verdict) for opinion in opinions if opinion.verdict is not None]
    return max(positions) - min(positions) if len(positions) > 1 else None


def are_close(spread: int | None, scale: Scale) -> bool:
    """Return whether verdicts with this spread are close: at most one step apart, and not the two ends of the scale."""
    return spread is None or spread <= max(0, min(_CLOSE_STEPS, len(scale.labels) - 2))


# ---------------------------------------------------------------------------------------------------- consolidation

QuestionMode = Literal["must", "may", "no"]
"""Whether the mediator asks questions: ``must`` if the verdicts of round 1 disagree, ``may`` if it decides itself, and
``no`` if no further round is possible."""


def consolidate(
    mediator: Mediator,
    context: DebateContext,
    opinions: Sequence[AdvocateOpinion],
    parts: Sequence[AdvocateOpinion],
    follow_ups: Sequence[FollowUp],
    question_mode: QuestionMode = "no",
) -> Steps[Consolidation]:
    """Request the mediator's assessment of the informed opinions; no model is called if there are none.

    With ``schema``, the answer also contains the explanation and the questions.
    """
    opinions_with_verdict = informed_opinions(opinions)
    spread = compute_spread(opinions_with_verdict, context.scale)
    if not opinions_with_verdict:
        return Consolidation(None, Assessment(context.scale.nei), (), spread, tuple(follow_ups))
    # With scores, the prompt contains no quotations of uninformed advocates, so their passages cannot be used.
    citing_opinions = opinions if context.config.elicitation == "schema" else opinions_with_verdict
    numbers = {number for item in citing_opinions for number in cited_numbers(item.explanation, item.quotations)}
    numbers |= {number for item in follow_ups for number in cited_numbers(item.reply)}
    sources = tuple(source for source in context.sources.citations() if source.number in numbers)
    prompt = _assessment_prompt(mediator, context, opinions, parts, follow_ups, sources, question_mode)
    assessment = yield from assess(prompt, context.config)
    probabilities = pool(opinions_with_verdict, mediator.weights) if mediator.settings.decide == "pool" else ()
    if probabilities and assessment.error is None:
        verdict = context.scale.labels[index_of_maximum(probabilities)]
        # The explanation continues the answer, so the line with the model's verdict must state the pooled verdict.
        lines = assessment.answer.split("\n")
        model_line, pooled_line = f"Verdict: {assessment.verdict}", f"Verdict: {verdict}"
        answer = "\n".join(pooled_line if line == model_line else line for line in lines)
        assessment = replace(assessment, verdict=verdict, probabilities=probabilities, answer=answer)
    return Consolidation(prompt, assessment, opinions_with_verdict, spread, tuple(follow_ups), sources)


def _assessment_prompt(
    mediator: Mediator,
    context: DebateContext,
    opinions: Sequence[AdvocateOpinion],
    parts: Sequence[AdvocateOpinion],
    follow_ups: Sequence[FollowUp],
    sources: Sequence[PassageCitation],
    question_mode: QuestionMode,
) -> AssessmentPrompt:
    statements = {subclaim.number: join_lines(subclaim.text) for subclaim in context.subclaims}
    numbered_statements = (
        [{"number": number, "text": text} for number, text in statements.items()] if len(statements) > 1 else []
    )
    common_values = {
        "style": mediator.style,
        "asking": question_mode,
        "max_questions": MAX_QUESTIONS,
        "max_reasoning_words": _MAX_REASONING_WORDS,
        "statements": numbered_statements,
    }
    opinions_with_verdict = informed_opinions(opinions)
    values_by_opinion = [
        (opinion, _opinion_values(mediator, context, opinion, parts, question_mode)) for opinion in opinions
    ]
    prompt = context.render(
        "mediator",
        **common_values,
        claim=join_lines(context.claim),
        opinions=[values for opinion, values in values_by_opinion if opinion in opinions_with_verdict],
        silent=[values for opinion, values in values_by_opinion if opinion not in opinions_with_verdict],
        exchanges=follow_up_values(context, follow_ups),
        passages=[{"number": source.number, "where": format_location(source.passage)} for source in sources],
    )
    blank_opinion = {
        **dict.fromkeys(("name", "authority", "verdict", "text"), BLANK),
        **dict.fromkeys(("about", "levels", "reasoning"), ""),
        "kind": "collection",
        "asks": [],
        "quotations": [],
        "parts": [],
    }
    blank = context.render(
        "mediator", **common_values, claim=BLANK, opinions=[blank_opinion], silent=[], exchanges=[], passages=[]
    )
    names = tuple(opinion.advocate for opinion in opinions if opinion.verdict is not None)
    return AssessmentPrompt(
        mediator.model,
        prompt.messages,
        blank.messages,
        context.scale,
        asks_placement=False,
        recipients=() if question_mode == "no" else names,
        passages=tuple(source.number for source in sources),
        statements=tuple(statements) if numbered_statements else (),
        judges_statements=False,
    )


def _opinion_values(
    mediator: Mediator,
    context: DebateContext,
    opinion: AdvocateOpinion,
    parts: Sequence[AdvocateOpinion],
    question_mode: QuestionMode,
) -> dict[str, object]:
    """Return an advocate's opinion as template values."""
    statements = {subclaim.number: join_lines(subclaim.text) for subclaim in context.subclaims}
    questions = opinion.asks if question_mode != "no" else ()
    return {
        **participant_values(opinion.advocate, mediator.profiles.get(opinion.advocate)),
        "authority": describe_authority(mediator.weights[opinion.advocate]),
        "verdict": opinion.verdict,
        "levels": _format_levels(opinion.levels),
        "why": _silence_reason(opinion),
        "text": context.format_explanation(opinion.explanation),
        "reasoning": _truncate_draft(opinion),
        "quotations": quotation_values(opinion.quotations),
        "asks": [{"to": question.to, "question": join_lines(question.question)} for question in questions],
        "parts": [
            {
                "number": part.subclaim,
                "statement": statements[part.subclaim or 1],
                "verdict": part.verdict or "failed",
                "reasoning": _truncate_draft(part),
            }
            for part in parts
            if part.advocate == opinion.advocate and not part.unasked
        ],
    }


def _silence_reason(opinion: AdvocateOpinion) -> str:
    """Return the reason why an opinion does not count."""
    if opinion.verdict is None:
        return "a technical failure"
    if opinion.withheld:
        return f"nothing that it quoted or cited bears its verdict ({opinion.withheld})"
    if not opinion.retrieved:
        return "nothing relevant was found in its source"
    if opinion.unasked:
        return "nothing in its source bears on the claim"
    return "what was found in its source does not settle the claim"


def _truncate_draft(opinion: AdvocateOpinion) -> str:
    """Return an advocate's draft, truncated to the maximum number of words."""
    words = opinion.draft.split()
    return " ".join(words[:_MAX_REASONING_WORDS]) + (" ..." if len(words) > _MAX_REASONING_WORDS else "")


def describe_authority(weight: float) -> str:
    """Return ``high``, ``medium`` or ``low`` for a weight; the mediator's prompt contains this word."""
    return "high" if weight >= 1 else "medium" if weight >= 0.5 else "low"


def _format_levels(levels: Levels | None) -> str:
    if levels is None:
        return ""
    likelihood = f", likelihood {levels.likelihood}" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def pool(opinions: Sequence[AdvocateOpinion], weights: Mapping[str, float]) -> tuple[float, ...]:
    """Return the logarithmic opinion pool of the advocates' probabilities, with weights normalised to a sum of 1.

    ``p(label)`` is proportional to ``product over advocates of p_a(label) ** (weight_a / sum of weights)``. Unlike in a
    vote, an advocate that is nearly sure moves the result more than several that are not. The result is empty if no
    opinion has probabilities.

    References:
        Genest and Zidek (1986), Combining probability distributions, Statistical Science 1, section 3.
    """
    usable_opinions = [opinion for opinion in opinions if opinion.probabilities]
    if not usable_opinions:
        return ()
    pool_weights = np.array([weights[opinion.advocate] for opinion in usable_opinions])
    log_probabilities = np.log(np.clip(np.array([opinion.probabilities for opinion in usable_opinions]), 1e-12, None))
    log_pool = (pool_weights / pool_weights.sum()) @ log_probabilities
    unnormalised_pool = np.exp(log_pool - log_pool.max())
    return tuple(float(value) for value in unnormalised_pool / unnormalised_pool.sum())


# --------------------------------------------------------------------------------------------------- the next round


def choose_question_mode(
    number: int, max_rounds: int, opinions: Sequence[AdvocateOpinion], scale: Scale
) -> QuestionMode:
    """Return whether the mediator must, may or cannot ask questions after round ``number``; see :func:`decide`."""
    opinions_with_verdict = informed_opinions(opinions)
    is_unchanged = number > 1 and not any(opinion.changed for opinion in opinions)
    n_verdicts = sum(opinion.verdict is not None for opinion in opinions)
    if number >= max_rounds or not opinions_with_verdict or n_verdicts < 2 or is_unchanged:
        return "no"
    return "may" if number > 1 or are_close(compute_spread(opinions_with_verdict, scale), scale) else "must"


def decide(
    context: DebateContext, number: int, max_rounds: int, consolidation: Consolidation, has_changed: bool
) -> Steps[MediatorDecision]:
    """Decide whether the debate closes after a round.

    Args:
        context: State of the debate.
        number: Number of the round.
        max_rounds: Maximum number of rounds.
        consolidation: The mediator's assessment of the round.
        has_changed: Whether any advocate's verdict differs from the previous round; ignored in round 1.
    """
    assessment = consolidation.assessment
    has_contrast = not are_close(consolidation.spread, context.scale)
    reason: CloseReason | OpenReason
    if not consolidation.informed:
        reason = "not enough information"
    elif number > 1 and not has_changed:
        reason = "one informed advocate" if len(consolidation.informed) == 1 else "no change"
    elif len(consolidation.informed) == 1:
        # Another advocate may still find something if a mediator that can reason has asked it.
        reason = "uncertain" if assessment.continue_debate else "one informed advocate"
    elif has_contrast and number >= max_rounds:
        reason = "round limit"
    elif has_contrast and number == 1:
        # Contrasting verdicts are never accepted without a question; after one, the mediator may be satisfied.
        reason = "contrast"
    elif has_contrast:
        reason = "contrast" if (yield from _wants_round(context, consolidation)) else "mediator"
    elif context.config.elicitation == "schema":
        # A mediator that can reason decides whether an answer would help: limited evidence alone is no reason.
        reason = "uncertain" if assessment.continue_debate else "close verdicts"
    elif assessment.levels is not None and assessment.levels.confidence in UNCERTAIN:
        reason = "round limit" if number >= max_rounds else "uncertain"
    else:
        reason = "close verdicts"
    decision = MediatorDecision(
        number,
        reason not in ("contrast", "uncertain"),
        reason,
        None if assessment.error else assessment.verdict,
        assessment.levels,
        assessment.probabilities,
        consolidation.spread,
        tuple(opinion.advocate for opinion in consolidation.informed),
        assessment.draft,
        assessment.error,
    )
    context.on_event(decision)
    return decision


def _wants_round(context: DebateContext, consolidation: Consolidation) -> Steps[bool]:
    """Return whether the mediator asks for another round instead of closing a debate with contrasting verdicts."""
    prompt, assessment = consolidation.prompt, consolidation.assessment
    if context.config.elicitation != "scored" or prompt is None or assessment.error is not None:
        return bool(assessment.continue_debate)
    prompts = [
        RenderedPrompt(prompt.messages, assessment.answer + "\nNext:"),
        RenderedPrompt(prompt.blank_messages, f"Verdict: {BLANK}\nNext:"),
    ]
    try:
        options = (" close the debate", " ask follow-up questions")
        p_close, p_ask = yield from score_options(prompt.model, prompts, options, context.config)
    except ModelError:
        return True
    return p_ask > p_close


def ask_follow_ups(
    mediator: Mediator, context: DebateContext, decision: MediatorDecision, consolidation: Consolidation
) -> Steps[tuple[FollowUp, ...]]:
    """Return the mediator's questions for the next round.

    These are the questions of its assessment, if it has any. Otherwise, one question goes to the advocate with the
    greatest authority or, if verdicts contrast, one to an advocate of each of the most distant verdicts. A template is
    used if the model writes no usable question.
    """
    next_round = decision.round + 1
    if consolidation.assessment.questions:
        return tuple(
            FollowUp(next_round, NAME, question.to, question.text, queries=question.queries)
            for question in consolidation.assessment.questions
        )
    opinions, scale = consolidation.informed, context.scale
    positions = [scale.position(opinion.verdict or "") for opinion in opinions]
    target_positions = (min(positions), max(positions)) if decision.reason == "contrast" else (None,)
    follow_ups = []
    for target_position in target_positions:
        candidates = [
            opinion
            for opinion, position in zip(opinions, positions, strict=True)
            if target_position in (None, position)
        ]
        recipient = max(candidates, key=lambda opinion: mediator.weights[opinion.advocate])
        text = None
        if context.config.elicitation == "scored":
            text = yield from write_question(context, mediator.model, NAME, opinions, recipient.advocate)
        if text:
            follow_ups.append(FollowUp(next_round, NAME, recipient.advocate, text))
            continue
        text = "Which of your passages bear most directly on the claim, and how sure are they of it?"
        other_views = [
            f"{opinion.advocate} says {opinion.verdict}" for opinion in opinions if opinion.verdict != recipient.verdict
        ]
        if target_position is not None and other_views:
            text = (
                f"You say {recipient.verdict}, but {', '.join(other_views)}: which of your passages bear on this "
                "difference?"
            )
        follow_ups.append(FollowUp(next_round, NAME, recipient.advocate, text, "template"))
    return tuple(follow_ups)


# ------------------------------------------------------------------------------------------------------- the verdict


def final_verdict(
    mediator: Mediator, context: DebateContext, claim: str, last: Round, consolidation: Consolidation
) -> Steps[Verdict]:
    """Return the explained verdict of a debate; "not enough information" if no passage supports one."""
    decision = last.decision
    if decision.error is not None:
        return Verdict("failed", None, claim, error=decision.error)
    failed_opinions = [opinion for opinion in last.opinions if opinion.verdict is None]
    failure_notes = tuple(
        f"{opinion.advocate} gave no opinion, because a model call failed." for opinion in failed_opinions
    )
    if not consolidation.informed or consolidation.prompt is None:
        if failed_opinions and len(failed_opinions) == len(last.opinions):
            return Verdict("failed", None, claim, error=failed_opinions[0].error)
        return Verdict("not enough information", context.scale.nei, claim, caveats=failure_notes)
    assessment = yield from explain(consolidation.prompt, context.config, consolidation.assessment)
    if assessment.error is not None:
        return Verdict("failed", None, claim, error=assessment.error)
    verification = verify(context, assessment, claim, consolidation.sources)
    if verification.verdict != context.scale.nei and not supporting_numbers(
        verification.explanation, verification.quotations
    ):
        verification = verification._replace(verdict=context.scale.nei, withheld=verification.verdict, levels=None)
    fields = verification._asdict()
    verdict = Verdict("not enough information", fields.pop("verdict"), claim, **fields)
    if verification.verdict == context.scale.nei:
        reason = "What the advocates brought does not settle the claim."
        caveat = withheld_caveat(verification.withheld) if verification.withheld else reason
        return replace(verdict, caveats=(caveat, *failure_notes))
    contradicts = yield from find_contradiction(
        context, mediator.model, claim, verification.verdict, verification.explanation
    )
    caveats = []
    if len(consolidation.informed) == 1:
        name = consolidation.informed[0].advocate
        basis = "evidence, agreement and confidence are rated" if verification.levels else "the verdict is given"
        caveats = [f"Only {name} has information on this claim: {basis} by this source alone."]
    elif not are_close(decision.spread, context.scale):
        position_list = ", ".join(f"{opinion.advocate} says {opinion.verdict}" for opinion in consolidation.informed)
        caveats = [f"The advocates still differ: {position_list}."]
    return replace(
        verdict,
        outcome="verdict",
        probabilities=assessment.probabilities,
        caveats=(*caveats, *failure_notes),
        contradicts=contradicts,
    )
