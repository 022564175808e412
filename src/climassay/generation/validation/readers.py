"""Features of drafts for validators: of the text, or hidden states of a model that judges the draft."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError
from climassay.generation.draft import Draft, Subject
from climassay.learning import ActivationStore, Provenance, harvest
from climassay.metrics.pair_features import NAMES, content_words, pair_features
from climassay.models.contract import Encoder, OpenWeights, OptionRequest
from climassay.prompts import Prompt, load_prompt
from climassay.questions import TYPES, option_letter

FloatArray = NDArray[np.float64]
CountCallback = Callable[[int], None]
"""Callback that gets the number of items finished since its last call."""

ANSWERS = (" VALID", " INVALID")
"""The two answers of a model that judges a draft."""
MAX_CONTEXT_LENGTH = 8000
"""Maximum characters of the context in a prompt; the main passage comes first, so that it is never cut."""
PAIRS = ("context and answer", "context and question", "answer and question")
DRAFT_FEATURES = (
    "words of question", "words of answer", "words of context", "options", "answer longer than options",
    "likest option", "question in context", "answer in context", "multiple choice", "cloze",
)  # fmt: skip
"""Names of the features of a draft as a whole, in order."""
TEXT_FEATURES = tuple(f"{pair}: {name}" for pair in PAIRS for name in NAMES) + DRAFT_FEATURES
"""Names of the features in the first block of :class:`TextReader`."""
DEFAULT_DEPTH = 0.6
"""Relative depth of the layer that is read by default; layers above the middle separate texts best."""


def validation_prompt(overrides: Path | None = None) -> Prompt:
    """Load the prompt template ``validate``, from the folder of overrides if it is there."""
    return load_prompt("validate", overrides)


def check_prompt(trained: Provenance, prompt: Prompt) -> None:
    """Check that a validator is prompted with the template of its training.

    Raises:
        InputError: The template has another text.
    """
    if prompt.sha256 != trained.template_sha256:
        raise InputError(
            f"This validator was trained with another text of the prompt {prompt.name}: use that text, or train the "
            "validator again."
        )


def validation_request(draft: Draft, prompt: Prompt, subject: Subject) -> OptionRequest:
    """Return the request that asks whether a draft is valid (ClimaQA, appendix A.5.2: question, answer, context)."""
    wording, context = draft.wording, draft.context[:MAX_CONTEXT_LENGTH]
    return _request(prompt, subject, draft.kind, wording.question, wording.options, wording.answer, context)


def content_free_request(kind: str, options: int, text: str, prompt: Prompt, subject: Subject) -> OptionRequest:
    """Return a validation request in which a placeholder replaces question, options, answer and context.

    Args:
        kind: Kind of the question.
        options: Number of options.
        text: Placeholder without content, for example ``N/A``.
        prompt: The template.
        subject: Science of the questions.
    """
    return _request(prompt, subject, kind, text, (text,) * options, text, text)


def _request(
    prompt: Prompt, subject: Subject, kind: str, question: str, options: tuple[str, ...], answer: str, context: str
) -> OptionRequest:
    lettered = [{"letter": option_letter(index), "text": option} for index, option in enumerate(options)]
    rendered = prompt.render(
        kind=TYPES[kind].plural,
        field=subject.field,
        question=question,
        options=lettered,
        answer=answer,
        context=context,
    )
    return OptionRequest(rendered.messages, ANSWERS, rendered.assistant_prefix)


@dataclass(frozen=True, slots=True, eq=False)
class DraftFeatures:
    """Features of drafts."""

    blocks: tuple[FloatArray, ...]
    """Blocks of one kind of features each, shape [drafts, features]; zeros for a draft that failed."""
    failed: dict[int, str]
    """Error by index of each draft that could not be read."""

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Whether each draft could be read, shape [drafts]."""
        size = len(self.blocks[0])
        return ~np.isin(np.arange(size), list(self.failed))


class FeatureReader(Protocol):
    """Computes the features of drafts."""

    @property
    def provenance(self) -> Provenance:
        """Provenance of the features: the encoder or model, and the setting ``kind``."""

    def check(self, trained: Provenance) -> None:
        """Check that a validator was trained on features of this reader.

        Raises:
            InputError: It was trained on features of another encoder, model or prompt.
        """

    def read(self, drafts: Sequence[Draft], *, on_read: CountCallback | None = None) -> DraftFeatures:
        """Compute the features of drafts; ``on_read`` gets the number of drafts read since its last call."""


@dataclass(frozen=True)
class TextReader:
    """Computes vectors of question, answer and context, their differences, and lexical features."""

    encoder: Encoder

    @property
    def provenance(self) -> Provenance:
        """See :class:`FeatureReader`."""
        return Provenance(settings={"kind": "features"}).reading(self.encoder)

    def check(self, trained: Provenance) -> None:
        """See :class:`FeatureReader`."""
        trained.check("validator", encoder=self.encoder)

    def read(self, drafts: Sequence[Draft], *, on_read: CountCallback | None = None) -> DraftFeatures:
        """Return two blocks: :data:`TEXT_FEATURES`, and the vectors q, a, ``|q - a|`` and ``|a - c|``.

        No draft fails: an empty text has a vector, too.
        """
        if not drafts:
            return DraftFeatures((np.zeros((0, len(TEXT_FEATURES))), np.zeros((0, 4 * self.encoder.width))), {})
        questions = [draft.wording.question for draft in drafts]
        answers = [draft.wording.answer for draft in drafts]
        contexts = [draft.context for draft in drafts]
        pairs = [
            pair_features(list(zip(*texts, strict=True)), self.encoder)
            for texts in ((contexts, answers), (contexts, questions), (answers, questions))
        ]
        lexical = np.array([self._lexical_features(draft) for draft in drafts], dtype=np.float64)
        width = self.encoder.width
        # The pair of context and answer has c, a, |c - a|; the pair of answer and question a, q, |a - q|.
        answer, answer_context = pairs[0].vectors[:, width : 2 * width], pairs[0].vectors[:, 2 * width : 3 * width]
        question, answer_question = pairs[2].vectors[:, width : 2 * width], pairs[2].vectors[:, 2 * width : 3 * width]
        if on_read is not None:
            on_read(len(drafts))
        named = np.concatenate([*(pair.named for pair in pairs), lexical], axis=1)
        vectors = np.concatenate([question, answer, answer_question, answer_context], axis=1)
        return DraftFeatures((named, vectors), {})

    def _lexical_features(self, draft: Draft) -> tuple[float, ...]:
        """Return the :data:`DRAFT_FEATURES`."""
        wording, context = draft.wording, draft.context
        n_answer_words = len(wording.answer.split())
        distractors = [text for index, text in enumerate(wording.options) if index != wording.correct]
        length_ratio, max_similarity = 0.0, 0.0
        if distractors:
            mean = sum(len(text.split()) for text in distractors) / len(distractors)
            length_ratio = float(np.log((1 + n_answer_words) / (1 + mean)))
            vectors = self.encoder.encode([wording.answer, *distractors]).astype(np.float64)
            max_similarity = float((vectors[1:] @ vectors[0]).max())
        context_words, question_words = content_words(context), content_words(wording.question)
        return (
            float(np.log1p(len(wording.question.split()))),
            float(np.log1p(n_answer_words)),
            float(np.log1p(len(context.split()))),
            float(len(wording.options)),
            length_ratio,
            max_similarity,
            len(question_words & context_words) / max(1, len(question_words)),
            float(" ".join(wording.answer.casefold().split()) in " ".join(context.casefold().split())),
            float(draft.type.has_options),
            float(draft.type.has_gap),
        )


@dataclass(frozen=True)
class StateReader:
    """Computes features from a model's hidden states at the ends of both verdicts on a draft, VALID and INVALID.

    The mean of the two states represents the draft, and their difference represents the model's verdict (Burns et
    al. 2023, arXiv 2212.03827); they are two blocks.
    """

    model: OpenWeights
    prompt: Prompt = field(default_factory=validation_prompt)
    layers: tuple[int, ...] = ()
    """Layers, concatenated in each block, numbered as in :meth:`~climassay.models.contract.OpenWeights.harvest`; by
    default one layer at :data:`DEFAULT_DEPTH`."""
    store: ActivationStore | None = None
    """Cache of the states."""
    subject: Subject = field(default_factory=Subject)

    def __post_init__(self) -> None:
        if not self.layers:
            object.__setattr__(self, "layers", (max(1, round(DEFAULT_DEPTH * self.model.layers)),))

    @property
    def provenance(self) -> Provenance:
        """See :class:`FeatureReader`."""
        return Provenance(
            layers=self.layers,
            template=self.prompt.name,
            template_sha256=self.prompt.sha256,
            settings={"kind": "probe", "subject": asdict(self.subject)},
        ).reading(model=self.model)

    def check(self, trained: Provenance) -> None:
        """See :class:`FeatureReader`."""
        trained.check("validator", model=self.model)
        check_prompt(trained, self.prompt)

    def read(self, drafts: Sequence[Draft], *, on_read: CountCallback | None = None) -> DraftFeatures:
        """Return the states of VALID minus those of INVALID, and their mean; shape [drafts, layers * width] each."""
        requests = [validation_request(draft, self.prompt, self.subject) for draft in drafts]
        result = harvest(self.model, requests, layers=self.layers, store=self.store, on_progress=on_read)
        states = result.states.astype(np.float64)
        size = len(drafts)
        contrast = (states[:, 0] - states[:, 1]).reshape(size, -1) if size else np.zeros((0, 0))
        mean = states.mean(axis=1).reshape(size, -1) if size else np.zeros((0, 0))
        return DraftFeatures((contrast, mean), result.failed)


def draft_vectors(drafts: Sequence[Draft], encoder: Encoder) -> NDArray[np.float32]:
    """Return unit vectors of question and answer together, shape [drafts, width], for clustering by topic."""
    return encoder.encode([f"{draft.wording.question} {draft.wording.answer}" for draft in drafts])
