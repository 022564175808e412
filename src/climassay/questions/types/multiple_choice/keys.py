"""Matching of a file's answer key with options by label, by text or by both; ambiguous keys are rejected."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from climassay.claim_identity import claim_key
from climassay.errors import InputError
from climassay.questions.types import LETTERS

_LABEL = re.compile(r"\s*(?:\(\s*([A-Za-z]|\d{1,2})\s*\)|([A-Za-z]|\d{1,2})\s*(?:\)|[.:](?=\s)))\s*(?=\S)")
_BRACKETS_AND_PUNCTUATION = "()[]{}.: \t"
_BEFORE_LABEL = re.compile(r"(?:option|choice|answer)[\s_-]*(?=\w{1,2}\Z)")
_LOOKALIKE_LETTERS = str.maketrans("АСΑΒΕ", "ACABE")
"""Latin letter for each Cyrillic and Greek capital that looks like it, except those that are labels of another option
in their own alphabet, such as the third Cyrillic letter В."""


class LabelledOptions(NamedTuple):
    """Texts of options with the labels by which an answer key can name them."""

    texts: tuple[str, ...]
    labels: tuple[str, ...]
    """Labels in the order of the options: the letters from ``a``, or other labels from a file such as ``1``, ``2``."""


def strip_labels(options: Sequence[str], *, ordered: bool = True) -> LabelledOptions:
    """Separate options from the labels before them.

    Labels are recognised only if all options have one and the labels are consecutive from A or 1.

    Args:
        options: Texts, for example ``("A. oxygen", "B. nitrogen")``.
        ordered: Whether the labels must be in ascending order; otherwise the options may be shuffled.
    """
    matches = [_LABEL.match(option) for option in options]
    labels = [(match[1] or match[2]).lower() for match in matches if match is not None]
    sorted_labels = labels if ordered else sorted(labels, key=lambda label: (len(label), label))
    possible_labels = (list(LETTERS[: len(options)]), [str(number) for number in range(1, len(options) + 1)])
    if not labels or sorted_labels not in possible_labels:
        return LabelledOptions(tuple(options), tuple(LETTERS[: len(options)]))
    texts = tuple(option[match.end() :] for option, match in zip(options, matches, strict=True) if match is not None)
    return LabelledOptions(texts, tuple(labels))


def find_option(key: str, options: LabelledOptions) -> int:
    """Return the index of the option that an answer key names.

    Args:
        key: Label, text, or both: ``B``, ``(b)``, ``Option B``, ``nitrogen`` or ``b) nitrogen``. Case, and characters
            that look alike, matter only if options differ in nothing else.
        options: Options with their labels.

    Raises:
        InputError: The key names no option or several. The message is phrased to follow the number of a row.
    """
    indices = find_named_options(key, options)
    if len(indices) == 1:
        return indices.pop()
    if len({options.texts[index] for index in indices}) == 1:
        raise InputError(f"the answer {key!r} is the text of {len(indices)} options")
    if indices:
        label = options.labels[next(index for index in indices if options.labels[index] == _strip_marks(key))]
        raise InputError(
            f"the answer {key!r} could be the option labelled {label} or the one whose text it is: write the text "
            "in 'answer' and the letter in 'correct'"
        )
    hint = " (an index from 0 belongs into a column 'answer_index')" if key.strip().isdecimal() else ""
    raise InputError(f"the answer {key!r} does not name any of the {len(options.texts)} options{hint}")


def find_named_options(key: str, options: LabelledOptions) -> set[int]:
    """Return the indices of all options that an answer key could name.

    Raises:
        InputError: The key consists of the label of one option and another text.
    """
    indices = {index for index, text in enumerate(options.texts) if text == key.strip()} or _match_texts(key, options)
    if (label := _strip_marks(key)) in options.labels:
        indices.add(options.labels.index(label))
    match = _LABEL.match(key)
    if not indices and match is not None and (label := (match[1] or match[2]).lower()) in options.labels:
        index = options.labels.index(label)
        if index not in _match_texts(key[match.end() :], options):
            raise InputError(f"the answer {key!r} has the label of an option and not its text {options.texts[index]!r}")
        indices = {index}
    return indices


def _fold_lookalikes(text: str) -> str:
    plain_text = unicodedata.normalize("NFKC", text).translate(_LOOKALIKE_LETTERS)
    return "".join(char for char in plain_text if unicodedata.category(char) != "Cf")


def _strip_marks(key: str) -> str:
    return _BEFORE_LABEL.sub("", _fold_lookalikes(key).strip(_BRACKETS_AND_PUNCTUATION).lower())


def _match_texts(key: str, options: LabelledOptions) -> set[int]:
    """Return the index of the option whose text matches a key, as a set; empty if there is none.

    Case, look-alike characters and a final full stop are ignored. If several options match, only an option whose text
    is identical with the key counts.
    """
    folded_key = _fold_text(key)
    matches = {index for index, text in enumerate(options.texts) if _fold_text(text) == folded_key}
    exact_matches = {index for index in matches if options.texts[index] == key.strip()}
    return exact_matches or (matches if len(matches) == 1 else set())


def _fold_text(text: str) -> str:
    return claim_key(text.casefold()).rstrip(".")
