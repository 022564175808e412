"""What is compared, and the prompts of each method, filled in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from climassay.errors import InputError
from climassay.judging.items import Item
from climassay.judging.preferences import IntArray
from climassay.models.contract import OptionRequest
from climassay.prompts import Prompt, load_prompt

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
                    "for this quality: name the column that tells which items belong together with --group."
                )
            rendered = prompt.render(first=first, second=second, context=first.context, **values)
            requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
        return requests


def both_ways(pairs: IntArray) -> IntArray:
    """Unordered pairs [pairs, 2] in both orders, [2 pairs, 2]: all of them, then all mirrored."""
    return np.concatenate([pairs, pairs[:, ::-1]])
