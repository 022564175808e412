"""One forward pass of a causal language model from transformers, with the masks that packed branches need."""

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import AttentionInterface

from climassay.errors import ModelError
from climassay.models.local.caches import RowCache, shared_attention
from climassay.models.local.forest import Segment, Step
from climassay.models.local.hidden_states import HiddenStates

if TYPE_CHECKING:
    from transformers import PreTrainedModel
    from transformers.cache_utils import Cache

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
        near = visible if self.window is None else visible & (distance < self.window)
        if self.kinds is None:
            return _additive(near, dtype)
        return {kind: _additive(near if kind == "sliding_attention" else visible, dtype) for kind in self.kinds}

    def no_masks(self) -> dict[str, None] | None:
        """What a model takes instead of masks when plain causality is all there is."""
        return None if self.kinds is None else dict.fromkeys(self.kinds)


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
        return self._forward(
            torch.tensor([tokens], device=self.device),
            where,
            self._step_masks(step, where),
            cache,
            torch.tensor(places, dtype=torch.long, device=self.device),
            states,
        )

    def continue_rows(self, tokens: Sequence[int], lengths: Sequence[int], cache: RowCache) -> Tensor:
        """Add one token to each row; return the logits of the next one, float32 [rows, vocabulary].

        Args:
            tokens: One for each active row.
            lengths: Tokens that each row holds already.
            cache: A row cache aimed at the rows.
        """
        attention = self._known_attention()
        where = torch.tensor(lengths, device=self.device)
        distance = (where[:, None] - cache.positions)[:, None, :]
        with self._attending_to_shared() if cache.runs else nullcontext():
            output = self._forward(
                torch.tensor(tokens, device=self.device)[:, None],
                where[:, None],
                attention.masks(distance >= 0, distance, self.dtype),
                cache,
                torch.zeros(1, dtype=torch.long, device=self.device),
            )
        return output.logits

    def whole(self, tokens: Sequence[int], places: Sequence[int], states: StatesWanted | None = None) -> Output:
        """Compute one sequence from its beginning, in the plainest way, without cache or masks of our own."""
        return self._forward(
            torch.tensor([list(tokens)], device=self.device),
            None,
            None,
            None,
            torch.tensor(places, dtype=torch.long, device=self.device),
            states,
        )

    def continue_plainly(self, tokens: Sequence[int], cache: "Cache") -> Tensor:
        """Add tokens to a cache of transformers' own making; return the last one's logits, float32 [1, vocabulary]."""
        last = torch.tensor([len(tokens) - 1], dtype=torch.long, device=self.device)
        return self._forward(torch.tensor([list(tokens)], device=self.device), None, None, cache, last).logits

    def free_tokens(self) -> int:
        """Tokens whose keys and values rows may hold: at most a quarter of the free memory.

        On a CPU also at most 512 MiB, or half as much as the weights where that is more.
        """
        text = self.model.config.get_text_config()
        heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
        width = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
        bytes_each = int(2 * self.layers * heads * width * self.dtype.itemsize)
        most = int(_MEMORY_SHARE * _free_bytes(self.device))
        if self.device.type == "cpu":
            weights = sum(weight.numel() * weight.itemsize for weight in self.model.parameters())
            most = min(most, max(_CACHE_ON_CPU, weights // 2))
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
            return attention.no_masks()
        keys = torch.cat([torch.arange(step.kept, device=self.device)[None], positions], dim=1)
        distance = positions[:, :, None] - keys[:, None, :]
        visible = distance >= 0
        if len(step.segments) > 1:
            visible[:, :, step.kept :] &= _same_branch(step.segments).to(self.device)
        return attention.masks(visible, distance, self.dtype)

    @torch.inference_mode()
    def _forward(
        self,
        tokens: Tensor,
        positions: Tensor | None,
        masks: Any,
        cache: "Cache | None",
        places: Tensor,
        states: StatesWanted | None = None,
    ) -> Output:
        given: dict[str, Any] = {"input_ids": tokens, "use_cache": cache is not None, "return_dict": True}
        if positions is not None:
            given["position_ids"] = positions
        if masks is not None:
            given["attention_mask"] = masks
        if cache is not None and self._cache_name is not None:
            given[self._cache_name] = cache
        if "logits_to_keep" in self._takes:
            given["logits_to_keep"] = places
        try:
            out, caught = self._run(given, states)
        except torch.OutOfMemoryError as error:
            raise ModelError(
                f"The memory of {self.device} is not enough for the model and {tokens.numel()} tokens: choose a lower "
                "concurrency or token budget, a shorter prompt, --dtype bfloat16, or a smaller model."
            ) from error
        logits = out.logits if "logits_to_keep" in self._takes else out.logits[:, places]
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


def _additive(visible: Tensor, dtype: torch.dtype) -> Tensor:
    mask = torch.zeros(visible.shape, dtype=dtype, device=visible.device)
    return mask.masked_fill_(~visible, torch.finfo(dtype).min)[:, None]


def _free_bytes(device: torch.device) -> int:
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    import psutil

    return int(psutil.virtual_memory().available)
