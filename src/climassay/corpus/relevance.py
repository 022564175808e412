"""Decide whether a passage is relevant to a query: by the similarity of their meanings, or by the words they share.

The cosine of a sentence and of a passage that answers it is measured (:data:`RELEVANCE`). It says little of one to four
words: "net zero" and the passage that defines it have a cosine of 0.2. There, words decide. A passage has the words of
a query if a short stretch of its text, or one of its headings, has nearly all of their weight; a word weighs more the
fewer passages of the collection have it. Two words that stand far apart in a passage are not what was looked for.

Search, answers, debates and retrieval for questions all decide by this file, when their threshold is ``"measured"``.
"""

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal

from climassay.corpus.documents import Passage
from climassay.reporting.marking import stems

Threshold = float | Literal["measured"] | None
"""Which hits of a search are kept: those of at least a cosine, the relevant ones (``"measured"``), or all (None)."""

SHORT_QUERY = 3
"""Maximum number of words of a query that is not a sentence."""
MAX_WORDS = 4
"""Maximum number of words of content of a query for which words decide as well; in longer ones, cosines do."""
GAP = 2
"""Maximum number of other words of content between the words of a query."""
MIN_WEIGHT = 0.95
"""Minimum share of the weight of a query's words that a stretch of text or a heading must have."""

_ASKED = """
actually affect affecting already also answer anybody anyone anything anywhere author bad become begin best better
big cause caused chapter claim common compare consequence contribute contribution current currently deal decrease
define definition describe detail difference different difficult discuss document effect even ever everybody
everyone everything everywhere evidence exactly example explain explanation fact find future gets getting give good
go going gone come coming happen happening help here idea impact implication importance important increase influence
information involve ipcc
issue just keep kind know known large last likely long look main major make many matter me mean meaning mention need
new nobody nothing now number overview part passage people please possible problem provide question quite rather
really reason recent recently relate related relation report result role say scientist serious show somebody someone
something somewhere source start statement still study summarise summarize summary take talk tell text thing think
thought today topic toward true type us use used want way work worse worst wrong year yet
"""
_PART = re.compile(r"[^\s\-\u2010-\u2015/]+")
"""A word of a query; hyphens divide words, as in the index."""


@cache
def _asking_stems() -> frozenset[str]:
    """Return the stems of words that ask or frame a question; beside other words, they are not looked for."""
    return frozenset(stems(_ASKED))


@dataclass(frozen=True, slots=True)
class RelevanceRule:
    """Minimum cosines at which passages are relevant, measured for one encoder."""

    min_cosine: float
    """For sentences: queries of more than :data:`SHORT_QUERY` words."""
    min_cosine_short: float
    """For shorter queries, and for those with a word of content that no passage has."""

    def min_cosine_of(self, query: str) -> float:
        """Return the minimum cosine for a query, if the passage does not have its words."""
        return self.min_cosine_short if len(_PART.findall(query)) <= SHORT_QUERY else self.min_cosine


RELEVANCE: Mapping[str, RelevanceRule] = MappingProxyType({"local:minilm": RelevanceRule(0.40, 0.50)})
"""The rule of each encoder that was measured, by name of the encoder.

Sentences (``benchmarks/relevance.py``): the best passage of the book that a question is about reaches 0.40 for 118 of
the primer's 120 questions; for 60 questions on cooking, sport, history and the like no passage of these books does, and
for 56 of them none of 12,500 passages of AR6, abstracts and books. A question about another part of climate science is
not told apart in this way: in a book that does not answer them, six in ten reach 0.40. Short queries:
``benchmarks/long/short_queries.py`` and docs/results/retrieval.md.
"""


class QueryWords:
    """The words of content of a query, with weights: inverse document frequencies in a collection.

    Args:
        query: The query.
    """

    def __init__(self, query: str) -> None:
        spelled = {stem: part for part in _PART.findall(query) for stem in stems(part)}
        self.spelled: Mapping[str, str] = {
            stem: word for stem, word in spelled.items() if stem not in _asking_stems()
        } or spelled
        """Spelling in the query, by stem."""
        self._weights: dict[str, float] = {}

    @property
    def decide(self) -> bool:
        """Whether the words decide: there are 1 to :data:`MAX_WORDS` of them."""
        return 0 < len(self.spelled) <= MAX_WORDS

    def weigh(self, n_passages_with: Callable[[str], int], n_passages: int) -> bool:
        """Weigh each word by ``log(1 + (N - n + 0.5) / (n + 0.5))``, as BM25 does; a word of no passage weighs most.

        Args:
            n_passages_with: Gives the number of passages that have a word, n.
            n_passages: Number of passages of the collection, N.

        Returns:
            Whether a passage can have the words: False if one that weighs too much is in none.
        """
        found = 0.0
        for stem, word in self.spelled.items():
            n = min(n_passages_with(word), n_passages)
            self._weights[stem] = math.log(1 + (n_passages - n + 0.5) / (n + 0.5))
            found += self._weights[stem] if n else 0.0
        return found >= self._required

    @property
    def _required(self) -> float:
        return MIN_WEIGHT * sum(self._weights.values())

    def are_in(self, passage: Passage) -> bool:
        """Return whether a stretch of the passage's text, or a heading, has the query's words.

        The stretch has as many words of content as the query and :data:`GAP` more.

        Needs the weights of :meth:`weigh`.
        """
        required = self._required
        if any(self._weight(stems(heading)) >= required for heading in passage.headings):
            return True
        return self._densest(stems(passage.text)) >= required

    def _weight(self, words: Iterable[str]) -> float:
        return sum(self._weights.get(word, 0.0) for word in set(words))

    def _densest(self, words: Sequence[str]) -> float:
        """The greatest weight of different words of the query in a stretch of text."""
        length = len(self.spelled) + GAP
        hits = [(place, word) for place, word in enumerate(words) if word in self._weights]
        inside: Counter[str] = Counter()
        best, first = 0.0, 0
        for place, word in hits:
            inside[word] += 1
            while place - hits[first][0] >= length:
                inside[hits[first][1]] -= 1
                first += 1
            best = max(best, self._weight(one for one, count in inside.items() if count))
        return best


def heading_share(query: str, headings: Iterable[str]) -> float:
    """Return how much of a heading a query is: 1 if it is one of the headings, 0 if no heading has all its words.

    Args:
        query: The query.
        headings: Headings that a passage stands under.

    Returns:
        Greatest share, over the headings that have all words of the query, of the heading's words that are in the
        query. Numbers of sections, and words that tell nothing, do not count.
    """
    alternatives = {frozenset(stems(query)), frozenset(QueryWords(query).spelled)} - {frozenset()}
    share = 0.0
    for heading in headings:
        words = stems(heading)
        for looked_for in alternatives:
            counted = {word for word in words if word in looked_for or not word[0].isdigit()}
            if looked_for <= counted:
                share = max(share, len(looked_for) / len(counted))
    return share
