"""BLEU, as ClimaQA computes it (over characters) and as everybody else does (over words)."""

from collections.abc import Sequence
from typing import Any

from climassay.metrics.registry import Candidates, Pair, References, answer_pairs, metric


def character_bleu(references: References, candidates: Candidates) -> float:
    """BLEU of all items together, whose n-grams are runs of 1 to 4 characters: the "BLEU" of ClimaQA's tables.

    BLEU = BP * (p1 p2 p3 p4)^(1/4). p_n is the share of the candidates' runs of n characters that also occur in a
    reference (each as often as there at most), counted over all items; 0 matches of n > 1 count as 0.1 (NLTK's
    smoothing method 1). BP = exp(1 - r/c) where the candidates have c characters in all, fewer than the references' r
    (of several references the nearest in length), else 1.

    The tables of the paper are means over questions: take the mean of :func:`character_bleu_each`. For one item both
    are the same.

    Returns:
        0 to 1; 0 where no character matches.

    Raises:
        InputError: The numbers differ, or a reference is empty.

    Notes:
        - Any two English texts share most of their letters: reference answers to different questions of the primer
          score 0.23 against each other (435 pairs, up to 0.38), and a right answer in other words may score no more.
          Never compare it with a BLEU from elsewhere: ClimaQA's ten case-study answers have 0.25 to 0.59 here and
          0.03 to 0.15 by :func:`bleu_each`.
        - A candidate of fewer than 4 characters that equals its reference does not reach 1: it has no run of 4, and
          the smoothing puts 0.1 in its place ("CO2" against "CO2" gives 0.56).
        - Case, spaces and typography count: ``CO<sub>2</sub>`` or a line break at the end change the third digit.

    References:
        Papineni et al. (2002), BLEU, ACL. Chen and Cherry (2014), WMT, smoothing 1. ClimaQA, section 3.2.1 and
        appendix A.2.3, whose figures need characters: ``corpus_bleu`` was handed strings where it expects lists of
        words.
    """
    return _character_bleu(answer_pairs(references, candidates))


def character_bleu_each(references: References, candidates: Candidates) -> list[float]:
    """:func:`character_bleu` of every item by itself, in order; ClimaQA's tables are the means of these."""
    return [_character_bleu([pair]) for pair in answer_pairs(references, candidates)]


def bleu(references: References, candidates: Candidates) -> float:
    """BLEU of all items together over words, by sacreBLEU with its default settings, on 0 to 1.

    BP * (p1 p2 p3 p4)^(1/4) as in :func:`character_bleu`, with words and punctuation marks of the tokenizer ``13a``
    for characters; sums of matches are taken over all items; an n without matches counts as half a match, a quarter,
    an eighth ... (smoothing ``exp``).

    Returns:
        0 to 1, sacreBLEU's figure divided by 100.

    Raises:
        InputError: The numbers differ, or a reference is empty.

    Notes:
        A measure of shared wording: a right answer in other words scores near 0. It favours the model that wrote the
        references (ClimaQA, section 5). Corpus BLEU is not the mean of the items' BLEU.

    References:
        Post (2018), A Call for Clarity in Reporting BLEU Scores, WMT. Name :func:`bleu_signature` beside the figure.
    """
    pairs = answer_pairs(references, candidates)
    most = max(len(several) for several, _ in pairs)
    # sacreBLEU takes one list for all first references, one for all second ones, and so on; None where there is none.
    streams = [[several[n] if n < len(several) else None for several, _ in pairs] for n in range(most)]
    return _share(_word_bleu().corpus_score([candidate for _, candidate in pairs], streams))


def bleu_each(references: References, candidates: Candidates) -> list[float]:
    """BLEU over words of every item by itself, on 0 to 1, in order.

    As sacreBLEU's sentence BLEU: n-grams longer than the candidate are left out (``effective_order``), or no candidate
    of fewer than four words could score well.

    Raises:
        InputError: The numbers differ, or a reference is empty.
    """
    scorer = _word_bleu(effective_order=True)
    return [
        _share(scorer.sentence_score(candidate, list(several)))
        for several, candidate in answer_pairs(references, candidates)
    ]


def bleu_signature(*, each: bool = False) -> str:
    """SacreBLEU's signature of :func:`bleu` (or :func:`bleu_each`) with one reference per item, to be reported."""
    scorer = _word_bleu(effective_order=each)
    scorer.corpus_score(["a"], [["a"]])
    return str(scorer.get_signature())


def _character_bleu(pairs: Sequence[Pair]) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, corpus_bleu

    references, candidates = [list(several) for several, _ in pairs], [candidate for _, candidate in pairs]
    # NLTK iterates over what it takes for lists of words; of a string, that gives characters.
    return float(corpus_bleu(references, candidates, smoothing_function=SmoothingFunction().method1))


def _share(score: Any) -> float:
    """From sacreBLEU's 0 to 100, which rounding may exceed, to 0 to 1."""
    return min(1.0, float(score.score) / 100)


def _word_bleu(*, effective_order: bool = False) -> Any:
    from sacrebleu.metrics.bleu import BLEU

    return BLEU(effective_order=effective_order)


metric(
    "bleu_char",
    "BLEU (characters)",
    kinds=["freeform"],
    published="bleu",
    short="BLEU",
    source=lambda _: "NLTK corpus_bleu over characters, smoothing 1",
    pooled=character_bleu,
)(lambda batch: character_bleu_each(batch.references, batch.answers))
metric(
    "bleu",
    "BLEU (words)",
    kinds=["freeform"],
    source=lambda _: f"sacreBLEU {bleu_signature(each=True)}",
    pooled=bleu,
)(lambda batch: bleu_each(batch.references, batch.answers))
