"""Names of topics: proposed by a model, kept in a file that a person edits, and carried over to later runs.

A small model's proposals are often too general ("Climate change impacts") or made up. A name is therefore judged by
what it is for: the encoder that placed the statements must find the topic by its name. A name is kept if it is short
enough, not only made of words that every topic has, not given already, if its topic's middle is among the
:data:`NEAREST` most similar to it, and if most statements of the topic bear it. Where it fails, phrases of the topic's
statements are its name (:mod:`climassay.confidence.topics.naming`).

The file remembers of each topic the statements with the smallest hashes: a sample that does not depend on numbers,
order or later additions (Broder 1997, bottom-k sketch). From it follows how much of a named topic a new one holds, and
the pairing of greatest total overlap (Hungarian method) carries the names over.

Terms of a text as its authors write them: which words may name a topic, and in which form.

Terms are counted in lower case and without regard to where a sentence begins. A name is written as the statements
write it: "greenhouse gas" grows to "greenhouse gas emissions" where that is what mostly follows, number and case are
those that stand where the phrase ends, and what never ends a phrase (an adjective, a verb) gives no name. Units,
numbers and words of certainty are not terms; chemical formulas are.
"""

import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.io import write_file
from climassay.models.contract import Encoder, GenerationRequest, Generator, Sampling
from climassay.prompts import load_prompt
from climassay.settings import load_toml

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
    "mean average median percentile percentiles chance assessed benefit benefits urgency uncertainty uncertainties"
)
"""Words that would fit every topic: alone, or together, they name none."""
_ADJECTIVE = re.compile(r"(?:(?<!i)(?<!veget)able|ible|ous|ful|less)$")
"""Words that end so end no noun phrase; "variable" and "vegetable" may."""
_GROWTH = 0.5
"""Share of a phrase's occurrences that one neighbour must appear beside, for the phrase to be incomplete without it."""
_ENDS = 0.2
"""Share of its occurrences where a phrase must come to an end to be a noun phrase."""
_COMMON = 0.2
"""Share of the commonest form's occurrences from which a form with fewer capitals goes before it."""
_LONGEST = 5
"""Words of a phrase."""
_STEM = 5
_PIECES = 3
LONGEST_PHRASE_NAME = 60
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
    return _base(word.casefold())[:_STEM]


def phrases(words: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """The noun phrases that terms stand for, as the texts write them.

    Args:
        words: Terms in lower case, the most typical first.
        texts: Statements of the topic.

    Returns:
        A phrase for each term that is or begins a noun phrase of the texts, in their order, none twice.
    """
    read = [_words(text) for text in texts]
    results = (_phrase(tuple(word.split()), read) for word in words)
    return tuple(dict.fromkeys(phrase for phrase in results if phrase))


def written(words: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Terms in the case in which the texts write them: acronyms and formulas in their own."""
    return _written(words, [_words(text) for text in texts])


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
        if chosen and len(", ".join([*chosen, piece])) > LONGEST_PHRASE_NAME:
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
    numbered = [(text, start, end - 1) for text, start, end in spans if _has_number(text, end) and end - start > 1]
    if len(numbered) >= _GROWTH * len(spans):
        spans = ending = numbered  # the last word belongs to its number: "Project Phase 6" names the project
    else:
        ending = [span for span in spans if _ends(*span)]
    if len(ending) < _ENDS * len(spans):
        return ""
    first, _, end = ending[0]
    if _ADJECTIVE.search(first[end - 1].lower) or _is_participle(first[end - 1].lower, texts):
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
        if start and text[start].joined and _is_term(text[start - 1]) and not _is_verb_form(text[start - 1].lower):
            left.setdefault(text[start - 1].lower, []).append((text, start - 1, end))
    for side in (right, left):
        most = max(side.values(), key=len, default=[])
        if len(most) >= max(2, _GROWTH * len(spans)):
            return most
    return []


def _is_verb_form(word: str) -> bool:
    """Whether a general word in -s rather is a verb, where it stands before a noun: ``increases crop yield``."""
    return word.endswith("s") and word in _set(_GENERAL)


def _ends(text: Sequence[_Word], start: int, end: int) -> bool:
    """Whether a phrase comes to its end here, and names something rather than saying it of something."""
    stops = end == len(text) or not text[end].joined or text[end].lower in _set(_AFTER)
    said = start > 0 and text[start].joined and text[start - 1].lower in _set(_VERBAL)
    return stops and not said


def _has_number(text: Sequence[_Word], end: int) -> bool:
    """Whether a number follows, without which the phrase is cut."""
    return end < len(text) and text[end].joined and text[end].lower.isdigit()


def _is_participle(word: str, texts: Sequence[Sequence[_Word]]) -> bool:
    """Whether a word in -ed is a form of another that the texts or the general words have: ``emissions increased``.

    So is one that ``with`` or ``by`` mostly follows: ``risks associated``.
    """
    if not word.endswith("ed") or len(word) < 6:
        return False
    after = [two.lower for text in texts for one, two in pairwise(text) if one.lower == word and two.joined]
    if sum(one in ("with", "by") for one in after) > len(after) / 2:
        return True
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


@lru_cache(maxsize=4096)
def _words(text: str) -> tuple[_Word, ...]:
    text = plain(text)
    units = {place for match in _UNIT.finditer(text) for place in range(match.start(), match.end())}
    words, last, first = [], 0, True
    for match in _TOKEN.finditer(text):
        gap = text[last : match.start()]
        first = first or any(sign in gap for sign in ".?!:")
        surface = match[0]
        words.append(_Word(surface.casefold(), surface, first, not _BOUND.search(gap), match.start() in units))
        last, first = match.end(), False
    return tuple(words)


@cache
def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


@cache
def _stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return _set(" ".join((*ENGLISH_STOP_WORDS, _CALIBRATED, _PAPER, _TIME)))


NEAREST = 2
"""A name must find its topic among so many."""
LEAST_SUPPORT = 0.5
"""Share of a topic's statements that must bear its name."""
_BORNE = 0.9
"""A statement bears a name to which it is more similar than this share of the other topics' statements are."""
LONGEST_NAME = 48
"""Characters."""
_MOST_WORDS = 6
_STATEMENTS = 5
_STATEMENT_CHARACTERS = 220
_OTHERS = 12
_EVERYWHERE = (
    "climate change changes global warming research topic statement statements report assessment impact impacts effect "
    "effects of on in and the a an for to by with under future projected projection projections other various key "
    "analysis study studies science environment environmental issue issues risk risks"
)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3, "maxLength": LONGEST_NAME}},
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class NameProposal:
    """What a model called a topic."""

    name: str
    """As proposed, tidied; empty where there was no answer."""
    fault: str = ""
    """Why it is not used; empty if it is."""
    support: float | None = None


def propose_names(
    own: Sequence[str],
    words: Sequence[Sequence[str]],
    examples: Sequence[Sequence[str]],
    model: Generator,
    *,
    seed: int = 0,
    prompts: Path | None = None,
) -> list[str]:
    """Ask a model for the names of topics.

    Args:
        own: Name of each topic by its statements' phrases; those of other topics are shown.
        words: Words of each topic.
        examples: Typical statements of each topic.
        model: Asked once for each topic, under a schema; wrap it so that answers are recorded.
        seed: Seed of the sampling, which is greedy.
        prompts: Folder of the user's own prompts.

    Returns:
        One name per topic, tidied; empty where the model gave no answer that can be read.
    """
    prompt = load_prompt("topic_name", prompts)
    requests = []
    for number, (typical, said) in enumerate(zip(words, examples, strict=True)):
        others = [name for place, name in enumerate(own) if place != number][:_OTHERS]
        texts = [text[:_STATEMENT_CHARACTERS] for text in said[:_STATEMENTS]]
        rendered = prompt.render(statements=texts, words=list(typical), others=others)
        requests.append(
            GenerationRequest(
                rendered.messages,
                Sampling(max_tokens=None, seed=seed),
                schema=_SCHEMA,
                assistant_prefix=rendered.assistant_prefix,
            )
        )
    return [_read(answer.text) if answer.error is None else "" for answer in model.generate(requests)]


def judge_names(
    names: Sequence[str],
    centres: NDArray[np.float32],
    encoder: Encoder,
    taken: Sequence[str] = (),
    *,
    members: Sequence[NDArray[np.float32]] = (),
) -> list[NameProposal]:
    """Which names tell their topic from the others and are borne by most of its statements.

    Args:
        names: One a topic.
        centres: Middle of each topic, unit vectors, shape [topics, width].
        encoder: The one that made the vectors.
        taken: Names that are given already, for example by hand.
        members: Vectors of each topic's statements, shape [size, width] each; without them support is not asked for.
    """
    encoded = encoder.encode([name or "-" for name in names], role="query")
    similarities = encoded @ centres.T
    results: list[NameProposal] = []
    given = {name.casefold() for name in taken}
    for number, name in enumerate(names):
        place = int((similarities[number] > similarities[number, number]).sum())
        fault = _fault(name) or ("another topic has this name" if name.casefold() in given else "")
        if not fault and place >= NEAREST:
            fault = f"it fits {place} other topics better"
        support = None
        if name and len(members) > 1:
            # A statement bears a name to which it is more similar than most statements of other topics are.
            others = np.concatenate([vectors @ encoded[number] for at, vectors in enumerate(members) if at != number])
            support = float((members[number] @ encoded[number] > np.quantile(others, _BORNE)).mean())
        if not fault and support is not None and support < LEAST_SUPPORT:
            fault = f"only {support:.0%} of the topic's statements bear it"
        if not fault:
            given.add(name.casefold())
        results.append(NameProposal(name, fault, support))
    return results


def _fault(name: str) -> str:
    words = re.findall(r"[^\W\d_]+", name.casefold())
    if not words:
        return "no answer"
    if len(words) > _MOST_WORDS or name.endswith(("-", "...")):
        return "too long"
    if words[-1] in _set(_AFTER) | {"a", "an", "the"}:
        return "it is cut off"
    if set(words) & (_set(_VERBAL) - {"to"}):
        return "it is a sentence"
    if set(words) <= _set(_EVERYWHERE):
        return "every topic could be called so"
    if len(set(words)) < len(words) or any(len(word) > 24 for word in words):
        return "it repeats itself"
    return ""


def _read(text: str) -> str:
    try:
        name = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError):
        return ""
    tidy = " ".join(str(name).split()).strip(" .,:;\"'*-")
    return tidy[:1].upper() + tidy[1:]


SKETCH = 200
LEAST_OVERLAP = 0.5
"""Twice the shared statements over those of both (Dice), from which a topic counts as the same."""
_HEAD = """\
# Names of topics. Change a name between the quotes: the next run keeps it for the topic that has most of the same
# statements. What stands below [proposed] is how the program recognises topics; leave it as it is.

"""


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """A name, and how its topic is recognised."""

    name: str
    proposed: str
    """What the program called it."""
    size: int
    sketch: tuple[str, ...]
    """Smallest hashes of its statements, ascending, at most :data:`SKETCH`."""

    @property
    def by_hand(self) -> bool:
        """Whether a person gave the name."""
        return self.name != self.proposed


def statement_hash(text: str) -> str:
    """Hash of a statement's words, whatever their case and spacing: ten hexadecimal digits."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:10]


def smallest_hashes(texts: Sequence[str]) -> tuple[str, ...]:
    """The smallest hashes of statements."""
    return tuple(sorted({statement_hash(text) for text in texts})[:SKETCH])


def match_names(named: Sequence[NamedTopic], topics: Sequence[Sequence[str]]) -> dict[int, int]:
    """Which named topics the topics of a new run are.

    Args:
        named: Topics of an earlier run.
        topics: Statements' texts of each new topic.

    Returns:
        From number of a new topic to place in ``named``, where both share enough statements.
    """
    if not named or not topics:
        return {}
    from scipy.optimize import linear_sum_assignment

    overlaps = topic_overlaps(named, topics)
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {topic: place for place, topic in pairs if overlaps[place, topic] >= LEAST_OVERLAP}


def topic_overlaps(named: Sequence[NamedTopic], topics: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Overlap of named with new topics, shape [named, topics]: estimated Dice coefficient, 0 to 1.

    Statements of a sketch that no new topic has are left out: a run over other reports has other statements.
    """
    hashes = [{statement_hash(text) for text in texts} for texts in topics]
    known = set().union(*hashes)
    overlaps = np.zeros((len(named), len(topics)))
    for place, one in enumerate(named):
        still = [key for key in one.sketch if key in known]
        if not still:
            continue
        size = one.size * len(still) / len(one.sketch)
        for number, mine in enumerate(hashes):
            shared = size * sum(key in mine for key in still) / len(still)
            overlaps[place, number] = min(1.0, 2 * shared / (size + len(mine)))
    return overlaps


def read_names(path: Path) -> tuple[NamedTopic, ...]:
    """Names of an earlier run; none where there is no file.

    Raises:
        InputError: The file cannot be read as names.
    """
    if not path.exists():
        return ()
    data = load_toml(path)
    return (*_entries(path, data, ""), *_entries(path, data.get("unused", {}), "unused."))


def write_names(path: Path, named: Sequence[NamedTopic], unused: Sequence[NamedTopic] = ()) -> None:
    """Write names, by number, and those given by hand to topics that are no longer found.

    Raises:
        InputError: The file cannot be written.
    """
    parts = [_HEAD, _tables("", named)]
    if unused:
        parts += ["# Named by hand, and found in an earlier run only.\n", _tables("unused.", unused)]
    write_file(path, "".join(parts).encode())


def _tables(at: str, named: Sequence[NamedTopic]) -> str:
    columns = {
        "names": [_quoted(one.name) for one in named],
        "proposed": [_quoted(one.proposed) for one in named],
        "sizes": [str(one.size) for one in named],
        "statements": [_quoted(" ".join(one.sketch)) for one in named],
    }
    return "".join(
        f"[{at}{heading}]\n" + "".join(f"{number} = {value}\n" for number, value in enumerate(values)) + "\n"
        for heading, values in columns.items()
    )


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " and char != "\x7f" else f"\\u{ord(char):04x}" for char in escaped) + '"'


def _entries(path: Path, data: Mapping[str, Any], at: str) -> list[NamedTopic]:
    try:
        names, proposed = data.get("names", {}), data.get("proposed", {})
        sizes, statements = data.get("sizes", {}), data.get("statements", {})
        results = []
        for number, name in names.items():
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"{path}: the name [{at}names] {number} must be a non-empty text.")
            sketch = tuple(statements[number].split())
            results.append(NamedTopic(" ".join(name.split()), proposed[number], int(sizes[number]), sketch))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path} is damaged at {error}: delete it, or undo the last change to it.") from None
    return results
