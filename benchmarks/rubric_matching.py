"""Does an encoder find the criteria that two rubrics of one question share?

For 12 of the 24 bundled long-form questions ``data/rubric_rewordings.json`` has a second rubric, written in other words
and with the criterion of the first that each stands for, or none. The threshold was chosen on every second question;
the others are held out. The last column says what is matched where nothing is shared: between every second criterion of
one rubric and the rest of it, in all 24 rubrics.

    python benchmarks/rubric_matching.py
"""

import json
from pathlib import Path

import numpy as np

from climassay.generation.annotation.long_answers import MIN_CRITERION_COSINE, matched_criteria
from climassay.models.encoders import load_encoder
from climassay.questions import LONG_ANSWERS, read_questions
from climassay.statistics import bootstrap_interval

REWORDINGS = Path(__file__).parent / "data" / "rubric_rewordings.json"
THRESHOLDS = (0.4, 0.45, 0.5, 0.55, 0.6, 0.65, 0.7)


def f1(counts: np.ndarray) -> float:
    """From right matches, matches made and true pairs, a row for each question."""
    right, made, true = counts.sum(axis=0)
    return float(2 * right / (made + true))


def main() -> None:
    rubrics = {one.id: [criterion.text for criterion in one.rubric] for one in read_questions(LONG_ANSWERS).questions}
    second = json.loads(REWORDINGS.read_text(encoding="utf-8"))
    encoder = load_encoder()
    vectors = {name: encoder.encode(texts) for name, texts in rubrics.items()}
    cosines = {name: encoder.encode([text for text, _ in rows]) @ vectors[name].T for name, rows in second.items()}
    halves = [one[::2] @ one[1::2].T for one in vectors.values()]
    print("| least cosine | questions | pairs | found | right among matched | F1 (95% interval) | matched in halves |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for threshold in THRESHOLDS:
        for part, names in (("chosen on", list(second)[::2]), ("held out", list(second)[1::2])):
            counts = []
            for name in names:
                true = {(place, same) for place, (_, same) in enumerate(second[name]) if same is not None}
                made = set(matched_criteria(cosines[name], threshold))
                counts.append((len(true & made), len(made), len(true)))
            table = np.array(counts, dtype=np.float64)
            right, made, true = table.sum(axis=0)
            low, high = bootstrap_interval(table, f1)
            floor = np.mean([2 * len(matched_criteria(one, threshold)) / sum(one.shape) for one in halves])
            used = " (used)" if threshold == MIN_CRITERION_COSINE else ""
            print(
                f"| {threshold}{used} | {part} | {true:.0f} | {right / true:.0%} | {right / max(made, 1):.0%} | "
                f"{f1(table):.2f} ({low:.2f} to {high:.2f}) | {floor:.0%} |"
            )


if __name__ == "__main__":
    main()
