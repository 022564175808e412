"""Catch hidden states at a few places while a forward pass goes by.

transformers' ``output_hidden_states`` keeps every layer's states of every token until the pass is done. Here a hook on
each wanted layer takes the wanted tokens and nothing else.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def backbone_layers(model: "PreTrainedModel") -> tuple[nn.Module, nn.ModuleList | None]:
    """The backbone of a language model, and its list of layers; None where that cannot be told."""
    backbone: nn.Module = model.get_decoder() if hasattr(model, "get_decoder") else model.base_model
    count = int(model.config.get_text_config().num_hidden_layers)
    stacks = [child for child in backbone.children() if isinstance(child, nn.ModuleList) and len(child) == count]
    return backbone, stacks[0] if len(stacks) == 1 else None


class HiddenStates:
    """Finds the layers of a transformers model and reads the states that go into them.

    The numbering is transformers': state 0 goes into the first layer, state k into layer k + 1, and the last one is
    what the backbone gives after its final norm.
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
