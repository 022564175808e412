"""How drafts are read: put before a model that calls them VALID or INVALID, or turned into features.

Features are an encoder's vectors and what rules see in the words, or the hidden states of that model.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.generation.draft import Draft, Subject
from climassay.learning import ActivationStore, Provenance, harvest
from climassay.metrics.entailment import NAMES, content_words, pair_features
from climassay.models.contract import Encoder, OpenWeights, OptionRequest
from climassay.prompts import Prompt, load_prompt
from climassay.questions import TYPES, option_letter

FloatArray = NDArray[np.float64]
Progress = Callable[[int], None]

ANSWERS = (" VALID", " INVALID")
"""Ends of the model's answer."""
LONGEST_CONTEXT = 8000
"""Characters of a context that a model is shown: the main passage appears first and is never what is cut."""
_KINDS = {"mcq": "multiple-choice questions", "freeform": "freeform questions", "cloze": "fill-in-the-gap statements"}
PAIRS = ("context and answer", "context and question", "answer and question")
OWN = (
    "words of question", "words of answer", "words of context", "options", "answer longer than options",
    "likest option", "question in context", "answer in context", "multiple choice", "cloze",
)  # fmt: skip
"""Features of a draft by itself, in order."""
TEXT_FEATURES = tuple(f"{pair}: {name}" for pair in PAIRS for name in NAMES) + OWN
"""Names of the first block of :class:`TextReader`."""
DEPTH = 0.6
"""Depth of the layer that is read by default: what a model makes of a text is most legible above its middle."""


def validation_prompt(overrides: Path | None = None) -> Prompt:
    """The template, the user's own where the folder has one."""
    return load_prompt("validate", overrides)


def check_prompt(trained: Provenance, prompt: Prompt) -> None:
    """Make sure that a validator is asked in the words of its training.

    Raises:
        InputError: The template has another text.
    """
    if prompt.sha256 != trained.template_sha256:
        raise InputError(
            f"This validator was trained with another text of the prompt {prompt.name}: give that one, or train it "
            "again."
        )


def validation_request(draft: Draft, prompt: Prompt, subject: Subject) -> OptionRequest:
    """The question whether a draft is valid (ClimaQA, appendix A.5.2: question, answer, context)."""
    wording, context = draft.wording, draft.context[:LONGEST_CONTEXT]
    return _request(prompt, subject, draft.kind, wording.question, wording.options, wording.answer, context)


def content_free_request(kind: str, options: int, text: str, prompt: Prompt, subject: Subject) -> OptionRequest:
    """The same with a text that says nothing, for example ``N/A``, in every place where content belongs."""
    return _request(prompt, subject, kind, text, (text,) * options, text, text)


def _request(
    prompt: Prompt, subject: Subject, kind: str, question: str, options: tuple[str, ...], answer: str, context: str
) -> OptionRequest:
    lettered = [{"letter": option_letter(place), "text": option} for place, option in enumerate(options)]
    rendered = prompt.render(
        kind=_KINDS.get(kind) or f"{TYPES[kind].title.lower()} questions",
        field=subject.field,
        question=question,
        options=lettered,
        answer=answer,
        context=context,
    )
    return OptionRequest(rendered.messages, ANSWERS, rendered.assistant_prefix)


@dataclass(frozen=True, slots=True, eq=False)
class Read:
    """Features of some drafts."""

    blocks: tuple[FloatArray, ...]
    """Each of shape [drafts, features], of one kind; zeros where a draft could not be read."""
    failed: dict[int, str]
    """Why a draft could not be read, by its place."""

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Shape [drafts]."""
        size = len(self.blocks[0])
        return ~np.isin(np.arange(size), list(self.failed))


class Reader(Protocol):
    """Anything that turns drafts into features."""

    @property
    def provenance(self) -> Provenance:
        """Whose output is read, and as ``kind`` among the settings in which way."""

    def check(self, trained: Provenance) -> None:
        """Make sure that what was trained on features can be given these.

        Raises:
            InputError: It was trained on those of another encoder, model or prompt.
        """

    def read(self, drafts: Sequence[Draft], *, on_read: Progress | None = None) -> Read:
        """Features of drafts; ``on_read`` is called with the number read since the last call."""


@dataclass(frozen=True)
class TextReader:
    """Vectors of question, answer and context and how they differ, and what rules see in the words."""

    encoder: Encoder

    @property
    def provenance(self) -> Provenance:
        """See :class:`Reader`."""
        return Provenance(settings={"kind": "features"}).reading(self.encoder)

    def check(self, trained: Provenance) -> None:
        """See :class:`Reader`."""
        trained.check("validator", encoder=self.encoder)

    def read(self, drafts: Sequence[Draft], *, on_read: Progress | None = None) -> Read:
        """Two blocks: :data:`TEXT_FEATURES`, and vectors q, a, |q - a| and |a - c|; none fails.

        A draft without words or without a passage is read as it is: an empty text has a vector too.
        """
        if not drafts:
            return Read((np.zeros((0, len(TEXT_FEATURES))), np.zeros((0, 4 * self.encoder.width))), {})
        asked = [draft.wording.question for draft in drafts]
        said = [draft.wording.answer for draft in drafts]
        given = [draft.context for draft in drafts]
        pairs = [
            pair_features(list(zip(*texts, strict=True)), self.encoder)
            for texts in ((given, said), (given, asked), (said, asked))
        ]
        own = np.array([self._own(draft) for draft in drafts], dtype=np.float64)
        width = self.encoder.width
        # Of context and answer come c, a, |c - a|; of answer and question a, q, |a - q|.
        answer, apart = pairs[0].vectors[:, width : 2 * width], pairs[0].vectors[:, 2 * width : 3 * width]
        question, differs = pairs[2].vectors[:, width : 2 * width], pairs[2].vectors[:, 2 * width : 3 * width]
        if on_read is not None:
            on_read(len(drafts))
        named = np.concatenate([*(pair.named for pair in pairs), own], axis=1)
        return Read((named, np.concatenate([question, answer, differs, apart], axis=1)), {})

    def _own(self, draft: Draft) -> tuple[float, ...]:
        wording, context = draft.wording, draft.context
        answer_words = len(wording.answer.split())
        others = [text for place, text in enumerate(wording.options) if place != wording.correct]
        longer, likest = 0.0, 0.0
        if others:
            mean = sum(len(text.split()) for text in others) / len(others)
            longer = float(np.log((1 + answer_words) / (1 + mean)))
            vectors = self.encoder.encode([wording.answer, *others]).astype(np.float64)
            likest = float((vectors[1:] @ vectors[0]).max())
        known, asked = content_words(context), content_words(wording.question)
        return (
            float(np.log1p(len(wording.question.split()))),
            float(np.log1p(answer_words)),
            float(np.log1p(len(context.split()))),
            float(len(wording.options)),
            longer,
            likest,
            len(asked & known) / max(1, len(asked)),
            float(" ".join(wording.answer.casefold().split()) in " ".join(context.casefold().split())),
            float(draft.kind == "mcq"),
            float(draft.kind == "cloze"),
        )


@dataclass(frozen=True)
class StateReader:
    """Hidden states of a model whose verdict on a draft is made to end in VALID and in INVALID.

    What both ends have in common is the draft, and what differs is how each verdict follows from it (Burns et al. 2023,
    arXiv 2212.03827): both are kept, as two blocks.
    """

    model: OpenWeights
    prompt: Prompt = field(default_factory=validation_prompt)
    layers: tuple[int, ...] = ()
    """Side by side in each block, numbered as in :meth:`~climassay.models.contract.OpenWeights.harvest`; by default one
    at :data:`DEPTH`."""
    store: ActivationStore | None = None
    """Where states are kept, so that nothing is computed twice."""
    subject: Subject = field(default_factory=Subject)

    def __post_init__(self) -> None:
        if not self.layers:
            object.__setattr__(self, "layers", (max(1, round(DEPTH * self.model.layers)),))

    @property
    def provenance(self) -> Provenance:
        """See :class:`Reader`."""
        return Provenance(
            layers=self.layers,
            template=self.prompt.name,
            template_sha256=self.prompt.sha256,
            settings={"kind": "probe", "subject": asdict(self.subject)},
        ).reading(model=self.model)

    def check(self, trained: Provenance) -> None:
        """See :class:`Reader`."""
        trained.check("validator", model=self.model)
        check_prompt(trained, self.prompt)

    def read(self, drafts: Sequence[Draft], *, on_read: Progress | None = None) -> Read:
        """Two blocks: VALID - INVALID, and the mean of both; shape [drafts, layers * width] each."""
        requests = [validation_request(draft, self.prompt, self.subject) for draft in drafts]
        found = harvest(self.model, requests, layers=self.layers, store=self.store, on_progress=on_read)
        states = found.states.astype(np.float64)
        size = len(drafts)
        contrast = (states[:, 0] - states[:, 1]).reshape(size, -1) if size else np.zeros((0, 0))
        mean = states.mean(axis=1).reshape(size, -1) if size else np.zeros((0, 0))
        return Read((contrast, mean), found.failed)


def draft_vectors(drafts: Sequence[Draft], encoder: Encoder) -> NDArray[np.float32]:
    """Unit vectors of question and answer together, shape [drafts, width]: what drafts are about, for clusters."""
    return encoder.encode([f"{draft.wording.question} {draft.wording.answer}" for draft in drafts])
