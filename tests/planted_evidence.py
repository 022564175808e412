"""A model in whose states stands what a passage does to a claim, in one layer only, and claims made for it."""

import numpy as np

from climassay.factcheck.evidence_mode import Evidence, EvidenceClaim, EvidenceTable
from climassay.factcheck.verdict_head import ANSWERS, EVIDENCE_LABELS, VERDICT_LABELS, rule_verdict
from climassay.models.contract import Activations, Work

WIDTH = 10
TELLING_LAYER = 2
WORDS = {"refutes": "REFUTES", "supports": "SUPPORTS", "neither": "NOT_ENOUGH_INFO"}


class EvidenceModel:
    """The state of an answer points one way where the answer is true of the passage: its last word is the truth."""

    name, dtype, token_budget, layers = "local:evidence", "float32", 100, 4

    def __init__(self, fingerprint="ab" * 32, noise=0.6):
        self.fingerprint, self.noise = fingerprint, noise
        self.work = Work(0, 0)
        self.read = []

    def render(self, messages, assistant_prefix=""):
        return messages[-1].content

    def harvest(self, requests, *, layers=(-1,), token_budget=None, on_result=None):
        found = [self._one(request, layers) for request in requests]
        for place, activations in enumerate(found):
            if on_result is not None:
                on_result(place, activations)
        return found

    def _one(self, request, layers):
        text = request.messages[-1].content
        passage = text.partition("Passage: ")[2].partition("\n")[0]
        self.read.append(passage)
        if "unreadable" in passage:
            return Activations.failed("The prompt is too long.")
        rng = np.random.default_rng(sum(ord(letter) * place for place, letter in enumerate(text)))
        common = rng.normal(0, 3, WIDTH)
        states = common + rng.normal(0, self.noise, (len(request.options), len(layers), WIDTH))
        if TELLING_LAYER in layers:
            truth = ANSWERS.index(" " + passage.split()[-1])
            states[truth, layers.index(TELLING_LAYER), 0] += 4
        return Activations(states.astype(np.float32), (-1.0,) * len(request.options), 1)

    def option_logprobs(self, requests, *, on_result=None):
        raise AssertionError("nothing is asked")

    def generate(self, requests, *, on_result=None):
        raise AssertionError("nothing is asked")

    def close(self):
        """Nothing to give back."""


def evidence_claims(count=60, each=4, seed=0, scrambled=False):
    """A table of claims whose passages end in what they do; ``scrambled`` labels have nothing to do with it."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        words = rng.choice(list(WORDS), each, p=[0.25, 0.35, 0.4])
        told = rng.permutation(list(WORDS))[:1].repeat(each) if scrambled else words
        labels = rng.choice(list(WORDS.values()), each) if scrambled else [WORDS[word] for word in told]
        text = f"Claim {number} about {'ice' if number % 2 else 'rain'} no {int(rng.integers(1000))}."
        evidence = tuple(
            Evidence(f"Station {int(rng.integers(9999))} says it {word}", "", str(label))
            for word, label in zip(words, labels, strict=True)
        )
        verdict = rule_verdict(np.array([EVIDENCE_LABELS.index(one.label) for one in evidence]))
        rows.append(EvidenceClaim(text, evidence, VERDICT_LABELS[verdict]))
    return EvidenceTable("planted", "ef" * 32, tuple(rows), ())


def evidence_rows(count):
    """Claims with two passages each, as the rows of a file."""
    return [
        {
            "claim": row.text,
            "claim_label": row.label,
            "evidences": [{"evidence": one.text, "evidence_label": one.label} for one in row.evidence],
        }
        for row in evidence_claims(count, each=2).rows
    ]
