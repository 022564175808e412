"""Encoders by name, and caches of their vectors.

The bundled encoder is a BERT sentence encoder as an ONNX graph with 8-bit weights, built from the files of its folder;
any other is a sentence-transformers folder or hub id. The graph takes one text at a time, shape [1, tokens], without
padding or mask: batches gain nothing on a CPU for texts of this length, and the 8-bit scale of activations depends on
one text only, so that a text has the same vector in every call.

Notes:
    Weights have one scale per column and values from -63 to 63, not 127: processors before AVX512-VNNI add pairs of
    8-bit products in 16 bits, which must not overflow. This costs no accuracy on paragraphs of AR6, as measured, since
    the error is due to the activations. ``LayerNormalization`` is a separate operator because ONNX Runtime's fused
    ``SkipLayerNormalization`` takes four times as long on a CPU.
"""

import contextlib
import hashlib
import json
import os
import threading
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from climassay.errors import MissingExtraError, ModelError
from climassay.io import write_file
from climassay.models.bundled import bundled_path, encoder_fingerprint, file_digest, refuse_kernels, refuse_pickles
from climassay.models.contract import Encoder, EncoderRole
from climassay.models.local.cpu_settings import usable_cores
from climassay.models.local.loading import hub_folder
from climassay.models.saved_model_encoder import PREFIX as SAVED_MODEL_PREFIX
from climassay.models.saved_model_encoder import SavedModelEncoder
from climassay.workspace import cache_folder

WINDOW_TOKENS = 256
"""Maximum number of tokens per window, including two special tokens, as the model's authors recommend."""
_TEXTS_PER_BLOCK = 1024
"""Number of texts tokenised together; it bounds the memory for tokens."""

Precision = Literal["int8", "float32"]

GRAPH_VERSION = 1
"""Version of the graph's computation, part of fingerprints and cache file names."""

_MAX_WEIGHT = 63
_CONTRIB = "com.microsoft"
_OPSET = 20
_IR_VERSION = 10

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class BertShape:
    """Parameters of a BERT configuration that determine the ONNX graph."""

    layers: int
    heads: int
    width: int
    epsilon: float

    @classmethod
    def from_folder(cls, folder: Path) -> "BertShape":
        """Read the configuration of the model in a folder.

        Raises:
            ModelError: The model is not a BERT with GELU and absolute positions.
        """
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        architecture = (
            config.get("model_type"),
            config.get("hidden_act"),
            config.get("position_embedding_type", "absolute"),
        )
        if architecture != ("bert", "gelu", "absolute"):
            raise ModelError(
                f"The model in {folder} is not a BERT with GELU and absolute positions: use it through torch."
            )
        return cls(
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            width=config["hidden_size"],
            epsilon=config["layer_norm_eps"],
        )


def build_graph(folder: Path, precision: Precision = "int8") -> bytes:
    """Build the ONNX model of a sentence-transformers folder with a BERT and mean pooling.

    Returns:
        Serialised model with input ``ids``, int32 [1, tokens], including special tokens, and output ``vector``, float32
        [1, width], the mean over the tokens, scaled to unit length.

    Raises:
        ModelError: The model has another architecture.
    """
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")
    return _Graph(BertShape.from_folder(folder), weights, precision).build()


@dataclass
class _Graph:
    """Builder of an ONNX graph; each method adds nodes and returns the name of their output."""

    shape: BertShape
    weights: dict[str, Array]
    precision: Precision
    nodes: list[Any] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)

    def build(self) -> bytes:
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        states = self.embed()
        for layer in range(self.shape.layers):
            states = self.block(states, f"encoder.layer.{layer}.")
        mean = self.node("ReduceMean", [states, "one"], "mean", keepdims=0)
        self.node("LpNormalization", [mean], "vector", axis=1, p=2)
        ids = helper.make_tensor_value_info("ids", TensorProto.INT32, [1, "tokens"])
        vector = helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, self.shape.width])
        initializers = [
            numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in self.constants.items()
        ]
        graph = helper.make_graph(self.nodes, "sentence_encoder", [ids], [vector], initializers)
        opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(_CONTRIB, 1)]
        model: onnx.ModelProto = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
        return bytes(model.SerializeToString())

    def node(
        self, operator: str, inputs: list[str], output: str | list[str], domain: str = "", **attributes: Any
    ) -> str:
        from onnx import helper

        outputs = [output] if isinstance(output, str) else output
        self.nodes.append(helper.make_node(operator, inputs, outputs, domain=domain, **attributes))
        return outputs[0]

    def constant(self, name: str, value: Array) -> str:
        self.constants[name] = value
        return name

    def embed(self) -> str:
        """Add word, position and token type embeddings."""
        prefix = "embeddings."
        words = self.constant("words", self.weights[prefix + "word_embeddings.weight"])
        position_embeddings = self.weights[prefix + "position_embeddings.weight"]
        positions = self.constant(
            "places", position_embeddings + self.weights[prefix + "token_type_embeddings.weight"][0]
        )
        self.node("Shape", ["ids"], "shape")
        self.node("Gather", ["shape", self.constant("one", np.array([1]))], "tokens")
        self.node("Slice", [positions, self.constant("zero", np.array([0])), "tokens"], "place_rows")
        self.node("Gather", [words, "ids"], "word_rows")
        return self.norm(self.node("Add", ["word_rows", "place_rows"], "embedded"), prefix + "LayerNorm")

    def block(self, states: str, prefix: str) -> str:
        """Add a transformer layer."""
        prefixes = [f"{prefix}attention.self.{name}" for name in ("query", "key", "value")]
        weight = np.concatenate([self.weights[f"{part}.weight"] for part in prefixes])
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in prefixes])
        qkv = self.linear(states, weight, bias, f"{prefix}qkv")
        sizes = self.constant("qkv_sizes", np.array([self.shape.width] * 3))
        heads = [f"{prefix}q", f"{prefix}k", f"{prefix}v"]
        self.node("Split", [qkv, sizes], heads, axis=2)
        attention = self.node("MultiHeadAttention", heads, f"{prefix}mixed", _CONTRIB, num_heads=self.shape.heads)
        attention_output = self.dense(attention, f"{prefix}attention.output.dense")
        states = self.residual(attention_output, states, f"{prefix}attention.output.LayerNorm")
        activations = self.dense(states, f"{prefix}intermediate.dense")
        activations = self.node("Gelu", [activations], f"{activations}_gelu", _CONTRIB)
        return self.residual(self.dense(activations, f"{prefix}output.dense"), states, f"{prefix}output.LayerNorm")

    def residual(self, change: str, states: str, name: str) -> str:
        return self.norm(self.node("Add", [change, states], f"{name}_sum"), name)

    def norm(self, states: str, name: str) -> str:
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        shift = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.node("LayerNormalization", [states, scale, shift], f"{name}_out", epsilon=self.shape.epsilon)

    def dense(self, states: str, name: str) -> str:
        return self.linear(states, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name)

    def linear(self, states: str, weight: Array, bias: Array, name: str) -> str:
        """Add ``states @ weight.T + bias``.

        int8 uses one scale per text for states and one scale per column for weights.
        """
        matrix = weight.T.astype(np.float32)
        shift = self.constant(f"{name}_bias", bias.astype(np.float32))
        if self.precision == "float32":
            product = self.node("MatMul", [states, self.constant(f"{name}_matrix", matrix)], f"{name}_product")
            return self.node("Add", [product, shift], f"{name}_out")
        column_scales = np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float32).tiny) / _MAX_WEIGHT
        int8_matrix = self.constant(f"{name}_levels", np.round(matrix / column_scales).astype(np.int8))
        scales = self.constant(f"{name}_scales", column_scales.astype(np.float32))
        inputs = [states, int8_matrix, scales, "", shift]
        return self.node("DynamicQuantizeMatMul", inputs, f"{name}_out", _CONTRIB)


class BertEncoder:
    """Sentence-transformers BERT with mean pooling, as a quantised ONNX graph.

    A text longer than :data:`WINDOW_TOKENS` is divided into windows of equal length, and its vector is the mean of
    their vectors, weighted by their numbers of tokens: a 2000-character passage (about 400 tokens) is not truncated.
    ``benchmarks/encoder.py`` compares speed and recall with truncation at 256 or 512 tokens and with float32.

    The graph is built once in the cache folder and loaded at first use. A text's vector depends neither on other texts
    nor on the number of threads.
    """

    def __init__(
        self, name: str, folder: Path, fingerprint: str, precision: Precision = "int8", threads: int | None = None
    ) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._folder = folder
        self._precision: Precision = precision
        self._threads = threads or usable_cores()

    @cached_property
    def width(self) -> int:
        """Number of dimensions of the vectors."""
        return BertShape.from_folder(self._folder).width

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",  # noqa: ARG002 - this model treats queries and passages alike
        on_progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Return unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        if not texts:
            return vectors
        session = self._session
        with ThreadPoolExecutor(min(self._threads, len(texts))) as pool:
            n_encoded = 0
            for start in range(0, len(texts), _TEXTS_PER_BLOCK):
                text_block = list(texts[start : start + _TEXTS_PER_BLOCK])
                tokens = [
                    encoding.ids for encoding in self._tokenizer.encode_batch(text_block, add_special_tokens=False)
                ]
                for vector in pool.map(lambda ids: self._encode_tokens(session, ids), tokens):
                    vectors[n_encoded] = vector
                    n_encoded += 1
                    if on_progress is not None:
                        on_progress(1)
        return vectors

    def _encode_tokens(self, session: Any, ids: Sequence[int]) -> NDArray[np.float32]:
        start, end = self._special_tokens
        weighted_sum = np.zeros(self.width, dtype=np.float32)
        for window in windows(ids, WINDOW_TOKENS - 2):
            (vector,) = session.run(None, {"ids": np.array([[start, *window, end]], dtype=np.int32)})
            # The only window of an empty text has no tokens, but counts all the same.
            weighted_sum += vector[0] * max(len(window), 1)
        return weighted_sum / np.linalg.norm(weighted_sum)

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer

        tokenizer = Tokenizer.from_file(str(self._folder / "tokenizer.json"))
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _special_tokens(self) -> tuple[int, int]:
        """Ids of the tokens before and after every text."""
        start, end = self._tokenizer.encode("").ids
        return int(start), int(end)

    @cached_property
    def _session(self) -> Any:
        try:
            import onnxruntime
        except ImportError as error:
            raise MissingExtraError(
                f"The encoder {self.name} needs onnxruntime: run `pip install 'climassay[local]'`."
            ) from error
        options = onnxruntime.SessionOptions()
        # Texts are spread over threads; within a text one thread is enough and never waits for another.
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        # The extended optimisations would fuse the layer norms back into the slow operator.
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
        graph = self._find_graph_file()
        try:
            return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            graph.unlink(missing_ok=True)
            raise ModelError(
                f"The encoder graph {graph} could not be loaded ({error}) and has been removed: "
                "run the command again, it will be created again."
            ) from error

    def _find_graph_file(self) -> Path:
        """Return the path of the cached graph, building it if missing or damaged; safe for concurrent processes."""
        file = cache_folder() / "encoders" / f"{self.fingerprint[:32]}-{self._precision}.onnx"
        digest_file = file.with_suffix(".sha256")
        try:
            digest = digest_file.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            digest = ""
        # A flipped bit of a weight would change every vector unnoticed.
        if not (file.is_file() and digest == file_digest(file)):
            file.parent.mkdir(parents=True, exist_ok=True)
            graph = build_graph(self._folder, self._precision)
            write_file(file, graph)
            write_file(digest_file, hashlib.sha256(graph).hexdigest().encode())
        return file


def windows(ids: Sequence[int], max_length: int) -> Iterator[Sequence[int]]:
    """Divide tokens into as few windows of at most ``max_length`` tokens as possible, of nearly equal length.

    An empty sequence gives one empty window.
    """
    count = max(1, -(-len(ids) // max_length))
    for index in range(count):
        yield ids[index * len(ids) // count : (index + 1) * len(ids) // count]


BUNDLED_ENCODER = "local:minilm"
"""Default encoder, all-MiniLM-L6-v2."""

TOKEN_BUDGET = 8192
"""Maximum number of padded tokens in a batch: a few megabytes of activations, enough for a CPU or small GPU."""
_PREFIX = "local:"
_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "README.md"]


def load_encoder(name: str = BUNDLED_ENCODER, device: str | None = None, *, threads: int | None = None) -> Encoder:
    """Load an encoder by name; its weights are loaded at first use.

    The bundled encoder always runs on the CPU, in 8-bit ONNX Runtime, so that a collection made on one machine can be
    searched on any other. Other models run in torch, in their own precision.

    Args:
        name: ``local:minilm`` (bundled all-MiniLM-L6-v2), ``local:`` and a sentence-transformers folder or hub id, or
            ``savedmodel:`` and a folder (:mod:`climassay.models.saved_model_encoder`), which runs on the CPU.
        device: torch device, for example ``cuda:0``; by default a GPU if there is one.
        threads: Number of texts that the bundled encoder encodes concurrently; by default the number of cores.

    Raises:
        ModelError: The name has another prefix, the model is missing or not the published one, or ``device`` is not the
            CPU for the bundled encoder.
    """
    if name.startswith(SAVED_MODEL_PREFIX) and name != SAVED_MODEL_PREFIX:
        return SavedModelEncoder(name)
    if not name.startswith(_PREFIX) or name == _PREFIX:
        raise ModelError(f"{name!r} names no encoder: write local:minilm, or local: and a folder or a hub id.")
    if name != BUNDLED_ENCODER:
        folder = hub_folder(name.removeprefix(_PREFIX), "encoder", _HUB_FILES)
        return SentenceTransformerEncoder(name, folder, encoder_fingerprint(folder, {"engine": "torch"}), device)
    if device not in (None, "cpu"):
        raise ModelError(
            f"The bundled encoder runs on the processor, not on {device}: "
            "on a GPU use local:sentence-transformers/all-MiniLM-L6-v2 or another model."
        )
    folder = bundled_path("minilm")
    engine = {"engine": f"graph {GRAPH_VERSION}", "precision": "int8", "windows": str(WINDOW_TOKENS)}
    return BertEncoder(name, folder, encoder_fingerprint(folder, engine), threads=threads)


class SentenceTransformerEncoder:
    """Encoder from a sentence-transformers folder, run by torch in the precision of its weights.

    It is loaded at first use.

    The model's prompts ``query`` and ``document`` are used for queries and passages, if defined. Texts beyond the
    model's maximum length are truncated.
    """

    def __init__(self, name: str, folder: Path, fingerprint: str, device: str | None = None) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._folder = folder
        self._device = device

    @property
    def width(self) -> int:
        """Number of dimensions of the vectors.

        Raises:
            ModelError: The model cannot be loaded, or does not state the number.
        """
        width = self._model.get_embedding_dimension()
        if width is None:
            raise ModelError(f"The encoder {self.name} does not say how many dimensions its vectors have.")
        return int(width)

    def encode(
        self, texts: Sequence[str], *, role: EncoderRole = "passage", on_progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Return unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        encode_batch = self._model.encode_query if role == "query" else self._model.encode_document
        for batch in token_batches(self._count_tokens(texts), TOKEN_BUDGET):
            vectors[batch] = encode_batch(
                [texts[index] for index in batch],
                batch_size=len(batch),
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
            if on_progress is not None:
                on_progress(len(batch))
        return vectors

    def _count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Return each text's number of tokens after truncation, estimated from its length for unusual tokenizers."""
        max_length = self._model.max_seq_length or 512
        try:
            ids = self._model.tokenizer(list(texts), truncation=True, max_length=max_length)["input_ids"]
        except (AttributeError, KeyError, TypeError):
            return [min(max_length, 2 + len(text) // 4) for text in texts]
        return [len(row) for row in ids]

    @cached_property
    def _model(self) -> Any:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise MissingExtraError(
                f"The encoder {self.name} needs sentence-transformers: run `pip install 'climassay[local]'`."
            ) from error
        try:
            refuse_pickles(self._folder)
            refuse_kernels(self._folder)
            return SentenceTransformer(
                str(self._folder),
                device=self._device,
                local_files_only=True,
                trust_remote_code=False,
                model_kwargs={"use_safetensors": True},
            )
        except ModelError:
            raise
        except Exception as error:
            # The exceptions for a damaged folder, or one that requires its own code, have no common base class.
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(
                f"The encoder {self.name} cannot be loaded from {self._folder}: {lines[0].rstrip('.')}."
            ) from error


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Divide texts into batches of similar length, longest first, of at most ``budget`` tokens including padding.

    A text of more than ``budget`` tokens is a batch of its own. Each batch is a list of indices into ``lengths``.
    """
    order = sorted(range(len(lengths)), key=lambda index: (-lengths[index], index))
    batch: list[int] = []
    for index in order:
        # Longest first: the first text of a batch decides the width of all of it.
        if batch and (len(batch) + 1) * lengths[batch[0]] > budget:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


_MIN_CHUNK = 512
_CHUNK_DIVISOR = 8
"""The cache file is rewritten after encoding ``1/_CHUNK_DIVISOR`` as many texts as it holds, but at least
``_MIN_CHUNK``.

Each write replaces the whole file; an interruption loses the texts encoded since the last write.
"""


def cached_vectors(
    texts: Sequence[str], encoder: Encoder, folder: str, *, on_progress: Callable[[int], None] | None = None
) -> NDArray[np.float32]:
    """Return vectors of texts, using a cache file in ``folder`` of the cache folder.

    Returns:
        Unit vectors, shape [texts, width], in the order of ``texts``.
    """
    file = cache_folder() / folder / f"{encoder.fingerprint[:32]}.npz"
    keys = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    vectors_by_key = _read_vectors(file, encoder.width)
    missing_texts = list(
        {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors_by_key}.items()
    )
    if on_progress:
        on_progress(len(texts) - len(missing_texts))
    # Texts of about one length share batches, which are padded to their longest.
    missing_texts.sort(key=lambda entry: len(entry[1]))
    while missing_texts:
        chunk_size = max(_MIN_CHUNK, len(vectors_by_key) // _CHUNK_DIVISOR)
        chunk, missing_texts = missing_texts[:chunk_size], missing_texts[chunk_size:]
        vectors = encoder.encode([text for _, text in chunk], on_progress=on_progress)
        vectors_by_key |= dict(zip((key for key, _ in chunk), vectors, strict=True))
        _write_vectors(file, vectors_by_key)
    return np.stack([vectors_by_key[key] for key in keys]) if keys else np.zeros((0, encoder.width), dtype=np.float32)


def _read_vectors(file: Path, width: int) -> dict[str, NDArray[np.float32]]:
    try:
        with np.load(file, allow_pickle=False) as archive:
            keys, vectors = archive["keys"], archive["vectors"]
    except (OSError, ValueError, EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error):
        return {}  # missing or damaged: the texts are encoded again
    if vectors.shape != (len(keys), width):
        return {}
    return dict(zip(keys.tolist(), vectors, strict=True))


def _write_vectors(file: Path, vectors_by_key: dict[str, NDArray[np.float32]]) -> None:
    """Replace the cache file, ignoring failures. If two processes write at the same time, the last write wins."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    # If the cache cannot be written, the texts are encoded again next time.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.suppress(OSError), temporary.open("wb") as target:
            np.savez(target, keys=np.array(list(vectors_by_key)), vectors=np.stack(list(vectors_by_key.values())))
            temporary.replace(file)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


MAX_CACHED_TEXTS = 32_768
"""Maximum number of vectors in memory: 48 MiB at 384 dimensions. The least recently used vectors are evicted."""


class CachedEncoder:
    """Encoder with a cache in memory, which threads may share."""

    def __init__(self, encoder: Encoder, max_texts: int = MAX_CACHED_TEXTS) -> None:
        self.wrapped = encoder
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width
        self._max_texts = max_texts
        self._vectors: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def wrap(cls, encoder: Encoder) -> "CachedEncoder":
        """Return an encoder with a cache in front of ``encoder``, or ``encoder`` itself if it has one."""
        return encoder if isinstance(encoder, cls) else cls(encoder)

    def encode(
        self, texts: Sequence[str], *, role: EncoderRole = "passage", on_progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Return unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        keys = {text: hashlib.blake2b(f"{role} {text}".encode(), digest_size=16).digest() for text in texts}
        results: dict[str, NDArray[np.float32]] = {}
        with self._lock:
            for text, key in keys.items():
                if (vector := self._vectors.get(key)) is not None:
                    self._vectors.move_to_end(key)
                    results[text] = vector
        missing_texts = [text for text in keys if text not in results]
        if on_progress is not None and len(texts) > len(missing_texts):
            on_progress(len(texts) - len(missing_texts))
        if missing_texts:
            results |= zip(
                missing_texts, self.wrapped.encode(missing_texts, role=role, on_progress=on_progress), strict=True
            )
            with self._lock:
                # Copied, since a view of one row would keep the whole array in memory.
                self._vectors.update((keys[text], results[text].copy()) for text in missing_texts)
                while len(self._vectors) > self._max_texts:
                    self._vectors.popitem(last=False)
        return np.stack([results[text] for text in texts]) if texts else np.zeros((0, self.width), dtype=np.float32)
