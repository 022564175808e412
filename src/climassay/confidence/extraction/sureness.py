"""Judge whether a part of a divided sentence that no rule refuses says, as a sentence, what the report says.

A penalised logistic model reads how the part was made (its own words, words added to or put in the place of earlier
ones, words that a level opened) and whether it has a verb and a subject of its own. ``sureness.json`` holds its
coefficients, the probability from which on a part is sure, and where both come from;
``benchmarks/long/confidence_sureness.py`` fits them to parts that a reader judged.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from climassay.confidence.extraction.division import CONJUNCTION, FINITE_OR_PRESENT, SURELY_FINITE, has_verb

_TOKEN = re.compile(r"[^\W_]+|[,;:()]")
_ANAPHOR = re.compile(r"\b(?:this|these|those|such|it|its|they|their|them)\b", re.IGNORECASE)
_SAID_OF_ANYTHING = re.compile(
    r"changes?|trends?|(?:in|de)creas\w+|declines?|magnitudes?|sign|signal|roles?|direction|attribution|influences?"
    r"|anthropogenic|human|observed|projected|projections?|regions?|periods?|century|warming|levels?|models?|simulated"
    r"|lower|higher|other|parts|world|since|before|after|during|data|contributions?|over|prior|most|with|from|elsewhere"
    r"|systematic|observations?|emergence|both|global|between|ability|current|future|northern|southern|scenarios?|except"
    r"|areas?|have|been|will|would|could|very|rate|positive|negative|effects?|impacts?|emissions?|however|which|th\w+|such"
)
"""Words that tell nothing of a finding's subject: "the magnitude of the projected changes"."""

_BARE_CHANGE = re.compile(
    r"\bthe\s+(?:\w+\s+)?(?:changes?|trends?|signal|decline|sign|magnitude|influence|attribution)\b"
    r"(?!\s+(?:of|in|to)\s+(?!th|it|such))",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"(?:at|under|if|when|where|in|by|over|with|without|for|during|since|across)\b[^,]{2,120},", re.IGNORECASE
)
_PLACE_WITHOUT_SUBJECT = re.compile(r"(?:in|at|by|for|over|under)\b[^,]*$", re.IGNORECASE)
_TWO_CLAUSES = re.compile(r",\s(?:but|while|whereas|although)\b")


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a divided sentence with what it was made from."""

    clauses: Sequence[str]
    """All clauses of the sentence in order, marks taken out."""
    place: int
    """Which of them it is."""
    opened: bool
    """Whether a mark opened it ("low confidence in ...")."""
    tail: str
    """What follows the last mark."""
    text: str
    """The clause, made to stand alone."""
    before: Sequence[str]
    """The clauses before it, made to stand alone."""


def is_sure(part: Part) -> bool:
    """Whether the part is right with at least the probability that ``sureness.json`` asks for."""
    weights, least = _judge()
    log_odds = weights["intercept"] + sum(weights.get(name, 0.0) * value for name, value in features(part).items())
    return log_odds >= math.log(least / (1 - least))


@cache
def _judge() -> tuple[Mapping[str, float], float]:
    stored = json.loads(Path(__file__).with_name("sureness.json").read_text(encoding="utf-8"))
    return stored["coefficients"], stored["least_probability"]


def features(part: Part) -> dict[str, float]:
    """What the model reads of a part; features that are 0 are left out."""
    own, text = _TOKEN.findall(CONJUNCTION.sub("", part.clauses[part.place]).strip()), _TOKEN.findall(part.text)
    kept, replaced = _from_earlier(part, own, text)
    joined = bool(kept or replaced)
    verb = has_verb(part.text, surely=True)
    anaphor = _ANAPHOR.search(part.text) is not None
    shared_end = part.tail.strip()[:1] not in ("", *",;:.–—")
    subject = [
        word
        for word in text
        if len(word) > 3 and word.isalpha() and word.islower() and not _SAID_OF_ANYTHING.fullmatch(word)
    ]
    opening = _OPENING.match(part.clauses[0])
    results: dict[str, float] = {
        "length": math.log1p(len(text)),
        "very short": len(text) < 4,
        "clauses": math.log1p(len(part.clauses)),
        "verbs": min(3, len(SURELY_FINITE.findall(part.text))),
        "no verb": FINITE_OR_PRESENT.search(part.text) is None,
        "anaphor": anaphor,
        "semicolon": ";" in part.text,
        "two clauses": _TWO_CLAUSES.search(part.text) is not None,
        "parenthesis": "(" in part.text,
        "parenthesis left open": text.count("(") != text.count(")"),
        "place without subject": _PLACE_WITHOUT_SUBJECT.match(part.text) is not None,
        "an empty clause beside it": any(not one.strip() for one in part.clauses),
        "end that all may share": shared_end,
        "first": part.place == 0 and not part.opened,
        "own words alone": part.place > 0 and not part.opened and not joined,
        "opening of the sentence lost": opening is not None
        and part.place > 0
        and not part.opened
        and not part.text.startswith(opening.group()),
    }
    if joined:
        results |= {
            "added": not replaced,
            "kept": math.log1p(len(kept)),
            "replaced": math.log1p(len(replaced)),
            "between": math.log1p(max(0, len(text) - len(kept) - len(own))),
        }
    if part.opened:
        results |= {
            "opened": True,
            "opened: length": math.log1p(len(text)),
            "opened: verb": verb,
            "opened: anaphor": anaphor,
            "opened: noun phrase": not verb,
            "opened: noun phrase with anaphor": not verb and anaphor,
            "opened: bare change": _BARE_CHANGE.search(part.text) is not None,
            "opened: words of a subject": min(4, len(subject)),
            f"opened: {min(3, len(subject))} words of a subject": True,
        }
    return {name: float(value) for name, value in results.items() if value}


def _from_earlier(part: Part, own: list[str], text: list[str]) -> tuple[list[str], list[str]]:
    """The words that a part has from an earlier one, and those of that one that it lacks."""
    lower = [word.lower() for word in text]
    if part.opened or part.place == 0 or lower == [word.lower() for word in own]:
        return [], []
    kept, replaced = 0, list[str]()
    for earlier in (_TOKEN.findall(one) for one in part.before):
        same = 0
        while same < min(len(earlier), len(text)) and earlier[same].lower() == lower[same]:
            same += 1
        if same >= kept:
            kept, replaced = same, earlier[same:]
    return text[:kept], replaced
