"""Checks of cloze statements and their masked terms."""

import re

from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Draft, has_term
from climassay.generation.screening.check import FUNCTION_WORDS, GAP_KINDS, check, stem, word_set, words
from climassay.generation.terms import FUNCTION_WORDS as MASKER_FUNCTION_WORDS
from climassay.generation.terms import GENERIC

MAX_STATEMENT_WORDS = 60
MIN_STATEMENT_WORDS = 6
_SINGLE_WORD = re.compile(r"[^\W_]+(?:[-‐–'’][^\W_]+)*")
_NUMBER_WORDS = word_set(
    "zero one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second"
    " third half quarter"
)
_TRIVIAL_WORDS = FUNCTION_WORDS | MASKER_FUNCTION_WORDS | GENERIC


@check("several sentences", GAP_KINDS, "The statement is not one sentence of usual length.")
def _describe_sentence_fault(draft: Draft) -> str | None:
    statement = draft.wording.question.strip()
    n_sentences = len(split_sentences(statement))
    if n_sentences != 1:
        return f"The statement has {n_sentences} sentences."
    if statement.endswith("?"):
        return "The statement is a question."
    n_words = len(words(statement))
    if not MIN_STATEMENT_WORDS <= n_words <= MAX_STATEMENT_WORDS:
        return f"The statement has {n_words} words, not {MIN_STATEMENT_WORDS} to {MAX_STATEMENT_WORDS}."
    return None


@check("term not one word", GAP_KINDS, "The masked term has several words or none.")
def _describe_invalid_term(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return f"“{term}” is not one word." if term and not _SINGLE_WORD.fullmatch(term) else None


@check("term absent", GAP_KINDS, "The masked term is not a word of the statement.")
def _describe_absent_term(draft: Draft) -> str | None:
    term = draft.wording.answer.strip()
    return None if not term or has_term(draft.wording.question, term) else f"“{term}” is not a word of the statement."


@check("term repeated", GAP_KINDS, "The statement has the masked term, or a form of it, more than once.")
def _describe_repeated_term(draft: Draft) -> str | None:
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    term_stems = tuple(map(stem, words(term)))
    stems = [stem(word) for word in words(draft.wording.question)]
    n_occurrences = sum(tuple(stems[start : start + len(term_stems)]) == term_stems for start in range(len(stems)))
    return f"The statement has “{term}” or a form of it {n_occurrences} times." if n_occurrences > 1 else None


@check("term trivial", GAP_KINDS, "The masked term is a function word, a number, or a word of any science.")
def _describe_trivial_term(draft: Draft) -> str | None:
    term = draft.wording.answer.strip().lower()
    if not term:
        return None
    if term in _TRIVIAL_WORDS or len(term) < 2 or not any(character.isalpha() for character in term):
        return f"“{term}” is not specific to the subject."
    return f"“{term}” is a number." if term in _NUMBER_WORDS else None


TERM_CHECKS = ("term not one word", "term absent", "term repeated", "term trivial")
"""Names of the checks that need a term, and are therefore run again after masking."""
