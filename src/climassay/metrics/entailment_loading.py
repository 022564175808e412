"""Entailment scorers by name, and cross-encoders trained on inference data as scorers."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.metrics.entailment import PromptedEntailment, Relations, RelationScorer
from climassay.metrics.entailment_head import EntailmentHead, HeadEntailment
from climassay.metrics.factual_accuracy import PromptedSupport
from climassay.models import load_model
from climassay.models.contract import Encoder, Generator, OptionScorer
from climassay.models.profiles import ProfileSettings, profile_of

BUNDLED = "bundled"
_MEANINGS = {"entailment": 0, "contradiction": 1, "neutral": 2, "supports": 0, "refutes": 1, "not enough info": 2}
"""How models call the relations, in lower case, as places in :data:`~climassay.metrics.entailment.RELATIONS`."""
_BATCH = 16


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
        encoder: Encoder of a head; loaded by its name if None.
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


class ClassifierEntailment:
    """A sequence classifier of two texts, its labels recognised by the names in its configuration.

    Weights are read from safetensors only, and code that comes with a model is never run. A model with two labels
    (entailment or not) gives what is not entailed to "leaves open": it does not tell contradictions.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Prepare; weights are loaded when first used."""
        self.name = name
        self._folder = folder

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[float | None]:
        """P(premise entails statement) of each pair; never None."""
        return [None if found is None else found.confirms for found in self.relations(pairs)]

    def relations(self, pairs: Sequence[tuple[str, str]]) -> list[Relations | None]:
        """Probabilities of the three relations of each pair, in order; a premise too long is cut at its end."""
        import torch

        network, tokenizer, places = self._loaded
        found: list[Relations | None] = [None] * len(pairs)
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][0]) + len(pairs[place][1]))
        for start in range(0, len(order), _BATCH):
            batch = order[start : start + _BATCH]
            first, second = zip(*(pairs[place] for place in batch), strict=True)
            tokens = tokenizer(list(first), list(second), padding=True, truncation="longest_first", max_length=512,
                               return_tensors="pt")  # fmt: skip
            with torch.inference_mode():
                rows = network(**tokens.to(network.device)).logits.double().softmax(dim=1).tolist()
            for place, row in zip(batch, rows, strict=True):
                shares = [0.0, 0.0, 0.0]
                for label, probability in enumerate(row):
                    shares[places[label]] += probability
                found[place] = Relations(*shares)
        return found

    @cached_property
    def _loaded(self) -> tuple[Any, Any, Mapping[int, int]]:
        try:
            from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer
        except ImportError as error:
            raise MissingExtraError(f"{self.name} needs transformers: pip install 'climassay[local]'.") from error
        try:
            config = AutoConfig.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
            places = label_places(self.name, config.id2label)
            network = AutoModelForSequenceClassification.from_pretrained(
                self._folder, local_files_only=True, trust_remote_code=False, use_safetensors=True
            )
            tokenizer = AutoTokenizer.from_pretrained(self._folder, local_files_only=True, trust_remote_code=False)
        except ModelError:
            raise
        except Exception as error:
            # What transformers raises for a damaged folder, or one that wants its own code run, is of no one family.
            said = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
            raise ModelError(f"The classifier {self.name} cannot be loaded from {self._folder}: {said}.") from error
        network.eval()
        return network, tokenizer, places


def load_classifier(name: str) -> ClassifierEntailment:
    """A classifier by its folder or hub id; its weights are loaded when first used.

    Raises:
        ModelError: There is no such model.
    """
    from climassay.models.local.loading import find_folder

    return ClassifierEntailment(f"nli:{name}", find_folder(name))


def label_places(name: str, labels: Mapping[int, str]) -> dict[int, int]:
    """For each label of a classifier its place in :data:`~climassay.metrics.entailment.RELATIONS`.

    Raises:
        ModelError: The labels are not those of inference data, for example LABEL_0.
    """
    found = {}
    for number, label in labels.items():
        said = label.lower().replace("_", " ").strip()
        # "not entailment" of two-class models: whatever is not entailed.
        place = 2 if said.startswith("not") else _MEANINGS.get(said)
        if place is None:
            raise ModelError(
                f"The classifier {name} calls its labels {', '.join(labels.values())}: entailment, contradiction and"
                " neutral are needed to know what they mean."
            )
        found[int(number)] = place
    if 0 not in found.values():
        raise ModelError(f"The classifier {name} has no label for entailment.")
    return found
