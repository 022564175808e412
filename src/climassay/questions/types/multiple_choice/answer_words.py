"""Words that say what an answer does with an option: their functions, and how a text is split into them."""

import re
import tomllib
import unicodedata
from enum import Flag, auto
from functools import cache
from pathlib import Path

WORDS = Path(__file__).with_name("answer_words.toml")
"""Words by the names of :class:`WordClass`."""
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
    """A form of "to be" and what has its place, also the colon."""
    IT = auto()
    """A pronoun that stands for the answer."""
    CHOOSE = auto()
    """A verb of choosing in the first person."""
    MATCH = auto()
    """A verb that says that an option fits or remains."""
    SO = auto()
    """Introduces a conclusion."""
    FILL = auto()
    """May stand within a statement without changing it."""
    LEAD = auto()
    """May open an answer before its letter."""
    NOT = auto()
    EXCLUDE = auto()
    """A verb of rejecting."""
    AND = auto()
    """Joins several letters."""
    BUT = auto()
    """Begins a clause that corrects the one before."""
    IF = auto()
    """Makes its clause hypothetical."""
    DOUBT = auto()
    """Makes its sentence somebody else's opinion, a possibility or the past."""
    BECAUSE = auto()
    """May follow a stated letter."""
    RETRACT = auto()
    """Takes back what was stated before."""
    CLOSE = auto()
    """Ends a sentence after its letter, for example Japanese "C です"."""
    LABELLED = auto()
    """A thing that has letters itself, as "panel (c)"."""
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
