"""Contexts: what a question is written from, the seed passage first and then related passages of other works."""

import re
from collections.abc import Callable, Sequence

from climassay.corpus import RELEVANCE_COSINE, Hit, Passage, SearchMode
from climassay.errors import InputError
from climassay.generation.draft import SourcePassage
from climassay.grounding import CollectionGroup

_SHARED_WORDS = 12
"""Passages that have a run of so many words in common are two cuts of one text, not two sources."""
_SPARE = 20
"""Hits asked for beyond those wanted, since neighbours and copies of the main passage are left out."""


class ContextFinder:
    """Finds the passages that are shown beside a seed passage.

    The paper (section 4.2) takes passages above a cosine threshold, so that several sources have a say. Here passages
    of documents that are not yet among the chosen ones come first, and what overlaps with a chosen passage, such as
    its neighbour or another edition of it, is left out: it would say the same again.
    """

    def __init__(
        self,
        group: CollectionGroup,
        *,
        most: int = 2,
        threshold: float | None = None,
        mode: SearchMode = "dense",
        other_documents: bool = False,
        suitable: Callable[[Passage], str | None] | None = None,
    ) -> None:
        """Prepare to search.

        Args:
            group: Where to search.
            most: Retrieved passages of a seed passage, at most; 0 leaves it alone.
            threshold: Least cosine to the seed passage, whatever the mode. By default what was measured for the
                collections' encoder (``climassay.corpus.RELEVANCE_COSINE``; of several encoders the greatest), or none
                where nothing was.
            mode: What the search sorts by; see :meth:`climassay.corpus.Collection.search_many`.
            other_documents: Only passages of other documents than the seed passage's.
            suitable: As for :class:`~climassay.generation.seeds.SeedSampler`; unsuitable passages are left out.

        Raises:
            InputError: ``most`` is negative.
        """
        if most < 0:
            raise InputError(f"{most} passages cannot be shown beside the main one: take 0 or more.")
        self._group = group
        self._most = most
        self._threshold = _measured(group) if threshold is None else threshold
        self._mode: SearchMode = mode
        self._other_documents = other_documents
        self._suitable = suitable

    def find(self, seeds: Sequence[Passage]) -> list[tuple[SourcePassage, ...]]:
        """Each seed passage with those found for it, nearest first; all are searched for in one call.

        Raises:
            InputError: The threshold or the search mode makes no sense.
        """
        if not seeds or self._most == 0:
            return [(SourcePassage.of(seed),) for seed in seeds]
        found = self._group.search_many(
            [seed.text for seed in seeds], k=10 * self._most + _SPARE, min_cosine=self._threshold, mode=self._mode
        )
        return [
            (SourcePassage.of(seed), *(SourcePassage.of(hit.passage, hit.cosine) for hit in self._chosen(seed, hits)))
            for seed, hits in zip(seeds, found, strict=True)
        ]

    def _chosen(self, seed: Passage, hits: Sequence[Hit]) -> list[Hit]:
        """The hits to show: the best of each new document, then the best of the rest."""
        usable = [hit for hit in hits if self._may_stand_beside(seed, hit.passage)]
        chosen: list[Hit] = []
        runs, documents = _runs(seed.text), {seed.document_id}
        for only_new in (True, False):
            for hit in usable:
                if len(chosen) == self._most:
                    break
                own = _runs(hit.passage.text)
                if own & runs or (only_new and hit.passage.document_id in documents):
                    continue
                chosen.append(hit)
                runs |= own
                documents.add(hit.passage.document_id)
        return sorted(chosen, key=lambda hit: (-(hit.cosine or 0.0), hit.rank))

    def _may_stand_beside(self, seed: Passage, passage: Passage) -> bool:
        if passage.id == seed.id or (self._other_documents and passage.document_id == seed.document_id):
            return False
        return self._suitable is None or self._suitable(passage) is None


def _measured(group: CollectionGroup) -> float | None:
    """The greatest threshold measured for the group's encoders."""
    known = (RELEVANCE_COSINE.get(collection.settings.encoder) for collection in group.collections)
    return max((cosine for cosine in known if cosine is not None), default=None)


def _runs(text: str) -> set[tuple[str, ...]]:
    """All runs of words by which two cuts of one text are known; a shorter text is one run."""
    words = re.findall(r"\w+", text.casefold())
    last = max(1, len(words) - _SHARED_WORDS + 1)
    return {tuple(words[start : start + _SHARED_WORDS]) for start in range(last)}
