"""The network of :mod:`cross_encoder`: pure tensor code."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


class LowRank(nn.Module):
    """A frozen linear layer plus a trained change of low rank: ``W x + b + scale * up(down(x))``.

    ``down`` has shape [rank, in], ``up`` [out, rank] and starts at 0, so that at first nothing is changed.
    """

    def __init__(self, layer: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.layer = layer
        self.scale = scale
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / layer.in_features**0.5)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, inputs: Tensor) -> Tensor:
        """Shape [..., in] to [..., out]."""
        change = (inputs @ self.down.T.to(inputs.dtype)) @ self.up.T.to(inputs.dtype)
        plain: Tensor = self.layer(inputs)
        return plain + self.scale * change

    def merged(self) -> nn.Linear:
        """The plain layer that computes the same."""
        with torch.no_grad():
            self.layer.weight += (self.scale * (self.up @ self.down)).to(self.layer.weight.dtype)
        return self.layer


class Network(nn.Module):
    """A BERT with low-rank changes, and a linear head on what it makes of the two texts.

    The head reads the first token's state, the means of the states of premise and statement, and how these differ:
    ``[first, premise, statement, |premise - statement|]``, width 4 x 384.
    """

    def __init__(self, body: Any, targets: Sequence[str], *, rank: int, scale: float, relations: int) -> None:
        super().__init__()
        self.body = body
        body.requires_grad_(False)
        for name, layer in list(body.encoder.named_modules()):
            if isinstance(layer, nn.Linear) and name.endswith(tuple(targets)):
                parent, _, leaf = name.rpartition(".")
                setattr(body.encoder.get_submodule(parent), leaf, LowRank(layer, rank, scale))
        width = body.config.hidden_size
        self.norm = nn.LayerNorm(4 * width, elementwise_affine=False)
        self.head = nn.Linear(4 * width, relations)

    def forward(self, ids: Tensor, kinds: Tensor, mask: Tensor) -> Tensor:
        """Logits [pairs, relations] of tokens [pairs, length]; ``kinds`` is 1 in statements, ``mask`` 0 in padding."""
        states = self.body(input_ids=ids, token_type_ids=kinds, attention_mask=mask).last_hidden_state.float()
        premise = _mean(states, mask * (1 - kinds))
        statement = _mean(states, mask * kinds)
        read = torch.cat([states[:, 0], premise, statement, (premise - statement).abs()], dim=1)
        logits: Tensor = self.head(self.norm(read))
        return logits

    def merge(self) -> None:
        """Put the changes into the weights, so that reading costs what the plain encoder costs."""
        for name, layer in list(self.body.encoder.named_modules()):
            if isinstance(layer, LowRank):
                parent, _, leaf = name.rpartition(".")
                setattr(self.body.encoder.get_submodule(parent), leaf, layer.merged())


def _mean(states: Tensor, chosen: Tensor) -> Tensor:
    """Mean over the chosen tokens [pairs, length] of states [pairs, length, width]."""
    weights = chosen.unsqueeze(-1).to(states.dtype)
    return (states * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1)
