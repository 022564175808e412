"""Matching of a file's answer key with options by label, by text or by both; ambiguous keys are rejected."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from climassay.errors import InputError
from climassay.questions.types import LETTERS

_LABEL = re.compile(r"\s*(?:\(\s*([A-Za-z]|\d{1,2})\s*\)|([A-Za-z]|\d{1,2})\s*(?:\)|[.:](?=\s)))\s*(?=\S)")
_AROUND = "()[]{}.: \t"


class LabelledOptions(NamedTuple):
    """Texts of options with the labels that a key may use."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    """Letters in the order of the options unless a file has its own, for example ``("1", "2", "3")``."""


def without_labels(options: Sequence[str], *, ordered: bool = True) -> LabelledOptions:
    """Return options without the labels before them, if all have one and the labels are consecutive from A or 1.

    Args:
        options: Texts, for example ``("A. oxygen", "B. nitrogen")``.
        ordered: Require the labels in order. Otherwise they may be in any order, as of a writer who has shuffled.
    """
    matches = [_LABEL.match(option) for option in options]
    labels = [(match[1] or match[2]).lower() for match in matches if match is not None]
    sequence = labels if ordered else sorted(labels, key=lambda label: (len(label), label))
    consecutive = (list(LETTERS[: len(options)]), [str(number) for number in range(1, len(options) + 1)])
    if not labels or sequence not in consecutive:
        return LabelledOptions(tuple(options), tuple(LETTERS[: len(options)]))
    texts = tuple(option[match.end() :] for option, match in zip(options, matches, strict=True) if match is not None)
    return LabelledOptions(texts, tuple(labels))


def find_option(key: str, options: LabelledOptions) -> int:
    """Return the index of the option that a key names: ``B``, ``(b)``, ``b) nitrogen`` or ``nitrogen``.

    Case counts only if options differ in nothing else.

    Raises:
        InputError: The key names no option, or its label and its text name different ones; the message goes on after
            the row's number.
    """
    readings = named_options(key, options)
    if len(readings) == 1:
        return readings.pop()
    if readings:
        by_label = options.labels[next(index for index in readings if options.labels[index] == _label(key))]
        raise InputError(
            f"the answer {key!r} could be the option labelled {by_label} or the one whose text it is: write the text "
            "in 'answer' and the letter in 'correct'"
        )
    hint = " (an index from 0 belongs into a column 'answer_index')" if key.strip().isdecimal() else ""
    raise InputError(f"the answer {key!r} does not name any of the {len(options.texts)} options{hint}")


def named_options(key: str, options: LabelledOptions) -> set[int]:
    """Return the indices of all options that a key could name.

    Raises:
        InputError: The key has the label of one option and the text of another.
    """
    exact = {index for index, text in enumerate(options.texts) if text == key.strip()}
    readings = exact or _by_text(key, options)
    if (label := _label(key)) in options.labels:
        readings.add(options.labels.index(label))
    match = _LABEL.match(key)
    if not readings and match is not None and (label := (match[1] or match[2]).lower()) in options.labels:
        index = options.labels.index(label)
        if index not in _by_text(key[match.end() :], options):
            raise InputError(f"the answer {key!r} has the label of an option and not its text {options.texts[index]!r}")
        readings = {index}
    return readings


def _label(key: str) -> str:
    return key.strip(_AROUND).lower()


def _by_text(key: str, options: LabelledOptions) -> set[int]:
    """Return the option whose text a key is; none if several differ in case only and none is written as the key."""
    folded = [text.casefold() for text in options.texts]
    matches = {index for index, text in enumerate(folded) if text == key.strip().casefold()}
    exact = {index for index in matches if options.texts[index] == key.strip()}
    return exact or (matches if len(matches) == 1 else set())
