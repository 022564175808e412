"""Are the options of a multiple-choice question four different, positive answers?"""

import re
from itertools import combinations, zip_longest
from math import isclose

from climassay.generation.draft import Draft
from climassay.generation.screening.check import CHOICE, Check
from climassay.generation.screening.words import FUNCTION_WORDS, stem, word_set
from climassay.grounding.quantities import quantities

OPTIONS = 4
_GATHERING = re.compile(
    r"\b(?:all|none|both|any|either|neither|some)\s+of\s+(?:(?:the\s+)?(?:above|(?:other|given)\s+options|options)\b"
    r"|(?:these|those|them)\W*$)"
    r"|\b(?:both|neither|only|either)\s+\(?[a-d]\)?\s*(?:and|or|nor|&|,)\s*\(?[a-d]\)?(?=\W|$)"
    r"|^\W*(?:options?\s+)?\(?[a-d]\)?\s+(?:and|or|&)\s+\(?[a-d]\)?\W*$|^\W*(?:all|none|both)\W*$"
    r"|\b(?:not\s+enough|insufficient)\s+information\b|\bcannot\s+be\s+determined\b",
    re.IGNORECASE,
)
_NEGATIVE = re.compile(
    r"^\W*(?:not\b(?!\s+(?:only|merely|just|all))|no\b(?!\s*[-.\d]|\s+(?:change|effect|response|trend|difference|net))"
    r"|never\b|cannot\b)"
    r"|^(?:\w+\s+){0,4}(?:does|do|did|is|are|was|were|has|have|can|could|will|would|should|must)(?:\s+not|n['’]t)\b"
    r"(?!\s+(?:only|yet|always|change|vary|respond|differ|depend)\b)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-−–+]?\d+(?:[.,]\d+)*")


def _count(draft: Draft) -> str | None:
    wording = draft.wording
    empty = sum(not option.strip() for option in wording.options)
    if len(wording.options) != OPTIONS or empty:
        return f"It has {len(wording.options)} options" + (f", {empty} of them empty." if empty else ", not four.")
    if wording.correct is None or not 0 <= wording.correct < len(wording.options):
        return "No option is marked as the correct one."
    return None


def _plain(option: str) -> tuple[str, ...]:
    """Words of an option without articles, numbers kept as they are."""
    text = re.sub(r"^\W*[a-dA-D][).:]\s+", "", option).replace("−", "-").replace("–", "-")
    return tuple(re.findall(r"-?\d+(?:\.\d+)?|\w+|%", re.sub(r"\b(?:a|an|the)\b", " ", text.casefold())))


def _duplicates(draft: Draft) -> str | None:
    for first, second in combinations(draft.wording.options, 2):
        if _plain(first) == _plain(second):
            return f"“{first}” stands there twice."
    return None


def _overlap(draft: Draft) -> str | None:
    for first, second in combinations(draft.wording.options, 2):
        if _plain(first) != _plain(second) and _same_quantities(first, second):
            return f"“{first}” and “{second}” are the same quantity."
        if _plain(first) != _plain(second) and (_same_words(first, second) or _within(first, second)):
            return f"“{first}” and “{second}” say nearly the same."
    return None


def _same_words(first: str, second: str) -> bool:
    """The same stems in the same order but for function words; numbers, negations and comparisons count as content."""
    return _stems(first) == _stems(second) != ()


# A degree makes another answer: *likely* and *very likely*, *high confidence* and *very high confidence* exclude
# each other on their scales.
_MEANING = word_set(
    "no not never nor neither without less more least most few many much above below before after up down over under"
    " into from in out off on against between within all only each every both either same other again"
    " further as to by very extremely exceptionally virtually highly nearly almost partly fully wholly slightly"
    " strongly weakly about than"
)


def _stems(option: str) -> tuple[str, ...]:
    kept = (word for word in _plain(option) if word in _MEANING or word not in FUNCTION_WORDS)
    return tuple(stem(word) for word in kept)


def _within(first: str, second: str) -> bool:
    """Whether one option is the other with a beginning or an end added: an answer that is true where the other is.

    A comparison, a negation or a number in what is added makes another answer of it.
    """
    short, long = sorted((_plain(first), _plain(second)), key=len)
    if len(short) < 2 or len(short) == len(long) or _NUMBER.fullmatch(short[-1]):
        return False
    if long[: len(short)] == short:
        added = long[len(short) :]
    elif long[-len(short) :] == short:
        added = long[: -len(short)]
    else:
        return False
    return not any(word in _MEANING or word[0].isdigit() or word.startswith("-") for word in added)


def _same_quantities(first: str, second: str) -> bool:
    """Whether both options consist of the same numbers in the same unit, written in two ways."""
    if _without_quantities(first) != _without_quantities(second):
        return False
    pairs = list(zip_longest(quantities(first), quantities(second)))
    return bool(pairs) and all(
        one is not None
        and other is not None
        and one.unit is not None
        and other.unit is not None
        and one.unit.is_kind_of(other.unit)
        and one.unit.rate == other.unit.rate
        and isclose(one.value * one.unit.factor, other.value * other.unit.factor)
        for one, other in pairs
    )


_ROUGHLY = word_set("about around roughly approximately circa some to and between from by at near")


def _without_quantities(option: str) -> tuple[str, ...]:
    """The words of an option beside its numbers and units, those that only say *about* left out."""
    text = option
    for quantity in quantities(option):
        text = text.replace(quantity.text, " ", 1)
    return tuple(word for word in _plain(text) if word not in _ROUGHLY and not word[0].isdigit())


def _gathering(draft: Draft) -> str | None:
    found = next((option for option in draft.wording.options if _GATHERING.search(option)), None)
    return None if found is None else f"The option “{found}” gathers the others or avoids an answer."


def _negative(draft: Draft) -> str | None:
    negative = [option for option in draft.wording.options if _NEGATIVE.search(option)]
    if not negative or len(negative) == len(draft.wording.options):
        return None
    return f"“{negative[0]}” is phrased negatively."


CHECKS = (
    Check("option count", CHOICE, "Has not exactly four options with one marked as correct.", _count),
    Check("duplicate options", CHOICE, "Two options are the same but for case, articles or punctuation.", _duplicates),
    Check(
        "overlapping options",
        CHOICE,
        "Two options say the same in other forms of words, or one is the other with something added.",
        _overlap,
    ),
    Check("gathering option", CHOICE, "An option is *all of the above*, *none of the above* or the like.", _gathering),
    Check("negative option", CHOICE, "An option denies instead of stating.", _negative),
)
