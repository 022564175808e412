"""A causal language model from transformers: one forward pass, and what is read of many sequences in several.

A pass has the masks that packed branches need. Everything that a local model does with given text stands on
:meth:`Reader.read`, which computes once what sequences share: scoring options, harvesting hidden states, and computing
the prompts of a generation.

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
from climassay.models.contract import Work
from climassay.models.local.prefix_tree import PathCache, PrefixTree, RowCache, Segment, Step, shared_attention

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
        results: dict[int, Tensor] = {}

        def keep(names: Sequence[int], states: Tensor) -> None:
            # float() copies 16-bit states; indexing has copied float32 ones: the pass's own memory can go.
            chosen = states[0, places.to(states.device)].float().to(places.device)
            results.update(dict.fromkeys(names, chosen))

        wanted: dict[int, list[int]] = {}
        for layer in layers:
            wanted.setdefault(layer % (self._count + 1), []).append(layer)
        handles = [self._hook(state, names, keep) for state, names in wanted.items()]
        try:
            yield results
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
            with self.caught(everything, places) as result:
                out = self._model(input_ids=tokens, output_hidden_states=True, use_cache=False, return_dict=True)
            expected = [states[0].float().to(device) for states in out.hidden_states]
            return len(expected) == len(everything) and all(
                torch.equal(result[layer], states) for layer, states in zip(everything, expected, strict=True)
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
        """Let the layers compute their attention by :func:`~climassay.models.local.prefix_tree.shared_attention`."""
        config = self.model.config.get_text_config()
        before = config._attn_implementation
        config._attn_implementation = _SHARED_ATTENTION
        try:
            yield
        finally:
            config._attn_implementation = before

    def _known_attention(self) -> Attention:
        if self.attention is None:
            raise AssertionError("a model whose attention is unknown supports only plain computation")
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
        with self._states.caught(states.layers, where) as result:
            out = self.model(**given)
        return out, torch.stack([result[layer] for layer in states.layers], dim=1)


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
        linear, result = places.popitem()
        packed = PackedLinear(linear)
        for parent, name in result:
            setattr(parent, name, packed)
    return count


def _places(model: nn.Module) -> dict[nn.Linear, list[tuple[nn.Module, str]]]:
    """The layers to be packed, each with the modules and names by which it is held."""
    results: dict[nn.Linear, list[tuple[nn.Module, str]]] = {}
    for parent in model.modules():
        for name, child in parent.named_children():
            if type(child) is nn.Linear and child.weight.dtype == torch.bfloat16 and child.weight.device.type == "cpu":
                results.setdefault(child, []).append((parent, name))
    return results


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


_LONGEST_RUN = 4096
_PACK_ON_CPU = 384
_PACK_ON_GPU = 4096
"""Tokens packed into one step: enough to keep the machine busy, while attention between strangers is wasted work."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a sequence that was read, and the row of the reading in which its result stands."""

    sequence: int
    position: int
    row: int


@dataclass(frozen=True, slots=True)
class Reading:
    """Results of one step."""

    places: tuple[Place, ...]
    """Where logits were read. Several places share a row when their sequences are the same up to there."""
    logits: Tensor
    """float32 [rows, vocabulary]: of the token after the place."""
    state_places: tuple[Place, ...]
    """Where hidden states were read; their rows are those of ``states``."""
    states: Tensor | None
    """float32 [rows, layers, width]; None when none were asked for."""
    step: Step | None
    """None when the model was computed without sharing."""


class Reader:
    """Computes token sequences on a network.

    A model whose layers are all (full or sliding) attention is computed with shared beginnings, after a check on a
    few tokens that this gives what the plain computation gives; every other model one sequence at a time.
    """

    def __init__(self, network: Network, *, pack: int | None = None) -> None:
        self.network = network
        self.pack = pack or (_PACK_ON_CPU if network.device.type == "cpu" else _PACK_ON_GPU)
        self.work = Work(0, 0)
        """Forward passes and tokens computed so far."""
        self.cache = PathCache(network.layers)
        """Keys and values of the path and of the last step."""
        self._shares: bool | None = None

    @property
    def shares(self) -> bool:
        """Whether beginnings are shared; found out at first use."""
        if self._shares is None:
            self._shares = self.network.attention is not None and _agrees(self.network)
        return self._shares

    def release(self) -> None:
        """Give back the memory of the cache; it is made anew when needed."""
        self.cache = PathCache(self.network.layers)

    def read(
        self,
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[Sequence[int]],
        *,
        states: Sequence[Sequence[int]] | None = None,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
    ) -> Iterator[Reading]:
        """Compute sequences and give the results at the wanted places.

        Args:
            sequences: Token ids, none empty.
            wanted: For each sequence the positions at which logits are wanted, from 0; at least one for each.
            states: For each sequence the positions at which hidden states are wanted; None for none at all.
            layers: Which hidden states, numbered as transformers does.
            token_budget: Maximum number of tokens in one forward pass; by default what suits the device. A model that
                cannot share beginnings computes each sequence whole, whatever the budget.

        Yields:
            A reading for each step, before the next one is computed. Every wanted place is in exactly one of them.
        """
        if not sequences:
            return
        if not self.shares:
            yield from self._read_plainly(sequences, wanted, states, layers)
            return
        first = min(min(positions) for positions in (*wanted, *(states or ())) if positions)
        tree = PrefixTree(sequences, held=self.cache.tokens[:first])
        wanted_logits = [frozenset(positions) for positions in wanted]
        wanted_states = None if states is None else [frozenset(positions) for positions in states]
        pack, longest = token_budget or self.pack, min(token_budget or _LONGEST_RUN, _LONGEST_RUN)
        for step in tree.steps(pack=pack, longest=longest):
            indices, places = _wanted_places(step, wanted_logits)
            state_indices, state_places = ([], []) if wanted_states is None else _wanted_places(step, wanted_states)
            self.cache.keep(step.kept)
            states_wanted = StatesWanted(state_indices, layers) if state_places else None
            output = self.network.step(step, self.cache, indices, states_wanted)
            self._count(step.size)
            if len(step.segments) == 1:
                self.cache.tokens += step.segments[0].tokens
            if places or state_places:
                yield Reading(tuple(places), output.logits, tuple(state_places), output.states, step)

    def _read_plainly(
        self,
        sequences: Sequence[Sequence[int]],
        wanted: Sequence[Sequence[int]],
        states: Sequence[Sequence[int]] | None,
        layers: Sequence[int],
    ) -> Iterator[Reading]:
        for index, (tokens, positions) in enumerate(zip(sequences, wanted, strict=True)):
            at = () if states is None else states[index]
            output = self.network.whole(tokens, positions, StatesWanted(at, layers) if at else None)
            self._count(len(tokens))
            places, state_places = (
                tuple(Place(index, position, row) for row, position in enumerate(some)) for some in (positions, at)
            )
            yield Reading(places, output.logits, state_places, output.states, None)

    def _count(self, tokens: int) -> None:
        self.work = Work(self.work.passes + 1, self.work.tokens + tokens)


def columns(step: Step, segment: Segment) -> list[int]:
    """Columns of the path cache, after a step, that hold a segment and all that comes before it, in order."""
    starts = [step.kept]
    for other in step.segments:
        starts.append(starts[-1] + len(other.tokens))
    runs: list[range] = []
    index: int | None = step.segments.index(segment)
    while index is not None:
        runs.append(range(starts[index], starts[index + 1]))
        index = step.segments[index].parent
    return [*range(step.kept), *(column for run in reversed(runs) for column in run)]


def _wanted_places(step: Step, wanted: Sequence[frozenset[int]]) -> tuple[list[int], list[Place]]:
    """Packed indices to read in a step, each once, and the places that they answer."""
    indices: list[int] = []
    places: list[Place] = []
    offset = 0
    for segment in step.segments:
        rows: dict[int, int] = {}
        for sequence in segment.sequences:
            for position in wanted[sequence]:
                if segment.start <= position < segment.end:
                    if position not in rows:
                        rows[position] = len(indices)
                        indices.append(offset + position - segment.start)
                    places.append(Place(sequence, position, rows[position]))
        offset += len(segment.tokens)
    return indices, places


def _agrees(network: Network) -> bool:
    """Compare shared with plain computation on a few short sequences; an architecture may do more than attend."""
    ids = [(7919 * number + 13) % network.vocabulary for number in range(24)]
    sequences = [ids[:12], [*ids[:12], *ids[20:24]], [*ids[:8], *ids[14:20]], [*ids[:8], *ids[14:17], *ids[2:5]]]
    reader = Reader(network, pack=8)
    reader._shares = True
    try:
        shared = torch.empty(len(sequences), network.vocabulary)
        for reading in reader.read(sequences, [[len(tokens) - 1] for tokens in sequences]):
            for place in reading.places:
                shared[place.sequence] = reading.logits[place.row].cpu()
        plain = torch.cat([network.whole(tokens, [len(tokens) - 1]).logits.cpu() for tokens in sequences])
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
        return False
    return same_distributions(shared, plain, network.dtype)


def same_distributions(first: Tensor, second: Tensor, dtype: torch.dtype) -> bool:
    """Whether logits [rows, vocabulary] of two ways of computing differ by the rounding of a type only."""
    difference = (first.softmax(-1) - second.softmax(-1)).abs().max()
    return bool(difference < (1e-4 if dtype == torch.float32 else 0.1))
