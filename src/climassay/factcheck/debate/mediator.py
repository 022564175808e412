"""The mediator: combines the advocates' opinions, decides whether the debate goes on, and gives the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from climassay.factcheck.certainty import Levels
from climassay.factcheck.debate.advocate import describe_participant
from climassay.factcheck.debate.assessment import MAX_QUESTIONS, Assessment, AssessmentPrompt, assess
from climassay.factcheck.debate.context import (
    DebateContext,
    follow_up_values,
    format_explanation,
    format_location,
    join_lines,
    quotation_values,
    statement_values,
    verify,
)
from climassay.factcheck.debate.requests import RequestGenerator
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    CloseReason,
    FollowUp,
    MediatorDecision,
    OpenReason,
    PassageCitation,
    Round,
    Verdict,
    cited_numbers,
    withheld_caveat,
)

NAME = "mediator"
_MAX_REASONING_WORDS = 120
"""Maximum number of words of an advocate's reasoning in the mediator's prompt."""
_MAX_CLOSE_SPREAD = 1
"""Maximum distance between verdicts that count as close, in steps of the scale."""


@dataclass(frozen=True, slots=True)
class Consolidation:
    """The mediator's assessment of a round."""

    assessment: Assessment
    """Assessment of the claim. If no advocate has information, it is "not enough information", and the model is not
    called."""
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
    return spread is None or spread <= max(0, min(_MAX_CLOSE_SPREAD, len(scale.labels) - 2))


# ---------------------------------------------------------------------------------------------------- consolidation

QuestionMode = Literal["must", "may", "no"]
"""Whether the mediator asks questions: ``must`` if the verdicts of round 1 disagree, ``may`` if it decides itself, and
``no`` if no further round is possible."""


def choose_question_mode(context: DebateContext, number: int, opinions: Sequence[AdvocateOpinion]) -> QuestionMode:
    """Return whether the mediator must, may or cannot ask questions after round ``number``; see :func:`decide`."""
    scale, opinions_with_verdict = context.setup.scale, informed_opinions(opinions)
    is_unchanged = number > 1 and not any(opinion.changed for opinion in opinions)
    n_verdicts = sum(opinion.verdict is not None for opinion in opinions)
    if number >= context.setup.settings.rounds or not opinions_with_verdict or n_verdicts < 2 or is_unchanged:
        return "no"
    return "may" if number > 1 or are_close(compute_spread(opinions_with_verdict, scale), scale) else "must"


def consolidate(
    context: DebateContext,
    opinions: Sequence[AdvocateOpinion],
    parts: Sequence[AdvocateOpinion],
    follow_ups: Sequence[FollowUp],
    question_mode: QuestionMode = "no",
) -> RequestGenerator[Consolidation]:
    """Request the mediator's assessment of a round; no model is called if no advocate has information.

    Args:
        context: State of the debate.
        opinions: Opinions of all advocates on the claim.
        parts: Their opinions on its statements.
        follow_ups: Questions and replies of all rounds.
        question_mode: Whether the mediator asks questions.
    """
    scale, opinions_with_verdict = context.setup.scale, informed_opinions(opinions)
    spread = compute_spread(opinions_with_verdict, scale)
    if not opinions_with_verdict:
        return Consolidation(Assessment(scale.nei), (), spread, tuple(follow_ups))
    numbers = {number for item in opinions for number in cited_numbers(item.explanation, item.quotations)}
    numbers |= {number for item in follow_ups for number in cited_numbers(item.reply)}
    sources = tuple(source for source in context.sources.citations() if source.number in numbers)
    prompt = _make_prompt(context, opinions, parts, follow_ups, sources, question_mode)
    assessment = yield from assess(context.setup.mediator.model, prompt, context.setup)
    return Consolidation(assessment, opinions_with_verdict, spread, tuple(follow_ups), sources)


def _make_prompt(
    context: DebateContext,
    opinions: Sequence[AdvocateOpinion],
    parts: Sequence[AdvocateOpinion],
    follow_ups: Sequence[FollowUp],
    sources: Sequence[PassageCitation],
    question_mode: QuestionMode,
) -> AssessmentPrompt:
    statements, opinions_with_verdict = statement_values(context.subclaims), informed_opinions(opinions)
    values_by_opinion = [(opinion, _opinion_values(context, opinion, parts, question_mode)) for opinion in opinions]
    prompt = context.render(
        "mediator",
        style=context.setup.mediator.style,
        asking=question_mode,
        max_questions=MAX_QUESTIONS,
        max_reasoning_words=_MAX_REASONING_WORDS,
        statements=statements,
        claim=join_lines(context.claim),
        opinions=[values for opinion, values in values_by_opinion if opinion in opinions_with_verdict],
        silent=[values for opinion, values in values_by_opinion if opinion not in opinions_with_verdict],
        exchanges=follow_up_values(follow_ups),
        passages=[{"number": source.number, "where": format_location(source.passage)} for source in sources],
    )
    names = tuple(opinion.advocate for opinion in opinions if opinion.verdict is not None)
    return AssessmentPrompt(
        prompt.messages,
        passages=tuple(source.number for source in sources),
        statements=tuple(subclaim.number for subclaim in context.subclaims) if statements else (),
        recipients=() if question_mode == "no" else names,
        is_advocate=False,
    )


def _opinion_values(
    context: DebateContext, opinion: AdvocateOpinion, parts: Sequence[AdvocateOpinion], question_mode: QuestionMode
) -> dict[str, object]:
    """Return an advocate's opinion as template values."""
    profile = context.setup.profiles[opinion.advocate]
    questions = opinion.asks if question_mode != "no" else ()
    return {
        **describe_participant(profile),
        "authority": describe_authority(profile.weight),
        "verdict": opinion.verdict,
        "levels": _format_levels(opinion.levels),
        "why": _silence_reason(opinion),
        "text": format_explanation(opinion.explanation),
        "reasoning": _truncate_draft(opinion),
        "quotations": quotation_values(opinion.quotations),
        "asks": [{"to": question.to, "question": join_lines(question.question)} for question in questions],
        "parts": [
            {"number": part.subclaim, "verdict": part.verdict or "failed", "reasoning": _truncate_draft(part)}
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


# --------------------------------------------------------------------------------------------------- the next round


def decide(
    context: DebateContext, number: int, consolidation: Consolidation, opinions: Sequence[AdvocateOpinion]
) -> MediatorDecision:
    """Decide whether the debate closes after round ``number``, given the mediator's assessment and all opinions.

    Limited evidence alone is no reason for another round: the mediator opens one by asking a question.
    """
    assessment, informed = consolidation.assessment, consolidation.informed
    has_contrast = not are_close(consolidation.spread, context.setup.scale)
    asks = bool(assessment.questions)
    reason: CloseReason | OpenReason
    if not informed:
        reason = "not enough information"
    elif number > 1 and not any(opinion.changed for opinion in opinions):
        reason = "one informed advocate" if len(informed) == 1 else "no change"
    elif len(informed) == 1:
        # Another advocate may still find something if the mediator has asked it.
        reason = "uncertain" if asks else "one informed advocate"
    elif not has_contrast:
        reason = "uncertain" if asks else "close verdicts"
    elif number >= context.setup.settings.rounds:
        reason = "round limit"
    else:
        # Contrasting verdicts are never accepted in round 1; later, the mediator may be satisfied.
        reason = "contrast" if number == 1 or asks else "mediator"
    decision = MediatorDecision(
        number,
        reason not in ("contrast", "uncertain"),
        reason,
        assessment.verdict,
        assessment.levels,
        consolidation.spread,
        tuple(opinion.advocate for opinion in informed),
        assessment.reasoning,
        assessment.error,
    )
    context.on_event(decision)
    return decision


def ask_follow_ups(
    context: DebateContext, decision: MediatorDecision, consolidation: Consolidation
) -> tuple[FollowUp, ...]:
    """Return the mediator's questions for the next round.

    These are the questions of its assessment. If it has none although verdicts contrast, a template is addressed to an
    advocate of each of the most distant verdicts, the one with the greatest authority.
    """
    next_round, scale = decision.round + 1, context.setup.scale
    if consolidation.assessment.questions:
        return tuple(
            FollowUp(next_round, NAME, question.to, question.text, queries=question.queries)
            for question in consolidation.assessment.questions
        )
    opinions = sorted(consolidation.informed, key=lambda opinion: scale.position(opinion.verdict or ""))
    follow_ups = []
    for extreme in (opinions[0].verdict, opinions[-1].verdict):
        candidates = [opinion for opinion in consolidation.informed if opinion.verdict == extreme]
        recipient = max(candidates, key=lambda opinion: context.setup.profiles[opinion.advocate].weight)
        views = ", ".join(
            f"{opinion.advocate} says {opinion.verdict}"
            for opinion in consolidation.informed
            if opinion.verdict != extreme
        )
        text = f"You say {extreme}, but {views}: which of your passages bear on this difference?"
        follow_ups.append(FollowUp(next_round, NAME, recipient.advocate, text, "template"))
    return tuple(follow_ups)


# ------------------------------------------------------------------------------------------------------- the verdict


def final_verdict(context: DebateContext, claim: str, last: Round, consolidation: Consolidation) -> Verdict:
    """Return the explained verdict of a debate; "not enough information" if no passage supports one."""
    scale, decision = context.setup.scale, last.decision
    if decision.error is not None:
        return Verdict("failed", None, claim, error=decision.error)
    failed_opinions = [opinion for opinion in last.opinions if opinion.verdict is None]
    failure_notes = tuple(
        f"{opinion.advocate} gave no opinion, because a model call failed." for opinion in failed_opinions
    )
    if not consolidation.informed:
        if failed_opinions and len(failed_opinions) == len(last.opinions):
            return Verdict("failed", None, claim, error=failed_opinions[0].error)
        withheld_notes = tuple(
            f"{item.advocate} would say \u201c{item.withheld}\u201d, but nothing that it quotes or cites supports it."
            for item in last.opinions
            if item.withheld
        )
        return Verdict("not enough information", scale.nei, claim, caveats=(*withheld_notes, *failure_notes))
    verification = verify(context, consolidation.assessment, claim, consolidation.sources)
    fields = verification._asdict()
    verdict = Verdict("not enough information", fields.pop("verdict"), claim, **fields)
    if verification.verdict == scale.nei:
        reason = "What the advocates brought does not settle the claim."
        caveat = withheld_caveat(verification.withheld) if verification.withheld else reason
        return replace(verdict, caveats=(caveat, *failure_notes))
    caveats = []
    if len(consolidation.informed) == 1:
        name = consolidation.informed[0].advocate
        basis = "evidence, agreement and confidence are rated" if verification.levels else "the verdict is given"
        caveats = [f"Only {name} has information on this claim: {basis} by this source alone."]
    elif not are_close(decision.spread, scale):
        position_list = ", ".join(f"{opinion.advocate} says {opinion.verdict}" for opinion in consolidation.informed)
        caveats = [f"The advocates still differ: {position_list}."]
    return replace(verdict, outcome="verdict", caveats=(*caveats, *failure_notes))
