"""One forward pass of a causal language model from transformers, with the masks that packed branches need.

torch hands a bfloat16 product on a CPU to oneDNN, which first brings the weights into blocks of its own: for the few
rows of a decoding step that costs more than the product. So they are brought into blocks once, when a model is loaded
(:class:`PackedLinear`); ``benchmarks/generation.py`` measures what that gains.
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
from climassay.models.local.caches import RowCache, shared_attention
from climassay.models.local.prefix_tree import Segment, Step

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.cache_utils import Cache


def backbone_layers(model: "PreTrainedModel") -> tuple[nn.Module, nn.ModuleList | None]:
    """The backbone of a language model, and its list of layers; None where they are not found."""
    backbone: nn.Module = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
    count = int(model.config.get_text_config().num_hidden_layers)
    stacks = [child for child in backbone.children() if isinstance(child, nn.ModuleList) and len(child) == count]
    return backbone, stacks[0] if len(stacks) == 1 else None


class HiddenStates:
    """Catches hidden states at a few places while a forward pass goes by.

    transformers' ``output_hidden_states`` keeps every layer's states of every token until the pass is done. Here a hook
    on each wanted layer takes the wanted tokens and nothing else. The numbering is transformers': state 0 goes into the
    first layer, state k into layer k + 1, and the last one is what the backbone gives after its final norm.
    """

    def __init__(self, model: "PreTrainedModel") -> None:
        self._backbone, self._layers = backbone_layers(model)
        self._count = int(model.config.get_text_config().num_hidden_layers)
        self._model = model
        self._trusted: bool | None = None

    @property
    def trusted(self) -> bool:
        """Whether the hooks give what transformers gives, for every layer; found out at first use on a few tokens."""
        if self._trusted is None:
            self._trusted = self._layers is not None and self._agree()
        return self._trusted

    @contextmanager
    def caught(self, layers: Sequence[int], places: Tensor) -> Iterator[dict[int, Tensor]]:
        """Catch states of the passes computed inside the ``with`` block.

        Args:
            layers: Which states, numbered from 0, or from the end with negative numbers.
            places: Indices of tokens in the first row of the batch, [places].

        Yields:
            A dictionary filled during the pass: for each of ``layers`` the states float32 [places, width].
        """
        found: dict[int, Tensor] = {}

        def keep(names: Sequence[int], states: Tensor) -> None:
            # float() copies 16-bit states; indexing has copied float32 ones: the pass's own memory can go.
            chosen = states[0, places.to(states.device)].float().to(places.device)
            found.update(dict.fromkeys(names, chosen))

        wanted: dict[int, list[int]] = {}
        for layer in layers:
            wanted.setdefault(layer % (self._count + 1), []).append(layer)
        handles = [self._hook(state, names, keep) for state, names in wanted.items()]
        try:
            yield found
        finally:
            for handle in handles:
                handle.remove()

    def _hook(self, state: int, names: Sequence[int], keep: Any) -> Any:
        if state == self._count:
            return self._backbone.register_forward_hook(lambda _module, _given, output: keep(names, output[0]))
        assert self._layers is not None
        return self._layers[state].register_forward_pre_hook(
            lambda _module, given, named: keep(names, given[0] if given else named["hidden_states"]), with_kwargs=True
        )

    @torch.inference_mode()
    def _agree(self) -> bool:
        """Compare all layers in one pass in which both are read; an architecture may pass its states otherwise."""
        device = self._model.device
        tokens = torch.arange(1, 7, device=device)[None]
        places = torch.arange(6, device=device)
        everything = range(self._count + 1)
        try:
            with self.caught(everything, places) as found:
                out = self._model(input_ids=tokens, output_hidden_states=True, use_cache=False, return_dict=True)
            expected = [states[0].float().to(device) for states in out.hidden_states]
            return len(expected) == len(everything) and all(
                torch.equal(found[layer], states) for layer, states in zip(everything, expected, strict=True)
            )
        except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
            return False


_MEMORY_SHARE = 0.25
_CACHE_ON_CPU = 2**29
_SHARED_ATTENTION = "climassay_shared"
_CACHE_NAMES = ("past_key_values", "cache_params")
_MASKED_KINDS = frozenset({"full_attention", "sliding_attention"})

AttentionInterface.register(_SHARED_ATTENTION, shared_attention)


@dataclass(frozen=True, slots=True)
class Attention:
    """Which earlier tokens the layers of a model look at."""

    kinds: tuple[str, ...] | None
    """Layer types of a model that takes one mask for each of them; None for a model that takes a single mask."""
    window: int | None
    """Tokens that sliding layers look back, the token itself included; None where no layer slides."""

    @classmethod
    def of(cls, config: Any) -> "Attention | None":
        """Read a transformers configuration; None when some layer is not an attention that a mask describes.

        The decision between one mask and a mask for each layer type is the one that transformers' own ``generate``
        makes: by the presence of ``layer_types``.
        """
        text = config.get_text_config()
        window = getattr(text, "sliding_window", None)
        kinds = getattr(text, "layer_types", None)
        if kinds is not None:
            slides = "sliding_attention" in kinds
            known = set(kinds) <= _MASKED_KINDS and not (slides and window is None)
            return cls(tuple(sorted(set(kinds))), window if slides else None) if known else None
        if window is None and getattr(text, "attention_chunk_size", None) is not None:
            return None
        return cls(None, window)

    def masks(self, visible: Tensor, distance: Tensor, dtype: torch.dtype) -> Tensor | dict[str, Tensor]:
        """Additive masks in the form in which the model takes them.

        Args:
            visible: Whether a query may see a key, bool [rows, queries, keys].
            distance: Position of the query minus position of the key, same shape.
            dtype: Of the model.

        Returns:
            One mask [rows, 1, queries, keys], or one for each layer type.
        """

        def additive(seen: Tensor) -> Tensor:
            mask = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
            return mask.masked_fill_(~seen, torch.finfo(dtype).min)[:, None]

        near = visible if self.window is None else visible & (distance < self.window)
        if self.kinds is None:
            return additive(near)
        return {kind: additive(near if kind == "sliding_attention" else visible) for kind in self.kinds}


@dataclass(frozen=True, slots=True)
class Output:
    """What a forward pass gives at the places that were asked for."""

    logits: Tensor
    """float32 [places, vocabulary]."""
    states: Tensor | None
    """float32 [places, layers, width] when states were asked for."""


@dataclass(frozen=True, slots=True)
class StatesWanted:
    """Hidden states to read in a forward pass, beside the logits."""

    places: Sequence[int]
    """Indices of tokens; they need not be those at which logits are wanted."""
    layers: Sequence[int]
    """Numbered as transformers does: 0 embeddings, -1 after the final norm."""


class Network:
    """A transformers model with a plain view of what this package needs of it."""

    def __init__(self, model: "PreTrainedModel") -> None:
        self.model = model
        self.device: torch.device = model.device
        self.dtype: torch.dtype = model.dtype
        text = model.config.get_text_config()
        self.layers = int(text.num_hidden_layers)
        self.vocabulary = int(model.get_output_embeddings().weight.shape[0])
        self.parameters = sum(weight.numel() for weight in model.parameters())
        pack_linear_layers(model)
        self.attention = Attention.of(model.config)
        self._fused = model.config._attn_implementation == "sdpa"
        self._states = HiddenStates(model)
        self._takes = frozenset(inspect.signature(model.forward).parameters)
        self._cache_name = next((name for name in _CACHE_NAMES if name in self._takes), None)
        self.context = int(getattr(text, "max_position_embeddings", None) or 2**31)
        """Tokens that the model was made for."""
        self.shares_rows: bool | None = None
        """Whether rows may share the keys and values of their beginnings; None until that has been tried."""

    @property
    def can_continue(self) -> bool:
        """Whether the model takes a cache of what came before."""
        return self._cache_name is not None

    def step(self, step: Step, cache: "Cache", places: Sequence[int], states: StatesWanted | None = None) -> Output:
        """Compute a step after the path in ``cache``.

        Args:
            step: Segments to compute, packed into one row.
            cache: A path cache cut to ``step.kept``.
            places: Indices of packed tokens at which logits are wanted; the head is computed there only.
            states: Hidden states wanted.
        """
        tokens = [token for segment in step.segments for token in segment.tokens]
        positions = [place for segment in step.segments for place in range(segment.start, segment.end)]
        where = torch.tensor([positions], device=self.device)
        return self._forward([tokens], places, where, self._step_masks(step, where), cache, states)

    def continue_rows(self, tokens: Sequence[int], lengths: Sequence[int], cache: RowCache) -> Tensor:
        """Add one token to each row of these lengths; return the next one's logits, float32 [rows, vocabulary]."""
        attention = self._known_attention()
        where = torch.tensor(lengths, device=self.device)
        distance = (where[:, None] - cache.positions)[:, None, :]
        with self._attending_to_shared() if cache.runs else nullcontext():
            masks = attention.masks(distance >= 0, distance, self.dtype)
            return self._forward([[token] for token in tokens], [0], where[:, None], masks, cache).logits

    def whole(self, tokens: Sequence[int], places: Sequence[int], states: StatesWanted | None = None) -> Output:
        """Compute one sequence from its beginning, in the plainest way, without cache or masks of our own."""
        return self._forward([list(tokens)], places, states=states)

    def continue_plainly(self, tokens: Sequence[int], cache: "Cache") -> Tensor:
        """Add tokens to a cache of transformers' own making; return the last one's logits, float32 [1, vocabulary]."""
        return self._forward([list(tokens)], [len(tokens) - 1], cache=cache).logits

    def free_tokens(self) -> int:
        """Tokens whose keys and values rows may hold: at most a quarter of the free memory.

        On a CPU also at most 512 MiB, or half as much as the weights where that is more.
        """
        text = self.model.config.get_text_config()
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        bytes_each = int(2 * self.layers * heads * width * self.dtype.itemsize)
        if self.device.type == "cuda":
            free = int(torch.cuda.mem_get_info(self.device)[0])
        else:
            import psutil

            free = int(psutil.virtual_memory().available)
        most = int(_MEMORY_SHARE * free)
        if self.device.type == "cpu":
            most = min(most, max(_CACHE_ON_CPU, self.parameters * self.dtype.itemsize // 2))
        return most // bytes_each

    @contextmanager
    def _attending_to_shared(self) -> Iterator[None]:
        """Let the layers compute their attention by :func:`~climassay.models.local.caches.shared_attention`."""
        config = self.model.config.get_text_config()
        before = config._attn_implementation
        config._attn_implementation = _SHARED_ATTENTION
        try:
            yield
        finally:
            config._attn_implementation = before

    def _known_attention(self) -> Attention:
        if self.attention is None:
            raise AssertionError("a model whose attention is unknown is only computed plainly")
        return self.attention

    def _step_masks(self, step: Step, positions: Tensor) -> Any:
        attention = self._known_attention()
        if self._fused and step.kept == 0 and len(step.segments) == 1 and step.size <= (attention.window or step.size):
            # Plain causality is all there is.
            return None if attention.kinds is None else dict.fromkeys(attention.kinds)
        keys = torch.cat([torch.arange(step.kept, device=self.device)[None], positions], dim=1)
        distance = positions[:, :, None] - keys[:, None, :]
        visible = distance >= 0
        if len(step.segments) > 1:
            visible[:, :, step.kept :] &= _same_branch(step.segments).to(self.device)
        return attention.masks(visible, distance, self.dtype)

    @torch.inference_mode()
    def _forward(
        self,
        tokens: list[list[int]],
        places: Sequence[int],
        positions: Tensor | None = None,
        masks: Any = None,
        cache: "Cache | None" = None,
        states: StatesWanted | None = None,
    ) -> Output:
        ids = torch.tensor(tokens, device=self.device)
        where = torch.tensor(places, dtype=torch.long, device=self.device)
        given: dict[str, Any] = {"input_ids": ids, "use_cache": cache is not None, "return_dict": True}
        if positions is not None:
            given["position_ids"] = positions
        if masks is not None:
            given["attention_mask"] = masks
        if cache is not None and self._cache_name is not None:
            given[self._cache_name] = cache
        if "logits_to_keep" in self._takes:
            given["logits_to_keep"] = where
        try:
            out, caught = self._run(given, states)
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"The memory of {self.device} is not enough for the model and {ids.numel()} tokens: choose a lower "
                "concurrency or token budget, a shorter prompt, --dtype bfloat16, or a smaller model."
            ) from error
        logits = out.logits if "logits_to_keep" in self._takes else out.logits[:, where]
        return Output(logits.flatten(0, 1).float(), caught)

    def _run(self, given: dict[str, Any], states: StatesWanted | None) -> tuple[Any, Tensor | None]:
        if states is None:
            return self.model(**given), None
        where = torch.tensor(states.places, dtype=torch.long, device=self.device)
        if not self._states.trusted:
            out = self.model(**given, output_hidden_states=True)
            return out, torch.stack([out.hidden_states[layer][0, where] for layer in states.layers], dim=1).float()
        with self._states.caught(states.layers, where) as found:
            out = self.model(**given)
        return out, torch.stack([found[layer] for layer in states.layers], dim=1)


def _same_branch(segments: Sequence[Segment]) -> Tensor:
    """Whether the second token's segment is the first one's or an ancestor of it, bool [tokens, tokens]."""
    seen = torch.eye(len(segments), dtype=torch.bool)
    for index, segment in enumerate(segments):
        if segment.parent is not None:
            seen[index] |= seen[segment.parent]
    lengths = torch.tensor([len(segment.tokens) for segment in segments])
    owner = torch.repeat_interleave(torch.arange(len(segments)), lengths)
    return seen[owner][:, owner]


_ROWS = 32
"""Tokens at a time for which oneDNN chooses its blocks; products of other sizes are computed from the same ones."""


class PackedLinear(nn.Module):
    """A frozen linear layer on a CPU, computed from weights in oneDNN's blocks."""

    def __init__(self, linear: nn.Linear) -> None:
        super().__init__()
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.register_buffer("weight", _operators()._reorder_linear_weight(linear.weight, _ROWS), persistent=False)
        self.register_buffer("bias", None if linear.bias is None else linear.bias.detach(), persistent=False)

    def forward(self, states: Tensor) -> Tensor:
        """Shape [..., in_features] to [..., out_features]."""
        if states.numel() == 0:
            return states.new_empty((*states.shape[:-1], self.out_features))
        product: Tensor = _operators()._linear_pointwise(states, self.weight, self.bias, "none", [], "")
        return product


@torch.inference_mode()
def pack_linear_layers(model: nn.Module) -> int:
    """Replace the bfloat16 linear layers of a frozen model on a CPU, one by one, so that no weight is held twice.

    A head that shares its weights with the embeddings is the exception. Nothing is replaced where this build of torch
    or this processor cannot do it, nor in number formats that oneDNN does not gain in.

    Returns:
        How many layers were replaced.
    """
    places = _places(model)
    count = len(places)
    if not places or not _exact(next(iter(places))):
        return 0
    while places:
        # Taken out, so that nothing holds a plain layer once the next one's turn has come.
        linear, found = places.popitem()
        packed = PackedLinear(linear)
        for parent, name in found:
            setattr(parent, name, packed)
    return count


def _places(model: nn.Module) -> dict[nn.Linear, list[tuple[nn.Module, str]]]:
    """The layers to be packed, each with the modules and names by which it is held."""
    found: dict[nn.Linear, list[tuple[nn.Module, str]]] = {}
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Linear and child.weight.dtype == torch.bfloat16 and child.weight.device.type == "cpu":
                found.setdefault(child, []).append((parent, name))
    return found


def _exact(linear: nn.Linear) -> bool:
    """Whether a packed layer can be made here and gives what the layer gives, up to the rounding of its results."""
    states = torch.linspace(-1, 1, 3 * linear.in_features, dtype=torch.bfloat16).view(3, -1)
    try:
        return torch.allclose(PackedLinear(linear)(states), linear(states), rtol=2**-6, atol=2**-6)
    except (AttributeError, NotImplementedError, RuntimeError, TypeError):
        return False


def _operators() -> Any:
    """OneDNN's own operators, which torch's compiler uses too."""
    return torch.ops.mkldnn
