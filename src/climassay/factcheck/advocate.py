"""An advocate: judges each statement of a claim by its own passages, answers questions, and may revise its view."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from climassay.factcheck.assessment import (
    Assessment,
    Interview,
    assess,
    explain,
    most_probable,
    probabilities_of,
)
from climassay.factcheck.configuration import AdvocateSettings
from climassay.factcheck.levels import UNCERTAIN, weakest
from climassay.factcheck.stage import Exhibit, Stage, last_question, material, told
from climassay.factcheck.steps import (
    AskHead,
    AskOptions,
    AskPassages,
    Found,
    Steps,
    ask_options,
    ask_text,
    together,
)
from climassay.factcheck.transcript import AdvocateOpinion, FollowUp, Levels, Subclaim
from climassay.grounding.citing import AnswerSentence
from climassay.models.calibration import BLANK
from climassay.models.contract import GenerationRequest, OptionRequest

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

    def search(self, query: str) -> AskPassages:
        """What it asks of its collections."""
        own = self.settings
        return AskPassages(
            own.collections,
            query,
            own.passages,
            own.excerpt_words,
            own.rerank,
            self.latest_only,
            own.min_cosine,
        )


@dataclass(frozen=True, slots=True)
class Exchanges:
    """Who takes part, and what they have said from the second round on."""

    advocates: tuple[str, ...] = ()
    """Names of all; in the first round, too, an advocate may have a question to another one."""
    opinions: tuple[AdvocateOpinion, ...] = ()
    """Every advocate's first opinion on the whole claim."""
    follow_ups: tuple[FollowUp, ...] = ()
    """Of all rounds so far: who was persuaded by an earlier reply still has it before them."""


def retrieve(advocate: Advocate, query: str) -> Steps[tuple[Found, ...]]:
    """Passages for a query; none for an advocate without collections."""
    if advocate.settings.kind == "plain":
        return ()
    [found] = yield (advocate.search(query),)
    return tuple(found)


def give_opinions(
    advocate: Advocate,
    stage: Stage,
    subclaims: Sequence[Subclaim],
    exhibits: Sequence[Sequence[Exhibit]],
    said: Exchanges,
    before: AdvocateOpinion | None,
) -> Steps[tuple[AdvocateOpinion, tuple[AdvocateOpinion, ...]]]:
    """The opinion on the whole claim, and those on its subclaims where there are several.

    Args:
        advocate: Who.
        stage: Where.
        subclaims: At least one.
        exhibits: The passages for each.
        said: In the debate so far.
        before: The opinion on the whole in the round before.
    """
    number = 1 if before is None else before.round + 1
    parts = yield from together(
        [
            _judge(advocate, stage, subclaim, shown, said, number)
            for subclaim, shown in zip(subclaims, exhibits, strict=True)
        ]
    )
    kept = tuple(parts) if len(parts) > 1 else ()
    whole = (yield from _aggregate(advocate, stage, subclaims, parts)) if kept else replace(parts[0], subclaim=None)
    # A call that failed is no change of view: it must not keep a debate open that would close without it.
    changed = before is not None and whole.verdict is not None and before.verdict != whole.verdict
    opinion = replace(whole, changed=changed)
    stage.tell(opinion)
    return opinion, kept


def _judge(
    advocate: Advocate, stage: Stage, subclaim: Subclaim, exhibits: Sequence[Exhibit], said: Exchanges, number: int
) -> Steps[AdvocateOpinion]:
    """One subclaim. Without a passage the answer is "not enough information", and no model is asked."""
    empty = AdvocateOpinion(
        advocate.name, number, subclaim.number, stage.scale.nei, False, retrieved=tuple(e.number for e in exhibits)
    )
    if not exhibits and advocate.settings.kind != "plain":
        return empty
    interview = _interview(advocate, stage, subclaim, exhibits, said)
    if stage.has_head and exhibits:
        [head] = yield (AskHead(subclaim.text, tuple(exhibit.excerpt for exhibit in exhibits)),)
        if head is None:
            return replace(empty, verdict=None, error="The verdict head could not be applied.")
        if most_probable(head) == len(head) - 1:
            return empty
        interview = replace(interview, head=tuple(head))
    assessment = yield from assess(interview, stage.manner)
    assessment = yield from explain(interview, stage.manner, assessment)
    return (yield from _opinion(advocate, stage, empty, subclaim.text, exhibits, assessment))


def _interview(
    advocate: Advocate, stage: Stage, subclaim: Subclaim, exhibits: Sequence[Exhibit], said: Exchanges
) -> Interview:
    own = advocate.settings
    common = {"name": own.name, "kind": own.kind, "stance": own.stance}
    opinions = [_shown(opinion) for opinion in said.opinions]
    exchanges = [_exchange(follow_up) for follow_up in said.follow_ups]
    prompt = stage.messages(
        "advocate",
        **common,
        claim=material(stage.claim),
        statement=material(subclaim.text),
        sources=[{"number": exhibit.number, "text": material(exhibit.excerpt)} for exhibit in exhibits],
        opinions=opinions,
        exchanges=exchanges,
    )
    blank = stage.messages(
        "advocate",
        **common,
        claim=BLANK,
        statement=BLANK,
        sources=[{"number": 1, "text": BLANK}] if exhibits else [],
        opinions=[],
        exchanges=[],
    )
    others = tuple(name for name in said.advocates if name != own.name)
    return Interview(advocate.model, prompt.messages, blank.messages, stage.scale, others=others)


def _shown(opinion: AdvocateOpinion) -> dict[str, str]:
    return {"name": opinion.advocate, "verdict": opinion.verdict or "failed", "text": told(opinion.explanation)}


def _exchange(follow_up: FollowUp) -> dict[str, str]:
    return {
        "asker": follow_up.asker,
        "to": follow_up.to,
        "question": material(follow_up.question),
        "reply": told(follow_up.reply) or "(no reply)",
    }


def _opinion(
    advocate: Advocate,
    stage: Stage,
    empty: AdvocateOpinion,
    statement: str,
    exhibits: Sequence[Exhibit],
    assessment: Assessment,
) -> Steps[AdvocateOpinion]:
    if assessment.error is not None:
        return replace(empty, verdict=None, error=assessment.error)
    explanation, removed = stage.explained(assessment, statement, exhibits)
    asks = tuple(FollowUp(empty.round + 1, advocate.name, to, text) for to, text in assessment.questions)
    if assessment.verdict == stage.scale.nei:
        return replace(empty, explanation=explanation, removed_citations=removed, asks=asks)
    contradicts = yield from find_contradiction(stage, advocate.model, statement, assessment.verdict, explanation)
    return replace(
        empty,
        verdict=assessment.verdict,
        informed=_is_view(stage, assessment.verdict, assessment.levels),
        levels=assessment.levels,
        placement=assessment.placement,
        probabilities=assessment.probabilities,
        draft=assessment.draft,
        explanation=explanation,
        removed_citations=removed,
        contradicts=contradicts,
        asks=asks,
    )


def _is_view(stage: Stage, verdict: str | None, levels: Levels | None) -> bool:
    """Whether a verdict is a view: "unsupported" on low evidence only says that information is lacking."""
    lacks = verdict in stage.scale.lack and levels is not None and levels.evidence == "low"
    return verdict is not None and verdict != stage.scale.nei and not lacks


def find_contradiction(
    stage: Stage, model: str, claim: str, verdict: str | None, explanation: Sequence[AnswerSentence]
) -> Steps[bool | None]:
    """Whether an explanation argues for the other side of the scale; None where there is nothing to be read.

    The model reads the explanation alone and tells the side it takes; what it says of a content-free explanation is
    taken off.
    """
    if not explanation or verdict is None:
        return None
    text = " ".join(sentence.text for sentence in explanation)
    asks = []
    for shown_claim, shown, blank in ((material(claim), material(text), False), (BLANK, BLANK, True)):
        rendered = stage.messages("side", claim=shown_claim, explanation=shown)
        request = OptionRequest(rendered.messages, (" right", " wrong"), rendered.assistant_prefix)
        asks.append(AskOptions(model, request, blank))
    answers = yield from ask_options(asks if stage.manner.calibrated else asks[:1])
    if any(answer.error is not None for answer in answers):
        return None
    right, wrong = probabilities_of(answers)
    return (right > wrong) != stage.scale.is_correct(verdict)


def _aggregate(
    advocate: Advocate, stage: Stage, subclaims: Sequence[Subclaim], parts: Sequence[AdvocateOpinion]
) -> Steps[AdvocateOpinion]:
    """The whole claim: subclaims without information count for nothing, the model weighs the others."""
    first = parts[0]
    gathered = AdvocateOpinion(
        advocate.name,
        first.round,
        None,
        stage.scale.nei,
        False,
        explanation=_once([sentence for part in parts for sentence in part.explanation]),
        retrieved=tuple(dict.fromkeys(number for part in parts for number in part.retrieved)),
        removed_citations=sum(part.removed_citations for part in parts),
        asks=tuple(question for part in parts for question in part.asks),
        draft=" ".join(part.draft for part in parts if part.draft),
    )
    errors = [part.error for part in parts if part.error is not None]
    judged = [part for part in parts if part.levels is not None]
    if errors:
        return replace(gathered, verdict=None, error=errors[0])
    if not judged:
        return gathered
    answers = yield from ask_options(_whole_asks(advocate, stage, subclaims, parts))
    failed = [answer.error for answer in answers if answer.error is not None]
    if failed:
        return replace(gathered, verdict=None, error=failed[0])
    probabilities = probabilities_of(answers)
    verdict = stage.scale.labels[most_probable(probabilities)]
    levels = weakest([part.levels for part in judged if part.levels])
    known = [part.contradicts for part in judged if part.contradicts is not None]
    return replace(
        gathered,
        verdict=verdict,
        informed=any(part.informed for part in judged) and _is_view(stage, verdict, levels),
        levels=levels,
        placement=judged[0].placement,
        probabilities=probabilities,
        contradicts=any(known) if known else None,
    )


def _once(sentences: Sequence[AnswerSentence]) -> tuple[AnswerSentence, ...]:
    return tuple({sentence.text: sentence for sentence in sentences}.values())


def _whole_asks(
    advocate: Advocate, stage: Stage, subclaims: Sequence[Subclaim], parts: Sequence[AdvocateOpinion]
) -> list[AskOptions]:
    asks = []
    for blank in (False, True):
        shown = [
            {"statement": BLANK if blank else material(subclaim.text), "verdict": BLANK if blank else part.verdict}
            for subclaim, part in zip(subclaims, parts, strict=True)
        ]
        rendered = stage.messages("whole", parts=shown, claim=BLANK if blank else material(stage.claim))
        options = tuple(f" {label}" for label in stage.scale.labels)
        request = OptionRequest(rendered.messages, options, rendered.assistant_prefix)
        asks.append(AskOptions(advocate.model, request, blank))
    return asks if stage.manner.calibrated else asks[:1]


# ---------------------------------------------------------------------------------------------------- in the debate


def ask_others(
    advocate: Advocate, stage: Stage, opinion: AdvocateOpinion, opinions: Sequence[AdvocateOpinion], to: str
) -> Steps[tuple[FollowUp, ...]]:
    """Questions of an advocate: those it has asked already, or one where its confidence is low."""
    if opinion.asks or stage.manner.elicitation == "schema":
        return opinion.asks
    if opinion.levels is None or opinion.levels.confidence not in UNCERTAIN:
        return ()
    text = yield from write_question(stage, advocate.model, advocate.name, opinions, to)
    return (FollowUp(opinion.round + 1, advocate.name, to, text),) if text else ()


def write_question(
    stage: Stage, model: str, asker: str, opinions: Sequence[AdvocateOpinion], to: str
) -> Steps[str | None]:
    """A question in a model's words; None where it writes none that can be used."""
    rendered = stage.messages(
        "question", asker=asker, to=to, claim=material(stage.claim), opinions=[_shown(opinion) for opinion in opinions]
    )
    sampling = replace(stage.manner.sampling, max_tokens=_QUESTION_TOKENS, stop=("\n",))
    request = GenerationRequest(rendered.messages, sampling, assistant_prefix=rendered.assistant_prefix)
    completion = yield from ask_text(model, request)
    return None if completion.error is not None else last_question(completion.text)


def reply(advocate: Advocate, stage: Stage, follow_up: FollowUp, exhibits: Sequence[Exhibit]) -> Steps[FollowUp]:
    """The question with its reply."""
    own = advocate.settings
    rendered = stage.messages(
        "reply",
        name=own.name,
        kind=own.kind,
        stance=own.stance,
        sources=[{"number": exhibit.number, "text": material(exhibit.excerpt)} for exhibit in exhibits],
        claim=material(stage.claim),
        asker=follow_up.asker,
        question=material(follow_up.question),
    )
    request = GenerationRequest(rendered.messages, stage.manner.sampling, assistant_prefix=rendered.assistant_prefix)
    completion = yield from ask_text(advocate.model, request)
    shown = replace(follow_up, retrieved=tuple(exhibit.number for exhibit in exhibits))
    if completion.error is not None:
        answered = replace(shown, error=completion.error)
    else:
        sentences, _ = stage.ground(completion.text, completion.finish_reason == "length", exhibits)
        answered = replace(shown, reply=sentences)
    stage.tell(answered)
    return answered
