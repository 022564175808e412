"""Taggers: from a statement to probabilities of the levels of confidence that a report would give it."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from climassay.confidence.statement import Statement
from climassay.confidence.tagging.items import TaggingItem
from climassay.confidence.tagging.linear import KINDS, LevelModel
from climassay.confidence.tagging.measures import reweighted
from climassay.confidence.tagging.reading import (
    Readers,
    Source,
    Vocabulary,
    check_sources,
    needs_encoder,
    needs_model,
    read_block,
)
from climassay.confidence.vocabulary import TAGS, Tag
from climassay.errors import InputError
from climassay.learning.model_file import ModelFormat, checked_array
from climassay.models.contract import Encoder, Generator, OpenWeights

FloatArray = NDArray[np.float64]
Taggable: TypeAlias = "Statement | TaggingItem | tuple[str, str] | str"
"""A statement; a text; or a text and its context. Tags in them are taken out before they are read."""

FORMAT = ModelFormat("climassay-confidence-tagger", 1, "confidence tagger", "climassay confidence tag train")
BUNDLED_TAGGER = Path(__file__).with_name("tagger.safetensors")
"""The tagger that comes with climassay; see docs/results/confidence.md."""


class Tagger(Protocol):
    """Anything that tags statements."""

    @property
    def levels(self) -> tuple[Tag, ...]:
        """The levels it can give, from the lowest."""

    def probabilities(
        self, items: Sequence[Taggable], *, on_progress: Callable[[int], None] | None = None
    ) -> FloatArray:
        """Probabilities of the levels, shape [items, levels], rows sum to 1."""

    def tag(self, items: Sequence[Taggable]) -> list[Tag]:
        """The most probable level of each statement."""


@dataclass(frozen=True, slots=True)
class TaggerCard:
    """Where a tagger comes from and how far it can be trusted."""

    data: str
    """Name of the training data."""
    data_sha256: str
    licence: str
    """Of the training data and of what was learned from it, in words."""
    statements: int
    """Trained on."""
    shares: tuple[float, ...]
    """Of the levels among them."""
    measured: tuple[tuple[str, float], ...] = ()
    """On statements not trained on, of sections not trained on: ``accuracy``, ``mix_accuracy`` (ClimateX's test mix),
    ``balanced_accuracy`` and so on, each also with ``_low`` and ``_high``; ``n``."""
    confusion: tuple[tuple[float, ...], ...] = ()
    """Of the same: counts by true level (rows) and answer (columns), with probabilities for equal shares of the levels;
    with ``tagger.for_mix((1, 1, 1, 1))`` it serves
    :func:`~climassay.confidence.tagging.quantification.estimate_shares`."""
    residuals: tuple[tuple[float, ...], ...] = ()
    """True shares less mean probabilities in documents not trained on, for
    :func:`~climassay.confidence.tagging.quantification.estimate_shares` (with probabilities of the natural mix)."""
    regularisation: float = 1.0
    seed: int = 0

    @property
    def figures(self) -> dict[str, float]:
        """What was measured, by name."""
        return dict(self.measured)


@dataclass(frozen=True, slots=True, eq=False)
class TaggerPart:
    """One regression on some sources."""

    sources: tuple[Source, ...]
    model: LevelModel


@dataclass(frozen=True, slots=True)
class Origins:
    """Models that a tagger reads; empty names where it needs none."""

    encoder: str = ""
    encoder_fingerprint: str = ""
    model: str = ""
    model_fingerprint: str = ""
    dtype: str = ""
    layer: int = 0


@dataclass(frozen=True, eq=False)
class LinearTagger:
    """Regressions on what statements and their contexts say; of several, the geometric mean of their probabilities.

    Attributes:
        parts: The regressions.
        levels: What they give probabilities of, from the lowest.
        vocabularies: n-grams, by the source that counts them.
        origins: The models it reads.
        card: Where it comes from.
        mix: Levels' shares for which probabilities are given; None: those of its training data.
        readers: The models themselves; loaded by their names where they are not given.
    """

    parts: tuple[TaggerPart, ...]
    levels: tuple[Tag, ...]
    vocabularies: dict[Source, Vocabulary]
    origins: Origins
    card: TaggerCard
    mix: tuple[float, ...] | None = None
    readers: Readers | None = None

    @property
    def sources(self) -> tuple[Source, ...]:
        """All that it reads, each once."""
        return tuple(dict.fromkeys(source for part in self.parts for source in part.sources))

    def for_mix(self, mix: Sequence[float] | None) -> "LinearTagger":
        """The same for another mix of levels, for example ``(1, 1, 1, 1)`` where none is more frequent than others.

        Raises:
            InputError: Not one share a level.
        """
        if mix is not None and (len(mix) != len(self.levels) or min(mix) < 0 or not sum(mix)):
            raise InputError(f"A mix needs {len(self.levels)} shares that are not negative ({', '.join(self.levels)}).")
        return replace(self, mix=None if mix is None else tuple(mix))

    def with_readers(self, encoder: Encoder | None = None, model: Generator | None = None) -> "LinearTagger":
        """The same with models that are loaded already.

        Raises:
            InputError: They are not those that it was trained on.
        """
        for kind, given, wanted in (
            ("encoder", encoder, self.origins.encoder_fingerprint),
            ("model", model, self.origins.model_fingerprint),
        ):
            if given is not None and wanted and given.fingerprint != wanted:
                raise InputError(
                    f"This tagger was trained on another {kind} than {given.name} ({given.fingerprint[:12]} instead of "
                    f"{wanted[:12]}): use that one, or train a tagger on this one."
                )
        if model is not None and not isinstance(model, OpenWeights):
            raise InputError("A tagger reads hidden states: give it a local: model, itself and not wrapped.")
        return replace(self, readers=Readers(encoder, model, self.origins.layer))

    def probabilities(
        self, items: Sequence[Taggable], *, on_progress: Callable[[int], None] | None = None
    ) -> FloatArray:
        """See :class:`Tagger`; shape [items, levels].

        Raises:
            InputError: A statement has no words.
        """
        read = [TaggingItem.of(item) for item in items]
        empty = next((place for place, item in enumerate(read) if not any(map(str.isalpha, item.text))), None)
        if empty is not None:
            raise InputError(f"Statement {empty + 1} has no words to be tagged by.")
        if not read:
            return np.zeros((0, len(self.levels)))
        blocks = {
            source: read_block(source, read, self._readers, self.vocabularies.get(source), on_progress)
            for source in self.sources
        }
        found = pooled([part.model.probabilities([blocks[source] for source in part.sources]) for part in self.parts])
        return found if self.mix is None else reweighted(found, self.card.shares, self.mix)

    def tag(self, items: Sequence[Taggable]) -> list[Tag]:
        """See :class:`Tagger`."""
        return [self.levels[place] for place in self.probabilities(items).argmax(axis=1)] if len(items) else []

    @cached_property
    def _readers(self) -> Readers:
        """What was given, and what is missing of it, loaded."""
        given = self.readers or Readers(layer=self.origins.layer)
        encoder, model = given.encoder, given.model
        if encoder is None and needs_encoder(self.sources):
            from climassay.models.encoder import load_encoder

            encoder = load_encoder(self.origins.encoder)
        if model is None and needs_model(self.sources):
            from climassay.models.local.model import LocalModel

            model = LocalModel(self.origins.model, dtype=self.origins.dtype or None)
        checked = self.with_readers(encoder, model).readers
        assert checked is not None
        return checked


@dataclass(frozen=True, slots=True)
class ConstantTagger:
    """Gives every statement the shares of the levels; what any other tagger has to beat."""

    levels: tuple[Tag, ...]
    shares: tuple[float, ...]

    def probabilities(
        self,
        items: Sequence[Taggable],
        *,
        on_progress: Callable[[int], None] | None = None,  # noqa: ARG002 - part of the protocol
    ) -> FloatArray:
        """See :class:`Tagger`; shape [items, levels], the same row for each."""
        return np.tile(np.array(self.shares, dtype=np.float64), (len(items), 1))

    def tag(self, items: Sequence[Taggable]) -> list[Tag]:
        """See :class:`Tagger`."""
        return [self.levels[int(np.argmax(self.shares))]] * len(items)


def pooled(probabilities: Sequence[FloatArray]) -> FloatArray:
    """Geometric mean of several probabilities [n, levels], normalised."""
    mean = np.mean([np.log(np.maximum(one, 1e-12)) for one in probabilities], axis=0)
    powers = np.exp(mean - mean.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def save_tagger(tagger: LinearTagger, path: Path) -> None:
    """Write a tagger as one safetensors file, everything but the arrays as JSON in its header; replaced at once, whole.

    Raises:
        InputError: The file cannot be written.
        MissingExtraError: safetensors is not installed.
    """
    arrays: dict[str, FloatArray] = {}
    for number, part in enumerate(tagger.parts):
        arrays[f"weights{number}"], arrays[f"bias{number}"] = part.model.weights, part.model.bias
    for source, vocabulary in tagger.vocabularies.items():
        arrays[f"{source} weights"] = np.array(vocabulary.weights)
    facts = {
        "levels": list(tagger.levels),
        "parts": [{"sources": list(part.sources), "kind": part.model.kind} for part in tagger.parts],
        "vocabularies": {
            source: {"terms": "\n".join(vocabulary.terms), "longest": vocabulary.longest}
            for source, vocabulary in tagger.vocabularies.items()
        },
        "origins": asdict(tagger.origins),
        "card": asdict(tagger.card),
        "mix": tagger.mix,
    }
    FORMAT.save(path, arrays, facts)


def load_tagger(path: Path = BUNDLED_TAGGER) -> LinearTagger:
    """Read a tagger exactly as it was saved; the bundled one by default.

    Raises:
        InputError: The file is missing, damaged, no tagger, or written by a newer climassay.
        MissingExtraError: safetensors is not installed.
    """
    return FORMAT.load(path, _build)


def _build(facts: dict[str, Any], arrays: dict[str, FloatArray]) -> LinearTagger:
    levels = tuple(facts["levels"])
    if len(levels) < 2 or [level for level in TAGS if level in levels] != list(levels):
        raise ValueError("its levels are others")
    vocabularies: dict[Source, Vocabulary] = {}
    for source, held in facts["vocabularies"].items():
        terms = tuple(held["terms"].split("\n"))
        weights = checked_array("vocabulary", arrays[f"{source} weights"], (len(terms),))
        vocabularies[check_sources([source])[0]] = Vocabulary(terms, tuple(weights.tolist()), int(held["longest"]))
    parts = tuple(_part(held, number, arrays, len(levels)) for number, held in enumerate(facts["parts"]))
    card = dict(facts["card"])
    card["shares"] = tuple(card["shares"])
    card["measured"] = tuple((name, float(value)) for name, value in card["measured"])
    card["confusion"] = tuple(tuple(row) for row in card["confusion"])
    card["residuals"] = tuple(tuple(row) for row in card.get("residuals", ()))
    if len(card["shares"]) != len(levels) or not parts or min(card["shares"]) <= 0:
        raise ValueError("its shares or parts are not what they can be")
    mix = None if facts["mix"] is None else tuple(facts["mix"])
    return LinearTagger(parts, levels, vocabularies, Origins(**facts["origins"]), TaggerCard(**card), mix)


def _part(held: dict[str, Any], number: int, arrays: dict[str, FloatArray], levels: int) -> TaggerPart:
    if held["kind"] not in KINDS:
        raise ValueError(f"a part is {held['kind']!r}")
    columns, biases = (levels, levels) if held["kind"] == "nominal" else (1, levels - 1)
    weights = checked_array("weights", arrays[f"weights{number}"], (None, columns))
    bias = checked_array("bias", arrays[f"bias{number}"], (biases,))
    return TaggerPart(check_sources(held["sources"]), LevelModel(held["kind"], weights, bias))
