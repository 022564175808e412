"""Training validators: on features, or by fine-tuning a model, with scores on held-out passages."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Subject
from climassay.generation.validation.labels import (
    ACCEPTED_SHARES,
    RESAMPLES,
    LabelledDraft,
    LabelSet,
    ValidatorScores,
    check_labels,
    chosen_threshold,
    labels_array,
    precision_at,
    score_validator,
    source_groups,
)
from climassay.generation.validation.loading import prompted_facts, write_training_record
from climassay.generation.validation.readers import (
    ANSWERS,
    CountCallback,
    FeatureReader,
    validation_prompt,
    validation_request,
)
from climassay.generation.validation.validators import (
    PromptedValidator,
    TrainedValidator,
    TrainingRecord,
    Validator,
)
from climassay.learning import (
    Calibrator,
    LinearModel,
    Provenance,
    auroc_estimate,
    fit_calibrator,
    fit_path,
    group_folds,
)
from climassay.learning.calibration import cross_fitted
from climassay.learning.splits import FOLDS, held_out, split_groups, splits_of
from climassay.models.contract import OptionScorer
from climassay.models.openai.client import chat_messages
from climassay.models.openai.finetuning import FineTuningState, fine_tune, write_state
from climassay.prompts import Prompt
from climassay.tuning import ChatData, ChatExample, TuningConfig

if TYPE_CHECKING:
    from climassay.tuning import TuningProgress

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

V = TypeVar("V", bound=Validator)

REGULARISATIONS = (0.01, 0.1, 1.0, 10.0)
"""Candidate values of C, the prior variance of an item's log-odds, which all blocks of features share."""
VALIDATION_SHARE = 0.15
"""Share of the training labels that is held out for early stopping of an adapter."""


@dataclass(frozen=True, slots=True, eq=False)
class Training(Generic[V]):
    """Trained validator with its held-out scores."""

    validator: V
    record: TrainingRecord
    scores: ValidatorScores
    """Scores on held-out labels."""
    probabilities: FloatArray
    """P(valid) of the held-out drafts."""
    refusal: str | None
    """Reason why there is no threshold for the requested precision."""
    choices: tuple[tuple[float, float], ...] = ()
    """Pairs of C and its log loss on held-out items in nats, best first."""
    left_out: int = 0
    """Number of labelled drafts that could not be read."""

    def facts(self) -> dict[str, Any]:
        """Return the training's results as JSON-serialisable values, without the ids of the training items."""
        return {
            "source": replace(self.record.provenance, trained_on=()),
            **asdict(self.scores),
            "choices": [{"regularisation": C, "log_loss": loss} for C, loss in self.choices],
            "threshold": self.record.threshold,
            "refusal": self.refusal,
            "left_out": self.left_out,
        }


def train_validator(
    labels: LabelSet,
    reader: FeatureReader,
    *,
    precision: float | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    on_read: CountCallback | None = None,
    on_fold: CountCallback | None = None,
) -> Training[TrainedValidator]:
    """Train a logistic regression on a reader's features; an encoder's features take seconds on a CPU.

    Args:
        labels: Labelled drafts.
        reader: Reader that computes the features.
        precision: Requested share of valid drafts among the accepted ones; None chooses no threshold.
        folds: Number of cross-validation folds.
        seed: Seed of the folds.
        on_read: Called with the number of drafts read since its last call.
        on_fold: Called with 1 after each fold.

    Raises:
        InputError: There are too few labels.
        ModelError: The model fails, or no draft can be read.
    """
    features = reader.read([example.draft for example in labels.drafts], on_read=on_read)
    succeeded = features.succeeded
    if not succeeded.any():
        raise ModelError(f"No labelled question could be read: {next(iter(features.failed.values()))}")
    examples = tuple(example for example, is_read in zip(labels.drafts, succeeded, strict=True) if is_read)
    blocks = [block[succeeded] for block in features.blocks]
    valid, groups = labels_array(examples), source_groups([example.draft for example in examples])
    probabilities, split = cross_validated(blocks, valid, groups, folds=folds, seed=seed, on_fold=on_fold)
    scores = score_validator(valid, probabilities, groups, folds=split, seed=seed)
    model, calibrator, choices = fit_calibrated(blocks, valid, groups, folds=folds, seed=seed)
    threshold, refusal = chosen_threshold(precision, valid, probabilities)
    source = replace(reader.provenance, regularisation=choices[0][0])
    record = TrainingRecord(_training_provenance(source, labels, examples, scores, seed), calibrator, threshold)
    validator = TrainedValidator(model, record, reader)
    return Training(validator, record, scores, probabilities, refusal, choices, int((~succeeded).sum()))


def _training_provenance(
    source: Provenance, labels: LabelSet, examples: Sequence[LabelledDraft], scores: ValidatorScores, seed: int
) -> Provenance:
    """Return the provenance of a reader or model with the training data and scores added."""
    kinds = list(dict.fromkeys(example.draft.kind for example in examples))
    return replace(
        source,
        data=labels.name,
        data_sha256=labels.sha256,
        items=len(examples),
        groups=len(np.unique(source_groups([example.draft for example in examples]))),
        seed=seed,
        measured=scores.figures,
        trained_on=tuple(example.draft.id for example in examples),
        settings={**source.settings, "invalid": sum(not example.valid for example in examples), "kinds": kinds},
    )


def fit_calibrated(
    blocks: Sequence[FloatArray], valid: IntArray, groups: IntArray, *, folds: int = FOLDS, seed: int = 0
) -> tuple[LinearModel, Calibrator, tuple[tuple[float, float], ...]]:
    """Choose C by the log loss on held-out groups, fit the calibrator on held-out scores, and refit on all items.

    Args:
        blocks: Features, shape [items, features] each.
        valid: Labels 0 or 1, shape [items].
        groups: Group of each item, shape [items]; no group is divided between folds.
        folds: Number of folds.
        seed: Seed of the folds.

    Returns:
        Model, calibrator, and pairs of C and its log loss, best first.
    """
    check_labels(valid)
    # The blocks share the prior variance of one block.
    path = [C / len(blocks) for C in REGULARISATIONS]

    def fit(train: IntArray) -> list[LinearModel]:
        """Fit one model for each C; no model if all labels are the same."""
        has_both = len(np.unique(valid[train])) > 1
        return fit_path([block[train] for block in blocks], valid[train], 2, path) if has_both else []

    def predict(models: list[LinearModel], test: IntArray) -> FloatArray:
        if not models:
            train_labels = np.delete(valid, test)
            n_valid = train_labels.sum()
            return np.full((len(test), len(path)), np.log((n_valid + 1) / (len(train_labels) - n_valid + 1)))
        return np.stack([model.log_odds([block[test] for block in blocks]) for model in models], axis=1)

    odds = held_out(splits_of(group_folds(groups, folds, seed=seed, labels=valid)), fit, predict, len(valid))
    losses = np.logaddexp(0, np.where(valid[:, None] == 1, -odds, odds)).mean(axis=0)
    order = np.argsort(losses, kind="stable")
    model = fit_path(blocks, valid, 2, [path[order[0]]])[0]
    choices = tuple((REGULARISATIONS[index], float(losses[index])) for index in order)
    return model, fit_calibrator(odds[:, order[0]], valid), choices


def cross_validated(
    blocks: Sequence[FloatArray],
    valid: IntArray,
    groups: IntArray,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    on_fold: CountCallback | None = None,
) -> tuple[FloatArray, IntArray]:
    """Return P(valid) of each item by :func:`fit_calibrated` on the other folds, including its choice of C.

    The arguments are those of :func:`fit_calibrated`; ``on_fold`` gets 1 after each fold.

    Returns:
        Probabilities and folds, both of shape [items].
    """
    check_labels(valid)
    split = group_folds(groups, folds, seed=seed, labels=valid)

    def predict(models: tuple[LinearModel, Calibrator, Any], test: IntArray) -> FloatArray:
        if on_fold is not None:
            on_fold(1)
        return models[1](models[0].log_odds([block[test] for block in blocks]))

    def fit(train: IntArray) -> tuple[LinearModel, Calibrator, Any]:
        train_blocks = [block[train] for block in blocks]
        return fit_calibrated(train_blocks, valid[train], groups[train], folds=folds, seed=seed + 1)

    return held_out(splits_of(split), fit, predict, len(valid)), split


def chat_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> tuple[ChatExample, ...]:
    """Return one chat per labelled draft: the validator's request, answered with the label."""
    chats = []
    for example in labelled:
        request = validation_request(example.draft, prompt, subject)
        chats.append(ChatExample(request.messages, request.assistant_prefix, ANSWERS[0 if example.valid else 1]))
    return tuple(chats)


def api_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> bytes:
    """Return the chats as JSON Lines for a server's fine-tuning job."""
    lines = []
    for example in chat_examples(labelled, prompt, subject):
        messages = chat_messages(example.messages)
        answer = {"role": "assistant", "content": example.answer.strip()}
        lines.append(json.dumps({"messages": [*messages, answer]}, ensure_ascii=False))
    return ("\n".join(lines) + "\n").encode()


def train_adapter(
    labels: LabelSet,
    model: str,
    folder: Path,
    config: TuningConfig,
    *,
    prompt: Prompt | None = None,
    subject: Subject | None = None,
    hold_out: float = 0.25,
    precision: float | None = None,
    seed: int = 0,
    replace_other: bool = False,
    on_progress: Callable[["TuningProgress"], None] | None = None,
) -> Training[PromptedValidator]:
    """Fine-tune a local model with LoRA to answer VALID or INVALID, or resume an interrupted training.

    Args:
        labels: Labelled drafts.
        model: Name of the local model.
        folder: Folder of the adapter.
        config: Settings of the training.
        prompt: Template; the built-in one if None.
        subject: Science of the questions.
        hold_out: Share (below 1) or number of labels for scores and calibration.
        precision: Requested share of valid drafts among the accepted ones; None chooses no threshold.
        seed: Seed of the splits.
        replace_other: Delete another training in the folder.
        on_progress: Callback of :func:`climassay.tuning.train`.

    Raises:
        InputError: There are too few labels, or the folder holds another training.
        ModelError: The model cannot be loaded or trained, or none of the held-out questions could be judged.
    """
    from climassay.models import load_model
    from climassay.tuning import train

    template, science = prompt or validation_prompt(), subject or Subject()
    training, test = split_labels(labels, hold_out, seed=seed)
    groups = source_groups([example.draft for example in training]).tolist()
    training_part, monitored = split_groups(training, groups, VALIDATION_SHARE, seed=seed)
    data, validation = (
        ChatData(name, chat_examples(part, template, science))
        for name, part in ((labels.name, training_part), (f"{labels.name}, held out", monitored))
    )
    result = train(model, data, validation, config, folder, replace_other=replace_other, on_progress=on_progress)
    loaded = load_model(result.model)
    if not isinstance(loaded, OptionScorer):
        raise ModelError(f"{result.model} gives no probabilities of answers.")
    validator = PromptedValidator(loaded, template, science, content_free=False, name=f"adapter:{result.name}")
    results = calibrate_prompted(validator, labels, training, test, precision=precision, seed=seed)
    write_training_record(results.record, result.folder)
    return results


def train_api(
    labels: LabelSet,
    model: str,
    state: Path,
    load: Callable[[str], OptionScorer],
    *,
    prompt: Prompt | None = None,
    subject: Subject | None = None,
    hold_out: float = 0.25,
    precision: float | None = None,
    seed: int = 0,
    on_status: Callable[[FineTuningState], None] | None = None,
    **options: Any,
) -> Training[PromptedValidator]:
    """Fine-tune a model on a server, or wait for a job that an interrupted call started.

    Args:
        labels: Labelled drafts.
        model: Name of the server's model.
        state: File with the state of the job, and afterwards the training record.
        load: Function that loads the fine-tuned model by its name.
        prompt: Template; the built-in one if None.
        subject: Science of the questions.
        hold_out: Share (below 1) or number of labels for scores and calibration.
        precision: Requested share of valid drafts among the accepted ones; None chooses no threshold.
        seed: Seed of the splits.
        on_status: Called with every new state of the job.
        options: Options of :func:`climassay.models.openai.finetuning.fine_tune`.

    Raises:
        InputError: There are too few labels, or the file holds another fine-tuning.
        ModelError: The server refuses, the job failed, or none of the held-out questions could be judged.
    """
    template, science = prompt or validation_prompt(), subject or Subject()
    training, test = split_labels(labels, hold_out, seed=seed)
    data = api_examples(training, template, science)
    job = fine_tune(model, data, state, seed=seed, on_status=on_status, **options)
    validator = PromptedValidator(load(job.model_name), template, science, content_free=False, name=f"api:{job.model}")
    result = calibrate_prompted(validator, labels, training, test, precision=precision, seed=seed)
    write_state(replace(job, facts={"validator": prompted_facts(result.record)}), state)
    return result


def split_labels(
    labels: LabelSet, hold_out: float, *, seed: int = 0
) -> tuple[tuple[LabelledDraft, ...], tuple[LabelledDraft, ...]]:
    """Split labelled drafts into a training and a test set, without common passages.

    Both sets have similar shares of valid drafts.

    Args:
        labels: Labelled drafts.
        hold_out: Share (below 1) or number of drafts in the test set.
        seed: Seed of the split.

    Raises:
        InputError: A set would be empty or have too few labels of a class.
    """
    share = hold_out if hold_out < 1 else hold_out / len(labels.drafts)
    if not 0 < share < 1:
        raise InputError(f"{hold_out:g} labels cannot be held out of {len(labels.drafts)}: give fewer, or a share.")
    valid, groups = labels_array(labels.drafts), source_groups([example.draft for example in labels.drafts])
    check_labels(valid)
    # Each of 20 stratified folds has its share of invalid drafts.
    parts = group_folds(groups, 20, seed=seed, labels=valid)
    folds = np.unique(parts)
    is_test = np.isin(parts, folds[: min(len(folds) - 1, max(1, round(share * len(folds))))])
    training = tuple(example for example, is_held in zip(labels.drafts, is_test, strict=True) if not is_held)
    test = tuple(example for example, is_held in zip(labels.drafts, is_test, strict=True) if is_held)
    for examples in (training, test):
        check_labels(labels_array(examples))
    return training, test


def calibrate_prompted(
    validator: PromptedValidator,
    labels: LabelSet,
    training: Sequence[LabelledDraft],
    test: Sequence[LabelledDraft],
    *,
    precision: float | None = None,
    seed: int = 0,
) -> Training[PromptedValidator]:
    """Calibrate a fine-tuned model on the test set, and score it by cross-fitted calibrators.

    Args:
        validator: The fine-tuned model.
        labels: All labels.
        training: Labelled drafts that the model was trained on.
        test: Labelled drafts that were held out.
        precision: Requested share of valid drafts among the accepted ones; None chooses no threshold.
        seed: Seed of folds and resampling.

    Raises:
        InputError: All drafts that could be judged have the same label.
        ModelError: None of the held-out questions could be judged.
    """
    log_odds = validator.log_odds([example.draft for example in test])
    judged = [(example, score) for example, score in zip(test, log_odds, strict=True) if score is not None]
    if not judged:
        raise ModelError(f"{validator.name} could not judge any of the {len(test)} held-out questions.")
    valid = labels_array([example for example, _ in judged])
    if not 0 < valid.sum() < len(valid):
        raise InputError("The held-out questions that could be judged are all valid or all invalid: hold out more.")
    scores = np.array([score for _, score in judged], dtype=np.float64)
    groups = source_groups([example.draft for example, _ in judged])
    probabilities = cross_fitted(scores, valid, group_folds(groups, seed=seed, labels=valid))
    result = score_validator(valid, probabilities, groups, seed=seed)
    # One model scored all drafts, so its scores are comparable across folds.
    auroc = auroc_estimate(valid, scores, groups=groups, resamples=RESAMPLES, seed=seed)
    precisions = (
        *result.precisions[: -len(ACCEPTED_SHARES)],
        *(precision_at(share, valid, scores) for share in ACCEPTED_SHARES),
    )
    result = replace(result, evaluation=replace(result.evaluation, auroc=auroc), precisions=precisions)
    threshold, refusal = chosen_threshold(precision, valid, probabilities)
    settings = {"kind": "prompted", "subject": asdict(validator.subject)}
    model, prompt = validator.model, validator.prompt
    source = Provenance(model=model.name, template=prompt.name, template_sha256=prompt.sha256, settings=settings)
    provenance = _training_provenance(source, labels, training, result, seed)
    record = TrainingRecord(provenance, fit_calibrator(scores, valid), threshold)
    calibrated = PromptedValidator.fine_tuned(model, prompt, record, validator.name)
    return Training(calibrated, record, result, probabilities, refusal)
