"""References and candidates as every metric takes them."""

from collections.abc import Sequence

from climassay.errors import InputError

References = str | Sequence[str | Sequence[str]]
"""One reference an item, or several; a single string is the reference of a single item."""
Candidates = str | Sequence[str]
"""One candidate an item; a single string is a single item."""
Pair = tuple[tuple[str, ...], str]
"""All references of an item, and its candidate."""


def answer_pairs(references: References, candidates: Candidates) -> list[Pair]:
    """References and candidates, item by item.

    Args:
        references: For each item a reference, or several of which the best match counts.
        candidates: For each item a candidate; it may be empty.

    Raises:
        InputError: Their numbers differ, there are none, or an item has no reference or an empty one.
    """
    wanted = [references] if isinstance(references, str) else list(references)
    given = [candidates] if isinstance(candidates, str) else list(candidates)
    if len(wanted) != len(given):
        raise InputError(f"{len(wanted)} references cannot be compared with {len(given)} candidates.")
    if not wanted:
        raise InputError("A metric needs at least one reference and candidate.")
    pairs = [
        ((each,) if isinstance(each, str) else tuple(each), candidate)
        for each, candidate in zip(wanted, given, strict=True)
    ]
    for number, (several, _) in enumerate(pairs, start=1):
        if not several or not all(reference.strip() for reference in several):
            raise InputError(f"Item {number} has an empty reference: nothing can be compared with it.")
    return pairs
