"""Metrics of short answers: exact match up to spelling, and similarity of the phrase around a cloze gap."""

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
"""Start of a number's exponent: 10² is not 102."""
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
"""Words, numbers, and marks that change a quantity."""
_MIN_PLURAL_LETTERS = 4
"""Minimum number of letters of a plural: "CFCs" has four, "gas" has three."""
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
"""Endings of English, Latin and Greek plurals with those of their singulars."""
_NO_PLURALS = ("ss", "us", "is")


def exact_match(references: References, candidates: Candidates) -> list[bool]:
    """Return whether each candidate equals a reference, character by character: ClimaQA's cloze "EM".

    Returns:
        One truth value per item, in order; their mean is the published figure (in per cent).

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        "Entrainment", "entrainment." and "entrainment " all differ from "entrainment": a model that answers in
        sentences scores 0. The paper defines no normalisation and its code compares raw strings.

    References:
        ClimaQA, section 3.2.2.
    """
    return [candidate in item_references for item_references, candidate in answer_pairs(references, candidates)]


def exact_match_normalised(references: References, candidates: Candidates) -> list[bool]:
    """Return whether each candidate equals a reference up to case, punctuation and plural; our addition.

    Both are normalised: markup of subscripts is removed, compatible characters are unified (CO₂ and CO2), case is
    dropped, and everything but letters, digits and parts of a quantity (sign, comparator, point, exponent, per cent,
    currency, case of a unit) separates words. Two words match if they are equal or one can be the plural of the other,
    by rules for English, Latin and Greek endings (aerosols, gases, stomata, nuclei, vortices, strata, hypotheses).

    Returns:
        One truth value per item, in order. True wherever :func:`exact_match` is.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        Not comparable with published exact match, which is never higher. Articles, British and American spelling
        (sulphate), abbreviations and synonyms still count as wrong.
    """

    def same(reference: str, candidate: str) -> bool:
        if reference == candidate:
            return True
        reference_words, candidate_words = normalised_words(reference), normalised_words(candidate)
        if not reference_words or len(reference_words) != len(candidate_words):
            return False
        pairs = zip(reference_words, candidate_words, strict=True)
        return all(_singulars(first) & _singulars(second) for first, second in pairs)

    return [
        any(same(reference, candidate) for reference in item_references)
        for item_references, candidate in answer_pairs(references, candidates)
    ]


def normalised_words(text: str) -> list[str]:
    """Split a text into the words, numbers and marks that :func:`exact_match_normalised` compares."""
    powered = _FRACTION.sub(" ", _MARKUP.sub("", _POWER.sub("^", text)))
    plain = folded_case(" ".join(unicodedata.normalize("NFKC", powered).translate(_SIGNS).split()))
    for spelling, sign in _SPELLED_SIGNS.items():
        plain = plain.replace(spelling, sign)
    return _WORD.findall(_THOUSANDS.sub("", plain))


def _singulars(word: str) -> set[str]:
    """Return the word and every word that it may be the plural of."""
    results = {word}
    if len(word) < _MIN_PLURAL_LETTERS or word.endswith(_NO_PLURALS) or not word.isalpha():
        return results
    for ending, singulars in _PLURAL_ENDINGS:
        if word.endswith(ending):
            results.update(word.removesuffix(ending) + singular for singular in singulars)
    return results


metric("exact_match", "exact match", binary=True, published="exact_match", short="cloze EM", tested=True)(
    lambda batch: list(map(float, exact_match(batch.references, batch.answers)))
)
metric("exact_match_normalised", "exact match, normalised", binary=True)(
    lambda batch: list(map(float, exact_match_normalised(batch.references, batch.answers)))
)


WINDOW = 4
"""Number of words on each side of the gap, as in the paper."""

_GAP = re.compile(r"<\s*(?:mask|blank)\s*>", re.IGNORECASE)


class ClozeAnswer(NamedTuple):
    """An answer to a cloze statement."""

    statement: str
    """Statement with one gap: ``<MASK>``, ``<mask>`` or ``<blank>``."""
    reference: str
    answer: str
    """Model's answer; empty if it gave none."""


class Phrases(NamedTuple):
    """Phrase around a gap, filled with the reference and with the answer."""

    reference: str
    answer: str


def phrase_similarity(
    statement: str, reference: str, answer: str, window: int | None = WINDOW, encoder: Encoder | str | None = None
) -> float:
    """Return the similarity of reference and answer in the phrase around the gap, ClimaQA's cloze metric.

    The gap is filled once with the reference and once with the answer, with ``window`` words on each side
    (:func:`phrases`). The score is 2 (cos - 0.5), cos being the cosine of the two phrases' sentence vectors.

    Args:
        statement: Statement with one gap, ``<MASK>``, ``<mask>`` or ``<blank>``.
        reference: Right answer.
        answer: Answer to score; an empty one scores 0.
        window: Number of words on each side; None for the complete statement.
        encoder: Encoder or its name (``local:minilm`` by default, loaded once). Report it with the figure.

    Returns:
        At most 1, for an answer that equals the reference up to case and punctuation. The paper shows -1 to 1; lower
        values, for a cosine below 0, are not clipped.

    Raises:
        InputError: The statement has not exactly one gap, the reference is empty, or the window is negative.
        ModelError: The encoder cannot be loaded.

    Notes:
        - The paper uses the Universal Sentence Encoder: values of another encoder differ and only ranks are comparable.
          Shared words around the gap raise the score of every answer; ``benchmarks/long/phrase_window.py`` measures
          the separation of right and wrong answers for an encoder.
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
    """Return :func:`phrase_similarity` of each (statement, reference, answer); every phrase is encoded once."""
    answers = [ClozeAnswer(*item) for item in items]
    cosines = phrase_cosines([phrases(*answer, window=window) for answer in answers], encoder)
    return [
        float(2 * (cosine - 0.5)) if terms(answer.answer) else 0.0
        for answer, cosine in zip(answers, cosines, strict=True)
    ]


def phrase_cosines(pairs: Sequence[Phrases], encoder: Encoder | str | None = None) -> NDArray[np.float64]:
    """Return the cosine of each pair of phrases, shape [phrases], -1 to 1; exactly 1 for equal phrases."""
    if all(pair.reference == pair.answer for pair in pairs):
        return np.ones(len(pairs))
    index = {phrase: number for number, phrase in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    vectors = sentence_encoder(encoder).encode(list(index)).astype(np.float64)
    references = vectors[[index[pair.reference] for pair in pairs]]
    answers = vectors[[index[pair.answer] for pair in pairs]]
    is_equal = np.array([pair.reference == pair.answer for pair in pairs])
    return np.where(is_equal, 1.0, np.clip(np.sum(references * answers, axis=1), -1.0, 1.0))


def phrases(statement: str, reference: str, answer: str, window: int | None = WINDOW) -> Phrases:
    """Return the words around the gap, filled with the reference and with the answer.

    Words are lower-cased and stripped of punctuation (:func:`terms`) before they are counted, so that a dash or a
    bracket is not counted in the window.

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
    """Return words in lower case without surrounding punctuation; tokens without letter or digit are dropped.

    A number keeps a leading minus and point and a trailing per cent sign; points within numbers and hyphens within
    words
    are kept. Sub- and superscripts become plain (``SO<sub>2</sub>`` and SO₂ are so2).
    """
    plain = unicodedata.normalize("NFKC", _MARKUP.sub("", text)).replace("\N{MINUS SIGN}", "-")
    words = []
    for word in plain.lower().split():
        positions = [position for position, sign in enumerate(word) if sign.isalnum()]
        if not positions:
            continue
        first, last = positions[0], positions[-1]
        if word[first].isdigit() and first:
            # Keep the point of .5 and the minus of -3.
            first -= word[first - 1] == "."
            first -= first > 0 and word[first - 1] == "-"
        if word[last].isdigit():
            last += word[last + 1 : last + 2] == "%"
        words.append(word[first : last + 1])
    return words


def sentence_encoder(encoder: Encoder | str | None = None) -> Encoder:
    """Return the encoder, or load the one of that name once per process; None is ``local:minilm``."""
    if encoder is None or isinstance(encoder, str):
        return _load_once(encoder or BUNDLED_ENCODER)
    return encoder


_load_once = cache(load_encoder)


def _encoder_and_window(scorer: Scorer) -> str:
    words = "whole statement" if scorer.window is None else f"window {scorer.window}"
    return f"{sentence_encoder(scorer.encoder).name}, {words}"


@metric(
    "phrase_similarity",
    "phrase similarity",
    published="phrase_similarity",
    short="cloze PS",
    tested=True,
    source=_encoder_and_window,
)
def _phrase_scores(batch: Batch) -> list[float]:
    return phrase_similarities(batch.items, window=batch.scorer.window, encoder=batch.scorer.encoder)
