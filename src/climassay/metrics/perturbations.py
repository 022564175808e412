"""Sentences turned into what they do not say, by rule: material to teach and to test what contradicts a passage.

Labelled contradictions about climate are few (482 in Climate-FEVER), and encoders hardly notice a "not". Turning a
direction round, adding or taking away a negation, or changing a number makes contradictions of any sentence.

References:
    Kryscinski et al. (2020), Evaluating the Factual Consistency of Abstractive Text Summarization, EMNLP, section 3.
"""

import re
from collections.abc import Callable

import numpy as np

_OPPOSITES = """
increase:decrease increases:decreases increased:decreased increasing:decreasing rise:fall rises:falls rising:falling
rose:fell risen:fallen grow:shrink grows:shrinks growing:shrinking grew:shrank warm:cool warms:cools warmer:cooler
warming:cooling warmed:cooled hot:cold hotter:colder hottest:coldest higher:lower highest:lowest high:low more:less
most:least gain:loss gains:losses strengthen:weaken strengthens:weakens strengthening:weakening stronger:weaker
strong:weak expand:contract expands:contracts expanding:contracting wet:dry wetter:drier before:after faster:slower
larger:smaller largest:smallest large:small greater:lesser great:slight above:below positive:negative
accelerate:slow accelerating:slowing accelerated:slowed thicker:thinner early:late earlier:later upward:downward
melt:freeze melts:freezes melting:freezing long:short longer:shorter many:few always:never absorb:emit absorbs:emits
advance:retreat advances:retreats advancing:retreating summer:winter maximum:minimum worse:better
improve:worsen improves:worsens exacerbate:alleviate likely:unlikely possible:impossible important:unimportant
significant:insignificant natural:human natural:artificial deep:shallow deeper:shallower wider:narrower
acidic:alkaline stable:unstable dependent:independent
"""
OPPOSITES: dict[str, str] = {}
"""Words of opposite direction, both ways."""
for _pair in _OPPOSITES.split():
    _one, _other = _pair.split(":")
    OPPOSITES.setdefault(_one, _other)
    OPPOSITES.setdefault(_other, _one)

_DIRECTION = re.compile(rf"\b(?:{'|'.join(sorted(OPPOSITES, key=len, reverse=True))})\b", re.IGNORECASE)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|may|might|should|must|does|do|did)\b(?!\s+(?:not|n't)\b)",
    re.IGNORECASE,
)
_DENIED = re.compile(
    r"\b(is|are|was|were|has|have|had|can|could|will|would|may|might|should|must|does|do|did)(?:\s+not|n['’]t)\b"
    r"|\bcannot\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.,–-])(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?![\w,.–-]*\d)")
_TAIL = re.compile(r",?\s+(?:which|who|where|because|although|while|whereas|and thus|so that|thereby)\b")
_FACTORS = (0.2, 0.5, 2.0, 3.0, 10.0)


def reverse_direction(sentence: str, generator: np.random.Generator) -> str | None:
    """One word of direction replaced by its opposite; None where there is none."""
    found = list(_DIRECTION.finditer(sentence))
    if not found:
        return None
    match = found[int(generator.integers(len(found)))]
    return sentence[: match.start()] + _as_written(OPPOSITES[match[0].lower()], match[0]) + sentence[match.end() :]


def negate(sentence: str, generator: np.random.Generator) -> str | None:
    """The first negated verb affirmed, or else one auxiliary verb negated; None where there is no such verb."""
    denied = _DENIED.search(sentence)
    if denied:
        verb: str = denied[1] or "can"
        return sentence[: denied.start()] + verb + sentence[denied.end() :]
    found = list(_AUXILIARY.finditer(sentence))[:2]
    if not found:
        return None
    match = found[int(generator.integers(len(found)))]
    return f"{sentence[: match.end()]} not{sentence[match.end() :]}"


def change_number(sentence: str, generator: np.random.Generator) -> str | None:
    """One number multiplied, years moved by decades; None where there is none."""
    found = list(_NUMBER.finditer(sentence))
    if not found:
        return None
    match = found[int(generator.integers(len(found)))]
    written = match[0]
    value = float(written.replace(",", ""))
    if "." not in written and "," not in written and 1500 <= value <= 2100:
        changed = str(int(value) + int(generator.choice([-50, -20, 20, 50])))
    else:
        decimals = len(written.partition(".")[2])
        product = value * float(generator.choice(_FACTORS))
        changed = f"{product:.{decimals}f}" if decimals or product >= 1 else f"{product + 1:.0f}"
    if changed == written:
        return None
    return sentence[: match.start()] + changed + sentence[match.end() :]


def cut_tail(sentence: str) -> str | None:
    """What stands before a clause that adds to it; the sentence says this too. None where there is no such clause."""
    match = _TAIL.search(sentence)
    if match is None or len(sentence[: match.start()].split()) < 5:
        return None
    return sentence[: match.start()].rstrip(" ,;") + "."


CONTRADICTING: tuple[Callable[[str, np.random.Generator], str | None], ...] = (
    reverse_direction, negate, change_number,
)  # fmt: skip
"""Changes after which a sentence says the contrary of what it said."""


def contradict(sentence: str, generator: np.random.Generator) -> str | None:
    """The sentence after one of the changes in :data:`CONTRADICTING` that apply; None where none does."""
    for place in generator.permutation(len(CONTRADICTING)):
        changed: str | None = CONTRADICTING[int(place)](sentence, generator)
        if changed is not None:
            return changed
    return None


def _as_written(word: str, like: str) -> str:
    return word.capitalize() if like[:1].isupper() else word
