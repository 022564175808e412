"""Linear layers whose bfloat16 weights lie in memory as the processor multiplies them.

torch hands a bfloat16 product on a CPU to oneDNN, which first brings the weights into blocks of its own: for the few
rows of a decoding step that costs more than the product. Here they are brought into blocks once, when a model is
loaded; ``benchmarks/generation.py`` measures what that gains.
"""

from typing import Any

import torch
from torch import Tensor, nn

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
