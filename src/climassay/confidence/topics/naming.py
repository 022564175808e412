"""Names of topics: proposed by a model, stored in a file that a person edits, and matched to later runs.

A small model's proposals are often too general ("Climate change impacts") or made up. A name is therefore accepted only
if the encoder of the statements finds the topic by it: its topic's centre must be among the :data:`NEAREST` most
similar to the name, and most statements of the topic must support it. It must also be short, contain a word that does
not fit every topic, and not be in use. Otherwise the topic is named by phrases of its statements.

For each topic, the file stores the smallest hashes of its statements, a sample that does not depend on numbers, order
or later additions (Broder 1997, bottom-k sketch). The overlap of a named topic with a new one is estimated from these
samples, and names are transferred by the matching with the greatest total overlap (Hungarian method).

Terms are counted in lower case, and spelled in names as at the ends of phrases in the statements. "greenhouse gas"
becomes "greenhouse gas emissions" if "emissions" mostly follows. A term that never ends a phrase (an adjective, a verb)
is not used. Chemical formulas are terms; units, numbers and words of certainty are not.
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

_CALIBRATED_WORDS = (
    "confidence likely unlikely virtually certain likelihood evidence agreement robust limited medium high low very "
    "extremely exceptionally"
)
"""Words of certainty, which do not describe a subject."""
_PAPER_WORDS = "et al figure fig table section chapter box cross faq doi annex spm ts"
_TIME_WORDS = "year years decade decades century centuries per percent cent percentage"
_SPLIT_FORMULA = re.compile(
    r"\b((?:[kMGTPE]?t)?(?:CO|CH|N|SO|NO|NH|O|PM|CF|SF|NF|H)) (2\.5|10|[2346x])(?: (O|S)(?![\w.]))?(?![\d.]\d)\b"
)
"""Pattern of formulas with a space before the subscript: ``CO 2``, ``N 2 O``, ``PM 2.5``."""
_UNIT = re.compile(
    r"(?<![\w.-])(?:[kMGTPEZµμnmcdh]?(?:tC?(?:CO2|CH4|N2O)?|gC?|Wh?|J|m|Pa|mol|yr|a|ha|L|eV)"
    r"(?: ?[-–]? ?eq?(?:uivalents?)?)?|pp[mbt]v?|Sv|DU|USD\d*|US\$|°C|°F|CO2 ?[-–]? ?eq?)(?: ?[-−–]?\d)?(?![\w-])"
)
_TOKEN = re.compile(r"[^\W_]+(?:[-‐–'’.][^\W_]+)*")
_LETTERS = re.compile(r"[^\W\d_]")
_NON_SPACE = re.compile(r"\S")
_BEFORE_PREDICATE = (
    "is are was were be been being has have had will would can could may might must should shall to not also it they "
    "we which that there who do does did cannot"
)
"""Words that can precede a predicate but not belong to a name."""
_AFTER_PHRASE = (
    "and or of in on at by for from to with as is are was were be has have had will would can could may might must "
    "should under over between within among during through across since due that which while where when than but "
    "including because if into per such via both not"
)
"""Words that follow a complete phrase."""
_GENERAL_WORDS = (
    "climate change changes changing global warming research report reports assessment impact impacts effect effects "
    "future projected projection projections observed various key analysis study studies science issue issues risk "
    "risks increase increases increased decrease decreases decreased rate rates level levels trend trends value "
    "values range ranges region regions area areas scenario scenarios case cases period periods time times scale "
    "scales system systems type types number numbers amount amounts factor factors process processes result results "
    "example examples use uses end large larger small smaller high higher low lower new long short term terms total "
    "mean average median percentile percentiles chance assessed benefit benefits urgency uncertainty uncertainties"
)
"""Words that fit every topic; a name must contain at least one other word."""
_ADJECTIVE = re.compile(r"(?:(?<!i)(?<!veget)able|ible|ous|ful|less)$")
"""Pattern of endings of adjectives, which cannot end a noun phrase; "variable" and "vegetable" are exceptions."""
_MIN_NEIGHBOUR_SHARE = 0.5
"""If at least this proportion of a phrase's occurrences are next to the same word, the word is added to the phrase."""
_MIN_END_SHARE = 0.2
"""A term is a noun phrase if at least this proportion of its occurrences end a phrase."""
_MIN_FORM_SHARE = 0.2
"""A form with fewer capitals is preferred if its frequency, relative to the most frequent form, is at least this value.
"""
_MAX_PHRASE_WORDS = 5
_STEM_LETTERS = 5
_MAX_PIECES = 3
MAX_PHRASE_NAME_CHARACTERS = 60
"""Maximum length, in characters, of a name made of phrases."""


class _Word(NamedTuple):
    lower: str
    surface: str
    is_first: bool
    """Whether the word begins a sentence."""
    is_joined: bool
    """Whether only a space separates the word from the previous one."""
    is_unit: bool


def normalise_formulas(text: str) -> str:
    """Normalise a text by NFKC, and remove spaces before the subscripts of chemical formulas."""
    return _SPLIT_FORMULA.sub(lambda m: m[1] + m[2] + (m[3] or ""), unicodedata.normalize("NFKC", text))


def split_terms(text: str) -> Iterator[str]:
    """Yield the words and pairs of neighbouring words of a text in lower case; topics use this tokeniser."""
    previous = ""
    for word in _split_words(text):
        if not _is_term(word):
            previous = ""
            continue
        yield word.lower
        if previous and word.is_joined:
            yield f"{previous} {word.lower}"
        previous = word.lower


def stem(word: str) -> str:
    """Return the first letters of a word without its plural ending; coast, coasts and coastal have the same stem."""
    return _remove_plural(word.casefold())[:_STEM_LETTERS]


def find_noun_phrases(words: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Extend lower-case terms to noun phrases, spelled as in the texts.

    Returns:
        Distinct noun phrases, in the order of the terms; terms that neither are nor begin a noun phrase are omitted.
    """
    split_texts = [_split_words(text) for text in texts]
    results = (_find_noun_phrase(tuple(word.split()), split_texts) for word in words)
    return tuple(dict.fromkeys(phrase for phrase in results if phrase))


def spell_terms(words: Sequence[str], texts: Iterable[str]) -> tuple[str, ...]:
    """Return terms capitalised as in the texts; acronyms and formulas keep their own case."""
    return _spell_terms(words, [_split_words(text) for text in texts])


def _spell_terms(words: Sequence[str], texts: Sequence[Sequence[_Word]]) -> tuple[str, ...]:
    forms: dict[str, Counter[str]] = {}
    for text in texts:
        for word in text:
            if not word.is_first or _is_name(word.surface):
                forms.setdefault(word.lower, Counter())[word.surface] += 1
    return tuple(
        " ".join(_select_plainest_form(forms[part]) if part in forms else part for part in word.split())
        for word in words
    )


def _select_plainest_form(forms: Counter[str]) -> str:
    """Return the form with the fewest capitals among those that are not rare: "ice sheet" rather than "Ice Sheet"."""
    max_count = max(forms.values())
    return min(
        forms,
        key=lambda form: (forms[form] < _MIN_FORM_SHARE * max_count, sum(map(str.isupper, form)), -forms[form], form),
    )


def join_phrases(pieces: Sequence[str]) -> str:
    """Join the first phrases that add new words, for example to ``Emissions, CO2 and greenhouse gases``."""
    selected_pieces: list[str] = []
    used_stems: set[str] = set()
    for piece in pieces:
        parts = re.findall(r"[^\W_]+", piece)
        stems = {stem(part) for part in parts}
        words = {part.casefold() for part in parts}
        if used_stems & stems or len(stems) < len(words) or (words <= _load_words(_GENERAL_WORDS) and len(pieces) > 1):
            continue
        if selected_pieces and len(", ".join([*selected_pieces, piece])) > MAX_PHRASE_NAME_CHARACTERS:
            continue
        selected_pieces.append(piece)
        used_stems |= stems
        if len(selected_pieces) == _MAX_PIECES:
            break
    selected_pieces = selected_pieces or list(pieces[:1]) or ["unnamed"]
    name = " and ".join(
        [", ".join(selected_pieces[:-1]), selected_pieces[-1]] if len(selected_pieces) > 1 else selected_pieces
    )
    return name if _is_name(name.split(maxsplit=1)[0].rstrip(",")) else name[0].upper() + name[1:]


def _find_noun_phrase(term: tuple[str, ...], texts: Sequence[Sequence[_Word]]) -> str:
    """Return the noun phrase that extends a term; empty if there is none."""
    spans = [(text, start, start + len(term)) for text in texts for start in _find_occurrences(term, text)]
    if not spans:
        return ""
    for _ in range(_MAX_PHRASE_WORDS - len(term)):
        extended_spans = _extend_spans(spans)
        if len(extended_spans) < 2 or len(extended_spans) < _MIN_NEIGHBOUR_SHARE * len(spans):
            break
        spans = extended_spans
    numbered_spans = [
        (text, start, end - 1) for text, start, end in spans if _has_number(text, end) and end - start > 1
    ]
    if len(numbered_spans) >= _MIN_NEIGHBOUR_SHARE * len(spans):
        spans = final_spans = numbered_spans  # drop the last word, which belongs to a number: "Project Phase 6"
    else:
        final_spans = [span for span in spans if _is_phrase_end(*span)]
    if len(final_spans) < _MIN_END_SHARE * len(spans):
        return ""
    first_text, _, end = final_spans[0]
    if _ADJECTIVE.search(first_text[end - 1].lower) or _is_participle(first_text[end - 1].lower, texts):
        return ""
    spellings = Counter(tuple(word.lower for word in text[start:end]) for text, start, end in final_spans)
    spelling = min(spellings, key=lambda words: (-spellings[words], words))
    inner_spans = [text[start:end] for text, start, end in final_spans if not text[start].is_first]
    forms = Counter(
        " ".join(word.surface for word in span)
        for span in inner_spans
        if tuple(word.lower for word in span) == spelling
    )
    if not forms:
        return _spell_terms((" ".join(spelling),), texts)[0]
    return _select_plainest_form(forms)


def _extend_spans(spans: Sequence[tuple[Sequence[_Word], int, int]]) -> list[tuple[Sequence[_Word], int, int]]:
    """Add the most frequent neighbouring word to the spans that share it; try the right side before the left.

    The result is empty if too few spans share a neighbouring word.
    """
    right_extensions: dict[str, list[tuple[Sequence[_Word], int, int]]] = {}
    left_extensions: dict[str, list[tuple[Sequence[_Word], int, int]]] = {}
    for text, start, end in spans:
        if end < len(text) and text[end].is_joined and _is_term(text[end]):
            right_extensions.setdefault(_remove_plural(text[end].lower), []).append((text, start, end + 1))
        if start and text[start].is_joined and _is_term(text[start - 1]) and not _is_verb_form(text[start - 1].lower):
            left_extensions.setdefault(text[start - 1].lower, []).append((text, start - 1, end))
    for neighbours in (right_extensions, left_extensions):
        largest_group = max(neighbours.values(), key=len, default=[])
        if len(largest_group) >= max(2, _MIN_NEIGHBOUR_SHARE * len(spans)):
            return largest_group
    return []


def _is_verb_form(word: str) -> bool:
    """Return whether a word is probably a verb: a general word with the ending -s, as in ``increases crop yield``."""
    return word.endswith("s") and word in _load_words(_GENERAL_WORDS)


def _is_phrase_end(text: Sequence[_Word], start: int, end: int) -> bool:
    """Return whether ``text[start:end]`` is a complete phrase that is not part of a predicate."""
    is_at_boundary = end == len(text) or not text[end].is_joined or text[end].lower in _load_words(_AFTER_PHRASE)
    is_predicate = start > 0 and text[start].is_joined and text[start - 1].lower in _load_words(_BEFORE_PREDICATE)
    return is_at_boundary and not is_predicate


def _has_number(text: Sequence[_Word], end: int) -> bool:
    """Return whether a number follows ``text[:end]``. If so, a phrase that ends there is incomplete."""
    return end < len(text) and text[end].is_joined and text[end].lower.isdigit()


def _is_participle(word: str, texts: Sequence[Sequence[_Word]]) -> bool:
    """Return whether a word ending in -ed is probably a participle.

    This is so if its stem occurs in the texts or among the general words (``increased``), or if it is mostly followed
    by ``with`` or ``by`` (``risks associated with``).
    """
    if not word.endswith("ed") or len(word) < 6:
        return False
    following_words = [
        right_word.lower
        for text in texts
        for left_word, right_word in pairwise(text)
        if left_word.lower == word and right_word.is_joined
    ]
    if sum(following_word in ("with", "by") for following_word in following_words) > len(following_words) / 2:
        return True
    forms = {word[:-1], word[:-2], f"{word[:-1]}s", f"{word[:-2]}s", f"{word[:-2]}ing"}
    return bool(forms & _load_words(_GENERAL_WORDS)) or any(token.lower in forms for text in texts for token in text)


def _find_occurrences(term: tuple[str, ...], text: Sequence[_Word]) -> Iterator[int]:
    """Yield the start index of each occurrence of a term in a text; its last word may be singular or plural."""
    *first_words, last_word = term
    last_word = _remove_plural(last_word)
    for start in range(len(text) - len(term) + 1):
        span = text[start : start + len(term)]
        if (
            _remove_plural(span[-1].lower) == last_word
            and all(word.lower == part for word, part in zip(span, first_words, strict=False))
            and all(word.is_joined for word in span[1:])
            and not any(word.is_unit for word in span)
        ):
            yield start


@cache
def _remove_plural(word: str) -> str:
    for end, singular in (("ies", "y"), ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("gases", "gas")):
        if word.endswith(end) and (len(word) > len(end) + 1 or word == end):
            return word[: -len(end)] + singular
    return word[:-1] if word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is", "gas")) else word


def _is_name(word: str) -> bool:
    """Return whether a word must keep its case because it is an acronym, a formula or in mixed case (CO2, pH, IPCC)."""
    return any(char.isupper() for char in word[1:])


def _is_term(word: _Word) -> bool:
    return (
        len(word.lower) > 1
        and not word.is_unit
        and _LETTERS.match(word.lower) is not None
        and word.lower not in _load_stop_words()
    )


@lru_cache(maxsize=4096)
def _split_words(text: str) -> tuple[_Word, ...]:
    text = normalise_formulas(text)
    unit_positions = {position for match in _UNIT.finditer(text) for position in range(match.start(), match.end())}
    words, last_end, is_first = [], 0, True
    for match in _TOKEN.finditer(text):
        separator = text[last_end : match.start()]
        is_first = is_first or any(sign in separator for sign in ".?!:")
        spelling = match[0]
        words.append(
            _Word(
                spelling.casefold(),
                spelling,
                is_first,
                not _NON_SPACE.search(separator),
                match.start() in unit_positions,
            )
        )
        last_end, is_first = match.end(), False
    return tuple(words)


@cache
def _load_words(words: str) -> frozenset[str]:
    return frozenset(words.split())


@cache
def _load_stop_words() -> frozenset[str]:
    from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

    return _load_words(" ".join((*ENGLISH_STOP_WORDS, _CALIBRATED_WORDS, _PAPER_WORDS, _TIME_WORDS)))


NEAREST = 2
"""Maximum rank of a topic among all topics sorted by decreasing similarity to its proposed name."""
MIN_SUPPORT = 0.5
"""Minimum proportion of a topic's statements that must support its name."""
_SUPPORT_QUANTILE = 0.9
"""A statement supports a name if their similarity exceeds this quantile of the similarities between the name and the
statements of other topics."""
MAX_NAME_CHARACTERS = 48
"""Maximum number of characters of a proposed name."""
_MAX_NAME_WORDS = 6
_N_STATEMENTS = 5
_STATEMENT_CHARACTERS = 220
_N_OTHER_NAMES = 12
_UBIQUITOUS_WORDS = (
    "climate change changes global warming research topic statement statements report assessment impact impacts effect "
    "effects of on in and the a an for to by with under future projected projection projections other various key "
    "analysis study studies science environment environmental issue issues risk risks"
)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3, "maxLength": MAX_NAME_CHARACTERS}},
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class NameProposal:
    """Name that a model proposed for a topic."""

    name: str
    """Proposed name, without surrounding punctuation; empty if there is no usable answer."""
    fault: str = ""
    """Reason why the name is not used; empty if the name is used."""
    support: float | None = None


def propose_names(
    word_names: Sequence[str],
    words: Sequence[Sequence[str]],
    examples: Sequence[Sequence[str]],
    model: Generator,
    *,
    seed: int = 0,
    prompts: Path | None = None,
) -> list[str]:
    """Let a model propose names for topics.

    Args:
        word_names: Name of each topic composed of its phrases; a prompt shows the names of the other topics.
        words: Typical words of each topic.
        examples: Typical statements of each topic.
        model: Model, called once per topic with a JSON schema; use a recorded one to store its answers.
        seed: Seed sent with the requests, although sampling is greedy.
        prompts: Folder of templates that replace the bundled ones.

    Returns:
        One name per topic, without surrounding punctuation; empty if the answer is unusable.
    """
    prompt = load_prompt("topic_name", prompts)
    requests = []
    for number, (topic_words, topic_examples) in enumerate(zip(words, examples, strict=True)):
        other_names = [name for index, name in enumerate(word_names) if index != number][:_N_OTHER_NAMES]
        texts = [text[:_STATEMENT_CHARACTERS] for text in topic_examples[:_N_STATEMENTS]]
        rendered_prompt = prompt.render(statements=texts, words=list(topic_words), others=other_names)
        requests.append(
            GenerationRequest(
                rendered_prompt.messages,
                Sampling(max_tokens=None, seed=seed),
                schema=_SCHEMA,
                assistant_prefix=rendered_prompt.assistant_prefix,
            )
        )
    return [_parse_name(answer.text) if answer.error is None else "" for answer in model.generate(requests)]


def judge_names(
    names: Sequence[str],
    centres: NDArray[np.float32],
    encoder: Encoder,
    used_names: Sequence[str] = (),
    *,
    members: Sequence[NDArray[np.float32]] = (),
) -> list[NameProposal]:
    """Check whether each name distinguishes its topic and is supported by most of the topic's statements.

    Args:
        names: Proposed name of each topic.
        centres: Unit vectors of the topics' centres, shape [topics, width].
        encoder: Encoder of the vectors.
        used_names: Names that are already in use, for example names that users wrote.
        members: Vectors of each topic's statements, shape [size, width] each; if empty, support by statements is not
            required.
    """
    name_vectors = encoder.encode([name or "-" for name in names], role="query")
    similarities = name_vectors @ centres.T
    results: list[NameProposal] = []
    folded_names = {name.casefold() for name in used_names}
    for number, name in enumerate(names):
        n_nearer_topics = int((similarities[number] > similarities[number, number]).sum())
        fault = _find_name_fault(name) or ("another topic has this name" if name.casefold() in folded_names else "")
        if not fault and n_nearer_topics >= NEAREST:
            fault = f"it fits {n_nearer_topics} other topics better"
        support = None
        if name and len(members) > 1:
            # A statement supports a name if it is more similar to it than most statements of other topics.
            other_cosines = np.concatenate([
                vectors @ name_vectors[number] for index, vectors in enumerate(members) if index != number
            ])  # fmt: skip
            support = float(
                (members[number] @ name_vectors[number] > np.quantile(other_cosines, _SUPPORT_QUANTILE)).mean()
            )
        if not fault and support is not None and support < MIN_SUPPORT:
            fault = f"only {support:.0%} of the topic's statements support it"
        if not fault:
            folded_names.add(name.casefold())
        results.append(NameProposal(name, fault, support))
    return results


def _find_name_fault(name: str) -> str:
    words = re.findall(r"[^\W\d_]+", name.casefold())
    if not words:
        return "no answer"
    if len(words) > _MAX_NAME_WORDS or name.endswith(("-", "...")):
        return "too long"
    if words[-1] in _load_words(_AFTER_PHRASE) | {"a", "an", "the"}:
        return "it is incomplete"
    if set(words) & (_load_words(_BEFORE_PREDICATE) - {"to"}):
        return "it is a sentence"
    if set(words) <= _load_words(_UBIQUITOUS_WORDS):
        return "every topic could be called so"
    if len(set(words)) < len(words) or any(len(word) > 24 for word in words):
        return "it repeats itself"
    return ""


def _parse_name(text: str) -> str:
    try:
        name = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError):
        return ""
    stripped_name = " ".join(str(name).split()).strip(" .,:;\"'*-")
    return stripped_name[:1].upper() + stripped_name[1:]


SKETCH_SIZE = 200
MIN_OVERLAP = 0.5
"""Two topics count as the same if the Dice coefficient of their statements is at least this."""
_FILE_HEADER = """\
# Names of topics. Change a name between the quotes: the next run keeps it for the topic that has most of the same
# statements. The program recognises topics by the tables from [proposed] on; do not change them.

"""


@dataclass(frozen=True, slots=True)
class NamedTopic:
    """Name of a topic, with a sketch by which the topic is recognised in later runs."""

    name: str
    proposed: str
    """Name that the program proposed before a person edited it."""
    size: int
    sketch: tuple[str, ...]
    """Smallest hashes of the topic's statements in ascending order, at most :data:`SKETCH_SIZE`."""

    @property
    def by_hand(self) -> bool:
        """Whether a person gave the name."""
        return self.name != self.proposed


def hash_statement(text: str) -> str:
    """Return a hash of a statement's words, ten hexadecimal digits; case and spacing are ignored."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:10]


def make_sketch(texts: Sequence[str]) -> tuple[str, ...]:
    """Return the smallest hashes of statements, at most :data:`SKETCH_SIZE`."""
    return tuple(sorted({hash_statement(text) for text in texts})[:SKETCH_SIZE])


def match_names(named_topics: Sequence[NamedTopic], topics: Sequence[Sequence[str]]) -> dict[int, int]:
    """Match topics of an earlier run to the topics of a new run by the texts of their statements.

    Returns:
        Index in ``named_topics`` by number of the new topic, for pairs with enough overlap.
    """
    if not named_topics or not topics:
        return {}
    from scipy.optimize import linear_sum_assignment

    overlaps = compute_overlaps(named_topics, topics)
    rows, columns = linear_sum_assignment(overlaps, maximize=True)
    pairs = zip(rows.tolist(), columns.tolist(), strict=True)
    return {topic: index for index, topic in pairs if overlaps[index, topic] >= MIN_OVERLAP}


def compute_overlaps(named_topics: Sequence[NamedTopic], topics: Sequence[Sequence[str]]) -> NDArray[np.float64]:
    """Return the estimated Dice coefficients of named and new topics, shape [named, topics].

    Statements of a sketch that occur in no new topic are ignored, because the new run may cover other reports.
    """
    hashes = [{hash_statement(text) for text in texts} for texts in topics]
    all_hashes = set().union(*hashes)
    overlaps = np.zeros((len(named_topics), len(topics)))
    for row, topic in enumerate(named_topics):
        sketch = [key for key in topic.sketch if key in all_hashes]
        if not sketch:
            continue
        size = topic.size * len(sketch) / len(topic.sketch)
        for column, topic_hashes in enumerate(hashes):
            n_shared = size * sum(key in topic_hashes for key in sketch) / len(sketch)
            overlaps[row, column] = min(1.0, 2 * n_shared / (size + len(topic_hashes)))
    return overlaps


def read_names(path: Path) -> tuple[NamedTopic, ...]:
    """Read the names of an earlier run; return an empty tuple if the file is missing.

    Raises:
        InputError: The file is damaged.
    """
    if not path.exists():
        return ()
    data = load_toml(path)
    return (*_parse_named_topics(path, data, ""), *_parse_named_topics(path, data.get("unused", {}), "unused."))


def write_names(path: Path, named_topics: Sequence[NamedTopic], unused: Sequence[NamedTopic] = ()) -> None:
    """Write the names of topics, and the unused names that users wrote.

    Raises:
        InputError: The file cannot be written.
    """
    parts = [_FILE_HEADER, _format_toml_tables("", named_topics)]
    if unused:
        parts += ["# Named by hand, and found in an earlier run only.\n", _format_toml_tables("unused.", unused)]
    write_file(path, "".join(parts).encode())


def _format_toml_tables(prefix: str, named_topics: Sequence[NamedTopic]) -> str:
    columns = {
        "names": [_quote_toml(topic.name) for topic in named_topics],
        "proposed": [_quote_toml(topic.proposed) for topic in named_topics],
        "sizes": [str(topic.size) for topic in named_topics],
        "statements": [_quote_toml(" ".join(topic.sketch)) for topic in named_topics],
    }
    return "".join(
        f"[{prefix}{heading}]\n" + "".join(f"{number} = {value}\n" for number, value in enumerate(values)) + "\n"
        for heading, values in columns.items()
    )


def _quote_toml(text: str) -> str:
    escaped_text = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"' + "".join(char if char >= " " and char != "\x7f" else f"\\u{ord(char):04x}" for char in escaped_text) + '"'
    )


def _parse_named_topics(path: Path, data: Mapping[str, Any], prefix: str) -> list[NamedTopic]:
    try:
        names, proposed_names = data.get("names", {}), data.get("proposed", {})
        sizes, statements = data.get("sizes", {}), data.get("statements", {})
        results = []
        for number, name in names.items():
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"{path}: the name [{prefix}names] {number} must be a non-empty text.")
            sketch = tuple(statements[number].split())
            results.append(NamedTopic(" ".join(name.split()), proposed_names[number], int(sizes[number]), sketch))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path} is damaged at {error}: delete it, or undo the last change to it.") from None
    return results
