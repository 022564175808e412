"""Drafts for the tests of generation, written by hand in few words."""

from climassay.generation import Decision, Draft, Origin, SourcePassage, Wording
from climassay.questions import Kind, Level

PASSAGE = SourcePassage(
    "book-0", "Sulfate scatters sunlight. Ozone oxidises sulfur dioxide.", "book", "A book", "Aerosols"
)


def make_draft(
    name: str = "q1",
    kind: Kind = "freeform",
    *,
    level: Level = "base",
    question: str = "What does sulfate do to sunlight?",
    answer: str = "It scatters sunlight.",
    options: tuple[str, ...] = (),
    correct: int | None = None,
    passages: tuple[SourcePassage, ...] = (PASSAGE,),
    decisions: tuple[Decision, ...] = (),
    error: str | None = None,
) -> Draft:
    """A draft of a kind; only what a test is about has to be said."""
    origin = Origin("local:writer", "f" * 64, (("generate_freeform", "0" * 64),), 7)
    return Draft(name, kind, level, Wording(question, answer, options, correct), passages, origin, decisions, error)


def rejected(reason: str = "wrong answer", step: str = "screen", by: str = "check") -> Decision:
    """A decision against a draft."""
    return Decision(step, by, False, reason)  # type: ignore[arg-type]
