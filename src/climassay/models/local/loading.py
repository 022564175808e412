"""Find a local model by name (bundled, a folder, or on the Hugging Face hub) and load it as the machine computes best.

:class:`PromptFormat` turns messages into the text and the tokens that a model receives. Number format and threads on a
CPU are both found by short measurements, because no rule is right.

Processors with bfloat16 instructions (AVX512-BF16, AMX, Arm's BF16) compute a model in bfloat16 nearly twice as fast as
in float32; others only imitate it, several times slower. The format is part of a model's fingerprint, by which answers,
activations and trained files are found again, so a machine decides once: the decision lies in the cache folder.

On a machine shared with others, two threads on two busy cores can be several times slower than one, for each parallel
loop waits for the slower core; on a machine of one's own more threads are faster, up to some number.
"""

import contextlib
import functools
import gc
import hashlib
import json
import os
import platform
import re
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError, MissingExtraError, ModelError
from climassay.models.bundled import BUNDLED, bundled_path, check_adapter, model_fingerprint, refuse_kernels
from climassay.models.contract import (
    Message,
)
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase

DTYPE_VARIABLE = "CLIMASSAY_DTYPE"
THREADS_VARIABLE = "CLIMASSAY_THREADS"
CPU_DTYPES = ("float32", "bfloat16")
_CLEARLY_FASTER = 1.2
_ROUNDS = 5
_HOPELESS = 2.0
_INPUTS, _OUTPUTS, _ROWS = 576, 1536, (64, 32)
"""A layer of the bundled model: tokens of a prompt, and of 32 answers side by side. Larger models gain more."""
_SECONDS_EACH = 0.15
_CLEARLY_SLOWER = 1.25
_chosen: int | None = None

Measure = Callable[[], tuple[float, float]]


def fastest_cpu_dtype(measure: Measure | None = None) -> str:
    """``bfloat16`` where this CPU computes it at least 1.2 times as fast as float32, ``float32`` elsewhere.

    ``$CLIMASSAY_DTYPE`` decides instead where it is set. Otherwise it is measured once for each kind of processor and
    version of torch (some hundredths of a second) and read from the cache folder from then on.

    Args:
        measure: Gives the seconds in float32 and in bfloat16; by default those of multiplying a layer's weights.

    Raises:
        InputError: ``$CLIMASSAY_DTYPE`` is neither of the two.
    """
    wanted = os.environ.get(DTYPE_VARIABLE)
    if wanted:
        if wanted not in CPU_DTYPES:
            raise InputError(f"{DTYPE_VARIABLE} is {wanted!r}: set it to {' or '.join(CPU_DTYPES)}.")
        return wanted
    return _decided_dtype(cache_folder(), measure or _dtype_seconds)


@functools.cache
def _decided_dtype(folder: Path, measure: Measure) -> str:
    """The decision in the cache folder, made first where there is none; without one it holds for this process."""
    import torch

    kind = f"{processor()}\n{torch.__version__}"
    file = folder / "dtypes" / f"{hashlib.sha256(kind.encode()).hexdigest()[:32]}.json"
    if (kept := _read_dtype(file)) is not None:
        return kept
    plain, half = measure()
    result = CPU_DTYPES[half * _CLEARLY_FASTER <= plain]
    entry = {"dtype": result, "float32_seconds": plain, "bfloat16_seconds": half}
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
        # Of processes that measure at the same time, the first decides for all.
        with file.open("x", encoding="utf-8") as opened:
            opened.write(json.dumps(entry))
    return _read_dtype(file) or result


def processor() -> str:
    """Name and instructions of the CPU."""
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        cpuinfo = ""
    # Virtual machines of several generations go by one name; their instructions tell them apart.
    lines = re.findall(r"^(?:model name|CPU part|flags|Features)\s*:.*", cpuinfo.partition("\n\n")[0], re.MULTILINE)
    return "\n".join([platform.machine(), platform.processor(), *lines])


def _read_dtype(file: Path) -> str | None:
    """What was decided; a damaged file is removed."""
    try:
        result = json.loads(file.read_text(encoding="utf-8"))["dtype"]
    except OSError:
        return None
    except (ValueError, KeyError, TypeError):
        result = None
    if result in CPU_DTYPES:
        return str(result)
    with contextlib.suppress(OSError):
        file.unlink()
    return None


def _dtype_seconds() -> tuple[float, float]:
    """The shortest CPU times of a layer's work in float32 and in bfloat16, on one thread, in turns.

    What other processes do hardly counts then. More threads share the memory's bandwidth, of which bfloat16 needs half,
    so that what one thread says holds for them.
    """
    import torch

    def seconds(dtype: torch.dtype) -> float:
        started = time.thread_time()
        for one in inputs[dtype]:
            torch.nn.functional.linear(one, weights[dtype])
        return time.thread_time() - started

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        dtypes = (torch.float32, torch.bfloat16)
        weights = {dtype: torch.ones(_OUTPUTS, _INPUTS).to(dtype) for dtype in dtypes}
        inputs = {dtype: [torch.ones(rows, _INPUTS).to(dtype) for rows in _ROWS] for dtype in dtypes}
        for dtype in dtypes:
            seconds(dtype)
        plain = half = float("inf")
        for number in range(_ROUNDS):
            plain, half = min(plain, seconds(torch.float32)), min(half, seconds(torch.bfloat16))
            if number and half > _HOPELESS * plain:
                break
        return plain, half
    finally:
        torch.set_num_threads(threads)


def choose_threads(work: Callable[[], object]) -> int:
    """Set torch's number of threads for this process, by measurement at the first call.

    ``$CLIMASSAY_THREADS`` decides instead where it is set. Later calls in the same process do nothing.

    Returns:
        The number of threads in use.

    Raises:
        InputError: ``$CLIMASSAY_THREADS`` is not a positive whole number.
    """
    global _chosen
    import torch

    if _chosen is None:
        wanted = os.environ.get(THREADS_VARIABLE)
        if wanted and (not wanted.isdecimal() or int(wanted) < 1):
            raise InputError(f"{THREADS_VARIABLE} is {wanted!r}: set it to a whole number of threads, for example 1.")
        _chosen = int(wanted) if wanted else _fastest_threads(work)
    torch.set_num_threads(_chosen)
    return _chosen


def _fastest_threads(work: Callable[[], object]) -> int:
    """Try ever more threads (powers of two, and all cores) as long as that is not clearly slower."""
    import torch

    cores = usable_cores()
    best, best_seconds = 1, float("inf")
    for threads in sorted({1 << power for power in range(cores.bit_length())} | {cores}):
        torch.set_num_threads(threads)
        seconds = _mean_seconds(work)
        if seconds < best_seconds:
            best, best_seconds = threads, seconds
        elif seconds > _CLEARLY_SLOWER * best_seconds:
            break
    return best


def gpu_devices() -> list[str]:
    """What a GPU would compute through; found without importing torch, which sees none where this is empty."""
    there = [device for device in ("/dev/nvidia0", "/dev/kfd", "/dev/dxg") if Path(device).exists()]
    return there or ["mps"] * (sys.platform == "darwin")


def usable_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _mean_seconds(work: Callable[[], object]) -> float:
    """Mean time of the work after one run to warm up; the mean and not the best, for contention is what matters."""
    started = time.perf_counter()
    work()
    if time.perf_counter() - started > 10 * _SECONDS_EACH:
        return time.perf_counter() - started
    started, runs = time.perf_counter(), 0
    while time.perf_counter() - started < _SECONDS_EACH:
        work()
        runs += 1
    return (time.perf_counter() - started) / runs


PLAIN_STOPS = ("\nuser:\n", "\nsystem:\n", "\nassistant:\n")
"""Where the answer of a model without chat template ends, should it go on to write the next turn."""
_ROLE_LINE = r"(?<![^\n])(?:system|user|assistant):(?![^\n])"
"""A line that opens a turn in the plain format."""
_MARKUP = r"<+[^<>\s]+>+|\[/?[A-Z_]+\]"
"""How the marks of chat templates look, for example ``<|im_start|>``, ``</s>``, ``<<SYS>>`` and ``[INST]``."""


class PromptFormat:
    """A tokenizer with its chat template, or with a plain format where it has none.

    The plain format puts each turn under its role, so that an answer begins on a line of its own and no tokenizer
    needs a leading space::

        user:
        Is it warming?

        assistant:

    Words of a message, and of the start of an answer, are only words: a control token that is spelled out in them
    (``<|im_end|>`` in a claim, a passage, or what a model wrote before) would otherwise end the turn and open another
    one. It gets a space behind its first character, ``< |im_end|>``, and is read as the characters that it consists of.
    This is done to the text, before the template, so that the rendered prompt is what the model receives and what the
    records know; a space cannot be removed again by a tokenizer that ignores invisible characters.
    """

    def __init__(self, tokenizer: "PreTrainedTokenizerBase") -> None:
        self.tokenizer = tokenizer
        self.has_template = bool(tokenizer.chat_template)

    @property
    def stops(self) -> tuple[str, ...]:
        """Texts at which an answer ends beside the model's end token."""
        return () if self.has_template else PLAIN_STOPS

    @property
    def opening_token(self) -> int | None:
        """What a text without anything before it is conditioned on; None where the tokenizer has no such token."""
        tokens = (self.tokenizer.bos_token_id, self.tokenizer.eos_token_id)
        return next((int(token) for token in tokens if token is not None), None)

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as text.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        chat = [{"role": message.role, "content": self._as_words(message.content)} for message in messages]
        begun = self._as_words(assistant_prefix)
        if not self.has_template:
            turns = "".join(f"{turn['role']}:\n{turn['content']}\n\n" for turn in chat)
            return f"{turns}assistant:\n{begun}"
        return self._apply_template(chat) + begun

    def encode(self, text: str) -> list[int]:
        """Token ids of a rendered prompt; a template has written its special tokens as text already."""
        return list(self.tokenizer.encode(text, add_special_tokens=not self.has_template))

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many rendered prompts."""
        encoded = self.tokenizer(
            list(texts), add_special_tokens=not self.has_template, return_attention_mask=False, verbose=False
        )
        return [list(tokens) for tokens in encoded["input_ids"]]

    def decode(self, tokens: Sequence[int]) -> str:
        """Text of generated tokens, without special tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=True, clean_up_tokenization_spaces=False))

    def _as_words(self, text: str) -> str:
        """Break up every control token in a text."""
        if self._control is None:
            return text
        broken, count = self._control.subn(_broken, text)
        while count:  # what is left of one may, with the space, be another
            broken, count = self._control.subn(_broken, broken)
        return broken

    @cached_property
    def _control(self) -> re.Pattern[str] | None:
        """Finds what must not be spelled out in a message: control tokens, and the marks between turns.

        Added tokens that are neither special nor look like marks, such as runs of spaces or words of a field, are left
        alone. Templates may have marks that are not tokens of their own (``[INST]``): they are read off a rendered
        chat.
        """
        turns = [{"role": role, "content": "x"} for role in ("system", "user", "assistant", "user")]
        try:
            specimen = self._apply_template(turns) if self.has_template else ""
        except ModelError:
            specimen = ""
        added = self.tokenizer.added_tokens_decoder.values()
        marks = {token.content for token in added if token.special or re.fullmatch(_MARKUP, token.content)}
        marks |= set(self.tokenizer.all_special_tokens) | set(re.findall(_MARKUP, specimen))
        # The longest first: of two that begin alike the tokenizer takes the longer one, too.
        patterns = [
            re.escape(mark) for mark in sorted(marks, key=lambda mark: (-len(mark), mark)) if not mark.isspace()
        ]
        if not self.has_template:
            patterns.append(_ROLE_LINE)
        return re.compile("|".join(patterns)) if patterns else None

    def _apply_template(self, chat: list[dict[str, str]]) -> str:
        """Some templates know no system role: then the system message goes in front of the first user message."""
        try:
            return self._template_text(chat)
        except ModelError:
            roles = [turn["role"] for turn in chat[:2]]
            if roles != ["system", "user"]:
                raise
            merged = {"role": "user", "content": f"{chat[0]['content']}\n\n{chat[1]['content']}"}
            return self._template_text([merged, *chat[2:]])

    def _template_text(self, chat: list[dict[str, str]]) -> str:
        from jinja2.exceptions import TemplateError

        # Models that think aloud by default are asked not to: an answer, or an option to weigh, comes at once.
        options: dict[str, Any] = {"tokenize": False, "add_generation_prompt": True, "enable_thinking": False}
        try:
            return str(self.tokenizer.apply_chat_template(chat, **options))
        except TemplateError as error:
            raise ModelError(f"The model's chat template does not accept these messages: {error}.") from error


def _broken(match: re.Match[str]) -> str:
    """A mark with a space in it; nothing but a space where it has only one character."""
    mark = match[0]
    if len(mark) == 1:
        return " "
    return f"{mark[:-1]} :" if mark.endswith(":") else f"{mark[0]} {mark[1:]}"


DTYPES = ("float32", "bfloat16", "float16")
_HUB_ID = re.compile(r"\w[\w.-]*(/[\w.-]+)?")
_HUB_FILES = ["*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "README.md"]
_ADAPTER_SEPARATOR = "+adapter="


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model in memory, ready to be asked."""

    model: "PreTrainedModel"
    tokenizer: "PreTrainedTokenizerBase"
    folder: Path
    fingerprint: str
    device: str
    dtype: str
    licence: str | None
    """As its authors state it; None where they do not."""
    seconds: float
    """Time it took to load."""


def load_local(
    name: str, *, device: str | None = None, dtype: str | None = None, adapter: str | None = None
) -> LoadedModel:
    """Load a model and its tokenizer.

    Code that comes with a model is never run, and weights are read from safetensors only, never from pickles.

    Args:
        name: Bundled name, folder or hub id, without ``local:``; ``+adapter=FOLDER`` at its end names an adapter.
        device: As torch names it (``cpu``, ``cuda``, ``cuda:1``), or ``auto`` to spread a model over several GPUs; by
            default a GPU when there is one.
        dtype: One of :data:`DTYPES`; by default bfloat16 on a GPU (float16 where it has none), float16 on a
            Mac's, and on a CPU what is faster there, see :func:`~climassay.models.local.loading.fastest_cpu_dtype`.
        adapter: Folder of a PEFT adapter; its weights are merged into the model.

    Raises:
        ModelError: The model cannot be found, verified or loaded.
        MissingExtraError: The packages for local models are not installed.
    """
    # Importing torch and transformers makes millions of objects that stay; looking for garbage there costs 1 s.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _load(name, device, dtype, adapter)
    finally:
        if collecting:
            gc.enable()


def _load(name: str, device: str | None, dtype: str | None, adapter: str | None) -> LoadedModel:
    started = time.perf_counter()
    try:
        import torch
        import transformers
    except ImportError as error:
        raise MissingExtraError(
            f"Local models need the package {error.name}: install it with `pip install 'climassay[local]'`."
        ) from error
    transformers.utils.logging.disable_progress_bar()
    name, adapter_folder = split_adapter(name, adapter)
    folder = find_folder(name)
    device = device or default_device()
    dtype = dtype or default_dtype(device)
    if dtype not in DTYPES:
        raise ModelError(f"There is no dtype {dtype!r}: use one of {', '.join(DTYPES)}.")
    if device == "cpu" and dtype == "bfloat16" and _decided_dtype(cache_folder(), _dtype_seconds) != dtype:
        warnings.warn(
            "This processor has no fast bfloat16, so that the model may run many times slower than in float32: leave "
            "out --dtype, or name float32.",
            stacklevel=3,
        )
    try:
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            str(folder), trust_remote_code=False, local_files_only=True
        )
    except Exception as error:
        raise _cannot_load("tokenizer", name, error) from error
    options: dict[str, Any] = {"dtype": getattr(torch, dtype)}
    if device != "cpu":
        options["device_map"] = "auto" if device == "auto" else {"": device}
    try:
        model = transformers.AutoModelForCausalLM.from_pretrained(
            str(folder), local_files_only=True, trust_remote_code=False, use_safetensors=True, **options
        )
    except Exception as error:
        raise _cannot_load("model", name, error) from error
    if adapter_folder is not None:
        try:
            from peft import PeftModel
        except ImportError as error:
            raise MissingExtraError(
                "A model with an adapter needs the package peft: install it with `pip install 'climassay[local]'`."
            ) from error
        try:
            model = PeftModel.from_pretrained(model, str(adapter_folder)).merge_and_unload()
        except Exception as error:
            raise _cannot_load("adapter", str(adapter_folder), error) from error
    model.eval().requires_grad_(False)
    template = tokenizer.chat_template
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        folder=folder,
        fingerprint=model_fingerprint(
            folder, adapter=adapter_folder, chat_template=template if template is None else str(template), dtype=dtype
        ),
        device=str(model.device),
        dtype=dtype,
        licence=BUNDLED[name].licence if name in BUNDLED else stated_licence(folder),
        seconds=time.perf_counter() - started,
    )


def find_folder(name: str) -> Path:
    """Folder of a model, fetched from the hub when the name is neither bundled nor a folder.

    Raises:
        ModelError: There is no such model.
    """
    if name in BUNDLED:
        if BUNDLED[name].kind != "generator":
            raise ModelError(f"The bundled model {name} is an encoder and cannot generate: use local:smollm2.")
        return bundled_path(name)
    return _check_folder(hub_folder(name, "model", _HUB_FILES, ["*/*"]))


def hub_folder(name: str, thing: str, files: Sequence[str], ignored: Sequence[str] = ()) -> Path:
    """A folder here, or that of a model or encoder (``thing``) on the hub, whose files are fetched where missing.

    Raises:
        ModelError: There is no such folder or model.
    """
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder.absolute()
    if not _HUB_ID.fullmatch(name) or folder.exists():
        raise ModelError(f"There is no {thing} at {name}: give a bundled name, a folder with one, or a hub id.")
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError, RepositoryNotFoundError
    except ImportError as error:
        raise ModelError(
            f"There is no {thing} folder {name}, and the hub cannot be asked: run `pip install 'climassay[local]'`."
        ) from error
    try:
        return Path(snapshot_download(name, allow_patterns=list(files), ignore_patterns=list(ignored)))
    except RepositoryNotFoundError as error:
        raise ModelError(
            f"The hub has no public {thing} named {name}: check the name, or log in if it is gated."
        ) from error
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError, ValueError) as error:
        raise ModelError(
            f"The {thing} {name} is neither a bundled name ({', '.join(sorted(BUNDLED))}) nor a folder, and the hub "
            "could not be reached to look for it there."
        ) from error


def stated_licence(folder: Path) -> str | None:
    """Licence named at the head of the model's README, None when there is none."""
    try:
        head = (folder / "README.md").read_text(encoding="utf-8", errors="replace")[:4000]
    except OSError:
        return None
    match = re.search(r"\A---\s.*?^license(?:_name)?:\s*['\"]?([^'\"\n]+)", head, re.DOTALL | re.MULTILINE)
    return match.group(1).strip() if match else None


def split_adapter(name: str, adapter: str | None) -> tuple[str, Path | None]:
    """A model's name without its adapter, and the folder of that one.

    Raises:
        ModelError: Two adapters are given, or the folder holds none that can be read.
    """
    name, separator, in_name = name.partition(_ADAPTER_SEPARATOR)
    if separator and adapter:
        raise ModelError(f"Two adapters are given, {in_name} in the model's name and {adapter}: give only one.")
    chosen = in_name or adapter
    if not chosen:
        return name, None
    folder = Path(chosen).expanduser().absolute()
    if not (folder / "adapter_config.json").is_file():
        raise ModelError(f"There is no adapter in {folder}: it has no adapter_config.json.")
    if not (folder / "adapter_model.safetensors").is_file():
        raise ModelError(f"The adapter in {folder} has no adapter_model.safetensors: save it in that format.")
    check_adapter(folder)
    return name, folder


def _check_folder(folder: Path) -> Path:
    if not (folder / "config.json").is_file():
        raise ModelError(f"There is no model in {folder}: it has no config.json.")
    if not any(folder.glob("*.safetensors")):
        raise ModelError(
            f"The model in {folder} has no safetensors weights: save it again with `save_pretrained` (other formats "
            "can run code when they are read, and are not read)."
        )
    refuse_kernels(folder)
    return folder


def default_device() -> str:
    """The first GPU, else the CPU."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"


def default_dtype(device: str) -> str:
    """What a model computes with on a device where nothing else is said; see :func:`load_local`."""
    import torch

    if device == "cpu":
        return fastest_cpu_dtype()
    if device == "mps":
        return "float16"
    return "bfloat16" if torch.cuda.is_bf16_supported() else "float16"


def _cannot_load(part: str, name: str, error: Exception) -> ModelError:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return ModelError(f"The {part} {name} cannot be loaded: {lines[0].strip().rstrip('.')}.")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What a model says about itself without computing anything; enough to name requests before they are sent."""

    fingerprint: str
    prompts: PromptFormat
    """Tokenizer and chat template: prompts are rendered, and tokens counted, where the records are."""
    window: int
    layers: int
    dtype: str
    device: str
    token_budget: int
    parameters: int
    licence: str | None
    folder: Path


class DescribedModel:
    """What needs no weights of a local model."""

    def __init__(self, name: str, info: ModelInfo) -> None:
        self.name, self.info, self.fingerprint = name, info, info.fingerprint
        self.window, self.layers, self.parameters = info.window, info.layers, info.parameters
        self.dtype, self.device, self.token_budget = info.dtype, info.device, info.token_budget
        self.licence, self.folder = info.licence, info.folder
        self.prompts = info.prompts

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        return self.prompts.render(messages, assistant_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those of the chat template."""
        return [len(tokens) for tokens in self.prompts.encode_all(texts)]
