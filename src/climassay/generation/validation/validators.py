"""Validators: models that give each draft a probability of being valid, and the step that decides by it."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol, Self

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Decision, Draft, Subject, apply_where
from climassay.generation.validation.labels import (
    LabelledDraft,
    ValidatorScores,
    labels_array,
    score_validator,
    source_groups,
)
from climassay.generation.validation.readers import (
    CountCallback,
    FeatureReader,
    FloatArray,
    check_prompt,
    validation_prompt,
    validation_request,
)
from climassay.learning import Calibrator, LinearModel, ModelFormat, Provenance, SavedModel, Threshold, check_array
from climassay.models.contract import OptionScorer, OptionScores
from climassay.prompts import Prompt
from climassay.questions import KINDS

REASON = "invalid by the validator"
"""Reason for rejection in the decisions of validators."""
DEFAULT_THRESHOLD = 0.5


class Validator(Protocol):
    """Interface of validators, which estimate the probability that a draft is valid."""

    @property
    def name(self) -> str:
        """Name of the validator, recorded in its decisions."""

    @property
    def threshold(self) -> Threshold | None:
        """Minimum P(valid) of an accepted draft, chosen in training; None if no threshold was chosen."""

    def judge(self, drafts: Sequence[Draft], *, on_judged: CountCallback | None = None) -> list[float | None]:
        """Return P(valid) of each draft; None if the model failed or the validator does not judge drafts of its kind.

        ``on_judged`` is called with the number of drafts judged since its last call.
        """

    def predict_proba(self, drafts: Sequence[Draft], *, on_judged: CountCallback | None = None) -> FloatArray:
        """Return P(invalid) and P(valid), shape [drafts, 2]; NaN for a draft that could not be judged."""
        valid = np.array(self.judge(drafts, on_judged=on_judged), dtype=np.float64)
        return np.stack([1 - valid, valid], axis=1)

    def score(
        self, examples: Sequence[LabelledDraft], *, seed: int = 0, on_judged: CountCallback | None = None
    ) -> ValidatorScores:
        """Score the validator on labelled drafts on which it was not trained.

        Raises:
            InputError: All drafts that could be judged have the same label.
        """
        drafts = [example.draft for example in examples]
        probabilities = self.predict_proba(drafts, on_judged=on_judged)[:, 1]
        return score_validator(labels_array(examples), probabilities, source_groups(drafts), seed=seed)


def validate(
    drafts: Sequence[Draft],
    validator: Validator,
    threshold: float | None = None,
    *,
    on_judged: CountCallback | None = None,
) -> list[Draft]:
    """Add a validator's decision to each usable draft; other drafts are unchanged.

    Args:
        drafts: Drafts of any kind.
        validator: Validator that decides.
        threshold: Minimum P(valid) of an accepted draft; by default the validator's own, else 0.5.
        on_judged: Called with the number of drafts judged since its last call.

    Returns:
        All drafts in the same order.

    Raises:
        InputError: The threshold is not a probability.
    """
    if isinstance(validator, ValidatorsByKind):
        results = list(drafts)
        for kind, kind_validator in validator.validators.items():
            step = partial(validate, validator=kind_validator, threshold=threshold, on_judged=on_judged)
            results = apply_where(lambda draft, kind=kind: draft.kind == kind, step, results)  # type: ignore[misc]
        return results
    if threshold is None:
        threshold = DEFAULT_THRESHOLD if validator.threshold is None else validator.threshold.value
    if not 0 <= threshold <= 1:
        raise InputError(f"The threshold of a validator is {threshold}: give a probability, for example 0.5.")

    def decide(p_valid: float | None) -> Decision:
        if p_valid is None:
            detail = "The validator gave no probability for this question."
            return Decision("validate", validator.name, None, detail=detail)
        detail = f"P(valid) is {p_valid:.3f}; the threshold is {threshold:.3f}."
        reason = "" if p_valid >= threshold else REASON
        return Decision("validate", validator.name, not reason, reason, detail, p_valid)

    def judge(usable_drafts: Sequence[Draft]) -> list[Draft]:
        probabilities = validator.judge(usable_drafts, on_judged=on_judged)
        pairs = zip(usable_drafts, probabilities, strict=True)
        return [draft.with_decisions(decide(p_valid)) for draft, p_valid in pairs]

    return apply_where(lambda draft: draft.usable, judge, drafts)


@dataclass(frozen=True, slots=True)
class TrainingRecord:
    """Provenance, calibration and threshold of a validator that was trained on experts' labels."""

    provenance: Provenance
    """Training data and model. Its ``settings`` are ``kind`` (features, probe or prompted), ``kinds`` (of questions in
    the training data), ``subject`` (field of science named in the prompt, if any) and ``invalid`` (number of invalid
    labels)."""
    calibrator: Calibrator | None
    """Calibrator fitted on held-out labels; None if there were too few."""
    threshold: Threshold | None
    """Threshold that reaches the requested precision; None if none was requested, or it cannot be reached."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of questions that the validator judges, namely those in its training data."""
        return tuple(self.provenance.settings["kinds"])

    @property
    def subject(self) -> Subject:
        """Field of science in the model's prompt."""
        return Subject(**self.provenance.settings.get("subject", {}))

    @classmethod
    def parse(cls, data: Mapping[str, Any]) -> "TrainingRecord":
        """Restore a record from a mapping that ``asdict`` produced.

        Raises:
            KeyError, TypeError, ValueError: A value is missing or of the wrong type.
        """
        from pydantic import TypeAdapter

        fields = {name: data[name] for name in ("calibrator", "threshold")}
        provenance = Provenance.read(data["provenance"])
        record = TypeAdapter(cls).validate_python({"provenance": provenance, **fields})
        if not record.kinds or record.subject is None:
            raise ValueError("it judges no kind of questions")
        return record


@dataclass(frozen=True, eq=False)
class TrainedValidator(SavedModel, Validator):
    """Validator that is a calibrated logistic regression on features of the text or on a model's hidden states."""

    FORMAT = ModelFormat("climassay-validator", 1, "validator", "climassay generate validate train")

    model: LinearModel
    """Linear model of the classes invalid and valid, in this order."""
    record: TrainingRecord
    reader: FeatureReader | None = None
    """Reader that computes the features. The reader is not saved and must be set after loading
    (:meth:`with_reader`)."""
    name: str = "validator"

    @property
    def threshold(self) -> Threshold | None:
        """Threshold chosen in training."""
        return self.record.threshold

    def with_reader(self, reader: FeatureReader) -> "TrainedValidator":
        """Return a copy of the validator that computes features with the given reader.

        Raises:
            InputError: The reader uses another encoder, model or prompt than in training.
        """
        reader.check(self.record.provenance)
        return replace(self, reader=reader)

    def judge(self, drafts: Sequence[Draft], *, on_judged: CountCallback | None = None) -> list[float | None]:
        """Return P(valid) of each draft; see :meth:`Validator.judge`."""
        if self.reader is None:
            raise InputError("This validator was loaded without its encoder or model: load it together with that.")
        indices = [index for index, draft in enumerate(drafts) if draft.kind in self.record.kinds]
        results: list[float | None] = [None] * len(drafts)
        if not indices:
            return results
        features = self.reader.read([drafts[index] for index in indices], on_read=on_judged)
        probabilities = _to_probabilities(self.record.calibrator, self.model.log_odds(features.blocks))
        for position, index in enumerate(indices):
            results[index] = None if position in features.failed else probabilities[position]
        return results

    def contents(self) -> tuple[dict[str, FloatArray], dict[str, Any]]:
        """Return the arrays and metadata to save; see :meth:`SavedModel.contents`."""
        return {"weights": self.model.weights, "bias": self.model.bias}, asdict(self.record)

    @classmethod
    def build(cls, facts: dict[str, Any], arrays: dict[str, FloatArray]) -> Self:
        """Restore a validator from saved metadata and arrays, without its reader; see :meth:`SavedModel.build`."""
        shapes = {"weights": (None, 2), "bias": (2,)}
        weights_and_bias = (check_array(name, arrays[name], shape) for name, shape in shapes.items())
        return cls(LinearModel("nominal", *weights_and_bias), TrainingRecord.parse(facts))

    @classmethod
    def load(cls, path: Path) -> Self:
        """Load a validator from a file and name it after the file; see :meth:`SavedModel.load`."""
        return replace(super().load(path), name=path.name)


@dataclass(frozen=True)
class PromptedValidator(Validator):
    """Validator that prompts a model, fine-tuned or not, to answer VALID or INVALID (ClimaQA, appendix A.5.2)."""

    model: OptionScorer
    prompt: Prompt = field(default_factory=validation_prompt)
    subject: Subject = field(default_factory=Subject)
    record: TrainingRecord | None = None
    """Training record of a fine-tuned model. Without it the probabilities are uncalibrated, and drafts of all kinds are
    judged."""
    name: str = ""

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", f"prompted:{self.model.name}")

    @classmethod
    def fine_tuned(cls, model: OptionScorer, prompt: Prompt, record: TrainingRecord, name: str) -> "PromptedValidator":
        """Create the validator of a fine-tuned model from its training record.

        Raises:
            InputError: The text of the prompt differs from that in training.
        """
        check_prompt(record.provenance, prompt)
        return cls(model, prompt, record.subject, record, name)

    @property
    def threshold(self) -> Threshold | None:
        """Threshold chosen in training."""
        return None if self.record is None else self.record.threshold

    def judge(self, drafts: Sequence[Draft], *, on_judged: CountCallback | None = None) -> list[float | None]:
        """Return P(valid) of each draft; see :meth:`Validator.judge`."""
        log_odds = self.log_odds(drafts, on_judged=on_judged)
        calibrator = None if self.record is None else self.record.calibrator
        probabilities = iter(_to_probabilities(calibrator, [value for value in log_odds if value is not None]))
        return [None if value is None else next(probabilities) for value in log_odds]

    def log_odds(self, drafts: Sequence[Draft], *, on_judged: CountCallback | None = None) -> list[float | None]:
        """Return the uncalibrated log-odds of VALID against INVALID for each draft.

        None if the model failed, or was not trained on drafts of this kind.
        """
        kinds = KINDS if self.record is None else self.record.kinds
        indices = [index for index, draft in enumerate(drafts) if draft.kind in kinds]
        requests = [validation_request(drafts[index], self.prompt, self.subject) for index in indices]

        def on_result(_index: int, _scores: OptionScores) -> None:
            if on_judged is not None:
                on_judged(1)

        try:
            scores = self.model.option_logprobs(requests, on_result=on_result) if requests else []
        except ModelError as error:
            # The pipeline continues without the validator; these drafts stay undecided.
            scores = [OptionScores.failed(str(error)) for _ in indices]
        results: list[float | None] = [None] * len(drafts)
        for index, score in zip(indices, scores, strict=True):
            if score.error is None:
                valid_logprob, invalid_logprob = score.logprobs
                results[index] = valid_logprob - invalid_logprob
        return results


def _to_probabilities(calibrator: Calibrator | None, log_odds: FloatArray | Sequence[float]) -> list[float]:
    from scipy.special import expit

    values = np.asarray(log_odds, dtype=np.float64)
    return [float(value) for value in (expit(values) if calibrator is None else calibrator(values))]


@dataclass(frozen=True)
class ValidatorsByKind(Validator):
    """Combination of validators, one for each kind of question as in ClimaQA; other kinds are not judged."""

    validators: Mapping[str, Validator]

    @property
    def name(self) -> str:
        """Names of all validators, each with its kind."""
        return ", ".join(f"{kind}={validator.name}" for kind, validator in self.validators.items())

    @property
    def threshold(self) -> Threshold | None:
        """Always None: :func:`validate` uses the threshold of each validator."""
        return None

    def judge(self, drafts: Sequence[Draft], *, on_judged: CountCallback | None = None) -> list[float | None]:
        """Return P(valid) of each draft; see :meth:`Validator.judge`."""
        results: list[float | None] = [None] * len(drafts)
        for kind, validator in self.validators.items():
            if indices := [index for index, draft in enumerate(drafts) if draft.kind == kind]:
                probabilities = validator.judge([drafts[index] for index in indices], on_judged=on_judged)
                for index, probability in zip(indices, probabilities, strict=True):
                    results[index] = probability
        return results
