"""What all participants of one debate share: the claim, the rules, the templates, and the numbered passages."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from climassay.corpus.documents import Passage, report_name
from climassay.factcheck.assessment import Manner
from climassay.factcheck.scales import Scale
from climassay.factcheck.steps import Found
from climassay.factcheck.transcript import (
    AdvocateOpinion,
    FollowUp,
    MediatorDecision,
    PassageCitation,
    Quotation,
    Subclaim,
    Verdict,
)
from climassay.grounding.citing import AnswerSentence, document_words, ground_text, written
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


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Passages have been found: what citations may name from now on."""

    sources: tuple[PassageCitation, ...]
    """Those that are new, and those that lie before one more advocate; a later one of the same number stands."""


Event = tuple[Subclaim, ...] | Retrieval | AdvocateOpinion | FollowUp | MediatorDecision | Verdict
_LONGEST_WORDS = 90
"""Of what others said, put into the prompt of a small model."""


def load_templates(overrides: Path | None = None) -> dict[str, Prompt]:
    """The prompts of a debate, by role.

    Raises:
        InputError: The folder of overrides does not exist.
    """
    return {name: load_prompt(f"factcheck_{name}", overrides) for name in TEMPLATES}


@dataclass(frozen=True, slots=True)
class Exhibit:
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

    def add(self, found: Sequence[Found], advocate: str) -> list[Exhibit]:
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
            exhibits.append(Exhibit(number, one.passage, one.excerpt, one.grade))
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
class Stage:
    """Where a debate takes place."""

    claim: str
    """As it is put before the models, with its prefix where there is one."""
    scale: Scale
    manner: Manner
    templates: Mapping[str, Prompt]
    encoder: Encoder | None
    """Attributes sentences to passages; None attributes nothing."""
    has_head: bool
    tell: Callable[[Event], None]
    """Told of everything as it happens."""
    sources: SourceBook = field(default_factory=SourceBook)

    def tell_sources(self) -> None:
        """Tell of the passages found since the last time, where there are any."""
        news = self.sources.news()
        if news:
            self.tell(Retrieval(news))

    def messages(self, template: str, **values: object) -> RenderedPrompt:
        """A filled template, the brief one where there is one; what it has in common with all others is added."""
        brief = f"{template}_brief" if self.manner.brief else template
        common = {
            "elicitation": self.manner.elicitation,
            "queries": self.manner.queries,
            "definitions": self.scale.definitions,
            "nei": self.scale.nei,
        }
        return self.templates.get(brief, self.templates[template]).render(**{**common, **values})

    def ground(
        self, text: str, cut: bool, exhibits: Sequence[Exhibit | PassageCitation]
    ) -> tuple[tuple[AnswerSentence, ...], int]:
        """Sentences with citations that exist, and how many were removed."""
        loops = self.manner.elicitation == "scored"
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
        words = " ".join(written(sentence) for sentence in sentences).split()
        if self.manner.elicitation == "schema":
            return " ".join(words)
        return " ".join(words[:_LONGEST_WORDS]) + (" ..." if len(words) > _LONGEST_WORDS else "")


def material(text: str) -> str:
    """Text of others on one line, so that it cannot pass for a line of the prompt."""
    return " ".join(text.split())


def provenance(passage: Passage) -> str:
    """Where a passage stands, for a prompt: report or title, chapter or heading, page, and year."""
    report = passage.report and report_name(passage.report, passage.source)
    where = material(replace(passage, url=None, report=report).citation)
    year = (passage.date or "")[:4]
    return f"{where}, {year}" if year and year not in where else where


def shown_sources(exhibits: Sequence[Exhibit]) -> list[dict[str, object]]:
    """Passages for a prompt."""
    return [{"number": one.number, "where": provenance(one.passage), "text": material(one.excerpt)} for one in exhibits]


def shown_quotations(quotations: Sequence[Quotation]) -> list[dict[str, object]]:
    """Quotations of a model for a prompt."""
    return [
        {
            "number": one.passage,
            "text": material(one.text),
            "side": one.side,
            "statements": " and ".join(map(str, one.statements)),
        }
        for one in quotations
        if one.side
    ]


def last_question(text: str) -> str | None:
    """What a model wrote up to its first question mark; None where that is no question worth asking."""
    line = material(text)
    match = re.match(r"[^?]*\?", line)
    question = match[0].strip(' "') if match else ""
    return question if len(re.findall(r"\w+", question)) >= 4 else None
