"""Score options from the likely tokens at each position of an answer or, if the server lists none, from its text.

An API lists only the most likely tokens, and does not state how an option is tokenised. Tokens are therefore matched
with options as texts; see :func:`score_options`.
"""

import math
import re
from collections.abc import Collection, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from climassay.models.contract import MIN_OPTION_MASS
from climassay.models.openai.replies import Position, TopLogprob
from climassay.questions import TYPES

LEADING_CHARACTERS = " \t\r\n\"'`*_([{<#\u0120\u2581"
"""Characters that may precede an answer: spaces, quotes, brackets, markup, and the space characters of raw tokens."""
TRAILING_CHARACTERS = " \t\r\n\"'`*_)]}>.,:;!"
"""Characters that may follow an answer."""
GENERATED_LOGPROB = -100.0
"""Score of the options that were not generated, if there are no log-probabilities."""
NEGLIGIBLE_PROBABILITY = 0.01
"""A token that could begin several options is ignored if its probability is at most this value."""
MAX_TOKENS = 16
"""Maximum number of tokens generated to distinguish options with the same beginning."""


class Prefix(NamedTuple):
    """Tokens generated so far, and the options that may begin with them."""

    text: str
    logprob: float
    """Log-probability of the tokens."""
    candidates: tuple[int, ...]
    """Indices of options that begin with the text."""


def score_options(options: Sequence[str], positions: Sequence[Position]) -> tuple[float, ...] | None:
    """Return log-probabilities of options from the listed likely tokens.

    At the first position, a listed token counts for the option that it spells or begins: ``a``, `` a``, ``A``, ``a)``
    and ``(a`` all count for option "a", and their probabilities are added. An option that no listed token begins gets
    the list's floor: the smaller of the remaining probability and that of the least likely listed token, an upper bound
    for all unlisted tokens. If a token begins several options, the generated text is followed until they differ: each
    option gets the probability of the shared tokens times that of its first distinct token; later tokens are assumed
    certain.

    Args:
        options: Distinct texts.
        positions: Generated tokens with their lists, beginning with the answer.

    Returns:
        Natural logarithms, one per option; None if the lists do not decide: the options have less than half of the
        probability (:data:`~climassay.models.contract.MIN_OPTION_MASS`), or options with the same beginning do not
        differ in the generated text.

    Example:
        Listed are "b" 0.5, " b" 0.2, "a" 0.2, "The" 0.05. Options a, b, c get log 0.2, log 0.7 and log 0.05: the
        remaining probability is 0.05, and so is that of the least likely listed token.
    """
    logprobs_by_option: dict[int, list[float]] = {index: [] for index in range(len(options))}
    upper_bounds: dict[int, float] = {}
    prefix = Prefix("", 0.0, tuple(range(len(options))))
    for position in positions:
        scored_tokens = _score_listed_tokens(position, options, prefix)
        if scored_tokens is None:
            return None
        for index, logprob in scored_tokens:
            logprobs_by_option[index].append(logprob)
        text = prefix.text + position.chosen.token
        candidates = _find_options_starting_with(text, options, prefix.candidates)
        decided_options = set(prefix.candidates) - set(candidates) if len(candidates) > 1 else set(prefix.candidates)
        # An upper bound of the log-probability of every token that is not listed.
        listed_logprobs = [token.logprob for token in _listed_tokens(position)]
        upper_bound = min(min(listed_logprobs), math.log(max(1.0 - math.fsum(map(math.exp, listed_logprobs)), 1e-12)))
        upper_bounds |= dict.fromkeys(decided_options, prefix.logprob + upper_bound)
        if len(candidates) < 2:
            break
        prefix = Prefix(text, prefix.logprob + position.chosen.logprob, candidates)
    mass = math.fsum(
        math.exp(logprob) for option_logprobs in logprobs_by_option.values() for logprob in option_logprobs
    )
    if len(upper_bounds) < len(options) or mass < MIN_OPTION_MASS:
        return None
    logprobs = []
    for index in range(len(options)):
        max_logprob = max(logprobs_by_option[index], default=0.0)
        total = math.fsum(math.exp(logprob - max_logprob) for logprob in logprobs_by_option[index])
        logprobs.append(min(0.0, max_logprob + math.log(total)) if total else upper_bounds[index])
    return tuple(logprobs)


def named_option(text: str, options: Sequence[str], prefix: str = "") -> int | None:
    """Return the index of the option that a generated text names; None if it names none or several.

    If the options are labels of a question type (letters, or True and False), that type parses the answer. Other
    options match in this order: the text equals the option; begins with it; contains it after "answer is ...",
    "answer: ..." or the ``prefix`` ("Score:"); exactly one option occurs in the text as whole words (single characters
    only as labels, "(1)" or "**1**").
    """
    labels = tuple(_strip_markup(option).casefold() for option in options)
    for kind in TYPES.values():
        if kind.has_options and labels == tuple(map(str.casefold, kind.labels(options))):
            return kind.parse_choice(text, len(options))
    exact_matches = [index for index, label in enumerate(labels) if _strip_markup(text).casefold() == label]
    if len(exact_matches) == 1:
        return exact_matches[0]
    # The text lists options, for example "yes or no".
    start = re.match(r"\W*(\w+)\W+(?:and|or)\W+(\w+)\b", text)
    if start and {start[1].casefold(), start[2].casefold()} <= set(labels):
        return None
    lead_in_words = "|".join(["answer", "option", "choice", *filter(None, [re.escape(prefix.strip(" :\n"))])])
    for lead_in in (r"\A", rf"\b(?:{lead_in_words})(?:\s+is)?\s*[:=]?\s*"):
        patterns = [re.compile(rf"{lead_in}[\s\"'`*_(\[]*{re.escape(label)}(?!\w)", re.IGNORECASE) for label in labels]
        option_index = _find_unique_option(
            {index for index in range(len(options)) if patterns[index].search(text)}, options
        )
        if option_index is not None:
            return option_index
    return _find_unique_option(
        {i for i, option in enumerate(options) if re.search(_build_isolated_pattern(option), text)}, options
    )


def generated_logprobs(option_index: int, options: Sequence[str]) -> tuple[float, ...]:
    """Return substitutes for log-probabilities: 0 for the generated option, -100 for the others."""
    return tuple(0.0 if index == option_index else GENERATED_LOGPROB for index in range(len(options)))


def tokens_to_distinguish(options: Sequence[str]) -> int:
    """Return the maximum number of tokens until options with the same beginning differ."""
    bare_options = sorted(_strip_markup(option).casefold() for option in options)
    common_prefixes = (
        takewhile(lambda characters: characters[0] == characters[1], zip(*pair, strict=False))
        for pair in pairwise(bare_options)
    )
    max_prefix_length = max((sum(1 for _ in characters) for characters in common_prefixes), default=0)
    return min(MAX_TOKENS, max_prefix_length + 1)


def _score_listed_tokens(position: Position, options: Sequence[str], prefix: Prefix) -> list[tuple[int, float]] | None:
    """Return (option index, log-probability) of each listed token that begins exactly one option.

    Return None if another token with at least :data:`NEGLIGIBLE_PROBABILITY` probability begins several options.
    """
    results = []
    for token, logprob in _listed_tokens(position):
        if not _strip_markup(prefix.text + token):
            continue  # a space or bracket before the answer begins no option
        matching_options = _find_options_starting_with(prefix.text + token, options, prefix.candidates)
        if len(matching_options) == 1:
            results.append((matching_options[0], prefix.logprob + logprob))
        elif (
            len(matching_options) > 1 and token != position.chosen.token and math.exp(logprob) > NEGLIGIBLE_PROBABILITY
        ):
            return None
    return results


def _listed_tokens(position: Position) -> tuple[TopLogprob, ...]:
    if any(token.token == position.chosen.token for token in position.top_logprobs):
        return position.top_logprobs
    return (*position.top_logprobs, position.chosen)


def _find_options_starting_with(text: str, options: Sequence[str], candidates: Collection[int]) -> tuple[int, ...]:
    """Return the indices of options that begin with a text.

    If the text ends at the end of a word in some of these options, return only the indices of those.
    """
    bare_text = _strip_markup(text)
    if not bare_text:
        return tuple(candidates)
    bare_options = {index: _strip_markup(options[index]) for index in candidates}
    if len({option.casefold() for option in bare_options.values()}) == len(bare_options):
        bare_text, bare_options = (
            bare_text.casefold(),
            {index: option.casefold() for index, option in bare_options.items()},
        )
    matching_options = [index for index in candidates if bare_options[index].startswith(bare_text)]
    whole_word_options = [
        i
        for i in matching_options
        if len(bare_options[i]) == len(bare_text) or not bare_options[i][len(bare_text)].isalnum()
    ]
    return tuple(whole_word_options or matching_options)


def _strip_markup(text: str) -> str:
    return text.lstrip(LEADING_CHARACTERS).rstrip(TRAILING_CHARACTERS)


def _build_isolated_pattern(option: str) -> str:
    bare_option = re.escape(_strip_markup(option))
    if len(_strip_markup(option)) == 1:
        return rf"(?i:\({bare_option}\)|\*\*\(?{bare_option}\)?\.?\*\*|(?<!\w){bare_option}\))"
    return rf"(?i:(?<!\w){bare_option}(?!\w))"


def _find_unique_option(named_options: Collection[int], options: Sequence[str]) -> int | None:
    """Return the index of the longest named option if it contains all other named options, otherwise None."""
    if not named_options:
        return None
    longest_option = max(named_options, key=lambda index: len(options[index]))
    patterns = [rf"(?<!\w){re.escape(_strip_markup(options[index]))}(?!\w)" for index in named_options]
    return longest_option if all(re.search(part, options[longest_option], re.IGNORECASE) for part in patterns) else None
