"""A local model that is given text as it stands, without roles or chat template, as lm-evaluation-harness asks one."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from climassay.errors import ModelError
from climassay.models.contract import Message, OptionRequest, OptionScores, ScoresCallback, Usage
from climassay.models.local.model import BLOCK, LocalModel
from climassay.models.local.prompts import PromptFormat


class PlainText(PromptFormat):
    """Tokens of a text as the model's tokenizer makes them, control tokens included."""

    stops = ()

    @property
    def prefix_token(self) -> int:
        """What a text without a context is conditioned on.

        Raises:
            ModelError: The tokenizer has no token to begin a text with.
        """
        if (opening := self.opening_token) is None:
            raise ModelError("The tokenizer has no token to begin a text with.")
        return opening

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The texts, one after the other; for no message at all the token that a text begins with."""
        if not messages:
            return str(self.tokenizer.decode([self.prefix_token]))
        return "".join(message.content for message in messages) + assistant_prefix

    def encode(self, text: str) -> list[int]:
        """Token ids; a text that begins with the first token is not given another."""
        begun = text.startswith(self.tokenizer.decode([self.prefix_token]))
        return self.encode_all([text])[0] if not begun else self.encode_rest(text)

    def encode_all(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of many texts, each with the tokens that the tokenizer puts before a text."""
        return [list(tokens) for tokens in self.tokenizer(list(texts), return_attention_mask=False)["input_ids"]]

    def encode_rest(self, text: str) -> list[int]:
        """Token ids of a text that goes on from something else."""
        return list(self.tokenizer.encode(text, add_special_tokens=False))


class TextModel(LocalModel):
    """Continues texts and gives the log-probability of continuations.

    A request's messages are one text, its context. Its only option is the continuation; context and continuation are
    tokenised together and the first tokens, as many as the context has by itself, are not scored. Spaces at the end of
    the context count to the continuation. What does not fit into the window is cut off at the beginning. A request
    without messages asks for the whole text, in windows that follow each other if it is long.
    """

    prompt_format = PlainText
    prompts: PlainText

    def __init__(self, name: str, **options: Any) -> None:
        """Load a model, as :class:`~climassay.models.local.model.LocalModel` does."""
        super().__init__(name, **options)
        self.fingerprint = hashlib.sha256(f"{self.fingerprint} as text".encode()).hexdigest()

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Log-probability of each request's continuation, in order; beginnings that they share are computed once.

        Raises:
            ModelError: A request has several options.
        """
        results: dict[int, OptionScores] = {}
        order = sorted(range(len(requests)), key=lambda index: [one.content for one in requests[index].messages])
        with self._alone():
            for start in range(0, len(order), BLOCK):
                windows = {index: self._windows(requests[index]) for index in order[start : start + BLOCK]}
                for index, scores in self._score(windows):
                    results[index] = scores
                    if on_result is not None:
                        on_result(index, scores)
        return [results[index] for index in range(len(requests))]

    def _windows(self, request: OptionRequest) -> list[tuple[list[int], int]]:
        """Tokens to compute, and from which position on they are scored; several only for a text without context."""
        if len(request.options) != 1:
            raise ModelError("A text is scored with one continuation at a time.")
        [continuation] = request.options
        context, first = self.render(request.messages, request.assistant_prefix), [self.prompts.prefix_token]
        if not request.messages:
            return self._in_windows(first + self.prompts.encode(continuation))
        if not context:
            rest = self.prompts.encode_rest(continuation)
            tokens, start = (rest if rest[:1] == first else first + rest), 1
        else:
            alone = self.prompts.encode(context.rstrip())
            tokens, start = alone + self.prompts.encode(context + continuation)[len(alone) :], len(alone)
        cut = max(0, len(tokens) - self.window - 1)
        return [(tokens[cut:], start - cut)]

    def _in_windows(self, tokens: list[int]) -> list[tuple[list[int], int]]:
        """Windows in which every token but the first is scored once.

        Each is as long as it may be, and the last one has as much before what it scores as fits.
        """
        windows = []
        for start in range(1, len(tokens), self.window):
            end = min(start + self.window, len(tokens))
            first = max(0, end - self.window - 1)
            windows.append((tokens[first:end], start - first))
        return windows

    def _score(self, windows: dict[int, list[tuple[list[int], int]]]) -> Iterator[tuple[int, OptionScores]]:
        owners = [(index, window, start) for index, some in windows.items() for window, start in some]
        missing = {index: sum(len(window) - start for window, start in some) for index, some in windows.items()}
        sums, greedy = dict.fromkeys(windows, 0.0), dict.fromkeys(windows, True)
        for index in [
            index for index, places in missing.items() if not places or any(s < 1 for _, s in windows[index])
        ]:
            del missing[index]
            yield (
                index,
                OptionScores.failed("The continuation adds nothing to the context, or is longer than the window."),
            )
        owners = [owner for owner in owners if owner[0] in missing]
        readings = self.reader.read(
            [window[:-1] for _, window, _ in owners],
            [range(start - 1, len(window) - 1) for _, window, start in owners],
        )
        for reading in readings:
            for place, logprob, best in zip(reading.places, *_next_tokens(reading, owners), strict=True):
                index = owners[place.sequence][0]
                sums[index] += logprob
                greedy[index] &= best
                missing[index] -= 1
                if not missing[index]:
                    usage = Usage(prompt_tokens=sum(len(window) for window, _ in windows[index]), requests=1)
                    yield index, OptionScores((sums[index],), "greedy" if greedy[index] else "exact", usage)


def _next_tokens(reading: Any, owners: Sequence[tuple[int, list[int], int]]) -> tuple[list[float], list[bool]]:
    """For each place of a reading, the log-probability of the token that follows, and whether none is more probable."""
    device = reading.logits.device
    rows = torch.tensor([place.row for place in reading.places], device=device)
    following = torch.tensor([owners[place.sequence][1][place.position + 1] for place in reading.places], device=device)
    logits = reading.logits[rows, following]
    best = reading.logits.argmax(dim=-1)[rows] == following
    return (logits - reading.logits.logsumexp(dim=-1)[rows]).tolist(), best.tolist()
