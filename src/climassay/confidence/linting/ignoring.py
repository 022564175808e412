"""Comments that silence rules: ``<!-- climassay: ignore wide-range -->``."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from climassay.confidence.linting.draft import Draft
from climassay.confidence.linting.finding import Remark

_COMMENT = re.compile(r"<!--\s*climassay:\s*(?P<what>ignore-file|ignore)\b(?P<rules>[^<>]{0,500}?)\s*-->")
UNKNOWN_IGNORE = "unknown-ignore"
"""Rule of a comment that names a rule which does not exist: it would silence nothing, without a word."""


@dataclass(frozen=True, slots=True)
class Silence:
    """A part of a text where rules are silent."""

    start: int
    end: int
    rules: frozenset[str]
    """Empty for all of them."""

    def covers(self, rule: str, offset: int) -> bool:
        """Whether a finding of a rule at a place is not wanted."""
        return self.start <= offset < self.end and (not self.rules or rule in self.rules)


def silences(draft: Draft, known: Collection[str]) -> tuple[list[Silence], list[Remark]]:
    """What the comments of a text silence.

    A comment speaks about the paragraph, item or cell that it stands in; one on a line of its own about the next.
    ``ignore-file`` speaks about the whole file.

    Returns:
        The silent parts, and a remark on each comment that names an unknown rule.
    """
    found: list[Silence] = []
    remarks: list[Remark] = []
    for match in _COMMENT.finditer(draft.text) if not draft.paged else ():
        names = [name for name in re.split(r"[\s,]+", match["rules"]) if name]
        wrong = [name for name in names if name not in known]
        if wrong:
            remarks.append(
                Remark(*match.span(), f"There is no rule {wrong[0]!r}, so that this comment does not silence it.")
            )
        rules = frozenset(name for name in names if name in known)
        if names and not rules:
            continue
        if match["what"] == "ignore-file":
            found.append(Silence(0, len(draft.text), rules))
            continue
        around = _block_of(draft, *match.span())
        if around is not None:
            found.append(Silence(*around, rules))
    return found, remarks


def _block_of(draft: Draft, start: int, end: int) -> tuple[int, int] | None:
    for block in draft.blocks:
        holds = block.start <= start and end <= block.end
        # A block in which a comment is all there is has no prose.
        if holds and draft.mask[block.start : block.end].strip("\x00 \t\r\n"):
            return block.start, block.end
        if block.start >= end and draft.mask[block.start : block.end].strip("\x00 \t\r\n"):
            return block.start, block.end
    return None
