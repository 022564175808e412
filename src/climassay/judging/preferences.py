"""The texts that are judged, the preferences between them, asked for lazily, and the prompts that ask for these.

Every pair is asked for once, in whichever direction it comes.
"""

import html
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.io import listed_names, parse_rows, read_bytes
from climassay.models.contract import OptionRequest
from climassay.prompts import Prompt, load_prompt

_TAG = re.compile(r"</?(?:p|br|div|span|b|i|em|strong|a|li|ul|ol|h[1-6]|blockquote)\b[^<>]*>", re.IGNORECASE)
_SPACES = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Item:
    """One text to be judged."""

    id: str
    """Unique among the items."""
    text: str
    context: str = ""
    """What the text is judged against: the source of a summary, or the sentences around a statement."""
    group: str = ""
    """Items are compared within their group only, and folds never cut a group; empty: all items form one."""
    label: float | None = None
    """The expert's rating, more is better; None where nobody labelled the item."""


@dataclass(frozen=True, slots=True)
class ItemColumns:
    """Which columns of a table hold what."""

    text: str = "text"
    id: str | None = None
    """None: items are numbered from 1."""
    context: str | None = None
    group: str | None = None
    label: str | None = None
    levels: tuple[tuple[str, ...], ...] = ()
    """Labels that are words, from low to high; several words may share a level. Rows with other words are left out."""
    label_optional: bool = False
    """Keep rows whose label is missing or none of the levels, as items without a label."""


@dataclass(frozen=True, slots=True)
class ItemTable:
    """Items read from a file, and what was left out."""

    items: tuple[Item, ...]
    skipped: tuple[str, ...]
    """Why rows were left out, one sentence each."""
    levels: tuple[str, ...] = ()
    """Names of the ordered labels, low to high, where labels are words; an item's label is an index into them."""
    file: str = ""
    """The file, as it was named."""


def parse_levels(text: str) -> tuple[tuple[str, ...], ...]:
    """Read ordered labels as the command line takes them.

    Args:
        text: Levels from low to high between commas, words of one level between bars:
            ``inaccurate|incorrect,misleading,accurate|correct``.

    Raises:
        InputError: Fewer than two levels, or a word in two of them.
    """
    levels = tuple(tuple(word.strip() for word in level.split("|") if word.strip()) for level in text.split(","))
    words = [word for level in levels for word in level]
    if len(levels) < 2 or not all(levels):
        raise InputError(f"{text!r} are not ordered labels: write low,medium,high (synonyms as low|poor,high|good).")
    if len(set(words)) < len(words):
        raise InputError(f"The labels {text!r} contain a word twice.")
    return levels


def read_items(file: str | Path, columns: ItemColumns, *, context_words: int | None = None) -> ItemTable:
    """Read items from CSV, TSV, JSON, JSON lines or Parquet, also gzipped.

    HTML tags and entities, which news corpora carry, are removed and white space is made single.

    Args:
        file: The table.
        columns: Which columns to use.
        context_words: Keep only so many words of each context.

    Raises:
        InputError: The file cannot be read, a column does not exist, an identifier appears twice, or nothing is left.
    """
    path = Path(file)
    rows = list(parse_rows(path, read_bytes(path)))
    if not rows:
        raise InputError(f"{path} holds no rows.")
    known = list(dict.fromkeys(name for row in rows[:50] for name in row))
    for name in (columns.text, columns.id, columns.context, columns.group, columns.label):
        if name is not None and name not in known:
            raise InputError(f"{path} has no column {name!r}: it has {listed_names(known)}.")
    names = [level[0] for level in columns.levels]
    items: list[Item] = []
    skipped: list[str] = []
    contexts: dict[str, str] = {}
    scales: dict[str, str] = {}
    for number, row in enumerate(rows, start=1):
        text = clean_text(_cell(row, columns.text))
        if not text:
            skipped.append(f"row {number}: the column {columns.text!r} is empty")
            continue
        try:
            label = _label(row, columns, scales)
        except ValueError as error:
            if not columns.label_optional:
                skipped.append(f"row {number}: {error}")
                continue
            label = None
        raw = _cell(row, columns.context)
        if raw not in contexts:  # a source text is repeated for every one of its summaries
            contexts[raw] = " ".join(clean_text(raw).split(" ")[:context_words])
        group = _cell(row, columns.group).strip()
        if columns.group is not None and not group:  # else all such rows would be compared as one group
            skipped.append(f"row {number}: the column {columns.group!r} is empty")
            continue
        own = _cell(row, columns.id)
        # Numbers that start anew in every group are usual; the group makes them unique.
        key = f"{group}/{own}" if own and group else own or str(number)
        items.append(Item(key, text, contexts[raw], group, label))
    if not items:
        raise InputError(f"{path} holds no usable item{f': {skipped[0]}' if skipped else ''}.")
    twice = next((one for one, count in Counter(item.id for item in items).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{path} has the item {twice!r} twice: choose another column for --item.")
    return ItemTable(tuple(items), tuple(skipped), tuple(names), str(file))


def clean_text(text: str) -> str:
    """Text without HTML tags and entities, white space made single."""
    if "<" in text or "&" in text:
        text = html.unescape(_TAG.sub(" ", text))
    return _SPACES.sub(" ", text).strip()


def by_group(groups: Sequence[str], members: Iterable[int]) -> dict[str, list[int]]:
    """Indices of items by their group, in the order given."""
    results: dict[str, list[int]] = {}
    for index in members:
        results.setdefault(groups[index], []).append(int(index))
    return results


def word_counts(items: Sequence[Item]) -> list[int]:
    """Number of words of each item, at least 1."""
    return [max(1, len(item.text.split())) for item in items]


def _cell(row: Mapping[str, Any], column: str | None) -> str:
    value = None if column is None else row.get(column)
    # Parquet files made with pandas have NaN where a text is missing.
    missing = value is None or (isinstance(value, float) and math.isnan(value))
    return "" if missing else str(value)


def _label(row: Mapping[str, Any], columns: ItemColumns, scales: dict[str, str]) -> float | None:
    """Return the label of a row: a number, or the index of its level.

    Args:
        row: A row of the table.
        columns: Which columns to use.
        scales: Filled with the scale of the column's first number, which all others must have.

    Raises:
        ValueError: The label is missing, no number, on another scale, or none of the levels; the message is a clause.
    """
    if columns.label is None:
        return None
    cell = _cell(row, columns.label).strip()
    if not cell:
        raise ValueError(f"the column {columns.label!r} is empty")
    value, scale = parse_rating(cell)
    if columns.levels:
        folded = cell.casefold()
        for matches in (
            lambda word: word == cell,
            lambda word: word.casefold() == folded,
            lambda word: value is not None and parse_rating(word) == (value, scale),  # 1.0 and 1 are one label
        ):
            places = [place for place, words in enumerate(columns.levels) if any(map(matches, words))]
            if len(places) == 1:
                return float(places[0])
        raise ValueError(f"the label {cell!r} is not one of the levels")
    if value is None:
        raise ValueError(f"the label {cell!r} is not a number (labels that are words: name them with --levels)")
    if not math.isfinite(value):
        raise ValueError(f"the label {cell!r} is not a finite number")
    if scales.setdefault("scale", scale) != scale:
        raise ValueError(f"the label {cell!r} is on another scale than the labels before it")
    return value


_RATING = re.compile(
    r"(?P<number>[-+]?(?:\d+[.,]\d+|[.,]?\d+\.?)(?:e[-+]?\d+)?)\s*(?P<scale>%|(?:/|\bof\b)\s*\d+)?", re.I
)
_THOUSANDS = re.compile(r"[-+]?[1-9]\d{0,2},\d{3}")


def parse_rating(text: str) -> tuple[float | None, str]:
    """Return the number of a rating and its scale; None if it is no number.

    A decimal comma, the sign U+2212, a per cent sign and a largest rating behind a slash are understood. ``1,000``
    could be either of two numbers and is none.

    Example:
        ``"4/5"`` gives (4.0, "/5"), ``"80 %"`` gives (80.0, "%"), ``"4,5"`` gives (4.5, "").
    """
    plain = unicodedata.normalize("NFKC", text).replace("\u2212", "-").strip()
    match = _RATING.fullmatch(plain)
    if match is None or _THOUSANDS.fullmatch(match["number"]):
        try:
            return float(plain), ""  # inf and nan
        except ValueError:
            return None, ""
    scale = re.sub(r"\s+|of", lambda part: "/" if part[0].lower() == "of" else "", match["scale"] or "", flags=re.I)
    return float(match["number"].replace(",", ".")), scale


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[int], None]
Ask: TypeAlias = Callable[[IntArray], FloatArray]
"""Item indices (i, j), shape [pairs, 2], to natural log-odds, shape [pairs], that i has more of the quality than j."""

LARGEST_LOG_ODDS = 1e4
"""In nats; a certain answer (infinite log-odds) is cut here so that sums of log-likelihoods stay finite."""

CERTAIN = 13.8
"""Log-odds of a preference that a method gives as 0 or 1: one in a million, so that sums stay finite."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """What a method says of some pairs."""

    log_odds: FloatArray
    """[pairs]; natural log-odds that the first item has more of the quality; 0 where the comparison failed."""
    failed: NDArray[np.bool_]
    """[pairs]; whether the model gave no answer, in either order."""

    @property
    def probabilities(self) -> FloatArray:
        """[pairs]; that the first item has more of the quality."""
        return np.asarray(0.5 + 0.5 * np.tanh(self.log_odds / 2))


class Method(Protocol):
    """Anything that compares items: direct scoring, PairS, zero-shot contrast, a contrast or a pointwise probe."""

    @property
    def name(self) -> str:
        """Short, for tables."""

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare items by pairs of their indices, shape [pairs, 2]; progress counts the requests answered."""


class Comparisons:
    """Log-odds between the items 0 to n - 1, asked for when first needed and then remembered.

    A preference is antisymmetric, log_odds(i, j) = -log_odds(j, i), so one answer serves both directions.

    Attributes:
        n: Number of items.
        batches: Calls of ``ask`` so far.
    """

    def __init__(self, ask: Ask, n: int) -> None:
        """Remember nothing yet; ``ask`` is called with pairs that are not known, each unordered pair once."""
        if n < 0:
            raise InputError(f"The number of items cannot be negative, got {n}.")
        self.n = n
        self.batches = 0
        self._ask = ask
        # By key min * n + max: memory grows with what was asked, not with n squared.
        self._known: dict[int, float] = {}

    @property
    def asked(self) -> int:
        """Distinct unordered pairs asked about so far."""
        return len(self._known)

    def known(self) -> tuple[IntArray, FloatArray]:
        """Return all pairs asked about, shape [asked, 2] with i < j, and their log-odds in nats, shape [asked]."""
        return self._pairs(list(self._known)), np.array(list(self._known.values()), dtype=np.float64)

    def look_up(self, pairs: ArrayLike) -> FloatArray:
        """Give the log-odds of pairs, asking in one batch about those that are not known in either direction.

        Args:
            pairs: Integers, shape [pairs, 2]; a pair may occur several times and in both directions.

        Returns:
            Natural log-odds that the first of each pair has more of the quality, shape [pairs].

        Raises:
            InputError: A pair is out of range or compares an item with itself, or an answer is missing or NaN.
        """
        wanted = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if not len(wanted):
            return np.empty(0)
        first, second = wanted[:, 0], wanted[:, 1]
        low, high = np.minimum(first, second), np.maximum(first, second)
        if low.min() < 0 or high.max() >= self.n:
            raise InputError(f"Comparisons are between items 0 to {self.n - 1}, got {low.min()} to {high.max()}.")
        if (low == high).any():
            raise InputError(f"Item {low[low == high][0]} cannot be compared with itself; leave that pair out.")
        keys = (low * self.n + high).tolist()
        self._learn(keys)
        values = np.array([self._known[key] for key in keys], dtype=np.float64)
        np.negative(values, where=first > second, out=values)
        return values

    def _pairs(self, keys: list[int]) -> IntArray:
        return np.stack(np.divmod(np.array(keys, dtype=np.int64), max(self.n, 1)), axis=1)

    def _learn(self, keys: list[int]) -> None:
        """Ask about those of the keys that are not known, in one batch and in the order of their first mention."""
        new = list(dict.fromkeys(key for key in keys if key not in self._known))
        if not new:
            return
        self.batches += 1
        answers = np.asarray(self._ask(self._pairs(new)), dtype=np.float64)
        if answers.shape != (len(new),):
            raise InputError(f"{len(new)} comparisons need as many log-odds, got an array of shape {answers.shape}.")
        if np.isnan(answers).any():
            raise InputError(
                f"{np.isnan(answers).sum()} of {len(new)} comparisons gave no number; "
                "use a method that answers every pair or leave the items out."
            )
        answers = np.minimum(np.maximum(answers, -LARGEST_LOG_ODDS), LARGEST_LOG_ODDS)
        self._known.update(zip(new, answers.tolist(), strict=True))


class Preferences(Comparisons):
    """A lazy preference function over some items; what is known is never asked again.

    ``Preferences(method, items).ask`` is what :func:`climassay.judging.sort_items` takes.
    """

    def __init__(self, method: Method, items: Sequence[Item], *, on_progress: Progress | None = None) -> None:
        super().__init__(self._compare, len(items))
        self._method = method
        self._items = items
        self._on_progress = on_progress
        self._lost: set[tuple[int, int]] = set()

    @property
    def failed(self) -> int:
        """Number of the unordered pairs compared so far that the model gave no answer to."""
        return len(self._lost)

    def ask(self, pairs: IntArray) -> FloatArray:
        """Log-odds that the first item of each pair [pairs, 2] has more of the quality; 0 where it failed."""
        return self.look_up(pairs)

    def judge(self, pairs: IntArray) -> Judgements:
        """As :meth:`ask`, for pairs of shape [pairs, 2], with the failures marked."""
        log_odds = self.ask(pairs)
        lost = [(min(i, j), max(i, j)) in self._lost for i, j in pairs.tolist()]
        return Judgements(log_odds, np.array(lost, dtype=bool))

    def matrix(self) -> FloatArray:
        """All preferences [items, items]: P[i, j] that item i has more of the quality than j; .5 on the diagonal."""
        above = np.stack(np.triu_indices(self.n, k=1), axis=1)
        probabilities = self.judge(above).probabilities
        matrix = np.full((self.n, self.n), 0.5)
        matrix[above[:, 0], above[:, 1]] = probabilities
        matrix[above[:, 1], above[:, 0]] = 1 - probabilities
        return matrix

    def _compare(self, pairs: IntArray) -> FloatArray:
        result = self._method.compare(self._items, pairs, on_progress=self._on_progress)
        self._lost.update(map(tuple, pairs[result.failed].tolist()))
        return result.log_odds


QualityKind = Literal["text", "claims", "confidence", "own"]
WORDINGS = (1, 2, 3)
"""Every template comes in three wordings, so that the spread over them can be reported."""

_ASPECTS = {
    "coherence": (
        "coherent",
        "A coherent {noun} is well organised: its sentences follow from one another and build one whole.",
    ),
    "consistency": (
        "consistent",
        "A consistent {noun} keeps to the {source}: it says what the {source} says in facts and tone, and adds no "
        "error, contradiction or distortion.",
    ),
    "fluency": (
        "fluent",
        "A fluent {noun} reads well: its grammar, spelling and punctuation are right and no sentence is broken.",
    ),
    "relevance": (
        "relevant",
        "A relevant {noun} gives the main points of the {source}, in its terms, leaves no important one out and adds "
        "nothing that is beside the point or not in the {source}.",
    ),
    "informativeness": (
        "informative",
        "An informative {noun} lets the reader know what the {source} reports, with its key facts and details.",
    ),
}
_CLAIMS = (
    "A claim is accurate if the facts support it, misleading if it is imprecise or leaves out what one must know, and "
    "inaccurate if the facts contradict it, its reasoning is flawed or nothing supports it."
)
_CONFIDENCE = (
    "Confidence expresses how sure the authors are that a statement is right, from the evidence behind it and from how "
    "far that evidence agrees. It shows in the words of the statement and of the text around it."
)
_CLAIM_SCALE = (" inaccurate", " misleading", " accurate")
_CONFIDENCE_SCALE = (" very low", " low", " medium", " high", " very high")
_FIVE = (" 1", " 2", " 3", " 4", " 5")


@dataclass(frozen=True, slots=True)
class Quality:
    """The quality F of which one text may have more than another."""

    kind: QualityKind
    """Which family of templates asks for it."""
    name: str
    """Noun, for example ``relevance``."""
    adjective: str
    definition: str
    """One or two sentences; the contrast prompts of PPairS do without."""
    scale: tuple[str, ...] = _FIVE
    """Answers of direct scoring, low to high."""
    noun: str = "summary"
    noun_plural: str = "summaries"
    source: str = "article"
    """What the context of ``text`` items is called."""
    wording: int = 1

    @property
    def shares_context(self) -> bool:
        """Whether one context belongs to both items of a comparison."""
        return self.kind in ("text", "own")

    def template(self, method: Literal["direct", "pairs", "contrast", "point"]) -> str:
        """Name of the template that asks for this quality."""
        return f"judge_{self.kind}_{method}"

    def values(self) -> dict[str, Any]:
        """What the templates are filled with beside the items."""
        return {
            "aspect": self.name,
            "adjective": self.adjective,
            "definition": self.definition,
            "noun": self.noun,
            "noun_plural": self.noun_plural,
            "source": self.source,
            "wording": self.wording,
        }


def quality(
    kind: QualityKind = "text",
    aspect: str = "",
    *,
    sentence: str = "",
    noun: str = "summary",
    source: str = "article",
    wording: int = 1,
) -> Quality:
    """A quality by name.

    Args:
        kind: ``text`` (an aspect of texts written from a source), ``claims`` (factual accuracy), ``confidence``
            (expressed by statements in their contexts) or ``own``.
        aspect: For ``text``: coherence, consistency, fluency, relevance or informativeness.
        sentence: For ``own``: the quality in one sentence.
        noun: What ``text`` items are called.
        source: What their context is called.
        wording: 1, 2 or 3.

    Raises:
        InputError: The aspect is unknown, the sentence is missing, or there is no such wording.
    """
    if wording not in WORDINGS:
        raise InputError(f"There is no wording {wording}: the templates come in wordings 1, 2 and 3.")
    if sentence or kind == "own":
        if not sentence.strip():
            raise InputError('A quality of your own needs a sentence: --quality "names the physical mechanism".')
        return Quality("own", aspect or "quality", "", sentence.strip(), wording=wording)
    if kind == "claims":
        return Quality("claims", "accuracy", "accurate", _CLAIMS, _CLAIM_SCALE, "claim", "claims", wording=wording)
    if kind == "confidence":
        return Quality(
            "confidence",
            "confidence",
            "confident",
            _CONFIDENCE,
            _CONFIDENCE_SCALE,
            "statement",
            "statements",
            wording=wording,
        )
    if aspect not in _ASPECTS:
        raise InputError(
            f"There is no aspect {aspect!r}: there are {', '.join(_ASPECTS)}; describe another one with --quality."
        )
    adjective, definition = _ASPECTS[aspect]
    plural = noun + ("es" if noun.endswith(("s", "x", "z", "ch", "sh")) else "s")
    if noun.endswith("y") and noun[-2:-1] not in set("aeiou"):
        plural = noun[:-1] + "ies"
    return Quality(
        "text",
        aspect,
        adjective,
        definition.format(noun=noun, source=source),
        noun=noun,
        noun_plural=plural,
        source=source,
        wording=wording,
    )


def aspect_names() -> tuple[str, ...]:
    """Aspects of ``text`` that have a definition."""
    return tuple(_ASPECTS)


@dataclass(frozen=True)
class Questions:
    """The templates of one quality; pairs of items have the shape [pairs, 2]."""

    quality: Quality
    overrides: Path | None = None
    """Folder of the user's own templates."""

    def direct(self, items: Sequence[Item]) -> list[OptionRequest]:
        """Rate each item by itself; the options are the quality's scale, low to high."""
        return self._alone("direct", items, self.quality.scale)

    def point(self, items: Sequence[Item]) -> list[OptionRequest]:
        """Ask of each item whether it has the quality; the one option is yes."""
        return self._alone("point", items, (" Yes",))

    def pairs(self, items: Sequence[Item], pairs: IntArray) -> list[OptionRequest]:
        """PairS: which of A and B has more of the quality (Liu et al. 2024; thesis, A.1); ``pairs`` [pairs, 2]."""
        return self._compared("pairs", items, pairs, (" A", " B"))

    def contrast(self, items: Sequence[Item], pairs: IntArray) -> list[OptionRequest]:
        """PPairS: the answer is made to end in 1 or in 2 (thesis, appendices A.1, B.2, C.3); ``pairs`` [pairs, 2]."""
        return self._compared("contrast", items, pairs, (" 1", " 2"))

    def prompt(self, method: str) -> Prompt:
        """The template of a method.

        Raises:
            InputError: The folder of overrides does not exist.
        """
        return load_prompt(self.quality.template(method), self.overrides)  # type: ignore[arg-type]

    def _alone(self, method: str, items: Sequence[Item], options: tuple[str, ...]) -> list[OptionRequest]:
        prompt, values = self.prompt(method), self.quality.values()
        rendered = [prompt.render(first=item, context=item.context, **values) for item in items]
        return [OptionRequest(one.messages, options, one.assistant_prefix) for one in rendered]

    def _compared(
        self, method: str, items: Sequence[Item], pairs: IntArray, options: tuple[str, ...]
    ) -> list[OptionRequest]:
        prompt, values, requests = self.prompt(method), self.quality.values(), []
        for first, second in ((items[i], items[j]) for i, j in pairs.tolist()):
            if self.quality.shares_context and first.context != second.context:
                raise InputError(
                    f"The items {first.id!r} and {second.id!r} have different source texts, so they cannot be compared "
                    "for this quality: name the column that says which items belong together with --group."
                )
            rendered = prompt.render(first=first, second=second, context=first.context, **values)
            requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
        return requests


def both_ways(pairs: IntArray) -> IntArray:
    """Unordered pairs [pairs, 2] in both orders, [2 pairs, 2]: all of them, then all mirrored."""
    return np.concatenate([pairs, pairs[:, ::-1]])
