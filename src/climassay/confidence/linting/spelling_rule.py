"""The rule on calibrated terms with a slip of the keyboard in them.

There is no dictionary: a word is taken for a slip where the words around it make a term of it ("hgh confidence", "very
likley") and it is none of the English words that lie as near.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

from climassay.confidence.linting.draft import Draft, Sentence
from climassay.confidence.linting.finding import Example, Remark, Rule

_TERMS = (
    (("low", "medium", "high"), ("confidence", "agreement")),
    (("limited", "medium", "robust"), ("evidence",)),
    (("very", "extremely"), ("likely", "unlikely")),
    (("virtually",), ("certain",)),
    (("exceptionally",), ("unlikely",)),
)
_ALONE = ("likely", "unlikely")
"""Terms of one word."""
_ENGLISH = frozenset(
    re.findall(
        r"\w+",
        """
        conference conferences confluence confluences confidences confident confidently confidant confidants
        confine confined evidences evidenced evident evidently eminence agreements argument arguments lively
        lovely likes liked likelier likeliest curtain contain certainly uncertain captain unlike hug hi hit
        his how law now row lows highs highly igh mediums median media limits robustly every ever vary verb
        """,
    )
)
"""English words that lie near terms."""
_WORD = re.compile(r"[^\W\d_]+")
_SHORT = 5
"""Letters up to which only swapped, lost and doubled letters count: other English words lie near short ones."""


def misspelt(word: str, term: str) -> bool:
    """Whether a word is a term with a slip in it."""
    word = word.lower()
    if word == term or word in _ENGLISH or abs(len(word) - len(term)) > 2 or word[0] != term[0]:
        return False
    if _swapped(word, term) or (len(term) > 3 and _lost(word, term)) or _doubled(word, term):
        return True
    return len(term) > _SHORT and _distance(word, term) <= (2 if len(term) > len("unlikely") else 1)


def _swapped(word: str, term: str) -> bool:
    return any(word == term[:at] + term[at + 1] + term[at] + term[at + 2 :] for at in range(len(term) - 1))


def _lost(word: str, term: str) -> bool:
    return any(word == term[:at] + term[at + 1 :] for at in range(len(term)))


def _doubled(word: str, term: str) -> bool:
    return any(word == term[:at] + letter + term[at:] for at, letter in enumerate(term))


def _distance(one: str, other: str) -> int:
    """Letters to change, add, remove or swap with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, start=1):
        older, before, row = before, row, [place]
        for at, wanted in enumerate(other, start=1):
            best = min(before[at] + 1, row[-1] + 1, before[at - 1] + (letter != wanted))
            if place > 1 and at > 1 and letter == other[at - 2] and one[place - 2] == wanted:
                best = min(best, older[at - 2] + 1)
            row.append(best)
    return row[-1]


def slips(sentence: Sentence) -> Iterator[tuple[int, int, str]]:
    """Where a misspelt term begins and ends, and the term that was meant."""
    text = sentence.text
    words = list(_WORD.finditer(text))
    done = -1
    for one, other in pairwise(words):
        if one.start() <= done or re.fullmatch(r"[\s*_-]{1,4}", text[one.end() : other.start()]) is None:
            continue
        meant = _meant(one.group(), other.group())
        # Files made of pages leave words in two: "high confidenc e".
        if meant and not text[one.start() :].replace(" ", "").lower().startswith(meant.replace(" ", "")):
            done = other.start()
            yield one.start(), other.end(), meant
    for word in words:
        slip = word.group().lower()
        if word.start() > done and slip not in _ENGLISH:
            for term in _ALONE:
                if slip[0] == term[0] and (_swapped(slip, term) or _lost(slip, term)):
                    yield *word.span(), term


def _meant(one: str, other: str) -> str:
    one, other = one.lower(), other.lower()
    for firsts, heads in _TERMS:
        for head in heads:
            for first in firsts:
                slipped = misspelt(one, first), misspelt(other, head)
                if any(slipped) and (slipped[0] or one == first) and (slipped[1] or other == head):
                    return f"{first} {head}"
    return ""


def _check(draft: Draft) -> Iterator[Remark]:
    for sentence in draft.sentences:
        for start, end, meant in slips(sentence):
            message = f'"{sentence.text[start:end]}" is a misspelt term, which a search for the terms does not find.'
            yield Remark(*sentence.at(start, end), message, meant)


MISSPELT_TERM = Rule(
    "misspelt-term",
    "warning",
    "term misspelt",
    "Readers and programs look for the exact terms: a finding whose term is misspelt is not found by it.",
    (
        Example("Rain will increase (hgh confidence).", "Rain will increase (high confidence)."),
        Example("It is virtualy certain.", "The high-level conference was very lively."),
    ),
    _check,
)
