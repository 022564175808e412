"""The model that is tuned, its device and its fingerprint, which is known before the weights are loaded."""

from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, cast

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.models.bundled import model_fingerprint
from climassay.models.local.cpu_settings import choose_threads, fastest_cpu_dtype
from climassay.models.local.loading import LoadedModel, default_device, find_folder, load_local
from climassay.models.provider import is_served
from climassay.tuning.config import Dtype

if TYPE_CHECKING:
    import torch

_ADAPTER = "+adapter="


class TuningBase:
    """Local model to tune. Successive trainings can share it, because each training restores it afterwards.

    Args:
        name: Name of the model: ``local:``, followed by a bundled name, a folder or a hub id.
        device: ``cpu``, ``cuda``, ``cuda:1`` or ``mps``; by default a GPU if there is one.
        dtype: Number format of the weights, ``float32`` or ``bfloat16``; by default the result of
            :func:`default_dtype`.

    Raises:
        InputError: The model is on a server or already has an adapter, or the device is not available.
        ModelError: The model does not exist.
        MissingExtraError: The packages for local models are not installed.
    """

    def __init__(self, name: str, *, device: str | None = None, dtype: str | None = None) -> None:
        if is_served(name):
            raise InputError(
                f"{name} is on a server: only local: models can be tuned, because their weights are accessible."
            )
        if _ADAPTER in name:
            raise InputError(f"{name} has an adapter already: tune the model itself, {name.partition(_ADAPTER)[0]}.")
        # Not imported here, since this takes seconds, and the result of a finished training needs none of them.
        missing_package = next(
            (package for package in ("torch", "transformers", "peft") if find_spec(package) is None), None
        )
        if missing_package is not None:
            raise MissingExtraError(
                f"Tuning needs the package {missing_package}: install it with `pip install 'climassay[local]'`."
            )
        self.name = name if name.startswith("local:") else f"local:{name}"
        if device:
            import torch

            try:
                device_type = torch.device(device).type
            except RuntimeError as error:
                raise InputError(f"There is no device {device!r}: use cpu, cuda, cuda:1 or mps.") from error
            if device_type == "cuda" and not torch.cuda.is_available():
                raise InputError(f"The device {device} is not available: torch sees no GPU on this machine.")
        self.device = device or default_device()
        self.dtype = cast(Dtype, dtype or default_dtype(self.device))
        self.folder = find_folder(self.name.removeprefix("local:"))
        self._loaded: LoadedModel | None = None

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the model in this number format, computed without loading the weights.

        Raises:
            ModelError: The tokenizer cannot be loaded.
        """
        from transformers import AutoTokenizer

        try:
            tokenizer = AutoTokenizer.from_pretrained(str(self.folder), trust_remote_code=False, local_files_only=True)
        except Exception as error:  # transformers raises errors of many kinds for a bad folder
            raise ModelError(f"The tokenizer of {self.name} cannot be loaded: {str(error).strip()[:200]}.") from error
        template = None if tokenizer.chat_template is None else str(tokenizer.chat_template)
        return model_fingerprint(self.folder, adapter=None, chat_template=template, dtype=self.dtype)

    @property
    def label(self) -> str:
        """Name of the model without the path of its folder, which differs between machines."""
        name = self.name.removeprefix("local:")
        return self.folder.name if Path(name).expanduser().is_dir() else name

    def load(self) -> LoadedModel:
        """Load the model on first use and return it.

        Raises:
            ModelError: The model cannot be loaded.
        """
        if self._loaded is None:
            name = self.name.removeprefix("local:")
            self._loaded = load_local(name, device=self.device, dtype=self.dtype)
            if self.device == "cpu":
                import torch

                network = self._loaded.model
                tokens = torch.arange(16)[None] % int(network.get_input_embeddings().weight.shape[0])
                choose_threads(torch.no_grad()(lambda: network(input_ids=tokens)))
        return self._loaded

    def autocast(self) -> "torch.autocast":
        """Return a context manager that computes matrix products in bfloat16 if the model's dtype is bfloat16."""
        import torch

        return torch.autocast(torch.device(self.device).type, torch.bfloat16, enabled=self.dtype == "bfloat16")


def default_dtype(device: str) -> str:
    """Return the faster number format for the frozen weights: bfloat16 if the hardware supports it, else float32.

    On a CPU it is measured by :func:`~climassay.models.local.cpu_settings.fastest_cpu_dtype`. With AVX512-BF16 or AMX,
    training in bfloat16 is more than twice as fast as in float32; see docs/tuning.md.
    """
    import torch

    device_type = torch.device(device).type
    if device_type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported(including_emulation=False) else "float32"
    return fastest_cpu_dtype() if device_type == "cpu" else "float32"
