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
    choose_threshold,
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
from climassay.generation.validation.validators import PromptedValidator, TrainedValidator, TrainingRecord, Validator
from climassay.learning import (
    Calibrator,
    LinearModel,
    Provenance,
    auroc_estimate,
    fit_calibrator,
    fit_path,
    group_folds,
)
from climassay.learning.calibration import cross_fit
from climassay.learning.splits import FOLDS, cross_predict, iterate_splits, split_groups
from climassay.models.contract import OptionScorer
from climassay.models.openai.client import chat_messages
from climassay.models.openai.finetuning import FineTuningState, fine_tune, write_state
from climassay.models.provider import is_served
from climassay.models.servers import OPENAI, find_server
from climassay.prompts import Prompt
from climassay.tuning import ChatData, ChatExample, TuningConfig

if TYPE_CHECKING:
    from climassay.tuning import TuningProgress

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

V = TypeVar("V", bound=Validator)

REGULARISATIONS = (0.01, 0.1, 1.0, 10.0)
"""Candidate values of C, the prior variance of an item's log-odds. This variance is divided among the blocks of
features."""
VALIDATION_SHARE = 0.15
"""Proportion of the training labels that is held out for early stopping of an adapter."""


@dataclass(frozen=True, slots=True, eq=False)
class Training(Generic[V]):
    """Trained validator with its scores on held-out labels."""

    validator: V
    record: TrainingRecord
    scores: ValidatorScores
    """Scores on the held-out labels."""
    probabilities: FloatArray
    """P(valid) of the held-out drafts."""
    no_threshold_reason: str | None
    """Reason why the requested precision cannot be reached; None if it is reached, or none was requested."""
    regularisation_losses: tuple[tuple[float, float], ...] = ()
    """Pairs of the regularisation parameter C and its held-out log loss in nats, best first; empty if fine-tuned."""
    n_excluded: int = 0
    """Number of labelled drafts whose features could not be computed."""

    def to_dict(self) -> dict[str, Any]:
        """Return the results of the training as JSON-serialisable values, without the ids of the training items."""
        return {
            "source": replace(self.record.provenance, trained_on=()),
            **asdict(self.scores),
            "choices": [{"regularisation": C, "log_loss": loss} for C, loss in self.regularisation_losses],
            "threshold": self.record.threshold,
            "refusal": self.no_threshold_reason,
            "left_out": self.n_excluded,
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
    """Train a calibrated logistic regression on the features of labelled drafts.

    Args:
        labels: Labelled drafts.
        reader: Reader that computes the features.
        precision: Requested proportion of valid drafts among the accepted ones; None chooses no threshold.
        folds: Number of cross-validation folds.
        seed: Seed of the folds.
        on_read: Called with the number of drafts whose features were computed since its last call.
        on_fold: Called with 1 after each fold.

    Raises:
        InputError: There are too few labels.
        ModelError: The model fails, or the features of no draft can be computed.
    """
    features = reader.read([example.draft for example in labels.drafts], on_read=on_read)
    has_features = features.succeeded
    if not has_features.any():
        raise ModelError(f"No labelled question could be read: {next(iter(features.failed.values()))}")
    examples = tuple(example for example, is_read in zip(labels.drafts, has_features, strict=True) if is_read)
    blocks = [block[has_features] for block in features.blocks]
    valid, groups = labels_array(examples), source_groups([example.draft for example in examples])
    probabilities, item_folds = cross_validate(blocks, valid, groups, folds=folds, seed=seed, on_fold=on_fold)
    scores = score_validator(valid, probabilities, groups, folds=item_folds, seed=seed)
    model, calibrator, regularisation_losses = fit_calibrated(blocks, valid, groups, folds=folds, seed=seed)
    threshold, no_threshold_reason = choose_threshold(precision, valid, probabilities)
    source = replace(reader.provenance, regularisation=regularisation_losses[0][0])
    record = TrainingRecord(_training_provenance(source, labels, examples, scores, seed), calibrator, threshold)
    validator = TrainedValidator(model, record, reader)
    return Training(
        validator, record, scores, probabilities, no_threshold_reason, regularisation_losses, int((~has_features).sum())
    )


def _training_provenance(
    source: Provenance, labels: LabelSet, examples: Sequence[LabelledDraft], scores: ValidatorScores, seed: int
) -> Provenance:
    """Add the training data and the scores to the provenance of a reader or model."""
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
    """Fit a logistic regression whose C is chosen by cross-validation, and a calibrator of its held-out log-odds.

    Args:
        blocks: Blocks of features, each of shape [items, features].
        valid: Labels 0 or 1, shape [items].
        groups: Group of each item, shape [items]; a group is never divided between folds.
        folds: Number of folds.
        seed: Seed of the folds.

    Returns:
        The model fitted on all items, the calibrator, and pairs of C and its held-out log loss, best first.
    """
    check_labels(valid)
    # The blocks share the prior variance of one block.
    path = [C / len(blocks) for C in REGULARISATIONS]

    def fit(train: IntArray) -> list[LinearModel]:
        """Fit one model for each C; return [] if all labels are the same."""
        has_both_classes = len(np.unique(valid[train])) > 1
        return fit_path([block[train] for block in blocks], valid[train], 2, path) if has_both_classes else []

    def predict(models: list[LinearModel], test: IntArray) -> FloatArray:
        if not models:
            train_labels = np.delete(valid, test)
            n_valid = train_labels.sum()
            return np.full((len(test), len(path)), np.log((n_valid + 1) / (len(train_labels) - n_valid + 1)))
        return np.stack([model.log_odds([block[test] for block in blocks]) for model in models], axis=1)

    log_odds = cross_predict(
        iterate_splits(group_folds(groups, folds, seed=seed, labels=valid)), fit, predict, len(valid)
    )
    losses = np.logaddexp(0, np.where(valid[:, None] == 1, -log_odds, log_odds)).mean(axis=0)
    ranking = np.argsort(losses, kind="stable")
    model = fit_path(blocks, valid, 2, [path[ranking[0]]])[0]
    regularisation_losses = tuple((REGULARISATIONS[index], float(losses[index])) for index in ranking)
    return model, fit_calibrator(log_odds[:, ranking[0]], valid), regularisation_losses


def cross_validate(
    blocks: Sequence[FloatArray],
    valid: IntArray,
    groups: IntArray,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    on_fold: CountCallback | None = None,
) -> tuple[FloatArray, IntArray]:
    """Predict P(valid) of each item by a model fitted with :func:`fit_calibrated` on the other folds.

    C is chosen anew for each fold. The arguments are those of :func:`fit_calibrated`; ``on_fold`` is called with 1
    after each fold.

    Returns:
        Probabilities and fold of each item, both of shape [items].
    """
    check_labels(valid)
    item_folds = group_folds(groups, folds, seed=seed, labels=valid)

    def predict(models: tuple[LinearModel, Calibrator, Any], test: IntArray) -> FloatArray:
        if on_fold is not None:
            on_fold(1)
        return models[1](models[0].log_odds([block[test] for block in blocks]))

    def fit(train: IntArray) -> tuple[LinearModel, Calibrator, Any]:
        train_blocks = [block[train] for block in blocks]
        return fit_calibrated(train_blocks, valid[train], groups[train], folds=folds, seed=seed + 1)

    return cross_predict(iterate_splits(item_folds), fit, predict, len(valid)), item_folds


def chat_examples(examples: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> tuple[ChatExample, ...]:
    """Return one chat for each labelled draft: the request to validate the draft, and the label as the answer."""
    chats = []
    for example in examples:
        request = validation_request(example.draft, prompt, subject)
        chats.append(ChatExample(request.messages, request.assistant_prefix, ANSWERS[0 if example.valid else 1]))
    return tuple(chats)


def api_examples(examples: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> bytes:
    """Return the chats of :func:`chat_examples` as JSON Lines, the format of fine-tuning jobs on servers."""
    lines = []
    for example in chat_examples(examples, prompt, subject):
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
    """Fine-tune a local model with LoRA to answer VALID or INVALID; an interrupted training is resumed.

    Args:
        labels: Labelled drafts.
        model: Name of the local model.
        folder: Folder of the adapter.
        config: Settings of the training.
        prompt: Prompt template ``validate``; the built-in one if None.
        subject: Field of science of the questions.
        hold_out: Proportion (below 1) or number of labels to hold out for scores and calibration.
        precision: Requested proportion of valid drafts among the accepted ones; None chooses no threshold.
        seed: Seed of the splits.
        replace_other: Delete the files of another training in the folder.
        on_progress: Callback of :func:`climassay.tuning.train`.

    Raises:
        InputError: There are too few labels, or the folder holds another training.
        ModelError: The model cannot be loaded or trained, or none of the held-out questions could be judged.
    """
    from climassay.models import load_model
    from climassay.tuning import train

    prompt, subject = prompt or validation_prompt(), subject or Subject()
    training_labels, test_labels = split_labels(labels, hold_out, seed=seed)
    groups = source_groups([example.draft for example in training_labels]).tolist()
    fitting_labels, stopping_labels = split_groups(training_labels, groups, VALIDATION_SHARE, seed=seed)
    training_data = ChatData(labels.name, chat_examples(fitting_labels, prompt, subject))
    validation_data = ChatData(f"{labels.name}, held out", chat_examples(stopping_labels, prompt, subject))
    adapter = train(
        model, training_data, validation_data, config, folder, replace_other=replace_other, on_progress=on_progress
    )
    tuned_model = load_model(adapter.model)
    if not isinstance(tuned_model, OptionScorer):
        raise ModelError(f"{adapter.model} gives no probabilities of answers.")
    validator = PromptedValidator(tuned_model, prompt, subject, name=f"adapter:{adapter.name}")
    result = calibrate_prompted(validator, labels, training_labels, test_labels, precision=precision, seed=seed)
    write_training_record(result.record, adapter.folder)
    return result


def find_tuning_server(model: str, base_url: str | None) -> tuple[str | None, str]:
    """Return the base URL and the model name (``openai:NAME``) for a fine-tuning job; None for the default URL.

    Raises:
        InputError: The model is not behind a server.
    """
    provider, _, name = model.partition(":")
    if not is_served(model):
        raise InputError(f"A fine-tuning job needs a server's model: write openai:NAME, not {model}.")
    if provider == OPENAI:
        return base_url, model
    # Found again by its address, to which the provider's key is bound.
    return find_server(provider, base_url).base_url, f"{OPENAI}:{name}"


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
    """Fine-tune a model on a server; if an earlier call was interrupted, its job is continued.

    Args:
        labels: Labelled drafts.
        model: Name of the model on the server.
        state: File for the state of the job, and for the training record when the job is finished.
        load: Function that loads the fine-tuned model by its name.
        prompt: Prompt template ``validate``; the built-in one if None.
        subject: Field of science of the questions.
        hold_out: Proportion (below 1) or number of labels to hold out for scores and calibration.
        precision: Requested proportion of valid drafts among the accepted ones; None chooses no threshold.
        seed: Seed of the splits.
        on_status: Called with every new state of the job.
        options: Options of :func:`climassay.models.openai.finetuning.fine_tune`.

    Raises:
        InputError: There are too few labels, or the file holds another fine-tuning.
        ModelError: The server refuses, the job failed, or none of the held-out questions could be judged.
    """
    prompt, subject = prompt or validation_prompt(), subject or Subject()
    training_labels, test_labels = split_labels(labels, hold_out, seed=seed)
    data = api_examples(training_labels, prompt, subject)
    job = fine_tune(model, data, state, seed=seed, on_status=on_status, **options)
    validator = PromptedValidator(load(job.model_name), prompt, subject, name=f"api:{job.model}")
    result = calibrate_prompted(validator, labels, training_labels, test_labels, precision=precision, seed=seed)
    write_state(replace(job, facts={"validator": prompted_facts(result.record)}), state)
    return result


def split_labels(
    labels: LabelSet, hold_out: float, *, seed: int = 0
) -> tuple[tuple[LabelledDraft, ...], tuple[LabelledDraft, ...]]:
    """Split labelled drafts into a training and a test set that have no main passage in common.

    The split is stratified: the proportions of valid drafts are similar in both sets.

    Args:
        labels: Labelled drafts.
        hold_out: Proportion (below 1) or number of drafts in the test set.
        seed: Seed of the split.

    Raises:
        InputError: A set would be empty or have too few labels of a class.
    """
    test_proportion = hold_out if hold_out < 1 else hold_out / len(labels.drafts)
    if not 0 < test_proportion < 1:
        raise InputError(f"{hold_out:g} labels cannot be held out of {len(labels.drafts)}: give fewer, or a share.")
    valid, groups = labels_array(labels.drafts), source_groups([example.draft for example in labels.drafts])
    check_labels(valid)
    # The test set is a number of stratified folds.
    item_folds = group_folds(groups, 20, seed=seed, labels=valid)
    folds = np.unique(item_folds)
    is_test = np.isin(item_folds, folds[: min(len(folds) - 1, max(1, round(test_proportion * len(folds))))])
    training_labels = tuple(
        example for example, is_in_test in zip(labels.drafts, is_test, strict=True) if not is_in_test
    )
    test_labels = tuple(example for example, is_in_test in zip(labels.drafts, is_test, strict=True) if is_in_test)
    for examples in (training_labels, test_labels):
        check_labels(labels_array(examples))
    return training_labels, test_labels


def calibrate_prompted(
    validator: PromptedValidator,
    labels: LabelSet,
    training: Sequence[LabelledDraft],
    test: Sequence[LabelledDraft],
    *,
    precision: float | None = None,
    seed: int = 0,
) -> Training[PromptedValidator]:
    """Calibrate a fine-tuned model on held-out labels, and score it with cross-fitted calibrators.

    Args:
        validator: Validator of the fine-tuned model.
        labels: All labels.
        training: Labelled drafts on which the model was trained.
        test: Labelled drafts that were held out.
        precision: Requested proportion of valid drafts among the accepted ones; None chooses no threshold.
        seed: Seed of folds and resampling.

    Raises:
        InputError: All drafts that could be judged have the same label.
        ModelError: None of the held-out questions could be judged.
    """
    log_odds = validator.log_odds([example.draft for example in test])
    scored_examples = [(example, score) for example, score in zip(test, log_odds, strict=True) if score is not None]
    if not scored_examples:
        raise ModelError(f"{validator.name} could not judge any of the {len(test)} held-out questions.")
    valid = labels_array([example for example, _ in scored_examples])
    if not 0 < valid.sum() < len(valid):
        raise InputError("The held-out questions that could be judged are all valid or all invalid: hold out more.")
    scores = np.array([score for _, score in scored_examples], dtype=np.float64)
    groups = source_groups([example.draft for example, _ in scored_examples])
    probabilities = cross_fit(scores, valid, group_folds(groups, seed=seed, labels=valid))
    validator_scores = score_validator(valid, probabilities, groups, seed=seed)
    # One model scored all drafts, so its scores are comparable across folds.
    auroc = auroc_estimate(valid, scores, groups=groups, resamples=RESAMPLES, seed=seed)
    precisions = (
        *validator_scores.precisions[: -len(ACCEPTED_SHARES)],
        *(precision_at(accepted_proportion, valid, scores) for accepted_proportion in ACCEPTED_SHARES),
    )
    validator_scores = replace(
        validator_scores, evaluation=replace(validator_scores.evaluation, auroc=auroc), precisions=precisions
    )
    threshold, no_threshold_reason = choose_threshold(precision, valid, probabilities)
    settings = {"kind": "prompted", "subject": asdict(validator.subject)}
    model, prompt = validator.model, validator.prompt
    source = Provenance(model=model.name, template=prompt.name, template_sha256=prompt.sha256, settings=settings)
    provenance = _training_provenance(source, labels, training, validator_scores, seed)
    record = TrainingRecord(provenance, fit_calibrator(scores, valid), threshold)
    calibrated_validator = PromptedValidator.fine_tuned(model, prompt, record, validator.name)
    return Training(calibrated_validator, record, validator_scores, probabilities, no_threshold_reason)
