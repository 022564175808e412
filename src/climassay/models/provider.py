"""Load models by name; the part before the colon names the provider.

:class:`~climassay.models.options.ModelOptions` describes how a model is reached, loaded and called. A local model is
loaded at its first request (:class:`LazyModel`).
"""

import hashlib
import importlib.metadata
import json
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import cached_property
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from climassay.errors import InputError, MissingExtraError, ModelError, NoAnswerError
from climassay.io import write_file
from climassay.models.bundled import BUNDLED, model_fingerprint
from climassay.models.contract import (
    Activations,
    ActivationsCallback,
    Completion,
    CompletionCallback,
    GenerationRequest,
    Generator,
    Message,
    OpenWeights,
    OptionRequest,
    OptionScorer,
    OptionScores,
    Sampling,
    ScoresCallback,
    TextCallback,
    Work,
    object_schema,
)
from climassay.models.local.cpu_settings import DTYPE_VARIABLE, processor
from climassay.models.local.loading import find_folder, gpu_devices, split_adapter
from climassay.models.local.prompt_format import DescribedModel, ModelInfo, PromptFormat
from climassay.models.options import ModelAccess, ModelOptions
from climassay.models.servers import LOCAL, OPENAI, configuration_file, find_price, price_from_options, providers
from climassay.registry import Registry
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    from climassay.models.local.model import LocalModel
    from climassay.models.openai.capabilities import Capabilities
    from climassay.models.openai.pacing import RetryPolicy
    from climassay.models.servers import Price

Load = Callable[..., Generator]
_INTERNAL_OPTIONS = ("folder", "policy", "price", "provider")
"""Options that loaders may ignore; all others are rejected if the loader does not support them."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """Source of models, such as ``local`` or ``openai``."""

    name: str
    """Name before the colon."""
    load: Load
    """Function that loads a model; its arguments are the model's name after the colon and the options that it supports.
    """
    served: bool = True
    """Whether the provider's models run on a server. Such models have prices, no accessible weights, and perhaps no
    log-probabilities."""

    def open(self, model_name: str, **options: object) -> Generator:
        """Load a model with the options that are not None.

        Raises:
            InputError: The provider does not support an option.
            ModelError: The model cannot be found or loaded.
        """
        parameters = signature(self.load).parameters
        set_options = {name: value for name, value in options.items() if value is not None}
        unsupported_option = next(
            (name for name in set_options if name not in parameters and name not in _INTERNAL_OPTIONS), None
        )
        if unsupported_option is not None:
            raise InputError(
                f"The option --{unsupported_option.replace('_', '-')} does not go with {self.name}: models."
            )
        return self.load(model_name, **{name: value for name, value in set_options.items() if name in parameters})


PROVIDERS: Registry[ModelProvider] = Registry("provider", "climassay.providers")
"""Providers by name; servers of the user's configuration are added to them."""


def provider(name: str, *, served: bool = True) -> Callable[[Load], Load]:
    """Register a function as the loader of a provider's models.

    The function is called with the part of the model's name after the colon and, by keyword, the options that it has
    parameters for: ``base_url``, ``device``, ``dtype``, ``adapter``, ``concurrency``, ``max_output_tokens``,
    ``reasoning_effort``, ``price``, ``policy`` and ``folder``. Other options are rejected.

    Example:
        >>> @provider("echo")
        ... def load_echo(name, *, max_output_tokens=None):
        ...     return EchoModel(name, max_output_tokens)
    """

    def add(function: Load) -> Load:
        PROVIDERS.add(name, ModelProvider(name, function, served), function.__module__)
        return function

    return add


DEFAULT_MODEL = "local:smollm2"
_ANSWER_TOKENS = 64
_LONG_TEXT = "The ocean takes up heat and carbon from the air above it. " * 24


def load_model(
    name: str = DEFAULT_MODEL, options: ModelOptions = ModelOptions(), *, folder: Path | str | None = None
) -> Generator:
    """Load a local model, or create a client for a server.

    Args:
        name: ``local:`` and a bundled name, folder or hub id; or ``openai:``, or a provider of the user's configuration
            (:mod:`climassay.models.servers`), and the server's name of a model. ``local:`` is optional for a bundled
            model.
        options: Options for loading the model or reaching its server.
        folder: Workspace with the prices of models and the stored capabilities of server models. If None, capabilities
            are learned each time, and the cost is unknown unless the options state prices.

    Returns:
        The model. A local model also returns log-probabilities and hidden states (``OpenWeights``), and a client of a
        server scores options (``OptionScorer``); check with ``isinstance``.

    Raises:
        InputError: The provider is unknown, or does not support an option.
        ModelError: The model cannot be found or loaded.
        MissingExtraError: The model is local, and the packages of ``climassay[local]`` are not installed.
    """
    source, separator, model_name = name.partition(":")
    if not separator and name in BUNDLED:
        source, model_name = LOCAL, name
    known_provider = PROVIDERS.get(source)
    if not model_name or (known_provider is None and not is_served(name)):
        raise InputError(
            f"The model name {name!r} is not understood: write local:NAME (bundled name, folder or hub id), "
            "openai:NAME (with --base-url for another server than OpenAI's), or PROVIDER:NAME with a table "
            f"[providers.PROVIDER] in {configuration_file()}."
        )
    arguments = _load_arguments(name, options, None if folder is None else Path(folder))
    if known_provider is not None:
        return known_provider.open(model_name, **arguments)
    if options.base_url is not None:
        raise InputError(f"The option --base-url does not go with {source}: models.")
    return ModelProvider(source, load_served).open(model_name, **arguments, provider=source)


def _load_arguments(name: str, options: ModelOptions, folder: Path | None) -> dict[str, Any]:
    """Return the keyword arguments of a provider's loader."""
    policy = None
    if options.deadline is not None or options.timeout is not None:
        from climassay.models.openai.pacing import retry_policy

        policy = retry_policy(options.deadline, options.timeout)
    return {
        "base_url": options.base_url,
        "device": options.device,
        "dtype": options.dtype,
        "adapter": options.adapter,
        "concurrency": options.concurrency,
        "max_output_tokens": options.max_output_tokens,
        "reasoning_effort": options.reasoning_effort,
        "price": model_price(name, options, folder),
        "policy": policy,
        "folder": folder,
    }


def is_served(model: str) -> bool:
    """Return whether a model name refers to a model behind a server.

    Raises:
        InputError: The user's configuration cannot be read.
    """
    provider, separator, _ = model.partition(":")
    if not separator:
        return False
    known_provider = PROVIDERS.get(provider)
    return provider in providers() if known_provider is None else known_provider.served


def model_price(model: str, options: ModelAccess, folder: Path | None) -> "Price | None":
    """Return the price in the options or, if there is none, the price from :func:`find_price`.

    Raises:
        InputError: The options have only one of the two prices, or the file cannot be read.
    """
    price = price_from_options(options.price_in, options.price_out)
    return find_price(model, folder) if price is None and folder is not None and is_served(model) else price


class LazyModel(DescribedModel):
    """Local model that is loaded at its first request; implements ``contract.OpenWeights``."""

    def __init__(self, name: str, info: ModelInfo, load: "Callable[[], LocalModel]") -> None:
        super().__init__(name, info)
        self._load = load
        self._lock = threading.Lock()

    @cached_property
    def _loaded(self) -> "LocalModel":
        model = self._load()
        if model.fingerprint != self.fingerprint:
            raise ModelError(f"The files of {self.name} have changed since the command began: start it again.")
        return model

    def loaded(self) -> "LocalModel":
        """Return the model, loading it if necessary.

        Raises:
            ModelError: The model cannot be loaded.
        """
        with self._lock:
            return self._loaded

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Return a completion for each request, in order; see :class:`climassay.models.contract.Generator`."""
        return self.loaded().generate(requests, on_result=on_result) if requests else []

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """Return completions, with previews; see :class:`climassay.models.contract.StreamingGenerator`."""
        if not requests:
            return []
        return self.loaded().generate_stream(requests, on_text=on_text, on_result=on_result)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Return the scores of each request's options; see :class:`climassay.models.contract.OptionScorer`."""
        return self.loaded().option_logprobs(requests, on_result=on_result) if requests else []

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Return hidden states at the last token of every option; see ``contract.OpenWeights``."""
        return self.loaded().harvest(requests, layers=layers, token_budget=token_budget, on_result=on_result)

    @property
    def work(self) -> Work:
        """Computation so far; zero before the model is loaded."""
        return self._loaded.work if "_loaded" in self.__dict__ else Work(0, 0)

    def close(self) -> None:
        """Free memory."""
        if "_loaded" in self.__dict__:
            self._loaded.close()


@provider(LOCAL, served=False)
def load_local(
    name: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    adapter: str | None = None,
    concurrency: int | None = None,
    max_output_tokens: int | None = None,
) -> "LocalModel | LazyModel":
    """Load a bundled model, or one from a folder or the hub.

    If the model's properties are cached, its weights are loaded only at the first request.

    Cached answers are found by fingerprint and rendered prompt, without the weights. The properties of a loaded model
    are therefore stored in the cache folder, and are valid as long as its files are unchanged.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages of ``climassay[local]`` are not installed.
    """

    def load() -> "LocalModel":
        from climassay.models.local.model import LocalModel

        return LocalModel(
            f"{LOCAL}:{name}",
            device=device,
            dtype=dtype,
            adapter=adapter,
            concurrency=concurrency,
            max_output_tokens=max_output_tokens,
        )

    try:
        model_name, adapter_folder = split_adapter(name, adapter)
        folder = find_folder(model_name)
        info_file = _locate_info_file(folder, adapter_folder, device, dtype, max_output_tokens)
        if (info := _load_info(info_file)) is not None:
            return LazyModel(f"{LOCAL}:{name}", info, load)
        model = load()
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The local model {name} needs {error.name}: run `pip install 'climassay[local]'`."
        ) from error
    if model.folder == folder:
        _store_info(info_file, model.info)
    return model


def loaded_model(model: Generator) -> "LocalModel | None":
    """Return the loaded local model, or None if the model is not local."""
    from climassay.models.local.model import LocalModel

    result = model.loaded() if isinstance(model, LazyModel) else model
    return result if isinstance(result, LocalModel) else None


def _locate_info_file(
    folder: Path, adapter: Path | None, device: str | None, dtype: str | None, max_output_tokens: int | None
) -> Path:
    """Return the path of a model's cached properties, named by a hash of its files, load options and environment."""
    files = model_fingerprint(folder, adapter=adapter, chat_template=None, dtype="")
    versions = [importlib.metadata.version(package) for package in ("torch", "transformers", "tokenizers")]
    key_parts = [
        *(str(folder), files, device, dtype, max_output_tokens, os.environ.get(DTYPE_VARIABLE), processor(), versions),
        *(gpu_devices(), os.environ.get("CUDA_VISIBLE_DEVICES")),
    ]
    return cache_folder() / "models" / f"{hashlib.sha256(json.dumps(key_parts).encode()).hexdigest()[:32]}.json"


def _load_info(file: Path) -> ModelInfo | None:
    """Return stored properties of a model, or None if missing or damaged."""
    try:
        entries = json.loads(file.read_text(encoding="utf-8"))
        folder = Path(entries.pop("folder"))
        return ModelInfo(prompts=PromptFormat(_load_plain_tokenizer(folder)), folder=folder, **entries)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _store_info(file: Path, info: ModelInfo) -> None:
    """Store the properties of a model, unless a plain fast tokenizer differs from the model's own tokenizer class."""
    tokenizer: Any = info.prompts.tokenizer
    with suppress(OSError, ValueError, AttributeError, InputError):
        plain_tokenizer = _load_plain_tokenizer(info.folder)
        is_same = tokenizer.backend_tokenizer.to_str() == plain_tokenizer.backend_tokenizer.to_str()
        is_same = is_same and type(tokenizer).apply_chat_template is type(plain_tokenizer).apply_chat_template
        if is_same and (tokenizer.special_tokens_map, tokenizer.chat_template) == (
            plain_tokenizer.special_tokens_map,
            plain_tokenizer.chat_template,
        ):
            entries = {field.name: getattr(info, field.name) for field in fields(info) if field.name != "prompts"}
            write_file(file, json.dumps(entries | {"folder": str(info.folder)}).encode())


def _load_plain_tokenizer(folder: Path) -> Any:
    """Load a tokenizer as a plain fast tokenizer. Loading its own class would import torch, which takes seconds."""
    from transformers import PreTrainedTokenizerFast

    tokenizers: Any = PreTrainedTokenizerFast
    return tokenizers.from_pretrained(str(folder), local_files_only=True, trust_remote_code=False)


@provider(OPENAI)
def load_served(
    name: str,
    *,
    provider: str = OPENAI,
    base_url: str | None = None,
    concurrency: int | None = None,
    price: "Price | None" = None,
    policy: "RetryPolicy | None" = None,
    max_output_tokens: int | None = None,
    reasoning_effort: str | None = None,
    folder: Path | None = None,
) -> Generator:
    """Create a client for a model behind an OpenAI-compatible server."""
    from climassay.models.openai.client import OpenAIModel

    return OpenAIModel(
        name,
        provider=provider,
        base_url=base_url,
        concurrency=concurrency,
        price=price,
        policy=policy,
        max_output_tokens=max_output_tokens,
        reasoning_effort=reasoning_effort,
        folder=folder,
    )


@dataclass(frozen=True, slots=True)
class ModelCheck:
    """Properties and speed of a working model; None for entries that are unknown or not applicable."""

    name: str
    fingerprint: str
    licence: str | None
    abilities: tuple[str, ...]
    """Supported methods among generate, option_logprobs and harvest."""
    device: str | None
    dtype: str | None
    threads: int | None
    load_seconds: float
    prompt: str
    answer: str
    capabilities: "Capabilities | None"
    """Capabilities of a model behind a server."""
    prefill_tokens_per_second: float | None
    """Prompt tokens per second of a local model."""
    decode_tokens_per_second: float | None
    """Tokens per second of one answer, including the network and queue of a server."""


def check_model(
    name: str, options: ModelOptions = ModelOptions(), *, prompt: str, again: bool = False, folder: Path | None = None
) -> ModelCheck:
    """Load a model and send it a prompt; for a server, also learn its capabilities by two more requests.

    Args:
        name: Name of the model.
        options: Options for loading the model or reaching its server.
        prompt: Prompt to send.
        again: Whether to delete stored capabilities first.
        folder: Workspace in which capabilities are stored.

    Raises:
        ModelError: The model cannot be loaded.
        NoAnswerError: The model does not answer.
        InputError: The name or an option is invalid.
    """
    start_time = time.perf_counter()
    model = load_model(name, options, folder=folder)
    load_seconds = time.perf_counter() - start_time
    try:
        server: Any = model if hasattr(model, "capabilities") else None
        if again and server is not None:
            server.forget_capabilities()
        request = GenerationRequest((Message("user", prompt),), Sampling(max_tokens=_ANSWER_TOKENS))
        if isinstance(model, OpenWeights):
            model.generate([request])  # to warm up
        start_time = time.perf_counter()
        (completion,) = model.generate([request])
        seconds = time.perf_counter() - start_time
        if completion.error is not None:
            is_late = server is not None and options.deadline is not None and seconds >= options.deadline
            advice = " If it is busy, or first has to load its model, use a longer --deadline." if is_late else ""
            raise NoAnswerError(f"{model.name} gave no answer: {completion.error}{advice}")
        tokens = completion.usage.completion_tokens
        prefill_rate = None
        if isinstance(model, OpenWeights):
            start_time = time.perf_counter()
            (scores,) = model.option_logprobs([OptionRequest((Message("user", _LONG_TEXT),), ("a",))])
            prefill_rate = scores.usage.prompt_tokens / (time.perf_counter() - start_time)
        protocols = (("generate", Generator), ("option_logprobs", OptionScorer), ("harvest", OpenWeights))
        return ModelCheck(
            name=model.name,
            fingerprint=model.fingerprint,
            licence=getattr(model, "licence", None),
            abilities=tuple(ability for ability, protocol in protocols if isinstance(model, protocol)),
            device=getattr(model, "device", None),
            dtype=getattr(model, "dtype", None),
            threads=getattr(model, "threads", None),
            load_seconds=getattr(model, "load_seconds", load_seconds),
            prompt=prompt,
            answer=completion.text,
            capabilities=None if server is None else _learn_capabilities(server),
            prefill_tokens_per_second=prefill_rate,
            decode_tokens_per_second=tokens / seconds if tokens else None,
        )
    finally:
        model.close()


def _learn_capabilities(model: Any) -> "Capabilities":
    """Learn a server model's capabilities from a request with options, a request with a schema, and a query.

    The query asks for the context window. Answers and failures are ignored.
    """
    question = (Message("user", "Is ice colder than steam? Answer with one word, yes or no."),)
    model.option_logprobs([OptionRequest(question, ("yes", "no"), "Answer:")])
    fields = {"answer": {"type": "string", "enum": ["yes", "no"]}, "reason": {"type": "string", "maxLength": 200}}
    schema_question = (Message("user", "Is ice colder than steam? Say yes or no, and why."),)
    sampling = Sampling(max_tokens=None, temperature=0.5, top_p=0.9, stop=("\n\n\n\n",))
    model.generate([GenerationRequest(schema_question, sampling, object_schema(fields))])
    model.query_window()
    return cast("Capabilities", model.capabilities)
