"""From the name of a model to the model: the part before the colon names a provider, which loads the models of its own.

How a model is reached (:class:`ModelAccess`) is described here for commands, experiments and recipes, and a local model
is loaded no sooner than it is asked (:class:`LazyModel`).
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
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import Field

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
from climassay.models.servers import (
    LOCAL,
    OPENAI,
    configuration_file,
    find_price,
    normalised_base_url,
    price_from_options,
    providers,
)
from climassay.registry import Registry
from climassay.settings import Flag
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    from climassay.models.local.model import LocalModel
    from climassay.models.openai.capabilities import Capabilities
    from climassay.models.openai.connection import RetryPolicy
    from climassay.models.servers import Price

Load = Callable[..., Generator]
_CIRCUMSTANCES = ("folder", "policy", "price", "provider")
"""What a loader is given if it takes it; other options are the user's wish, and refused where no loader takes them."""


@dataclass(frozen=True, slots=True)
class ModelProvider:
    """A source of models."""

    name: str
    """Before the colon."""
    load: Load
    """From what follows the colon, and the options that it has parameters for, to a model."""
    served: bool = True
    """Whether its models are behind a server: no weights at hand, prices, log-probabilities not for certain."""

    def open(self, rest: str, **options: object) -> Generator:
        """Load a model with the options that were given (not None).

        Raises:
            InputError: An option does not go with this provider.
            ModelError: The model cannot be found or loaded.
        """
        known = signature(self.load).parameters
        given = {name: value for name, value in options.items() if value is not None}
        strange = next((name for name in given if name not in known and name not in _CIRCUMSTANCES), None)
        if strange is not None:
            raise InputError(f"The option --{strange.replace('_', '-')} does not go with {self.name}: models.")
        return self.load(rest, **{name: value for name, value in given.items() if name in known})


PROVIDERS: Registry[ModelProvider] = Registry("provider", "climassay.providers")
"""By the part of a name before the colon; servers of the user's configuration come beside them."""


def provider(name: str, *, served: bool = True) -> Callable[[Load], Load]:
    """Add a function as the loader of a provider's models.

    It is called with what follows the colon and, by keyword, those options of
    :func:`climassay.models.load_model` that it has parameters for; users are told where an option has no effect.

    Example:
        >>> @provider("echo")
        ... def load_echo(name, *, max_output_tokens=None):
        ...     return EchoModel(name, max_output_tokens)
    """

    def add(function: Load) -> Load:
        PROVIDERS.add(name, ModelProvider(name, function, served), function.__module__)
        return function

    return add


MaxOutputTokens = Annotated[
    int | None,
    Field(
        ge=1,
        description="Maximum number of tokens of each answer; what a model thinks before it comes on top.",
        examples=[2000],
    ),
    Flag(),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAccess:
    """How a model is reached and loaded, and what it costs; None leaves it to the model or its server."""

    base_url: Annotated[
        str | None,
        Field(
            description="Gets your API key only if you allow it: see docs/how-to/api-models.md.",
            examples=["http://localhost:8000/v1"],
        ),
    ] = None
    """Server of an ``openai:`` model."""
    dtype: Annotated[
        str | None,
        Field(
            description="float32, bfloat16 or float16, for local: models; by default what is fastest here.",
            examples=["bfloat16"],
        ),
        Flag(),
    ] = None
    device: Annotated[str | None, Field(description="Device of a local model.", examples=["cuda"])] = None
    concurrency: Annotated[
        int | None, Field(ge=1, description="Maximum number of concurrent requests to a server.", examples=[16]), Flag()
    ] = None
    reasoning_effort: Annotated[
        str | None,
        Field(description="Reasoning effort of an openai: model, for example low, medium or high.", examples=["low"]),
        Flag(),
    ] = None
    timeout: Annotated[
        float | None,
        Field(
            ge=1,
            description="Seconds allowed for one attempt of a request; by default until the deadline.",
            examples=[600],
        ),
        Flag(),
    ] = None
    price_in: Annotated[
        float | None, Field(ge=0, description="US dollars per million prompt tokens.", examples=[0.15]), Flag()
    ] = None
    price_out: Annotated[
        float | None, Field(ge=0, description="US dollars per million completion tokens.", examples=[0.6]), Flag()
    ] = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileModel(ModelAccess):
    """How a model that a file names is reached: all of it is kept with the run."""

    def __post_init__(self) -> None:
        """See that the address holds no name and password, which would be kept with every run."""
        if self.base_url:
            object.__setattr__(self, "base_url", normalised_base_url(self.base_url))


DEFAULT_MODEL = "local:smollm2"
_ANSWER_TOKENS = 64
_LONG_TEXT = "The ocean takes up heat and carbon from the air above it. " * 24


def load_model(
    name: str = DEFAULT_MODEL,
    *,
    base_url: str | None = None,
    device: str | None = None,
    dtype: str | None = None,
    adapter: str | None = None,
    concurrency: int | None = None,
    price: "Price | None" = None,
    policy: "RetryPolicy | None" = None,
    max_output_tokens: int | None = None,
    reasoning_effort: str | None = None,
    folder: Path | str | None = None,
) -> Generator:
    """Load a local model, or make a client for a server.

    Args:
        name: ``local:`` and a bundled name, a folder or a hub id; or ``openai:``, or a provider of the user's
            configuration (:mod:`climassay.models.servers`), and the server's name of a model. The name of a bundled
            model may stand alone.
        base_url: Server of an ``openai:`` model. Without a key, unless it is a
            :class:`~climassay.redaction.TrustedUrl` or a host that the user has bound a key to.
        device: Where a local model computes; by default a GPU when there is one.
        dtype: What a local model computes with; by default bfloat16 on a GPU, and on a CPU where that is faster than
            float32.
        adapter: Folder of a PEFT adapter for a local model.
        concurrency: Requests under way at the same time; by default the provider finds it out.
        price: What tokens of a server's model cost; None leaves the cost unknown.
        policy: Deadlines and attempts of a server's model.
        max_output_tokens: Limit of every generated answer, in place of the requests' own; what a model behind a server
            thinks before it answers comes on top. Part of the fingerprint.
        reasoning_effort: How much a server's model is to think, in the provider's words. Part of the fingerprint.
        folder: The workspace, in which it is kept what a server's model can do; None finds it out each time.

    Returns:
        A local model also gives log-probabilities and hidden states (``OpenWeights``), a client log-probabilities
        as far as its server does (``OptionScorer``); ask with ``isinstance``.

    Raises:
        InputError: The name has no known provider, or an option does not go with the provider.
        ModelError: The model cannot be found or loaded.
        MissingExtraError: A local model without the packages of ``climassay[local]``.
    """
    source, separator, rest = name.partition(":")
    if not separator and name in BUNDLED:
        source, rest = LOCAL, name
    options = {
        "base_url": base_url,
        "device": device,
        "dtype": dtype,
        "adapter": adapter,
        "concurrency": concurrency,
        "price": price,
        "policy": policy,
        "max_output_tokens": max_output_tokens,
        "reasoning_effort": reasoning_effort,
        "folder": None if folder is None else Path(folder),
    }
    known = PROVIDERS.get(source)
    if rest and known is not None:
        return known.open(rest, **options)
    if not rest or not is_served(name):
        raise InputError(
            f"The model name {name!r} is not understood: write local:NAME (bundled name, folder or hub id), "
            "openai:NAME (with --base-url for another server than OpenAI's), or PROVIDER:NAME with a table "
            f"[providers.PROVIDER] in {configuration_file()}."
        )
    if base_url is not None:
        raise InputError(f"The option --base-url does not go with {source}: models.")
    return ModelProvider(source, load_served).open(rest, **options, provider=source)


def is_served(model: str) -> bool:
    """Whether a model's name is that of a model behind a server: ``openai:`` or another provider of such comes first.

    Raises:
        InputError: The user's configuration cannot be read.
    """
    provider, separator, _ = model.partition(":")
    if not separator:
        return False
    known = PROVIDERS.get(provider)
    return provider in providers() if known is None else known.served


def model_price(model: str, prompt: float | None, completion: float | None, folder: Path) -> "Price | None":
    """What a model's tokens cost: as given (US dollars a million), else, for models of a server, by `find_price`.

    Raises:
        InputError: Only one of the two prices is given, or the file cannot be read.
    """
    if prompt is None and completion is None:
        return find_price(model, folder) if is_served(model) else None
    return price_from_options(prompt, completion)


_ENTRIES = ("base_url", "device", "dtype", "adapter", "concurrency", "max_output_tokens", "reasoning_effort")


def load_as_set(
    name: str,
    settings: ModelAccess,
    folder: Path,
    *,
    deadline: float | None = None,
    load: Callable[..., Generator] | None = None,
    **others: Any,
) -> Generator:
    """Load a model as the options of a command, or the table of a file, say.

    Args:
        name: Its name.
        settings: How it is reached and loaded; further entries with names of arguments of :func:`load_model` are
            taken too.
        folder: The workspace.
        deadline: Seconds after which a request to a server has failed, retries included.
        load: Loads it; :func:`load_model` by default.
        others: Arguments in place of entries.

    Raises:
        InputError: Its name or an option is not understood.
        ModelError: It cannot be found or loaded.
    """
    policy = None
    if deadline is not None or settings.timeout is not None:
        from climassay.models.openai.connection import retry_policy

        policy = retry_policy(deadline, settings.timeout)
    return (load or load_model)(
        name,
        **{entry: getattr(settings, entry, None) for entry in _ENTRIES} | others,
        price=model_price(name, settings.price_in, settings.price_out, folder),
        policy=policy,
        folder=folder,
    )


class LazyModel(DescribedModel):
    """A local model that is loaded when it is first asked; the contract's ``OpenWeights``."""

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
        """The model itself.

        Raises:
            ModelError: It cannot be loaded.
        """
        with self._lock:
            return self._loaded

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see the contract."""
        return self.loaded().generate(requests, on_result=on_result) if requests else []

    def generate_stream(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_text: TextCallback,
        on_result: CompletionCallback | None = None,
    ) -> list[Completion]:
        """The same, with the text so far after every token; see the contract."""
        if not requests:
            return []
        return self.loaded().generate_stream(requests, on_text=on_text, on_result=on_result)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh every request's options, in order; see the contract."""
        return self.loaded().option_logprobs(requests, on_result=on_result) if requests else []

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Hidden states at the last token of every option, float32 [options, layers, width]; see the contract."""
        return self.loaded().harvest(requests, layers=layers, token_budget=token_budget, on_result=on_result)

    @property
    def work(self) -> Work:
        """Computed so far; nothing before it is loaded."""
        return self._loaded.work if "_loaded" in self.__dict__ else Work(0, 0)

    def close(self) -> None:
        """Give back the memory."""
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
    """A bundled model, or one of a folder or of the hub; known from before, it is loaded when it is first asked.

    Answers that are on record are found by a model's fingerprint and the rendered prompt, and the weights may be in the
    workers of a cluster. So what a model said about itself when it was loaded is kept in the cache folder, and holds as
    long as its files are the same.

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
        plain, adapter_folder = split_adapter(name, adapter)
        folder = find_folder(plain)
        card = _card(folder, adapter_folder, device, dtype, max_output_tokens)
        if (info := _kept_info(card)) is not None:
            return LazyModel(f"{LOCAL}:{name}", info, load)
        model = load()
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            f"The local model {name} needs {error.name}: run `pip install 'climassay[local]'`."
        ) from error
    if model.folder == folder:
        _keep_info(card, model.info)
    return model


def loaded_model(model: Generator) -> "LocalModel | None":
    """The local model itself, loaded; None where it is none."""
    from climassay.models.local.model import LocalModel

    result = model.loaded() if isinstance(model, LazyModel) else model
    return result if isinstance(result, LocalModel) else None


def _card(folder: Path, adapter: Path | None, device: str | None, dtype: str | None, limit: int | None) -> Path:
    """Where it is kept what a model says about itself: by its files, how it is loaded, and what decides the rest."""
    files = model_fingerprint(folder, adapter=adapter, chat_template=None, dtype="")
    versions = [importlib.metadata.version(package) for package in ("torch", "transformers", "tokenizers")]
    known = [
        *(str(folder), files, device, dtype, limit, os.environ.get(DTYPE_VARIABLE), processor(), versions),
        *(gpu_devices(), os.environ.get("CUDA_VISIBLE_DEVICES")),
    ]
    return cache_folder() / "models" / f"{hashlib.sha256(json.dumps(known).encode()).hexdigest()[:32]}.json"


def _kept_info(card: Path) -> ModelInfo | None:
    """What a model said about itself, None where that is not known or the card is damaged."""
    try:
        kept = json.loads(card.read_text(encoding="utf-8"))
        folder = Path(kept.pop("folder"))
        return ModelInfo(prompts=PromptFormat(_plain_tokenizer(folder)), folder=folder, **kept)
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None


def _keep_info(card: Path, info: ModelInfo) -> None:
    """Keep what a model says about itself, if its tokenizer read without its class is the same."""
    own: Any = info.prompts.tokenizer
    with suppress(OSError, ValueError, AttributeError, InputError):
        read = _plain_tokenizer(info.folder)
        same = own.backend_tokenizer.to_str() == read.backend_tokenizer.to_str()
        same = same and type(own).apply_chat_template is type(read).apply_chat_template
        if same and (own.special_tokens_map, own.chat_template) == (read.special_tokens_map, read.chat_template):
            kept = {part.name: getattr(info, part.name) for part in fields(info) if part.name != "prompts"}
            write_file(card, json.dumps(kept | {"folder": str(info.folder)}).encode())


def _plain_tokenizer(folder: Path) -> Any:
    """A model's tokenizer without its class, for which transformers would import torch: that takes seconds."""
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
    """Make a client for a model behind an OpenAI-compatible server."""
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
    """Whether a model works, what it is and how fast it answers; None where an entry does not apply or is unknown."""

    name: str
    fingerprint: str
    licence: str | None
    abilities: tuple[str, ...]
    """Some of generate, option_logprobs and harvest."""
    device: str | None
    dtype: str | None
    threads: int | None
    load_seconds: float
    prompt: str
    answer: str
    capabilities: "Capabilities | None"
    """What the model behind a server can do."""
    prefill_tokens_per_second: float | None
    """Prompt tokens a local model reads in a second."""
    decode_tokens_per_second: float | None
    """Tokens of one answer that come in a second, a server's network and queue included."""


def check_model(name: str, *, prompt: str, again: bool = False, **options: Any) -> ModelCheck:
    """Load a model and ask it one prompt; of a model behind a server, find out what it can do by two more.

    It is asked ``prompt``; the other arguments are those of :func:`load_model`. With ``again``, what is kept in the
    workspace of the server's abilities is forgotten first.

    Raises:
        ModelError: The model cannot be loaded.
        NoAnswerError: It does not answer.
        InputError: The name or an option cannot be used.
    """
    started = time.perf_counter()
    model = load_model(name, **options)
    loaded = time.perf_counter() - started
    try:
        server: Any = model if hasattr(model, "capabilities") else None
        if again and server is not None:
            server.forget_capabilities()
        request = GenerationRequest((Message("user", prompt),), Sampling(max_tokens=_ANSWER_TOKENS))
        if isinstance(model, OpenWeights):
            model.generate([request])  # to warm up
        started = time.perf_counter()
        (completion,) = model.generate([request])
        seconds = time.perf_counter() - started
        if completion.error is not None:
            raise NoAnswerError(f"{model.name} gave no answer: {completion.error}")
        tokens = completion.usage.completion_tokens
        prefill_rate = None
        if isinstance(model, OpenWeights):
            started = time.perf_counter()
            (scores,) = model.option_logprobs([OptionRequest((Message("user", _LONG_TEXT),), ("a",))])
            prefill_rate = scores.usage.prompt_tokens / (time.perf_counter() - started)
        rungs = (("generate", Generator), ("option_logprobs", OptionScorer), ("harvest", OpenWeights))
        return ModelCheck(
            name=model.name,
            fingerprint=model.fingerprint,
            licence=getattr(model, "licence", None),
            abilities=tuple(ability for ability, rung in rungs if isinstance(model, rung)),
            device=getattr(model, "device", None),
            dtype=getattr(model, "dtype", None),
            threads=getattr(model, "threads", None),
            load_seconds=getattr(model, "load_seconds", loaded),
            prompt=prompt,
            answer=completion.text,
            capabilities=None if server is None else _learn_capabilities(server),
            prefill_tokens_per_second=prefill_rate,
            decode_tokens_per_second=tokens / seconds if tokens else None,
        )
    finally:
        model.close()


def _learn_capabilities(model: Any) -> "Capabilities":
    """What a model behind a server can do, after it was asked to weigh, to answer under a schema, and for its window.

    What these requests give is not needed, and neither is it a failure of the model where one of them fails.
    """
    question = (Message("user", "Is ice colder than steam? Answer with one word, yes or no."),)
    model.option_logprobs([OptionRequest(question, ("yes", "no"), "Answer:")])
    fields = {"answer": {"type": "string", "enum": ["yes", "no"]}, "reason": {"type": "string", "maxLength": 200}}
    asked = (Message("user", "Is ice colder than steam? Say yes or no, and why."),)
    sampling = Sampling(max_tokens=None, temperature=0.5, top_p=0.9, stop=("\n\n\n\n",))
    model.generate([GenerationRequest(asked, sampling, object_schema(fields))])
    model.ask_window()
    return cast("Capabilities", model.capabilities)
