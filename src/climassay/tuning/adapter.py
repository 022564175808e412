"""LoRA adapters inside a model, and as a PEFT folder that any program with PEFT can load."""

import json
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from climassay.errors import InputError
from climassay.models.local.loading import LoadedModel
from climassay.tuning.config import ALL_LINEAR, TuningConfig
from climassay.tuning.result import replace_file, save_tensors

CONFIG_FILE = "adapter_config.json"
WEIGHTS_FILE = "adapter_model.safetensors"


@dataclass(frozen=True, slots=True)
class Adapted:
    """A model with trainable factors in it."""

    model: Any
    """The transformers model, adapters inside."""
    peft: Any
    """PEFT's view of it."""
    parameters: dict[str, Tensor]
    """What is trained, by name, float32."""

    def state(self) -> dict[str, Tensor]:
        """The adapter's weights under PEFT's names, each in the shape that PEFT gives it."""
        from peft import get_peft_model_state_dict

        return dict(get_peft_model_state_dict(self.peft))


@contextmanager
def adapted(loaded: LoadedModel, config: TuningConfig) -> Iterator[Adapted]:
    """A model with a fresh adapter, which as yet changes nothing; the model is as before when the block is left.

    Raises:
        InputError: The model has no layers of the names given.
    """
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        r=config.rank,
        lora_alpha=config.alpha,
        lora_dropout=config.dropout,
        target_modules=ALL_LINEAR if config.targets == (ALL_LINEAR,) else list(config.targets),
        task_type="CAUSAL_LM",
    )
    torch.manual_seed(config.seed)
    try:
        with _names_that_change():
            peft_model = get_peft_model(loaded.model, settings)
    except ValueError as error:
        raise InputError(
            f"The model has no linear layers named {', '.join(config.targets)}: name layers of it, or {ALL_LINEAR}."
        ) from error
    model = peft_model.get_base_model()
    parameters = {name: weight for name, weight in peft_model.named_parameters() if weight.requires_grad}
    try:
        _keep_activations(model, not config.gradient_checkpointing)
        yield Adapted(model.train(), peft_model, parameters)
    finally:
        _keep_activations(model, True)
        peft_model.unload().eval().requires_grad_(False)


def _keep_activations(model: Any, kept: bool) -> None:
    with _names_that_change():
        if not kept:
            model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        elif model.is_gradient_checkpointing:
            model.gradient_checkpointing_disable()


@contextmanager
def _names_that_change() -> Iterator[None]:
    """Transformers warns of names of its own that will change; those until now work in every version supported."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def save_adapter_config(peft_model: Any, base: str, folder: Path) -> None:
    """Write PEFT's configuration of an adapter, the same bytes for the same adapter on any machine."""
    settings = peft_model.peft_config["default"].to_dict()
    settings |= {"base_model_name_or_path": base, "inference_mode": True}
    # Sets would come out in another order in every process, and with them another fingerprint.
    plain = {name: sorted(value) if isinstance(value, set | list) else value for name, value in settings.items()}
    plain["target_modules"] = sorted(settings["target_modules"])
    text = json.dumps(plain, indent=2, sort_keys=True, default=str) + "\n"
    replace_file(folder / CONFIG_FILE, lambda file: file.write_text(text, encoding="utf-8"))


def save_adapter(adapter: Adapted, file: Path) -> None:
    """Write an adapter's weights in PEFT's format; the file appears whole or not at all."""
    save_tensors(file, adapter.state(), {"format": "pt"})
