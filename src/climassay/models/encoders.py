"""Encoders by name, the vectors that they give, and the cache of these.

The bundled encoder is a BERT sentence encoder as an ONNX graph with 8-bit weights, built from the files of its folder;
any other is a sentence-transformers folder or hub id. The graph takes one text at a time, shape [1, tokens], without
padding or mask: on a CPU nothing is gained by batching texts of this length, and the 8-bit scale of an activation then
depends on its own text only, so that a text has the same vector whatever it is encoded together with.

Notes:
    Weights have one scale per column and take values from -63 to 63, not 127: processors before AVX512-VNNI add pairs
    of 8-bit products in 16 bits, which must not overflow. Measured on paragraphs of AR6, that costs nothing: the error
    comes from the activations. ``LayerNormalization`` is an operator of its own because ONNX Runtime's fused
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
from climassay.workspace import cache_folder

WINDOW_TOKENS = 256
"""Maximum number of tokens the model sees at once, its two special tokens included: its authors' own limit."""
_TEXT_BLOCK = 1024
"""Texts that are tokenised together, so that many texts do not all have their tokens in memory."""

Precision = Literal["int8", "float32"]

GRAPH_VERSION = 1
"""To be raised when the graph changes what it computes; part of every fingerprint and of the cached file's name."""

_LARGEST_WEIGHT = 63
_CONTRIB = "com.microsoft"
_OPSET = 20
_IR_VERSION = 10

Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class BertShape:
    """The part of a BERT's configuration that decides the graph."""

    layers: int
    heads: int
    width: int
    epsilon: float

    @classmethod
    def of(cls, folder: Path) -> "BertShape":
        """The shape of the model in a folder.

        Raises:
            ModelError: It is not a BERT with GELU and absolute positions.
        """
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = (config.get("model_type"), config.get("hidden_act"), config.get("position_embedding_type", "absolute"))
        if kind != ("bert", "gelu", "absolute"):
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
    """The ONNX model of a sentence-transformers folder with a BERT and mean pooling.

    Returns:
        A serialised model with the input ``ids``, int32 [1, tokens], special tokens included, and the output
        ``vector``, float32 [1, width], the unit vector of the mean over tokens.

    Raises:
        ModelError: The model is of another architecture.
    """
    from safetensors.numpy import load_file

    weights = load_file(folder / "model.safetensors")
    return _Graph(BertShape.of(folder), weights, precision).build()


@dataclass
class _Graph:
    """The graph while it is being built: every method adds nodes and returns the name of their output."""

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
        held = [numpy_helper.from_array(np.ascontiguousarray(value), name) for name, value in self.constants.items()]
        graph = helper.make_graph(self.nodes, "sentence_encoder", [ids], [vector], held)
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
        """Words, positions and the one token type there is."""
        prefix = "embeddings."
        words = self.constant("words", self.weights[prefix + "word_embeddings.weight"])
        table = self.weights[prefix + "position_embeddings.weight"]
        places = self.constant("places", table + self.weights[prefix + "token_type_embeddings.weight"][0])
        self.node("Shape", ["ids"], "shape")
        self.node("Gather", ["shape", self.constant("one", np.array([1]))], "tokens")
        self.node("Slice", [places, self.constant("zero", np.array([0])), "tokens"], "place_rows")
        self.node("Gather", [words, "ids"], "word_rows")
        return self.norm(self.node("Add", ["word_rows", "place_rows"], "embedded"), prefix + "LayerNorm")

    def block(self, states: str, prefix: str) -> str:
        """One transformer layer."""
        parts = [f"{prefix}attention.self.{name}" for name in ("query", "key", "value")]
        weight = np.concatenate([self.weights[f"{part}.weight"] for part in parts])
        bias = np.concatenate([self.weights[f"{part}.bias"] for part in parts])
        joined = self.linear(states, weight, bias, f"{prefix}qkv")
        sizes = self.constant("qkv_sizes", np.array([self.shape.width] * 3))
        heads = [f"{prefix}q", f"{prefix}k", f"{prefix}v"]
        self.node("Split", [joined, sizes], heads, axis=2)
        mixed = self.node("MultiHeadAttention", heads, f"{prefix}mixed", _CONTRIB, num_heads=self.shape.heads)
        attended = self.dense(mixed, f"{prefix}attention.output.dense")
        states = self.residual(attended, states, f"{prefix}attention.output.LayerNorm")
        inner = self.dense(states, f"{prefix}intermediate.dense")
        inner = self.node("Gelu", [inner], f"{inner}_gelu", _CONTRIB)
        return self.residual(self.dense(inner, f"{prefix}output.dense"), states, f"{prefix}output.LayerNorm")

    def residual(self, change: str, states: str, name: str) -> str:
        return self.norm(self.node("Add", [change, states], f"{name}_sum"), name)

    def norm(self, states: str, name: str) -> str:
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        shift = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.node("LayerNormalization", [states, scale, shift], f"{name}_out", epsilon=self.shape.epsilon)

    def dense(self, states: str, name: str) -> str:
        return self.linear(states, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name)

    def linear(self, states: str, weight: Array, bias: Array, name: str) -> str:
        """``states @ weight.T + bias``; in int8 the states get one scale per text, the weights one per column."""
        matrix = weight.T.astype(np.float32)
        shift = self.constant(f"{name}_bias", bias.astype(np.float32))
        if self.precision == "float32":
            product = self.node("MatMul", [states, self.constant(f"{name}_matrix", matrix)], f"{name}_product")
            return self.node("Add", [product, shift], f"{name}_out")
        scale = np.maximum(np.abs(matrix).max(axis=0), np.finfo(np.float32).tiny) / _LARGEST_WEIGHT
        levels = self.constant(f"{name}_levels", np.round(matrix / scale).astype(np.int8))
        scales = self.constant(f"{name}_scales", scale.astype(np.float32))
        inputs = [states, levels, scales, "", shift]
        return self.node("DynamicQuantizeMatMul", inputs, f"{name}_out", _CONTRIB)


class BertEncoder:
    """A sentence-transformers BERT with mean pooling, as a quantised ONNX graph.

    A text longer than :data:`WINDOW_TOKENS` is cut into windows of equal length and gets the mean of their vectors,
    weighted by their tokens: nothing of a 2000-character passage (about 400 tokens) is lost. ``benchmarks/encoder.py``
    compares this with cutting at 256 or 512 tokens and with the same windows in float32, in speed and in recall.

    The graph is made once in the cache folder and loaded when first needed; a text's vector does not depend on the
    texts encoded with it, nor on the number of threads.
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
        """Number of dimensions."""
        return BertShape.of(self._folder).width

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",  # noqa: ARG002 - this model treats queries and passages alike
        on_progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        if not texts:
            return vectors
        session = self._session
        with ThreadPoolExecutor(min(self._threads, len(texts))) as pool:
            done = 0
            for start in range(0, len(texts), _TEXT_BLOCK):
                block = list(texts[start : start + _TEXT_BLOCK])
                tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(block, add_special_tokens=False)]
                for vector in pool.map(lambda ids: self._vector(session, ids), tokens):
                    vectors[done] = vector
                    done += 1
                    if on_progress is not None:
                        on_progress(1)
        return vectors

    def _vector(self, session: Any, ids: Sequence[int]) -> NDArray[np.float32]:
        """Unit vector of one text of any length."""
        start, end = self._special_tokens
        total = np.zeros(self.width, dtype=np.float32)
        for window in windows(ids, WINDOW_TOKENS - 2):
            (vector,) = session.run(None, {"ids": np.array([[start, *window, end]], dtype=np.int32)})
            # An empty text has no token to weigh it with, but a vector all the same.
            total += vector[0] * max(len(window), 1)
        return total / np.linalg.norm(total)

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
        graph = self._graph_file()
        try:
            return onnxruntime.InferenceSession(str(graph), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            graph.unlink(missing_ok=True)
            raise ModelError(
                f"The encoder graph {graph} could not be loaded ({error}) and has been removed: "
                "run the command again, it will be created again."
            ) from error

    def _graph_file(self) -> Path:
        """The graph in the cache, made when it is not there or spoilt; several processes may make it at once."""
        file = cache_folder() / "encoders" / f"{self.fingerprint[:32]}-{self._precision}.onnx"
        receipt = file.with_suffix(".sha256")
        try:
            digest = receipt.read_text(encoding="ascii").strip()
        except (OSError, ValueError):
            digest = ""
        # One flipped bit of a weight would change every vector, and nobody would see it.
        if not (file.is_file() and digest == file_digest(file)):
            file.parent.mkdir(parents=True, exist_ok=True)
            graph = build_graph(self._folder, self._precision)
            write_file(file, graph)
            write_file(receipt, hashlib.sha256(graph).hexdigest().encode())
        return file


def windows(ids: Sequence[int], most: int) -> Iterator[Sequence[int]]:
    """Cut tokens into the fewest windows of at most ``most``, all of nearly the same length; one, if there are none."""
    count = max(1, -(-len(ids) // most))
    for number in range(count):
        yield ids[number * len(ids) // count : (number + 1) * len(ids) // count]


BUNDLED_ENCODER = "local:minilm"
"""The default: all-MiniLM-L6-v2."""

TOKEN_BUDGET = 8192
"""Padded tokens in a batch: a few megabytes of activations, large enough to keep a CPU or a small GPU busy."""
_PREFIX = "local:"
_HUB_FILES = ["*.safetensors", "*.json", "*.txt", "*.model", "README.md"]


def load_encoder(name: str = BUNDLED_ENCODER, device: str | None = None, *, threads: int | None = None) -> Encoder:
    """An encoder by its name; its weights are loaded when it first encodes.

    The bundled encoder always runs on the processor, in 8-bit ONNX Runtime, so that a collection made on one machine
    can be searched on any other. Any other model runs in torch and in its own precision.

    Args:
        name: ``local:minilm`` (bundled all-MiniLM-L6-v2), or ``local:`` and a sentence-transformers folder or hub id.
        device: torch's name of a device, for example ``cuda:0``; by default the GPU where there is one.
        threads: Texts that the bundled encoder encodes at the same time; by default as many as there are cores.

    Raises:
        ModelError: The name has no ``local:``, the model is not there or not the published one, or the bundled encoder
            is asked to run elsewhere than on the processor.
    """
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
    """A sentence-transformers folder, run by torch in the precision of its weights, which are loaded when first needed.

    The model's own prompts are used where it has them: ``query`` for queries and ``document`` for passages. Texts
    beyond the model's stated length are cut by its tokenizer.
    """

    def __init__(self, name: str, folder: Path, fingerprint: str, device: str | None = None) -> None:
        self.name = name
        self.fingerprint = fingerprint
        self._folder = folder
        self._device = device

    @property
    def width(self) -> int:
        """Number of dimensions.

        Raises:
            ModelError: The model cannot be loaded, or does not say.
        """
        width = self._model.get_embedding_dimension()
        if width is None:
            raise ModelError(f"The encoder {self.name} does not say how many dimensions its vectors have.")
        return int(width)

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: EncoderRole = "passage",
        on_progress: Callable[[int], None] | None = None,
    ) -> NDArray[np.float32]:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        encode = self._model.encode_query if role == "query" else self._model.encode_document
        for batch in token_batches(self._lengths(texts), TOKEN_BUDGET):
            vectors[batch] = encode(
                [texts[index] for index in batch],
                batch_size=len(batch),
                normalize_embeddings=True,
                show_progress_bar=False,
                convert_to_numpy=True,
            )
            if on_progress is not None:
                on_progress(len(batch))
        return vectors

    def _lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, at most the model's length; guessed from characters where it has no usual tokenizer."""
        limit = self._model.max_seq_length or 512
        try:
            ids = self._model.tokenizer(list(texts), truncation=True, max_length=limit)["input_ids"]
        except (AttributeError, KeyError, TypeError):
            return [min(limit, 2 + len(text) // 4) for text in texts]
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
            # What its parts raise for a folder that is damaged, or wants its own code to be run, is of no one family.
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise ModelError(
                f"The encoder {self.name} cannot be loaded from {self._folder}: {lines[0].rstrip('.')}."
            ) from error


def token_batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Group texts by their lengths, longest first, so that no batch has more padded tokens than a budget.

    A single longer text is a batch of its own. Each index into ``lengths`` comes exactly once.
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


_KEPT_AT_ONCE = 512
_KEPT_SHARE = 8
"""Texts that are encoded before the cache is written, which an interruption can lose: at least so many, and this part
of those it holds, for it is written as a whole."""


def cached_vectors(
    texts: Sequence[str], encoder: Encoder, folder: str, *, on_progress: Callable[[int], None] | None = None
) -> NDArray[np.float32]:
    """Vectors of texts, from the cache where they are.

    Returns:
        Unit vectors, shape [texts, width], in the order of ``texts``.
    """
    file = cache_folder() / folder / f"{encoder.fingerprint[:32]}.npz"
    keys = [hashlib.sha256(text.encode()).hexdigest()[:32] for text in texts]
    known = _read(file, encoder.width)
    missing = list({key: text for key, text in zip(keys, texts, strict=True) if key not in known}.items())
    if on_progress:
        on_progress(len(texts) - len(missing))
    # Texts of about one length share batches, which are padded to their longest.
    missing.sort(key=lambda entry: len(entry[1]))
    while missing:
        count = max(_KEPT_AT_ONCE, len(known) // _KEPT_SHARE)
        chunk, missing = missing[:count], missing[count:]
        vectors = encoder.encode([text for _, text in chunk], on_progress=on_progress)
        known |= dict(zip((key for key, _ in chunk), vectors, strict=True))
        _write(file, known)
    return np.stack([known[key] for key in keys]) if keys else np.zeros((0, encoder.width), dtype=np.float32)


def _read(file: Path, width: int) -> dict[str, NDArray[np.float32]]:
    try:
        with np.load(file, allow_pickle=False) as kept:
            keys, vectors = kept["keys"], kept["vectors"]
    except (OSError, ValueError, EOFError, KeyError, AttributeError, TypeError, zipfile.BadZipFile, zlib.error):
        return {}  # not there, or spoilt: encoded anew
    if vectors.shape != (len(keys), width):
        return {}
    return dict(zip(keys.tolist(), vectors, strict=True))


def _write(file: Path, known: dict[str, NDArray[np.float32]]) -> None:
    """Write the cache as a whole; of two processes that do so at once one wins, and the other encodes again."""
    temporary = file.with_suffix(f".{os.getpid()}.tmp")
    # It is only a cache: where the disk is full, the texts are encoded again the next time.
    with contextlib.suppress(OSError):
        file.parent.mkdir(parents=True, exist_ok=True)
    try:
        with contextlib.suppress(OSError), temporary.open("wb") as target:
            np.savez(target, keys=np.array(list(known)), vectors=np.stack(list(known.values())))
            temporary.replace(file)
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)


MOST_TEXTS = 32_768
"""Texts whose vectors are kept: 48 MiB at 384 dimensions. Those that were not met for the longest time go first."""


class CachedEncoder:
    """An encoder that encodes a text once; threads may share it."""

    def __init__(self, encoder: Encoder, most: int = MOST_TEXTS) -> None:
        self.wrapped = encoder
        self.name, self.fingerprint, self.width = encoder.name, encoder.fingerprint, encoder.width
        self._most = most
        self._known: OrderedDict[bytes, NDArray[np.float32]] = OrderedDict()
        self._lock = threading.Lock()

    @classmethod
    def of(cls, encoder: Encoder) -> "CachedEncoder":
        """An encoder with a memory; itself, where it has one."""
        return encoder if isinstance(encoder, cls) else cls(encoder)

    def encode(
        self, texts: Sequence[str], *, role: EncoderRole = "passage", on_progress: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`."""
        keys = {text: hashlib.blake2b(f"{role} {text}".encode(), digest_size=16).digest() for text in texts}
        results: dict[str, NDArray[np.float32]] = {}
        with self._lock:
            for text, key in keys.items():
                if (vector := self._known.get(key)) is not None:
                    self._known.move_to_end(key)
                    results[text] = vector
        missing = [text for text in keys if text not in results]
        if on_progress is not None and len(texts) > len(missing):
            on_progress(len(texts) - len(missing))
        if missing:
            results |= zip(missing, self.wrapped.encode(missing, role=role, on_progress=on_progress), strict=True)
            with self._lock:
                # Copies: a row alone would keep the array that it is a row of.
                self._known.update((keys[text], results[text].copy()) for text in missing)
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
        return np.stack([results[text] for text in texts]) if texts else np.zeros((0, self.width), dtype=np.float32)
