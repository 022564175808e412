"""Checks of one kind: options and clues of multiple choice, the sentence and the masked term of a cloze statement."""

import re
from itertools import combinations, zip_longest
from math import isclose

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Draft, has_term
from climassay.generation.masking.words import FUNCTION_WORDS as MASKER_FUNCTION_WORDS
from climassay.generation.masking.words import GENERIC
from climassay.generation.screening.check import (
    CHOICE,
    FUNCTION_WORDS,
    STATED,
    check,
    content_words,
    right_answer,
    stem,
    word_set,
    words,
)
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


@check("option count", CHOICE, "Has not exactly four options with one marked as correct.")
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


@check("duplicate options", CHOICE, "Two options are the same but for case, articles or punctuation.")
def _duplicates(draft: Draft) -> str | None:
    for first, second in combinations(draft.wording.options, 2):
        if _plain(first) == _plain(second):
            return f"“{first}” stands there twice."
    return None


@check(
    "overlapping options",
    CHOICE,
    "Two options say the same in other forms of words, or one is the other with something added.",
)
def _overlap(draft: Draft) -> str | None:
    for first, second in combinations(draft.wording.options, 2):
        if _plain(first) == _plain(second):
            continue
        if _same_quantities(first, second):
            return f"“{first}” and “{second}” are the same quantity."
        # The same stems in the same order but for function words.
        if _stems(first) == _stems(second) != () or _within(first, second):
            return f"“{first}” and “{second}” say nearly the same."
    return None


# A degree makes another answer: *likely* and *very likely*, *high confidence* and *very high confidence* exclude
# each other on their scales.
_MEANING = word_set(
    "no not never nor neither without less more least most few many much above below before after up down over under"
    " into from in out off on against between within all only each every both either same other again"
    " further as to by very extremely exceptionally virtually highly nearly almost partly fully wholly slightly"
    " strongly weakly about than"
)


def _stems(option: str) -> tuple[str, ...]:
    """Stems of an option's words; numbers, negations and comparisons count as content."""
    return tuple(stem(word) for word in _plain(option) if word in _MEANING or word not in FUNCTION_WORDS)


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


_ROUGHLY = word_set("about around roughly approximately circa some to and between from by at near")


def _same_quantities(first: str, second: str) -> bool:
    """Whether both options consist of the same numbers in the same unit, written in two ways."""

    def other_words(option: str) -> tuple[str, ...]:
        for quantity in quantities(option):
            option = option.replace(quantity.text, " ", 1)
        return tuple(word for word in _plain(option) if word not in _ROUGHLY and not word[0].isdigit())

    pairs = list(zip_longest(quantities(first), quantities(second)))
    return (
        other_words(first) == other_words(second)
        and bool(pairs)
        and all(
            one is not None
            and other is not None
            and one.unit is not None
            and other.unit is not None
            and one.unit.is_kind_of(other.unit)
            and one.unit.rate == other.unit.rate
            and isclose(one.value * one.unit.factor, other.value * other.unit.factor)
            for one, other in pairs
        )
    )


@check("gathering option", CHOICE, "An option is *all of the above*, *none of the above* or the like.")
def _gathering(draft: Draft) -> str | None:
    found = next((option for option in draft.wording.options if _GATHERING.search(option)), None)
    return None if found is None else f"The option “{found}” gathers the others or avoids an answer."


@check("negative option", CHOICE, "An option denies instead of stating.")
def _negative(draft: Draft) -> str | None:
    negative = [option for option in draft.wording.options if _NEGATIVE.search(option)]
    if not negative or len(negative) == len(draft.wording.options):
        return None
    return f"“{negative[0]}” is phrased negatively."


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


@check("clue by length", CHOICE, "The correct option is far longer or shorter than all others.")
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


@check("clue by words", CHOICE, "Only the correct option takes up the words of the stem.")
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


@check("clue by grammar", CHOICE, "Article or number of the stem fits the correct option alone.")
def _grammar(draft: Draft) -> str | None:
    if draft.wording.correct is None or len(draft.wording.options) < 2:
        return None
    stem, answer, others = draft.wording.question, right_answer(draft), _distractors(draft)
    if article := _ARTICLE.search(stem):
        wants_vowel = article[1].lower() == "an"
        fits, *others_fit = ((_VOWEL.match(option) is not None) == wants_vowel for option in (answer, *others))
        if fits and not any(others_fit):
            return f"The article “{article[1]}” before the gap fits the correct option alone."
    for pattern, plural, name in ((_PLURAL_STEM, True, "plural"), (_SINGULAR_STEM, False, "singular")):
        if (
            pattern.search(stem)
            and _is_plural(answer) is plural
            and all(_is_plural(one) is not plural for one in others)
        ):
            return f"The stem asks for a {name}, and the correct option alone is one."
    return None


def _is_plural(option: str) -> bool:
    """Whether a short option looks like a plural noun; whole clauses never do."""
    found = words(option)
    if not found or len(found) > 5:
        return False
    last = found[-1]
    return " and " in option or (last.endswith("s") and not last.endswith(("ss", "us", "is", "ics", "ous")))


MOST_WORDS = 60
FEWEST_WORDS = 6
_ONE_WORD = re.compile(r"[^\W_]+(?:[-‐–'’][^\W_]+)*")
_NUMBER_WORDS = word_set(
    "zero one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second"
    " third half quarter"
)
_TRIVIAL = FUNCTION_WORDS | MASKER_FUNCTION_WORDS | GENERIC


@check("several sentences", STATED, "The statement is not one sentence of usual length.")
def _sentences(draft: Draft) -> str | None:
    statement = draft.wording.question.strip()
    count = len(split_sentences(statement))
    if count != 1:
        return f"The statement has {count} sentences."
    if statement.endswith("?"):
        return "The statement is a question."
    length = len(words(statement))
    if not FEWEST_WORDS <= length <= MOST_WORDS:
        return f"The statement has {length} words, not {FEWEST_WORDS} to {MOST_WORDS}."
    return None


@check("term not one word", STATED, "The masked term has several words or none.")
def _not_one_word(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return f"“{term}” is not one word." if term and not _ONE_WORD.fullmatch(term) else None


@check("term absent", STATED, "The masked term is not a word of the statement.")
def _absent(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return None if not term or has_term(draft.wording.question, term) else f"“{term}” is not a word of the statement."


@check("term repeated", STATED, "The statement has the masked term, or a form of it, a second time.")
def _repeated(draft: Draft) -> str | None:
    """The term, or another form of it, appears elsewhere in the statement and gives itself away."""
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    wanted = tuple(map(stem, words(term)))
    found = [stem(word) for word in words(draft.wording.question)]
    times = sum(tuple(found[place : place + len(wanted)]) == wanted for place in range(len(found)))
    return f"“{term}” or a form of it stands there {times} times." if times > 1 else None


@check("term trivial", STATED, "The masked term is a function word, a number, or a word of any science.")
def _trivial(draft: Draft) -> str | None:
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    if term in _TRIVIAL or len(term) < 2 or not any(character.isalpha() for character in term):
        return f"“{term}” says nothing of the subject."
    return f"“{term}” is a number." if term in _NUMBER_WORDS else None


TERM_CHECKS = ("term not one word", "term absent", "term repeated", "term trivial")
"""Checks that see something only once a term is chosen: they are worth running again after masking."""
