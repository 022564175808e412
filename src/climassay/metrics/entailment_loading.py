"""Entailment scorers by name."""

from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from climassay.errors import InputError
from climassay.metrics.entailment import PromptedEntailment, RelationScorer
from climassay.metrics.entailment_head import EntailmentHead, HeadEntailment
from climassay.metrics.factual_accuracy import PromptedSupport
from climassay.models import load_model
from climassay.models.contract import Encoder, Generator, OptionScorer
from climassay.models.profiles import ProfileSettings, profile_of

BUNDLED = "bundled"


def load_entailment(
    name: str = BUNDLED,
    *,
    model: OptionScorer | None = None,
    encoder: Encoder | None = None,
    load: Callable[[str], Generator] = load_model,
    profile: ProfileSettings | None = None,
) -> RelationScorer:
    """An entailment scorer by its name.

    Args:
        name: One of

            - ``bundled``: the head that comes with climassay, on the bundled encoder;
            - ``prompted:MODEL``: a model asked whether a passage confirms, contradicts or leaves open;
            - ``supports:MODEL``: the paper's judge, SUPPORTS or REFUTES;
            - ``nli:MODEL``: a cross-encoder trained on inference data, a folder or hub id;
            - a file that ``climassay metrics entailment train`` wrote.
        model: Used instead of loading ``MODEL``, for example one that is recorded.
        encoder: Of a head; loaded by its name if None.
        load: From the name of a model to the model.
        profile: Whether ``prompted:`` is calibrated, where the user has set it.

    Raises:
        InputError: The name is none of these, or the model gives no probabilities.
        ModelError: The model cannot be loaded.
    """
    kind, _, rest = name.partition(":")
    if name == BUNDLED:
        return (
            bundled_entailment() if encoder is None else HeadEntailment(EntailmentHead.load(), encoder, name="bundled")
        )
    if kind in ("prompted", "supports") and rest:
        asked = model or _option_scorer(rest, load)
        if kind == "supports":
            return PromptedSupport(asked)
        return PromptedEntailment(asked, calibrated=profile_of(asked, profile).calibrated)
    if kind == "nli" and rest:
        from climassay.metrics.entailment_classifier import load_classifier

        return load_classifier(rest)
    file = Path(name).expanduser()
    if file.suffix == ".safetensors" or file.is_file():
        return HeadEntailment(EntailmentHead.load(file), encoder, name=file.name)
    raise InputError(
        f"{name!r} names no entailment scorer: write bundled, prompted:MODEL, supports:MODEL, nli:MODEL, or the file of"
        " a trained head."
    )


@lru_cache(maxsize=1)
def bundled_entailment() -> HeadEntailment:
    """The bundled scorer, loaded once."""
    return HeadEntailment(EntailmentHead.load(), name=BUNDLED)


def model_name(name: str) -> str | None:
    """The language model that a scorer asks; None where it asks none."""
    kind, _, rest = name.partition(":")
    return rest if kind in ("prompted", "supports") and rest else None


def _option_scorer(name: str, load: Callable[[str], Generator]) -> OptionScorer:
    model = load(name)
    if not isinstance(model, OptionScorer):
        raise InputError(f"{name} gives no probabilities of answers: take another model as entailment scorer.")
    return model
