"""Decide whether a passage is relevant to a query, by their cosine or by the words that they have in common.

The minimum cosine of a sentence and a passage that answers it was measured (:data:`RELEVANCE`). Cosines are unreliable
for queries of one to four words: "net zero" and the passage that defines it have a cosine of 0.2. Such a query also has
relevant passages by words: a passage is relevant if a short segment of its text, or one of its headings, has nearly all
of the query's word weight. The weight of a word is its inverse document frequency in the collection. Words far apart in
a passage do not match together.

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
"""Minimum cosine of hits, ``"measured"`` for the relevance rule of the encoder, or None to return all hits."""

MAX_SHORT_QUERY_WORDS = 3
"""Maximum number of words of a query that counts as short."""
MAX_SHORT_CONTENT_WORDS = 4
"""Maximum number of content words of a query for which passages with the same words also count as relevant."""
MAX_WORDS_BETWEEN = 2
"""Maximum number of other content words in a window of a text that contains the words of a query."""
MIN_WEIGHT_SHARE = 0.95
"""Minimum fraction of the query's total word weight that a heading or a window of a text must contain."""

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
_QUERY_WORD = re.compile(r"[^\s\-\u2010-\u2015/]+")
"""Pattern of a word in a query; hyphens separate words, as in the full-text index."""


@cache
def _load_question_stems() -> frozenset[str]:
    """Return the stems of words that frame a question ("what is known about").

    They are ignored in queries that contain other words.
    """
    return frozenset(stems(_QUESTION_WORDS))


@dataclass(frozen=True, slots=True)
class RelevanceRule:
    """Minimum cosines of relevant passages for one encoder, determined by measurement."""

    min_cosine: float
    """Minimum cosine for queries of more than :data:`MAX_SHORT_QUERY_WORDS` words."""
    min_cosine_short: float
    """Minimum cosine for shorter queries, and for queries with a content word that occurs in no passage."""

    def min_cosine_for(self, query: str) -> float:
        """Return the minimum cosine for a query, which depends on the number of its words."""
        return self.min_cosine_short if len(_QUERY_WORD.findall(query)) <= MAX_SHORT_QUERY_WORDS else self.min_cosine


RELEVANCE: Mapping[str, RelevanceRule] = MappingProxyType({"local:minilm": RelevanceRule(0.40, 0.50)})
"""Relevance rules by encoder name.

Long queries (``benchmarks/relevance.py``): 118 of the primer's 120 questions reach a cosine of 0.40 with a passage of
the relevant book. Of 60 questions on cooking, sport, history and similar subjects, none reaches it with a passage of
these books, and 4 reach it with one of 12,500 passages of AR6, abstracts and books. Questions about other parts of
climate science are not rejected reliably: 6 in 10 reach 0.40 in a book that does not answer them. Short queries: see
``benchmarks/long/short_queries.py`` and docs/results/retrieval.md.
"""


class QueryWords:
    """Content words of a query, weighted by their inverse document frequency in a collection."""

    def __init__(self, query: str) -> None:
        all_spellings = {stem: part for part in _QUERY_WORD.findall(query) for stem in stems(part)}
        self.spelling_by_stem: Mapping[str, str] = {
            stem: word for stem, word in all_spellings.items() if stem not in _load_question_stems()
        } or all_spellings
        """Spelling of each content word in the query, by stem."""
        self._weights: dict[str, float] = {}

    @property
    def is_short(self) -> bool:
        """Whether the query has 1 to :data:`MAX_SHORT_CONTENT_WORDS` content words.

        Passages with the same words then count as relevant.
        """
        return 0 < len(self.spelling_by_stem) <= MAX_SHORT_CONTENT_WORDS

    def weigh(self, n_passages_with: Callable[[str], int], n_passages: int) -> bool:
        """Compute the weight ``log(1 + (N - n + 0.5) / (n + 0.5))`` of each word, as in BM25.

        Args:
            n_passages_with: Function that returns the number n of passages that contain a word.
            n_passages: Number N of passages in the collection.

        Returns:
            Whether a passage can reach the required weight: False if too much of the total weight belongs to words that
                occur in no passage.
        """
        available_weight = 0.0
        for stem, word in self.spelling_by_stem.items():
            n = min(n_passages_with(word), n_passages)
            self._weights[stem] = math.log(1 + (n_passages - n + 0.5) / (n + 0.5))
            available_weight += self._weights[stem] if n else 0.0
        return available_weight >= self._min_weight

    @property
    def _min_weight(self) -> float:
        return MIN_WEIGHT_SHARE * sum(self._weights.values())

    def match(self, passage: Passage) -> bool:
        """Return whether a heading of a passage, or a window of its text, contains the query's words.

        The words that it contains must have :data:`MIN_WEIGHT_SHARE` of the query's weight, which :meth:`weigh` must
        have computed before. A window is :data:`MAX_WORDS_BETWEEN` content words longer than the query.
        """
        min_weight = self._min_weight
        if any(self._compute_weight(stems(heading)) >= min_weight for heading in passage.headings):
            return True
        return self._find_max_weight(stems(passage.text)) >= min_weight

    def _compute_weight(self, words: Iterable[str]) -> float:
        return sum(self._weights.get(word, 0.0) for word in set(words))

    def _find_max_weight(self, words: Sequence[str]) -> float:
        """Return the maximum total weight of distinct query words in any window of a text."""
        length = len(self.spelling_by_stem) + MAX_WORDS_BETWEEN
        hits = [(index, word) for index, word in enumerate(words) if word in self._weights]
        counts: Counter[str] = Counter()
        max_weight, first_index = 0.0, 0
        for index, word in hits:
            counts[word] += 1
            while index - hits[first_index][0] >= length:
                counts[hits[first_index][1]] -= 1
                first_index += 1
            max_weight = max(max_weight, self._compute_weight(stem for stem, count in counts.items() if count))
        return max_weight


def compute_heading_share(query: str, headings: Iterable[str]) -> float:
    """Return the maximum fraction of a heading's words that occur in the query.

    Returns:
        Maximum over the headings that contain all words of the query: 1 if a heading equals the query, 0 if there is no
            such heading. Section numbers and question words are not counted.
    """
    alternatives = {frozenset(stems(query)), frozenset(QueryWords(query).spelling_by_stem)} - {frozenset()}
    share = 0.0
    for heading in headings:
        words = stems(heading)
        for query_stems in alternatives:
            heading_stems = {word for word in words if word in query_stems or not word[0].isdigit()}
            if query_stems <= heading_stems:
                share = max(share, len(query_stems) / len(heading_stems))
    return share
