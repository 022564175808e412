"""Metrics of short answers: exact match up to spelling, and similarity of the phrase around a cloze gap."""

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.claim_identity import fold_case
from climassay.corpus.latex import plain_latex
from climassay.errors import InputError
from climassay.metrics.registry import Batch, Candidates, References, Scorer, answer_pairs, metric
from climassay.models.contract import Encoder
from climassay.models.encoders import BUNDLED_ENCODER, load_encoder

_POWER = re.compile(r"(?<=\d)(?:<sup>|(?=[⁻⁰¹²³⁴-⁹]))", re.IGNORECASE)
"""Pattern of the position before an exponent. A sign is inserted there, so that 10² does not become 102."""
_MARKUP = re.compile(r"</?su[bp]>", re.IGNORECASE)
_BARE_SUBSCRIPT = re.compile(r"(?<=[A-Za-z])_\{?(?=\d)")
"""Pattern of the sign before a subscript outside of LaTeX math, as in CO_2."""
_FRACTION = re.compile(r"(?=[¼-¾⅐-⅞])")
_SIGNS = str.maketrans(
    dict.fromkeys("\N{MINUS SIGN}\N{EN DASH}\N{NON-BREAKING HYPHEN}\N{HYPHEN}", "-")
    | dict.fromkeys("\N{SOFT HYPHEN}\N{ZERO WIDTH SPACE}\N{WORD JOINER}\ufeff")
)
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SPELLED_SIGNS = {">=": "≥", "<=": "≤", "+/-": "±", "≃": "≈", "≅": "≈", "~": "≈", "⁄": "/"}
_WORD = re.compile(
    r"(?:(?<![\w.])\.(?=\d))?\w+(?:(?<=\d)\.\d+)*"  # words, and numbers with their point
    r"|(?<!\w)[+-](?=\.?\d)|(?<!\w)(?<!\d )[+-](?= \.?\d)"  # signs of numbers, not dashes between them
    r"|[<>≤≥≠=≈±%‰$€£^×]|(?<=\d)/(?=\d)|°(?! ?[cfk]\b)"
)
"""Word, number, or sign that is part of a quantity."""
_MIN_PLURAL_LETTERS = 4
"""Minimum number of letters of a word that may be a plural: "CFCs" has four; "gas" has three."""
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
"""Endings of English, Latin and Greek plurals, each with the possible endings of the singular."""
_NO_PLURALS = ("ss", "us", "is")


def exact_match(references: References, candidates: Candidates) -> list[bool]:
    """Return whether each candidate equals a reference, character by character (ClimaQA's cloze metric "EM").

    Returns:
        One boolean per item, in order; their mean, in per cent, corresponds to the published score.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        "Entrainment", "entrainment." and "entrainment " all differ from "entrainment", and a model that answers in
        sentences scores 0. The paper defines no normalisation, and its code compares raw strings.

    References:
        ClimaQA, section 3.2.2.
    """
    return [candidate in item_references for item_references, candidate in answer_pairs(references, candidates)]


def exact_match_normalised(references: References, candidates: Candidates) -> list[bool]:
    """Return whether each candidate equals a reference apart from case, punctuation and plural endings.

    This metric is climassay's own. Texts are normalised: tags and LaTeX of sub- and superscripts are removed,
    compatibility characters are replaced as in NFKC (CO₂ becomes CO2), and case is ignored, except for units that
    differ only by case. Words are separated by anything but letters, digits and the signs of a quantity (sign,
    comparator, point, exponent, per cent, currency). Two words match if they are equal, or if one can be the plural of
    the other by English, Latin or Greek endings (aerosols, gases, stomata, nuclei, vortices, strata, hypotheses).

    Returns:
        One boolean per item, in order. It is True for every item for which :func:`exact_match` is.

    Raises:
        InputError: The numbers of references and candidates differ, or a reference is empty.

    Notes:
        Do not compare the scores with published exact-match scores: this metric is always at least as high. Different
        articles, British or American spelling (sulphate), abbreviations and synonyms still count as wrong.
    """

    def matches(reference: str, candidate: str) -> bool:
        if reference == candidate:
            return True
        reference_words, candidate_words = normalised_words(reference), normalised_words(candidate)
        if not reference_words or len(reference_words) != len(candidate_words):
            return False
        pairs = zip(reference_words, candidate_words, strict=True)
        return all(
            _find_singulars(reference_word) & _find_singulars(candidate_word)
            for reference_word, candidate_word in pairs
        )

    return [
        any(matches(reference, candidate) for reference in item_references)
        for item_references, candidate in answer_pairs(references, candidates)
    ]


def normalised_words(text: str) -> list[str]:
    """Split a text into the normalised words, numbers and signs that :func:`exact_match_normalised` compares."""
    plain_text = _BARE_SUBSCRIPT.sub("", plain_latex(text))
    text_with_separators = _FRACTION.sub(" ", _MARKUP.sub("", _POWER.sub("^", plain_text)))
    normalised_text = fold_case(" ".join(unicodedata.normalize("NFKC", text_with_separators).translate(_SIGNS).split()))
    for spelling, sign in _SPELLED_SIGNS.items():
        normalised_text = normalised_text.replace(spelling, sign)
    return _WORD.findall(_THOUSANDS.sub("", normalised_text))


def _find_singulars(word: str) -> set[str]:
    """Return the word itself and every word of which it may be the plural."""
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
"""Number of words on each side of the gap that phrase similarity compares, as in the paper."""

_GAP = re.compile(r"<\s*(?:mask|blank)\s*>", re.IGNORECASE)


class ClozeAnswer(NamedTuple):
    """An answer to a cloze statement."""

    statement: str
    """Statement with one gap: ``<MASK>``, ``<mask>`` or ``<blank>``."""
    reference: str
    answer: str
    """Answer of the model; empty if it gave none."""


class Phrases(NamedTuple):
    """Phrase around a gap, once filled with the reference and once with the answer."""

    reference: str
    answer: str


def phrase_similarity(
    statement: str, reference: str, answer: str, window: int | None = WINDOW, encoder: Encoder | str | None = None
) -> float:
    """Return the similarity of the phrases around a gap filled with the reference and with the answer.

    This is ClimaQA's cloze metric. The phrases have ``window`` words on each side of the gap (:func:`phrases`). The
    score is 2 (cos - 0.5), where cos is the cosine similarity of the two phrases' embeddings.

    Args:
        statement: Statement with one gap, ``<MASK>``, ``<mask>`` or ``<blank>``.
        reference: Correct answer.
        answer: Answer to score; an empty answer scores 0.
        window: Number of words on each side of the gap; None for the whole statement.
        encoder: Encoder, or the name of one, which is loaded once (``local:minilm`` by default). Report it with the
            score.

    Returns:
        Score of at most 1; an answer that equals the reference apart from case and punctuation scores 1. The paper
        gives the range -1 to 1; lower scores, for a cosine below 0, are not clipped.

    Raises:
        InputError: The statement has not exactly one gap, the reference is empty, or the window is negative.
        ModelError: The encoder cannot be loaded.

    Notes:
        - The paper uses the Universal Sentence Encoder. Scores with another encoder differ, and only ranks can be
          compared. Shared words around the gap raise the score of every answer; ``benchmarks/long/phrase_window.py``
          measures how well an encoder separates correct from wrong answers.
        - Embeddings of opposites are similar (entrainment, detrainment): a high score does not mean that an answer is
          correct.

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
    """Return the :func:`phrase_similarity` of each (statement, reference, answer); phrases are encoded only once."""
    answers = [ClozeAnswer(*item) for item in items]
    cosines = phrase_cosines([phrases(*answer, window=window) for answer in answers], encoder)
    return [
        float(2 * (cosine - 0.5)) if terms(answer.answer) else 0.0
        for answer, cosine in zip(answers, cosines, strict=True)
    ]


def phrase_cosines(pairs: Sequence[Phrases], encoder: Encoder | str | None = None) -> NDArray[np.float64]:
    """Return the cosine similarity of each pair of phrases, shape [pairs]; it is exactly 1 for equal phrases."""
    if all(pair.reference == pair.answer for pair in pairs):
        return np.ones(len(pairs))
    index = {phrase: index_ for index_, phrase in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    vectors = sentence_encoder(encoder).encode(list(index)).astype(np.float64)
    references = vectors[[index[pair.reference] for pair in pairs]]
    answers = vectors[[index[pair.answer] for pair in pairs]]
    is_equal = np.array([pair.reference == pair.answer for pair in pairs])
    return np.where(is_equal, 1.0, np.clip(np.sum(references * answers, axis=1), -1.0, 1.0))


def phrases(statement: str, reference: str, answer: str, window: int | None = WINDOW) -> Phrases:
    """Return the phrase around the gap, filled with the reference and with the answer.

    Words are normalised by :func:`terms` before they are counted, so that a dash or a bracket does not count as a word
    of the window.

    Raises:
        InputError: The statement has not exactly one gap, the reference is empty, or the window is negative.
    """
    statement_parts = _GAP.split(statement)
    if len(statement_parts) != 2:
        raise InputError(
            f"A cloze statement needs exactly one gap (<MASK>), this one has {len(statement_parts) - 1}: {statement}"
        )
    if not terms(reference):
        raise InputError(f"The reference {reference!r} has no word to put into the gap.")
    if window is not None and window < 0:
        raise InputError(f"A window must have 0 or more words on each side, not {window}.")
    words_before, words_after = (terms(part) for part in statement_parts)
    if window is not None:
        words_before, words_after = words_before[max(0, len(words_before) - window) :], words_after[:window]
    return Phrases(
        *(" ".join([*words_before, *terms(answer_text), *words_after]) for answer_text in (reference, answer))
    )


def terms(text: str) -> list[str]:
    """Split a text into lower-case words without surrounding punctuation; tokens without a letter or digit are dropped.

    A number keeps a leading minus or point and a trailing per cent sign. Points within numbers and hyphens within words
    are kept. Sub- and superscripts become ordinary characters: ``SO<sub>2</sub>`` and SO₂ both give so2.
    """
    normalised_text = unicodedata.normalize("NFKC", _MARKUP.sub("", text)).replace("\N{MINUS SIGN}", "-")
    words = []
    for word in normalised_text.lower().split():
        positions = [position for position, sign in enumerate(word) if sign.isalnum()]
        if not positions:
            continue
        start, end = positions[0], positions[-1]
        if word[start].isdigit() and start:
            # Keep the point of .5 and the minus of -3.
            start -= word[start - 1] == "."
            start -= start > 0 and word[start - 1] == "-"
        if word[end].isdigit():
            end += word[end + 1 : end + 2] == "%"
        words.append(word[start : end + 1])
    return words


def sentence_encoder(encoder: Encoder | str | None = None) -> Encoder:
    """Return an encoder unchanged, or load the encoder with a name (``local:minilm`` by default) once per process."""
    if encoder is None or isinstance(encoder, str):
        return _load_once(encoder or BUNDLED_ENCODER)
    return encoder


_load_once = cache(load_encoder)


def _describe_source(scorer: Scorer) -> str:
    window = "whole statement" if scorer.window is None else f"window {scorer.window}"
    return f"{sentence_encoder(scorer.encoder).name}, {window}"


@metric(
    "phrase_similarity",
    "phrase similarity",
    published="phrase_similarity",
    short="cloze PS",
    tested=True,
    source=_describe_source,
)
def _score_phrases(batch: Batch) -> list[float]:
    return phrase_similarities(batch.items, window=batch.scorer.window, encoder=batch.scorer.encoder)
