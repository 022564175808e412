"""Whether a logistic head over pairs of question and passage puts better passages first than the search does.

Features are the cosine, the BM25 score, the score of hybrid search (each as a share of the question's greatest), the
share of the question's words that the passage has, and its length. The head is trained on the first set, in five folds
of whole groups (reports), regularisation 1, nothing chosen; then the head trained on all of that set is tried on the
others. Each is compared with hybrid search on the same questions: nDCG@10, intervals over groups.

    python benchmarks/reranking.py --workspace FOLDER TRAINED_ON TRIED_ON...

A set is ``COLLECTION,FILE,PASSAGE,RELEVANCE,GROUP``, with ``+within`` after the collection where each question is asked
in the report that its group names; ``RELEVANCE`` may be empty.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.corpus import Collection, QuestionColumns, read_gold_questions
from climassay.corpus.gold_texts import GoldText, find_relevant_passages, split_words
from climassay.corpus.retrieval_evaluation import ndcg
from climassay.learning import fit_linear, group_folds
from climassay.statistics import bootstrap_interval
from climassay.workspace import Workspace

DEPTH = 10
CANDIDATES = 50


class Candidates(NamedTuple):
    """The passages from which the best are chosen for one question."""

    group: str
    hybrid: NDArray[np.float64]
    features: NDArray[np.float64]
    grades: NDArray[np.float64]
    ideal: tuple[float, ...]

    def ndcg(self, scores: NDArray[np.float64]) -> float:
        """Of the candidates in the order of these scores, shape [candidates]."""
        order = np.argsort(-scores, kind="stable")
        return ndcg(self.grades[order].tolist(), self.ideal, DEPTH)


def read_set(workspace: Workspace, told: str) -> list[Candidates]:
    name, file, passage, relevance, group = told.split(",")
    name, _, within = name.partition("+")
    question = "question_en_origin" if "pira" in file else None
    pairs, _ = read_gold_questions(
        Path(file), QuestionColumns(question, passage or None, relevance or None, group or None)
    )
    collection = Collection.open(workspace, name)
    passages = {one.id: one for one in collection.iterate_passages()}
    judged = find_relevant_passages(
        [GoldText.from_text(pair.passage) for pair in pairs], [pair.relevance for pair in pairs], passages.values()
    )
    relevant: dict[tuple[str, str], dict[str, float]] = {}
    for pair, grades in zip(pairs, judged, strict=True):
        known = relevant.setdefault((pair.question, pair.group), {})
        for item, grade in grades.items():
            if not within or passages[item].report == pair.group:
                known[item] = max(grade, known.get(item, 0.0))
    return [
        candidates(collection, text, unit or text, grades, unit if within else None)
        for (text, unit), grades in relevant.items()
    ]


def candidates(
    collection: Collection, question: str, group: str, relevant: dict[str, float], report: str | None
) -> Candidates:
    [hits] = collection.search_many([question], k=CANDIDATES, report=report)
    [by_words] = collection.search_many([question], k=1000, mode="bm25", report=report)
    words = {hit.passage.id: hit.score for hit in by_words}
    asked = set(split_words(question))
    rows = np.array(
        [
            (hit.cosine or 0.0, words.get(hit.passage.id, 0.0), hit.score,
             len(asked & set(split_words(hit.passage.text))) / len(asked), np.log(len(hit.passage.text)))
            for hit in hits
        ]
    )  # fmt: skip
    rows[:, :3] /= np.maximum(rows[:, :3].max(axis=0), 1e-9)
    grades = np.array([relevant.get(hit.passage.id, 0.0) for hit in hits])
    return Candidates(group, np.array([hit.score for hit in hits]), rows, grades, tuple(relevant.values()))


def reranked(train: Sequence[Candidates], test: Sequence[Candidates]) -> list[float]:
    truth = np.concatenate([one.grades > 0 for one in train]).astype(np.int64)
    model = fit_linear([np.concatenate([one.features for one in train])], truth, 2)
    return [one.ndcg(model.probabilities([one.features])[:, 1]) for one in test]


def tell(name: str, questions: Sequence[Candidates], scores: Sequence[float]) -> None:
    hybrid = np.array([one.ndcg(one.hybrid) for one in questions])
    units = np.unique([one.group for one in questions], return_inverse=True)[1]
    gaps = np.array(scores) - hybrid
    sums = np.stack([np.bincount(units, gaps), np.bincount(units)], axis=1)
    low, high = bootstrap_interval(sums, lambda rows: float(rows[:, 0].sum() / rows[:, 1].sum()))
    print(
        f"{name}: hybrid {hybrid.mean():.3f}, reranked {np.mean(scores):.3f}, difference {gaps.mean():+.3f} "
        f"({low:+.3f} to {high:+.3f}), n = {len(questions)} in {len(sums)} groups"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--workspace", type=Path, required=True)
    parser.add_argument("sets", nargs="+")
    options = parser.parse_args()
    first, *others = (read_set(Workspace.open(options.workspace), told) for told in options.sets)
    folds = group_folds([one.group for one in first], 5)
    scores = np.zeros(len(first))
    for fold in np.unique(folds):
        train = [one for one, other in zip(first, folds, strict=True) if other != fold]
        scores[folds == fold] = reranked(train, [one for one, other in zip(first, folds, strict=True) if other == fold])
    tell(options.sets[0].partition(",")[0], first, scores.tolist())
    for told, questions in zip(options.sets[1:], others, strict=True):
        tell(told.partition(",")[0], questions, reranked(first, questions))


if __name__ == "__main__":
    main()
