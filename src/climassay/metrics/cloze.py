"""How near a short answer is to the reference: the same up to spelling, or near it in the words around a cloze gap."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import folded_case
from climassay.errors import InputError
from climassay.metrics.registry import Batch, Candidates, References, Scorer, answer_pairs, metric
from climassay.models.contract import Encoder
from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

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
    results = {word}
    if len(word) < _SHORTEST_PLURAL or word.endswith(_NO_PLURALS) or not word.isalpha():
        return results
    for ending, singulars in _PLURAL_ENDINGS:
        if word.endswith(ending):
            results.update(word.removesuffix(ending) + singular for singular in singulars)
    return results


metric(
    "exact_match", "exact match", kinds=["cloze"], binary=True, published="exact_match", short="cloze EM", tested=True
)(lambda batch: list(map(float, exact_match(batch.references, batch.answers))))
metric("exact_match_normalised", "exact match, normalised", kinds=["cloze"], binary=True)(
    lambda batch: list(map(float, exact_match_normalised(batch.references, batch.answers)))
)


WINDOW = 4
"""Words that are kept on each side of the gap; the paper's choice."""

_GAP = re.compile(r"<\s*(?:mask|blank)\s*>", re.IGNORECASE)


class ClozeAnswer(NamedTuple):
    """An answer to a cloze statement."""

    statement: str
    """With one gap: ``<MASK>``, ``<mask>`` or ``<blank>``."""
    reference: str
    answer: str
    """What a model put there; empty where it gave nothing."""


class Phrases(NamedTuple):
    """The words around a gap, filled in twice."""

    reference: str
    answer: str


def phrase_similarity(
    statement: str, reference: str, answer: str, window: int | None = WINDOW, encoder: Encoder | str | None = None
) -> float:
    """Similarity of reference and answer in the phrase around the gap, ClimaQA's metric for near-right cloze answers.

    The gap is filled once with the reference and once with the answer, ``window`` words are kept on each side
    (:func:`phrases`), and the score is 2 (cos - 0.5), cos being the cosine of the two phrases' sentence vectors.

    Args:
        statement: With one gap, ``<MASK>``, ``<mask>`` or ``<blank>``.
        reference: What stood in the gap.
        answer: What was given; an empty one scores 0.
        window: Words on each side; None keeps the whole statement.
        encoder: An encoder or its name (``local:minilm`` by default, loaded once). Name it beside the figure.

    Returns:
        At most 1, which an answer that is the reference up to case and punctuation has. The paper shows -1 to 1;
        nothing is cut off below (a cosine below 0 gives less than -1).

    Raises:
        InputError: The statement has not exactly one gap, the reference is empty, or the window is negative.
        ModelError: The encoder cannot be loaded.

    Notes:
        - The paper takes the Universal Sentence Encoder: with another encoder values differ and only the order can be
          compared. Shared words around the gap lift every answer; how far right and wrong ones lie apart for an encoder
          is what ``benchmarks/long/phrase_window.py`` measures.
        - Encoders put opposites close together (entrainment, detrainment): a high score does not make an answer right.

    References:
        ClimaQA, section 3.2.2, Figure 4 (window 4) and appendix A.2.3.
    """
    return phrase_similarities([ClozeAnswer(statement, reference, answer)], window=window, encoder=encoder)[0]


def phrase_similarities(
    items: Iterable[ClozeAnswer | tuple[str, str, str]],
    *,
    window: int | None = WINDOW,
    encoder: Encoder | str | None = None,
) -> list[float]:
    """:func:`phrase_similarity` of many (statement, reference, answer), in order; every phrase is encoded once."""
    given = [ClozeAnswer(*item) for item in items]
    filled = [phrases(*item, window=window) for item in given]
    cosines = phrase_cosines(filled, encoder)
    return [
        float(2 * (cosine - 0.5)) if terms(item.answer) else 0.0 for item, cosine in zip(given, cosines, strict=True)
    ]


def phrase_cosines(filled: Sequence[Phrases], encoder: Encoder | str | None = None) -> NDArray[np.float64]:
    """Cosine of each pair of phrases before it is rescaled, shape [phrases], -1 to 1; exactly 1 for equal phrases."""
    places = {phrase: place for place, phrase in enumerate(dict.fromkeys(text for pair in filled for text in pair))}
    if all(pair.reference == pair.answer for pair in filled):
        return np.ones(len(filled))
    vectors = sentence_encoder(encoder).encode(list(places)).astype(np.float64)
    references = vectors[[places[pair.reference] for pair in filled]]
    answers = vectors[[places[pair.answer] for pair in filled]]
    equal = np.array([pair.reference == pair.answer for pair in filled])
    return np.where(equal, 1.0, np.clip(np.sum(references * answers, axis=1), -1.0, 1.0))


def phrases(statement: str, reference: str, answer: str, window: int | None = WINDOW) -> Phrases:
    """The words around the gap, filled with the reference and with the answer.

    Every word is lower-cased and stripped of punctuation (:func:`terms`) before words are counted, so that a dash or a
    bracket takes no place in the window.

    Raises:
        InputError: The statement has not exactly one gap, the reference is empty, or the window is negative.
    """
    parts = _GAP.split(statement)
    if len(parts) != 2:
        raise InputError(
            f"A cloze statement needs exactly one gap (<MASK>), this one has {len(parts) - 1}: {statement}"
        )
    if not terms(reference):
        raise InputError(f"The reference {reference!r} has no word to put into the gap.")
    if window is not None and window < 0:
        raise InputError(f"A window must have 0 or more words on each side, not {window}.")
    before, after = (terms(part) for part in parts)
    if window is not None:
        before, after = before[max(0, len(before) - window) :], after[:window]
    return Phrases(*(" ".join([*before, *terms(filling), *after]) for filling in (reference, answer)))


def terms(text: str) -> list[str]:
    """Words in lower case without the punctuation around them; what has neither letter nor digit is left out.

    A word with a digit keeps a minus at its front and a per cent at its end; points within numbers and hyphens within
    words are not punctuation around a word. Sub- and superscripts become plain (``SO<sub>2</sub>`` and SO₂ are so2).
    """
    plain = unicodedata.normalize("NFKC", _MARKUP.sub("", text)).replace("\N{MINUS SIGN}", "-")
    words = []
    for word in plain.lower().split():
        places = [place for place, sign in enumerate(word) if sign.isalnum()]
        if not places:
            continue
        first, last = places[0], places[-1]
        if word[first].isdigit() and first:
            # .5 is a half, and -3 is not a three.
            first -= word[first - 1] == "."
            first -= first > 0 and word[first - 1] == "-"
        if word[last].isdigit():
            last += word[last + 1 : last + 2] == "%"
        words.append(word[first : last + 1])
    return words


def sentence_encoder(encoder: Encoder | str | None = None) -> Encoder:
    """The encoder given, or the one of that name, loaded once a process; ``local:minilm`` for None."""
    if encoder is None or isinstance(encoder, str):
        return _loaded(encoder or BUNDLED_ENCODER)
    return encoder


@cache
def _loaded(name: str) -> Encoder:
    return load_encoder(name)


def _encoder_and_window(scorer: Scorer) -> str:
    words = "whole statement" if scorer.window is None else f"window {scorer.window}"
    return f"{sentence_encoder(scorer.encoder).name}, {words}"


@metric(
    "phrase_similarity",
    "phrase similarity",
    kinds=["cloze"],
    published="phrase_similarity",
    short="cloze PS",
    tested=True,
    source=_encoder_and_window,
)
def _phrase_scores(batch: Batch) -> list[float]:
    return phrase_similarities(batch.items, window=batch.scorer.window, encoder=batch.scorer.encoder)
