"""What an assessment rests on, looked up in the passages: a verdict that nothing bears is not given.

- A quotation that does not stand in its passage is removed and counted, as a citation of no passage is.
- A likelihood stands only where a sentence that bears the verdict states it, or its opposite, and where it takes the
  side of the verdict; otherwise it is not quantified. Such sentences are those that are quoted for the verdict's side
  and, of a passage that is cited without being quoted, the one nearest to the claim: a term elsewhere in a passage may
  belong to another finding.
- A verdict without one quotation or citation that holds becomes "not enough information". What was written stays.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from climassay.corpus.sentences import split_sentences
from climassay.factcheck.assessment import Assessment
from climassay.factcheck.levels import LIKELIHOODS, takes_side
from climassay.factcheck.stage import Exhibit, Stage
from climassay.factcheck.transcript import (
    Levels,
    Likelihood,
    PassageCitation,
    Quotation,
    cited_numbers,
    merge_quotations,
)
from climassay.grounding.citing import AnswerSentence
from climassay.grounding.quoting import LEFT_OUT, is_quoted
from climassay.models.contract import Encoder

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


@dataclass(frozen=True, slots=True)
class Borne:
    """An assessment after everything in it has been looked up."""

    verdict: str | None
    """"Not enough information" where nothing bears the verdict that was given."""
    withheld: str | None
    """That verdict."""
    levels: Levels | None
    explanation: tuple[AnswerSentence, ...]
    removed_citations: int
    quotations: tuple[Quotation, ...]
    removed_quotations: int


def look_up(
    stage: Stage,
    assessment: Assessment,
    statement: str,
    exhibits: Sequence[Exhibit | PassageCitation],
    *,
    quotations: Sequence[Quotation] = (),
    in_house: bool = False,
) -> Borne:
    """Look everything up that an assessment says of its passages.

    Args:
        stage: Where.
        assessment: One with a verdict.
        statement: What is judged.
        exhibits: The passages that may be cited and quoted.
        quotations: Others that bear the verdict, already looked up: of the single statements of a claim.
        in_house: Whether what is said may rest on the model's own knowledge, as that of an advocate without passages
            does.
    """
    scale = stage.scale
    explanation, removed_citations = stage.ground(assessment.explanation, assessment.cut, exhibits)
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
    if given is None or given == scale.nei:
        return Borne(given, None, None, explanation, removed_citations, quoted, removed_quotations)
    if not numbers and stage.manner.elicitation == "scored" and exhibits and stage.encoder is not None:
        # Very small models neither cite nor quote: of the relevant passages that their options were weighed on, the
        # nearest sentence is looked up.
        nearest, support = nearest_sentence(statement, exhibits, stage.encoder)
        quoted, numbers = (*quoted, nearest), (nearest.passage,)
        explanation = explanation or (_quoting(nearest, support),)
    if not numbers and not in_house:
        return Borne(scale.nei, given, None, explanation, removed_citations, quoted, removed_quotations)
    levels = assessment.levels
    if levels is not None and levels.likelihood is not None:
        right = scale.is_correct(given)
        bearing = bearing_sentences(stage, statement, right, [one for one in exhibits if one.number in numbers], quoted)
        holds = likelihood_holds(levels.likelihood, right, bearing)
        levels = levels if holds else replace(levels, likelihood=None)
    return Borne(given, None, levels, explanation, removed_citations, quoted, removed_quotations)


def likelihood_holds(likelihood: Likelihood, right: bool, texts: Sequence[str]) -> bool:
    """Whether "it is ... that the claim is true" agrees with a verdict and is stated in a text, or its opposite is.

    Args:
        likelihood: That the claim is true.
        right: The side of the verdict.
        texts: The sentences that bear the verdict.
    """
    if not takes_side(likelihood, right):
        return False
    stated = {match[1].lower() for text in texts for match in _TERM.finditer(" ".join(text.split()))}
    return likelihood in stated or OPPOSITES.get(likelihood) in stated


def bearing_sentences(
    stage: Stage,
    statement: str,
    right: bool,
    cited: Sequence[Exhibit | PassageCitation],
    quotations: Sequence[Quotation],
) -> list[str]:
    """The sentences that bear a verdict.

    Args:
        stage: Its encoder finds the sentence of a passage without a quotation; without one there is none.
        statement: What is judged.
        right: The side of the verdict.
        cited: The passages that are cited or quoted.
        quotations: Those that hold; one for the other side bears nothing.
    """
    found = []
    for one in cited:
        quoted = [quotation for quotation in quotations if quotation.passage == one.number]
        for quotation in quoted:
            if quotation.side is None or right == (quotation.side == "for"):
                found += [quotation.text, *_sentences_around(quotation.text, one.passage.text)]
        if not quoted and stage.encoder is not None:
            found.append(nearest_sentence(statement, [one], stage.encoder)[0].text)
    return found


def _sentences_around(quotation: str, text: str) -> list[str]:
    """The sentences of a text that hold a sentence, or a part between dots, of a quotation from it."""
    parts = [
        part
        for piece in LEFT_OUT.split(quotation.replace("\u2026", "..."))
        for part in split_sentences(piece) or [piece]
    ]
    return [sentence for sentence in split_sentences(text) if any(is_quoted(part, sentence) for part in parts)]


def nearest_sentence(
    statement: str, exhibits: Sequence[Exhibit | PassageCitation], encoder: Encoder
) -> tuple[Quotation, float]:
    """The sentence of the passages that is nearest to a statement, and how near: their cosine."""
    found = [(one.number, text) for one in exhibits for text in split_sentences(one.passage.text) or [one.passage.text]]
    cosines = encoder.encode([text for _, text in found]) @ encoder.encode([statement])[0]
    number, text = found[int(cosines.argmax())]
    return Quotation(number, text.strip(), None), float(cosines.max())


def _quoting(quotation: Quotation, support: float) -> AnswerSentence:
    """A quotation in place of an explanation that a model did not write."""
    shown = quotation.text.rstrip(".")
    return AnswerSentence(f"A passage says: \u201c{shown}\u201d.", (quotation.passage,), "attributed", False, support)
