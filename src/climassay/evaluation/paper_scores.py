"""Published results of ClimaQA: Tables 3 and 5 (gold), 6 and 7 (silver) of the paper.

They appear next to ours for orientation only: prompts and books differ, and the answers are not published, so that no
paired test can be made. :func:`has_published_questions` says whether at least the questions are those of the paper.
"""

import csv
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal, cast

from climassay.errors import InputError
from climassay.evaluation.scores import OVERALL
from climassay.metrics.registry import METRICS
from climassay.questions import Kind, Question

Dataset = Literal["gold", "silver"]

PUBLISHED_QUESTIONS: Mapping[tuple[Dataset, Kind], Mapping[str, int]] = {
    ("gold", "mcq"): {"base": 126, "reasoning": 72, "hypothetical": 47, OVERALL: 245},
    ("gold", "freeform"): {"base": 54, "reasoning": 52, "hypothetical": 55, OVERALL: 161},
    ("gold", "cloze"): {OVERALL: 160},
    ("silver", "mcq"): {OVERALL: 200},
    ("silver", "freeform"): {OVERALL: 200},
    ("silver", "cloze"): {OVERALL: 200},
}
"""Number of questions behind each published score, by dataset and kind, then by level.

The numbers are those of Table 2 for gold, and the 200 per task of appendix A.2.2 for silver. For silver, the paper does
not print the numbers by level.
"""
CLIMAQA_SUBSETS: Mapping[Dataset, str] = {
    "gold": "hub:UCSD-GENIE/ClimaQA/Gold",
    "silver": "hub:UCSD-GENIE/ClimaQA/Silver",
}
"""Names of the published question sets on the hub, as the dataset's card lists them."""
_ALL_QUESTIONS: Mapping[tuple[Dataset, Kind], Mapping[str | None, int]] = {
    ("gold", "mcq"): {"base": 126, "reasoning": 72, "hypothetical": 47},
    ("gold", "freeform"): {"base": 54, "reasoning": 52, "hypothetical": 55},
    ("gold", "cloze"): {None: 160},
    ("silver", "mcq"): {"base": 501, "reasoning": 264, "hypothetical": 235},
    ("silver", "freeform"): {"base": 507, "reasoning": 241, "hypothetical": 252},
    ("silver", "cloze"): {None: 1000},
}
"""Number of questions in the complete datasets, by dataset and kind, then by level (Table 2)."""
_TABLE = Path(__file__).parent / "published" / "climaqa.csv"


@dataclass(frozen=True, slots=True)
class PublishedScore:
    """A score printed in the tables of the ClimaQA paper."""

    dataset: Dataset
    model: str
    setting: str
    """Name of the setting: ``default``, ``few-shot``, ``rag-source``, ``rag-held-out``, ``continued-pretraining``,
    ``fine-tuned``, ``long-context-source`` or ``long-context-held-out``."""
    task: Kind
    metric: str
    """Name of the metric in :data:`~climassay.metrics.METRICS`; the paper's BLEU counts characters: ``bleu_char``."""
    level: str
    """Level ``base``, ``reasoning``, ``hypothetical`` or ``overall``."""
    value: float
    """Proportion from 0 to 1 for accuracy and exact match, which the paper prints in per cent; else the printed
    value."""

    @property
    def n(self) -> int | None:
        """Number of questions from which the score was computed; None if the paper does not print it."""
        return PUBLISHED_QUESTIONS[self.dataset, self.task].get(self.level)


@cache
def _load_scores() -> tuple[PublishedScore, ...]:
    with _TABLE.open(encoding="utf-8", newline="") as file:
        return tuple(
            PublishedScore(
                cast(Dataset, row["dataset"]),
                row["model"],
                row["setting"],
                row["task"],
                row["metric"],
                row["level"],
                float(row["value"]) / (100.0 if METRICS[row["metric"]].binary else 1.0),
            )
            for row in csv.DictReader(file)
        )


def published_models() -> tuple[str, ...]:
    """Return the names of all models in the published tables, in the order of the tables."""
    return tuple(dict.fromkeys(score.model for score in _load_scores()))


def published_scores(dataset: Dataset = "gold", models: Collection[str] = ()) -> tuple[PublishedScore, ...]:
    """Return the published scores, in the order of the paper's tables.

    Args:
        dataset: ``gold`` (Tables 3 and 5) or ``silver`` (Tables 6 and 7).
        models: Models to include; all models if empty.

    Raises:
        InputError: A model is not in the paper.
    """
    unknown_models = sorted(set(models) - set(published_models()))
    if unknown_models:
        raise InputError(
            f"The published tables have no model {', '.join(unknown_models)}: they have "
            f"{', '.join(published_models())}."
        )
    return tuple(
        score for score in _load_scores() if score.dataset == dataset and (not models or score.model in models)
    )


def has_published_questions(dataset: Dataset, questions: Sequence[Question], files: Collection[str] = ()) -> bool:
    """Return whether the questions of a benchmark are those of the paper.

    This is the case if all files belong to the dataset on the hub, or if each kind and level has as many questions as
    in the complete dataset.

    Args:
        dataset: ``gold`` or ``silver``.
        questions: Questions of a benchmark.
        files: Files of the benchmark as the user named them.
    """
    name = CLIMAQA_SUBSETS[dataset]
    folder = f"{name.rpartition('/')[0]}/climaqa_{dataset}/"
    if files and all(file == name or file.startswith((f"{name}/", folder)) for file in files):
        return True
    counts = Counter((question.kind, question.level) for question in questions)
    kinds = {kind for kind, _ in counts}
    return bool(kinds) and all(
        {level: count for (question_kind, level), count in counts.items() if question_kind == kind}
        == _ALL_QUESTIONS.get((dataset, kind))
        for kind in kinds
    )
