"""Terms of a text as its authors write them: which words may name a topic, and in which form.

Terms are counted in lower case and without regard to where a sentence begins. A name is written as the statements
write it: "greenhouse gas" grows to "greenhouse gas emissions" where that is what mostly follows, number and case are
those that stand where the phrase ends, and what never ends a phrase (an adjective, a verb) gives no name. Units,
numbers and words of certainty are not terms; chemical formulas are.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

_CALIBRATED = (
    "confidence likely unlikely virtually certain likelihood evidence agreement robust limited medium high low very "
    "extremely exceptionally"
)
"""Words of certainty say how sure authors are, not what about."""
_PAPER = "et al figure fig table section chapter box cross faq doi annex spm ts"
_TIME = "year years decade decades century centuries per percent cent percentage"
_SPLIT_FORMULA = re.compile(
    r"\b((?:[kMGTPE]?t)?(?:CO|CH|N|SO|NO|NH|O|PM|CF|SF|NF|H)) (2\.5|10|[2346x])(?: (O|S)(?![\w.]))?(?![\d.]\d)\b"
)
"""Subscripts that a file sets apart: ``CO 2``, ``N 2 O``, ``PM 2.5``."""
_UNIT = re.compile(
    r"(?<![\w.-])(?:[kMGTPEZµμnmcdh]?(?:tC?(?:CO2|CH4|N2O)?|gC?|Wh?|J|m|Pa|mol|yr|a|ha|L|eV)"
    r"(?: ?[-–]? ?eq?(?:uivalents?)?)?|pp[mbt]v?|Sv|DU|USD\d*|US\$|°C|°F|CO2 ?[-–]? ?eq?)(?: ?[-−–]?\d)?(?![\w-])"
)
_TOKEN = re.compile(r"[^\W_]+(?:[-‐–'’.][^\W_]+)*")
_LETTERS = re.compile(r"[^\W\d_]")
_BOUND = re.compile(r"\S")
_VERBAL = (
    "is are was were be been being has have had will would can could may might must should shall to not also it they "
    "we which that there who do does did cannot"
)
"""What follows these is said of something; it is not named by it."""
_AFTER = (
    "and or of in on at by for from to with as is are was were be has have had will would can could may might must "
    "should under over between within among during through across since due that which while where when than but "
    "including because if into per such via both not"
)
"""Before these a phrase has come to its end."""
_GENERAL = (
    "climate change changes changing global warming research report reports assessment impact impacts effect effects "
    "future projected projection projections observed various key analysis study studies science issue issues risk "
    "risks increase increases increased decrease decreases decreased rate rates level levels trend trends value "
    "values range ranges region regions area areas scenario scenarios case cases period periods time times scale "
    "scales system systems type types number numbers amount amounts factor factors process processes result results "
    "example examples use uses end large larger small smaller high higher low lower new long short term terms total "
    "mean average"
)
"""Words that would fit every topic: alone, or together, they name none."""
_GROWTH = 0.5
"""Share of a phrase's occurrences that one neighbour must appear beside, for the phrase to be incomplete without it."""
_ENDS = 0.2
"""Share of its occurrences where a phrase must come to an end to be a noun phrase."""
_COMMON = 0.2
"""Share of the commonest form's occurrences from which a form with fewer capitals goes before it."""
_LONGEST = 4
"""Words of a phrase."""
_STEM = 5
_PIECES = 3
LONGEST_NAME = 60
"""Characters of a name that is made of phrases."""


class _Word(NamedTuple):
    lower: str
    surface: str
    first: bool
    """It begins a sentence."""
    joined: bool
    """Nothing but a space appears between it and the word before."""
    unit: bool


def plain(text: str) -> str:
    """A text with the subscripts of formulas joined to their elements, and without typographic variants of figures."""
    return _SPLIT_FORMULA.sub(lambda m: m[1] + m[2] + (m[3] or ""), unicodedata.normalize("NFKC", text))


def terms(text: str) -> Iterator[str]:
    """Words and pairs of neighbouring words in lower case, as the vectoriser of topics counts them."""
    before = ""
    for word in _words(text):
        if not _is_term(word):
            before = ""
            continue
        yield word.lower
        if before and word.joined:
            yield f"{before} {word.lower}"
        before = word.lower


def stem(word: str) -> str:
    """What tells words apart in a name: coast and coastal, cyclone and cyclones count as one."""
    return word.casefold()[:_STEM]


def phrases(words: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """The noun phrases that terms stand for, as the texts write them.

    Args:
        words: Terms in lower case, the most typical first.
        texts: Statements of the topic.

    Returns:
        A phrase for each term that is or begins a noun phrase of the texts, in their order, none twice.
    """
    read = [list(_words(text)) for text in texts]
    found = (_phrase(tuple(word.split()), read) for word in words)
    return tuple(dict.fromkeys(phrase for phrase in found if phrase))


def written(words: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Terms in the case in which the texts write them: acronyms and formulas in their own."""
    return _written(words, [list(_words(text)) for text in texts])


def _written(words: Sequence[str], texts: Sequence[Sequence[_Word]]) -> tuple[str, ...]:
    forms: dict[str, Counter[str]] = {}
    for text in texts:
        for word in text:
            if not word.first or _is_name(word.surface):
                forms.setdefault(word.lower, Counter())[word.surface] += 1
    return tuple(" ".join(_plainest(forms[part]) if part in forms else part for part in word.split()) for word in words)


def _plainest(forms: Counter[str]) -> str:
    """The form with the fewest capitals that is not rare: "the ice sheet", not that of "Greenland Ice Sheet"."""
    most = max(forms.values())
    return min(forms, key=lambda form: (forms[form] < _COMMON * most, sum(map(str.isupper, form)), -forms[form], form))


def joined_name(pieces: Sequence[str]) -> str:
    """A name of the first phrases that say something new: ``Emissions, CO2 and greenhouse gases``."""
    chosen: list[str] = []
    used: set[str] = set()
    for piece in pieces:
        parts = re.findall(r"[^\W_]+", piece)
        stems = {stem(part) for part in parts}
        said = {part.casefold() for part in parts}
        if used & stems or len(stems) < len(said) or (said <= _set(_GENERAL) and len(pieces) > 1):
            continue
        if chosen and len(", ".join([*chosen, piece])) > LONGEST_NAME:
            continue
        chosen.append(piece)
        used |= stems
        if len(chosen) == _PIECES:
            break
    chosen = chosen or list(pieces[:1]) or ["unnamed"]
    name = " and ".join([", ".join(chosen[:-1]), chosen[-1]] if len(chosen) > 1 else chosen)
    return name if _is_name(name.split(maxsplit=1)[0].rstrip(",")) else name[0].upper() + name[1:]


def _phrase(term: tuple[str, ...], texts: Sequence[Sequence[_Word]]) -> str:
    """The noun phrase of a term; empty where it is none."""
    spans = [(text, start, start + len(term)) for text in texts for start in _places(term, text)]
    if not spans:
        return ""
    for _ in range(_LONGEST - len(term)):
        grown = _grown(spans)
        if len(grown) < 2 or len(grown) < _GROWTH * len(spans):
            break
        spans = grown
    ending = [span for span in spans if _ends(*span)]
    if len(ending) < _ENDS * len(spans) or _is_participle(ending[0][0][ending[0][2] - 1].lower, texts):
        return ""
    spellings = Counter(tuple(word.lower for word in text[start:end]) for text, start, end in ending)
    spelling = min(spellings, key=lambda words: (-spellings[words], words))
    inner = [text[start:end] for text, start, end in ending if not text[start].first]
    forms = Counter(
        " ".join(word.surface for word in span) for span in inner if tuple(word.lower for word in span) == spelling
    )
    if not forms:
        return _written((" ".join(spelling),), texts)[0]
    return _plainest(forms)


def _grown(spans: Sequence[tuple[Sequence[_Word], int, int]]) -> list[tuple[Sequence[_Word], int, int]]:
    """Spans with the neighbour that most of them share, to the right where there is one, else to the left."""
    right: dict[str, list[tuple[Sequence[_Word], int, int]]] = {}
    left: dict[str, list[tuple[Sequence[_Word], int, int]]] = {}
    for text, start, end in spans:
        if end < len(text) and text[end].joined and _is_term(text[end]):
            right.setdefault(_base(text[end].lower), []).append((text, start, end + 1))
        if start and text[start].joined and _is_term(text[start - 1]):
            left.setdefault(text[start - 1].lower, []).append((text, start - 1, end))
    for side in (right, left):
        most = max(side.values(), key=len, default=[])
        if len(most) >= max(2, _GROWTH * len(spans)):
            return most
    return []


def _ends(text: Sequence[_Word], start: int, end: int) -> bool:
    """Whether a phrase comes to its end here, and names something rather than saying it of something."""
    stops = end == len(text) or not text[end].joined or text[end].lower in _set(_AFTER)
    said = start > 0 and text[start].joined and text[start - 1].lower in _set(_VERBAL)
    return stops and not said


def _is_participle(word: str, texts: Sequence[Sequence[_Word]]) -> bool:
    """Whether a word in -ed is a form of another that the texts or the general words have: ``emissions increased``."""
    if not word.endswith("ed") or len(word) < 6:
        return False
    others = {word[:-1], word[:-2], f"{word[:-1]}s", f"{word[:-2]}s", f"{word[:-2]}ing"}
    return bool(others & _set(_GENERAL)) or any(one.lower in others for text in texts for one in text)


def _places(term: tuple[str, ...], text: Sequence[_Word]) -> Iterator[int]:
    """Where a term appears in a text, its last word in singular or plural."""
    *head, last = term
    last = _base(last)
    for start in range(len(text) - len(term) + 1):
        span = text[start : start + len(term)]
        if (
            _base(span[-1].lower) == last
            and all(word.lower == part for word, part in zip(span, head, strict=False))
            and all(word.joined for word in span[1:])
            and not any(word.unit for word in span)
        ):
            yield start


@cache
def _base(word: str) -> str:
    """A word without its plural ending, good enough to tell that two forms are of one word."""
    for end, singular in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("gases", "gas")):
        if word.endswith(end) and (len(word) > len(end) + 1 or word == end):
            return word[: -len(end)] + singular
    return word[:-1] if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is", "gas")) else word


def _is_name(word: str) -> bool:
    """An acronym, a formula or a proper name in mixed case, which keeps its case everywhere (CO2, pH, IPCC)."""
    return any(char.isupper() for char in word[1:])


def _is_term(word: _Word) -> bool:
    return (
        len(word.lower) > 1
        and not word.unit
        and _LETTERS.match(word.lower) is not None
        and word.lower not in _stop_words()
    )


def _words(text: str) -> Iterator[_Word]:
    text = plain(text)
    units = {place for match in _UNIT.finditer(text) for place in range(match.start(), match.end())}
    last, first = 0, True
    for match in _TOKEN.finditer(text):
        gap = text[last : match.start()]
        first = first or any(sign in gap for sign in ".?!:")
        surface = match[0]
        yield _Word(surface.casefold(), surface, first, not _BOUND.search(gap), match.start() in units)
        last, first = match.end(), False


@cache
def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return _set(" ".join((*ENGLISH_STOP_WORDS, _CALIBRATED, _PAPER, _TIME)))
