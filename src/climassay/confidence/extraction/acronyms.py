"""Spell acronyms out, by what the report itself says they mean, else by a list of the field."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal

Acronyms = Literal["every", "first", "none"]

KNOWN_ACRONYMS = dict(
    line.split("\t") for line in Path(__file__).with_suffix(".tsv").read_text(encoding="utf-8").splitlines()
)
"""Acronyms of climate science and of the IPCC, for reports that do not spell them out themselves.

Left out are those that are also words or codes of regions in AR6 (SAM, CAN, MED), or that mean two things in the
reports (AR: autoregressive, assessment report; MAR: a model, managed aquifer recharge): a report's own definitions
serve there.
"""


_DEFINITION = re.compile(r"\(([A-Z](?:[A-Za-z&/-]{0,8}[A-Z]))(s?)(?:[;,][^()]{0,80})?\)")
_WORDS_BEFORE = 160
_MOST_WORDS = 10
_SHORTEST = 2
_SMALL_WORDS = {"a", "an", "the", "of", "for", "and", "in", "on", "by", "to", "with", "or", "from", "at", "as"}
_PLURALS = (
    ("gases", "gas"), ("biases", "bias"), ("analyses", "analysis"), ("indices", "index"), ("sses", "ss"),
    ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ies", "y"), ("s", ""),
)  # fmt: skip
"""Endings of plurals and of their singulars, the first that fits."""
_WHERE_WORDS_END = re.compile(r"[()\[\]{};:]|\.\s|,(?=\s+(?:and|but|which|that|where|while)\b)")


def definitions_in(texts: Iterable[str]) -> dict[str, str]:
    """Acronyms that texts define, ``effective radiative forcing (ERF)``: each with its words, singular.

    The letters of the acronym must be found from the right in the words before the brackets, the first of them at the
    beginning of a word (Schwartz and Hearst 2003, "A simple algorithm for identifying abbreviation definitions in
    biomedical text"). Where a report defines one several ways, what it says most often counts.
    """
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        if "(" not in text:
            continue
        for match in _DEFINITION.finditer(text):
            words = _words_of(match[1], text[max(0, match.start() - _WORDS_BEFORE) : match.start()])
            if words:
                counts.setdefault(match[1], Counter())[_singular(words) if match[2] else words] += 1
    return {acronym: min(found, key=lambda words: (-found[words], words)) for acronym, found in counts.items()}


def _words_of(acronym: str, before: str) -> str | None:
    """The shortest run of words at the end of ``before`` that spells the acronym."""
    cut = [match.end() for match in _WHERE_WORDS_END.finditer(before)]
    before = before[cut[-1] if cut else 0 :].rstrip()
    letters = [char.lower() for char in acronym if char.isalpha()]
    if len(letters) < _SHORTEST or not before:
        return None
    place = len(before)
    for number in range(len(letters) - 1, -1, -1):
        place -= 1
        while place >= 0 and (
            before[place].lower() != letters[number]
            or (number == 0 and place > 0 and (before[place - 1].isalnum() or before[place - 1] in "’'"))
        ):
            place -= 1
        if place < 0:
            return None
    words = before[place:].strip()
    parts = words.split()
    weak = sum(1 for part in parts if part.lower() not in _SMALL_WORDS)
    too_long = weak > min(_MOST_WORDS, len(letters) + 2)
    return None if too_long or acronym in parts or weak < min(2, len(letters) - 1) else _lowered(words)


def _lowered(words: str) -> str:
    """Words in lower case where only their first letter is a capital that opens a sentence."""
    first, *rest = words.split(" ", 1)
    plain = first[:1].isupper() and first[1:].islower() and rest and rest[0].islower()
    return first.lower() + " " + rest[0] if plain else words


def _singular(words: str) -> str:
    for end, singular in _PLURALS:
        if words.endswith(end) and not words.endswith("ss"):
            return words[: len(words) - len(end)] + singular
    return words


def _plural(words: str) -> str:
    if words.endswith(("gas", "bias", "ss", "x", "ch", "sh")):
        return f"{words}es"
    if words.endswith("s"):
        return words
    if words.endswith("y") and words[-2:-1] not in "aeiou":
        return f"{words[:-1]}ies"
    return f"{words}s"


@dataclass(frozen=True)
class AcronymList:
    """What acronyms mean in one report."""

    words: Mapping[str, str] = field(default_factory=lambda: dict(KNOWN_ACRONYMS))

    @classmethod
    def of(cls, texts: Iterable[str]) -> "AcronymList":
        """The list of the field, and over it what the texts of a report define themselves."""
        return cls({**KNOWN_ACRONYMS, **definitions_in(texts)})

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        longest_first = sorted(self.words, key=lambda acronym: (-len(acronym), acronym))
        names = "|".join(map(re.escape, longest_first)) or r"(?!)"
        # "SSP1-2.6" and "non-GHG" are other words; "GHG-intensive" is the acronym.
        return re.compile(
            rf"(?<![\w–-])(?P<open>\()?(?P<name>{names})(?P<plural>s?)(?P<close>\))?(?![\w–’]|[-.]\d|/[A-Z])"
        )

    def expand(self, text: str, how: Acronyms) -> str:
        """A text with its acronyms spelled out: every time, the first time, or not.

        Where the text itself says what one means, ``effective radiative forcing (ERF)``, the brackets go (every), or
        the words stay as they are (first).
        """
        if how == "none" or not any(char.isupper() for char in text):
            return text
        seen: set[str] = set()
        pieces, last = [], 0
        for match in self._pattern.finditer(text):
            start, end = match.start("name"), match.end("plural")
            whole = bool(match["open"]) and bool(match["close"])
            name = match["name"]
            words = _plural(self.words[name]) if match["plural"] else self.words[name]
            pieces.append(text[last:start])
            said = "".join(pieces[-3:]).rstrip("( ").lower()
            # "CO2 removal (CDR)" says it too, in other words.
            last_word = self.words[name].lower().rsplit(" ", 1)[-1]
            stands_before = said.endswith((words.lower(), self.words[name].lower(), f" {last_word}"))
            last = end
            first = name not in seen
            seen.add(name)
            if whole and stands_before:
                if how == "first":
                    pieces.append(text[start:end])
                else:
                    pieces[-1] = pieces[-1].removesuffix("(").rstrip(" ")
                    last = match.end()
            elif how == "every":
                pieces.append(words)
            else:
                pieces.append(f"{words} ({text[start:end]})" if first else text[start:end])
        return "".join([*pieces, text[last:]])
