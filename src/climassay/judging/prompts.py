"""From items to requests: the prompts of each method, filled in."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.judging.items import Item
from climassay.judging.quality import Quality
from climassay.models.contract import OptionRequest
from climassay.prompts import Prompt, load_prompt

IntArray = NDArray[np.int64]


@dataclass(frozen=True)
class Questions:
    """The templates of one quality."""

    quality: Quality
    overrides: Path | None = None
    """Folder of the user's own templates."""

    def direct(self, items: Sequence[Item]) -> list[OptionRequest]:
        """Rate each item by itself; the options are the quality's scale, low to high."""
        prompt = self.prompt("direct")
        return [self._alone(prompt, item, self.quality.scale) for item in items]

    def point(self, items: Sequence[Item]) -> list[OptionRequest]:
        """Ask of each item whether it has the quality; the one option is yes."""
        prompt = self.prompt("point")
        return [self._alone(prompt, item, (" Yes",)) for item in items]

    def pairs(self, items: Sequence[Item], pairs: IntArray) -> list[OptionRequest]:
        """PairS: which of A and B has more of the quality (Liu et al. 2024; thesis, A.1); ``pairs`` [pairs, 2]."""
        return self._compared(self.prompt("pairs"), items, pairs, (" A", " B"))

    def contrast(self, items: Sequence[Item], pairs: IntArray) -> list[OptionRequest]:
        """PPairS: the answer is made to end in 1 or in 2 (thesis, appendices A.1, B.2, C.3); ``pairs`` [pairs, 2]."""
        return self._compared(self.prompt("contrast"), items, pairs, (" 1", " 2"))

    def prompt(self, method: str) -> Prompt:
        """The template of a method.

        Raises:
            InputError: The folder of overrides does not exist.
        """
        return load_prompt(self.quality.template(method), self.overrides)  # type: ignore[arg-type]

    def _alone(self, prompt: Prompt, item: Item, options: tuple[str, ...]) -> OptionRequest:
        rendered = prompt.render(first=item, context=item.context, **self.quality.values())
        return OptionRequest(rendered.messages, options, rendered.assistant_prefix)

    def _compared(
        self, prompt: Prompt, items: Sequence[Item], pairs: IntArray, options: tuple[str, ...]
    ) -> list[OptionRequest]:
        requests = []
        for first, second in ((items[i], items[j]) for i, j in pairs.tolist()):
            if self.quality.shares_context and first.context != second.context:
                raise InputError(
                    f"The items {first.id!r} and {second.id!r} have different source texts, so they cannot be compared "
                    "for this quality: name the column that tells which items belong together with --group."
                )
            rendered = prompt.render(first=first, second=second, context=first.context, **self.quality.values())
            requests.append(OptionRequest(rendered.messages, options, rendered.assistant_prefix))
        return requests


def both_ways(pairs: IntArray) -> IntArray:
    """Unordered pairs [pairs, 2] in both orders, [2 pairs, 2]: all of them, then all mirrored."""
    return np.concatenate([pairs, pairs[:, ::-1]])
