"""At which similarity does a passage support a sentence of an answer? Chooses ``SUPPORT_COSINE`` of grounding.

Every sentence of the primer's freeform reference answers is compared with the sentences of the passage it rests on
(right) and of all other questions' passages (wrong).

    python benchmarks/attribution.py [--json]
"""

import json
import sys

import numpy as np

from climassay import primer
from climassay.corpus.sentences import split_sentences
from climassay.grounding.citations import SUPPORT_COSINE
from climassay.models.encoders import load_encoder
from climassay.statistics import proportion

THRESHOLDS = (0.5, 0.55, 0.6, 0.65, 0.7)


def main() -> None:
    encoder = load_encoder("local:minilm")
    questions = primer.gold_questions().of_kind("freeform")
    passages = [encoder.encode(split_sentences(question.context or "")) for question in questions]
    right, wrong = [], []
    for number, question in enumerate(questions):
        answer = encoder.encode(split_sentences(question.answer))
        for other, passage in enumerate(passages):
            best = (answer @ passage.T).max(axis=1)
            (right if other == number else wrong).extend(best.tolist())
    rows = []
    for threshold in THRESHOLDS:
        supported = proportion(int((np.array(right) >= threshold).sum()), len(right))
        mistaken = proportion(int((np.array(wrong) >= threshold).sum()), len(wrong))
        rows.append((threshold, supported, mistaken))
    if "--json" in sys.argv:
        keys = ("threshold", "right_passage", "wrong_passage")
        data = [dict(zip(keys, (t, s.value, m.value), strict=True)) for t, s, m in rows]
        print(json.dumps({"n_right": len(right), "n_wrong": len(wrong), "rows": data}))
        return
    print(f"{len(right)} sentences with their own passage, {len(wrong)} with others; in use: {SUPPORT_COSINE}")
    for threshold, supported, mistaken in rows:
        print(
            f"cosine >= {threshold:.2f}: own passage {100 * supported.value:.1f}% "
            f"({100 * supported.interval.low:.0f} to {100 * supported.interval.high:.0f}), "
            f"other passage {100 * mistaken.value:.2f}%"
        )


if __name__ == "__main__":
    main()
