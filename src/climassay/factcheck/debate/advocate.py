"""An advocate: judges each statement of a claim by its own passages, answers questions, and may revise its view."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from climassay.errors import ModelError
from climassay.factcheck.configuration import AdvocateSettings
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
    CheckedAssessment,
    DebateContext,
    RetrievedPassage,
    as_one_line,
    last_question,
    look_up,
    shown_exchanges,
    shown_quotations,
    shown_sources,
)
from climassay.factcheck.debate.scheduler import ON_SUBJECT, AskPassages, Steps, ask_text, gather
from climassay.factcheck.transcript import AdvocateOpinion, AdvocateProfile, FollowUp, Levels, Subclaim, weakest
from climassay.grounding.citations import AnswerSentence
from climassay.models.contract import BLANK, GenerationRequest
from climassay.prompts import STRONG

_QUESTION_TOKENS = 48


@dataclass(frozen=True, slots=True)
class Advocate:
    """An advocate who is ready to debate."""

    settings: AdvocateSettings
    model: str
    """Name of its model."""
    latest_only: bool = False

    @property
    def name(self) -> str:
        """What the others call it."""
        return self.settings.name

    @property
    def passages(self) -> int:
        """Put before it at a time."""
        return self.settings.passages or STRONG.passages

    def search(self, query: str) -> AskPassages:
        """What it asks of its collections."""
        own = self.settings
        return AskPassages(
            own.collections, query, self.passages, own.excerpt_words or 0, own.rerank, self.latest_only, own.min_cosine
        )


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Who takes part, and what they have said from the second round on."""

    advocates: tuple[AdvocateProfile, ...] = ()
    """All of them; in the first round, too, an advocate may have a question to another one."""
    opinions: tuple[AdvocateOpinion, ...] = ()
    """Every advocate's first opinion on the whole claim."""
    follow_ups: tuple[FollowUp, ...] = ()
    """All rounds' questions so far: who was persuaded by an earlier reply still has it at hand."""
    questions: tuple[FollowUp, ...] = ()
    """Those that open this round and are still to be answered, along with the opinion (``schema``)."""
    last: bool = False
    """Whether no further round can follow, so that no question need be asked."""


class RoundOpinions(NamedTuple):
    """What an advocate has said in a round."""

    opinion: AdvocateOpinion
    """On the whole claim."""
    parts: tuple[AdvocateOpinion, ...]
    """On its statements, where there are several."""
    replies: tuple[FollowUp, ...] = ()
    """The questions put to it, answered."""


def give_opinions(
    advocate: Advocate,
    context: DebateContext,
    exhibits: Sequence[Sequence[RetrievedPassage]],
    said: Exchanges,
    before: AdvocateOpinion | None,
) -> Steps[RoundOpinions]:
    """An advocate's view of the claim and, where there are several, of its subclaims; ``before``: its last one."""
    number = 1 if before is None else before.round + 1
    context.tell(advocate.name, "judging", number)
    if context.config.elicitation == "schema":
        given = yield from _judge_at_once(advocate, context, exhibits, said, number)
    else:
        parts = yield from gather(
            [
                _judge(advocate, context, subclaim, shown, said, number)
                for subclaim, shown in zip(context.subclaims, exhibits, strict=True)
            ]
        )
        kept = tuple(parts) if len(parts) > 1 else ()
        whole = (yield from _aggregate(advocate, context, parts)) if kept else replace(parts[0], subclaim=None)
        given = RoundOpinions(whole, kept)
    # A call that failed is not a change of view: it must not keep a debate open that would close without it.
    verdict = given.opinion.verdict
    changed = before is not None and verdict is not None and before.verdict != verdict
    given = given._replace(opinion=replace(given.opinion, changed=changed))
    for replied in given.replies:
        context.on_event(replied)
    context.on_event(given.opinion)
    return given


def _empty(
    advocate: Advocate, context: DebateContext, number: int, subclaim: int | None, exhibits: Sequence[RetrievedPassage]
) -> AdvocateOpinion:
    """An opinion without information."""
    retrieved = tuple(exhibit.number for exhibit in exhibits)
    return AdvocateOpinion(advocate.name, number, subclaim, context.scale.nei, False, retrieved=retrieved)


def _judge_at_once(
    advocate: Advocate,
    context: DebateContext,
    exhibits: Sequence[Sequence[RetrievedPassage]],
    said: Exchanges,
    number: int,
) -> Steps[RoundOpinions]:
    """All statements, the whole claim and the answers to questions in one call.

    No model is asked where there is no passage, or where all passages are only on the claim's subject.
    """
    shown = list({exhibit.number: exhibit for some in exhibits for exhibit in some}.values())
    empty = _empty(advocate, context, number, None, shown)
    several = context.subclaims if len(context.subclaims) > 1 else ()
    parts = tuple(
        _empty(advocate, context, number, one.number, some) for one, some in zip(several, exhibits, strict=False)
    )
    questions = [one for one in said.questions if one.to == advocate.name]
    unheard = tuple(replace(one, retrieved=()) for one in questions)
    if advocate.settings.kind != "plain" and all(one.grade == ON_SUBJECT for one in shown):
        return RoundOpinions(
            replace(empty, unasked=True), tuple(replace(part, unasked=True) for part in parts), unheard
        )
    interview = _interview(advocate, context, context.subclaims, shown, said, questions)
    assessment = yield from assess(interview, context.config)
    if assessment.error is not None:
        failed = assessment.error
        return RoundOpinions(
            replace(empty, verdict=None, error=failed),
            tuple(replace(part, verdict=None, error=failed) for part in parts),
            tuple(replace(one, error=failed) for one in unheard),
        )
    context.tell(advocate.name, "checking quotations", number)
    in_house = advocate.settings.kind == "plain"
    opinions = []
    for subclaim, part, result in zip(several, parts, assessment.statements, strict=True):
        # A statement is explained by the reasoning on it.
        borne = look_up(context, replace(result, explanation=result.draft), subclaim.text, shown, in_house=in_house)
        opinions.append(_with(context, part, result, borne))
    gathered = [quotation for opinion in opinions for quotation in opinion.quotations]
    borne = look_up(context, assessment, context.claim, shown, quotations=gathered, in_house=in_house)
    whole = _with(context, empty, assessment, borne)
    removed = sum(opinion.removed_quotations for opinion in opinions)
    whole = replace(whole, removed_quotations=whole.removed_quotations + removed)
    replies = tuple(
        replace(one, retrieved=empty.retrieved, reply=context.ground(text, False, shown)[0])
        for one, text in zip(questions, assessment.replies, strict=True)
    )
    return RoundOpinions(whole, tuple(opinions), replies)


def _with(
    context: DebateContext, empty: AdvocateOpinion, assessment: Assessment, borne: CheckedAssessment
) -> AdvocateOpinion:
    """An opinion from what came of an interview and was looked up."""
    asks = tuple(
        FollowUp(empty.round + 1, empty.advocate, one.to, one.text, queries=one.queries) for one in assessment.questions
    )
    given = borne.verdict != context.scale.nei
    return replace(
        empty,
        **borne._asdict(),
        informed=_is_view(context, borne.verdict, borne.levels),
        placement=assessment.placement if given else None,
        probabilities=assessment.probabilities if given else (),
        # What was written towards a verdict that is not given stays, with the verdict.
        draft=assessment.draft if given or borne.withheld or context.config.elicitation == "schema" else "",
        asks=asks,
    )


def _judge(
    advocate: Advocate,
    context: DebateContext,
    subclaim: Subclaim,
    exhibits: Sequence[RetrievedPassage],
    said: Exchanges,
    number: int,
) -> Steps[AdvocateOpinion]:
    """One subclaim by scores. Without a passage the answer is "not enough information", and no model is asked."""
    empty = _empty(advocate, context, number, subclaim.number, exhibits)
    in_house = advocate.settings.kind == "plain"
    if not exhibits and not in_house:
        return empty
    interview = _interview(advocate, context, [subclaim], exhibits, said)
    assessment = yield from assess(interview, context.config)
    assessment = yield from explain(interview, context.config, assessment)
    if assessment.error is not None:
        return replace(empty, verdict=None, error=assessment.error)
    context.tell(advocate.name, "checking quotations", number)
    opinion = _with(
        context, empty, assessment, look_up(context, assessment, subclaim.text, exhibits, in_house=in_house)
    )
    if opinion.verdict == context.scale.nei:
        return opinion
    contradicts = yield from find_contradiction(
        context, advocate.model, subclaim.text, opinion.verdict, opinion.explanation
    )
    return replace(opinion, contradicts=contradicts)


def _interview(
    advocate: Advocate,
    context: DebateContext,
    subclaims: Sequence[Subclaim],
    exhibits: Sequence[RetrievedPassage],
    said: Exchanges,
    questions: Sequence[FollowUp] = (),
) -> AssessmentPrompt:
    """What an advocate is asked with; several subclaims are judged together."""
    others = [participant(one.name, one) for one in said.advocates if one.name != advocate.name]
    profile = next((one for one in said.advocates if one.name == advocate.name), None)
    several = subclaims if len(subclaims) > 1 else ()
    common = {
        **_self(advocate),
        "about": as_one_line(profile.about) if profile else "",
        "others": others,
        "ask": bool(others) and not said.last,
        "most_questions": MOST_QUESTIONS,
    }
    prompt = context.messages(
        "advocate",
        **common,
        claim=as_one_line(context.claim),
        statement=as_one_line(context.claim if several else subclaims[0].text),
        statements=[{"number": one.number, "text": as_one_line(one.text)} for one in several],
        sources=shown_sources(exhibits),
        opinions=[_shown(context, opinion) for opinion in said.opinions],
        exchanges=shown_exchanges(context, said.follow_ups),
        questions=[{"asker": one.asker, "question": as_one_line(one.question)} for one in questions],
    )
    blank = context.messages(
        "advocate",
        **common,
        claim=BLANK,
        statement=BLANK,
        statements=[],
        sources=[{"number": 1, "where": BLANK, "text": BLANK}] if exhibits else [],
        opinions=[],
        exchanges=[],
        questions=[],
    )
    return AssessmentPrompt(
        advocate.model,
        prompt.messages,
        blank.messages,
        context.scale,
        others=() if said.last else tuple(one["name"] for one in others),
        passages=tuple(exhibit.number for exhibit in exhibits),
        statements=tuple(one.number for one in several),
        replies=len(questions),
    )


def _self(advocate: Advocate) -> dict[str, str]:
    """Who an advocate is, for its prompts."""
    own = advocate.settings
    return {"name": own.name, "kind": own.kind, "stance": as_one_line(own.stance)}


def participant(name: str, profile: AdvocateProfile | None) -> dict[str, str]:
    """Who takes part, for the prompts of the others."""
    kind, about = (profile.kind, profile.about) if profile else ("collection", "")
    return {"name": name, "kind": kind, "about": as_one_line(about)}


def _shown(context: DebateContext, opinion: AdvocateOpinion) -> dict[str, object]:
    return {
        "name": opinion.advocate,
        "verdict": opinion.verdict or "failed",
        "text": context.told(opinion.explanation),
        "quotations": shown_quotations(opinion.quotations),
    }


def _is_view(context: DebateContext, verdict: str | None, levels: Levels | None) -> bool:
    """Whether a verdict is a view: "unsupported" on limited evidence only says that information is lacking."""
    lacks = verdict in context.scale.lack and levels is not None and levels.evidence == "limited"
    return verdict is not None and verdict != context.scale.nei and not lacks


def find_contradiction(
    context: DebateContext, model: str, claim: str, verdict: str | None, explanation: Sequence[AnswerSentence]
) -> Steps[bool | None]:
    """Whether an explanation argues for the other side of the scale; None where there is nothing to be read.

    The model reads the explanation alone and tells the side it takes.
    """
    if not explanation or verdict is None or not context.config.side_check:
        return None
    text = " ".join(sentence.text for sentence in explanation)
    prompts = [
        context.messages("side", claim=shown_claim, explanation=shown)
        for shown_claim, shown in ((as_one_line(claim), as_one_line(text)), (BLANK, BLANK))
    ]
    try:
        right, wrong = yield from weigh(model, prompts, (" right", " wrong"), context.config)
    except ModelError:
        return None
    return (right > wrong) != context.scale.is_correct(verdict)


def _aggregate(advocate: Advocate, context: DebateContext, parts: Sequence[AdvocateOpinion]) -> Steps[AdvocateOpinion]:
    """The whole claim: subclaims without information count for nothing, the model weighs the others."""
    first = parts[0]
    gathered = AdvocateOpinion(
        advocate.name,
        first.round,
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
    judged = [part for part in parts if part.levels is not None]
    if errors:
        return replace(gathered, verdict=None, error=errors[0])
    if not judged:
        return gathered
    prompts = [
        context.messages(
            "whole",
            parts=[
                {
                    "statement": BLANK if blank else as_one_line(subclaim.text),
                    "verdict": BLANK if blank else part.verdict,
                }
                for subclaim, part in zip(context.subclaims, parts, strict=True)
            ],
            claim=BLANK if blank else as_one_line(context.claim),
        )
        for blank in (False, True)
    ]
    try:
        options = tuple(f" {label}" for label in context.scale.labels)
        probabilities = yield from weigh(advocate.model, prompts, options, context.config)
    except ModelError as error:
        return replace(gathered, verdict=None, error=str(error))
    verdict = context.scale.labels[most_probable(probabilities)]
    levels = weakest([part.levels for part in judged if part.levels])
    known = [part.contradicts for part in judged if part.contradicts is not None]
    return replace(
        gathered,
        verdict=verdict,
        withheld=None,
        informed=any(part.informed for part in judged) and _is_view(context, verdict, levels),
        levels=levels,
        placement=judged[0].placement,
        probabilities=probabilities,
        contradicts=any(known) if known else None,
    )


# ---------------------------------------------------------------------------------------------------- in the debate


def write_question(
    context: DebateContext, model: str, asker: str, opinions: Sequence[AdvocateOpinion], to: str
) -> Steps[str | None]:
    """A question in a model's words; None where it writes none that can be used."""
    rendered = context.messages(
        "question",
        asker=asker,
        to=to,
        claim=as_one_line(context.claim),
        opinions=[_shown(context, opinion) for opinion in opinions],
    )
    sampling = replace(context.config.sampling, max_tokens=_QUESTION_TOKENS, stop=("\n",))
    request = GenerationRequest(rendered.messages, sampling, assistant_prefix=rendered.assistant_prefix)
    completion = yield from ask_text(model, request)
    return None if completion.error is not None else last_question(completion.text)


def reply(
    advocate: Advocate, context: DebateContext, follow_up: FollowUp, exhibits: Sequence[RetrievedPassage]
) -> Steps[FollowUp]:
    """The question with its reply, by a call of its own (``scored``)."""
    rendered = context.messages(
        "reply",
        **_self(advocate),
        sources=shown_sources(exhibits),
        claim=as_one_line(context.claim),
        asker=follow_up.asker,
        question=as_one_line(follow_up.question),
    )
    request = GenerationRequest(rendered.messages, context.config.sampling, assistant_prefix=rendered.assistant_prefix)
    context.tell(advocate.name, "replying", follow_up.round)
    completion = yield from ask_text(advocate.model, request)
    shown = replace(follow_up, retrieved=tuple(exhibit.number for exhibit in exhibits))
    if completion.error is not None:
        answered = replace(shown, error=completion.error)
    else:
        sentences, _ = context.ground(completion.text, completion.finish_reason == "length", exhibits)
        answered = replace(shown, reply=sentences)
    context.on_event(answered)
    return answered
