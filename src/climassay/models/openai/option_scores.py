"""Weighing answers with what an API gives: the likely tokens at each place, or only a text.

An API lists the most likely tokens, not the whole distribution, and does not tell how it splits an option into tokens.
So tokens are matched with options as texts; see :func:`score_options` for what the numbers mean.
"""

import math
import re
from collections.abc import Collection, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from climassay.models.contract import MIN_OPTION_MASS
from climassay.models.openai.replies import Position, TopLogprob
from climassay.questions import TYPES

BEFORE = " \t\r\n\"'`*_([{<#\u0120\u2581"
"""Spaces, quotes, brackets and markup that may come before an answer (with the space signs of raw tokens)."""
AFTER = " \t\r\n\"'`*_)]}>.,:;!"
"""What may stand after it."""
GENERATED_LOGPROB = -100.0
"""Given to every option but the generated one where there are no log-probabilities."""
NEGLIGIBLE = 0.01
"""Probability below which a token that could begin several options is left out of the account."""
MOST_TOKENS = 16
"""Generated to tell options apart that begin alike."""


class Walk(NamedTuple):
    """Where we are on the way along the generated tokens."""

    said: str
    """The tokens so far."""
    logprob: float
    """Their log-probability."""
    alive: tuple[int, ...]
    """Options that what was said could begin."""


def score_options(options: Sequence[str], positions: Sequence[Position]) -> tuple[float, ...] | None:
    """Log-probabilities of options from the listed likely tokens.

    At the first place, a listed token counts for the option that it spells or begins: ``a``, `` a``, ``A``, ``a)`` and
    ``(a`` all count for option "a", and their probabilities are added. An option that no listed token begins gets the
    list's floor: the smaller of the probability that the list leaves over and of the least likely token listed, which
    no token outside the list can exceed. A token that begins several options is followed along the generated text
    until they part: each of them gets the probability of what they share times that of the first token that is its
    own (its later tokens are taken as certain).

    Args:
        options: Distinct texts.
        positions: The generated tokens with their lists, the first one at the place of the answer.

    Returns:
        Natural logarithms, one for each option; None where the lists do not decide: the options hold less than half of
        the probability (:data:`~climassay.models.contract.MIN_OPTION_MASS`), so that the model would rather write
        something else, or options that share their beginning do not part on the generated text.

    Example:
        Listed are "b" 0.5, " b" 0.2, "a" 0.2, "The" 0.05. Options a, b, c get log 0.2, log 0.7 and log 0.05: what the
        list leaves over is 0.05, and so is its least likely token.
    """
    shares: dict[int, list[float]] = {index: [] for index in range(len(options))}
    floors: dict[int, float] = {}
    walk = Walk("", 0.0, tuple(range(len(options))))
    for position in positions:
        result = _shares_at(position, options, walk)
        if result is None:
            return None
        for index, logprob in result:
            shares[index].append(logprob)
        following = walk.said + position.chosen.token
        shared = _begun(following, options, walk.alive)
        parted = set(walk.alive) - set(shared) if len(shared) > 1 else set(walk.alive)
        # An upper bound of the log-probability of every token that is not listed.
        listed = [likely.logprob for likely in _listed(position)]
        floor = min(min(listed), math.log(max(1.0 - math.fsum(map(math.exp, listed)), 1e-12)))
        floors |= dict.fromkeys(parted, walk.logprob + floor)
        if len(shared) < 2:
            break
        walk = Walk(following, walk.logprob + position.chosen.logprob, shared)
    mass = math.fsum(math.exp(logprob) for listed in shares.values() for logprob in listed)
    if len(floors) < len(options) or mass < MIN_OPTION_MASS:
        return None
    results = []
    for index in range(len(options)):
        top = max(shares[index], default=0.0)
        added = math.fsum(math.exp(logprob - top) for logprob in shares[index])
        results.append(min(0.0, top + math.log(added)) if added else floors[index])
    return tuple(results)


def named_option(text: str, options: Sequence[str], prefix: str = "") -> int | None:
    """Which option a generated text names; None where it names none or leaves it open.

    Where the options are the labels of a question type (letters, or True and False), that type reads the answer. Other
    options are looked for in this order: the text is the option; it begins with it; it says "answer is ...",
    "answer: ..." or the ``prefix`` that it was to go on from ("Score:") before it; exactly one option occurs in it as
    words of its own (single characters only where they are written as labels, "(1)" or "**1**").
    """
    labels = tuple(_bare(option).casefold() for option in options)
    for kind in TYPES.values():
        if kind.has_options and labels == tuple(map(str.casefold, kind.labels(options))):
            return kind.parse_choice(text, len(options))
    exact = [index for index, label in enumerate(labels) if _bare(text).casefold() == label]
    if len(exact) == 1:
        return exact[0]
    # Like "yes or no".
    start = re.match(r"\W*(\w+)\W+(?:and|or)\W+(\w+)\b", text)
    if start and {start[1].casefold(), start[2].casefold()} <= set(labels):
        return None
    lead = "|".join(["answer", "option", "choice", *filter(None, [re.escape(prefix.strip(" :\n"))])])
    for before in (r"\A", rf"\b(?:{lead})(?:\s+is)?\s*[:=]?\s*"):
        pattern = [re.compile(rf"{before}[\s\"'`*_(\[]*{re.escape(label)}(?!\w)", re.IGNORECASE) for label in labels]
        chosen = _longest({index for index in range(len(options)) if pattern[index].search(text)}, options)
        if chosen is not None:
            return chosen
    return _longest({i for i, option in enumerate(options) if re.search(_standing_alone(option), text)}, options)


def generated_logprobs(chosen: int, options: Sequence[str]) -> tuple[float, ...]:
    """What stands for log-probabilities where there are none: 0 for the generated option, -100 for the others."""
    return tuple(0.0 if index == chosen else GENERATED_LOGPROB for index in range(len(options)))


def tokens_to_distinguish(options: Sequence[str]) -> int:
    """How many tokens it takes at most until options that begin alike differ (a token is a character or more)."""
    bare = sorted(_bare(option).casefold() for option in options)
    alike = (takewhile(lambda both: both[0] == both[1], zip(*pair, strict=False)) for pair in pairwise(bare))
    shared = max((sum(1 for _ in characters) for characters in alike), default=0)
    return min(MOST_TOKENS, shared + 1)


def _shares_at(position: Position, options: Sequence[str], walk: Walk) -> list[tuple[int, float]] | None:
    """Which option gets which log-probability at this place; None where too much of it is unknown."""
    results = []
    for token, logprob in _listed(position):
        if not _bare(walk.said + token):
            continue  # a space or bracket before the answer speaks for no option
        begun = _begun(walk.said + token, options, walk.alive)
        if len(begun) == 1:
            results.append((begun[0], walk.logprob + logprob))
        elif len(begun) > 1 and token != position.chosen.token and math.exp(logprob) > NEGLIGIBLE:
            return None
    return results


def _listed(position: Position) -> tuple[TopLogprob, ...]:
    """The listed tokens, with the generated one where the list leaves it out."""
    if any(likely.token == position.chosen.token for likely in position.listed):
        return position.listed
    return (*position.listed, position.chosen)


def _begun(said: str, options: Sequence[str], alive: Collection[int]) -> tuple[int, ...]:
    """Those options that a text spells or begins; whole words win over parts of words."""
    text = _bare(said)
    if not text:
        return tuple(alive)
    bare = {index: _bare(options[index]) for index in alive}
    if len({option.casefold() for option in bare.values()}) == len(bare):
        text, bare = text.casefold(), {index: option.casefold() for index, option in bare.items()}
    starts = [index for index in alive if bare[index].startswith(text)]
    whole = [i for i in starts if len(bare[i]) == len(text) or not bare[i][len(text)].isalnum()]
    return tuple(whole or starts)


def _bare(text: str) -> str:
    return text.lstrip(BEFORE).rstrip(AFTER)


def _standing_alone(option: str) -> str:
    bare = re.escape(_bare(option))
    if len(_bare(option)) == 1:
        return rf"(?i:\({bare}\)|\*\*\(?{bare}\)?\.?\*\*|(?<!\w){bare}\))"
    return rf"(?i:(?<!\w){bare}(?!\w))"


def _longest(named: Collection[int], options: Sequence[str]) -> int | None:
    """The one option named, where the others named are only parts of it."""
    if not named:
        return None
    longest = max(named, key=lambda index: len(options[index]))
    parts = [rf"(?<!\w){re.escape(_bare(options[index]))}(?!\w)" for index in named]
    return longest if all(re.search(part, options[longest], re.IGNORECASE) for part in parts) else None
