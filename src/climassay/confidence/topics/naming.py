"""Names of topics: proposed by a model, kept in a file that a person edits, and carried over to later runs.

A small model's proposals are often too general ("Climate change impacts") or made up. A name is therefore judged by
what it is for: the encoder that placed the statements must find the topic by its name. A name is kept if it is short
enough, not only made of words that every topic has, not given already, if its topic's middle is among the
:data:`NEAREST` most similar to it, and if most statements of the topic bear it. Where it fails, phrases of the topic's
statements are its name (:mod:`climassay.confidence.topics.phrases`).

The file remembers of each topic the statements with the smallest hashes: a sample that does not depend on numbers,
order or later additions (Broder 1997, bottom-k sketch). From it follows how much of a named topic a new one holds, and
the pairing of greatest total overlap (Hungarian method) carries the names over.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.io import write_file
from climassay.models.contract import Encoder, GenerationRequest, Generator, Sampling
from climassay.prompts import load_prompt
from climassay.settings import load_toml

NEAREST = 2
"""A name must find its topic among so many."""
LEAST_SUPPORT = 0.5
"""Share of a topic's statements that must bear its name."""
_BORNE = 0.9
"""A statement bears a name to which it is more similar than this share of the other topics' statements are."""
LONGEST_NAME = 48
"""Characters."""
_MOST_WORDS = 6
_STATEMENTS = 5
_STATEMENT_CHARACTERS = 220
_OTHERS = 12
_EVERYWHERE = (
    "climate change changes global warming research topic statement statements report assessment impact impacts effect "
    "effects of on in and the a an for to by with under future projected projection projections other various key "
    "analysis study studies science environment environmental issue issues risk risks"
)
_SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 3, "maxLength": LONGEST_NAME}},
    "required": ["name"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True)
class NameProposal:
    """What a model called a topic."""

    name: str
    """As proposed, tidied; empty where there was no answer."""
    fault: str = ""
    """Why it is not used; empty if it is."""
    support: float | None = None


def propose_names(
    own: Sequence[str],
    words: Sequence[Sequence[str]],
    examples: Sequence[Sequence[str]],
    model: Generator,
    *,
    seed: int = 0,
    prompts: Path | None = None,
) -> list[str]:
    """Ask a model for the names of topics.

    Args:
        own: Name of each topic by its statements' phrases; those of other topics are shown.
        words: Words of each topic.
        examples: Typical statements of each topic.
        model: Asked once for each topic, under a schema; wrap it so that answers are recorded.
        seed: Seed of the sampling, which is greedy.
        prompts: Folder of the user's own prompts.

    Returns:
        One name per topic, tidied; empty where the model gave no answer that can be read.
    """
    prompt = load_prompt("topic_name", prompts)
    requests = []
    for number, (typical, said) in enumerate(zip(words, examples, strict=True)):
        others = [name for place, name in enumerate(own) if place != number][:_OTHERS]
        texts = [text[:_STATEMENT_CHARACTERS] for text in said[:_STATEMENTS]]
        rendered = prompt.render(statements=texts, words=list(typical), others=others)
        requests.append(
            GenerationRequest(
                rendered.messages,
                Sampling(max_tokens=None, seed=seed),
                schema=_SCHEMA,
                assistant_prefix=rendered.assistant_prefix,
            )
        )
    return [_read(answer.text) if answer.error is None else "" for answer in model.generate(requests)]


def judge_names(
    names: Sequence[str],
    centres: NDArray[np.float32],
    encoder: Encoder,
    taken: Sequence[str] = (),
    *,
    members: Sequence[NDArray[np.float32]] = (),
) -> list[NameProposal]:
    """Which names tell their topic from the others and are borne by most of its statements.

    Args:
        names: One a topic.
        centres: Middle of each topic, unit vectors, shape [topics, width].
        encoder: The one that made the vectors.
        taken: Names that are given already, for example by hand.
        members: Vectors of each topic's statements, shape [size, width] each; without them support is not asked for.
    """
    encoded = encoder.encode([name or "-" for name in names], role="query")
    similarities = encoded @ centres.T
    found: list[NameProposal] = []
    given = {name.casefold() for name in taken}
    for number, name in enumerate(names):
        place = int((similarities[number] > similarities[number, number]).sum())
        fault = _fault(name) or ("another topic has this name" if name.casefold() in given else "")
        if not fault and place >= NEAREST:
            fault = f"it fits {place} other topics better"
        support = None
        if name and len(members) > 1:
            # A statement bears a name to which it is more similar than most statements of other topics are.
            others = np.concatenate([vectors @ encoded[number] for at, vectors in enumerate(members) if at != number])
            support = float((members[number] @ encoded[number] > np.quantile(others, _BORNE)).mean())
        if not fault and support is not None and support < LEAST_SUPPORT:
            fault = f"only {support:.0%} of the topic's statements bear it"
        if not fault:
            given.add(name.casefold())
        found.append(NameProposal(name, fault, support))
    return found


def _fault(name: str) -> str:
    words = re.findall(r"[^\W\d_]+", name.casefold())
    if not words:
        return "no answer"
    if len(words) > _MOST_WORDS or name.endswith(("-", "...")):
        return "too long"
    if set(words) <= set(_EVERYWHERE.split()):
        return "every topic could be called so"
    if len(set(words)) < len(words) or any(len(word) > 24 for word in words):
        return "it repeats itself"
    return ""


def _read(text: str) -> str:
    try:
        name = json.loads(text)["name"]
    except (ValueError, KeyError, TypeError):
        return ""
    tidy = " ".join(str(name).split()).strip(" .,:;\"'*-")
    return tidy[:1].upper() + tidy[1:]


SKETCH = 200
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
    sketch: tuple[str, ...]
    """Smallest hashes of its statements, ascending, at most :data:`SKETCH`."""

    @property
    def by_hand(self) -> bool:
        """Whether a person gave the name."""
        return self.name != self.proposed


def statement_hash(text: str) -> str:
    """Hash of a statement's words, whatever their case and spacing: ten hexadecimal digits."""
    return hashlib.sha256(" ".join(text.casefold().split()).encode()).hexdigest()[:10]


def smallest_hashes(texts: Sequence[str]) -> tuple[str, ...]:
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
    parts = [_HEAD, _tables("", named)]
    if unused:
        parts += ["# Named by hand, and found in an earlier run only.\n", _tables("unused.", unused)]
    write_file(path, "".join(parts).encode())


def _tables(at: str, named: Sequence[NamedTopic]) -> str:
    columns = {
        "names": [_quoted(one.name) for one in named],
        "proposed": [_quoted(one.proposed) for one in named],
        "sizes": [str(one.size) for one in named],
        "statements": [_quoted(" ".join(one.sketch)) for one in named],
    }
    return "".join(
        f"[{at}{heading}]\n" + "".join(f"{number} = {value}\n" for number, value in enumerate(values)) + "\n"
        for heading, values in columns.items()
    )


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
