"""Checks of the options of multiple-choice questions: faults of options, and clues to the correct one."""

import re
from itertools import combinations
from math import isclose

from climassay.generation.draft import Draft
from climassay.generation.screening.check import (
    CHOICE_KINDS,
    FUNCTION_WORDS,
    check,
    content_words,
    correct_answer,
    stem,
    words,
)
from climassay.generation.terms import word_set
from climassay.grounding.quantities import find_quantities
from climassay.questions.types.multiple_choice import N_OPTIONS
from climassay.reporting import counted

_COMBINED_OPTION = re.compile(
    r"\b(?:all|none|both|any|either|neither|some)\s+of\s+(?:(?:the\s+)?(?:above|(?:other|given)\s+options|options)\b"
    r"|(?:these|those|them)\W*$)"
    r"|\b(?:both|neither|only|either)\s+\(?[a-d]\)?\s*(?:and|or|nor|&|,)\s*\(?[a-d]\)?(?=\W|$)"
    r"|^\W*(?:options?\s+)?\(?[a-d]\)?\s+(?:and|or|&)\s+\(?[a-d]\)?\W*$|^\W*(?:all|none|both)\W*$"
    r"|\b(?:not\s+enough|insufficient)\s+information\b|\bcannot\s+be\s+determined\b",
    re.IGNORECASE,
)
_NEGATIVE_OPTION = re.compile(
    r"^\W*(?:not\b(?!\s+(?:only|merely|just|all))|no\b(?!\s*[-.\d]|\s+(?:change|effect|response|trend|difference|net))"
    r"|never\b|cannot\b)"
    r"|^(?:\w+\s+){0,4}(?:does|do|did|is|are|was|were|has|have|can|could|will|would|should|must)(?:\s+not|n['’]t)\b"
    r"(?!\s+(?:only|yet|always|change|vary|respond|differ|depend)\b)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[-−–+]?\d+(?:[.,]\d+)*")


@check("option count", CHOICE_KINDS, "Does not have exactly four options with one marked as correct.")
def _describe_option_count_fault(draft: Draft) -> str | None:
    wording = draft.wording
    n_empty = sum(not option.strip() for option in wording.options)
    if len(wording.options) != N_OPTIONS or n_empty:
        fault = f"{n_empty} of them empty" if n_empty else "not four"
        return f"It has {counted(len(wording.options), 'option')}, {fault}."
    if wording.correct is None or not 0 <= wording.correct < len(wording.options):
        return "No option is marked as the correct one."
    return None


def _option_words(option: str) -> tuple[str, ...]:
    """Return the words and numbers of an option, excluding its letter and articles."""
    text = re.sub(r"^\W*[a-dA-D][).:]\s+", "", option).replace("−", "-").replace("–", "-")
    return tuple(re.findall(r"-?\d+(?:\.\d+)?|\w+|%", re.sub(r"\b(?:a|an|the)\b", " ", text.casefold())))


@check("duplicate options", CHOICE_KINDS, "Two options differ only in case, articles or punctuation.")
def _describe_duplicate_options(draft: Draft) -> str | None:
    for first_option, second_option in combinations(draft.wording.options, 2):
        if _option_words(first_option) == _option_words(second_option):
            return f"“{first_option}” appears twice."
    return None


@check(
    "overlapping options",
    CHOICE_KINDS,
    "Two options say the same in other word forms, or one is the other with something added.",
)
def _describe_overlapping_options(draft: Draft) -> str | None:
    for first_option, second_option in combinations(draft.wording.options, 2):
        if _option_words(first_option) == _option_words(second_option):
            continue
        if _have_equal_quantities(first_option, second_option):
            return f"“{first_option}” and “{second_option}” are the same quantity."
        # The same stems in the same order, ignoring function words.
        if _option_stems(first_option) == _option_stems(second_option) != () or _is_extension(
            first_option, second_option
        ):
            return f"“{first_option}” and “{second_option}” say nearly the same."
    return None


# Words that make another answer: *likely* and *very likely*, *high confidence* and *very high confidence* exclude each
# other on their scales.
_DISTINGUISHING_WORDS = word_set(
    "no not never nor neither without less more least most few many much above below before after up down over under"
    " into from in out off on against between within all only each every both either same other again"
    " further as to by very extremely exceptionally virtually highly nearly almost partly fully wholly slightly"
    " strongly weakly about than"
)


def _option_stems(option: str) -> tuple[str, ...]:
    """Return the stems of an option's content words; numbers, negations and comparisons count as content words."""
    return tuple(
        stem(word) for word in _option_words(option) if word in _DISTINGUISHING_WORDS or word not in FUNCTION_WORDS
    )


def _is_extension(first_option: str, second_option: str) -> bool:
    """Return whether one option only adds words at the beginning or end of the other, without changing the answer.

    Added comparisons, negations or numbers change the answer.
    """
    short_words, long_words = sorted((_option_words(first_option), _option_words(second_option)), key=len)
    if len(short_words) < 2 or len(short_words) == len(long_words) or _NUMBER.fullmatch(short_words[-1]):
        return False
    if long_words[: len(short_words)] == short_words:
        added_words = long_words[len(short_words) :]
    elif long_words[-len(short_words) :] == short_words:
        added_words = long_words[: -len(short_words)]
    else:
        return False
    return not any(word in _DISTINGUISHING_WORDS or word[0].isdigit() or word.startswith("-") for word in added_words)


_APPROXIMATE_WORDS = word_set("about around roughly approximately circa some to and between from by at near")


def _have_equal_quantities(first_option: str, second_option: str) -> bool:
    """Return whether two options state equal quantities, possibly in different units or notations."""

    def list_other_words(option: str) -> tuple[str, ...]:
        for quantity in find_quantities(option):
            option = option.replace(quantity.text, " ", 1)
        return tuple(word for word in _option_words(option) if word not in _APPROXIMATE_WORDS and not word[0].isdigit())

    first_quantities, second_quantities = find_quantities(first_option), find_quantities(second_option)
    if not first_quantities or len(first_quantities) != len(second_quantities):
        return False
    return list_other_words(first_option) == list_other_words(second_option) and all(
        first_quantity.unit is not None
        and second_quantity.unit is not None
        and first_quantity.unit.is_kind_of(second_quantity.unit)
        and first_quantity.unit.rate == second_quantity.unit.rate
        and isclose(
            first_quantity.value * first_quantity.unit.factor, second_quantity.value * second_quantity.unit.factor
        )
        for first_quantity, second_quantity in zip(first_quantities, second_quantities, strict=True)
    )


@check("gathering option", CHOICE_KINDS, "An option is *all of the above*, *none of the above* or the like.")
def _describe_combined_option(draft: Draft) -> str | None:
    combined_option = next((option for option in draft.wording.options if _COMBINED_OPTION.search(option)), None)
    return (
        None
        if combined_option is None
        else f"The option “{combined_option}” combines other options or avoids an answer."
    )


@check("negative option", CHOICE_KINDS, "An option is phrased negatively, and others are not.")
def _describe_negative_option(draft: Draft) -> str | None:
    negative_options = [option for option in draft.wording.options if _NEGATIVE_OPTION.search(option)]
    if not negative_options or len(negative_options) == len(draft.wording.options):
        return None
    return f"“{negative_options[0]}” is phrased negatively."


LENGTH_RATIO = 1.6
"""Length is a clue if the ratio of the correct option's length to every distractor's, or the reverse, is at least this
value."""
LENGTH_DIFFERENCE = 20
"""Length is a clue only if the correct option's length differs from every distractor's by at least this many
characters."""
MIN_SHARED_WORDS = 2
"""The correct option is given away if it shares at least this many content words with the question that no other option
shares, and these are at least half of its content words."""
_ARTICLE = re.compile(r"\b(an?)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$", re.IGNORECASE)
_INITIAL_VOWEL = re.compile(
    r"^\W*(?:(?!u[bcfhjknqrstv][aeiou]|uni|eu|one\b|once\b|UV|US\b)[aeiouAEIOU8]|hour|honest|heir|11\b|18\b)"
)
_PLURAL_STEM = re.compile(
    r"\b(?:are|were)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$|^\W*which\s+(?:\w+\s+){1,3}(?:are|were)\b", re.IGNORECASE
)
_SINGULAR_STEM = re.compile(
    r"\b(?:is|was)\s*(?:_{2,}|\.{3}|…|:)?\s*[?:]?\s*$|^\W*which\s+(?:\w+\s+){1,3}(?:is|was)\b", re.IGNORECASE
)


def _distractors(draft: Draft) -> list[str]:
    return [option for index, option in enumerate(draft.wording.options) if index != draft.wording.correct]


@check("clue by length", CHOICE_KINDS, "The correct option is far longer or shorter than all others.")
def _describe_length_clue(draft: Draft) -> str | None:
    answer, distractors = correct_answer(draft).strip(), [option.strip() for option in _distractors(draft)]
    if draft.wording.correct is None or not distractors:
        return None
    max_length, min_length = max(map(len, distractors)), min(map(len, distractors))
    if len(answer) >= LENGTH_RATIO * max_length and len(answer) - max_length >= LENGTH_DIFFERENCE:
        return f"The correct option has {len(answer)} characters, the longest distractor {max_length}."
    if min_length >= LENGTH_RATIO * len(answer) and min_length - len(answer) >= LENGTH_DIFFERENCE:
        return f"The correct option has {len(answer)} characters, the shortest distractor {min_length}."
    return None


@check("clue by words", CHOICE_KINDS, "Only the correct option repeats words of the stem.")
def _describe_word_clue(draft: Draft) -> str | None:
    if draft.wording.correct is None:
        return None
    question_words = set(content_words(draft.wording.question))
    answer_words = set(content_words(correct_answer(draft)))
    distractors = [set(content_words(option)) for option in _distractors(draft)]
    revealing_words = sorted((answer_words & question_words).difference(*distractors))
    if any(len((option_words & question_words) - answer_words) >= MIN_SHARED_WORDS for option_words in distractors):
        # A distractor repeats other words of the stem, for example if the stem names the compared things.
        return None
    if len(revealing_words) >= MIN_SHARED_WORDS and 2 * len(revealing_words) >= len(answer_words):
        return f"Only the correct option repeats words of the stem: {', '.join(revealing_words)}."
    return None


@check("clue by grammar", CHOICE_KINDS, "Article or number of the stem fits the correct option alone.")
def _describe_grammar_clue(draft: Draft) -> str | None:
    if draft.wording.correct is None or len(draft.wording.options) < 2:
        return None
    question, answer, distractors = draft.wording.question, correct_answer(draft), _distractors(draft)
    if article := _ARTICLE.search(question):
        needs_vowel = article[1].lower() == "an"
        answer_fits, *distractors_fit = (
            (_INITIAL_VOWEL.match(option) is not None) == needs_vowel for option in (answer, *distractors)
        )
        if answer_fits and not any(distractors_fit):
            return f"The article “{article[1]}” before the gap fits the correct option alone."
    for pattern, is_plural, name in ((_PLURAL_STEM, True, "plural"), (_SINGULAR_STEM, False, "singular")):
        fits_alone = _is_plural(answer) is is_plural and all(
            _is_plural(option) is not is_plural for option in distractors
        )
        if pattern.search(question) and fits_alone:
            return f"The stem needs a {name}, and only the correct option is one."
    return None


def _is_plural(option: str) -> bool:
    """Return whether an option is a short phrase, of at most five words, that ends like a plural noun."""
    option_words = words(option)
    if not option_words or len(option_words) > 5:
        return False
    last_word = option_words[-1]
    return " and " in option or (last_word.endswith("s") and not last_word.endswith(("ss", "us", "is", "ics", "ous")))
