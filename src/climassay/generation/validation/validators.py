"""Who says whether a draft is valid: the protocol, its kinds, and the step of the line that decides with one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Decision, Draft, Subject
from climassay.generation.validation.calibrator import Calibrator, FloatArray
from climassay.generation.validation.head import ValidatorHead
from climassay.generation.validation.prompting import content_free_request, validation_prompt, validation_request
from climassay.generation.validation.reading import Reader, StateReader, TextReader
from climassay.generation.validation.threshold import Threshold
from climassay.learning import ActivationStore
from climassay.models.calibration import PLACEHOLDERS, content_free_correction, option_probabilities
from climassay.models.contract import Encoder, OpenWeights, OptionScorer, OptionScores
from climassay.models.profiles import profile_of
from climassay.prompts import Prompt
from climassay.questions import KINDS

REASON = "invalid by the validator"
"""Of the decision that rejects a draft."""
DEFAULT_THRESHOLD = 0.5
Progress = Callable[[int], None]


@runtime_checkable
class Validator(Protocol):
    """Anything that gives a draft a probability of being valid."""

    @property
    def name(self) -> str:
        """For decisions and reports."""

    @property
    def threshold(self) -> Threshold | None:
        """From which P(valid) on a draft is kept; None where none was chosen on labels."""

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """P(valid) of each draft, in order; None where it failed or the validator does not know the kind.

        Args:
            drafts: Any number, all with wording.
            on_judged: Called with the number of drafts judged since the last call.
        """


def validate(
    drafts: Sequence[Draft],
    validator: Validator,
    threshold: float | None = None,
    *,
    on_judged: Progress | None = None,
) -> list[Draft]:
    """Let a validator decide on all drafts that are still usable; the others stay as they are.

    Args:
        drafts: Any number.
        validator: Who decides.
        threshold: Least P(valid) that is accepted; by default the validator's own, else one half.
        on_judged: Called with the number of drafts judged since the last call.

    Returns:
        The drafts in their order, with a decision of the step ``validate`` on each usable one.

    Raises:
        InputError: The threshold is no probability.
    """
    if isinstance(validator, ByKind):
        return validator.validate(drafts, threshold, on_judged=on_judged)
    if threshold is None:
        threshold = DEFAULT_THRESHOLD if validator.threshold is None else validator.threshold.value
    if not 0 <= threshold <= 1:
        raise InputError(f"The threshold of a validator is {threshold}: give a probability, for example 0.5.")
    places = [place for place, draft in enumerate(drafts) if draft.usable]
    judged = validator.judge([drafts[place] for place in places], on_judged=on_judged)
    decided = list(drafts)
    for place, probability in zip(places, judged, strict=True):
        decided[place] = drafts[place].decided(_decision(validator.name, probability, threshold))
    return decided


def _decision(name: str, probability: float | None, threshold: float) -> Decision:
    if probability is None:
        return Decision("validate", name, None, detail="The validator gave no probability for this question.")
    accepted = probability >= threshold
    detail = f"P(valid) is {probability:.3f}, wanted is at least {threshold:.3f}."
    return Decision("validate", name, accepted, "" if accepted else REASON, detail, probability)


@dataclass(frozen=True)
class HeadValidator:
    """A trained head on what a reader sees: the same for features of the text and for hidden states."""

    name: str
    head: ValidatorHead
    reader: Reader

    @property
    def threshold(self) -> Threshold | None:
        """The one chosen in training."""
        return self.head.threshold

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """See :class:`Validator`."""
        known = [place for place, draft in enumerate(drafts) if draft.kind in self.head.source.kinds]
        found: list[float | None] = [None] * len(drafts)
        if not known:
            return found
        read = self.reader.read([drafts[place] for place in known], on_read=on_judged)
        given = self.head.probabilities(np.concatenate(read.blocks, axis=1))
        for number, (place, probability) in enumerate(zip(known, given.tolist(), strict=True)):
            found[place] = None if number in read.failed else probability
        return found


class FeatureValidator(HeadValidator):
    """Reads vectors of question, answer and context and the words they share; needs no language model."""

    def __init__(self, head: ValidatorHead, encoder: Encoder, *, name: str = "features") -> None:
        """Prepare; nothing is encoded yet.

        Raises:
            InputError: Another encoder than the head's.
        """
        _check_same("encoder", head, encoder.name, encoder.fingerprint)
        super().__init__(name, head, TextReader(encoder))


class ProbeValidator(HeadValidator):
    """Reads the hidden states of a model that is made to answer VALID and INVALID."""

    def __init__(
        self,
        head: ValidatorHead,
        model: OpenWeights,
        *,
        prompt: Prompt | None = None,
        store: ActivationStore | None = None,
        name: str = "probe",
    ) -> None:
        """Prepare; nothing is computed yet.

        Args:
            head: What was trained.
            model: The model it was trained on.
            prompt: The template it was trained with; the built-in one by default.
            store: Where hidden states are kept.
            name: For decisions.

        Raises:
            InputError: Another model or template than the head's.
        """
        _check_same("model", head, model.name, model.fingerprint)
        template = prompt or validation_prompt()
        if template.sha256 != head.source.template_sha256:
            raise InputError(
                f"The validator {name} was trained with another text of the prompt {template.name}: give that one, or "
                "train it again."
            )
        reader = StateReader(model, template, head.source.layers, store, head.source.subject)
        super().__init__(name, head, reader)


def _check_same(kind: str, head: ValidatorHead, name: str, fingerprint: str) -> None:
    source = head.source
    if fingerprint != source.fingerprint:
        raise InputError(
            f"This validator was trained on the {kind} {source.model} ({source.fingerprint[:12]}) and cannot read "
            f"{name} ({fingerprint[:12]}): the weights or the number format (--dtype) differ; use that one, or train a "
            "validator on this one."
        )


@dataclass(frozen=True)
class PromptedValidator:
    """A model asked for VALID or INVALID (ClimaQA, appendix A.5.2); a fine-tuned one is asked the same way."""

    model: OptionScorer
    prompt: Prompt = field(default_factory=validation_prompt)
    subject: Subject = field(default_factory=Subject)
    content_free: bool | None = None
    """Take out what the model prefers where there is no content (:mod:`climassay.models.calibration`);
    by default as the model's profile says. Fine-tuned models are asked without: for them the preference is what the
    labels taught."""
    calibrator: Calibrator | None = None
    """From log-odds to P(valid), fitted on labels; without one they are the model's own."""
    threshold: Threshold | None = None
    kinds: tuple[str, ...] = KINDS
    """What it judges."""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"prompted:{self.model.name}")

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """See :class:`Validator`."""
        scores = self.log_odds(drafts, on_judged=on_judged)
        given = [place for place, score in enumerate(scores) if score is not None]
        values = np.array([scores[place] for place in given], dtype=np.float64)
        found: list[float | None] = [None] * len(drafts)
        for place, probability in zip(given, self._probabilities(values).tolist(), strict=True):
            found[place] = probability
        return found

    def log_odds(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """Of VALID against INVALID, before any calibration on labels; None where the model failed."""
        places = [place for place, draft in enumerate(drafts) if draft.kind in self.kinds]
        requests = [validation_request(drafts[place], self.prompt, self.subject) for place in places]

        def tell(_: int, __: OptionScores) -> None:
            if on_judged is not None:
                on_judged(1)

        try:
            scores = self.model.option_logprobs(requests, on_result=tell) if requests else []
            corrections = self._corrections([drafts[place] for place in places])
        except ModelError as error:
            # The line goes on without a validator's word; what could not be asked is decided by nobody.
            scores = [OptionScores.failed(str(error)) for _ in places]
            corrections = {}
        found: list[float | None] = [None] * len(drafts)
        for place, score in zip(places, scores, strict=True):
            if score.error is None:
                valid, invalid = option_probabilities(score, corrections.get(_shape(drafts[place])))
                found[place] = float(np.log(max(valid, 1e-300)) - np.log(max(invalid, 1e-300)))
        return found

    def _corrections(self, drafts: Sequence[Draft]) -> Mapping[tuple[str, int], tuple[float, ...] | None]:
        """What the model answers without content, for each shape that a prompt can have."""
        if not (profile_of(self.model).calibrated if self.content_free is None else self.content_free):
            return {}
        shapes = dict.fromkeys(_shape(draft) for draft in drafts)
        return {
            (kind, options): content_free_correction(
                self.model,
                lambda text, kind=kind, options=options: content_free_request(  # type: ignore[misc]
                    kind, options, text, self.prompt, self.subject
                ),
                PLACEHOLDERS,
            )
            for kind, options in shapes
        }

    def _probabilities(self, log_odds: FloatArray) -> FloatArray:
        from scipy.special import expit

        given = expit(log_odds) if self.calibrator is None else self.calibrator(log_odds)
        return np.asarray(given, dtype=np.float64)


def _shape(draft: Draft) -> tuple[str, int]:
    return draft.kind, len(draft.wording.options)


@dataclass(frozen=True)
class ByKind:
    """One validator for each kind of question, as in the paper; kinds without one are judged by nobody."""

    validators: Mapping[str, Validator]

    @property
    def name(self) -> str:
        """The names of all."""
        return ", ".join(f"{kind}={one.name}" for kind, one in self.validators.items())

    @property
    def threshold(self) -> Threshold | None:
        """None: each has its own, which :meth:`validate` takes."""
        return None

    def judge(self, drafts: Sequence[Draft], *, on_judged: Progress | None = None) -> list[float | None]:
        """See :class:`Validator`."""
        found: list[float | None] = [None] * len(drafts)
        for kind, validator in self.validators.items():
            places = [place for place, draft in enumerate(drafts) if draft.kind == kind]
            given = validator.judge([drafts[place] for place in places], on_judged=on_judged) if places else []
            for place, probability in zip(places, given, strict=True):
                found[place] = probability
        return found

    def validate(
        self, drafts: Sequence[Draft], threshold: float | None = None, *, on_judged: Progress | None = None
    ) -> list[Draft]:
        """As :func:`validate`, each kind by its own validator and threshold."""
        decided = list(drafts)
        for kind, validator in self.validators.items():
            places = [place for place, draft in enumerate(drafts) if draft.kind == kind]
            given = validate([drafts[place] for place in places], validator, threshold, on_judged=on_judged)
            for place, draft in zip(places, given, strict=True):
                decided[place] = draft
        return decided
