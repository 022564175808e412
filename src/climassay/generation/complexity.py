"""Syntactic complexity of accepted questions, kind by kind and level by level.

The measure is that of CLIMINATOR for claims: the mean number of tokens in the syntactic trees of a text's sentences. A
tree has a leaf for each token, so that the number is the length of the sentence in words and punctuation marks, and no
parser is needed.

References:
    Leippold et al. (2024), Automated Fact-Checking of Climate Change Claims with Large Language Models, arXiv
    2401.12566, appendix B.
"""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from climassay.corpus.sentences import split_sentences
from climassay.generation.recipe import Stream
from climassay.questions import KINDS, LEVELS
from climassay.reporting import Table
from climassay.statistics import mean_estimates

_TOKEN = re.compile(r"\w+(?:[-'’.,]\w+)*|[^\w\s]")
"""Pattern of a word, including hyphens, apostrophes and decimal points inside it, or of a punctuation mark."""


class Complexity(NamedTuple):
    """Syntactic measures of a text."""

    sentences: int
    tokens_per_sentence: float
    """Mean number of words and punctuation marks per sentence."""
    longest_sentence: int
    """Number of words and punctuation marks of the longest sentence."""


def measure_complexity(text: str) -> Complexity:
    """Return the syntactic measures of a text; all are 0 if it has no sentence."""
    lengths = [len(_TOKEN.findall(sentence)) for sentence in split_sentences(text)]
    if not lengths:
        return Complexity(0, 0.0, 0)
    return Complexity(len(lengths), sum(lengths) / len(lengths), max(lengths))


def complexity_table(name: str, measures: Mapping[Stream, Sequence[Complexity]]) -> Table:
    """Return a table of the mean measures by kind and level, with 95% intervals over questions.

    Args:
        name: Name of the dataset.
        measures: Measures of each accepted question, by kind and level.
    """
    rows = []
    for stream in sorted(measures, key=lambda stream: (KINDS.index(stream.kind), LEVELS.index(stream.level))):
        estimates = mean_estimates([list(column) for column in zip(*measures[stream], strict=True)])
        n_questions = len(measures[stream])
        cells = [
            cell
            for estimate in estimates
            for cell in (
                f"{estimate.value:.1f}",
                f"{estimate.interval.low:.1f} to {estimate.interval.high:.1f}" if n_questions > 1 else "-",
            )
        ]
        rows.append((stream.kind, str(stream.level), str(n_questions), *cells))
    headings = [
        heading
        for measure in ("sentences", "tokens per\nsentence", "longest\nsentence")
        for heading in (measure, "95% interval")
    ]
    return Table.of(
        f"{name}: syntactic complexity of accepted questions",
        ("kind", "level", "n", *headings),
        rows,
        left_columns=2,
        note="Means over questions, without options and answers. Tokens are words and punctuation marks (CLIMINATOR, "
        "appendix B). Questions of a higher level need not be longer: a level is a kind of reasoning.",
    )
