"""Claims with evidence whose last word says what the passage does to the claim."""

import numpy as np

from climassay.factcheck.evidence_mode import EvidenceClaim, EvidenceTable
from climassay.metrics import ClaimPassage

WORDS = {"refutes": "REFUTES", "supports": "SUPPORTS", "neither": "NOT_ENOUGH_INFO"}


def published_rule(labels):
    """Return Climate-FEVER's verdict for the labels of a claim's passages."""
    supports, refutes = "SUPPORTS" in labels, "REFUTES" in labels
    if supports and refutes:
        return "DISPUTED"
    return "SUPPORTS" if supports else "REFUTES" if refutes else "NOT_ENOUGH_INFO"


def evidence_claims(count=60, each=4, seed=0):
    """A table of claims whose passages end in what they do."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        words = rng.choice(list(WORDS), each, p=[0.25, 0.35, 0.4])
        text = f"Claim {number} about {'ice' if number % 2 else 'rain'} no {int(rng.integers(1000))}."
        evidence = tuple(
            ClaimPassage(f"Station {int(rng.integers(9999))} says it {word}", "", WORDS[word]) for word in words
        )
        rows.append(EvidenceClaim(text, evidence, published_rule([WORDS[word] for word in words])))
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
