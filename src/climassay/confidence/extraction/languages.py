"""Which language a document is in, as far as its commonest words tell."""

import re
from collections import Counter
from collections.abc import Iterable

from climassay.errors import InputError

READ_LANGUAGES = ("English", "French", "Spanish")
"""Languages whose calibrated words are read."""
_COMMON = {
    "English": "the of and to is that with for are by",
    "French": "les des et du est dans une pour sont au",
    "Spanish": "los las del y es una por con el se",
    "Portuguese": "os das dos uma para com não são pela em",
    "Italian": "gli dei il della che di sono nel una per",
    "German": "der die und das ist mit von den nicht werden",
    "Dutch": "het een van en zijn dat voor niet met op",
}
_LANGUAGES_OF = {
    word: [name for name, words in _COMMON.items() if word in words.split()]
    for words in _COMMON.values()
    for word in words.split()
}
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE = 200_000
_FEWEST = 20
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")


def language_of(texts: Iterable[str]) -> str | None:
    """The language of texts: an English name, "another script", or None where there is too little to tell."""
    sample = " ".join(texts)[:_SAMPLE]
    words = [word.lower() for word in _WORD.findall(sample)]
    if len(words) >= _FEWEST and sum(_LATIN.match(word) is not None for word in words) < len(words) / 2:
        return "another script"
    counts = Counter(name for word in words for name in _LANGUAGES_OF.get(word, ()))
    return counts.most_common(1)[0][0] if counts.total() >= _FEWEST else None


def check_language(title: str, texts: Iterable[str]) -> None:
    """Refuse a document whose calibrated words cannot be read.

    Raises:
        InputError: It is in another language than :data:`READ_LANGUAGES`.
    """
    language = language_of(texts)
    if language is not None and language not in READ_LANGUAGES:
        known = f"{', '.join(READ_LANGUAGES[:-1])} and {READ_LANGUAGES[-1]}"
        raise InputError(f"{title} seems to be in {language}: levels of confidence are read in {known} only.")
