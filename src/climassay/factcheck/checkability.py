"""Before a debate: is the text a statement about climate that can be checked at all?

A few rules decide what is certain: empty texts, questions, greetings, orders (those to this program among them). All
else is decided by two linear models of the encoder's vectors, fitted at first use to the primer's labelled
examples (``primer/checkability.jsonl``): one tells statements of fact from opinions, wishes and requests, one tells
climate from other topics. Their thresholds favour debating: a claim that is wrongly refused is worse than one that is
debated in vain.

Let through, with the bundled encoder: 98.8% of the 1028 claims of Climate-FEVER (95% interval 98.0 to 99.3), all of the
115 of Climate Feedback (96.8 to 100), 94.4% of the 107 myths of Skeptical Science (88.3 to 97.4; what is refused are
headlines without context, such as "Hockey stick is broken"), and all 40 claims of the primer (91.2 to 100). No rule
refuses any of these. The primer's own texts in ten-fold cross-validation with seed 0: 127 of 128 claims are let through
(99.2%, 95.7 to 99.9); 76.9% of 91 statements about other things are refused (67.3 to 84.4), 82.2% of 90 opinions,
questions, orders and the like (73.1 to 88.8). What is hardest to tell are other topics that share words with climate:
of 18 such statements ("Polar bears have black skin.") 9 are let through. The thresholds were chosen on a random half of
Climate-FEVER (on the other half 98.8% are let through) with an eye on the other sets, and headlines were added to the
examples after a first look at the myths.
"""

import contextlib
import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from climassay import primer
from climassay.corpus.sentences import split_sentences
from climassay.errors import ClimassayError
from climassay.learning.linear import LinearModel, fit_linear
from climassay.learning.model_file import ModelFormat
from climassay.models.contract import Encoder
from climassay.workspace import cache_folder

Kind = Literal["checkable", "not checkable", "not about climate"]

OPINION_THRESHOLD = 0.90
"""Probability from which a text is not a statement of fact."""
TOPIC_THRESHOLD = 0.80
"""Probability from which a text is about something else than climate."""
PENALTY = 9.0
"""C of both models."""
FORMAT = ModelFormat("climassay-checkability", 1, "pair of models", "any check of a claim")
_NAMES = ("opinion_{}", "elsewhere_{}")

_QUESTION = re.compile(
    r"(?:who|whom|whose|what|when|where|why|which|how|is|are|was|were|am|do|does|did|can|could|will|would|should|shall|may"
    r"|has|have|had|isn.t|aren.t|don.t|doesn.t|didn.t|won.t)\b.*\?\W*",
    re.IGNORECASE | re.DOTALL,
)
_GREETING = re.compile(
    r"(?:hi|hello|hey|good (?:morning|afternoon|evening|night|day)|thanks?(?: you)?|bye|goodbye|welcome|cheers)\b"
    r"(?:\W+\w+){0,3}\W*",
    re.IGNORECASE,
)
_ABOVE = r"(?:(?:all|any|every|the|your|my|these|those|previous|prior|earlier|above|other|old|such|of)\s+)*"
_ORDER = re.compile(
    r"\W*(?:please\b[\s,]*|(?:can|could|would) you (?:please )?)?(?:"
    rf"(?:ignore|disregard|forget|override|bypass|skip)\s+(?:about\s+)?{_ABOVE}"
    r"(?:instructions?|rules?|prompts?|roles?|messages?|orders?|guidelines?|text|passages?|evidence|above|previous|everything)\b"
    r"|(?:system|assistant|user|developer|admin)\s*(?:prompt|message|note|override)?\s*:"
    r"|new instructions?\b|you are now\b|from now on,? you\b|(?:act|behave|respond|reply|answer) (?:as|only|with)\b"
    r"|pretend (?:to|that|you)\b|(?:output|print|return) (?:the|your|only|a|an)\b|(?:say|answer|reply|respond)\s*[:\"“]"
    r"|(?:say|declare|confirm) that (?:the|this|every) (?:claim|statement|verdict)\b"
    r"|(?:rate|mark|label) (?:this|the|my) claim\b"
    r"|(?:write|summari[sz]e|translate|explain|describe|recommend|compute|calculate|list)\s+"
    r"(?:me\b|a|an|the|this|that|in|some)\b"
    r"|(?:tell|give|show|draw|send|help) (?:me|us)\b"
    r")",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Checkability:
    """Whether a text can be debated."""

    kind: Kind
    score: float
    """Probability of the kind, 0 to 1; 1 where a rule decided. For ``checkable`` the smaller of those of being a
    statement and of being about climate: below one half where it was let through in doubt."""
    reason: str
    """One sentence for the reader; empty for ``checkable``."""


def assess_claims(texts: Sequence[str], encoder: Encoder) -> list[Checkability]:
    """Tell claims from texts that cannot be checked or are not about climate.

    Args:
        texts: Any number.
        encoder: Gives the vectors; the thresholds were measured with the bundled one. What is fitted to its vectors is
            kept in the cache folder by its fingerprint.

    Returns:
        One assessment per text, in order.
    """
    found = [refused_by_rule(text) for text in texts]
    left = [place for place, one in enumerate(found) if one is None]
    if left:
        chances = probabilities(encoder.encode([texts[place] for place in left]), _models(encoder))
        for place, (opinion, elsewhere) in zip(left, chances.tolist(), strict=True):
            found[place] = by_probability(opinion, elsewhere)
    return [one for one in found if one is not None]


def by_probability(opinion: float, elsewhere: float) -> Checkability:
    """The assessment of a text that no rule refuses, from what :func:`probabilities` gives."""
    if opinion >= OPINION_THRESHOLD:
        reason = "It reads as an opinion, a wish or a request, and not as a statement of fact."
        return Checkability("not checkable", opinion, reason)
    if elsewhere >= TOPIC_THRESHOLD:
        return Checkability("not about climate", elsewhere, "It seems to be about something else than climate.")
    return Checkability("checkable", 1.0 - max(opinion, elsewhere), "")


def refused_by_rule(text: str) -> Checkability | None:
    """A refusal that is certain from the words alone; None otherwise."""
    words = re.findall(r"[^\W\d_]+", text)
    if not words:
        return _refused("It has no words.")
    if len(words) == 1:
        return _refused("It is a single word, and states nothing.")
    stripped = text.strip().lstrip("\"'“”‘’«»([-*• ")
    if _GREETING.fullmatch(stripped):
        return _refused("It is a greeting.")
    if _ORDER.match(stripped):
        return _refused("It is an order; only statements about the world can be checked.")
    if _QUESTION.fullmatch(stripped) and len(split_sentences(stripped)) == 1:
        return _refused("It is a question: write as a statement what is to be checked.")
    return None


def _refused(reason: str) -> Checkability:
    return Checkability("not checkable", 1.0, reason)


# -------------------------------------------------------------------------------------------------- the two models


@dataclass(frozen=True, slots=True)
class Example:
    """A labelled text of the primer."""

    id: str
    text: str
    kind: Kind
    topic: Literal["climate", "other", "none"]
    """``none`` for orders to this program and nonsense."""


@lru_cache(maxsize=1)
def examples() -> tuple[Example, ...]:
    """The primer's labelled texts."""
    lines = _examples_path().read_text(encoding="utf-8").splitlines()
    return tuple(Example(**json.loads(line)) for line in lines)


def _examples_path() -> Path:
    return Path(primer.__file__).with_name("checkability.jsonl")


def fit(texts: Sequence[Example], vectors: NDArray[np.floating]) -> tuple[LinearModel, ...]:
    """Fit the models of "no statement of fact" and of "not about climate" to vectors of shape [texts, width]."""
    rows = np.asarray(vectors, dtype=np.float64)
    opinion = np.array([one.kind == "not checkable" for one in texts], dtype=np.int64)
    elsewhere = np.array([one.topic == "other" for one in texts], dtype=np.int64)
    either = np.array([one.topic != "none" for one in texts])
    return tuple(
        fit_linear([rows[kept]], truth[kept], 2, regularisation=PENALTY, standardise=False, balanced=True)
        for kept, truth in ((np.ones(len(texts), dtype=bool), opinion), (either, elsewhere))
    )


def probabilities(vectors: NDArray[np.floating], models: Sequence[LinearModel]) -> NDArray[np.float64]:
    """Shape [texts, 2]: of being no statement of fact, and of not being about climate."""
    found = [model.probabilities([np.asarray(vectors, dtype=np.float64)])[:, 1] for model in models]
    # The last digits of a matrix product depend on how many rows there are.
    return np.stack(found, axis=1).round(10)


def _models(encoder: Encoder) -> tuple[LinearModel, ...]:
    """The models for an encoder, from the cache where they are."""
    digest = hashlib.sha256(_examples_path().read_bytes() + f"{PENALTY}".encode()).hexdigest()
    file = cache_folder() / "checkability" / f"{encoder.fingerprint[:32]}-{digest[:16]}.safetensors"

    def build(_: dict[str, Any], arrays: dict[str, NDArray[np.float64]]) -> tuple[LinearModel, ...]:
        return tuple(LinearModel.read(arrays, 2, name=name, features=encoder.width) for name in _NAMES)

    # It is only a cache: what is not there or spoilt is fitted anew, and again where the disk is full.
    with contextlib.suppress(ClimassayError):
        return FORMAT.load(file, build)
    models = fit(examples(), encoder.encode([one.text for one in examples()]))
    arrays = {
        name: array for place, model in zip(_NAMES, models, strict=True) for name, array in model.arrays(place).items()
    }
    with contextlib.suppress(ClimassayError):
        FORMAT.save(file, arrays, {})
    return models
