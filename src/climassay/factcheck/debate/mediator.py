"""The mediator: brings the advocates' opinions together, keeps the debate going while it should, and closes it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from climassay.errors import ModelError
from climassay.factcheck.configuration import MediatorSettings
from climassay.factcheck.debate.advocate import find_contradiction, participant, write_question
from climassay.factcheck.debate.assessment import (
    MOST_QUESTIONS,
    Assessment,
    AssessmentPrompt,
    assess,
    explain,
    most_probable,
    weigh,
)
from climassay.factcheck.debate.context import (
    DebateContext,
    as_one_line,
    look_up,
    provenance,
    shown_exchanges,
    shown_quotations,
)
from climassay.factcheck.debate.scheduler import Steps
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    UNCERTAIN,
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
    withheld_caveat,
)
from climassay.models.contract import BLANK
from climassay.prompts import RenderedPrompt

NAME = "mediator"
_LONGEST_REASONING = 120
"""Words of an advocate's reasoning on a claim or a statement that the mediator reads."""
CLOSE = 1
"""Steps of the scale's order within which verdicts are close; see :func:`are_close`."""


@dataclass(frozen=True, slots=True)
class Mediator:
    """A mediator who is ready to debate."""

    settings: MediatorSettings
    model: str
    style: str
    """``expert`` or ``neutral``."""
    weights: Mapping[str, float]
    """Authority of each advocate."""
    profiles: Mapping[str, AdvocateProfile] = field(default_factory=dict)
    """Who the advocates are, by name."""


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What the mediator makes of a round, before it is known whether the debate goes on."""

    interview: AssessmentPrompt | None
    """None where no advocate has information."""
    assessment: Assessment
    informed: tuple[AdvocateOpinion, ...]
    spread: int | None
    follow_ups: tuple[FollowUp, ...] = ()
    """Those it has read."""
    brought: tuple[PassageCitation, ...] = ()
    """The passages that it may rest on."""


def informed_opinions(opinions: Sequence[AdvocateOpinion]) -> tuple[AdvocateOpinion, ...]:
    """Those that count: not for lack of information, and not failed."""
    return tuple(opinion for opinion in opinions if opinion.informed and opinion.verdict is not None)


def spread_of(opinions: Sequence[AdvocateOpinion], scale: Scale) -> int | None:
    """Steps between the most distant verdicts; None with fewer than two."""
    places = [scale.position(opinion.verdict) for opinion in opinions if opinion.verdict is not None]
    return max(places) - min(places) if len(places) > 1 else None


def are_close(spread: int | None, scale: Scale) -> bool:
    """Whether verdicts so far apart are close; the two ends of a scale never are, not even those of a binary one."""
    return spread is None or spread <= max(0, min(CLOSE, len(scale.labels) - 2))


Asking = Literal["must", "may", "no"]
"""Whether the mediator is to put questions: it must where verdicts contrast for the first time, and need not where no
round can follow."""


def consolidate(
    mediator: Mediator,
    context: DebateContext,
    opinions: Sequence[AdvocateOpinion],
    parts: Sequence[AdvocateOpinion],
    follow_ups: Sequence[FollowUp],
    asking: Asking = "no",
) -> Steps[Consolidation]:
    """The mediator's own levels, draft and verdict, from the informed opinions. Without any, no model is asked.

    By ``schema`` the explanation and the questions come in the same call.
    """
    informed = informed_opinions(opinions)
    spread = spread_of(informed, context.scale)
    if not informed:
        return Consolidation(None, Assessment(context.scale.nei), (), spread, tuple(follow_ups))
    # A model that is not given the quotations of those without a view cannot use their passages.
    heard = opinions if context.config.elicitation == "schema" else informed
    numbers = {number for one in heard for number in cited_numbers(one.explanation, one.quotations)}
    numbers |= {number for one in follow_ups for number in cited_numbers(one.reply)}
    brought = [source for source in context.sources.citations() if source.number in numbers]
    statements = {subclaim.number: as_one_line(subclaim.text) for subclaim in context.subclaims}
    several, asks = len(context.subclaims) > 1, asking != "no"
    views = [
        {
            **participant(opinion.advocate, mediator.profiles.get(opinion.advocate)),
            "authority": authority(mediator.weights[opinion.advocate]),
            "verdict": opinion.verdict,
            "levels": _levels(opinion),
            "why": _why_silent(opinion),
            "text": context.told(opinion.explanation),
            "reasoning": _reasoning(opinion),
            "quotations": shown_quotations(opinion.quotations),
            "asks": [{"to": one.to, "question": as_one_line(one.question)} for one in opinion.asks] if asks else [],
            "parts": [
                {
                    "number": part.subclaim,
                    "statement": statements[part.subclaim or 1],
                    "verdict": part.verdict or "failed",
                    "reasoning": _reasoning(part),
                }
                for part in parts
                if part.advocate == opinion.advocate and not part.unasked
            ],
        }
        for opinion in opinions
    ]
    shown = [view for view, opinion in zip(views, opinions, strict=True) if opinion in informed]
    silent = [view for view, opinion in zip(views, opinions, strict=True) if opinion not in informed]
    common = {
        "style": mediator.style,
        "asking": asking,
        "most_questions": MOST_QUESTIONS,
        "longest_reasoning": _LONGEST_REASONING,
        "statements": [{"number": number, "text": text} for number, text in statements.items()] if several else [],
    }
    prompt = context.messages(
        "mediator",
        **common,
        claim=as_one_line(context.claim),
        opinions=shown,
        silent=silent,
        exchanges=shown_exchanges(context, follow_ups),
        passages=[{"number": source.number, "where": provenance(source.passage)} for source in brought],
    )
    hidden = {
        "kind": "collection",
        "about": "",
        "verdict": BLANK,
        "levels": "",
        "text": BLANK,
        "reasoning": "",
        "asks": [],
    }
    blanks = [{"name": BLANK, "authority": BLANK, **hidden, "quotations": [], "parts": []}]
    blank = context.messages("mediator", **common, claim=BLANK, opinions=blanks, silent=[], exchanges=[], passages=[])
    names = tuple(opinion.advocate for opinion in opinions if opinion.verdict is not None)
    interview = AssessmentPrompt(
        mediator.model,
        prompt.messages,
        blank.messages,
        context.scale,
        gate=False,
        others=() if asking == "no" else names,
        passages=tuple(source.number for source in brought),
        statements=tuple(statements) if several else (),
        apart=False,
    )
    assessment = yield from assess(interview, context.config)
    probabilities = pool(informed, mediator.weights) if mediator.settings.decide == "pool" else ()
    if probabilities and assessment.error is None:
        verdict = context.scale.labels[most_probable(probabilities)]
        # The explanation goes on from the answer: its line with the verdict, wherever it is, becomes the pooled one.
        lines = assessment.answer.split("\n")
        answer = "\n".join(
            f"Verdict: {verdict}" if line == f"Verdict: {assessment.verdict}" else line for line in lines
        )
        assessment = replace(assessment, verdict=verdict, probabilities=probabilities, answer=answer)
    return Consolidation(interview, assessment, informed, spread, tuple(follow_ups), tuple(brought))


def whether_to_ask(number: int, limit: int, opinions: Sequence[AdvocateOpinion], scale: Scale) -> Asking:
    """Whether the mediator is to put questions after a round, of at most ``limit``; :func:`decide` goes by it."""
    informed = informed_opinions(opinions)
    changed = any(opinion.changed for opinion in opinions)
    if (
        number >= limit
        or not informed
        or sum(one.verdict is not None for one in opinions) < 2
        or (number > 1 and not changed)
    ):
        return "no"
    return "may" if number > 1 or are_close(spread_of(informed, scale), scale) else "must"


def _why_silent(opinion: AdvocateOpinion) -> str:
    """Why an advocate's opinion does not count."""
    if opinion.verdict is None:
        return "a technical failure"
    if opinion.withheld:
        return f"nothing that it quoted or cited bears its verdict ({opinion.withheld})"
    if not opinion.retrieved:
        return "nothing relevant was found in its source"
    if opinion.unasked:
        return "nothing in its source bears on the claim"
    return "what was found in its source does not settle the claim"


def _reasoning(opinion: AdvocateOpinion) -> str:
    """What an advocate wrote before its verdict, cut to a readable length."""
    words = opinion.draft.split()
    return " ".join(words[:_LONGEST_REASONING]) + (" ..." if len(words) > _LONGEST_REASONING else "")


def authority(weight: float) -> str:
    """A weight in words, for the prompt."""
    return "high" if weight >= 1 else "medium" if weight >= 0.5 else "low"


def _levels(opinion: AdvocateOpinion) -> str:
    levels = opinion.levels
    if levels is None:
        return ""
    likelihood = f", likelihood {levels.likelihood}" if levels.likelihood else ""
    return f"evidence {levels.evidence}, agreement {levels.agreement}, confidence {levels.confidence}{likelihood}"


def pool(opinions: Sequence[AdvocateOpinion], weights: Mapping[str, float]) -> tuple[float, ...]:
    """Logarithmic opinion pool of the advocates' probabilities, their weights scaled to a sum of 1.

    ``p(label)`` is proportional to ``product over advocates of p_a(label) ** (weight_a / sum of weights)``. It is no
    vote: an advocate that is nearly sure moves the result more than several that are not. Empty where nobody gives any.

    References:
        Genest and Zidek (1986), Combining probability distributions, Statistical Science 1, section 3.
    """
    given = [opinion for opinion in opinions if opinion.probabilities]
    if not given:
        return ()
    shares = np.array([weights[opinion.advocate] for opinion in given])
    logs = np.log(np.clip(np.array([opinion.probabilities for opinion in given]), 1e-12, None))
    summed = (shares / shares.sum()) @ logs
    powers = np.exp(summed - summed.max())
    return tuple(float(value) for value in powers / powers.sum())


# ---------------------------------------------------------------------------------------------------- the next round


def decide(
    context: DebateContext, number: int, limit: int, found: Consolidation, changed: bool
) -> Steps[MediatorDecision]:
    """Whether the debate closes after a round, of at most ``limit``, and why.

    ``changed`` says whether any advocate's verdict differs from the round before; it is not used in round 1.
    """
    asked = found.assessment
    contrast = not are_close(found.spread, context.scale)
    reason: CloseReason | OpenReason
    if not found.informed:
        reason = "not enough information"
    elif number > 1 and not changed:
        reason = "one informed advocate" if len(found.informed) == 1 else "no change"
    elif len(found.informed) == 1:
        # Another one may still find something: a mediator that can reason has asked it.
        reason = "uncertain" if asked.goes_on else "one informed advocate"
    elif contrast and number >= limit:
        reason = "round limit"
    elif contrast and number == 1:
        # Contrasting verdicts are never accepted without a question; after one, the mediator may be satisfied.
        reason = "contrast"
    elif contrast:
        reason = "contrast" if (yield from _goes_on(context, found)) else "mediator"
    elif context.config.elicitation == "schema":
        # A mediator that can reason says itself whether an answer would help: limited evidence alone is no reason.
        reason = "uncertain" if asked.goes_on else "close verdicts"
    elif asked.levels is not None and asked.levels.confidence in UNCERTAIN:
        reason = "round limit" if number >= limit else "uncertain"
    else:
        reason = "close verdicts"
    decision = MediatorDecision(
        number,
        reason not in ("contrast", "uncertain"),
        reason,
        None if asked.error else asked.verdict,
        asked.levels,
        asked.probabilities,
        found.spread,
        tuple(opinion.advocate for opinion in found.informed),
        asked.draft,
        asked.error,
    )
    context.on_event(decision)
    return decision


def _goes_on(context: DebateContext, found: Consolidation) -> Steps[bool]:
    """Whether the mediator would rather ask than close although verdicts contrast."""
    prompt, asked = found.interview, found.assessment
    if context.config.elicitation != "scored" or prompt is None or asked.error is not None:
        return bool(asked.goes_on)
    prompts = [
        RenderedPrompt(prompt.messages, asked.answer + "\nNext:"),
        RenderedPrompt(prompt.blank, f"Verdict: {BLANK}\nNext:"),
    ]
    try:
        options = (" close the debate", " ask follow-up questions")
        close, ask = yield from weigh(prompt.model, prompts, options, context.config)
    except ModelError:
        return True
    return ask > close


def ask_follow_ups(
    mediator: Mediator, context: DebateContext, decision: MediatorDecision, found: Consolidation
) -> Steps[tuple[FollowUp, ...]]:
    """Questions to named advocates: the mediator's own where it has asked some, else one to each it has to hear.

    Where verdicts contrast, those at the two ends of the scale are asked; where the mediator is uncertain, the advocate
    of the greatest authority. A question that the model does not manage to write is put in a fixed form, and marked.
    """
    following = decision.round + 1
    if found.assessment.questions:
        return tuple(
            FollowUp(following, NAME, one.to, one.text, queries=one.queries) for one in found.assessment.questions
        )
    informed, scale, contrast = found.informed, context.scale, decision.reason == "contrast"
    places = [scale.position(opinion.verdict or "") for opinion in informed]
    asked = []
    for end in (min(places), max(places)) if contrast else (None,):
        there = [one for one, place in zip(informed, places, strict=True) if end in (None, place)]
        opinion = max(there, key=lambda one: mediator.weights[one.advocate])
        text = None
        if context.config.elicitation == "scored":
            text = yield from write_question(context, mediator.model, NAME, informed, opinion.advocate)
        if text:
            asked.append(FollowUp(following, NAME, opinion.advocate, text))
            continue
        text = "Which of your passages bear most directly on the claim, and how sure are they of it?"
        others = [f"{one.advocate} says {one.verdict}" for one in informed if one.verdict != opinion.verdict]
        if contrast and others:
            told = ", ".join(others)
            text = f"You say {opinion.verdict}, but {told}: which of your passages bear on this difference?"
        asked.append(FollowUp(following, NAME, opinion.advocate, text, "template"))
    return tuple(asked)


# ------------------------------------------------------------------------------------------------------- the verdict


def final_verdict(
    mediator: Mediator, context: DebateContext, claim: str, last: Round, found: Consolidation
) -> Steps[Verdict]:
    """The verdict at the end of a debate, explained; "not enough information" where nothing bears one."""
    decision = last.decision
    if decision.error is not None:
        return Verdict("failed", None, claim, error=decision.error)
    failed = [opinion for opinion in last.opinions if opinion.verdict is None]
    failures = tuple(f"{one.advocate} gave no opinion, because a model call failed." for one in failed)
    if not found.informed or found.interview is None:
        if failed and len(failed) == len(last.opinions):
            return Verdict("failed", None, claim, error=failed[0].error)
        return Verdict("not enough information", context.scale.nei, claim, caveats=failures)
    assessment = yield from explain(found.interview, context.config, found.assessment)
    if assessment.error is not None:
        return Verdict("failed", None, claim, error=assessment.error)
    borne = look_up(context, assessment, claim, found.brought)
    known = borne._asdict()
    verdict = Verdict("not enough information", known.pop("verdict"), claim, **known)
    if borne.verdict == context.scale.nei:
        reason = "What the advocates brought does not settle the claim."
        return replace(verdict, caveats=(withheld_caveat(borne.withheld) if borne.withheld else reason, *failures))
    contradicts = yield from find_contradiction(context, mediator.model, claim, borne.verdict, borne.explanation)
    caveats = []
    if len(found.informed) == 1:
        name = found.informed[0].advocate
        caveats = [f"Only {name} has information on this claim: the evidence is not broadly substantiated."]
    elif not are_close(decision.spread, context.scale):
        views = ", ".join(f"{opinion.advocate} says {opinion.verdict}" for opinion in found.informed)
        caveats = [f"The advocates still differ: {views}."]
    return replace(
        verdict,
        outcome="verdict",
        probabilities=assessment.probabilities,
        caveats=(*caveats, *failures),
        contradicts=contradicts,
    )
