"""The published results of ClimaQA as data: Tables 3 and 5 (gold), 6 and 7 (silver) of the paper.

They stand beside ours for orientation only: the questions, the prompts' words and the books are others, so that nothing
can be compared item by item, and no paired test is possible.
"""

import csv
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from climassay.errors import InputError
from climassay.metrics.registry import METRICS
from climassay.questions import Kind

Dataset = Literal["gold", "silver"]
OVERALL = "overall"

GENERATOR = "gpt-3.5-turbo"
"""The model that wrote the published questions (section 4.2)."""
QUESTIONS: Mapping[tuple[Dataset, Kind], Mapping[str, int]] = {
    ("gold", "mcq"): {"base": 126, "reasoning": 72, "hypothetical": 47, OVERALL: 245},
    ("gold", "freeform"): {"base": 54, "reasoning": 52, "hypothetical": 55, OVERALL: 161},
    ("gold", "cloze"): {OVERALL: 160},
    ("silver", "mcq"): {OVERALL: 200},
    ("silver", "freeform"): {OVERALL: 200},
    ("silver", "cloze"): {OVERALL: 200},
}
"""Questions behind each column: Table 2, and for silver the 200 a task of appendix A.2.2.

The paper does not print the levels of the silver sample.
"""
_TABLE = Path(__file__).parent / "published" / "climaqa.csv"


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """One number of the paper's tables."""

    dataset: Dataset
    model: str
    setting: str
    """``default``, ``few-shot``, ``rag-source``, ``rag-held-out``, ``continued-pretraining``, ``fine-tuned``,
    ``long-context-source``, ``long-context-held-out``."""
    task: Kind
    metric: str
    """Key of :data:`~climassay.evaluation.results.METRICS`; the paper's BLEU counts characters, hence ``bleu_char``."""
    level: str
    """``base``, ``reasoning``, ``hypothetical`` or ``overall``."""
    value: float
    """Shares from 0 to 1 for accuracy and exact match (printed as per cent), else as printed."""

    @property
    def n(self) -> int | None:
        """Questions behind it, where the paper says."""
        return QUESTIONS[self.dataset, self.task].get(self.level)


@cache
def _all_scores() -> tuple[PublishedScore, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as lines:
        return tuple(_score(row) for row in csv.DictReader(lines))


def _score(row: Mapping[str, str]) -> PublishedScore:
    scale = 100.0 if METRICS[row["metric"]].binary else 1.0
    return PublishedScore(
        cast(Dataset, row["dataset"]),
        row["model"],
        row["setting"],
        row["task"],
        row["metric"],
        row["level"],
        float(row["value"]) / scale,
    )


def published_models() -> tuple[str, ...]:
    """Names of all models of the published tables, in their order."""
    return tuple(dict.fromkeys(score.model for score in _all_scores()))


def published_scores(dataset: Dataset = "gold", models: Collection[str] = ()) -> tuple[PublishedScore, ...]:
    """The published numbers, in the order of the paper's tables.

    Args:
        dataset: ``gold`` (Tables 3 and 5) or ``silver`` (Tables 6 and 7).
        models: Only these models; all where none is named.

    Raises:
        InputError: A model that the paper does not have.
    """
    unknown = sorted(set(models) - set(published_models()))
    if unknown:
        raise InputError(
            f"The published tables have no model {', '.join(unknown)}: they have {', '.join(published_models())}."
        )
    return tuple(score for score in _all_scores() if score.dataset == dataset and (not models or score.model in models))
