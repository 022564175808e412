"""What was measured about encoders in retrieval: when nothing relevant was found, and how far to trust the cosine."""

from collections.abc import Mapping
from types import MappingProxyType

RELEVANCE_COSINE: Mapping[str, float] = MappingProxyType({"local:minilm": 0.40})
"""Cosine below which a passage is not about the query, by name of the encoder.

Measured for the bundled encoder (``benchmarks/relevance.py``): the best passage of the book that a question is about
reaches 0.40 for 118 of the primer's 120 questions; for 60 questions on cooking, sport, history and the like no passage
of these books does, and for 56 of them none of 12,500 passages of AR6, abstracts and books. A question about another
part of climate science is not told apart in this way: in a book that does not answer them, six in ten reach 0.40.
"""

DENSE_WEIGHT: Mapping[str, float] = MappingProxyType({"local:minilm": 0.3})
"""Weight of the cosine in hybrid search, by name of the encoder.

Measured for the bundled encoder (``benchmarks/search.py``): from 0.1 to 0.4 the mean reciprocal rank of questions in
people's own words is flat; more than that gives up what BM25 finds.
"""

DEFAULT_DENSE_WEIGHT = 0.5
"""For encoders that were not measured."""
