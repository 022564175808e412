"""A model whose hidden states hold the quality of texts in a known direction."""

import numpy as np

from climassay.judging import Item, QualityRequests, StateExtractor, quality
from climassay.models import Activations, Work

WIDTH = 12
DIRECTION = np.eye(WIDTH)[0]


class PlantedModel:
    """A model in whose states the number at the end of a text stands in one direction, behind the answer's own mark."""

    name, fingerprint, dtype, token_budget, layers = "local:planted", "ab" * 32, "float32", 100, 4

    def __init__(self, noise=0.3, fail=()):
        self.noise, self.fail = noise, fail
        self.work = Work(0, 0)

    def render(self, messages, assistant_prefix=""):
        return messages[-1].content

    def harvest(self, requests, *, layers=(-1,), token_budget=None, on_result=None):
        results = [self._activations(request, len(layers)) for request in requests]
        if on_result is not None:
            for index, result in enumerate(results):
                on_result(index, result)
        return results

    def _activations(self, request, layers):
        text = request.messages[-1].content
        if any(word in text for word in self.fail):
            return Activations.failed("no")
        values = [float(word[1:]) for word in text.replace("\n", " ").split() if word[0] == "v" and word[1:].isdigit()]
        rng = np.random.default_rng(sum(map(ord, text)))
        gap = values[0] - values[1] if len(values) == 2 else values[0]
        signs = [1, -1][: len(request.options)]
        states = np.stack(
            [
                sign * gap * DIRECTION / 2 + 5 * sign * np.eye(WIDTH)[1] + rng.normal(0, self.noise, WIDTH)
                for sign in signs
            ]
        )
        return Activations(np.repeat(states[:, None], layers, 1).astype(np.float32), (0.0,) * len(signs), 1)

    def option_logprobs(self, requests, *, on_result=None):
        raise AssertionError("nothing is asked")

    def generate(self, requests, *, on_result=None):
        raise AssertionError("nothing is asked")

    def close(self):
        """Nothing to give back."""


def items(groups=8, each=4, seed=0):
    rng = np.random.default_rng(seed)
    made = []
    for group in range(groups):
        for number in range(each):
            label = int(rng.integers(1, 6))
            words = "word " * int(rng.integers(1, 9))
            made.append(Item(f"{group}/{number}", f"{words}{group}-{number} v{label}", "", str(group), label))
    return made


def extractor(model=None, layers=(-1,)):
    return StateExtractor(model or PlantedModel(), QualityRequests(quality("own", sentence="is better")), layers)
