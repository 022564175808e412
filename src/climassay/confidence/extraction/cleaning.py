"""Convert sentences to plain words: without tags of confidence, references, section numbers and footnote numbers.

Acronyms are expanded by the report's own definitions or, if it has none, by a list of common acronyms.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from climassay.confidence.settings import Acronyms
from climassay.confidence.tags import find_tags
from climassay.corpus.sentences import Span

_LABEL = (
    r"(?:(?:Extended\s+Data\s+|Supplementary\s+)?(?:Figures?|Figs?\.?|Tables?|Tab\.|Materials?)|Box(?:es)?|Sections?"
    r"|Sect\.|Chapters?|Ch\.|Cross[-\s](?:Chapter|Section|Working\s+Group)\s+(?:Box(?:es)?|Papers?)|CCPs?|CCBs?|CWGBs?"
    r"|Annex(?:es)?|Appendix|Appendices|FAQs?|Frequently\s+Asked\s+Questions?|TS|SPM|SM|ES|(?:AR6\s+|AR5\s+)?WG\s?I{1,3}"
    r"|Working\s+Groups?|(?:Interactive\s+)?Atlas|Glossary|Executive\s+Summary|Technical\s+Summary|Supplementary|Equations?"
    r"|Eqs?\.|SROCC|SRCCL|SR1\.?5|SREX|IPCC|AR[3-6]|Panels?|CROSS-CHAPTER\s+(?:BOX|PAPER)|Burning\s+Embers?)(?![a-z])"
)
_SECTION_NUMBER = r"(?:[A-Z]{1,3}\.)?\d{1,2}(?:\.\d{1,3}){2,}"
_REPORT_LOCATION = re.compile(
    rf"(?:see|also|see\s+also|cf\.?|e\.?g\.?,?|i\.?e\.?,?|in|and|refer\s+to|as\s+in|discussed\s+in|from)?\s*"
    rf"(?:(?:see|also|the|this)\s+)*(?:{_LABEL}|{_SECTION_NUMBER}|‘[^’]*’|SM\d)"
)
_CLAUSE = re.compile(r"\s(?:is|are|was|were|has|have|had|will|can|may|shows?|that|which|because|by|of|for|to)\s")
_FURTHER_LOCATIONS = re.compile(r"(?:[A-Z]{0,3}\.?\d[\d.]*[a-z]?(?:\s*[–-]\s*\d[\d.]*)?|[a-z]|and|\s|,|&)+")
_MONTH = (
    r"(?:January|February|March|April|May|June|July|August|September|October|November|December"
    r"|Since|After|Before|By|In)"
)
_YEAR = r"(?:1[89]\d\d|20[0-4]\d)[a-z]?"
_YEARS = rf"{_YEAR}(?:\s*[,&–-]\s*(?:{_YEAR}|[a-z]\b))*"
_PARTICLE = r"(?:van|von|de|der|den|di|da|del|la|le|el|al|ter|ten|dos|du|Le|La|De|Van|Von)"
_INITIALS = r"(?:[A-Z]\.[\s-]?){0,3}"
_NAME = rf"{_INITIALS}(?:{_PARTICLE}[\s-]+)*[^\W\d_a-z][^\W\d_]*(?:[-’']\s?[^\W\d_]+)*"
_REFERENCE = re.compile(
    r"(?:see|also|see\s+also|cf\.?|e\.?g\.?,?|i\.?e\.?,?|in|by|and|after|from|based\s+on|updated\s+from|following"
    r"|according\s+to)?\s*"
    rf"(?:e\.?g\.?,?\s*)?(?!{_MONTH}\s+{_YEAR}){_NAME}(?:\s+(?:et\s+al\.?|(?:and|&)\s+(?:{_NAME}|others)|{_NAME})){{0,5}}"
    rf"(?:\s+et\s+al\.?)?\s*\.?,?\s*\(?{_YEARS}\)?(?:\s*\[[^\]]*\])?"
)
_YEARS_ONLY = re.compile(_YEARS)
_IN_PRESS = re.compile(rf"{_NAME}(?:\s+et\s+al\.?)?,?\s+(?:in\s+press|submitted|under\s+review)")
_BRACES = re.compile(r"\{[^{}]{0,900}\}")
_BRACKETS = re.compile(r"\(([^()]{0,900}(?:\([^()]{0,60}\)[^()]{0,300}){0,4})\)|\[([^\[\]]{0,400})\]")
_NARRATIVE_YEAR = re.compile(rf"(?<=et al\.)\s+\(({_YEARS})\)|(?<=et al)\s+\(({_YEARS})\)")
# A number behind letters ("ago13 [0.2°C"; units end in fewer letters or in signs: km2, m–2), behind a full stop ("in
# 2019.6 Land") or behind a bracket. The digits come first in the patterns so that most places are skipped quickly.
_NOTE_AFTER_WORD = re.compile(r"\d{1,2}(?=[\s,;:.)]|$)")
_NOTE_AFTER_STOP = re.compile(r"\d{1,2}(?=\s+[A-Z]|\s*$)")
_BEFORE_NOTE = re.compile(r"(?:[a-z]{3}|\))$")
_BEFORE_NOTE_AFTER_STOP = re.compile(r"(?:\b(?:19|20)\d\d|[a-z]{3}|\))\.$")
_NOT_BEFORE_NOTE = ("ppm", "ppb", "ppt")
_NOTE_AFTER_SEMICOLON = re.compile(r"\d{1,2}(?=\s+[a-z])")
_BEFORE_NOTE_AFTER_SEMICOLON = re.compile(r"(?:^|\S)[;,]$")
_NOTES = (
    (_NOTE_AFTER_WORD, _BEFORE_NOTE),
    (_NOTE_AFTER_STOP, _BEFORE_NOTE_AFTER_STOP),
    (_NOTE_AFTER_SEMICOLON, _BEFORE_NOTE_AFTER_SEMICOLON),
)
_RETURN_ARROW = re.compile(r"\s?↩")
_LABEL_OF_PARAGRAPH = re.compile(r"\s*([A-F](?:\.\d{1,2}){1,3})\.?\s+(?=[A-Z])")
_LINKS = re.compile(
    r"(?:\bExpand\s+)?(?:\b(?:Figure|Table|Box|Cross-[\w-]+\s+Box)\s+[\w.]+,?\s+)*"
    r"\bLinks\s+to\s+(?:longer\s+report|chapters?|sections?)\b.*$"
)
"""Pattern of link texts that web versions of reports append to a paragraph in place of its references."""
_NUMBER_OF_PARAGRAPH = re.compile(
    r"^\s*(?:[A-F](?:\.\d{1,2}){1,4}\.?|(?:TS|ES|SPM)[.-][A-Z]?[\d.]+|\d{1,2}(?:\.\d{1,2}){2,4}|\d{1,3}(?=\s+[A-Z][a-z]*\s)|[•▪◦–—*-]|\(?(?:[ivx]{1,4}|[a-h]|\d{1,2})\))\s+"
)


def find_removable_spans(text: str) -> tuple[Span, ...]:
    """Return the sorted, disjoint spans of references, section numbers, footnote numbers and the paragraph's number.

    If brackets contain more than references, only the references are included: ``(NAO; Hurrell, 1995)`` leaves
    ``(NAO)``.
    """
    spans: list[tuple[int, int]] = [*_find_reference_spans(text)]
    for pattern in (_NUMBER_OF_PARAGRAPH, _RETURN_ARROW, _LINKS, _NARRATIVE_YEAR):
        spans += [match.span() for match in pattern.finditer(text)]
    for pattern, preceding_pattern in _NOTES:
        for match in pattern.finditer(text):
            preceding_text = text[max(0, match.start() - 6) : match.start()]
            if preceding_pattern.search(preceding_text) and not preceding_text.endswith(_NOT_BEFORE_NOTE):
                spans.append(match.span())
    return merge_spans(spans)


def find_reference_brackets(text: str) -> tuple[Span, ...]:
    """Return the spans of link texts, and of brackets that contain only references and section numbers.

    A sentence never ends inside such a span.
    """
    links = [match.span() for match in _LINKS.finditer(text)]
    return merge_spans([*links, *(span for span in _find_reference_spans(text) if text[span[0]] in "([{")])


def find_references(text: str) -> tuple[str, ...]:
    """Return the references of a paragraph, from its curly brackets or, if it has none, from a web page's links."""
    parts = [match.group().strip("{} ") for match in _BRACES.finditer(text)]
    parts = parts or [match.group().split("Links to", 1)[1].split(None, 2)[-1] for match in _LINKS.finditer(text)]
    results = (part.strip(" .") for words in parts for part in re.split(r"[;,]", words))
    return tuple(dict.fromkeys(part for part in results if part))


def find_paragraph_label(text: str) -> str | None:
    """Return the number at the start of a summary's paragraph, for example ``A.1.3``; None if it has none."""
    match = _LABEL_OF_PARAGRAPH.match(text)
    return match[1] if match else None


def is_reference(words: str) -> bool:
    """Return whether a text, for example in brackets, only cites literature or parts of reports."""
    parts = [part.strip(" ,.;:") for part in re.split(r"[;]", words)]
    return all(not part or _is_reference(part) for part in parts)


def _find_reference_spans(text: str) -> Iterator[tuple[int, int]]:
    for match in _BRACES.finditer(text):
        yield match.span()
    for match in _BRACKETS.finditer(text):
        content = match[1] if match[1] is not None else match[2]
        if match[2] is not None and not re.search(r"[A-Z][a-z]", content):
            continue  # ranges of numbers
        parts = content.split(";")
        is_part_reference = [_is_reference(part.strip(" ,.")) for part in parts]
        if all(is_part_reference):
            yield match.span()
            continue
        start = match.start() + 1
        for number, (part, is_cited) in enumerate(zip(parts, is_part_reference, strict=True)):
            if is_cited:
                # Include the semicolon before or after it.
                yield start - (number > 0), start + len(part) + (number == 0)
            start += len(part) + 1


def _is_reference(part: str) -> bool:
    if not part:
        return True
    if _REPORT_LOCATION.match(part) and not _CLAUSE.search(part):
        return True
    remainder = part
    while remainder:
        match = _REFERENCE.match(remainder) or _YEARS_ONLY.match(remainder) or _IN_PRESS.match(remainder)
        if match is None or (remainder is part and _YEARS_ONLY.match(remainder)):
            return remainder is not part and _FURTHER_LOCATIONS.fullmatch(remainder) is not None
        remainder = re.sub(r"^and\s+", "", remainder[match.end() :].lstrip(" ,;&."))
    return True


def merge_spans(spans: Iterable[tuple[int, int]]) -> tuple[Span, ...]:
    """Return the spans sorted, with touching and overlapping ones merged."""
    results: list[Span] = []
    for start, end in sorted(spans):
        if results and start <= results[-1].end:
            results[-1] = Span(results[-1].start, max(end, results[-1].end))
        else:
            results.append(Span(start, end))
    return tuple(results)


_PLACEHOLDER = "\ue000"
"""Placeholder for a calibrated term in running text, while the words around the term are corrected."""
_ADVERBS = (
    r"(?:\s*\b(?:still|also|now|only|generally|currently|overall|relatively|thus|therefore|at\s+least|an?|the|both)\b)"
    r"{0,8}"
)
_EXISTENTIAL_PHRASE = (
    r"\b(?:there|it)\s+(?:is|was|are|were|remains?|exists?|has\s+been|had\s+been|continues\s+to\s+be|would\s+be)"
    rf"{_ADVERBS}\s*"
)
_PREPOSITION = r"(?:in|of|for|on|about|regarding|concerning|around|with\s+regard\s+to|as\s+to)"
_RESULT_VERB = r"(?:(?:leads?|leading|led|gives?|giving|provides?|providing|results?|resulting)\s+(?:to\s+|in\s+)?)?"
_LEVELS_WORD = r"(?:\s+(?:levels?|statements?|assessments?|ratings?))?"
# Applied in this order; without the tag the sentence must be grammatical and must not reveal the level.
_CORRECTIONS = (
    (rf"{_EXISTENTIAL_PHRASE}{_PLACEHOLDER}{_LEVELS_WORD}\s*,?\s+that,?\s+", ""),
    (rf"{_EXISTENTIAL_PHRASE}{_PLACEHOLDER}{_LEVELS_WORD}\s+{_PREPOSITION}\s+", ""),
    (rf"^\s*{_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}\s*[:–—-]\s*", ""),
    (
        rf"(?:^\s*{_RESULT_VERB}|(?<=[,;:]\s))(?:and\s+|but\s+|with\s+)?{_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}\s+(?:that|{_PREPOSITION})\s+",
        "",
    ),
    (rf",?\s*\b(?:avec|con)(?:\s+(?:une?|una))?\s*{_PLACEHOLDER}(?=\W|$)", ""),
    (rf"\bwith{_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}\s+(?:in|of|about|regarding)\s+", "for "),
    (rf",?\s*\b(?:with|at|by){_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}(?=\W|$)", ""),
    (
        rf"\s*\b(?:has|have|had|is\s+of|are\s+of|is\s+given|are\s+given){_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}(?=\s*[,;.]|\s*$)",
        "",
    ),
    (rf"{_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}\s+that\s+", " the assessment that "),
    (rf"{_ADVERBS}\s*{_PLACEHOLDER}{_LEVELS_WORD}\s+{_PREPOSITION}\s+", " the assessment of "),
    (rf",?\s*\b(?:and|but|yet|although|though|while|whereas){_ADVERBS}\s*{_PLACEHOLDER}(?=\s*[,;.]|\s*$)", ""),
    (rf"\s*{_PLACEHOLDER}{_LEVELS_WORD}(?:\s+or\s+(?:higher|lower|more))?", ""),
)
_CORRECTION_RULES = tuple((re.compile(pattern, re.IGNORECASE), words) for pattern, words in _CORRECTIONS)
_SPACE_BEFORE = re.compile(r"\s+(?=[,;:.!?)\]])")
_SPACE_AFTER = re.compile(r"(?<=[(\[])\s+")
_EMPTY_BRACKETS = re.compile(r"\([,;:.\s]*\)|\[[,;:.\s]*\]")
_EDGE_OF_BRACKETS = re.compile(r"(?<=[(\[])[\s,;:]+|(?<![\s,;:])[\s,;:]+(?=[)\]])")
_DOUBLED_PUNCTUATION = re.compile(r"([,;:])(?:\s*[,;:])+|,\s*(?=\.)|(?<!\.)\.(?:\s*\.)+(?!\.)|;\s*(?=\.)")
_ITALICS = re.compile(r"(?<![\w*_])[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?![\w*_])")
_LEADING_PUNCTUATION = re.compile(r"^(?:[\s,;:.)\]–—]|-\s)+")
_TRAILING_PUNCTUATION = re.compile(r"(?<![\s,;:(\[–—-])[\s,;:(\[–—-]+$")
_WORD = re.compile(r"[^\W\d_]")
_MAX_ROUNDS = 12


def clean_sentence(text: str) -> str:
    """Return a sentence or clause in plain words, with a capital first letter and a final full stop.

    Levels of confidence, and words that only introduce them ("there is high confidence that"), are removed. So are
    references, section numbers and footnote numbers. Cleaning is idempotent.

    Returns:
        One line; empty if no word is left.
    """
    text = " ".join(text.split())
    for _ in range(_MAX_ROUNDS):
        cleaned_text = tidy_sentence(_ITALICS.sub("", remove_tags(_replace_spans(text, find_removable_spans(text)))))
        if cleaned_text == text:
            return text
        text = cleaned_text
    # Last resort for text in which every correction makes a new tag: across an ellipsis, words form no tag.
    for _ in range(_MAX_ROUNDS):
        tags = find_tags(text)
        if not tags:
            break
        text = _replace_spans(text, [tag.span_with_brackets for tag in tags], lambda _: "…")
    return " ".join(text.split())


def remove_tags(text: str) -> str:
    """Remove the terms of confidence, evidence and agreement from a text, and correct the sentence around each term."""
    tags = find_tags(text)
    if not tags:
        return text
    bracket_spans = {tag.span_with_brackets for tag in tags if tag.in_brackets}
    # "Confidence in more hail is low" leaves "more hail".
    replacements = {
        (tag.start, tag.end): text[slice(*tag.subject)] if tag.subject else _PLACEHOLDER
        for tag in tags
        if not tag.in_brackets
    }
    text = _replace_spans(text, [*bracket_spans, *replacements], lambda span: replacements.get(span, " "))
    if not replacements:
        return text
    text = " ".join(text.split())
    for pattern, words in _CORRECTION_RULES:
        text = pattern.sub(words, text)
    return text


def tidy_sentence(text: str) -> str:
    """Put a text on one line, correct spaces and punctuation, and add an initial capital and a final full stop."""
    text = _EMPTY_BRACKETS.sub(" ", _EDGE_OF_BRACKETS.sub("", text))
    text = _SPACE_AFTER.sub("", _SPACE_BEFORE.sub("", " ".join(text.split())))
    text = _DOUBLED_PUNCTUATION.sub(lambda match: match[1] or ("." if match.group().startswith(".") else ""), text)
    text = _TRAILING_PUNCTUATION.sub("", _LEADING_PUNCTUATION.sub("", text))
    if not _WORD.search(text):
        return ""
    first_word = text.split(maxsplit=1)[0]
    if first_word.islower() and re.fullmatch(r"[^\W\d_]{2,}(?:-[^\W\d_]+)*[,;:.]?|a", first_word):
        text = text[0].upper() + text[1:]
    return text if text[-1] in ".!?…" or text[-2:] in (".”", ".’", '."') else f"{text}."


def _replace_spans(
    text: str, spans: Iterable[tuple[int, int]], replacement: Callable[[tuple[int, int]], str] = lambda _: ""
) -> str:
    pieces, previous_end = [], 0
    for start, end in sorted(spans):
        if start >= previous_end:
            pieces += [text[previous_end:start], replacement((start, end))]
            previous_end = end
    return "".join([*pieces, text[previous_end:]])


KNOWN_ACRONYMS = dict(
    line.split("\t") for line in Path(__file__).with_name("acronyms.tsv").read_text(encoding="utf-8").splitlines()
)
"""Acronyms of climate science and of the IPCC, for reports that do not define them.

Acronyms that are also words or region codes of AR6 (SAM, CAN, MED), or that have two meanings in the reports (AR:
autoregressive, assessment report; MAR: a model, managed aquifer recharge), are only expanded if the report defines
them.
"""


_DEFINITION = re.compile(r"\(([A-Z](?:[A-Za-z&/-]{0,8}[A-Z]))(s?)(?:[;,][^()]{0,80})?\)")
_WORDS_BEFORE = 160
_MAX_DEFINITION_WORDS = 10
_MIN_LETTERS = 2
_SMALL_WORDS = {"a", "an", "the", "of", "for", "and", "in", "on", "by", "to", "with", "or", "from", "at", "as"}
_PLURALS = (
    ("gases", "gas"), ("biases", "bias"), ("analyses", "analysis"), ("indices", "index"), ("sses", "ss"),
    ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ies", "y"), ("s", ""),
)  # fmt: skip
"""Plural endings with the corresponding singular endings; the first that matches is used."""
_DEFINITION_BOUNDARY = re.compile(r"[()\[\]{};:]|\.\s|,(?=\s+(?:and|but|which|that|where|while)\b)")


def find_definitions(texts: Iterable[str]) -> dict[str, str]:
    """Return the acronyms that texts define, with their meanings in the singular.

    A definition has the form ``effective radiative forcing (ERF)``. The letters of the acronym are matched with the
    letters of the words before the brackets, from right to left; the first letter must begin a word (Schwartz and
    Hearst 2003, "A simple algorithm for identifying abbreviation definitions in biomedical text"). If there are several
    definitions, the most frequent one is used.
    """
    counts: dict[str, Counter[str]] = {}
    for text in texts:
        if "(" not in text:
            continue
        for match in _DEFINITION.finditer(text):
            words = _find_definition_words(match[1], text[max(0, match.start() - _WORDS_BEFORE) : match.start()])
            if words:
                counts.setdefault(match[1], Counter())[_to_singular(words) if match[2] else words] += 1
    return {acronym: min(result, key=lambda words: (-result[words], words)) for acronym, result in counts.items()}


def _find_definition_words(acronym: str, preceding_text: str) -> str | None:
    """Return the shortest sequence of words at the end of a text that spells an acronym; None if there is none."""
    boundaries = [match.end() for match in _DEFINITION_BOUNDARY.finditer(preceding_text)]
    preceding_text = preceding_text[boundaries[-1] if boundaries else 0 :].rstrip()
    letters = [char.lower() for char in acronym if char.isalpha()]
    if len(letters) < _MIN_LETTERS or not preceding_text:
        return None
    position = len(preceding_text)
    for letter_index in range(len(letters) - 1, -1, -1):
        position -= 1
        while position >= 0 and (
            preceding_text[position].lower() != letters[letter_index]
            or (
                letter_index == 0
                and position > 0
                and (preceding_text[position - 1].isalnum() or preceding_text[position - 1] in "’'")
            )
        ):
            position -= 1
        if position < 0:
            return None
    words = preceding_text[position:].strip()
    parts = words.split()
    n_content_words = sum(1 for part in parts if part.lower() not in _SMALL_WORDS)
    is_too_long = n_content_words > min(_MAX_DEFINITION_WORDS, len(letters) + 2)
    return (
        None if is_too_long or acronym in parts or n_content_words < min(2, len(letters) - 1) else _uncapitalise(words)
    )


def _uncapitalise(words: str) -> str:
    """Return the words, with the first in lower case if it is capitalised only as the start of a sentence."""
    first_word, *other_words = words.split(" ", 1)
    is_sentence_start = (
        first_word[:1].isupper() and first_word[1:].islower() and other_words and other_words[0].islower()
    )
    return first_word.lower() + " " + other_words[0] if is_sentence_start else words


def _to_singular(words: str) -> str:
    for plural_ending, singular_ending in _PLURALS:
        if words.endswith(plural_ending) and not words.endswith("ss"):
            return words[: len(words) - len(plural_ending)] + singular_ending
    return words


def _to_plural(words: str) -> str:
    if words.endswith(("gas", "bias", "ss", "x", "ch", "sh")):
        return f"{words}es"
    if words.endswith("s"):
        return words
    if words.endswith("y") and words[-2:-1] not in "aeiou":
        return f"{words[:-1]}ies"
    return f"{words}s"


@dataclass(frozen=True)
class AcronymList:
    """Acronyms used in a report, with their meanings."""

    words: Mapping[str, str] = field(default_factory=lambda: dict(KNOWN_ACRONYMS))

    @classmethod
    def from_texts(cls, texts: Iterable[str]) -> "AcronymList":
        """Return the acronyms of climate science, overridden by the definitions in a report's texts."""
        return cls({**KNOWN_ACRONYMS, **find_definitions(texts)})

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        sorted_acronyms = sorted(self.words, key=lambda acronym: (-len(acronym), acronym))
        names = "|".join(map(re.escape, sorted_acronyms)) or r"(?!)"
        # "SSP1-2.6" and "non-GHG" are other words; "GHG-intensive" is the acronym.
        return re.compile(
            rf"(?<![\w–-])(?P<open>\()?(?P<name>{names})(?P<plural>s?)(?P<close>\))?(?![\w–’]|[-.]\d|/[A-Z])"
        )

    def expand(self, text: str, mode: Acronyms) -> str:
        """Replace the acronyms in a text by their meanings; ``mode`` selects every occurrence, only the first, or none.

        If the text itself defines an acronym, as in ``effective radiative forcing (ERF)``, the brackets are removed
        (``every``) or the text remains unchanged (``first``).
        """
        if mode == "never" or not any(char.isupper() for char in text):
            return text
        expanded_names: set[str] = set()
        pieces, previous_end = [], 0
        for match in self._pattern.finditer(text):
            start, end = match.start("name"), match.end("plural")
            is_bracketed = bool(match["open"]) and bool(match["close"])
            name = match["name"]
            words = _to_plural(self.words[name]) if match["plural"] else self.words[name]
            pieces.append(text[previous_end:start])
            preceding_text = "".join(pieces[-3:]).rstrip("( ").lower()
            # "CO2 removal (CDR)" is a definition too, in other words.
            last_word = self.words[name].lower().rsplit(" ", 1)[-1]
            is_defined = preceding_text.endswith((words.lower(), self.words[name].lower(), f" {last_word}"))
            previous_end = end
            is_first = name not in expanded_names
            expanded_names.add(name)
            if is_bracketed and is_defined:
                if mode == "first":
                    pieces.append(text[start:end])
                else:
                    pieces[-1] = pieces[-1].removesuffix("(").rstrip(" ")
                    previous_end = match.end()
            elif mode == "every":
                pieces.append(words)
            else:
                pieces.append(f"{words} ({text[start:end]})" if is_first else text[start:end])
        return "".join([*pieces, text[previous_end:]])
