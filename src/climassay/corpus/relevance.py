"""Decide whether a passage is relevant to a query, by cosine or by shared words.

The minimum cosine of a sentence and a passage that answers it was measured (:data:`RELEVANCE`). Cosines are unreliable
for queries of one to four words: "net zero" and the passage that defines it have a cosine of 0.2. For these, words
decide as well: a passage is relevant if a short stretch of its text, or one of its headings, has nearly all of the
query's word weight. The weight of a word is its inverse document frequency in the collection. Two words far apart in a
passage do not match.

Search, answers, debates and retrieval for questions use this rule if their threshold is ``"measured"``.
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
"""Minimum cosine of hits, ``"measured"`` for the relevance rule of the encoder, or None for all hits."""

SHORT_QUERY = 3
"""Maximum number of words of a query that is not a sentence."""
MAX_WORDS = 4
"""Maximum number of content words of a query for which words decide in addition to the cosine."""
GAP = 2
"""Maximum number of other content words between the words of a query."""
MIN_WEIGHT = 0.95
"""Minimum share of the query's word weight that a stretch of text or a heading must have."""

_QUESTION_WORDS = """
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
"""Word of a query; hyphens divide words, as in the index."""


@cache
def _question_stems() -> frozenset[str]:
    """Return the stems of words that frame a question; they are ignored if the query has other words."""
    return frozenset(stems(_QUESTION_WORDS))


@dataclass(frozen=True, slots=True)
class RelevanceRule:
    """Minimum cosines of relevant passages, measured for one encoder."""

    min_cosine: float
    """Minimum for queries of more than :data:`SHORT_QUERY` words."""
    min_cosine_short: float
    """Minimum for shorter queries, and for queries with a content word that no passage has."""

    def min_cosine_of(self, query: str) -> float:
        """Return the minimum cosine for a query by its number of words."""
        return self.min_cosine_short if len(_PART.findall(query)) <= SHORT_QUERY else self.min_cosine


RELEVANCE: Mapping[str, RelevanceRule] = MappingProxyType({"local:minilm": RelevanceRule(0.40, 0.50)})
"""Relevance rules by encoder name.

Sentences (``benchmarks/relevance.py``): the best passage of the book that a question is about reaches 0.40 for 118 of
the primer's 120 questions. For 60 questions on cooking, sport, history and the like no passage of these books does; for
56 of them none of 12,500 passages of AR6, abstracts and books does. Questions about other parts of climate science are
not rejected reliably: six in ten reach 0.40 in a book that does not answer them. Short queries:
``benchmarks/long/short_queries.py`` and docs/results/retrieval.md.
"""


class QueryWords:
    """Content words of a query, weighted by their inverse document frequency in a collection.

    Args:
        query: The query.
    """

    def __init__(self, query: str) -> None:
        spelled = {stem: part for part in _PART.findall(query) for stem in stems(part)}
        self.spelled: Mapping[str, str] = {
            stem: word for stem, word in spelled.items() if stem not in _question_stems()
        } or spelled
        """Spelling in the query, by stem."""
        self._weights: dict[str, float] = {}

    @property
    def decide(self) -> bool:
        """True if the query has 1 to :data:`MAX_WORDS` content words, so that words decide."""
        return 0 < len(self.spelled) <= MAX_WORDS

    def weigh(self, n_passages_with: Callable[[str], int], n_passages: int) -> bool:
        """Compute the weight ``log(1 + (N - n + 0.5) / (n + 0.5))`` of each word, as BM25 does.

        Args:
            n_passages_with: Returns the number of passages with a word, n.
            n_passages: Number of passages of the collection, N.

        Returns:
            True if a passage can have the required weight; False if a word with too much weight is in no passage.
        """
        available_weight = 0.0
        for stem, word in self.spelled.items():
            n = min(n_passages_with(word), n_passages)
            self._weights[stem] = math.log(1 + (n_passages - n + 0.5) / (n + 0.5))
            available_weight += self._weights[stem] if n else 0.0
        return available_weight >= self._required

    @property
    def _required(self) -> float:
        return MIN_WEIGHT * sum(self._weights.values())

    def are_in(self, passage: Passage) -> bool:
        """Return whether a stretch of a passage's text, or a heading, has the query's words; call :meth:`weigh` first.

        A stretch has as many content words as the query, plus :data:`GAP`.
        """
        required = self._required
        if any(self._weight(stems(heading)) >= required for heading in passage.headings):
            return True
        return self._densest(stems(passage.text)) >= required

    def _weight(self, words: Iterable[str]) -> float:
        return sum(self._weights.get(word, 0.0) for word in set(words))

    def _densest(self, words: Sequence[str]) -> float:
        """Return the highest weight of distinct query words in any stretch of text."""
        length = len(self.spelled) + GAP
        hits = [(index, word) for index, word in enumerate(words) if word in self._weights]
        counts: Counter[str] = Counter()
        best, first = 0.0, 0
        for index, word in hits:
            counts[word] += 1
            while index - hits[first][0] >= length:
                counts[hits[first][1]] -= 1
                first += 1
            best = max(best, self._weight(stem for stem, count in counts.items() if count))
        return best


def heading_share(query: str, headings: Iterable[str]) -> float:
    """Return the highest share of a heading's words that are in the query.

    Args:
        query: The query.
        headings: Headings above a passage.

    Returns:
        Maximum over the headings that have all words of the query: 1 if the query is a heading, 0 if there is no such
        heading. Section numbers and words of questions are not counted.
    """
    alternatives = {frozenset(stems(query)), frozenset(QueryWords(query).spelled)} - {frozenset()}
    share = 0.0
    for heading in headings:
        words = stems(heading)
        for query_stems in alternatives:
            heading_stems = {word for word in words if word in query_stems or not word[0].isdigit()}
            if query_stems <= heading_stems:
                share = max(share, len(query_stems) / len(heading_stems))
    return share
