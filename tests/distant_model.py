"""A model for the workers of a cluster that writes down what it is asked, and misbehaves on request.

Each line of its log is ``PROCESS PROMPT``. A prompt with ``[wait]`` is answered when the file ``go`` is there, one with
``[die]`` ends the worker's process without a word.
"""

import os
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from climassay.models import Completion, OptionScores, Usage, Work
from climassay.models.local.prompt_format import DescribedModel, ModelInfo


class PlainPrompts:
    """A tokenizer of words."""

    def render(self, messages, assistant_prefix=""):
        return f"<{messages[-1].content}>{assistant_prefix}"

    def encode_all(self, texts):
        return [text.split() for text in texts]


class DistantModel(DescribedModel):
    """Answers with the prompt backwards and the request's seed."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        super().__init__(
            "local:distant",
            ModelInfo(fingerprint, PlainPrompts(), 512, 3, "float32", "cpu", 384, 1000, None, folder),
        )
        self.work = Work(0, 0)
        self._folder = folder

    def generate(self, requests, *, on_result=None):
        return [self._answer(request) for request in requests]

    def option_logprobs(self, requests, *, on_result=None):
        self.work = Work(self.work.passes + 1, self.work.tokens + len(requests))
        return [OptionScores(tuple(-float(len(option)) for option in one.options)) for one in requests]

    def _answer(self, request):
        prompt = request.messages[-1].content
        with (self._folder / "asked").open("a", encoding="utf-8") as log:
            log.write(f"{os.getpid()} {prompt}\n")
        if "[die]" in prompt:
            os._exit(1)
        while "[wait]" in prompt and not (self._folder / "go").exists():
            time.sleep(0.01)
        if "[crash]" in prompt:
            raise RuntimeError("the model has a fault of its own")
        return Completion(f"{prompt[::-1]} {request.sampling.seed}", "stop", Usage(1, 1, 1))


@dataclass(frozen=True)
class WantedDistant:
    """What loads it in a worker; with ``own_weights`` every process has other ones."""

    folder: str
    own_weights: bool = False

    def resolved(self):
        return self

    def load(self):
        return DistantModel(Path(self.folder), f"{os.getpid()}" if self.own_weights else "d" * 64)


def asked(folder):
    """How often each prompt was asked, and by which processes."""
    lines = (folder / "asked").read_text(encoding="utf-8").splitlines() if (folder / "asked").exists() else []
    pairs = [line.split(" ", 1) for line in lines]
    return Counter(prompt for _, prompt in pairs), {int(process) for process, _ in pairs}
