"""Drafts for tests of what comes after writing."""

from hypothesis import strategies as st

from climassay.generation import Decision, Draft, Origin, SourcePassage, Wording

TEXT = (
    "The fraction of incoming sunlight that the planet sends back to space is called the planetary albedo and it "
    "follows from clouds and ice and deserts and from the angle at which the sunlight comes in"
)


def passage(number: int = 0, **fields) -> SourcePassage:
    """A passage of a book; each number has a text of its own that overlaps no other."""
    words = [f"{word}{number}" if place % 5 == 4 else word for place, word in enumerate(TEXT.split())]
    return SourcePassage(
        **{
            "id": f"p{number}",
            "text": " ".join(words),
            "document_id": f"d{number % 2}",
            "document": f"Book {number % 2}",
        }
        | fields
    )


def draft(number: int = 0, kind: str = "freeform", **fields) -> Draft:
    """A draft of a kind, written from the passage of its number."""
    options = ("the albedo", "the emissivity", "the optical depth", "the insolation") if kind == "mcq" else ()
    wording = {
        "mcq": Wording(f"Which share number {number} is sent back?", "the albedo", options, 0),
        "freeform": Wording(f"What happens to particle {number}?", "It grows."),
        "cloze": Wording(f"Number {number} of the planets has a high albedo.", "albedo"),
    }[kind]
    origin = Origin("local:test", "f" * 64, (("generate", "a" * 64),), number, dtype="float32")
    return Draft(
        **{"id": f"q{number:04d}", "kind": kind, "level": "base", "wording": wording, "passages": (passage(number),)}
        | {"origin": origin}
        | fields
    )


def rejected(one: Draft, reason: str = "copied", step: str = "screen") -> Draft:
    """The draft with a decision against it."""
    return one.with_decisions(Decision(step, reason, accepted=False, reason=reason))


_words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)
_word = st.from_regex(r"[a-z]{3,10}", fullmatch=True)
_wordings = {
    "freeform": st.builds(Wording, _words, _words),
    "mcq": st.lists(_words, min_size=4, max_size=4, unique=True).flatmap(
        lambda options: st.integers(0, 3).flatmap(
            lambda correct: st.builds(
                Wording, _words, st.just(options[correct]), st.just(tuple(options)), st.just(correct)
            )
        )
    ),
    "cloze": _word.flatmap(
        lambda term: st.builds(Wording, st.just(f"All {term} is here."), st.sampled_from([term, ""]))
    ),
}
_decisions = st.builds(
    Decision,
    step=st.sampled_from(["screen", "consistency", "expert", "validate", "deduplicate"]),
    by=_words,
    accepted=st.sampled_from([True, True, False, None]),
    reason=st.text(max_size=8),
    detail=st.text(max_size=8),
    score=st.none() | st.floats(0, 1),
    replaced=st.none() | _wordings["freeform"],
)
_passages = st.builds(
    SourcePassage,
    id=_words,
    text=_words,
    document_id=_words,
    document=_words,
    section=st.text(max_size=8),
    url=st.none() | _words,
    licence=st.none() | _words,
    similarity=st.none() | st.floats(0, 1),
)


@st.composite
def drafts(draw, kinds=("mcq", "freeform", "cloze")):
    """Lists of drafts of any content, ids apart from each other."""
    made = []
    for number in range(draw(st.integers(1, 6))):
        kind = draw(st.sampled_from(kinds))
        error = draw(st.sampled_from([None, None, None, "cut off"]))
        made.append(
            Draft(
                id=f"q{number}",
                kind=kind,
                level="base" if kind == "cloze" else draw(st.sampled_from(["base", "reasoning", "hypothetical"])),
                wording=Wording("") if error else draw(_wordings[kind]),
                passages=tuple(draw(st.lists(_passages, min_size=1, max_size=3))),
                origin=Origin(draw(_words), draw(_words), ((draw(_words), "a"),), draw(st.integers(0, 9))),
                decisions=tuple(draw(st.lists(_decisions, max_size=3))),
                error=error,
            )
        )
    return made
