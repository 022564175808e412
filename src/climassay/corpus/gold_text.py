"""Finding a verbatim gold text again in passages that may cut it in two."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from climassay.corpus.documents import Hit

REQUIRED_SHARE = 0.8
"""Part of the gold text's words that hits must contain, in order, to count as having found it."""
SHORTEST_RUN = 3
"""Words in a row that must agree; a shorter agreement is chance."""

_WORD = re.compile(r"\w+")


def words_of(text: str) -> tuple[str, ...]:
    """Words of a text, without case, punctuation and differences of typography (``CO₂`` and ``CO2`` are one)."""
    return tuple(_WORD.findall(unicodedata.normalize("NFKC", text).casefold()))


@dataclass(frozen=True, slots=True)
class GoldText:
    """The words of a text that is looked for."""

    words: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> "GoldText":
        """The gold text of a verbatim text."""
        return cls(words_of(text))

    def covered(self, words: Sequence[str]) -> frozenset[int]:
        """Positions of the gold text's words that stand in another text in the same order.

        Only runs of at least :data:`SHORTEST_RUN` words count (or of all words, where the gold text has fewer).
        """
        shared = sum((Counter(self.words) & Counter(words)).values())
        if shared < min(SHORTEST_RUN, len(self.words)):
            return frozenset()
        matcher = SequenceMatcher(None, words, self.words, autojunk=False)
        least = min(SHORTEST_RUN, len(self.words))
        blocks = (block for block in matcher.get_matching_blocks() if block.size >= least)
        return frozenset(position for block in blocks for position in range(block.b, block.b + block.size))

    def rank_in(self, hits: Iterable[Hit], share: float = REQUIRED_SHARE) -> int | None:
        """Rank at which the gold text has been found.

        Args:
            hits: Best first.
            share: Part of the words that must be there, in one hit or in hits that are neighbours in a document.

        Returns:
            The rank of the hit that completes it, None when no hit does.
        """
        needed = share * len(self.words)
        found: dict[tuple[str, int], frozenset[int]] = {}
        for hit in hits:
            passage = hit.passage
            here = self.covered(words_of(passage.text))
            found[passage.document_id, passage.position] = here
            before = found.get((passage.document_id, passage.position - 1), frozenset())
            after = found.get((passage.document_id, passage.position + 1), frozenset())
            if here and len(before | here | after) >= needed:
                return hit.rank
        return None


def locate(golds: Sequence[GoldText], texts: Iterable[Sequence[str]]) -> list[bool]:
    """Whether each gold text stands, at least in a run of eight of its words, in any of many texts.

    Args:
        golds: What is looked for.
        texts: Batches of texts, read once; at most one batch is held.
    """
    runs = [_runs(gold.words) for gold in golds]
    located = [False] * len(golds)
    for batch in texts:
        if all(located):
            break
        joined = " \0 ".join(" " + " ".join(words_of(text)) + " " for text in batch)
        for number, candidates in enumerate(runs):
            located[number] = located[number] or any(run in joined for run in candidates)
    return located


def _runs(words: Sequence[str], length: int = 8) -> list[str]:
    """The first, middle and last run of a text, each as words between spaces."""
    if len(words) <= length:
        return [f" {' '.join(words)} "]
    starts = sorted({0, (len(words) - length) // 2, len(words) - length})
    return [f" {' '.join(words[start : start + length])} " for start in starts]
