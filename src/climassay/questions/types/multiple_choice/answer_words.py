"""Lexicon of words that choose or reject an option in an answer, and the split of a text into words."""

import re
import tomllib
import unicodedata
from enum import Flag, auto
from functools import cache
from pathlib import Path

WORDS = Path(__file__).with_name("answer_words.toml")
"""File of words, by the names of :class:`WordClass`."""
_UNSPACED = "\u0e00-\u0e7f\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
WORD_CHARACTER = rf"(?:(?![{_UNSPACED}\u0964\u0965])[\w\u0900-\u0dff\u064b-\u065f\u0591-\u05c7])"


class WordClass(Flag):
    """Function of a word around the letter of an option."""

    NOUN = auto()
    """An answer or solution."""
    OPTION = auto()
    """An option, choice or letter."""
    GOOD = auto()
    """Correct, right, best."""
    BAD = auto()
    """Wrong, excluded."""
    LINK = auto()
    """A form of "to be", or a colon or word in its role."""
    IT = auto()
    """A pronoun for the answer."""
    CHOOSE = auto()
    """Verb that chooses an option, in the first person."""
    MATCH = auto()
    """A verb that says that an option fits or remains."""
    SO = auto()
    """A word that introduces a conclusion."""
    FILL = auto()
    """A word that may occur in a statement without changing its meaning."""
    LEAD = auto()
    """A word that may open an answer before its letter."""
    NOT = auto()
    EXCLUDE = auto()
    """Verb that rejects an option."""
    AND = auto()
    """A word that joins several letters."""
    BUT = auto()
    """A word that begins a clause that corrects the previous clause."""
    IF = auto()
    """A word that makes its clause hypothetical."""
    DOUBT = auto()
    """A word that marks its sentence as another person's opinion, a possibility or the past."""
    BECAUSE = auto()
    """A word that may follow a stated letter."""
    RETRACT = auto()
    """A word that retracts an earlier statement."""
    CLOSE = auto()
    """A word that ends a sentence after its letter, for example Japanese "C です"."""
    LABELLED = auto()
    """A noun whose items have letters, such as "panel (c)"."""
    OBJECT = auto()
    """A verb that says what is wrong with the option before it."""


@cache
def lexicon() -> tuple[dict[str, WordClass], re.Pattern[str]]:
    """Return the classes of each word, and a pattern that splits a text into words and marks."""
    classes: dict[str, WordClass] = {}
    for name, words in tomllib.loads(WORDS.read_text(encoding="utf-8")).items():
        for word in map(folded_word, words.split()):
            classes[word] = classes.get(word, WordClass(0)) | WordClass[name]
    unspaced = sorted((word for word in classes if re.match(f"[{_UNSPACED}]", word)), key=len)
    phrases = "|".join(map(re.escape, reversed(unspaced)))
    pattern = rf"{phrases}|[{_UNSPACED}]|{WORD_CHARACTER}+(?:['’–-]{WORD_CHARACTER}+)*|=>|->|\n|[^\s\w]"
    return classes, re.compile(pattern)


@cache
def folded_word(word: str) -> str:
    """Return a word without case and accents, as the lexicon has it."""
    word = unicodedata.normalize("NFKC", word).casefold().replace("’", "'")
    if len(word) == 1 or re.match(f"[{_UNSPACED}]", word):
        return word
    return unicodedata.normalize("NFC", re.sub("[\u0300-\u036f]", "", unicodedata.normalize("NFD", word)))
