"""Datasets to annotate, for tests."""

from climassay.generation import DatasetStore, Decision, Wording
from climassay.generation.dataset_store import StoredDraft
from generated_drafts import draft

DATASET = "silver"
VALID = {"accepted": True}
WRONG = {"accepted": False, "reasons": ("wrong answer",)}
EDITED = {"accepted": True, "wording": Wording("What grows?", "The particle.")}


def begin(records, drafts, dataset=DATASET):
    """Store drafts as the line does."""
    store = DatasetStore(records)
    store.begin(dataset, {"seed": 0})
    store.save(dataset, [StoredDraft(one, "book", number) for number, one in enumerate(drafts)])
    return store


def plain(count, kind="freeform"):
    """Drafts that nothing stands against."""
    return [draft(number, kind) for number in range(count)]


def judged(number, p_valid, accepted=True):
    """A draft with a validator's word."""
    return draft(number).with_decisions(Decision("validate", "features", accepted, score=p_valid))
