"""What the automatic steps made of a draft: whether it waits for experts, and what they are told."""

from typing import Literal

from climassay.generation.draft import Draft

Standing = Literal["usable", "doubted", "failed", "away"]
"""``usable``: nothing stands against it; ``doubted``: only checks, self-consistency or the validator do; ``failed``:
the call failed and may be made again; ``away``: nobody is asked, because it was never written, repeats another draft,
has no word to mask, or an expert has decided elsewhere."""

_DOUBTS = ("screen", "consistency", "validate")
_REASON_OF_CHECK = {
    "context reference": "context reference",
    "figure reference": "context reference",
    "not self-contained": "context reference",
    "unsupported answer": "not enough information",
    "not entailed": "not enough information",
    "off topic": "bad context",
}
"""What an expert would call the fault that a check of the screening finds."""


def standing_of(draft: Draft) -> Standing:
    """How a draft stands before experts look at it."""
    if draft.error is not None:
        return "failed"
    if not draft.written or any(one.step == "expert" and one.accepted is not None for one in draft.decisions):
        return "away"
    against = {one.step for one in draft.decisions if one.accepted is False}
    if not against:
        return "usable"
    return "doubted" if against <= set(_DOUBTS) else "away"


def preselected_reasons(draft: Draft) -> tuple[str, ...]:
    """Reasons for rejection that the automatic steps found, in an expert's words."""
    found: dict[str, None] = {}
    for one in draft.decisions:
        if one.accepted is False and one.step == "consistency":
            found["self-inconsistency"] = None
        elif one.accepted is False and one.step == "screen" and one.reason in _REASON_OF_CHECK:
            found[_REASON_OF_CHECK[one.reason]] = None
    return tuple(found)


def validator_confidence(draft: Draft) -> float | None:
    """P(valid) by the last validator of the line that gave one."""
    scores = (one.score for one in reversed(draft.decisions) if one.step == "validate")
    return next((score for score in scores if score is not None), None)


def suggested_term(draft: Draft) -> str | None:
    """The term of a cloze statement that a masker chose; by word statistics where none has looked at it."""
    if not draft.type.gap:
        return None
    if draft.wording.answer:
        return draft.wording.answer
    from climassay.generation.masking import StatisticsMasker

    [choice] = StatisticsMasker(passage.text for passage in draft.passages).choose([draft.wording.question])
    return None if choice is None else choice.term


def term_candidates(draft: Draft) -> tuple[str, ...]:
    """Words of a cloze statement that can be masked, in its order."""
    if not draft.type.gap:
        return ()
    from climassay.generation.masking import candidates

    return tuple(word.term for word in candidates(draft.wording.question))
