"""Validators by name."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.generation.validation.asked import FACTS_FILE, read_facts
from climassay.generation.validation.head import FORMAT, load_head
from climassay.generation.validation.prompting import validation_prompt
from climassay.generation.validation.validators import (
    ByKind,
    FeatureValidator,
    ProbeValidator,
    PromptedValidator,
    Validator,
)
from climassay.learning import ActivationStore
from climassay.models import load_model
from climassay.models.contract import Encoder, Generator, OpenWeights, OptionScorer
from climassay.models.profiles import ProfileSettings, profile_of
from climassay.questions import KINDS

LoadModel = Callable[..., Generator]
"""Like :func:`climassay.models.load_model`, of which a validator that a server fine-tuned gives the ``base_url``,
and a probe the ``dtype``."""


def load_validator(
    name: str,
    *,
    load: LoadModel = load_model,
    encoder: Encoder | None = None,
    prompts: Path | None = None,
    subject: Subject | None = None,
    store: ActivationStore | None = None,
    profile: ProfileSettings | None = None,
) -> Validator:
    """A validator by its name.

    Args:
        name: One of

            - ``prompted:MODEL``: a model asked for VALID or INVALID, not trained;
            - ``adapter:FOLDER``: an adapter that ``climassay validator train --method adapter`` left;
            - ``api:STATE.json``: a fine-tuning job that ``--method api`` finished;
            - a file that ``--method features`` or ``probe`` wrote, or the folder or state file of the two above;
            - ``mcq=NAME,freeform=NAME``: one of these for each kind of question.
        load: From a model's name to the model.
        encoder: Of a head on features; loaded by its name if None.
        prompts: Folder of the user's own templates.
        subject: The science, for ``prompted:``; trained ones know theirs.
        store: Where hidden states are kept.
        profile: Whether ``prompted:`` is corrected by content-free prompts, where the user has set it.

    Raises:
        InputError: The name is none of these, or the model cannot serve.
        ModelError: The model cannot be loaded.
    """
    kinds = [part.partition("=") for part in name.split(",")]
    if all(kind.strip() in KINDS and rest for kind, _, rest in kinds):
        parts = {
            kind.strip(): load_validator(
                rest.strip(), load=load, encoder=encoder, prompts=prompts, subject=subject, store=store, profile=profile
            )
            for kind, _, rest in kinds
        }
        return ByKind(parts)
    how, _, rest = name.partition(":")
    if how == "prompted" and rest:
        asked = _scorer(rest, load)
        corrected = profile_of(asked, profile).calibrated
        return PromptedValidator(asked, validation_prompt(prompts), subject or Subject(), content_free=corrected)
    if how == "adapter" and rest:
        return _adapter(Path(rest).expanduser(), load, prompts)
    if how == "api" and rest:
        return _api(Path(rest).expanduser(), load, prompts)
    return _from_file(name, load, encoder, prompts, store)


def _from_file(
    name: str, load: LoadModel, encoder: Encoder | None, prompts: Path | None, store: ActivationStore | None
) -> Validator:
    file = Path(name).expanduser()
    if (file / FACTS_FILE).is_file():
        return _adapter(file, load, prompts)
    if not file.is_file():
        raise InputError(
            f"{name!r} names no validator: write prompted:MODEL, adapter:FOLDER, api:STATE.json, or the file of a "
            "trained one."
        )
    with file.open("rb") as opened:
        start = opened.read(200)
    # A safetensors file begins with the length of its header.
    if start.lstrip()[:1] == b"{" and FORMAT.name.encode() not in start:
        return _api(file, load, prompts)
    head = load_head(file)
    if head.source.kind == "features":
        from climassay.models.encoder import load_encoder

        return FeatureValidator(head, encoder or load_encoder(head.source.model), name=file.name)
    model = load(head.source.model, dtype=head.source.dtype or None)
    if not isinstance(model, OpenWeights):
        raise InputError(f"The validator {name} reads hidden states: give it a local: model, itself and not wrapped.")
    return ProbeValidator(head, model, prompt=validation_prompt(prompts), store=store, name=file.name)


def _adapter(folder: Path, load: LoadModel, prompts: Path | None) -> Validator:
    from climassay.tuning import read_result

    facts, result = read_facts(folder), read_result(folder)
    if result is None:
        raise InputError(f"The adapter in {folder} is not finished: run climassay validator train again.")
    return facts.validator(_scorer(result.model, load), validation_prompt(prompts), f"adapter:{folder.name}")


def _api(file: Path, load: LoadModel, prompts: Path | None) -> Validator:
    from climassay.generation.validation.fine_tuning import facts_of
    from climassay.models.openai_finetuning import read_state

    state = read_state(file)
    facts = facts_of(state)
    model = _scorer(state.model_name, partial(load, base_url=state.base_url))
    return facts.validator(model, validation_prompt(prompts), f"api:{state.model}")


def _scorer(name: str, load: LoadModel) -> OptionScorer:
    model = load(name)
    if not isinstance(model, OptionScorer):
        raise InputError(f"{name} gives no probabilities of answers: take another model as validator.")
    return model
