"""Cloze: one sentence, and a masked term that is one telling word of it."""

import re

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Draft
from climassay.generation.masking.words import FUNCTION_WORDS as MASKER_FUNCTION_WORDS
from climassay.generation.masking.words import GENERIC
from climassay.generation.screening.check import STATED, Check
from climassay.generation.screening.words import FUNCTION_WORDS, stem, word_set, words

MOST_WORDS = 60
FEWEST_WORDS = 6
_ONE_WORD = re.compile(r"[^\W_]+(?:[-‐–'’][^\W_]+)*")
_NUMBER_WORDS = word_set(
    "zero one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second"
    " third half quarter"
)
_TRIVIAL = FUNCTION_WORDS | MASKER_FUNCTION_WORDS | GENERIC


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


def _not_one_word(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return f"“{term}” is not one word." if term and not _ONE_WORD.fullmatch(term) else None


def _absent(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    if not term or re.search(rf"(?<!\w){re.escape(term)}(?!\w)", draft.wording.question):
        return None
    return f"“{term}” is not a word of the statement."


def _repeated(draft: Draft) -> str | None:
    """The term, or another form of it, stands elsewhere in the statement and gives itself away."""
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    wanted = tuple(map(stem, words(term)))
    found = [stem(word) for word in words(draft.wording.question)]
    times = sum(tuple(found[place : place + len(wanted)]) == wanted for place in range(len(found)))
    return f"“{term}” or a form of it stands there {times} times." if times > 1 else None


def _trivial(draft: Draft) -> str | None:
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    if term in _TRIVIAL or len(term) < 2 or not any(character.isalpha() for character in term):
        return f"“{term}” says nothing of the subject."
    return f"“{term}” is a number." if term in _NUMBER_WORDS else None


CHECKS = (
    Check("several sentences", STATED, "The statement is not one sentence of usual length.", _sentences),
    Check("term not one word", STATED, "The masked term has several words or none.", _not_one_word),
    Check("term absent", STATED, "The masked term is not a word of the statement.", _absent),
    Check("term repeated", STATED, "The statement has the masked term, or a form of it, a second time.", _repeated),
    Check("term trivial", STATED, "The masked term is a function word, a number, or a word of any science.", _trivial),
)
TERM_CHECKS = ("term not one word", "term absent", "term repeated", "term trivial")
"""Checks that see something only once a term is chosen: they are worth running again after masking."""
