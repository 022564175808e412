"""Take out of option scores what a model prefers before it has read anything.

A small model asked for a verdict favours some words whatever the claim: because they are frequent, or because they came
last in the instruction. Asked the same with a text that says nothing in place of claim and evidence, it shows this
preference alone, and the quotient of the two is what the content did.

References:
    Zhao et al. (2021), Calibrate Before Use, ICML, section 5 (contextual calibration): ``W = diag(p_cf)^-1, b = 0``,
    with ``p_cf`` the mean over the content-free texts "N/A", "[MASK]" and the empty text, normalised over the answers.
"""

import math
from collections.abc import Callable, Sequence

from climassay.errors import InputError, ModelError
from climassay.models.contract import OptionRequest, OptionScorer, OptionScores

BLANK = "N/A"
"""The text that says nothing where one has to do."""
PLACEHOLDERS = (BLANK, "[MASK]", "...")
"""Texts that say nothing. Zhao et al. have the empty text as the third, which a prompt with a list may not render."""


def content_free_correction(
    scorer: OptionScorer,
    build_request: Callable[[str], OptionRequest],
    placeholders: Sequence[str] = PLACEHOLDERS,
) -> tuple[float, ...] | None:
    """What a model answers to a prompt without content, as one log-probability an option.

    Args:
        scorer: The model; a recorded one is asked once.
        build_request: From a text that says nothing to the request with that text wherever content belongs.
        placeholders: Such texts.

    Returns:
        Log of the mean probability of each option, normalised over the options; for :func:`option_probabilities`. None
        where the model's answers are generated instead of scored.

    Raises:
        InputError: No placeholders.
        ModelError: None of the requests succeeded.
    """
    if not placeholders:
        raise InputError("A content-free correction needs at least one text that says nothing, for example N/A.")
    return correction_of(scorer.option_logprobs([build_request(text) for text in placeholders]))


def correction_of(scores: Sequence[OptionScores]) -> tuple[float, ...] | None:
    """The correction from the answers to prompts without content; see :func:`content_free_correction`.

    Raises:
        ModelError: None of the requests succeeded.
    """
    if any(score.method == "generated" for score in scores):
        return None
    answered = [score.logprobs for score in scores if score.error is None]
    if not answered:
        raise ModelError(f"The content-free prompts could not be answered: {scores[0].error}")
    return mean_log_probabilities(answered)


def option_probabilities(
    scores: OptionScores, blank: "OptionScores | Sequence[float] | None" = None
) -> tuple[float, ...]:
    """Probabilities of a request's options, corrected by what the model answers without content.

    An answer that was generated instead of scored is not a distribution that a preference could be taken out of, and
    what a model writes about a prompt without content is no preference: there nothing is corrected.

    Args:
        scores: Without error.
        blank: The same options without content: scores, or their log-probabilities; None corrects nothing.

    Returns:
        One probability per option, summing to 1.

    Raises:
        ModelError: One of the two requests failed, and is needed.
    """
    if scores.error is not None:
        raise ModelError(scores.error)
    if scores.method == "generated" or blank is None:
        return calibrate(scores.logprobs)
    if not isinstance(blank, OptionScores):
        return calibrate(scores.logprobs, blank)
    if blank.method == "generated":
        return calibrate(scores.logprobs)
    if blank.error is not None:
        raise ModelError(blank.error)
    return calibrate(scores.logprobs, blank.logprobs)


def mean_log_probabilities(logprobs: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """Log of the mean of several answers' probabilities, each normalised over its options first.

    Args:
        logprobs: One row per answer, one log-probability an option.

    Raises:
        InputError: No rows, or rows of different length.
    """
    if len({len(row) for row in logprobs}) != 1:
        raise InputError("Content-free answers can be averaged only where there are some, all of the same options.")
    rows = [calibrate(row) for row in logprobs]
    means = (sum(column) / len(rows) for column in zip(*rows, strict=True))
    return tuple(math.log(max(mean, math.ulp(0.0))) for mean in means)


def calibrate(logprobs: Sequence[float], correction: Sequence[float] | None = None) -> tuple[float, ...]:
    """Probabilities of the options, relative to what the model answers without content.

    Example: a model gives ("true", "false") probabilities 0.6 and 0.3, and 0.8 and 0.1 where there is no claim. Here
    "true" is less likely than usual: ``0.6/0.8 = 0.75`` against ``0.3/0.1 = 3``, hence probabilities 0.2 and 0.8.

    Args:
        logprobs: Of the options, natural logarithm; they need not sum to 1.
        correction: Log-probabilities of the same options without content; None changes nothing.

    Returns:
        One probability per option, summing to 1.

    Raises:
        InputError: No options, a value that is not finite, or a correction of another length.
    """
    if correction is not None and len(correction) != len(logprobs):
        raise InputError(f"{len(logprobs)} options cannot be corrected by {len(correction)} content-free scores.")
    shifted = [score - base for score, base in zip(logprobs, correction or [0.0] * len(logprobs), strict=True)]
    if not shifted or not all(map(math.isfinite, shifted)):
        raise InputError("Probabilities need at least one option, and scores that are finite numbers.")
    # Subtracting the largest keeps exp() within range whatever the scores are.
    largest = max(shifted)
    weights = [math.exp(score - largest) for score in shifted]
    total = sum(weights)
    return tuple(weight / total for weight in weights)
