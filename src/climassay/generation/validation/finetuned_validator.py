"""Validators that are fine-tuned models: an adapter of a local one, or a job at an OpenAI-compatible API."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Subject
from climassay.generation.validation.labels import (
    KEPT_SHARES,
    RESAMPLES,
    LabelledDraft,
    LabelSet,
    check_labels,
    chosen_threshold,
    labels_array,
    precision_at,
    score_validator,
    source_groups,
)
from climassay.generation.validation.reading import ANSWERS, validation_prompt, validation_request
from climassay.generation.validation.training import Training
from climassay.generation.validation.validators import ASKED_FORMAT, Learned, PromptedValidator, write_learned
from climassay.learning import Provenance, auroc_estimate, fit_calibrator, group_folds
from climassay.learning.calibration import cross_fitted
from climassay.models.contract import OptionScorer
from climassay.models.openai.client import effective_messages
from climassay.models.openai.finetuning import FineTuningState, fine_tune, write_state
from climassay.prompts import Prompt
from climassay.tuning import ChatData, ChatExample, TuningConfig, split_groups

if TYPE_CHECKING:
    from climassay.tuning import TuningProgress

VALIDATION_SHARE = 0.15
"""Share of the labels trained on that decides when an adapter has learned enough."""


def chat_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> tuple[ChatExample, ...]:
    """One chat per label, asked exactly as the validator will ask."""
    asked = [(validation_request(one.draft, prompt, subject), ANSWERS[0 if one.valid else 1]) for one in labelled]
    return tuple(ChatExample(one.messages, one.assistant_prefix, answer) for one, answer in asked)


def api_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> bytes:
    """The same as JSON Lines for a fine-tuning job, messages as the client of that API sends them."""
    lines = []
    for example in chat_examples(labelled, prompt, subject):
        messages = effective_messages(example.messages, example.assistant_prefix)
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

    Args:
        labels: What experts said.
        model: Name of a local model.
        folder: Where the adapter goes.
        config: Settings of the training.
        prompt: The template; the built-in one by default.
        subject: The science.
        hold_out: Share of the labels that is measured and calibrated on.
        precision: Wanted share of valid ones among those kept; None chooses no threshold.
        seed: Seed of the splits.
        replace_other: Remove what another training left in the folder.
        on_progress: As in :func:`climassay.tuning.train`.

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
    found = measured(asked, labels, learned, held, precision=precision, seed=seed)
    write_learned(found.learned, result.folder)
    return found


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
    found = measured(asked, labels, learned, held, precision=precision, seed=seed)
    facts = {"format": ASKED_FORMAT, **found.learned.facts()}
    write_state(replace(done, facts=(("validator", facts),)), state)
    return found


def split_labels(
    labels: LabelSet, hold_out: float, *, seed: int = 0
) -> tuple[tuple[LabelledDraft, ...], tuple[LabelledDraft, ...]]:
    """Labelled drafts to train on and to measure on, without a passage in common and with like shares of valid ones.

    Raises:
        InputError: The share held out is none, or a part has too few labels of a kind.
    """
    if not 0 < hold_out < 1:
        raise InputError(f"The share held out is {hold_out}: give a number between 0 and 1, for example 0.25.")
    valid, groups = labels_array(labels.drafts), source_groups([one.draft for one in labels.drafts])
    check_labels(valid)
    # Twentieths are fine enough, and dealt like folds each has its share of invalid ones.
    parts = group_folds(groups, 20, seed=seed, labels=valid)
    names = np.unique(parts)
    outside = np.isin(parts, names[: min(len(names) - 1, max(1, round(hold_out * len(names))))])
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
        raise ModelError(f"{asked.name} judged none of the {len(held)} held-out questions.")
    valid = labels_array([one for one, _ in known])
    if not 0 < valid.sum() < len(valid):
        raise InputError("Those of the held-out questions that could be judged are all of one kind: hold out more.")
    scores = np.array([score for _, score in known], dtype=np.float64)
    groups = source_groups([one.draft for one, _ in known])
    probabilities = cross_fitted(scores, valid, group_folds(groups, seed=seed, labels=valid))
    found = score_validator(valid, probabilities, groups, seed=seed)
    # The model is one and the same for all, so that its own scores can be compared across folds.
    ranking = auroc_estimate(valid, scores, groups=groups, resamples=RESAMPLES, seed=seed)
    kept = *found.kept[: -len(KEPT_SHARES)], *(precision_at(share, valid, scores) for share in KEPT_SHARES)
    found = replace(found, evaluation=replace(found.evaluation, auroc=ranking), kept=kept)
    threshold, refusal = chosen_threshold(precision, valid, probabilities)
    provenance = Provenance(
        data=labels.name,
        data_sha256=labels.sha256,
        items=len(learned),
        groups=len(np.unique(source_groups([one.draft for one in learned]))),
        model=asked.model.name,
        template=asked.prompt.name,
        template_sha256=asked.prompt.sha256,
        seed=seed,
        measured=found.figures,
        trained_on=tuple(one.draft.id for one in learned),
        settings={
            "kind": "asked",
            "invalid": sum(not one.valid for one in learned),
            "kinds": list(dict.fromkeys(one.draft.kind for one in learned)),
            "subject": asdict(asked.subject),
        },
    )
    facts = Learned(provenance, fit_calibrator(scores, valid), threshold)
    validator = PromptedValidator.fine_tuned(asked.model, asked.prompt, facts, asked.name)
    return Training(validator, facts, found, probabilities, refusal)
