"""Forward passes of a causal language model of transformers, with masks for packed branches.

torch computes bfloat16 products on a CPU by oneDNN, which reorders the weights into blocks for each product: for the
few rows of a decoding step this takes longer than the product. Weights are therefore reordered once, when a model is
loaded (:class:`PackedLinear`); ``benchmarks/generation.py`` measures the gain.
"""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

from climassay.errors import ModelError
from climassay.models.local.prefix_tree import ForwardStep, RowCache, Segment, shared_attention

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.cache_utils import Cache

_MEMORY_FRACTION = 0.25
_MIN_CPU_CACHE_BYTES = 2**29
_SHARED_ATTENTION = "climassay_shared"
_CACHE_NAMES = ("past_key_values", "cache_params")
_MASKED_LAYER_TYPES = frozenset({"full_attention", "sliding_attention"})
AttentionInterface.register(_SHARED_ATTENTION, shared_attention)


@dataclass(frozen=True, slots=True)
class ForwardOutput:
    """Results of a forward pass at the requested positions."""

    logits: Tensor
    """Logits of the next token, float32 [positions, vocabulary]."""
    states: Tensor | None
    """Hidden states, float32 [positions, layers, width]; None if they were not requested."""


@dataclass(frozen=True, slots=True)
class StateRequest:
    """Hidden states to read in a forward pass."""

    positions: Sequence[int]
    """Indices of the tokens whose hidden states are returned; independent of the indices for logits."""
    layers: Sequence[int]
    """Layer numbers as in transformers: 0 for the embeddings, -1 for the output after the final norm."""


class Network:
    """Causal language model of transformers with the operations that this package needs."""

    def __init__(self, model: "PreTrainedModel") -> None:
        self.model = model
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        text_config = model.config.get_text_config()
        self.layers = int(text_config.num_hidden_layers)
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.parameters = sum(weight.numel() for weight in model.parameters())
        pack_linear_layers(model)
        self.attention = Attention.from_config(model.config)
        self._uses_sdpa = model.config._attn_implementation == "sdpa"
        self._states = HiddenStates(model)
        self._forward_parameters = frozenset(inspect.signature(model.forward).parameters)
        self._cache_name = next((name for name in _CACHE_NAMES if name in self._forward_parameters), None)
        self.context = int(getattr(text_config, "max_position_embeddings", None) or 2**31)
        """Context length of the model in tokens."""
        self.shares_rows: bool | None = None
        """True if rows may share keys and values of common prefixes; None before the first test."""

    @property
    def can_continue(self) -> bool:
        """True if the model accepts a cache of earlier tokens."""
        return self._cache_name is not None

    def compute_step(
        self, step: ForwardStep, cache: "Cache", logit_positions: Sequence[int], states: StateRequest | None = None
    ) -> ForwardOutput:
        """Compute the segments of a step, which follow the path in ``cache``.

        Args:
            step: Segments to compute, packed into one row.
            cache: Path cache truncated to ``step.n_cached`` tokens.
            logit_positions: Indices of packed tokens whose logits are computed.
            states: Hidden states to read.
        """
        tokens = [token for segment in step.segments for token in segment.tokens]
        token_positions = [position for segment in step.segments for position in range(segment.start, segment.end)]
        position_ids = torch.tensor([token_positions], device=self.device)
        return self._forward(
            [tokens], logit_positions, position_ids, self._step_masks(step, position_ids), cache, states
        )

    def continue_rows(self, tokens: Sequence[int], lengths: Sequence[int], cache: RowCache) -> Tensor:
        """Append one token to each row and return the next token's logits, float32 [rows, vocabulary]."""
        attention = self._require_attention()
        positions = torch.tensor(lengths, device=self.device)
        distance = (positions[:, None] - cache.positions)[:, None, :]
        with self._use_shared_attention() if cache.shared_prefixes else nullcontext():
            masks = attention.masks(distance >= 0, distance, self.dtype)
            return self._forward([[token] for token in tokens], [0], positions[:, None], masks, cache).logits

    def compute_sequence(
        self, tokens: Sequence[int], positions: Sequence[int], states: StateRequest | None = None
    ) -> ForwardOutput:
        """Compute one sequence from its beginning without cache or custom masks."""
        return self._forward([list(tokens)], positions, states=states)

    def continue_sequence(self, tokens: Sequence[int], cache: "Cache") -> Tensor:
        """Append tokens to a transformers cache and return the last token's logits, float32 [1, vocabulary]."""
        return self._forward([list(tokens)], [len(tokens) - 1], cache=cache).logits

    def free_tokens(self) -> int:
        """Return the number of tokens whose keys and values fit into a quarter of the free memory.

        On a CPU, they take at most half the size of the weights, or 512 MiB if that is more.
        """
        text_config = self.model.config.get_text_config()
        n_heads = getattr(text_config, "num_key_value_heads", None) or text_config.num_attention_heads
        head_width = (
            getattr(text_config, "head_dim", None) or text_config.hidden_size // text_config.num_attention_heads
        )
        bytes_per_token = int(2 * self.layers * n_heads * head_width * self.dtype.itemsize)
        if self.device.type == "cuda":
            free_bytes = int(torch.cuda.mem_get_info(self.device)[0])
        else:
            import psutil

            free_bytes = int(psutil.virtual_memory().available)
        max_bytes = int(_MEMORY_FRACTION * free_bytes)
        if self.device.type == "cpu":
            max_bytes = min(max_bytes, max(_MIN_CPU_CACHE_BYTES, self.parameters * self.dtype.itemsize // 2))
        return max_bytes // bytes_per_token

    @contextmanager
    def _use_shared_attention(self) -> Iterator[None]:
        config = self.model.config.get_text_config()
        implementation = config._attn_implementation
        config._attn_implementation = _SHARED_ATTENTION
        try:
            yield
        finally:
            config._attn_implementation = implementation

    def _require_attention(self) -> "Attention":
        if self.attention is None:
            raise AssertionError("a model whose attention is unknown supports only plain computation")
        return self.attention

    def _step_masks(self, step: ForwardStep, positions: Tensor) -> Any:
        attention = self._require_attention()
        if (
            self._uses_sdpa
            and step.n_cached == 0
            and len(step.segments) == 1
            and step.size <= (attention.window or step.size)
        ):
            # The model's own causal mask is sufficient.
            return None if attention.layer_types is None else dict.fromkeys(attention.layer_types)
        keys = torch.cat([torch.arange(step.n_cached, device=self.device)[None], positions], dim=1)
        distance = positions[:, :, None] - keys[:, None, :]
        visible = distance >= 0
        if len(step.segments) > 1:
            visible[:, :, step.n_cached :] &= _create_ancestor_mask(step.segments).to(self.device)
        return attention.masks(visible, distance, self.dtype)

    @torch.inference_mode()
    def _forward(
        self,
        tokens: list[list[int]],
        logit_positions: Sequence[int],
        positions: Tensor | None = None,
        masks: Any = None,
        cache: "Cache | None" = None,
        states: StateRequest | None = None,
    ) -> ForwardOutput:
        ids = torch.tensor(tokens, device=self.device)
        logit_indices = torch.tensor(logit_positions, dtype=torch.long, device=self.device)
        arguments: dict[str, Any] = {"input_ids": ids, "use_cache": cache is not None, "return_dict": True}
        if positions is not None:
            arguments["position_ids"] = positions
        if masks is not None:
            arguments["attention_mask"] = masks
        if cache is not None and self._cache_name is not None:
            arguments[self._cache_name] = cache
        if "logits_to_keep" in self._forward_parameters:
            arguments["logits_to_keep"] = logit_indices
        try:
            output, hidden_states = self._run_model(arguments, states)
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"The memory of {self.device} is not enough for the model and {ids.numel()} tokens: choose a lower "
                "concurrency or token budget, a shorter prompt, --dtype bfloat16, or a smaller model."
            ) from error
        logits = output.logits if "logits_to_keep" in self._forward_parameters else output.logits[:, logit_indices]
        return ForwardOutput(logits.flatten(0, 1).float(), hidden_states)

    def _run_model(self, arguments: dict[str, Any], states: StateRequest | None) -> tuple[Any, Tensor | None]:
        if states is None:
            return self.model(**arguments), None
        indices = torch.tensor(states.positions, dtype=torch.long, device=self.device)
        if not self._states.matches_transformers:
            output = self.model(**arguments, output_hidden_states=True)
            return output, torch.stack(
                [output.hidden_states[layer][0, indices] for layer in states.layers], dim=1
            ).float()
        with self._states.capture(states.layers, indices) as states_by_layer:
            output = self.model(**arguments)
        return output, torch.stack([states_by_layer[layer] for layer in states.layers], dim=1)


def _create_ancestor_mask(segments: Sequence[Segment]) -> Tensor:
    """Return a bool mask [tokens, tokens]: True if token 2 is in the segment of token 1 or in an ancestor segment."""
    is_ancestor = torch.eye(len(segments), dtype=torch.bool)
    for index, segment in enumerate(segments):
        if segment.parent is not None:
            is_ancestor[index] |= is_ancestor[segment.parent]
    lengths = torch.tensor([len(segment.tokens) for segment in segments])
    segment_of_token = torch.repeat_interleave(torch.arange(len(segments)), lengths)
    return is_ancestor[segment_of_token][:, segment_of_token]


@dataclass(frozen=True, slots=True)
class Attention:
    """Kinds of attention in a model's layers, and the masks for them."""

    layer_types: tuple[str, ...] | None
    """Layer types of a model that needs one mask per layer type; None for a model that needs only one mask."""
    window: int | None
    """Number of tokens that sliding layers attend to, including the token itself; None without sliding layers."""

    @classmethod
    def from_config(cls, config: Any) -> "Attention | None":
        """Read a transformers configuration; return None if masks cannot describe one of the layers.

        As in transformers' ``generate``, a configuration with ``layer_types`` needs a mask per layer type.
        """
        text_config = config.get_text_config()
        window = getattr(text_config, "sliding_window", None)
        layer_types = getattr(text_config, "layer_types", None)
        if layer_types is not None:
            has_sliding = "sliding_attention" in layer_types
            is_supported = set(layer_types) <= _MASKED_LAYER_TYPES and not (has_sliding and window is None)
            return cls(tuple(sorted(set(layer_types))), window if has_sliding else None) if is_supported else None
        if window is None and getattr(text_config, "attention_chunk_size", None) is not None:
            return None
        return cls(None, window)

    def masks(self, visible: Tensor, distance: Tensor, dtype: torch.dtype) -> Tensor | dict[str, Tensor]:
        """Return additive masks in the form that the model takes.

        Args:
            visible: True if a query may attend to a key, bool [rows, queries, keys].
            distance: Position of the query minus position of the key, same shape.
            dtype: Number format of the model.

        Returns:
            One mask [rows, 1, queries, keys], or one for each layer type.
        """

        def create_mask(is_visible: Tensor) -> Tensor:
            mask = torch.zeros(is_visible.shape, dtype=dtype, device=is_visible.device)
            return mask.masked_fill_(~is_visible, torch.finfo(dtype).min)[:, None]

        visible_in_window = visible if self.window is None else visible & (distance < self.window)
        if self.layer_types is None:
            return create_mask(visible_in_window)
        return {
            layer_type: create_mask(visible_in_window if layer_type == "sliding_attention" else visible)
            for layer_type in self.layer_types
        }


class HiddenStates:
    """Reader of the hidden states of some layers and tokens during a forward pass.

    The option ``output_hidden_states`` of transformers stores the states of all layers and tokens until the pass is
    done. Hooks on the requested layers store the requested tokens only. Layers are numbered as in transformers: state 0
    is the input of the first layer, state k the input of layer k + 1, and the last one the output after the final norm.
    """

    def __init__(self, model: "PreTrainedModel") -> None:
        self._backbone, self._layers = backbone_layers(model)
        self._n_layers = int(model.config.get_text_config().num_hidden_layers)
        self._model = model
        self._matches_transformers: bool | None = None

    @property
    def matches_transformers(self) -> bool:
        """True if the hooks return the same states as transformers; tested on first use."""
        if self._matches_transformers is None:
            self._matches_transformers = self._layers is not None and self._compare_all_layers()
        return self._matches_transformers

    @contextmanager
    def capture(self, layers: Sequence[int], positions: Tensor) -> Iterator[dict[int, Tensor]]:
        """Capture states of the forward passes in the ``with`` block.

        Args:
            layers: Numbers of states, from 0; negative numbers count from the end.
            positions: Token indices in the first row of the batch, [positions].

        Yields:
            Dictionary that the pass fills: states float32 [positions, width] for each of ``layers``.
        """
        results: dict[int, Tensor] = {}

        def store(layers_of_state: Sequence[int], states: Tensor) -> None:
            # float() copies 16-bit states; indexing has copied float32 ones: the pass's own memory can go.
            token_states = states[0, positions.to(states.device)].float().to(positions.device)
            results.update(dict.fromkeys(layers_of_state, token_states))

        layers_by_state: dict[int, list[int]] = {}
        for layer in layers:
            layers_by_state.setdefault(layer % (self._n_layers + 1), []).append(layer)
        handles = [self._register_hook(state, names, store) for state, names in layers_by_state.items()]
        try:
            yield results
        finally:
            for handle in handles:
                handle.remove()

    def _register_hook(self, state: int, layers: Sequence[int], store: Any) -> Any:
        if state == self._n_layers:
            return self._backbone.register_forward_hook(lambda _module, _inputs, output: store(layers, output[0]))
        assert self._layers is not None
        return self._layers[state].register_forward_pre_hook(
            lambda _module, arguments, keywords: store(
                layers, arguments[0] if arguments else keywords["hidden_states"]
            ),
            with_kwargs=True,
        )

    @torch.inference_mode()
    def _compare_all_layers(self) -> bool:
        """Return whether hooks and transformers return equal states of all layers in one forward pass."""
        device = self._model.device
        tokens = torch.arange(1, 7, device=device)[None]
        positions = torch.arange(6, device=device)
        all_layers = range(self._n_layers + 1)
        try:
            with self.capture(all_layers, positions) as captured_states:
                output = self._model(input_ids=tokens, output_hidden_states=True, use_cache=False, return_dict=True)
            expected_states = [states[0].float().to(device) for states in output.hidden_states]
            return len(expected_states) == len(all_layers) and all(
                torch.equal(captured_states[layer], states)
                for layer, states in zip(all_layers, expected_states, strict=True)
            )
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
            return False


def backbone_layers(model: "PreTrainedModel") -> tuple[nn.Module, nn.ModuleList | None]:
    """Return the backbone of a language model and its list of layers, or None if there is no unique list."""
    backbone: nn.Module = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
    n_layers = int(model.config.get_text_config().num_hidden_layers)
    stacks = [child for child in backbone.children() if isinstance(child, nn.ModuleList) and len(child) == n_layers]
    return backbone, stacks[0] if len(stacks) == 1 else None


_ROWS = 32
"""Number of rows that oneDNN assumes when it chooses the block format of the weights. Products with any number of rows
then use this format."""


class PackedLinear(nn.Module):
    """Frozen linear layer on a CPU with weights in oneDNN's block format."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.register_buffer("weight", _get_operators()._reorder_linear_weight(linear.weight, _ROWS), persistent=False)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach(), persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Map states of shape [..., in_features] to [..., out_features]."""
        if states.numel() == 0:
            return states.new_empty((*states.shape[:-1], self.out_features))
        product: Tensor = _get_operators()._linear_pointwise(states, self.weight, self.bias, "none", [], "")
        return product


@torch.inference_mode()
def pack_linear_layers(model: nn.Module) -> int:
    """Replace the bfloat16 linear layers of a frozen model on a CPU by packed ones, and return their number.

    Layers are replaced one by one, so that no weight is in memory twice, except a head that shares its weights with the
    embeddings. Nothing is replaced if torch or the processor do not support it.
    """
    layers = _packable_layers(model)
    n_layers = len(layers)
    if not layers or not _can_pack(next(iter(layers))):
        return 0
    while layers:
        # Removed from the dictionary, which would otherwise keep the plain layer in memory.
        linear, parents = layers.popitem()
        packed_layer = PackedLinear(linear)
        for parent, name in parents:
            setattr(parent, name, packed_layer)
    return n_layers


def _packable_layers(model: nn.Module) -> dict[nn.Linear, list[tuple[nn.Module, str]]]:
    results: dict[nn.Linear, list[tuple[nn.Module, str]]] = {}
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Linear and child.weight.dtype == torch.bfloat16 and child.weight.device.type == "cpu":
                results.setdefault(child, []).append((parent, name))
    return results


def _can_pack(linear: nn.Linear) -> bool:
    """Return whether a layer can be packed and then gives the same results, up to rounding."""
    states = torch.linspace(-1, 1, 3 * linear.in_features, dtype=torch.bfloat16).view(3, -1)
    try:
        return torch.allclose(PackedLinear(linear)(states), linear(states), rtol=2**-6, atol=2**-6)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False


def _get_operators() -> Any:
    """Return oneDNN's operators, which torch's compiler uses too."""
    return torch.ops.mkldnn
