"""Is the answer given away: by its length, by words of the stem, by grammar?"""

import re

from climassay.generation.draft import Draft
from climassay.generation.screening.check import CHOICE, Check, right_answer
from climassay.generation.screening.words import content_words, words

LONGER = 1.6
"""The correct option gives itself away from this many times the length of the longest distractor ..."""
LONGER_CHARACTERS = 20
"""... and so many characters more."""
SHARED = 2
"""So many content words of the stem in the correct option alone give it away, if they are half of its words."""
_ARTICLE = re.compile(r"\b(an?)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$", re.IGNORECASE)
_VOWEL = re.compile(
    r"^\W*(?:(?!u[bcfhjknqrstv][aeiou]|uni|eu|one\b|once\b|UV|US\b)[aeiouAEIOU8]|hour|honest|heir|11\b|18\b)"
)
_PLURAL_STEM = re.compile(
    r"\b(?:are|were)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$|^\W*which\s+(?:\w+\s+){1,3}(?:are|were)\b", re.IGNORECASE
)
_SINGULAR_STEM = re.compile(
    r"\b(?:is|was)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$|^\W*which\s+(?:\w+\s+){1,3}(?:is|was)\b", re.IGNORECASE
)


def _distractors(draft: Draft) -> list[str]:
    return [option for place, option in enumerate(draft.wording.options) if place != draft.wording.correct]


def _length(draft: Draft) -> str | None:
    answer, others = right_answer(draft).strip(), [option.strip() for option in _distractors(draft)]
    if draft.wording.correct is None or not others:
        return None
    longest, shortest = max(map(len, others)), min(map(len, others))
    if len(answer) >= LONGER * longest and len(answer) - longest >= LONGER_CHARACTERS:
        return f"The correct option has {len(answer)} characters, the longest other one {longest}."
    if shortest >= LONGER * len(answer) and shortest - len(answer) >= LONGER_CHARACTERS:
        return f"The correct option has {len(answer)} characters, the shortest other one {shortest}."
    return None


def _copied_words(draft: Draft) -> str | None:
    if draft.wording.correct is None:
        return None
    stem = set(content_words(draft.wording.question))
    answer = set(content_words(right_answer(draft)))
    others = set().union(*(content_words(option) for option in _distractors(draft)))
    telling = sorted((answer & stem) - others)
    if any(len((set(content_words(option)) & stem) - answer) >= SHARED for option in _distractors(draft)):
        # A distractor takes up other words of the stem, as where the stem itself names what is to be compared.
        return None
    if len(telling) >= SHARED and 2 * len(telling) >= len(answer):
        return f"Only the correct option takes up words of the stem: {', '.join(telling)}."
    return None


def _grammar(draft: Draft) -> str | None:
    if draft.wording.correct is None or len(draft.wording.options) < 2:
        return None
    stem, answer, others = draft.wording.question, right_answer(draft), _distractors(draft)
    article = _ARTICLE.search(stem)
    if article:
        fits = _fits_article(article[1], answer), [_fits_article(article[1], option) for option in others]
        if fits[0] and not any(fits[1]):
            return f"The article “{article[1]}” before the gap fits the correct option alone."
    for pattern, plural, name in ((_PLURAL_STEM, True, "plural"), (_SINGULAR_STEM, False, "singular")):
        if (
            pattern.search(stem)
            and _is_plural(answer) is plural
            and all(_is_plural(one) is not plural for one in others)
        ):
            return f"The stem asks for a {name}, and the correct option alone is one."
    return None


def _fits_article(article: str, option: str) -> bool:
    return (_VOWEL.match(option) is not None) == (article.lower() == "an")


def _is_plural(option: str) -> bool:
    """Whether a short option looks like a plural noun; whole clauses never do."""
    found = words(option)
    if not found or len(found) > 5:
        return False
    last = found[-1]
    return " and " in option or (last.endswith("s") and not last.endswith(("ss", "us", "is", "ics", "ous")))


CHECKS = (
    Check("clue by length", CHOICE, "The correct option is far longer or shorter than all others.", _length),
    Check("clue by words", CHOICE, "Only the correct option takes up the words of the stem.", _copied_words),
    Check("clue by grammar", CHOICE, "Article or number of the stem fits the correct option alone.", _grammar),
)
