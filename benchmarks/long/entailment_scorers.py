"""Compare entailment scorers on held-out claims of Climate-FEVER, and on what they are for: answers to questions.

One command; results are kept as they come, and what is there is not computed again::

    python benchmarks/long/entailment_scorers.py --data ../shared/data --output entailment.json --head head.safetensors

``--cross-encoder`` adds the fine-tuned cross-encoder (a quarter of an hour on one thread), ``--verdict-head FILE`` a
head on hidden states that ``climassay factcheck train --hold-out 200`` made.
"""

import argparse
import csv
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from climassay.learning import auroc
from climassay.metrics.entailment import PromptedEntailment, Relations, RelationScorer, contradict
from climassay.metrics.entailment_head import (
    EntailmentHead,
    HeadEntailment,
    LabelledPair,
    read_pairs,
    sample_statements,
    split_pairs,
    supporting,
    synthetic_pairs,
    train_entailment,
    validate_entailment,
)
from climassay.metrics.facts import split_facts
from climassay.metrics.factual_accuracy import PromptedSupport
from climassay.models import load_model
from climassay.models.bundled import bundled_path
from climassay.models.contract import Encoder
from climassay.models.encoders import load_encoder
from climassay.primer import gold_questions
from climassay.statistics import proportion

HELD_OUT = 200
Scoring = Callable[[list[tuple[str, str]]], list[Relations | None]]


class Remembering:
    """An encoder that encodes every text once."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width
        self._known: dict[str, np.ndarray] = {}

    def encode(self, texts, *, role="passage", on_progress=None):  # noqa: ARG002 - the bundled encoder knows no roles
        """Unit vectors, shape [texts, width]."""
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.array([self._known[text] for text in texts], dtype=np.float32).reshape(len(texts), self.width)


class ResultCache:
    """A function of pairs as a scorer."""

    def __init__(self, name: str, relations: Scoring) -> None:
        self.name = name
        self.relations = relations

    def score(self, pairs):
        """P(premise entails statement) of each pair."""
        return [None if one is None else one.confirms for one in self.relations(pairs)]


def cosine_scorer(encoder: Encoder) -> ResultCache:
    def relations(pairs: list[tuple[str, str]]) -> list[Relations | None]:
        first, second = (encoder.encode([pair[side] for pair in pairs]) for side in (0, 1))
        near = np.clip((first * second).sum(axis=1), 0, 1).tolist()
        return [Relations(value / 2, (1 - value) / 2, 0.5) for value in near]

    return ResultCache("cosine", relations)


def statement_scorer(pairs: list[LabelledPair], encoder: Encoder) -> ResultCache:
    """Reads the statement only: what it reaches is known without any evidence."""
    from sklearn.linear_model import LogisticRegression

    fitted = LogisticRegression(C=5.0, max_iter=500).fit(
        encoder.encode([pair.statement for pair in pairs]), [pair.relation for pair in pairs]
    )

    def relations(asked: list[tuple[str, str]]) -> list[Relations | None]:
        return [Relations(*row) for row in fitted.predict_proba(encoder.encode([said for _, said in asked])).tolist()]

    return ResultCache("statement only", relations)


def cross_encoder_scorer(pairs: list[LabelledPair]) -> ResultCache:
    from cross_encoder import CrossEncoderConfig, train

    lesson = [*pairs, *synthetic_pairs(pairs)[0]]
    network = train(
        bundled_path("minilm"),
        [(pair.premise, pair.statement) for pair in lesson],
        [pair.relation for pair in lesson],
        CrossEncoderConfig(epochs=2),
    )

    def relations(asked: list[tuple[str, str]]) -> list[Relations | None]:
        logits = network.logits(asked)
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        return [Relations(*row) for row in (powers / powers.sum(axis=1, keepdims=True)).tolist()]

    return ResultCache("cross-encoder", relations)


def unknown_to_verdict_head(file: Path, pairs: Sequence[LabelledPair]) -> list[LabelledPair]:
    """Its own held-out claims: they were drawn among rows, not among different statements as here."""
    from climassay.factcheck import VerdictHead

    source = VerdictHead.load(file).provenance
    return [pair for pair in pairs if not source.knows(pair.statement)]


def verdict_head_scorer(file: Path, encoder: Encoder) -> ResultCache:
    from climassay.factcheck import VerdictHead

    head = VerdictHead.load(file).with_models(encoder, small())

    def relations(asked: list[tuple[str, str]]) -> list[Relations | None]:
        read = head.predict_evidence([(said, [premise]) for premise, said in asked])
        return [None if row is None else Relations(row[0][1], row[0][0], row[0][2]) for row in read]

    return ResultCache("hidden states", relations)


def on_choices(scorer: RelationScorer, questions: list[tuple[str, str, list[str], int]]) -> dict[str, object]:
    """How often the right option is the one the passage confirms most."""
    pairs = [(text, f"{question} {option}") for text, question, options, _ in questions for option in options]
    read = [one.confirms if one else 0.0 for one in scorer.relations(pairs)]
    right, at = 0, 0
    for _, _, options, answer in questions:
        right += int(np.argmax(read[at : at + len(options)])) == answer
        at += len(options)
    found = proportion(right, len(questions))
    chance = float(np.mean([1 / len(options) for _, _, options, _ in questions]))
    return {"n": found.n, "value": found.value, "interval": found.interval, "chance": chance}


def on_answers(scorer: RelationScorer, rows: list[dict[str, str]], encoder: Encoder) -> dict[str, float]:
    """Second persons' answers against reference answers: own or another question's; turned round; rated by people."""
    vectors = encoder.encode([row["question_en_origin"] for row in rows])
    answers = encoder.encode([row["answer_en_origin"] for row in rows])
    near = np.where(answers @ answers.T > 0.8, -1.0, vectors @ vectors.T)
    np.fill_diagonal(near, -1.0)
    others = near.argmax(axis=1)
    generator = np.random.default_rng(0)
    turned = [contradict(row["answer_en_validate"], generator) for row in rows]

    def read(pairs: list[tuple[str, str]]) -> np.ndarray:
        return np.array([one or (0, 0, 1) for one in scorer.relations(pairs)], dtype=float)

    own = read([(row["answer_en_origin"], row["answer_en_validate"]) for row in rows])
    foreign = read(
        [(row["answer_en_origin"], rows[place]["answer_en_origin"]) for row, place in zip(rows, others, strict=True)]
    )
    kept = [place for place, said in enumerate(turned) if said]
    against = read([(rows[place]["answer_en_origin"], turned[place]) for place in kept])
    truth = np.array([True] * len(own) + [False] * len(foreign))
    flipped = np.array([True] * len(kept) + [False] * len(kept))
    rated = [float(row["answer_equivalent"] or "nan") for row in rows]
    return {
        "n": len(rows),
        "own against another question's, AUROC": auroc(np.concatenate([own[:, 0], foreign[:, 0]]), truth),
        "turned": len(kept),
        "answer against its turned copy, AUROC": auroc(
            np.concatenate([supporting(own[kept]), supporting(against)]), flipped
        ),
        "correlation with rated equivalence": float(spearmanr(own[:, 0], rated, nan_policy="omit")[0]),
    }


def relevance(rows: list[dict[str, str]], encoder: Encoder) -> dict[str, float]:
    """Threshold of the cosine that best tells facts of an answer to a question from those of another's."""
    texts = encoder.encode([f"{row['question_en_origin']} {row['answer_en_origin']}" for row in rows])
    own, other = [], []
    for place, row in enumerate(rows):
        facts = split_facts(row["answer_en_validate"])
        if facts:
            vectors = encoder.encode(list(facts))
            own += (vectors @ texts[place]).tolist()
            other += (vectors @ texts[(place + len(rows) // 2) % len(rows)]).tolist()
    tried = np.arange(0.05, 0.9, 0.05)
    gains = [np.mean(np.array(own) >= cut) + np.mean(np.array(other) < cut) for cut in tried]
    best = float(tried[int(np.argmax(gains))])
    return {
        "threshold": best,
        "facts": len(own),
        "relevant kept": float(np.mean(np.array(own) >= best)),
        "irrelevant left out": float(np.mean(np.array(other) < best)),
        "AUROC": auroc(np.array(own + other), np.array([True] * len(own) + [False] * len(other))),
    }


def pira(folder: Path) -> tuple[list[tuple[str, str, list[str], int]], list[dict[str, str]]]:
    with (folder / "pira_mcq.csv").open(encoding="utf-8") as file:
        choices = []
        for row in csv.DictReader(file):
            letters = [letter for letter in "ABCDE" if row[letter].strip()]
            options = [row[letter] for letter in letters]
            choices.append((row["text"], row["question"], options, letters.index(row["alternative"].strip())))
    with (folder / "pira_qa.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["answer_en_origin"] and row["answer_en_validate"]]
    return choices, rows


def primer_choices() -> list[tuple[str, str, list[str], int]]:
    lines = [
        json.loads(line)
        for name in ("aerosols_clouds", "physical_climate")
        for line in (Path(primer_folder()) / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    ]
    return [
        (row["passage"], row["question"], row["options"], "abcde".index(row["answer"]))
        for row in lines
        if row["kind"] == "mcq"
    ]


def primer_folder() -> Path:
    from climassay.primer import question_paths

    assert gold_questions().questions
    return question_paths()[0].parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--head", type=Path, required=True, help="Where the chosen head is saved.")
    parser.add_argument("--verdict-head", type=Path)
    parser.add_argument("--cross-encoder", action="store_true")
    parser.add_argument("--prompted", type=int, default=100, help="Statements the language model is asked about.")
    args = parser.parse_args()
    results = json.loads(args.output.read_text(encoding="utf-8")) if args.output.is_file() else {}

    def keep(name: str, value: object) -> None:
        results[name] = value
        args.output.write_text(json.dumps(results, indent=1, default=str), encoding="utf-8")
        print(name, json.dumps(value, default=str), flush=True)

    encoder = Remembering(load_encoder())
    table = read_pairs(args.data / "climate_fever.jsonl")
    train, test = split_pairs(table.pairs, HELD_OUT, encoder, seed=0)
    if "choices" not in results or not args.head.is_file():
        trained = train_entailment(table, train, encoder)
        trained.head.save(args.head)
        keep("choices", [{**vars_of(choice), "merit": choice.merit} for choice in trained.choices])
    choices, rows = pira(args.data)
    if "relevance" not in results:
        keep("relevance", relevance(rows, encoder))
    few = sample_statements(test, args.prompted)
    makers: dict[str, tuple[Callable[[], RelationScorer], Sequence[LabelledPair]]] = {
        "cosine": (lambda: cosine_scorer(encoder), test),
        "statement only": (lambda: statement_scorer(train, encoder), test),
        "chosen head": (lambda: HeadEntailment(EntailmentHead.load(args.head), encoder), test),
        "SUPPORTS or REFUTES (paper's prompt)": (lambda: PromptedSupport(small()), few),
        "paper's prompt, calibrated": (lambda: PromptedSupport(small(), calibrated=True), few),
        "three relations, prompted": (lambda: PromptedEntailment(small(), calibrated=False), few),
        "three relations, prompted and calibrated": (lambda: PromptedEntailment(small()), few),
    }
    if args.verdict_head:
        unknown = unknown_to_verdict_head(args.verdict_head, table.pairs)
        makers["hidden states"] = (lambda: verdict_head_scorer(args.verdict_head, encoder), unknown)
    if args.cross_encoder:
        makers["cross-encoder"] = (lambda: cross_encoder_scorer(train), test)
    for name, (make, pairs) in makers.items():
        if name in results:
            continue
        started, scorer = time.process_time(), make()
        found = {"scores": vars_of(validate_entailment(pairs, scorer))}
        if (pairs is test and name != "statement only") or name == "hidden states":
            found["Pirá options"] = on_choices(scorer, choices)
            found["primer options"] = on_choices(scorer, primer_choices())
            found["Pirá answers"] = on_answers(scorer, rows, encoder)
        keep(name, {**found, "cpu_seconds": round(time.process_time() - started)})


def small():
    return load_model("local:smollm2", dtype="bfloat16")


def vars_of(value: object) -> dict[str, object]:
    from dataclasses import asdict

    return asdict(value)


if __name__ == "__main__":
    main()
