"""Texts to judge, preferences between them, and the prompts for requesting preferences from a model.

Preferences are computed on first use; every unordered pair is compared once.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from climassay.errors import InputError
from climassay.learning.linear import logistic
from climassay.models.contract import OptionRequest
from climassay.prompts import Prompt, load_prompt


@dataclass(frozen=True, slots=True)
class Item:
    """Text to be judged."""

    id: str
    """Identifier, unique among the items."""
    text: str
    context: str = ""
    """Source of a summary, or the sentences around a statement."""
    group: str = ""
    """Name of the item's group; empty if all items form one group. Items are compared within groups, and a group is
    never split over folds."""
    label: float | None = None
    """Rating by an expert, higher is better; None if there is no rating."""


def by_group(groups: Sequence[str], members: Iterable[int]) -> dict[str, list[int]]:
    """Group item indices by the name of their group, keeping the order; ``groups`` has a name per item."""
    results: dict[str, list[int]] = {}
    for index in members:
        results.setdefault(groups[index], []).append(int(index))
    return results


def word_counts(items: Sequence[Item]) -> list[int]:
    """Return the number of words of each item, at least 1."""
    return [max(1, len(item.text.split())) for item in items]


FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Progress = Callable[[int], None]
Ask: TypeAlias = Callable[[IntArray], FloatArray]
"""Function that maps pairs of item indices (i, j), shape [pairs, 2], to natural log-odds that i has more of the
quality, shape [pairs]."""

MAX_LOG_ODDS = 1e4
"""Maximum absolute log-odds in nats; larger values are clipped to keep sums of log-likelihoods finite."""

CERTAIN_LOG_ODDS = 13.8
"""Log-odds assigned to a preference without a probability; they correspond to an error rate of one in a million."""


@dataclass(frozen=True, slots=True)
class Judgements:
    """Judgements of pairs by a method."""

    log_odds: FloatArray
    """Natural log-odds that the first item has more of the quality, shape [pairs]; 0 if the comparison failed."""
    failed: NDArray[np.bool_]
    """Whether the model gave no answer in at least one order, shape [pairs]."""

    @property
    def probabilities(self) -> FloatArray:
        """Probability that the first item has more of the quality, shape [pairs]."""
        return logistic(self.log_odds)


class Method(Protocol):
    """Interface of judges: direct scoring, PairS, zero-shot contrast, and contrast and pointwise probes."""

    @property
    def name(self) -> str:
        """Short name for tables."""

    def compare(self, items: Sequence[Item], pairs: IntArray, *, on_progress: Progress | None = None) -> Judgements:
        """Compare pairs of item indices [pairs, 2]; ``on_progress`` is called with the number of new answers."""


class Comparisons:
    """Log-odds between the items 0 to n - 1, requested on first use and then cached.

    Preferences are antisymmetric, log_odds(i, j) = -log_odds(j, i), so that one request determines both orders of a
    pair.

    Attributes:
        n: Number of items.
        batches: Number of calls of ``ask`` so far.
    """

    def __init__(self, ask: Ask, n: int) -> None:
        """Create an empty cache; ``ask`` is called with each unordered pair at most once."""
        if n < 0:
            raise InputError(f"The number of items cannot be negative, got {n}.")
        self.n = n
        self.batches = 0
        self._ask = ask
        # By key min * n + max: memory grows with what was asked, not with n squared.
        self._log_odds: dict[int, float] = {}

    @property
    def n_pairs(self) -> int:
        """Number of distinct unordered pairs compared so far."""
        return len(self._log_odds)

    def compared_pairs(self) -> tuple[IntArray, FloatArray]:
        """Return all compared pairs, shape [pairs, 2] with i < j, and their log-odds in nats, shape [pairs]."""
        return self._pairs(list(self._log_odds)), np.array(list(self._log_odds.values()), dtype=np.float64)

    def look_up(self, pairs: ArrayLike) -> FloatArray:
        """Return the log-odds of pairs. Pairs that are not cached in any order are requested in one batch.

        Args:
            pairs: Integers, shape [pairs, 2]; a pair may occur several times and in both orders.

        Returns:
            Natural log-odds that the first item of each pair has more of the quality, shape [pairs].

        Raises:
            InputError: A pair is out of range or compares an item with itself, or an answer is missing or NaN.
        """
        pair_array = np.asarray(pairs, dtype=np.int64).reshape(-1, 2)
        if not len(pair_array):
            return np.empty(0)
        first_indices, second_indices = pair_array[:, 0], pair_array[:, 1]
        low_items, high_items = (np.minimum(first_indices, second_indices), np.maximum(first_indices, second_indices))
        if low_items.min() < 0 or high_items.max() >= self.n:
            raise InputError(
                f"Comparisons are between items 0 to {self.n - 1}, got {low_items.min()} to {high_items.max()}."
            )
        if (low_items == high_items).any():
            raise InputError(
                f"Item {low_items[low_items == high_items][0]} cannot be compared with itself; leave that pair out."
            )
        keys = (low_items * self.n + high_items).tolist()
        self._request(keys)
        values = np.array([self._log_odds[key] for key in keys], dtype=np.float64)
        np.negative(values, where=first_indices > second_indices, out=values)
        return values

    def _pairs(self, keys: list[int]) -> IntArray:
        return np.stack(np.divmod(np.array(keys, dtype=np.int64), max(self.n, 1)), axis=1)

    def _request(self, keys: list[int]) -> None:
        """Request all keys that are not cached, in one batch and in order of first appearance, and cache them."""
        new_keys = list(dict.fromkeys(key for key in keys if key not in self._log_odds))
        if not new_keys:
            return
        self.batches += 1
        log_odds = np.asarray(self._ask(self._pairs(new_keys)), dtype=np.float64)
        if log_odds.shape != (len(new_keys),):
            raise InputError(
                f"{len(new_keys)} comparisons need as many log-odds, got an array of shape {log_odds.shape}."
            )
        if np.isnan(log_odds).any():
            raise InputError(
                f"{np.isnan(log_odds).sum()} of {len(new_keys)} comparisons gave no number; "
                "use a method that answers every pair or leave the items out."
            )
        log_odds = np.minimum(np.maximum(log_odds, -MAX_LOG_ODDS), MAX_LOG_ODDS)
        self._log_odds.update(zip(new_keys, log_odds.tolist(), strict=True))


class Preferences(Comparisons):
    """Preferences of a judge between items, computed on first use; no pair is compared twice.

    ``Preferences(method, items).ask`` is the function that :func:`climassay.judging.sort_items` takes.
    """

    def __init__(self, method: Method, items: Sequence[Item], *, on_progress: Progress | None = None) -> None:
        super().__init__(self._compare, len(items))
        self._method = method
        self._items = items
        self._on_progress = on_progress
        self._failed_pairs: set[tuple[int, int]] = set()

    @property
    def failed(self) -> int:
        """Number of compared unordered pairs for which the judge gave no answer."""
        return len(self._failed_pairs)

    def ask(self, pairs: IntArray) -> FloatArray:
        """Return log-odds that the first item of each pair [pairs, 2] has more of the quality; 0 for failures."""
        return self.look_up(pairs)

    def judge(self, pairs: IntArray) -> Judgements:
        """Return judgements of pairs [pairs, 2], including whether each comparison failed."""
        log_odds = self.ask(pairs)
        failed = [(min(i, j), max(i, j)) in self._failed_pairs for i, j in pairs.tolist()]
        return Judgements(log_odds, np.array(failed, dtype=bool))

    def matrix(self) -> FloatArray:
        """Compare all pairs; return probabilities [items, items] that item i has more of the quality than item j."""
        upper_pairs = np.stack(np.triu_indices(self.n, k=1), axis=1)
        probabilities = self.judge(upper_pairs).probabilities
        matrix = np.full((self.n, self.n), 0.5)
        matrix[upper_pairs[:, 0], upper_pairs[:, 1]] = probabilities
        matrix[upper_pairs[:, 1], upper_pairs[:, 0]] = 1 - probabilities
        return matrix

    def _compare(self, pairs: IntArray) -> FloatArray:
        result = self._method.compare(self._items, pairs, on_progress=self._on_progress)
        self._failed_pairs.update(map(tuple, pairs[result.failed].tolist()))
        return result.log_odds


QualityKind = Literal["text", "claims", "confidence", "own"]
WORDINGS = (1, 2, 3)
"""Numbers of the alternative wordings of each template, used to report how results vary with wording."""

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
_ACCURACY_DEFINITION = (
    "A claim is accurate if the facts support it, misleading if it is imprecise or leaves out what one must know, and "
    "inaccurate if the facts contradict it, its reasoning is flawed or nothing supports it."
)
_CONFIDENCE_DEFINITION = (
    "Confidence expresses how sure the authors are that a statement is right, from the evidence behind it and from how "
    "far that evidence agrees. It shows in the words of the statement and of the text around it."
)
_CLAIM_SCALE = (" inaccurate", " misleading", " accurate")
_CONFIDENCE_SCALE = (" very low", " low", " medium", " high", " very high")
_FIVE_POINT_SCALE = (" 1", " 2", " 3", " 4", " 5")


@dataclass(frozen=True, slots=True)
class Quality:
    """Quality by which texts are compared, such as coherence or accuracy."""

    kind: QualityKind
    """Family of prompt templates."""
    name: str
    """Name of the quality, a noun such as ``relevance``."""
    adjective: str
    definition: str
    """Definition in one or two sentences; the contrast prompts of PPairS omit it."""
    scale: tuple[str, ...] = _FIVE_POINT_SCALE
    """Possible answers of direct scoring, low to high."""
    noun: str = "summary"
    noun_plural: str = "summaries"
    source: str = "article"
    """Noun for the context of an item of kind ``text``, such as ``article``."""
    wording: int = 1

    @property
    def shares_context(self) -> bool:
        """Whether only items with the same context are compared."""
        return self.kind in ("text", "own")

    def template(self, method: Literal["direct", "pairs", "contrast", "point"]) -> str:
        """Return the name of the prompt template that a method uses for this quality."""
        return f"judge_{self.kind}_{method}"

    def values(self) -> dict[str, Any]:
        """Return the values for the placeholders of the templates, except the values of the items."""
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
    """Return a quality by name.

    Args:
        kind: ``text`` (an aspect of texts written from a source), ``claims`` (factual accuracy), ``confidence``
            (expressed by statements in their contexts) or ``own``.
        aspect: For ``text``: coherence, consistency, fluency, relevance or informativeness.
        sentence: For ``own``: the quality in one sentence.
        noun: For ``text``: noun for the items.
        source: For ``text``: noun for the context of the items.
        wording: Number of the wording of the templates: 1, 2 or 3.

    Raises:
        InputError: The aspect is unknown, the sentence is missing, or the wording does not exist.
    """
    if wording not in WORDINGS:
        raise InputError(f"There is no wording {wording}: the templates come in wordings 1, 2 and 3.")
    if sentence or kind == "own":
        if not sentence.strip():
            raise InputError('A quality of your own needs a sentence: --quality "names the physical mechanism".')
        return Quality("own", aspect or "quality", "", sentence.strip(), wording=wording)
    if kind == "claims":
        return Quality(
            "claims", "accuracy", "accurate", _ACCURACY_DEFINITION, _CLAIM_SCALE, "claim", "claims", wording=wording
        )
    if kind == "confidence":
        return Quality(
            "confidence",
            "confidence",
            "confident",
            _CONFIDENCE_DEFINITION,
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
    """Return the names of the aspects that a quality of kind ``text`` may have."""
    return tuple(_ASPECTS)


@dataclass(frozen=True)
class QualityRequests:
    """Requests to a model for one quality, made from prompt templates; pairs of items have the shape [pairs, 2]."""

    quality: Quality
    overrides: Path | None = None
    """Folder of the user's own templates."""

    def direct(self, items: Sequence[Item]) -> list[OptionRequest]:
        """Return requests to rate each item on its own; the options are the quality's scale, from low to high."""
        return self._make_item_requests("direct", items, self.quality.scale)

    def point(self, items: Sequence[Item]) -> list[OptionRequest]:
        """Return a request per item that asks whether it has the quality; its only option is ``Yes``.

        The model's hidden state after this answer represents the item.
        """
        return self._make_item_requests("point", items, (" Yes",))

    def pairs(self, items: Sequence[Item], pairs: IntArray) -> list[OptionRequest]:
        """Return PairS requests for pairs [pairs, 2] of items, answered by A or B (Liu et al. 2024; Maiya 2024)."""
        return self._make_pair_requests("pairs", items, pairs, (" A", " B"))

    def contrast(self, items: Sequence[Item], pairs: IntArray) -> list[OptionRequest]:
        """Return PPairS requests for pairs [pairs, 2] of items, answered by 1 or 2 (Maiya 2024, A.1, B.2, C.3)."""
        return self._make_pair_requests("contrast", items, pairs, (" 1", " 2"))

    def prompt(self, method: str) -> Prompt:
        """Load the template of a method.

        Raises:
            InputError: The folder of overrides does not exist.
        """
        return load_prompt(self.quality.template(method), self.overrides)  # type: ignore[arg-type]

    def _make_item_requests(self, method: str, items: Sequence[Item], options: tuple[str, ...]) -> list[OptionRequest]:
        prompt, values = self.prompt(method), self.quality.values()
        rendered_prompts = [prompt.render(first=item, context=item.context, **values) for item in items]
        return [OptionRequest(chat.messages, options, chat.assistant_prefix) for chat in rendered_prompts]

    def _make_pair_requests(
        self, method: str, items: Sequence[Item], pairs: IntArray, options: tuple[str, ...]
    ) -> list[OptionRequest]:
        prompt, values, requests = self.prompt(method), self.quality.values(), []
        for first, second in ((items[i], items[j]) for i, j in pairs.tolist()):
            if self.quality.shares_context and first.context != second.context:
                raise InputError(
                    f"The items {first.id!r} and {second.id!r} have different source texts, so they cannot be compared "
                    "for this quality: name the column that says which items belong together with --group."
                )
            rendered_prompt = prompt.render(first=first, second=second, context=first.context, **values)
            requests.append(OptionRequest(rendered_prompt.messages, options, rendered_prompt.assistant_prefix))
        return requests


def with_mirrors(pairs: IntArray) -> IntArray:
    """Return unordered pairs [pairs, 2] followed by the same pairs in reverse order, shape [2 * pairs, 2]."""
    return np.concatenate([pairs, pairs[:, ::-1]])
