"""Fit the judge of parts of divided sentences that no rule refuses to parts that a reader judged.

Cross-validation deals whole sections of reports. Most parts were judged before rules were mended on them; those of the
reading "development 2" had no verdict before, count three times, and precision is given for these alone. Paragraphs
without a verdict, and those of the readings "set aside 2", are never looked at.

    python benchmarks/long/confidence_sureness.py [--data ../shared/data] [--write]

``--write`` stores coefficients and threshold in ``src/climassay/confidence/extraction/sureness.json``.
"""

import argparse
import csv
import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from climassay.confidence.extraction import ExtractOptions, extract, normalised
from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.extraction.extracting import SentencePart, divided_parts
from climassay.confidence.extraction.sureness import features
from climassay.confidence.marks import find_tags
from climassay.confidence.statement import Statement
from climassay.corpus.readers.file_types import read
from climassay.learning import LinearModel, fit_linear, group_folds, splits_of
from climassay.learning.splits import FloatArray, IntArray, held_out
from confidence_extraction import DIVISIONS, PARAGRAPHS
from confidence_extraction import share as share_of_counts

STORED = Path(__file__).parents[2] / "src" / "climassay" / "confidence" / "extraction" / "sureness.json"
TESTED = ("set aside 2", "set aside 2, after mending", "one level")
FRESH = "development 2"
TIMES = 3
"""How often a fresh part counts."""
REGULARISATIONS = (10.0, 30.0, 100.0)
FEWEST = 5
"""Parts that have a feature, for it to be used."""
DIGITS = 2
RUNS = 2
KEPT = (0.99, 0.98, 0.97, 0.96, 0.95, 0.93)
"""Shares of the fresh parts that thresholds keep."""
CHOSEN = 0.97


class Judged(NamedTuple):
    """A part, what it is made of, and its place."""

    statement: Statement
    part: SentencePart
    code: str
    """Hash of its words, made to stand alone."""

    @property
    def place(self) -> tuple[str, str, str]:
        """Report, chapter and paragraph."""
        return str(self.statement.working_group), str(self.statement.chapter), str(self.statement.paragraph_id)


def divided(statements: list[Statement]) -> Iterator[Judged]:
    """The parts with a level of sentences with several parts."""
    done = set()
    for one in statements:
        if one.parts == 1 or one.tag is None or one.sentence_id in done:
            continue
        done.add(one.sentence_id)
        for part in divided_parts(one.sentence, find_tags(one.sentence)):
            if part.levelled:
                words = normalised(clean_sentence(clean_sentence(part.text)))
                yield Judged(one, part, hashlib.sha256(words.encode()).hexdigest()[:12])


def verdicts(reading: str | None = None) -> dict[str, str]:
    """Verdicts by the hash of the words judged; of one reading, or of all but the one that tests."""
    with DIVISIONS.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file, delimiter="\t") if row["verdict"] != "unsure"]
    return {
        row["text_sha256"]: row["verdict"]
        for row in rows
        if (row["read"] == reading if reading else row["read"] not in TESTED)
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--write", action="store_true")
    given = parser.parse_args()
    statements = extract(
        read(given.data / PARAGRAPHS).documents, ExtractOptions(acronyms="none", paragraph_tags="never")
    )
    known, fresh_codes = verdicts(), verdicts(FRESH)
    with DIVISIONS.open(encoding="utf-8") as file:
        places = {
            (row["report"], row["chapter"], row["paragraph"])
            for row in csv.DictReader(file, delimiter="\t")
            if row["read"] not in TESTED
        }
    parts = [
        one for one in divided(statements) if one.part.ruled and one.code in known and one.place in places
    ]  # fmt: skip
    right = np.array([known[one.code] == "right" for one in parts], dtype=np.int64)
    fresh = np.array([one.code in fresh_codes for one in parts])
    of_part = [features(one.part.form) for one in parts]
    counts = Counter(name for found in of_part for name in found)
    names = sorted(name for name, count in counts.items() if count >= FEWEST)
    rows = np.array([[found.get(name, 0.0) for name in names] for found in of_part])
    sections = [" > ".join((*one.place[:2], *one.statement.headings[:2])) for one in parts]
    times = np.where(fresh, TIMES, 1)

    def fit(places: IntArray, regularisation: float) -> LinearModel:
        again = np.repeat(places, times[places])
        return fit_linear([csr_array(rows[again])], right[again], 2, regularisation=regularisation, standardise=False)

    def kept(scores: FloatArray, share: float) -> tuple[float, float]:
        """Share of right ones among the best fresh parts, and their lowest score."""
        least = float(np.quantile(scores[fresh], 1 - share))
        return float(right[fresh & (scores >= least)].mean()), least

    scores = {}
    for regularisation in REGULARISATIONS:
        runs = [
            held_out(
                splits_of(group_folds(sections, 10, seed=seed)),
                lambda train, regularisation=regularisation: fit(train, regularisation),
                lambda model, test: model.log_odds([csr_array(rows[test])]),
                len(parts),
            )
            for seed in range(RUNS)
        ]
        scores[regularisation] = np.mean(runs, axis=0)
    best = max(scores, key=lambda one: np.mean([kept(scores[one], share)[0] for share in KEPT]))
    report = {
        "parts": len(parts),
        "wrong": int((1 - right).sum()),
        "fresh": share_of_counts(int(right[fresh].sum()), int(fresh.sum())),
        "kept": {one: {share: kept(found, share)[0] for share in KEPT} for one, found in scores.items()},
        "regularisation": best,
        "features": len(names),
    }
    if given.write:
        model = fit(np.arange(len(parts)), best)
        contrast = model.weights[:, 1] - model.weights[:, 0]
        least = 1 / (1 + np.exp(-kept(scores[best], CHOSEN)[1]))
        stored = {
            "source": "benchmarks/long/confidence_sureness.py",
            "trained_on": f"{len(parts)} parts judged by a reader (benchmarks/long/confidence_divisions.tsv), IPCC AR6",
            "least_probability": round(float(least), 3),
            "coefficients": {
                "intercept": round(float(np.diff(model.bias)[0]), DIGITS),
                **{name: round(float(value), DIGITS) for name, value in zip(names, contrast, strict=True)},
            },
        }
        STORED.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    json.dump(report, sys.stdout, indent=1)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
