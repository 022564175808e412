"""What all participants of one debate share: the claim, the rules, the templates, and the numbered passages.

Whatever one of them says is looked up in the passages (:func:`look_up`), by the same rules:

- A quotation that does not appear in its passage is removed and counted, as a citation of no passage is.
- A likelihood stands only where it takes the side of the verdict, and where a sentence that bears the verdict states it
  or its opposite: one that is quoted for that side, or the one nearest to the claim in a passage that is only cited. A
  term elsewhere in a passage may belong to another finding.
- A verdict without one quotation or citation that holds becomes "not enough information". What was written stays.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from climassay.corpus.documents import Passage, report_name, split_sentences
from climassay.factcheck.debate.assessment import Assessment, ElicitationConfig
from climassay.factcheck.debate.scheduler import Found
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    LIKELIHOODS,
    Activity,
    Doing,
    Event,
    FollowUp,
    Levels,
    Likelihood,
    PassageCitation,
    Quotation,
    Retrieval,
    Subclaim,
    cited_numbers,
    merge_quotations,
    takes_side,
)
from climassay.grounding.citations import (
    LEFT_OUT,
    MODELS_MARK,
    AnswerSentence,
    document_words,
    ground_text,
    is_quoted,
    written,
)
from climassay.models.contract import Encoder
from climassay.prompts import Prompt, RenderedPrompt, load_prompt

TEMPLATES = (
    "split",
    "split_brief",
    "grade",
    "advocate",
    "advocate_brief",
    "mediator",
    "mediator_brief",
    "whole",
    "question",
    "reply",
    "side",
)


_LONGEST_WORDS = 90
"""Words of what others said that a small model reads."""


def load_templates(overrides: Path | None = None) -> dict[str, Prompt]:
    """The prompts of a debate, by role.

    Raises:
        InputError: The folder of overrides does not exist.
    """
    return {name: load_prompt(f"factcheck_{name}", overrides) for name in TEMPLATES}


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage as it lies before an advocate."""

    number: int
    passage: Passage
    excerpt: str
    grade: int | None = None
    """As it was graded, where it was."""


class SourceBook:
    """The passages of a debate, numbered in order of first retrieval."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], PassageCitation] = {}
        self._told: dict[int, PassageCitation] = {}

    def add(self, found: Sequence[Found], advocate: str) -> list[RetrievedPassage]:
        """Number what a search found, and remember for whom."""
        exhibits = []
        for one in found:
            key = (one.collection, one.passage.id)
            known = self._entries.get(key)
            number = known.number if known else len(self._entries) + 1
            before = known.advocates if known else ()
            cosines = [cosine for cosine in (known.cosine if known else None, one.cosine) if cosine is not None]
            grades = [grade for grade in (known.grade if known else None, one.grade) if grade is not None]
            self._entries[key] = PassageCitation(
                number,
                known.passage if known else one.passage,
                one.collection,
                max(cosines, default=None),
                before if advocate in before else (*before, advocate),
                max(grades, default=None),
            )
            exhibits.append(RetrievedPassage(number, one.passage, one.excerpt, one.grade))
        return exhibits

    def citations(self) -> tuple[PassageCitation, ...]:
        """All passages, by number."""
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.number))

    def news(self) -> tuple[PassageCitation, ...]:
        """The passages that have come, or changed, since this was last asked, by number."""
        news = tuple(entry for entry in self.citations() if self._told.get(entry.number) != entry)
        self._told.update((entry.number, entry) for entry in news)
        return news


@dataclass(frozen=True)
class DebateContext:
    """Where a debate takes place."""

    claim: str
    """As it is put before the models, with its prefix where there is one."""
    scale: Scale
    config: ElicitationConfig
    templates: Mapping[str, Prompt]
    encoder: Encoder | None
    """Attributes sentences to passages; None attributes nothing."""
    on_event: Callable[[Event], None]
    """Told of everything as it happens."""
    subclaims: tuple[Subclaim, ...] = ()
    """The claim's statements, worded as the claim is."""
    sources: SourceBook = field(default_factory=SourceBook)
    activities: dict[str, Activity] = field(default_factory=dict)
    """What each participant does, by its name."""

    def tell(self, participant: str, doing: Doing, round_number: int) -> None:
        """Tell what a participant does from now on; what it does already is not told again."""
        activity = Activity(participant, doing, round_number)
        if self.activities.get(participant) != activity:
            self.activities[participant] = activity
            self.on_event(activity)

    def tell_sources(self) -> None:
        """Tell of the passages found since the last time, where there are any."""
        news = self.sources.news()
        if news:
            self.on_event(Retrieval(news))

    def messages(self, template: str, **values: object) -> RenderedPrompt:
        """A filled template, the brief one where there is one; what it has in common with all others is added."""
        brief = f"{template}_brief" if self.config.brief else template
        common = {
            "elicitation": self.config.elicitation,
            "queries": self.config.queries,
            "definitions": self.scale.definitions,
            "nei": self.scale.nei,
        }
        return self.templates.get(brief, self.templates[template]).render(**{**common, **values})

    def ground(
        self, text: str, cut: bool, exhibits: Sequence[RetrievedPassage | PassageCitation]
    ) -> tuple[tuple[AnswerSentence, ...], int]:
        """Sentences with citations that exist, and how many were removed."""
        loops = self.config.elicitation == "scored"
        return ground_text(
            text,
            cut=cut,
            sources=exhibits,
            encoder=self.encoder,
            given=self.claim,
            loops=loops,
            documents=lambda: [document_words(one.passage) for one in self.sources.citations()],
        )

    def told(self, sentences: Sequence[AnswerSentence]) -> str:
        """An explanation as others read it, with its citations; for small models cut to a readable length."""
        words = " ".join(written(sentence, MODELS_MARK) for sentence in sentences).split()
        if self.config.elicitation == "schema":
            return " ".join(words)
        return " ".join(words[:_LONGEST_WORDS]) + (" ..." if len(words) > _LONGEST_WORDS else "")


def as_one_line(text: str) -> str:
    """Text of others on one line, so that it cannot pass for a line of the prompt."""
    return " ".join(text.split())


def provenance(passage: Passage) -> str:
    """Where a passage stands, for a prompt: report or title, chapter or heading, page, and year."""
    report = passage.report and report_name(passage.report, passage.source)
    where = as_one_line(replace(passage, url=None, report=report).citation)
    year = (passage.date or "")[:4]
    return f"{where}, {year}" if year and year not in where else where


def shown_sources(exhibits: Sequence[RetrievedPassage]) -> list[dict[str, object]]:
    """Passages for a prompt."""
    return [
        {"number": one.number, "where": provenance(one.passage), "text": as_one_line(one.excerpt)} for one in exhibits
    ]


def shown_quotations(quotations: Sequence[Quotation]) -> list[dict[str, object]]:
    """Quotations of a model for a prompt."""
    return [
        {
            "number": one.passage,
            "text": as_one_line(one.text),
            "side": one.side,
            "statements": " and ".join(map(str, one.statements)),
        }
        for one in quotations
        if one.side
    ]


def shown_exchanges(context: DebateContext, follow_ups: Sequence[FollowUp]) -> list[dict[str, str]]:
    """Questions with their replies for a prompt."""
    return [
        {
            "asker": one.asker,
            "to": one.to,
            "question": as_one_line(one.question),
            "reply": context.told(one.reply) or "(no reply)",
        }
        for one in follow_ups
    ]


def last_question(text: str) -> str | None:
    """What a model wrote up to its first question mark; None where that is not a question worth asking."""
    match = re.match(r"[^?]*\?", as_one_line(text))
    question = match[0].strip(' "') if match else ""
    return question if len(re.findall(r"\w+", question)) >= 4 else None


_OPPOSITES: Mapping[Likelihood, Likelihood] = {
    "exceptionally unlikely": "virtually certain",
    "extremely unlikely": "extremely likely",
    "very unlikely": "very likely",
    "unlikely": "likely",
    "about as likely as not": "about as likely as not",
}
OPPOSITES: Mapping[Likelihood, Likelihood] = {**_OPPOSITES, **{second: first for first, second in _OPPOSITES.items()}}
"""What is said of a claim's contrary says this of the claim; nothing answers to "more likely than not"."""
# The longer terms first, and no likely range, with the word or with its numbers: that is an interval of a quantity, and
# no likelihood of a finding.
_TERM = re.compile(
    rf"(?<!\bnot )\b({'|'.join(sorted(LIKELIHOODS, key=len, reverse=True))})\b"
    r"(?!\s+(?:to be in the )?ranges?\b|\s+[-+\u2212\u2013]?\d)",
    re.IGNORECASE,
)


class CheckedAssessment(NamedTuple):
    """An assessment after everything in it has been looked up; named as in :class:`AdvocateOpinion`."""

    verdict: str | None
    """"Not enough information" where nothing bears the verdict that was given."""
    explanation: tuple[AnswerSentence, ...]
    removed_citations: int
    quotations: tuple[Quotation, ...]
    removed_quotations: int
    withheld: str | None = None
    levels: Levels | None = None


def look_up(
    context: DebateContext,
    assessment: Assessment,
    statement: str,
    exhibits: Sequence[RetrievedPassage | PassageCitation],
    *,
    quotations: Sequence[Quotation] = (),
    in_house: bool = False,
) -> CheckedAssessment:
    """Look up everything that an assessment with a verdict says of its passages.

    Args:
        context: The debate.
        assessment: What a model said.
        statement: What is judged.
        exhibits: The passages that may be cited and quoted.
        quotations: Others that bear the verdict, already looked up.
        in_house: Whether a verdict may rest on the model's own knowledge.
    """
    scale = context.scale
    explanation, removed_citations = context.ground(assessment.explanation, assessment.cut, exhibits)
    texts = {one.number: one.passage.text for one in exhibits}
    held = tuple(
        one for one in assessment.quotations if one.passage in texts and is_quoted(one.text, texts[one.passage])
    )
    removed_quotations = len(assessment.quotations) - len(held)
    quoted = merge_quotations([*quotations, *held])
    if explanation and assessment.lead:
        explanation = (replace(explanation[0], text=f"{assessment.lead} {explanation[0].text}"), *explanation[1:])
    numbers = cited_numbers(explanation, quoted)
    given = assessment.verdict
    checked = CheckedAssessment(given, explanation, removed_citations, quoted, removed_quotations)
    if given is None or given == scale.nei:
        return checked
    if not numbers and context.config.elicitation == "scored" and exhibits and context.encoder is not None:
        # Very small models neither cite nor quote: of the relevant passages that their options were weighed on, the
        # nearest sentence is looked up.
        nearest, support = nearest_sentence(statement, exhibits, context.encoder)
        quoted, numbers = (*quoted, nearest), (nearest.passage,)
        if not explanation:
            text = f"A passage says: \u201c{nearest.text.rstrip('.')}\u201d."
            explanation = (AnswerSentence(text, numbers, "attributed", False, support),)
        checked = checked._replace(explanation=explanation, quotations=quoted)
    if not numbers and not in_house:
        return checked._replace(verdict=scale.nei, withheld=given)
    levels = assessment.levels
    if levels is not None and levels.likelihood is not None:
        right = scale.is_correct(given)
        bearing = bearing_sentences(
            context, statement, right, [one for one in exhibits if one.number in numbers], quoted
        )
        holds = likelihood_holds(levels.likelihood, right, bearing)
        levels = levels if holds else replace(levels, likelihood=None)
    return checked._replace(levels=levels)


def likelihood_holds(likelihood: Likelihood, right: bool, texts: Sequence[str]) -> bool:
    """Whether a likelihood goes with a verdict's side, and a text that bears it states the same or its opposite."""
    if not takes_side(likelihood, right):
        return False
    stated = {match[1].lower() for text in texts for match in _TERM.finditer(" ".join(text.split()))}
    return likelihood in stated or OPPOSITES.get(likelihood) in stated


def bearing_sentences(
    context: DebateContext,
    statement: str,
    right: bool,
    cited: Sequence[RetrievedPassage | PassageCitation],
    quotations: Sequence[Quotation],
) -> list[str]:
    """The sentences that bear a verdict: quoted for its side, or nearest to the statement in a passage only cited."""
    results = []
    for one in cited:
        quoted = [quotation for quotation in quotations if quotation.passage == one.number]
        for quotation in quoted:
            if quotation.side is None or right == (quotation.side == "for"):
                # The whole sentences of the passage that hold a part of the quotation state more than the part.
                pieces = LEFT_OUT.split(quotation.text.replace("\u2026", "..."))
                parts = [part for piece in pieces for part in split_sentences(piece) or [piece]]
                results.append(quotation.text)
                results += [
                    sentence
                    for sentence in split_sentences(one.passage.text)
                    if any(is_quoted(part, sentence) for part in parts)
                ]
        if not quoted and context.encoder is not None:
            results.append(nearest_sentence(statement, [one], context.encoder)[0].text)
    return results


def nearest_sentence(
    statement: str, exhibits: Sequence[RetrievedPassage | PassageCitation], encoder: Encoder
) -> tuple[Quotation, float]:
    """The sentence of the passages that is nearest to a statement, and how near: their cosine."""
    results = [
        (one.number, text) for one in exhibits for text in split_sentences(one.passage.text) or [one.passage.text]
    ]
    cosines = encoder.encode([text for _, text in results]) @ encoder.encode([statement])[0]
    number, text = results[int(cosines.argmax())]
    return Quotation(number, text.strip(), None), float(cosines.max())
