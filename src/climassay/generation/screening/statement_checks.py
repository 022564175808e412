"""Checks of cloze statements and their masked terms."""

import re
from itertools import pairwise

from climassay.corpus.languages import count_function_words
from climassay.corpus.sentences import split_sentences
from climassay.generation.draft import Draft, has_term
from climassay.generation.screening.check import FUNCTION_WORDS, GAP_KINDS, check, stem, words
from climassay.generation.terms import FUNCTION_WORDS as MASKER_FUNCTION_WORDS
from climassay.generation.terms import GENERIC, word_set

MAX_STATEMENT_WORDS = 60
MIN_STATEMENT_WORDS = 6
_SINGLE_WORD = re.compile(r"[^\W_]+(?:[-‐–'’][^\W_]+)*")
_NUMBER_WORDS = word_set(
    "zero one two three four five six seven eight nine ten eleven twelve hundred thousand million billion first second"
    " third half quarter"
)
_SENTENCE_END = re.compile(r"[.!…。！][\"'”’»)\]]*(?:\s*(?:\([^()]*\)|\{[^{}]*\}|\[[^\[\]]*\]))*$")
_LEADING_LABEL = re.compile(
    r"\W*(?:#|[-*•–]\s|\(?(?:\d{1,2}|[A-Za-z]|[ivx]{1,4})[.)]\s|(?:[A-Z]{1,4}\.\d+|\d+(?:\.\d+){2,})[\d.]*\s"
    r"|\d+\.\d+\s(?=[A-Z][a-z]{3})|(?:Figure|Fig\.|Table|Box|FAQ|Chapter|Section)\s[A-Z]*\.?\d[\d.]*\s?[|:–—-])"
)
"""Pattern of the mark or number of a heading, list item or caption."""
_FINITE_VERBS = word_set(
    """
    is are was were has have had can cannot could will would may might must shall should does do did became came drove
    fell froze gave grew held kept lay led made meant rose shrank stood took went
    """
)
_NEVER_SUBJECT_OR_VERB = word_set(
    """
    a about above across after against among an and around as at before behind below between beyond by during for from
    in into its near of on or over per since than the their through to toward towards under upon via with within without
    """
)
_S_ENDING = re.compile(r"(?<![suic])s$")
"""Ending of plural nouns and of verbs in the third person; *mass*, *nucleus*, *basis* and *physics* lack it."""
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


@check("no sentence", GAP_KINDS, "The statement is a heading, a list item or a fragment.")
def _describe_fragment(draft: Draft) -> str | None:
    statement = draft.wording.question.strip()
    if not statement or statement.endswith("?"):
        return None
    if not _SENTENCE_END.search(statement):
        return "The statement does not end like a sentence."
    if _LEADING_LABEL.match(statement):
        return "The statement begins with the mark or number of a heading, list item or caption."
    hits, _ = count_function_words(statement)
    is_english = hits["en"] > max(n_hits for language, n_hits in hits.items() if language != "en")
    return "The statement has no verb." if is_english and not _may_have_verb(words(statement)) else None


def _may_have_verb(statement_words: list[str]) -> bool:
    """Return whether any of a statement's English words may be a finite verb.

    A word may be a verb if it is a common verb form, if it ends in *-s* or *-ed* and follows a possible subject, or if
    it follows a plural. Plural nouns after another noun or an adjective are therefore taken for verbs.
    """
    if not _FINITE_VERBS.isdisjoint(statement_words) or any(word.endswith(("n't", "n’t")) for word in statement_words):
        return True
    for index, (previous_word, word) in enumerate(pairwise(statement_words), start=1):
        if word in _NEVER_SUBJECT_OR_VERB or previous_word in _NEVER_SUBJECT_OR_VERB:
            continue
        if word.endswith("ed") or _S_ENDING.search(word):
            return True
        is_last = index == len(statement_words) - 1
        if _S_ENDING.search(previous_word) and not is_last and not word.endswith(("ing", "ly")):
            return True
    return False


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
