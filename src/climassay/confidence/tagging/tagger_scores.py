"""Scores of taggers on the mixes of levels that their users meet, and of tags by the values of a column."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from climassay.confidence.tagging.labelled import TAGGER_LEVELS
from climassay.confidence.tagging.tagger import PUBLISHED, evaluate_on_mixes
from climassay.confidence.vocabulary import LEVELS, Level
from climassay.learning.evaluation import HeldOutScores, comparison_table, evaluate
from climassay.learning.text_classifier import ComparedClassifier, TrainingTexts
from climassay.reporting import Table, percent, percent_interval

_MIXES = {
    "natural": "Levels as frequent as in these statements: for the text of reports, tagged as it comes",
    "equal": "All levels equally frequent: for single statements, and where rare levels have to be found",
    "climatex": "ClimateX's test mix, 50:100:100:50: for comparison with published figures",
}


@dataclass(frozen=True, slots=True)
class TaggerScores:
    """Scores of one or several taggers on the same statements, by name of the tagger and of the mix of levels."""

    by_tagger: Mapping[str, Mapping[str, HeldOutScores]]

    @classmethod
    def compare(cls, candidates: Sequence[ComparedClassifier], training: TrainingTexts, seed: int) -> "TaggerScores":
        """Score the held-out probabilities of cross-validated taggers."""
        return cls(
            {
                candidate.spec.name: evaluate_on_mixes(
                    training.truth, candidate.probabilities, training.groups, seed=seed
                )
                for candidate in candidates
            }
        )

    @property
    def mixes(self) -> list[str]:
        """Names of the mixes on which the taggers are scored."""
        return list(next(iter(self.by_tagger.values())))

    def to_list(self) -> list[dict[str, Any]]:
        """Return the scores of each tagger as JSON-serialisable values."""
        return [
            {"tagger": name, **{mix: scores.to_dict() for mix, scores in by_mix.items()}}
            for name, by_mix in self.by_tagger.items()
        ]

    def tables(self) -> Iterator[Table]:
        """Yield a table of scores for each mix of levels; the one for ClimateX's mix also has the published scores."""
        for mix, title in _MIXES.items():
            if mix not in self.mixes:
                continue
            table = comparison_table([(name, by_mix[mix]) for name, by_mix in self.by_tagger.items()], title)
            if mix == "climatex":
                published = tuple(
                    (f"published: {name}", f"{value:.3f}", "", "", "") for name, value in PUBLISHED.items()
                )
                table = replace(table, rows=table.rows + published)
            yield table

    def notes(self) -> tuple[str, ...]:
        """Return a note if there are too few statements for mixes other than the natural one."""
        return (
            ()
            if "equal" in self.mixes
            else (f"Other mixes need statements of each level: {', '.join(TAGGER_LEVELS)}.",)
        )


def score_by_value(tagged_items: Sequence[tuple[Level | None, Level, str]], seed: int) -> dict[str, HeldOutScores]:
    """Score tags overall (``all``), and by value of a column if there are several values.

    Each item of ``tagged_items`` has the authors' level, the predicted tag, and the value of the column.
    """
    values = sorted({value for _, _, value in tagged_items})
    results = {}
    for name in (*(values if len(values) > 1 else ()), "all"):
        pairs = [
            (LEVELS.index(level), LEVELS.index(tag))
            for level, tag, value in tagged_items
            if level and name in (value, "all")
        ]
        truth, answers = map(list, zip(*pairs, strict=True))
        results[name] = evaluate(truth, np.eye(len(LEVELS))[answers], LEVELS, seed=seed)
    return results


def make_accuracy_table(scores: Mapping[str, HeldOutScores], column_name: str | None) -> Table:
    """Return a table of accuracy and macro-F1 by value of a column, with the majority-class baseline."""
    rows = [
        (
            name,
            str(group_scores.n),
            percent(group_scores.accuracy.value),
            percent_interval(group_scores.accuracy.interval),
            percent(group_scores.constant.value),
            percent(group_scores.macro_f1.value),
        )
        for name, group_scores in scores.items()
    ]
    return Table.of(
        "Tags that are the authors' (%)",
        (column_name or "", "n", "right", "95% interval", "most frequent level", "macro-F1"),
        rows,
        strong=[len(rows) - 1],
        note="A level that no anchor has, such as very low, is never given and counts as wrong.",
    )
