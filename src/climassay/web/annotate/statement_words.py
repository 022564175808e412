"""The words of a cloze statement, as an annotator chooses one of them to be left out."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from climassay.generation.masking import words


@dataclass(frozen=True, slots=True)
class StatementPart:
    """A stretch of a statement: a word that can be chosen, or what stands between such words."""

    text: str
    choosable: bool = False
    """Whether it can be left out; of a word that stands twice only the first one can, since the gap goes there."""
    chosen: bool = False
    """Whether it is chosen already: by the annotator before, or by the masker."""
    hinted: bool = False
    """Whether it is a term that a gap makes sense for: what the Tab key goes through."""


def statement_parts(
    statement: str, chosen: str | None = None, hinted: Collection[str] = ()
) -> tuple[StatementPart, ...]:
    """Cut a statement into words that can be chosen and what stands between them.

    Args:
        statement: Nothing masked.
        chosen: The term to begin with, as it stands in the statement; one of several words is a part of its own.
        hinted: Terms that a gap makes sense for.

    Returns:
        Parts that give the statement when they are joined. Leaving out a choosable part's text leaves out just it.
    """
    spans = {word.start: word.end for word in words(statement)}
    at = _first_place(statement, chosen)
    if at is not None and chosen:
        # A term of several words, chosen by an expert elsewhere, takes the place of those words.
        spans = {start: end for start, end in spans.items() if end <= at or start >= at + len(chosen)}
        spans[at] = at + len(chosen)
    parts: list[StatementPart] = []
    done = 0
    for start, end in sorted(spans.items()):
        term = statement[start:end]
        if start > done:
            parts.append(StatementPart(statement[done:start]))
        first = _first_place(statement, term) == start
        parts.append(StatementPart(term, first, start == at, first and term in hinted))
        done = end
    if done < len(statement):
        parts.append(StatementPart(statement[done:]))
    return tuple(parts)


def _first_place(statement: str, term: str | None) -> int | None:
    """Where the gap goes when a term is left out; see ``Draft.as_question``."""
    found = re.search(rf"(?<!\w){re.escape(term)}(?!\w)", statement) if term else None
    return None if found is None else found.start()
