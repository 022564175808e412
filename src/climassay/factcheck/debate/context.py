"""State shared by all participants of a debate: claim, setup and numbered passages.

:func:`verify` checks the statements of every participant against the passages:

- A quotation with the number of another passage is moved to the passage in which it occurs. A quotation that occurs in
  none is removed and counted, as is a citation of an unknown passage.
- A likelihood is removed unless it agrees with the verdict and a sentence that supports the verdict states it or its
  opposite: a sentence quoted for that side, or the sentence nearest to the claim in a passage that is only cited. Terms
  elsewhere in a passage may belong to another finding.
- A verdict without a valid quotation or a citation that the model wrote becomes "not enough information"; the
  explanation remains. The first and last label of a scale need a quotation for their side or such a citation.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from climassay.corpus.documents import Passage, expand_report_name
from climassay.corpus.sentences import split_sentences
from climassay.factcheck.certainty import LIKELIHOODS, Levels, Likelihood, fits_verdict
from climassay.factcheck.debate.assessment import Assessment
from climassay.factcheck.debate.requests import FoundPassage
from climassay.factcheck.debate.setup import DebateSetup
from climassay.factcheck.scales import Scale
from climassay.factcheck.transcript import (
    Activity,
    ActivityKind,
    Event,
    FollowUp,
    PassageCitation,
    Quotation,
    Retrieval,
    Subclaim,
    cited_numbers,
    merge_quotations,
)
from climassay.grounding.citations import MODELS_MARK, AnswerSentence, describe_document, format_sentence, ground_text
from climassay.grounding.quotations import OMISSION, is_quoted
from climassay.models.contract import Encoder
from climassay.prompts import Prompt, RenderedPrompt, load_prompt

TEMPLATES = ("split", "grade", "advocate", "mediator")
MIN_MOVED_WORDS = 5
"""Minimum length, in words, of a quotation that is attributed to a different passage from the one named by the model. A
shorter quotation may occur there by chance."""


def load_templates(overrides: Path | None = None) -> dict[str, Prompt]:
    """Load the prompt templates of a debate, by role.

    Args:
        overrides: Folder of templates that replace the bundled ones.

    Raises:
        InputError: The folder does not exist.
    """
    return {name: load_prompt(f"factcheck_{name}", overrides) for name in TEMPLATES}


@dataclass(frozen=True, slots=True)
class RetrievedPassage:
    """A passage in an advocate's prompt."""

    number: int
    passage: Passage
    excerpt: str
    grade: int | None = None
    """Relevance grade; None if not graded."""


class PassageRegistry:
    """Registry of the passages retrieved in a debate, numbered in order of first retrieval."""

    def __init__(self) -> None:
        self._entries: dict[tuple[str, str], PassageCitation] = {}
        self._reported: dict[int, PassageCitation] = {}

    def add(self, results: Sequence[FoundPassage], advocate: str) -> list[RetrievedPassage]:
        """Register search results of an advocate and return them with their numbers."""
        passages = []
        for item in results:
            entry = self._entries.get(item.key)
            if entry is None:
                number = len(self._entries) + 1
                entry = PassageCitation(number, item.passage, item.collection, item.cosine, (advocate,), item.grade)
            else:
                cosines = [cosine for cosine in (entry.cosine, item.cosine) if cosine is not None]
                grades = [grade for grade in (entry.grade, item.grade) if grade is not None]
                entry = replace(
                    entry,
                    cosine=max(cosines, default=None),
                    advocates=tuple(dict.fromkeys([*entry.advocates, advocate])),
                    grade=max(grades, default=None),
                )
            self._entries[item.key] = entry
            passages.append(RetrievedPassage(entry.number, item.passage, item.excerpt, item.grade))
        return passages

    def citations(self) -> tuple[PassageCitation, ...]:
        """Return all passages, ordered by number."""
        return tuple(sorted(self._entries.values(), key=lambda entry: entry.number))

    def take_changes(self) -> tuple[PassageCitation, ...]:
        """Return the passages added or changed since the last call, ordered by number."""
        changes = tuple(entry for entry in self.citations() if self._reported.get(entry.number) != entry)
        self._reported.update((entry.number, entry) for entry in changes)
        return changes


@dataclass(frozen=True)
class DebateContext:
    """State of one debate, shared by its participants."""

    setup: DebateSetup
    claim: str
    """Text of the claim as used in prompts, including the prefix if there is one."""
    subclaims: tuple[Subclaim, ...]
    """Statements of the claim as used in prompts, each with the prefix if there is one."""
    on_event: Callable[[Event], None]
    """Callback that receives every event."""
    sources: PassageRegistry = field(default_factory=PassageRegistry)
    activities: dict[str, Activity] = field(default_factory=dict)
    """Current activity of each participant."""
    left_out: dict[str, int] = field(default_factory=dict)
    """Number of passages that did not fit the model's context window, by advocate; the maximum over all rounds."""

    def report_activity(self, participant: str, doing: ActivityKind, round_number: int) -> None:
        """Emit an event if the activity of a participant has changed."""
        activity = Activity(participant, doing, round_number)
        if self.activities.get(participant) != activity:
            self.activities[participant] = activity
            self.on_event(activity)

    def report_sources(self) -> None:
        """Emit an event with the passages found or changed since the last such event, if there are any."""
        if changes := self.sources.take_changes():
            self.on_event(Retrieval(changes))

    def render(self, template: str, **values: object) -> RenderedPrompt:
        """Render a template with its values and those common to all templates."""
        scale = self.setup.scale
        return self.setup.templates[template].render(
            queries=self.setup.profile.queries, definitions=scale.definitions, nei=scale.nei, **values
        )

    def ground(
        self, text: str, passages: Sequence[RetrievedPassage | PassageCitation]
    ) -> tuple[tuple[AnswerSentence, ...], int]:
        """Split a text into sentences and remove invalid citations; return the sentences and the number of removals."""
        return ground_text(
            text,
            truncated=False,
            sources=passages,
            encoder=self.setup.encoder,
            context=self.claim,
            remove_loops=False,
            documents=lambda: [describe_document(source.passage) for source in self.sources.citations()],
        )


# ---------------------------------------------------------------------------------------------- values of templates


def join_lines(text: str) -> str:
    """Return a text on one line, so that it cannot imitate a line of the prompt."""
    return " ".join(text.split())


def format_location(passage: Passage) -> str:
    """Format the location of a passage for a prompt: report or title, chapter or heading, page and year."""
    report = passage.report and expand_report_name(passage.report, passage.source)
    location = join_lines(replace(passage, url=None, report=report).citation)
    year = (passage.date or "")[:4]
    return f"{location}, {year}" if year and year not in location else location


def format_explanation(sentences: Sequence[AnswerSentence]) -> str:
    """Format an explanation with its citations on one line, for the prompt of another participant."""
    return join_lines(" ".join(format_sentence(sentence, MODELS_MARK) for sentence in sentences))


def statement_values(subclaims: Sequence[Subclaim]) -> list[dict[str, object]]:
    """Return the statements of a claim as template values; empty if there is only one."""
    if len(subclaims) < 2:
        return []
    return [{"number": subclaim.number, "text": join_lines(subclaim.text)} for subclaim in subclaims]


def quotation_values(quotations: Sequence[Quotation]) -> list[dict[str, object]]:
    """Return quotations as template values."""
    return [
        {
            "number": quotation.passage,
            "text": join_lines(quotation.text),
            "side": quotation.side,
            "statements": " and ".join(map(str, quotation.statements)),
        }
        for quotation in quotations
    ]


def follow_up_values(follow_ups: Sequence[FollowUp]) -> list[dict[str, str]]:
    """Return questions with their replies as template values."""
    return [
        {
            "asker": follow_up.asker,
            "to": follow_up.to,
            "question": join_lines(follow_up.question),
            "reply": format_explanation(follow_up.reply) or "(no reply)",
        }
        for follow_up in follow_ups
    ]


# ----------------------------------------------------------------------------------------------------- verification

_NEGATIONS: Mapping[Likelihood, Likelihood] = {
    "exceptionally unlikely": "virtually certain",
    "extremely unlikely": "extremely likely",
    "very unlikely": "very likely",
    "unlikely": "likely",
    "about as likely as not": "about as likely as not",
}
OPPOSITES: Mapping[Likelihood, Likelihood] = {**_NEGATIONS, **{second: first for first, second in _NEGATIONS.items()}}
"""Likelihood of a claim for each likelihood of its negation; "more likely than not" has no counterpart."""
# Longer terms come first. A "likely range" is an interval of a quantity, not the likelihood of a finding.
_TERM = re.compile(
    rf"(?<!\bnot )\b({'|'.join(sorted(LIKELIHOODS, key=len, reverse=True))})\b"
    r"(?!\s+(?:to be in the )?ranges?\b|\s+[-+\u2212\u2013]?\d)",
    re.IGNORECASE,
)


class VerifiedAssessment(NamedTuple):
    """A verified assessment, with the field names of :class:`~climassay.factcheck.transcript.AdvocateOpinion`."""

    verdict: str | None
    """Verdict; "not enough information" if no passage supports the model's verdict."""
    explanation: tuple[AnswerSentence, ...]
    removed_citations: int
    quotations: tuple[Quotation, ...]
    removed_quotations: int
    withheld: str | None = None
    levels: Levels | None = None


def verify(
    context: DebateContext,
    assessment: Assessment,
    statement: str,
    passages: Sequence[RetrievedPassage | PassageCitation],
    *,
    quotations: Sequence[Quotation] = (),
    allows_own_knowledge: bool = False,
) -> VerifiedAssessment:
    """Verify the citations, quotations, verdict and likelihood of an assessment.

    Args:
        context: State of the debate.
        assessment: Assessment by a model.
        statement: Statement that the model judged.
        passages: Passages that may be cited and quoted.
        quotations: Verified quotations that support the verdict, in addition to those of the assessment.
        allows_own_knowledge: Whether the verdict may be based on the model's own knowledge.
    """
    scale, verdict = context.setup.scale, assessment.verdict
    explanation, removed_citations = context.ground(assessment.explanation, passages)
    texts = {item.number: item.passage.text for item in passages}
    located_quotations = [_locate_quotation(item, texts) for item in assessment.quotations]
    valid_quotations = [item for item in located_quotations if item is not None]
    removed_quotations = len(assessment.quotations) - len(valid_quotations)
    all_quotations = merge_quotations([*quotations, *valid_quotations])
    result = VerifiedAssessment(verdict, explanation, removed_citations, all_quotations, removed_quotations)
    if verdict is None or verdict == scale.nei:
        return result
    if not allows_own_knowledge and not _supports_verdict(scale, verdict, explanation, all_quotations):
        return result._replace(verdict=scale.nei, withheld=verdict)
    levels = assessment.levels
    if levels is not None and levels.likelihood is not None:
        is_correct = scale.is_correct(verdict)
        numbers = cited_numbers(explanation, all_quotations)
        cited_passages = [item for item in passages if item.number in numbers]
        sentences = supporting_sentences(context, statement, is_correct, cited_passages, all_quotations)
        if not is_likelihood_supported(levels.likelihood, is_correct, sentences):
            levels = replace(levels, likelihood=None)
    return result._replace(levels=levels)


def _locate_quotation(quotation: Quotation, texts: Mapping[int, str]) -> Quotation | None:
    """Return a quotation with the number of the passage that contains it; None if no passage does."""
    if is_quoted(quotation.text, texts.get(quotation.passage, "")):
        return quotation
    if len(quotation.text.split()) < MIN_MOVED_WORDS:
        return None
    number = next((number for number, text in texts.items() if is_quoted(quotation.text, text)), None)
    return None if number is None else replace(quotation, passage=number)


def _supports_verdict(
    scale: Scale, verdict: str, explanation: Sequence[AnswerSentence], quotations: Sequence[Quotation]
) -> bool:
    """Return whether a verdict is supported by a quotation, or by a citation in the model's own answer.

    The first and the last label of the scale are not supported by a quotation for the opposite side.
    """
    if any(sentence.origin == "model" and sentence.citations for sentence in explanation):
        return True
    if verdict not in (scale.labels[0], scale.labels[-1]):
        return bool(quotations)
    side = "for" if scale.is_correct(verdict) else "against"
    return any(quotation.side == side for quotation in quotations)


def is_likelihood_supported(likelihood: Likelihood, is_correct: bool, sentences: Sequence[str]) -> bool:
    """Return whether a likelihood fits the verdict's side, and a sentence states the likelihood or its opposite."""
    if not fits_verdict(likelihood, is_correct):
        return False
    stated_terms = {match[1].lower() for text in sentences for match in _TERM.finditer(" ".join(text.split()))}
    return likelihood in stated_terms or OPPOSITES.get(likelihood) in stated_terms


def supporting_sentences(
    context: DebateContext,
    statement: str,
    is_correct: bool,
    cited: Sequence[RetrievedPassage | PassageCitation],
    quotations: Sequence[Quotation],
) -> list[str]:
    """Return the sentences that support a verdict.

    Args:
        context: State of the debate.
        statement: Statement that the verdict judges.
        is_correct: Whether the verdict is on the correct side of the scale.
        cited: Passages that the verdict cites or quotes.
        quotations: Quotations of the verdict.

    Returns:
        Quotations for the verdict's side, the sentences that contain them and, for each cited passage without a
        quotation, its sentence nearest to the statement.
    """
    results = []
    for source in cited:
        passage_quotations = [quotation for quotation in quotations if quotation.passage == source.number]
        for quotation in passage_quotations:
            if is_correct == (quotation.side == "for"):
                # The sentences that contain a part of the quotation state more than the part.
                pieces = OMISSION.split(quotation.text.replace("\u2026", "..."))
                parts = [part for piece in pieces for part in split_sentences(piece) or [piece]]
                sentences = split_sentences(source.passage.text)
                results.append(quotation.text)
                results += [text for text in sentences if any(is_quoted(part, text) for part in parts)]
        if not passage_quotations and context.setup.encoder is not None:
            results.append(nearest_sentence(statement, source.passage.text, context.setup.encoder))
    return results


def nearest_sentence(statement: str, text: str, encoder: Encoder) -> str:
    """Return the sentence of a text that is most similar to a statement."""
    sentences = split_sentences(text) or [text]
    return sentences[int((encoder.encode(sentences) @ encoder.encode([statement])[0]).argmax())]
