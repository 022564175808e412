"""Verdict scales: ordered labels, their definitions, and the mapping of fine scales to coarse ones."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from climassay.errors import InputError
from climassay.primer import VERDICTS
from climassay.settings import load_toml

NOT_ENOUGH = "not enough information"
"""Default label for a lack of information."""
_NOT_ENOUGH_MEANING = "can be neither confirmed nor refuted by the evidence"
_NEI_SPELLINGS = frozenset(
    {
        "nei",
        "notenoughinfo",
        "notenoughinformation",
        "notenoughevidence",
        "insufficientinfo",
        "insufficientinformation",
        "insufficientevidence",
    }
)
"""Spellings of a lack of information in files, as normalised by :func:`_normalise`."""


@dataclass(frozen=True, slots=True)
class Scale:
    """An ordered scale of verdicts."""

    name: str
    labels: tuple[str, ...]
    """Labels from wrong to right; the distance of two verdicts is the number of steps between them."""
    definitions: Mapping[str, str]
    """Definition of each label, a clause that completes "the claim ..."."""
    correct: frozenset[str]
    """Labels on the correct side of the scale; the others are on the incorrect side."""
    nei: str = NOT_ENOUGH
    """Label of "not enough information", which is not part of the order."""
    lack_labels: frozenset[str] = frozenset()
    """Labels that express a lack of information if the evidence is limited, such as ``unsupported``."""
    levels: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    """Coarser scales: class of each label, by number of classes."""
    finer_verdicts: Mapping[str, str] = field(default_factory=dict)
    """Label of each of the publisher's finer verdicts, which files may contain instead of labels."""

    def distance(self, first: str, second: str) -> int:
        """Return the number of steps between two labels on the scale.

        Raises:
            InputError: A label is not part of the order.
        """
        return abs(self.position(first) - self.position(second))

    def position(self, label: str) -> int:
        """Return the index of a label in the order, 0 for the most wrong.

        Raises:
            InputError: The label is not part of the order.
        """
        if label not in self.labels:
            raise InputError(f"{label!r} is not a verdict of the scale {self.name}: it has {', '.join(self.labels)}.")
        return self.labels.index(label)

    def is_correct(self, label: str) -> bool:
        """Return whether a label is on the correct side.

        Raises:
            InputError: The label is not part of the order.
        """
        self.position(label)
        return label in self.correct

    def meaning(self, label: str) -> str:
        """Return the definition of a label or "not enough information", a clause that completes "the claim ...".

        Raises:
            InputError: It is not a label of the scale.
        """
        if label == self.nei:
            return _NOT_ENOUGH_MEANING
        return self.definitions[self.labels[self.position(label)]]

    def match(self, text: str, count: int | None = None) -> str | None:
        """Return the class that a verdict in a file names; None if it names none.

        Labels match exactly, then ignoring case, then ignoring spaces, underscores and hyphens: ``Lacks Context``,
        ``lacks-context`` and ``LACKS_CONTEXT`` are equal. A text that matches two labels matches neither. "Not enough
        information" has several spellings (``NEI``, ``NOT_ENOUGH_INFO``). Names of coarser classes match, too, as do
        finer verdicts of the publisher (:attr:`finer_verdicts`). Verdicts of other built-in scales only match for the
        two classes ``incorrect`` and ``correct``, because no mapping of their finer steps has been measured.

        Args:
            text: Verdict, as spelled in the file.
            count: Number of classes, one of :attr:`class_counts`; all labels by default.

        Raises:
            InputError: The scale cannot be collapsed to this number of classes.
        """
        label = _only_match(text, (*self.labels, self.nei))
        if label is None and (verdict := _only_match(text, tuple(self.finer_verdicts))) is not None:
            label = self.finer_verdicts[verdict]
        if label is not None:
            return self.collapse(label, count)
        if _normalise(text) in _NEI_SPELLINGS:
            return self.nei
        names = self.classes(count)
        if (name := _only_match(text, names)) is not None or names != _SIDES:
            return name
        # Side of the verdict in the built-in scales with two sides; all scales that contain the verdict must agree.
        scales = [scale for scale in SCALES.values() if scale.class_counts[-1] == 2 and scale.classes(2) == _SIDES]
        sides = {scale.collapse(label, 2) for scale in scales if (label := _only_match(text, scale.labels)) is not None}
        return sides.pop() if len(sides) == 1 else None

    def comparable_counts(self, texts: Iterable[str]) -> tuple[int, ...]:
        """Return the class counts at which a file's verdicts can be compared on this scale, finest first.

        Raises:
            InputError: A verdict belongs neither to this scale nor to one that shares two classes with it.
        """
        result = self.class_counts
        for text in dict.fromkeys(texts):
            result = tuple(count for count in result if self.match(text, count) is not None)
            if not result:
                raise InputError(
                    f"The published verdict {text!r} is not of the scale {self.name}: it has "
                    f"{', '.join((*self.labels, self.nei))}. Name another scale with --scale."
                )
        return result

    @property
    def class_counts(self) -> tuple[int, ...]:
        """Numbers of classes to which the scale can be collapsed, finest first."""
        return (len(self.labels), *sorted(self.levels, reverse=True))

    def classes(self, count: int | None = None) -> tuple[str, ...]:
        """Return the names of the ``count`` classes of the collapsed scale, from wrong to right; all labels by default.

        Raises:
            InputError: The scale cannot be collapsed to this number of classes.
        """
        return tuple(dict.fromkeys(self.collapse(label, count) for label in self.labels))

    def collapse(self, label: str, count: int | None = None) -> str:
        """Return the class of a label if the scale is collapsed to ``count`` classes.

        A class name and "not enough information" are returned unchanged.

        Raises:
            InputError: ``label`` is not on this scale, or the scale cannot be collapsed to ``count`` classes.
        """
        if label == self.nei:
            return label
        if label not in self.labels and label in self.levels.get(count or 0, {}).values():
            return label
        self.position(label)
        if count is None or count == len(self.labels):
            return label
        if count not in self.levels:
            counts = ", ".join(map(str, self.class_counts))
            raise InputError(f"The scale {self.name} cannot be shown in {count} classes: it can be shown in {counts}.")
        return self.levels[count][label]


def _normalise(text: str) -> str:
    return re.sub(r"[\s_\-]+", "", text.casefold())


def _only_match(text: str, words: Sequence[str]) -> str | None:
    """Return the only word that matches a text: exactly, ignoring case, or ignoring spaces and hyphens; else None."""
    for normalise in (str.strip, lambda word: word.strip().casefold(), _normalise):
        results = [word for word in words if normalise(word) == normalise(text)]
        if len(results) == 1:
            return results[0]
    return None


_SIDES = ("incorrect", "correct")
"""Names of the two classes to which most scales can be collapsed."""


def _class_by_label(groups: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    return {label: name for name, labels in groups.items() for label in labels}


ACCURACY = Scale(
    "accuracy",
    ("false", "mostly false", "misleading", "mostly true", "true"),
    {
        "false": "is contradicted by the evidence",
        "mostly false": "has a part that is right, but what it mainly says is contradicted by the evidence",
        "misleading": "mixes right and wrong, or leaves out something without which it gives a wrong picture",
        "mostly true": "agrees with the evidence in what it mainly says, but a detail is wrong or imprecise",
        "true": "agrees with the evidence in everything that matters",
    },
    frozenset({"mostly true", "true"}),
    levels={
        2: _class_by_label({"incorrect": ("false", "mostly false", "misleading"), "correct": ("mostly true", "true")})
    },
)
"""Default scale, with five steps in everyday words."""

_INCORRECT_LABELS = (
    "incorrect",
    "inaccurate",
    "imprecise",
    "lacks context",
    "flawed reasoning",
    "misleading",
    "unsupported",
)
_CORRECT_LABELS = ("correct", "accurate", "correct but", "mostly accurate", "mostly correct")

CLIMATE_FEEDBACK = Scale(
    "climate-feedback",
    VERDICTS,
    {
        "incorrect": "is contradicted by the evidence",
        "inaccurate": "gets important facts or numbers wrong",
        "flawed reasoning": "draws a conclusion that does not follow",
        "lacks context": "leaves out facts that would change how it is understood",
        "misleading": "suggests a wrong conclusion, whatever its parts",
        "unsupported": "has no sufficient evidence behind it",
        "imprecise": "is too vague or too broad for the evidence",
        "correct but": "is right, with a reservation that must be said",
        "mostly correct": "is right but for details",
        "mostly accurate": "agrees with the evidence but for details",
        "accurate": "agrees with the evidence",
        "correct": "is fully confirmed by the evidence",
    },
    frozenset(_CORRECT_LABELS),
    lack_labels=frozenset({"unsupported"}),
    # Leippold et al. (2024), figure 3 and table 1: these groups reproduce the published figures exactly.
    levels={
        7: _class_by_label(
            {
                "incorrect": ("incorrect", "inaccurate"),
                "lacks context": ("lacks context", "flawed reasoning"),
                "misleading": ("misleading",),
                "unsupported": ("unsupported",),
                "imprecise": ("imprecise",),
                "mostly accurate": ("mostly accurate", "mostly correct", "correct but"),
                "correct": ("correct", "accurate"),
            }
        ),
        5: _class_by_label(
            {
                "incorrect": ("incorrect", "inaccurate", "imprecise"),
                "lacks context": ("lacks context", "flawed reasoning"),
                "misleading": ("misleading",),
                "unsupported": ("unsupported",),
                "correct": _CORRECT_LABELS,
            }
        ),
        2: _class_by_label({"incorrect": _INCORRECT_LABELS, "correct": _CORRECT_LABELS}),
    },
)
"""Twelve verdicts of Climate Feedback, with their published consolidation to 7, 5 and 2 classes."""

CLIMATE_FEVER = Scale(
    "climate-fever",
    ("REFUTES", "DISPUTED", "SUPPORTS"),
    {
        "REFUTES": "is refuted by the evidence",
        "DISPUTED": "is supported by some of the evidence and refuted by some",
        "SUPPORTS": "is supported by the evidence",
    },
    frozenset({"SUPPORTS"}),
    nei="NOT_ENOUGH_INFO",
)
"""Labels of Climate-FEVER (Diggelmann et al. 2020)."""

SCIENCE_FEEDBACK = Scale(
    "science-feedback",
    ("inaccurate", "misleading", "accurate"),
    {
        "inaccurate": "is contradicted by the evidence or rests on flawed reasoning or on nothing",
        "misleading": "is imprecise or leaves out what one must know",
        "accurate": "agrees with the evidence",
    },
    frozenset({"accurate"}),
    finer_verdicts=_class_by_label(
        {
            "inaccurate": ("incorrect", "flawed reasoning", "unsupported"),
            "misleading": ("lacks context", "imprecise"),
            "accurate": tuple(label for label in VERDICTS if label in _CORRECT_LABELS and label != "accurate"),
        }
    ),
    levels={2: _class_by_label({"incorrect": ("inaccurate", "misleading"), "correct": ("accurate",)})},
)
"""Three classes of Science Feedback's claims about climate, health and energy (Maiya 2024, section 4.2.1).

Each of the twelve verdicts of Science Feedback's reviews, in any field, belongs to one class. The thesis names the
class of "unsupported" only; the others follow from the definitions.
"""

BINARY = Scale(
    "binary",
    ("incorrect", "correct"),
    {"incorrect": "is contradicted by the evidence", "correct": "agrees with the evidence"},
    frozenset({"correct"}),
)

SCALES: Mapping[str, Scale] = {
    scale.name: scale for scale in (ACCURACY, CLIMATE_FEEDBACK, CLIMATE_FEVER, SCIENCE_FEEDBACK, BINARY)
}


def load_scale(name: str) -> Scale:
    """Load a built-in scale by name, or a custom one from a TOML file.

    Args:
        name: ``accuracy``, ``climate-feedback``, ``climate-fever``, ``science-feedback``, ``binary``, or the path of a
            ``.toml`` file (see :func:`parse_scale`).

    Raises:
        InputError: The scale does not exist, or the file does not define one.
    """
    if name in SCALES:
        return SCALES[name]
    if not name.endswith(".toml"):
        raise InputError(f"There is no scale {name!r}: there are {', '.join(SCALES)}, or a .toml file of your own.")
    path = Path(name)
    return parse_scale(load_toml(path), path.stem, where=str(path))


def parse_scale(data: Mapping[str, Any], name: str, *, where: str) -> Scale:
    """Return a scale from the table of a TOML file.

    Args:
        data: ``labels`` (a list of at least two, from wrong to right) and ``correct`` (the labels on the correct side);
            optionally ``name``, ``not_enough_information`` (the label), ``lack_of_information`` (labels), the table
            ``definitions`` (label to clause) and tables ``classes.N`` (class to list of labels).
        name: Default name.
        where: Name of the file, for error messages.

    Raises:
        InputError: The table does not define a scale.
    """
    entries = ["name", "labels", "correct", "not_enough_information", "lack_of_information", "definitions", "classes"]
    unknown_entries = set(data) - set(entries)
    if unknown_entries:
        raise InputError(f"{where}: a scale has no entry {sorted(unknown_entries)[0]!r}.")
    labels = _parse_words(data.get("labels"), "labels", where)
    if len(labels) < 2 or len(set(labels)) < len(labels):
        raise InputError(f"{where}: labels must name at least two different verdicts, from wrong to right.")
    correct_labels = _parse_words(data.get("correct"), "correct", where)
    lack_labels = _parse_words(data.get("lack_of_information", []), "lack_of_information", where)
    for label in (*correct_labels, *lack_labels):
        if label not in labels:
            raise InputError(f"{where}: {label!r} is not among the labels {', '.join(labels)}.")
    if not correct_labels or set(correct_labels) == set(labels):
        raise InputError(f"{where}: correct must name some of the labels, and not all.")
    nei = _parse_word(data.get("not_enough_information", NOT_ENOUGH), "not_enough_information", where)
    if nei in labels:
        raise InputError(f"{where}: not_enough_information must not be one of the labels, as {nei!r} is.")
    definitions = data.get("definitions", {})
    if not isinstance(definitions, Mapping) or not set(definitions) <= set(labels):
        raise InputError(f"{where}: definitions must be a table from labels to clauses.")
    clauses = {label: _parse_word(text, f"definitions.{label}", where) for label, text in definitions.items()}
    return Scale(
        _parse_word(data.get("name", name), "name", where),
        labels,
        {label: clauses.get(label, f"is {label}") for label in labels},
        frozenset(correct_labels),
        nei,
        frozenset(lack_labels),
        _parse_levels(data.get("classes", {}), labels, nei, where),
    )


def _parse_word(value: object, entry: str, where: str) -> str:
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{where}: {entry} must be a word or phrase in quotes.")
    return value.strip()


def _parse_words(value: object, entry: str, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) and word.strip() for word in value):
        raise InputError(f"{where}: {entry} must be a list of verdicts in quotes.")
    return tuple(word.strip() for word in value)


def _parse_levels(data: object, labels: Sequence[str], nei: str, where: str) -> dict[int, Mapping[str, str]]:
    if not isinstance(data, Mapping):
        raise InputError(f"{where}: classes must be tables [classes.N] from class to its labels.")
    levels = {}
    for count, groups in data.items():
        entry = f"classes.{count}"
        if not isinstance(groups, Mapping):
            raise InputError(f"{where}: {entry} must be a table from class to its labels.")
        members = {name: _parse_words(group, f"{entry}.{name}", where) for name, group in groups.items()}
        if sorted(label for group in members.values() for label in group) != sorted(labels):
            raise InputError(f"{where}: {entry} must name every label once.")
        if nei in members:
            raise InputError(
                f"{where}: {entry} cannot have a class {nei!r}, which is the word for a lack of information."
            )
        sizes = {str(size): size for size in range(2, len(labels))}
        if str(count) not in sizes:
            raise InputError(f"{where}: {entry} must be a number of classes from 2 to one less than the labels.")
        if len(members) != sizes[str(count)] or not all(members.values()):
            n_filled = sum(map(bool, members.values()))
            raise InputError(f"{where}: {entry} has {n_filled} classes with labels.")
        levels[sizes[str(count)]] = _class_by_label(members)
    return levels
