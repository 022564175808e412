"""Words of a text as the checks compare them: content words, cut to a common beginning."""

import re

_WORD = re.compile(r"[^\W_]+(?:['’][^\W\d_]+)?")


def word_set(text: str) -> frozenset[str]:
    """The words of a list, separated by white space."""
    return frozenset(text.split())


_SUFFIXES = sorted(
    word_set(
        """
        ications isations izations ication isation ization ations ating ation ities ments ively ingly fully ated ates
        ment ness ions ings edly ally ate ity ion ing ive ies ied est ers al ed er es ly e s y
        """
    ),
    key=lambda suffix: (-len(suffix), suffix),
)
FUNCTION_WORDS = word_set(
    """
    a about above across after again against all almost along already also although always am among an and another any
    are around as at away be because been before behind being below beneath between beyond both but by can cannot could
    did do does doing down due during each either else even ever every few for from further had has have having he hence
    her here hers him his how however i if in instead into is it its itself just least less like many may me might more
    most much must my neither never no nor not of off often on once one only onto or other others ought our out over
    own per perhaps quite rather same shall she should since so some still such than that the their theirs them
    themselves then there therefore these they this those though through throughout thus to together too toward towards
    under until up upon us very via was we were what when where whereas whether which while who whom whose why will with
    within without would yet you your
    """
)
"""Words that carry no subject matter."""


def words(text: str) -> list[str]:
    """Words and numbers of a text in lower case, in order; ``3.5`` gives two."""
    return [match.lower() for match in _WORD.findall(text)]


def stem(word: str) -> str:
    """A word without its commonest English ending: near enough to find *warming* in *warmed*.

    At least four letters are left; words with digits stay as they are.
    """
    if any(letter.isdigit() for letter in word):
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 4:
            return word[: -len(suffix)]
    return word


def content_words(text: str) -> list[str]:
    """Stems of the words that carry subject matter, numbers left out, in order."""
    return [
        stem(word) for word in words(text) if word not in FUNCTION_WORDS and not word[0].isdigit() and len(word) > 1
    ]
