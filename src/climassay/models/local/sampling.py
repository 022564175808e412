"""Draw the next tokens of a batch, each row by its own settings and its own random numbers."""

import hashlib
import random
from collections.abc import Sequence

import torch
from torch import Tensor

from climassay.models.contract import Sampling


class Draw:
    """How one sequence draws its tokens."""

    def __init__(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        """Start the random numbers of a sequence.

        They depend on the seed and the prompt alone: not on what else is in the batch, and not shared with other
        prompts that were given the same seed.
        """
        self.temperature, self.top_p = sampling.temperature, sampling.top_p
        tokens = hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()
        self._random = random.Random(f"{sampling.seed}:{tokens}")

    @property
    def greedy(self) -> bool:
        """Whether the most probable token is taken."""
        return self.temperature <= 0

    def uniform(self) -> float:
        """The sequence's next random number in [0, 1)."""
        return self._random.random()


def draw_tokens(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Draw a token for each row.

    Args:
        logits: float32 [rows, vocabulary]; forbidden tokens at minus infinity.
        draws: One for each row.
    """
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    rows = [row for row, draw in enumerate(draws) if not draw.greedy]
    if rows:
        chosen = _sample(logits[rows], [draws[row] for row in rows])
        for row, token in zip(rows, chosen, strict=True):
            tokens[row] = token
    return tokens


def _sample(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Invert the cumulative distribution over tokens from the most to the least probable.

    A token is in the nucleus when those before it have less than ``top_p`` of the mass; the first one always is.
    """
    device = logits.device
    temperatures = torch.tensor([draw.temperature for draw in draws], device=device)
    ordered, index = (logits / temperatures[:, None]).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    mass = ordered.double().cumsum(dim=-1)
    limits = torch.tensor([[draw.top_p] for draw in draws], dtype=torch.float64, device=device)
    inside = ((mass - ordered) < limits).sum(dim=-1, keepdim=True).clamp_(min=1)
    total = mass.gather(1, inside - 1)
    uniform = torch.tensor([[draw.uniform()] for draw in draws], dtype=torch.float64, device=device)
    place = torch.searchsorted(mass, uniform * total, right=True).clamp_(max=inside - 1)
    chosen: list[int] = index.gather(1, place)[:, 0].tolist()
    return chosen
