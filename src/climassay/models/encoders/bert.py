"""A BERT sentence encoder as an ONNX graph with 8-bit weights, built from the files of its folder.

The graph takes one text at a time, shape [1, tokens], without padding or mask: on a CPU nothing is gained by batching
texts of this length, and the 8-bit scale of an activation then depends on its own text only, so that a text has the
same vector whatever it is encoded together with.

Notes:
    Weights have one scale per column and take values from -63 to 63, not 127: processors before AVX512-VNNI add pairs
    of 8-bit products in 16 bits, which must not overflow. Measured on paragraphs of AR6, that costs nothing: the error
    comes from the activations. ``LayerNormalization`` is an operator of its own because ONNX Runtime's fused
    ``SkipLayerNormalization`` takes four times as long on a CPU.
"""

import hashlib
import json
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
from climassay.models.contract import EncoderRole
from climassay.models.cpu_settings import usable_cores
from climassay.models.model_files import file_digest
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
                "run the command again, it is made anew."
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
