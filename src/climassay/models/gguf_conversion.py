"""Turn the GGUF file of a Llama-type model into a folder that transformers loads in a second.

Dequantising at each start would take half a minute. The folder is made once in the cache, under the hash of the GGUF
and :data:`CONVERSION`: in a temporary folder that gets its name when it is complete, by one process at a time.
Weights are kept in float32, so nothing is lost of what the file says.
"""

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.models.file_digest import file_digest
from climassay.workspace import cache_folder

if TYPE_CHECKING:
    from gguf import GGUFReader, ReaderTensor

CONVERSION = 1
"""Number of the way of converting; another number makes a new folder and leaves the old one alone."""

_RECEIPT = "conversion.json"
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


def converted_folder(gguf: Path, digest: str) -> Path:
    """Folder with the converted model; made if it is not there.

    Args:
        gguf: The file, already verified.
        digest: Its SHA-256, part of the folder's name.

    Raises:
        ModelError: The file is not of a kind that can be converted, or the cache folder cannot be written.
        MissingExtraError: The packages that read GGUF are not installed.
    """
    folder = _folder(digest)
    if _is_complete(folder):
        return folder
    from filelock import FileLock

    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{folder}.lock"):
            if not _is_complete(folder):
                _make(gguf, folder)
    except OSError as error:
        raise ModelError(
            f"The converted model cannot be written to {folder.parent} ({error.strerror or error}): make room there, "
            "or set CLIMASSAY_CACHE to another folder."
        ) from error
    return folder


def is_converted(digest: str) -> bool:
    """Whether :func:`converted_folder` has nothing left to do for the GGUF with this SHA-256."""
    return _is_complete(_folder(digest))


def _folder(digest: str) -> Path:
    return cache_folder() / "converted" / f"{digest[:16]}-{CONVERSION}"


def _is_complete(folder: Path) -> bool:
    """Whether every file named in the receipt is there with the content it was written with."""
    try:
        receipt: dict[str, str] = json.loads((folder / _RECEIPT).read_text(encoding="utf-8"))
        return all(file_digest(folder / name) == digest for name, digest in receipt.items())
    except (OSError, ValueError, AttributeError, TypeError):
        return False


def _make(gguf: Path, folder: Path) -> None:
    """Convert into a temporary folder and rename it; called by one process at a time, so old remains can go."""
    for remains in folder.parent.glob(f"{folder.name}.making-*"):
        shutil.rmtree(remains)
    if folder.exists():
        shutil.rmtree(folder)
    making = folder.with_name(f"{folder.name}.making-{os.getpid()}")
    making.mkdir()
    try:
        _write_model(gguf, making)
        receipt = {file.name: file_digest(file) for file in sorted(making.iterdir())}
        _write_json(making / _RECEIPT, receipt)
        _flush_to_disk(making)
        making.rename(folder)
    except BaseException:
        shutil.rmtree(making, ignore_errors=True)
        raise


def _write_model(gguf: Path, folder: Path) -> None:
    try:
        from gguf import GGUFReader
        from safetensors.numpy import save_file
    except ImportError as error:
        raise MissingExtraError(
            f"The bundled model needs the package {error.name}: install it with `pip install 'climassay[local]'`."
        ) from error
    reader = GGUFReader(gguf)
    facts = _Facts.read(reader, gguf)
    save_file(_weights(reader, facts), folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", facts.config())
    _write_json(folder / "generation_config.json", facts.generation_config())
    _write_json(folder / "tokenizer.json", _tokenizer(facts))
    _write_json(folder / "tokenizer_config.json", facts.tokenizer_config())
    (folder / "chat_template.jinja").write_text(facts.metadata["tokenizer.chat_template"], encoding="utf-8")


class _Facts(NamedTuple):
    """What the GGUF says beside the weights."""

    metadata: dict[str, Any]
    tied: bool
    """The output head is the embedding matrix."""

    @classmethod
    def read(cls, reader: "GGUFReader", gguf: Path) -> "_Facts":
        metadata = {name: field.contents() for name, field in reader.fields.items()}
        kind = (metadata.get("general.architecture"), metadata.get("tokenizer.ggml.pre"))
        if kind != ("llama", "smollm"):
            raise ModelError(f"{gguf.name} cannot be converted: its architecture and tokenizer are {kind}.")
        return cls(metadata, all(tensor.name != "output.weight" for tensor in reader.tensors))

    def llama(self, name: str) -> Any:
        return self.metadata[f"llama.{name}"]

    def token(self, role: str) -> int:
        return int(self.metadata[f"tokenizer.ggml.{role}_token_id"])

    @property
    def tokens(self) -> list[str]:
        return list(self.metadata["tokenizer.ggml.tokens"])

    @property
    def special(self) -> list[int]:
        kinds = self.metadata["tokenizer.ggml.token_type"]
        return [number for number, kind in enumerate(kinds) if kind == _CONTROL_TOKEN]

    def config(self) -> dict[str, Any]:
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "dtype": "float32",
            "hidden_size": self.llama("embedding_length"),
            "intermediate_size": self.llama("feed_forward_length"),
            "num_hidden_layers": self.llama("block_count"),
            "num_attention_heads": self.llama("attention.head_count"),
            "num_key_value_heads": self.llama("attention.head_count_kv"),
            "head_dim": self.llama("rope.dimension_count"),
            "max_position_embeddings": self.llama("context_length"),
            "rms_norm_eps": float(f"{self.llama('attention.layer_norm_rms_epsilon'):.6g}"),
            "rope_theta": self.llama("rope.freq_base"),
            "vocab_size": len(self.tokens),
            "hidden_act": "silu",
            "attention_bias": False,
            "mlp_bias": False,
            "tie_word_embeddings": self.tied,
            "bos_token_id": self.token("bos"),
            "eos_token_id": self.token("eos"),
            "pad_token_id": self.token("padding"),
        }

    def generation_config(self) -> dict[str, Any]:
        return {f"{short}_token_id": self.token(long) for short, long in _TOKEN_ROLES.items()}

    def tokenizer_config(self) -> dict[str, Any]:
        return {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": self.llama("context_length"),
            "clean_up_tokenization_spaces": False,
            "bos_token": self.tokens[self.token("bos")],
            "eos_token": self.tokens[self.token("eos")],
            "pad_token": self.tokens[self.token("padding")],
            "unk_token": self.tokens[self.token("unknown")],
        }


_TOKEN_ROLES = {"bos": "bos", "eos": "eos", "pad": "padding"}


def _weights(reader: "GGUFReader", facts: _Facts) -> dict[str, NDArray[np.float32]]:
    heads = {"attn_q": facts.llama("attention.head_count"), "attn_k": facts.llama("attention.head_count_kv")}
    weights = {}
    for tensor in reader.tensors:
        values = _dequantise(tensor)
        part = tensor.name.split(".")[-2]
        if part in heads:
            values = _rotary_halves(values, heads[part])
        weights[_weight_name(tensor.name)] = values
    return weights


def _dequantise(tensor: "ReaderTensor") -> NDArray[np.float32]:
    from gguf.quants import dequantize

    shape = tuple(int(size) for size in reversed(tensor.shape))
    return np.ascontiguousarray(dequantize(tensor.data, tensor.tensor_type), dtype=np.float32).reshape(shape)


def _rotary_halves(values: NDArray[np.float32], heads: int) -> NDArray[np.float32]:
    """Undo llama.cpp's order of rotary dimensions, shape [heads * width, columns].

    llama.cpp keeps the two members of a rotated pair side by side (0, 1), (2, 3) ...; transformers keeps all first
    members and then all second members.
    """
    rows, columns = values.shape
    pairs = values.reshape(heads, rows // heads // 2, 2, columns)
    return np.ascontiguousarray(pairs.transpose(0, 2, 1, 3)).reshape(rows, columns)


def _weight_name(name: str) -> str:
    """``blk.3.attn_q.weight`` -> ``model.layers.3.self_attn.q_proj.weight``."""
    parts = name.split(".")
    if parts[0] == "blk":
        return f"model.layers.{parts[1]}.{_LAYER_PARTS[parts[2]]}.{parts[3]}"
    return f"{_OUTER_PARTS[parts[0]]}.{parts[1]}"


def _tokenizer(facts: _Facts) -> dict[str, Any]:
    """The byte-level BPE of the SmolLM family, which cuts every digit off before the usual GPT-2 split."""
    tokens = facts.tokens
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added_token(number, tokens[number]) for number in facts.special],
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
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [merge.split(" ") for merge in facts.metadata["tokenizer.ggml.merges"]],
        },
    }


def _added_token(number: int, content: str) -> dict[str, Any]:
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": number, "content": content, **flags}


def _write_json(file: Path, data: Any) -> None:
    file.write_text(json.dumps(data, ensure_ascii=False, indent=1), encoding="utf-8")


def _flush_to_disk(folder: Path) -> None:
    """So that a rename seen after a power cut means a complete folder."""
    for file in folder.iterdir():
        with file.open("rb+") as opened:
            os.fsync(opened.fileno())
