"""Names of topics in a file that a person edits, and how they find their topics in a later run.

The file remembers of each topic the statements with the smallest hashes: a sample that does not depend on numbers,
order or later additions (Broder 1997, bottom-k sketch). From it follows how much of a named topic a new one holds, and
the pairing of greatest total overlap (Hungarian method) carries the names over.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.io import cannot_write
from climassay.settings import load_toml

SKETCH = 200
"""Statements of a topic that are remembered."""
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
    """Statements that it had."""
    sketch: tuple[str, ...]
    """Smallest hashes of its statements, ascending, at most :data:`SKETCH`."""

    @property
    def by_hand(self) -> bool:
        """Whether a person gave the name."""
        return self.name != self.proposed


def statement_hash(text: str) -> str:
    """Of a statement's words, whatever their case and spacing: ten hexadecimal digits."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:10]


def sketch_of(texts: Sequence[str]) -> tuple[str, ...]:
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
    parts = [_HEAD, _table("names", {n: _quoted(one.name) for n, one in enumerate(named)})]
    parts += _remembered("", named)
    if unused:
        parts.append("# Named by hand, and found in an earlier run only.\n")
        parts.append(_table("unused.names", {n: _quoted(one.name) for n, one in enumerate(unused)}))
        parts += _remembered("unused.", unused)
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_text("".join(parts), encoding="utf-8")
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise cannot_write(path, error) from None


def _remembered(at: str, named: Sequence[NamedTopic]) -> list[str]:
    return [
        _table(f"{at}proposed", {n: _quoted(one.proposed) for n, one in enumerate(named)}),
        _table(f"{at}sizes", {n: str(one.size) for n, one in enumerate(named)}),
        _table(f"{at}statements", {n: _quoted(" ".join(one.sketch)) for n, one in enumerate(named)}),
    ]


def _table(heading: str, entries: Mapping[int, str]) -> str:
    return f"[{heading}]\n" + "".join(f"{number} = {value}\n" for number, value in entries.items()) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(char if char >= " " and char != "\x7f" else f"\\u{ord(char):04x}" for char in escaped) + '"'


def _entries(path: Path, data: Mapping[str, Any], at: str) -> list[NamedTopic]:
    try:
        names, proposed = data.get("names", {}), data.get("proposed", {})
        sizes, statements = data.get("sizes", {}), data.get("statements", {})
        found = []
        for number, name in names.items():
            if not isinstance(name, str) or not name.strip():
                raise InputError(f"{path}: the name [{at}names] {number} must be a text that is not empty.")
            sketch = tuple(statements[number].split())
            found.append(NamedTopic(" ".join(name.split()), proposed[number], int(sizes[number]), sketch))
    except (AttributeError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{path} is damaged at {error}: delete it, or undo the last change of it.") from None
    return found
