"""Training validators: on features, or by fine-tuning a model, with figures on passages that were not trained on."""

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
    KEPT_SHARES,
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
from climassay.generation.validation.validators import (
    ANSWERS,
    ASKED_FORMAT,
    Learned,
    Progress,
    PromptedValidator,
    Reader,
    TrainedValidator,
    Validator,
    validation_prompt,
    validation_request,
    write_learned,
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
"""C that are tried: the prior variance of an item's log-odds, which all blocks of features share."""
VALIDATION_SHARE = 0.15
"""Share of the labels trained on that decides when an adapter has learned enough."""


@dataclass(frozen=True, slots=True, eq=False)
class Training(Generic[V]):
    """A trained validator and the evidence behind it."""

    validator: V
    learned: Learned
    scores: ValidatorScores
    """On labels that it was not trained on."""
    probabilities: FloatArray
    """P(valid) of these, by what was not trained on them."""
    refusal: str | None
    """Why there is no threshold for the precision wanted."""
    choices: tuple[tuple[float, float], ...] = ()
    """All C tried with their log-loss on held-out items in nats, best first."""
    left_out: int = 0
    """Labelled drafts that could not be read."""

    def facts(self) -> dict[str, Any]:
        """What is known of it, for JSON, without the ids of what it was trained on."""
        return {
            "source": replace(self.learned.provenance, trained_on=()),
            **asdict(self.scores),
            "choices": [{"regularisation": C, "log_loss": loss} for C, loss in self.choices],
            "threshold": self.learned.threshold,
            "refusal": self.refusal,
            "left_out": self.left_out,
        }


def train_validator(
    labels: LabelSet,
    reader: Reader,
    *,
    precision: float | None = None,
    folds: int = FOLDS,
    seed: int = 0,
    on_read: Progress | None = None,
    on_fold: Progress | None = None,
) -> Training[TrainedValidator]:
    """Train a validator on what a reader sees of drafts: seconds on a CPU for an encoder.

    ``precision`` is the wanted share of valid ones among those kept; None chooses no threshold. ``on_read`` is called
    with the number of drafts read since the last call, ``on_fold`` after each fold.

    Raises:
        InputError: Too few labels.
        ModelError: The model cannot be read, or no draft could be.
    """
    read = reader.read([one.draft for one in labels.drafts], on_read=on_read)
    kept = read.succeeded
    if not kept.any():
        raise ModelError(f"No labelled question could be read: {next(iter(read.failed.values()))}")
    drafts = tuple(one for one, good in zip(labels.drafts, kept, strict=True) if good)
    blocks = [block[kept] for block in read.blocks]
    valid, groups = labels_array(drafts), source_groups([one.draft for one in drafts])
    given, split = cross_validated(blocks, valid, groups, folds=folds, seed=seed, on_fold=on_fold)
    scores = score_validator(valid, given, groups, folds=split, seed=seed)
    model, calibrator, choices = fit_calibrated(blocks, valid, groups, folds=folds, seed=seed)
    threshold, refusal = chosen_threshold(precision, valid, given)
    source = replace(reader.provenance, regularisation=choices[0][0])
    learned = Learned(_provenance(source, labels, drafts, scores, seed), calibrator, threshold)
    validator = TrainedValidator(model, learned, reader)
    return Training(validator, learned, scores, given, refusal, choices, int((~kept).sum()))


def _provenance(
    source: Provenance, labels: LabelSet, drafts: Sequence[LabelledDraft], scores: ValidatorScores, seed: int
) -> Provenance:
    """What is read, with what a validator was trained on and how good it is."""
    kinds = list(dict.fromkeys(one.draft.kind for one in drafts))
    return replace(
        source,
        data=labels.name,
        data_sha256=labels.sha256,
        items=len(drafts),
        groups=len(np.unique(source_groups([one.draft for one in drafts]))),
        seed=seed,
        measured=scores.figures,
        trained_on=tuple(one.draft.id for one in drafts),
        settings={**source.settings, "invalid": sum(not one.valid for one in drafts), "kinds": kinds},
    )


def fit_calibrated(
    blocks: Sequence[FloatArray], valid: IntArray, groups: IntArray, *, folds: int = FOLDS, seed: int = 0
) -> tuple[LinearModel, Calibrator, tuple[tuple[float, float], ...]]:
    """Choose C by log-loss on held-out passages, fit the calibrator on held-out scores, and fit on all items.

    Features have the shape [items, features] each, labels (0 or 1) and groups, which no fold parts, [items].
    """
    check_labels(valid)
    # The blocks share what a C of one block allows.
    path = [one / len(blocks) for one in REGULARISATIONS]

    def fit(train: IntArray) -> list[LinearModel]:
        """One model for each C; none where the labels are all of one kind."""
        several = len(np.unique(valid[train])) > 1
        return fit_path([block[train] for block in blocks], valid[train], 2, path) if several else []

    def predict(models: list[LinearModel], test: IntArray) -> FloatArray:
        if not models:
            known = np.delete(valid, test)
            return np.full((len(test), len(path)), np.log((known.sum() + 1) / (len(known) - known.sum() + 1)))
        return np.stack([model.log_odds([block[test] for block in blocks]) for model in models], axis=1)

    odds = held_out(splits_of(group_folds(groups, folds, seed=seed, labels=valid)), fit, predict, len(valid))
    losses = np.logaddexp(0, np.where(valid[:, None] == 1, -odds, odds)).mean(axis=0)
    order = np.argsort(losses, kind="stable")
    model = fit_path(blocks, valid, 2, [path[order[0]]])[0]
    choices = tuple((REGULARISATIONS[place], float(losses[place])) for place in order)
    return model, fit_calibrator(odds[:, order[0]], valid), choices


def cross_validated(
    blocks: Sequence[FloatArray],
    valid: IntArray,
    groups: IntArray,
    *,
    folds: int = FOLDS,
    seed: int = 0,
    on_fold: Progress | None = None,
) -> tuple[FloatArray, IntArray]:
    """P(valid) of each item by the whole of :func:`fit_calibrated` on the other folds, its choices included.

    Returns:
        Probabilities and folds, both of shape [items].
    """
    check_labels(valid)
    split = group_folds(groups, folds, seed=seed, labels=valid)

    def predict(fitted: tuple[LinearModel, Calibrator, Any], test: IntArray) -> FloatArray:
        if on_fold is not None:
            on_fold(1)
        return fitted[1](fitted[0].log_odds([block[test] for block in blocks]))

    def fit(train: IntArray) -> tuple[LinearModel, Calibrator, Any]:
        some = [block[train] for block in blocks]
        return fit_calibrated(some, valid[train], groups[train], folds=folds, seed=seed + 1)

    return held_out(splits_of(split), fit, predict, len(valid)), split


def chat_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> tuple[ChatExample, ...]:
    """One chat per label, asked exactly as the validator will ask."""
    asked = [(validation_request(one.draft, prompt, subject), ANSWERS[0 if one.valid else 1]) for one in labelled]
    return tuple(ChatExample(one.messages, one.assistant_prefix, answer) for one, answer in asked)


def api_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> bytes:
    """The same as JSON Lines for a fine-tuning job, messages as the client of that API sends them."""
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
    """Fine-tune a local model with LoRA to answer VALID or INVALID; an interrupted training goes on.

    ``hold_out`` of the labels (a share below 1, or their number) are measured and calibrated on, ``precision`` is as in
    :func:`train_validator`; ``replace_other`` removes what another training left in the folder, and ``on_progress`` is
    that of :func:`climassay.tuning.train`.

    Raises:
        InputError: Too few labels, or the folder holds another training.
        ModelError: The model cannot be loaded or trained, or none of the held-out questions could be judged.
    """
    from climassay.models import load_model
    from climassay.tuning import train

    template, science = prompt or validation_prompt(), subject or Subject()
    learned, held = split_labels(labels, hold_out, seed=seed)
    groups = source_groups([one.draft for one in learned]).tolist()
    kept, checked = split_groups(learned, groups, VALIDATION_SHARE, seed=seed)
    data, validation = (
        ChatData(name, chat_examples(part, template, science))
        for name, part in ((labels.name, kept), (f"{labels.name}, held out", checked))
    )
    result = train(model, data, validation, config, folder, replace_other=replace_other, on_progress=on_progress)
    loaded = load_model(result.model)
    if not isinstance(loaded, OptionScorer):
        raise ModelError(f"{result.model} gives no probabilities of answers.")
    asked = PromptedValidator(loaded, template, science, content_free=False, name=f"adapter:{result.name}")
    results = measured(asked, labels, learned, held, precision=precision, seed=seed)
    write_learned(results.learned, result.folder)
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
    """Have a server fine-tune a model; killed at any moment, the same call adopts the running job.

    ``state`` keeps how far it has come, and afterwards what the validator is; ``load`` makes a model of the new one's
    name; ``options`` are those of :func:`climassay.models.openai.finetuning.fine_tune`, all else as in
    :func:`train_adapter`.

    Raises:
        InputError: Too few labels, or the file holds another fine-tuning.
        ModelError: The server refuses, the job failed, or none of the held-out questions could be judged.
    """
    template, science = prompt or validation_prompt(), subject or Subject()
    learned, held = split_labels(labels, hold_out, seed=seed)
    training = api_examples(learned, template, science)
    done = fine_tune(model, training, state, seed=seed, on_status=on_status, **options)
    asked = PromptedValidator(load(done.model_name), template, science, content_free=False, name=f"api:{done.model}")
    result = measured(asked, labels, learned, held, precision=precision, seed=seed)
    facts = {"format": ASKED_FORMAT, **result.learned.facts()}
    write_state(replace(done, facts=(("validator", facts),)), state)
    return result


def split_labels(
    labels: LabelSet, hold_out: float, *, seed: int = 0
) -> tuple[tuple[LabelledDraft, ...], tuple[LabelledDraft, ...]]:
    """Labelled drafts to train on and to measure on, without a passage in common and with like shares of valid ones.

    Raises:
        InputError: None or all would be held out, or a part has too few labels of a kind.
    """
    share = hold_out if hold_out < 1 else hold_out / len(labels.drafts)
    if not 0 < share < 1:
        raise InputError(f"{hold_out:g} labels cannot be held out of {len(labels.drafts)}: give fewer, or a share.")
    valid, groups = labels_array(labels.drafts), source_groups([one.draft for one in labels.drafts])
    check_labels(valid)
    # Twentieths are fine enough, and dealt like folds each has its share of invalid ones.
    parts = group_folds(groups, 20, seed=seed, labels=valid)
    names = np.unique(parts)
    outside = np.isin(parts, names[: min(len(names) - 1, max(1, round(share * len(names))))])
    learned = tuple(one for one, out in zip(labels.drafts, outside, strict=True) if not out)
    held = tuple(one for one, out in zip(labels.drafts, outside, strict=True) if out)
    for part in (learned, held):
        check_labels(labels_array(part))
    return learned, held


def measured(
    asked: PromptedValidator,
    labels: LabelSet,
    learned: Sequence[LabelledDraft],
    held: Sequence[LabelledDraft],
    *,
    precision: float | None = None,
    seed: int = 0,
) -> Training[PromptedValidator]:
    """Calibrate a fine-tuned model on what was held out, and say what that is worth by calibrators that did not see it.

    Raises:
        InputError: What could be judged is all of one kind.
        ModelError: None of the held-out questions could be judged.
    """
    given = asked.log_odds([one.draft for one in held])
    known = [(one, score) for one, score in zip(held, given, strict=True) if score is not None]
    if not known:
        raise ModelError(f"{asked.name} could not judge any of the {len(held)} held-out questions.")
    valid = labels_array([one for one, _ in known])
    if not 0 < valid.sum() < len(valid):
        raise InputError("The held-out questions that could be judged are all valid or all invalid: hold out more.")
    scores = np.array([score for _, score in known], dtype=np.float64)
    groups = source_groups([one.draft for one, _ in known])
    probabilities = cross_fitted(scores, valid, group_folds(groups, seed=seed, labels=valid))
    result = score_validator(valid, probabilities, groups, seed=seed)
    # The model is one and the same for all, so that its own scores can be compared across folds.
    ranking = auroc_estimate(valid, scores, groups=groups, resamples=RESAMPLES, seed=seed)
    kept = *result.kept[: -len(KEPT_SHARES)], *(precision_at(share, valid, scores) for share in KEPT_SHARES)
    result = replace(result, evaluation=replace(result.evaluation, auroc=ranking), kept=kept)
    threshold, refusal = chosen_threshold(precision, valid, probabilities)
    settings = {"kind": "asked", "subject": asdict(asked.subject)}
    prompt = asked.prompt
    source = Provenance(model=asked.model.name, template=prompt.name, template_sha256=prompt.sha256, settings=settings)
    facts = Learned(_provenance(source, labels, learned, result, seed), fit_calibrator(scores, valid), threshold)
    validator = PromptedValidator.fine_tuned(asked.model, asked.prompt, facts, asked.name)
    return Training(validator, facts, result, probabilities, refusal)
