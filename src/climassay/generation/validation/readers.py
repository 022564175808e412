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
from climassay.questions import option_letter

FloatArray = NDArray[np.float64]
CountCallback = Callable[[int], None]
"""Callback that gets the number of items finished since its last call."""

ANSWERS = (" VALID", " INVALID")
"""Possible answers of a model that judges a draft."""
MAX_CONTEXT_LENGTH = 8000
"""Maximum number of characters of the context in a prompt; only retrieved passages are truncated by it."""
PAIRS = ("context and answer", "context and question", "answer and question")
DRAFT_FEATURES = (
    "words of question", "words of answer", "words of context", "options", "answer longer than options",
    "likest option", "question in context", "answer in context", "multiple choice", "cloze",
)  # fmt: skip
"""Names of the features that describe a draft as a whole, in order."""
TEXT_FEATURES = tuple(f"{pair}: {name}" for pair in PAIRS for name in NAMES) + DRAFT_FEATURES
"""Names of the features in the first block that :class:`TextReader` computes."""
DEFAULT_DEPTH = 0.6
"""Relative depth of the layer whose hidden states are used by default; layers above the middle separate texts best."""


def validation_prompt(overrides: Path | None = None) -> Prompt:
    """Load the prompt template ``validate``; a template in the folder ``overrides`` replaces the built-in one."""
    return load_prompt("validate", overrides)


def check_prompt(provenance: Provenance, prompt: Prompt) -> None:
    """Check that a validator is used with the prompt template with which it was trained.

    Raises:
        InputError: The text of the template differs.
    """
    if prompt.sha256 != provenance.template_sha256:
        raise InputError(
            f"This validator was trained with another text of the prompt {prompt.name}: use that text, or train the "
            "validator again."
        )


def validation_request(draft: Draft, prompt: Prompt, subject: Subject) -> OptionRequest:
    """Build the request that asks a model whether a draft is valid (ClimaQA, appendix A.5.2)."""
    wording = draft.wording
    rendered_prompt = prompt.render(
        kind=draft.type.plural,
        field=subject.field,
        question=wording.question,
        options=[{"letter": option_letter(index), "text": option} for index, option in enumerate(wording.options)],
        answer=wording.answer,
        context=draft.context[:MAX_CONTEXT_LENGTH],
    )
    return OptionRequest(rendered_prompt.messages, ANSWERS, rendered_prompt.assistant_prefix)


@dataclass(frozen=True, slots=True, eq=False)
class DraftFeatures:
    """Features of drafts, in blocks that are scaled separately."""

    blocks: tuple[FloatArray, ...]
    """Blocks of features, each of shape [drafts, features]; zeros for drafts in ``failed``."""
    failed: dict[int, str]
    """Error messages by index of the drafts whose features could not be computed."""

    @property
    def succeeded(self) -> NDArray[np.bool_]:
        """Mask of the drafts whose features could be computed, shape [drafts]."""
        return ~np.isin(np.arange(len(self.blocks[0])), list(self.failed))


class FeatureReader(Protocol):
    """Interface of readers, which compute the features of drafts."""

    @property
    def provenance(self) -> Provenance:
        """Encoder or model that computes the features; the setting ``kind`` is ``features`` or ``probe``."""

    def check(self, provenance: Provenance) -> None:
        """Check that a validator was trained on features of this reader.

        Args:
            provenance: Provenance of the validator.

        Raises:
            InputError: The validator was trained on features of another encoder, model or prompt.
        """

    def read(self, drafts: Sequence[Draft], *, on_read: CountCallback | None = None) -> DraftFeatures:
        """Compute the features of drafts; ``on_read`` gets the number of drafts done since its last call."""


@dataclass(frozen=True)
class TextReader:
    """Reader that computes embeddings of question, answer and context, their differences, and lexical features."""

    encoder: Encoder

    @property
    def provenance(self) -> Provenance:
        """See :class:`FeatureReader`."""
        return Provenance(settings={"kind": "features"}).with_feature_models(self.encoder)

    def check(self, provenance: Provenance) -> None:
        """See :class:`FeatureReader`."""
        provenance.check("validator", encoder=self.encoder)

    def read(self, drafts: Sequence[Draft], *, on_read: CountCallback | None = None) -> DraftFeatures:
        """Compute two blocks: :data:`TEXT_FEATURES`, and the vectors q, a, ``|q - a|`` and ``|a - c|``.

        Here q, a and c are the embeddings of question, answer and context. No draft fails.
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
        named_features = np.concatenate([*(pair.named for pair in pairs), lexical], axis=1)
        vectors = np.concatenate([question, answer, answer_question, answer_context], axis=1)
        return DraftFeatures((named_features, vectors), {})

    def _lexical_features(self, draft: Draft) -> tuple[float, ...]:
        """Return the values of :data:`DRAFT_FEATURES`."""
        wording, context = draft.wording, draft.context
        n_answer_words = len(wording.answer.split())
        distractors = [text for index, text in enumerate(wording.options) if index != wording.correct]
        length_ratio, max_similarity = 0.0, 0.0
        if distractors:
            mean_words = sum(len(text.split()) for text in distractors) / len(distractors)
            length_ratio = float(np.log((1 + n_answer_words) / (1 + mean_words)))
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
    """Reader that computes features from a model's hidden states.

    The model is shown a draft and each of the verdicts VALID and INVALID; the states are those at the last token of the
    verdict. One block is their difference, which represents the model's verdict (Burns et al. 2023, arXiv 2212.03827).
    The other is their mean, which represents the draft.
    """

    model: OpenWeights
    prompt: Prompt = field(default_factory=validation_prompt)
    layers: tuple[int, ...] = ()
    """Layers whose states are concatenated, numbered as in :meth:`~climassay.models.contract.OpenWeights.harvest`; by
    default one layer at :data:`DEFAULT_DEPTH`."""
    store: ActivationStore | None = None
    """Cache of hidden states; None for no cache."""
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
        ).with_feature_models(model=self.model)

    def check(self, provenance: Provenance) -> None:
        """See :class:`FeatureReader`."""
        provenance.check("validator", model=self.model)
        check_prompt(provenance, self.prompt)

    def read(self, drafts: Sequence[Draft], *, on_read: CountCallback | None = None) -> DraftFeatures:
        """Compute the difference and the mean of the states of the two options, each [drafts, layers * width]."""
        requests = [validation_request(draft, self.prompt, self.subject) for draft in drafts]
        result = harvest(self.model, requests, layers=self.layers, store=self.store, on_progress=on_read)
        states = result.states.astype(np.float64)
        n_drafts = len(drafts)
        contrast = (states[:, 0] - states[:, 1]).reshape(n_drafts, -1) if n_drafts else np.zeros((0, 0))
        mean = states.mean(axis=1).reshape(n_drafts, -1) if n_drafts else np.zeros((0, 0))
        return DraftFeatures((contrast, mean), result.failed)


def draft_vectors(drafts: Sequence[Draft], encoder: Encoder) -> NDArray[np.float32]:
    """Return embeddings of question and answer for clustering by topic: unit vectors, shape [drafts, width]."""
    return encoder.encode([f"{draft.wording.question} {draft.wording.answer}" for draft in drafts])
