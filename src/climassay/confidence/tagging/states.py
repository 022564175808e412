"""Hidden states of a language model on statements: mean over the statement's tokens, or where its tag would stand."""

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from climassay.errors import InputError, ModelError
from climassay.models.contract import OpenWeights

Pooling = Literal["mean", "last"]
POOLINGS: tuple[Pooling, ...] = ("mean", "last")
OPENING = " ("
"""Behind the statement: what a report would go on from with the level of confidence."""
_SINK = "<|endoftext|>"
_LONGEST = 200
"""Tokens of a statement that are read."""


def read_states(
    model: OpenWeights,
    texts: Sequence[str],
    layer: int,
    pooling: Pooling,
    *,
    on_progress: Callable[[int], None] | None = None,
) -> NDArray[np.float64]:
    """States of one layer, shape [texts, width]; arguments and errors as :func:`read_layers`."""
    found = read_layers(model, texts, [layer], on_progress=on_progress)
    return found[:, 0, POOLINGS.index(pooling)].astype(np.float64)


def read_layers(
    model: OpenWeights,
    texts: Sequence[str],
    layers: Sequence[int],
    *,
    on_progress: Callable[[int], None] | None = None,
) -> NDArray[np.float32]:
    """States of several layers from one pass, shape [texts, layers, 2, width].

    Of the two, the first is the mean over the statement's tokens, the second the state at the bracket behind it.

    Args:
        model: A local model, itself and not wrapped.
        texts: Statements; they are read as running text, without chat template.
        layers: Numbered as transformers does.
        on_progress: Called with the number of texts read since the last call.

    Raises:
        InputError: The model does not show the states of all tokens.
        ModelError: It has no such layer.
    """
    from climassay.models.local.model import LocalModel
    from climassay.models.local.network import StatesWanted

    if not isinstance(model, LocalModel):
        raise InputError(f"The states of {getattr(model, 'name', 'this model')} cannot be read: give a local: model.")
    missing = next((layer for layer in layers if not -model.layers - 1 <= layer <= model.layers), None)
    if missing is not None:
        raise ModelError(f"{model.name} has no layer {missing}: its hidden states are 0 to {model.layers}.")
    opening = model.prompts.encode(OPENING)
    found = []
    for text in texts:
        # The first token's state is the same whatever follows and far larger than all others: a token before the
        # statement takes its place, and is not read.
        tokens = [*model.prompts.encode(_SINK)[:1], *(model.prompts.encode(text)[:_LONGEST] or opening), *opening]
        output = model.network.whole(tokens, [len(tokens) - 1], StatesWanted(range(1, len(tokens)), list(layers)))
        if output.states is None:
            raise ModelError(f"{model.name} gave no hidden states.")
        states = output.states.cpu().float().numpy()
        found.append(np.stack([states[: -len(opening)].mean(axis=0), states[-1]], axis=1))
        if on_progress is not None:
            on_progress(1)
    return np.array(found, dtype=np.float32)
