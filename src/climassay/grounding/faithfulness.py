"""Do cited passages entail the sentences they are cited for?"""

from collections.abc import Sequence
from dataclasses import replace

from climassay.grounding.citing import AnswerSentence, NumberedPassage
from climassay.metrics import Entailment

ENTAILED = 0.5
"""Probability from which a citation counts as faithful: entailment is then likelier than all else together."""


def faithfulness(
    sentences: Sequence[AnswerSentence], sources: Sequence[NumberedPassage], entailment: Entailment
) -> tuple[tuple[AnswerSentence, ...], float | None]:
    """Measure every citation, one call of ``entailment`` for all of them.

    Args:
        sentences: Sentences with citations of the sources.
        sources: The passages that citations name.
        entailment: What measures.

    Returns:
        The sentences with their ``entailment`` filled in, and the share of faithful citations
        (:func:`faithful_share`).
    """
    texts = {source.number: source.passage.text for source in sources}
    pairs = [(texts[number], sentence.text) for sentence in sentences for number in sentence.citations]
    scores = iter(entailment.score(pairs))
    measured = tuple(
        replace(sentence, entailment=tuple(next(scores) for _ in sentence.citations)) for sentence in sentences
    )
    return measured, faithful_share(measured)


def faithful_share(sentences: Sequence[AnswerSentence]) -> float | None:
    """Share of the measured citations whose passage entails the sentence (:data:`ENTAILED`); None without any."""
    scores = [score for sentence in sentences for score in sentence.entailment if score is not None]
    return sum(score >= ENTAILED for score in scores) / len(scores) if scores else None
