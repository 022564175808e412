"""What the YAML files name as ``process_results``: from a row and what the model wrote to scores."""

from collections.abc import Mapping, Sequence
from typing import Any

from climassay.integrations.rows import question_from_row
from climassay.integrations.scoring import score_answer


def letter_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Accuracy by the option letter that the model wrote; an answer that names none is wrong."""
    return _scores(doc, results)


def freeform_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """BLEU over characters and words, BERTScore, and factual accuracy by the bundled judge."""
    return _scores(doc, results)


def cloze_results(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    """Exact match, raw and normalised, and phrase similarity by the bundled encoder."""
    return _scores(doc, results)


def _scores(doc: Mapping[str, Any], results: Sequence[str]) -> dict[str, float]:
    return score_answer(question_from_row(doc), results[0])
