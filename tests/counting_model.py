"""A model of made-up hidden states that counts its work, for tests of what is done with states; and a process with it.

python tests/counting_model.py STORE COUNT SHARD   harvests COUNT requests; after each it prints a line and reads one
"""

import hashlib
import sys

import numpy as np

from climassay.errors import ModelError
from climassay.learning import ActivationStore, harvest
from climassay.models import Activations, Message, OptionRequest, Work

WIDTH = 6


class CountingModel:
    """States are drawn from a hash of prompt, option and layer. ``fail`` fails, ``unrenderable`` has no prompt."""

    name, dtype, token_budget, layers = "local:counting", "float32", 384, 6

    def __init__(self, fingerprint="7" * 64):
        self.fingerprint = fingerprint
        self.asked: list[list[str]] = []
        self.work = Work(0, 0)

    def render(self, messages, assistant_prefix=""):
        if messages[-1].content == "unrenderable":
            raise ModelError("The chat template does not accept this.")
        return f"<{messages[-1].content}>{assistant_prefix}"

    def harvest(self, requests, *, layers=(-1,), token_budget=None, on_result=None):
        prompts = [self.render(request.messages, request.assistant_prefix) for request in requests]
        self.asked.append(prompts)
        found = []
        for index, (prompt, request) in enumerate(zip(prompts, requests, strict=True)):
            self.work = Work(self.work.passes + 1, self.work.tokens + len(prompt))
            found.append(self._activations(prompt, request.options, layers))
            if on_result is not None:
                on_result(index, found[-1])
        return found

    def _activations(self, prompt, options, layers):
        tokens = len(options) * (len(prompt) + 1)
        if "fail" in prompt:
            return Activations.failed("No luck.", tokens)
        states = np.array([[_drawn(prompt, option, layer) for layer in layers] for option in options])
        return Activations(states, tuple(float(-abs(state[0, 0])) for state in states), tokens)

    def generate(self, requests, *, on_result=None):
        raise NotImplementedError

    def option_logprobs(self, requests, *, on_result=None):
        raise NotImplementedError

    def close(self):
        """Nothing to give back."""


def ask(*texts, options=("1", "2")):
    return [OptionRequest((Message("user", text),), options, "Choice ") for text in texts]


def expected_states(texts, layers=(-1,), options=("1", "2")):
    return np.array([[[_drawn(f"<{text}>Choice ", o, layer) for layer in layers] for o in options] for text in texts])


def texts_of(count):
    return [f"article {number // 6} item {number % 6}" for number in range(count)]


def _drawn(prompt, option, layer):
    seed = int.from_bytes(hashlib.sha256(f"{prompt}|{option}|{layer}".encode()).digest()[:8], "little")
    return np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)


def main() -> None:
    store, count, shard = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])

    def wait(done: int) -> None:
        print(done, flush=True)
        if not sys.stdin.readline():
            sys.exit("nobody waits for the results any more")

    found = harvest(CountingModel(), ask(*texts_of(count)), store=ActivationStore(store), shard=shard, on_progress=wait)
    print("found", found.stored, found.computed, flush=True)


if __name__ == "__main__":
    main()
