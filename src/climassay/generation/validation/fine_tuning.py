"""Validators that are fine-tuned models: an adapter of a local one, or a job at an OpenAI-compatible API."""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from climassay.errors import InputError, ModelError
from climassay.generation.draft import Subject
from climassay.generation.validation.asked import AskedFacts, write_facts
from climassay.generation.validation.calibrator import cross_fitted, fit_calibrator, stratified_folds
from climassay.generation.validation.labels import LabelledDraft, LabelSet, labels_array, source_groups
from climassay.generation.validation.measuring import ValidatorScores, score_validator
from climassay.generation.validation.prompting import ANSWERS, validation_prompt, validation_request
from climassay.generation.validation.training import chosen_threshold, figures, split_labels
from climassay.generation.validation.validators import PromptedValidator
from climassay.models.contract import OptionScorer
from climassay.models.openai_conversation import effective_messages
from climassay.models.openai_finetuning import FineTuningState, fine_tune, write_state
from climassay.prompts import Prompt
from climassay.tuning import ChatData, ChatExample, TuningConfig, split_groups

if TYPE_CHECKING:
    from climassay.tuning import TuningProgress

VALIDATION_SHARE = 0.15
"""Of the labels trained on: what decides when an adapter has learned enough."""


@dataclass(frozen=True, slots=True, eq=False)
class TrainedModel:
    """A fine-tuned validator with its figures on labels held out."""

    validator: PromptedValidator
    facts: AskedFacts
    scores: ValidatorScores
    refusal: str | None
    """Why there is no threshold for the precision wanted."""


def chat_examples(labelled: Sequence[LabelledDraft], prompt: Prompt, subject: Subject) -> tuple[ChatExample, ...]:
    """One chat a label, asked exactly as the validator will ask."""
    found = []
    for one in labelled:
        request = validation_request(one.draft, prompt, subject)
        found.append(ChatExample(request.messages, request.assistant_prefix, ANSWERS[0 if one.valid else 1]))
    return tuple(found)


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
) -> TrainedModel:
    """Fine-tune a local model with LoRA to answer VALID or INVALID; an interrupted training goes on.

    Args:
        labels: What experts said.
        model: Name of a local model.
        folder: Where the adapter goes.
        config: Of the training.
        prompt: The template; the built-in one by default.
        subject: The science.
        hold_out: Share of the labels that is measured and calibrated on.
        precision: Wanted share of valid ones among those kept; None chooses no threshold.
        seed: Of the splits.
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
    found = _measured(asked, labels, learned, held, precision, seed)
    write_facts(found.facts, result.folder)
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
) -> TrainedModel:
    """Have a server fine-tune a model; killed at any moment, the same call adopts the running job.

    Args:
        labels: What experts said.
        model: Name at the server, with or without ``openai:``.
        state: File that keeps how far it has come, and afterwards what the validator is.
        load: From the new model's name to the model, for example with the same base URL.
        prompt: The template; the built-in one by default.
        subject: The science.
        hold_out: As in :func:`train_adapter`.
        precision: As in :func:`train_adapter`.
        seed: Of the split and the training.
        on_status: Called whenever something new is known of the job.
        options: Of :func:`climassay.models.openai_finetuning.fine_tune`.

    Raises:
        InputError: Too few labels, or the file holds another fine-tuning.
        ModelError: The server refuses, the job failed, or none of the held-out questions could be judged.
    """
    template, science = prompt or validation_prompt(), subject or Subject()
    learned, held = split_labels(labels, hold_out, seed=seed)
    training = api_examples(learned, template, science)
    done = fine_tune(model, training, state, seed=seed, on_status=on_status, **options)
    asked = PromptedValidator(load(done.model_name), template, science, content_free=False, name=f"api:{done.model}")
    found = _measured(asked, labels, learned, held, precision, seed)
    write_state(replace(done, facts=(("validator", found.facts.to_data()),)), state)
    return found


def _measured(
    asked: PromptedValidator,
    labels: LabelSet,
    learned: Sequence[LabelledDraft],
    held: Sequence[LabelledDraft],
    precision: float | None,
    seed: int,
) -> TrainedModel:
    """Calibrate on what was held out, and say what that is worth by calibrators that did not see the item."""
    given = asked.log_odds([one.draft for one in held])
    known = [(one, score) for one, score in zip(held, given, strict=True) if score is not None]
    if not known:
        raise ModelError(f"{asked.name} judged none of the {len(held)} held-out questions.")
    valid = labels_array([one for one, _ in known])
    if not 0 < valid.sum() < len(valid):
        raise InputError("Those of the held-out questions that could be judged are all of one kind: hold out more.")
    scores = np.array([score for _, score in known], dtype=np.float64)
    groups = source_groups([one.draft for one, _ in known])
    probabilities = cross_fitted(scores, valid, stratified_folds(valid, groups, 5, seed=seed))
    # The model is one and the same for all, so that its own scores can be compared across folds.
    measured = replace(
        score_validator(valid, probabilities, groups, seed=seed),
        **_ranking(score_validator(valid, _logistic(scores), groups, seed=seed)),
    )
    threshold, refusal = chosen_threshold(precision, valid, probabilities)
    facts = AskedFacts(
        kinds=tuple(dict.fromkeys(one.draft.kind for one in learned)),
        subject=asked.subject,
        template_sha256=asked.prompt.sha256,
        data=labels.name,
        data_sha256=labels.sha256,
        labels=len(learned),
        invalid=sum(not one.valid for one in learned),
        calibrator=fit_calibrator(scores, valid),
        threshold=threshold,
        held_out=figures(measured),
        trained_on=tuple(one.draft.id for one in learned),
    )
    return TrainedModel(facts.validator(asked.model, asked.prompt, asked.name), facts, measured, refusal)


def _ranking(scores: ValidatorScores) -> dict[str, Any]:
    return {name: getattr(scores, name) for name in ("at_shares", "auroc", "auroc_interval")}


def _logistic(scores: np.ndarray) -> np.ndarray:
    from scipy.special import expit

    return np.asarray(expit(scores), dtype=np.float64)


def facts_of(state: FineTuningState) -> AskedFacts:
    """What a finished fine-tuning job keeps of its validator.

    Raises:
        InputError: It keeps nothing: its training was not finished.
    """
    data = dict(state.facts).get("validator")
    if data is None:
        raise InputError(
            f"The fine-tuning of {state.base_model} ({state.status}) was not finished: run climassay validator train "
            "again with the same file."
        )
    return AskedFacts.from_data(data)


def described(trained: TrainedModel) -> dict[str, Any]:
    """What is known of it, for JSON."""
    facts = asdict(trained.facts)
    facts.pop("trained_on")
    return {"validator": trained.validator.name, "facts": facts, "scores": asdict(trained.scores)}
