"""Lexicon of words that choose or reject an option in an answer, and the split of a text into words."""

import re
import tomllib
import unicodedata
from enum import Flag, auto
from functools import cache
from pathlib import Path

WORDS = Path(__file__).with_name("answer_words.toml")
"""File that lists the words of each :class:`WordClass`."""
_UNSPACED_SCRIPTS = "\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
WORD_CHARACTER = rf"(?:(?![{_UNSPACED_SCRIPTS}\u0964\u0965])[\w\u0900-\u0dff\u064b-\u065f\u0591-\u05c7])"


class WordClass(Flag):
    """Class of words that occur around the letter of an option."""

    ANSWER_NOUN = auto()
    """Nouns for the answer, such as "answer" and "solution"."""
    OPTION_NOUN = auto()
    """Nouns for an option, such as "option", "choice" and "letter"."""
    CORRECT = auto()
    """Adjectives such as "correct", "right" and "best"."""
    WRONG = auto()
    """Adjectives and participles such as "wrong" and "excluded"."""
    COPULA = auto()
    """Forms of "to be", and words and punctuation that replace it, such as a colon."""
    PRONOUN = auto()
    """Pronouns that stand for the answer."""
    CHOICE_VERB = auto()
    """Verbs in the first person that choose an option."""
    MATCH_VERB = auto()
    """Verbs stating that an option fits or remains."""
    CONCLUSION = auto()
    """Words that introduce a conclusion."""
    FILLER = auto()
    """Words that do not change the meaning of a statement."""
    OPENER = auto()
    """Words with which an answer may begin before its letter."""
    NEGATION = auto()
    EXCLUSION_VERB = auto()
    """Verbs that reject an option."""
    CONJUNCTION = auto()
    """Words that join several letters."""
    CONTRAST = auto()
    """Words that begin a clause correcting the previous one."""
    CONDITION = auto()
    """Words that make their clause hypothetical."""
    DOUBT = auto()
    """Words that mark their sentence as another person's opinion, as a possibility, or as past."""
    REASON = auto()
    """Words that may follow the letter of the answer, such as "because"."""
    RETRACTION = auto()
    """Words that retract an earlier statement."""
    CLOSING = auto()
    """Words that end a sentence after its letter, for example in Japanese "C です"."""
    LABELLED_NOUN = auto()
    """Nouns for things that are labelled by letters, as in "panel (c)"."""
    OBJECTION_VERB = auto()
    """Verbs that reject the option before them, such as "ignores" in "B ignores the clouds"."""


@cache
def load_lexicon() -> tuple[dict[str, WordClass], re.Pattern[str]]:
    """Load the classes of each word by its folded form, and a pattern that matches words and punctuation marks."""
    classes: dict[str, WordClass] = {}
    for name, words in tomllib.loads(WORDS.read_text(encoding="utf-8")).items():
        for word in map(fold_word, words.split()):
            classes[word] = classes.get(word, WordClass(0)) | WordClass[name]
    unspaced_words = sorted((word for word in classes if re.match(f"[{_UNSPACED_SCRIPTS}]", word)), key=len)
    phrases = "|".join(map(re.escape, reversed(unspaced_words)))
    pattern = rf"{phrases}|[{_UNSPACED_SCRIPTS}]|{WORD_CHARACTER}+(?:['’–-]{WORD_CHARACTER}+)*|=>|->|\n|[^\s\w]"
    return classes, re.compile(pattern)


@cache
def fold_word(word: str) -> str:
    """Return a word in the form in which the lexicon lists it: in lower case and without accents."""
    word = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    if len(word) == 1 or re.match(f"[{_UNSPACED_SCRIPTS}]", word):
        return word
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", word)))
