"""Is an answer the reference: letter by letter, or up to case, punctuation and number."""

import re
import unicodedata

from climassay.claim_identity import folded_case
from climassay.metrics.registry import Candidates, References, answer_pairs, metric

_POWER = re.compile(r"(?<=\d)(?:<sup>|(?=[⁻⁰¹²³⁴-⁹]))", re.IGNORECASE)
"""Where an exponent of a number begins: 10² is not 102."""
_MARKUP = re.compile(r"</?su[bp]>", re.IGNORECASE)
_FRACTION = re.compile(r"(?=[¼-¾⅐-⅞])")
_SIGNS = str.maketrans({"\N{MINUS SIGN}": "-", "\N{EN DASH}": "-", "\N{NON-BREAKING HYPHEN}": "-", "\N{HYPHEN}": "-"})
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SPELLED_SIGNS = {">=": "≥", "<=": "≤", "+/-": "±", "≃": "≈", "≅": "≈", "~": "≈", "⁄": "/"}
_WORD = re.compile(
    r"(?:(?<![\w.])\.(?=\d))?\w+(?:(?<=\d)\.\d+)*"  # words, and numbers with their point
    r"|(?<!\w)[+-](?=\.?\d)|(?<!\w)(?<!\d )[+-](?= \.?\d)"  # signs of numbers, not dashes between them
    r"|[<>≤≥≠=≈±%‰$€£^×]|(?<=\d)/(?=\d)|°(?! ?[cfk]\b)"
)
"""Words, numbers, and the marks without which a number would be another quantity."""
_SHORTEST_PLURAL = 4
"""Letters of the shortest word whose last s may be a plural's: "CFCs" has four, "gas" has three."""
_PLURAL_ENDINGS = (
    ("ies", ("y",)),
    ("es", ("", "is")),
    ("s", ("",)),
    ("ices", ("ix", "ex")),
    ("ata", ("a",)),
    ("ae", ("a",)),
    ("a", ("um", "on")),
    ("i", ("us",)),
)
"""Endings of English, Latin and Greek plurals, and what appears there in the singular."""
_NO_PLURALS = ("ss", "us", "is")


def exact_match(references: References, candidates: Candidates) -> list[bool]:
    """Whether each candidate is its reference, character by character: ClimaQA's cloze "EM".

    Returns:
        One truth value an item, in order; their mean is the published figure (as per cent).

    Raises:
        InputError: The numbers differ, or a reference is empty.

    Notes:
        "Entrainment", "entrainment." and "entrainment " all differ from "entrainment": a model that answers in
        sentences scores 0 whatever it knows. The paper defines no normalisation and its code compares raw strings.

    References:
        ClimaQA, section 3.2.2.
    """
    return [candidate in several for several, candidate in answer_pairs(references, candidates)]


def exact_match_normalised(references: References, candidates: Candidates) -> list[bool]:
    """Whether each candidate is its reference up to case, punctuation and singular or plural; our addition.

    Both are folded: markup of subscripts is removed, compatible characters become one (CO₂ and CO2), case is dropped,
    and everything but letters, digits and what belongs to a quantity (sign, comparator, point, exponent, per cent,
    currency, case of a unit) separates words. Two words match where they are equal or one can be the plural of the
    other, by rules for English, Latin and Greek endings (aerosols, gases, stomata, nuclei, vortices, strata,
    hypotheses).

    Returns:
        One truth value an item, in order. True wherever :func:`exact_match` is.

    Raises:
        InputError: The numbers differ, or a reference is empty.

    Notes:
        Not comparable with published exact match: it is never lower. Articles, British and American spelling
        (sulphate), abbreviations and synonyms still count as wrong.
    """

    def same(reference: str, candidate: str) -> bool:
        if reference == candidate:
            return True
        wanted, given = _words(reference), _words(candidate)
        if not wanted or len(wanted) != len(given):
            return False
        return all(_singulars(one) & _singulars(other) for one, other in zip(wanted, given, strict=True))

    pairs = answer_pairs(references, candidates)
    return [any(same(reference, candidate) for reference in several) for several, candidate in pairs]


def _words(text: str) -> list[str]:
    powered = _FRACTION.sub(" ", _MARKUP.sub("", _POWER.sub("^", text)))
    plain = folded_case(" ".join(unicodedata.normalize("NFKC", powered).translate(_SIGNS).split()))
    for spelled, sign in _SPELLED_SIGNS.items():
        plain = plain.replace(spelled, sign)
    return _WORD.findall(_THOUSANDS.sub("", plain))


def _singulars(word: str) -> set[str]:
    """The word, and every word that it may be the plural of."""
    found = {word}
    if len(word) < _SHORTEST_PLURAL or word.endswith(_NO_PLURALS) or not word.isalpha():
        return found
    for ending, singulars in _PLURAL_ENDINGS:
        if word.endswith(ending):
            found.update(word.removesuffix(ending) + singular for singular in singulars)
    return found


metric(
    "exact_match", "exact match", kinds=["cloze"], binary=True, published="exact_match", short="cloze EM", tested=True
)(lambda batch: list(map(float, exact_match(batch.references, batch.answers))))
metric("exact_match_normalised", "exact match, normalised", kinds=["cloze"], binary=True)(
    lambda batch: list(map(float, exact_match_normalised(batch.references, batch.answers)))
)
