"""A BERT sentence encoder as an ONNX graph with 8-bit weights, built from the files of its folder.

The graph takes one text at a time, shape [1, tokens], without padding or mask: on a CPU nothing is gained by batching
texts of this length, and the 8-bit scale of an activation then depends on its own text only, so that a text has the
same vector whatever it is encoded together with.

Notes:
    Weights have one scale a column and take values from -63 to 63, not to 127: processors before AVX512-VNNI add pairs
    of 8-bit products in 16 bits, which must not overflow. Measured on paragraphs of AR6, that costs nothing: the error
    comes from the activations. ``LayerNormalization`` is an operator of its own because ONNX Runtime's fused
    ``SkipLayerNormalization`` takes four times as long on a CPU.
"""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from climassay.errors import ModelError

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
    """What of a BERT's configuration decides the graph."""

    layers: int
    heads: int
    width: int
    epsilon: float

    @classmethod
    def of(cls, folder: Path) -> "BertShape":
        """The shape of the model in a folder.

        Raises:
            ModelError: It is no BERT with GELU and absolute positions.
        """
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        kind = (config.get("model_type"), config.get("hidden_act"), config.get("position_embedding_type", "absolute"))
        if kind != ("bert", "gelu", "absolute"):
            raise ModelError(
                f"The model in {folder} is no BERT with GELU and absolute positions: use it through torch."
            )
        return cls(
            layers=config["num_hidden_layers"],
            heads=config["num_attention_heads"],
            width=config["hidden_size"],
            epsilon=config["layer_norm_eps"],
        )


def build_graph(folder: Path, precision: Precision = "int8") -> bytes:
    """The ONNX model of a sentence-transformers folder with a BERT and mean pooling.

    Args:
        folder: With ``config.json`` and ``model.safetensors``.
        precision: Of the matrix products; everything else is computed in float32.

    Returns:
        A serialised model with the input ``ids``, int32 [1, tokens], with the model's special tokens, and the output
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
        self.pool(states)
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

    def pool(self, states: str) -> str:
        """Unit vector of the mean over tokens."""
        mean = self.node("ReduceMean", [states, "one"], "mean", keepdims=0)
        return self.node("LpNormalization", [mean], "vector", axis=1, p=2)

    def residual(self, change: str, states: str, name: str) -> str:
        return self.norm(self.node("Add", [change, states], f"{name}_sum"), name)

    def norm(self, states: str, name: str) -> str:
        scale = self.constant(f"{name}.weight", self.weights[f"{name}.weight"])
        shift = self.constant(f"{name}.bias", self.weights[f"{name}.bias"])
        return self.node("LayerNormalization", [states, scale, shift], f"{name}_out", epsilon=self.shape.epsilon)

    def dense(self, states: str, name: str) -> str:
        return self.linear(states, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"], name)

    def linear(self, states: str, weight: Array, bias: Array, name: str) -> str:
        """``states @ weight.T + bias``; in int8 the states get one scale a text, the weights one a column."""
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
