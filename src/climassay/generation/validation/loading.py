"""Loading validators by name, and the training records beside adapters and fine-tuning jobs."""

import json
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Literal, cast

from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.generation.validation.readers import StateReader, TextReader, validation_prompt
from climassay.generation.validation.validators import (
    PromptedValidator,
    TrainedValidator,
    TrainingRecord,
    Validator,
    ValidatorsByKind,
)
from climassay.io import describe_first_problem, parse_json, read_text, write_file
from climassay.learning import ActivationStore
from climassay.models import ModelOptions, load_model
from climassay.models.contract import Encoder, Generator, OpenWeights, OptionScorer, unwrap_model
from climassay.questions import KINDS

PROMPTED_FORMAT = "climassay-prompted-validator"
RECORD_FILE = "climassay-validator.json"
"""Name of the file with the training record in an adapter's folder."""
LoadModel = Callable[..., Generator]
"""Function with the signature of :func:`climassay.models.load_model`. The ``base_url`` of a fine-tuned model on a
server, or the ``dtype`` of a probe's model, is passed to it as an option."""


def load_validator(
    name: str,
    *,
    load: LoadModel = load_model,
    encoder: Encoder | None = None,
    prompts: Path | None = None,
    subject: Subject | None = None,
    store: ActivationStore | None = None,
) -> Validator:
    """Load a validator by its name.

    Args:
        name: One of

            - ``prompted:MODEL``: an untrained model, prompted for VALID or INVALID;
            - ``adapter:FOLDER``: result of ``climassay generate validate train --method adapter``;
            - ``api:STATE.json``: result of ``climassay generate validate train --method api``;
            - a path: the result of any ``--method`` (a file or folder);
            - ``mcq=NAME,freeform=NAME``: one of these names for each kind of question.
        load: Function that loads a model by its name.
        encoder: Encoder that computes features; if None, the encoder used in training is loaded.
        prompts: Folder of the user's own templates.
        subject: Field of science for ``prompted:``; trained validators use that of their training.
        store: Cache of hidden states.

    Raises:
        InputError: The name has none of these forms, or the model is unsuitable.
        ModelError: The model cannot be loaded.
    """
    kinds_and_names = [entry.partition("=") for entry in name.split(",")]
    if all(kind.strip() in KINDS and validator_name for kind, _, validator_name in kinds_and_names):
        load_by_name = partial(
            load_validator, load=load, encoder=encoder, prompts=prompts, subject=subject, store=store
        )
        return ValidatorsByKind(
            {kind.strip(): load_by_name(validator_name.strip()) for kind, _, validator_name in kinds_and_names}
        )
    method, _, target = name.partition(":")
    prompt = validation_prompt(prompts)
    if method == "prompted" and target:
        return PromptedValidator(_load_scorer(target, load), prompt, subject or Subject())
    if method in ("adapter", "api") and target:
        path = Path(target).expanduser()
    else:
        path = Path(name).expanduser()
        method = training_method(path)
    if method == "adapter":
        from climassay.tuning import read_result

        record, result = read_training_record(path, method), read_result(path)
        if result is None:
            raise InputError(f"The adapter in {path} is not finished: run climassay generate validate train again.")
        return PromptedValidator.fine_tuned(_load_scorer(result.model, load), prompt, record, f"adapter:{path.name}")
    if method == "api":
        from climassay.models.openai.finetuning import read_state

        record, state = read_training_record(path, method), read_state(path)
        model = _load_scorer(state.model_name, partial(load, options=ModelOptions(base_url=state.base_url)))
        return PromptedValidator.fine_tuned(model, prompt, record, f"api:{state.model}")
    if not path.is_file():
        raise InputError(
            f"{name!r} names no validator: write prompted:MODEL, adapter:FOLDER, api:STATE.json, or the file of a "
            "trained one."
        )
    validator = TrainedValidator.load(path)
    provenance = validator.record.provenance
    if provenance.encoder:
        from climassay.models.encoders import load_encoder

        return validator.with_reader(TextReader(encoder or load_encoder(provenance.encoder)))
    probed_model = load(provenance.model, ModelOptions(dtype=provenance.dtype or None))
    if not isinstance(probed_model, OpenWeights):
        raise InputError(f"The validator {name} reads hidden states: give it a local: model, not a wrapper around one.")
    return validator.with_reader(StateReader(probed_model, prompt, provenance.layers, store, validator.record.subject))


def _load_scorer(name: str, load: LoadModel) -> OptionScorer:
    model = load(name)
    if not isinstance(unwrap_model(model), OptionScorer):
        raise InputError(f"{name} gives no probabilities of answers: use another model as validator.")
    return cast(OptionScorer, model)


def training_method(path: Path) -> Literal["adapter", "api", "file"]:
    """Return how the validator at a path was trained.

    Returns:
        ``adapter``, ``api``, or ``file``, which stands for ``features`` and ``probe`` and for a missing path.
    """
    if (path / RECORD_FILE).is_file():
        return "adapter"
    if not path.is_file():
        return "file"
    with path.open("rb") as file:
        first_bytes = file.read(200)
    # A safetensors file begins with the length of its header.
    return (
        "api"
        if first_bytes.lstrip()[:1] == b"{" and TrainedValidator.FORMAT.name.encode() not in first_bytes
        else "file"
    )


def prompted_facts(record: TrainingRecord) -> dict[str, object]:
    """Convert the training record of a fine-tuned model to JSON-serialisable values, adding the format's name."""
    return {"format": PROMPTED_FORMAT, **asdict(record)}


def write_training_record(record: TrainingRecord, folder: Path) -> None:
    """Write a training record into the folder of its adapter.

    Raises:
        InputError: The file cannot be written.
    """
    text = json.dumps(prompted_facts(record), indent=1, allow_nan=False)
    write_file(folder / RECORD_FILE, (text + "\n").encode())


def read_training_record(path: Path, method: str | None = None) -> TrainingRecord:
    """Read the training record of a validator without loading its model.

    Args:
        path: File, folder or state file of the validator.
        method: Result of :func:`training_method`; determined from the path if None.

    Raises:
        InputError: There is no validator, it is damaged, or its training is not finished.
    """
    method = method or training_method(path)
    if method == "file":
        return TrainedValidator.load(path).record
    if method == "adapter":
        file = path / RECORD_FILE
        try:
            facts = parse_json(read_text(file))
        except FileNotFoundError:
            raise InputError(
                f"{path} is not a trained validator: train one with climassay generate validate train --method adapter."
            ) from None
        except (OSError, ValueError) as error:
            raise InputError(f"{file} cannot be read ({error}); train the validator again.") from error
    else:
        from climassay.models.openai.finetuning import read_state

        state = read_state(path)
        facts = state.facts.get("validator")
        if facts is None:
            raise InputError(
                f"The fine-tuning of {state.base_model} ({state.status}) was not finished: run climassay generate "
                "validate train again with the same file."
            )
    try:
        if facts["format"] != PROMPTED_FORMAT:
            raise ValueError("another format")
        return TrainingRecord.parse(facts)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise InputError(
            f"The stored state of the validator is damaged ({describe_first_problem(error)}); train it again."
        ) from error
