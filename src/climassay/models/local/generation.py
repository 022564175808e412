"""Generate many completions together: a queue of prompts, and a batch that is refilled as rows finish."""

from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch
from torch import Tensor

from climassay.errors import ModelError
from climassay.models.contract import Completion, CompletionCallback, FinishReason, GenerationRequest, Usage
from climassay.models.local.constrained import Constraint, Grammars
from climassay.models.local.forest import common_length
from climassay.models.local.network import Network
from climassay.models.local.prompts import PromptFormat
from climassay.models.local.reading import Reader
from climassay.models.local.rows import Rows, rows_for
from climassay.models.local.sampling import Draw, draw_tokens

DEFAULT_MAX_TOKENS = 256
_ROWS_ON_CPU = 32
_ROWS_ON_GPU = 128
_SHARED_ENOUGH = 64
"""Tokens that neighbours must share to be kept together rather than sorted by length."""

_ROOM = 128
"""Most tokens that rows are given room for when one is admitted; they may need more."""


@dataclass(slots=True)
class _Answer:
    """One request on its way."""

    index: int
    prompt: list[int]
    limit: int
    """Tokens that may be generated."""
    draw: Draw
    stops: tuple[str, ...]
    constraint: Constraint | None
    lead: str
    """Spaces taken from the prompt's end; the answer begins with them."""
    tokens: list[int] = field(default_factory=list)
    drawn: int = 0
    """Tokens drawn, the one that ends the answer included."""

    @property
    def so_far(self) -> list[int]:
        """Tokens of the row: the prompt and what has been generated."""
        return self.prompt + self.tokens

    @property
    def longest(self) -> int:
        """Tokens of the row when the answer is as long as it may be."""
        return len(self.prompt) + self.limit


class Generation:
    """Generates with one model."""

    def __init__(self, network: Network, reader: Reader, prompts: PromptFormat, *, rows: int | None = None) -> None:
        """Prepare to generate.

        Args:
            network: The model.
            reader: Computes the prompts.
            prompts: The model's tokenizer.
            rows: Sequences generated side by side; by default as many as pay on the device.
        """
        self._network, self._reader, self._prompts = network, reader, prompts
        self._most_rows = rows or (_ROWS_ON_CPU if network.device.type == "cpu" else _ROWS_ON_GPU)
        self._ends = frozenset(_end_tokens(network, prompts))
        self._grammars = Grammars(prompts.tokenizer, network.vocabulary, sorted(self._ends))

    def run(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; one that cannot be answered gives a failed completion."""
        results: dict[int, Completion] = {}

        def keep(index: int, completion: Completion) -> None:
            results[index] = completion
            if on_result is not None:
                on_result(index, completion)

        answers = []
        for index, request in enumerate(requests):
            try:
                answers.append(self._prepare(index, request))
            except ModelError as error:
                keep(index, Completion.failed(str(error)))
        for answer, reason in self._answers(deque(_in_order(answers))):
            keep(answer.index, self._completion(answer, reason))
        return [results[index] for index in range(len(requests))]

    def _prepare(self, index: int, request: GenerationRequest) -> _Answer:
        """Tokenise a request and work out how long its answer may be."""
        text = self._prompts.render(request.messages, request.assistant_prefix)
        # A tokenizer joins a space to the word after it: a prompt that ends with one would be continued badly.
        open_end = request.schema is None and request.assistant_prefix.endswith(" ")
        shown = text.rstrip(" ") if open_end else text
        prompt = self._prompts.encode(shown)
        room = self._network.context - len(prompt)
        if room < 1 or not prompt:
            raise ModelError(f"The prompt has {len(prompt)} tokens, the model takes 1 to {self._network.context - 1}.")
        limit, constraint = self._limit(request, room)
        return _Answer(
            index,
            prompt,
            limit,
            Draw(request.sampling, prompt),
            tuple(stop for stop in request.sampling.stop if stop) + self._prompts.stops,
            constraint,
            text[len(shown) :],
        )

    def _limit(self, request: GenerationRequest, room: int) -> tuple[int, Constraint | None]:
        wanted = request.sampling.max_tokens
        if wanted is not None and wanted < 1:
            raise ModelError(f"max_tokens is {wanted}: at least one token must be allowed.")
        if request.schema is None:
            return min(room, wanted or DEFAULT_MAX_TOKENS), None
        compiled = self._grammars.compile(request.schema, room if wanted is None else None)
        return min(room, wanted or compiled.max_tokens), Constraint(compiled)

    def _answers(self, queue: "deque[_Answer]") -> Iterator[tuple[_Answer, FinishReason]]:
        """Work through the queue; give each answer as it is finished."""
        rows = rows_for(self._network, self._reader)
        budget = self._network.free_tokens()
        active: list[_Answer] = []
        while queue or active:
            while len(active) > 1 and rows.tokens() > budget:
                rows.drop(len(active) - 1)
                queue.appendleft(active.pop())
            newcomers = self._newcomers(queue, len(active), rows, budget)
            if newcomers:
                first = len(active)
                admitted = list(rows.admit([answer.so_far for answer in newcomers]))
                active += [newcomers[row.prompt] for row in admitted]
                logits = torch.stack([row.logits for row in admitted])
            else:
                first = 0
                logits = rows.advance([answer.tokens[-1] for answer in active])
            yield from self._extend(rows, active, first, logits)

    def _newcomers(self, queue: "deque[_Answer]", active: int, rows: Rows, budget: int) -> list[_Answer]:
        """Take answers from the queue when a good part of the rows is free, as many as the budget has room for.

        Every row is given room for some tokens more than it has. One that becomes longer than there is room for puts
        the last row back into the queue, from where it is computed anew with what it has said so far.
        """
        if active > 3 * self._most_rows // 4:
            return []
        waiting = list(islice(queue, self._most_rows - active))
        offered = [answer.so_far for answer in waiting]
        room = max((min(_ROOM, answer.limit - answer.drawn) for answer in waiting), default=0)
        counts = range(1, len(offered) + 1)
        fitting = bisect_right(counts, budget, key=lambda count: rows.tokens(offered[:count], room))
        return [queue.popleft() for _ in range(fitting if active else max(fitting, min(1, len(queue))))]

    def _extend(
        self, rows: Rows, active: list[_Answer], first: int, logits: Tensor
    ) -> Iterator[tuple[_Answer, FinishReason]]:
        """Draw a token for the active rows from ``first`` on; take out those that are finished."""
        drawing = active[first:]
        self._grammars.mask(logits, [answer.constraint for answer in drawing])
        tokens = draw_tokens(logits, [answer.draw for answer in drawing])
        reasons = [self._accept(answer, token) for answer, token in zip(drawing, tokens, strict=True)]
        for row in reversed(range(first, len(active))):
            reason = reasons[row - first]
            if reason is not None:
                finished = active[row]
                rows.drop(row)
                active[row] = active[-1]
                active.pop()
                yield finished, reason

    def _accept(self, answer: _Answer, token: int) -> FinishReason | None:
        """Add a token to an answer; say why it is finished, if it is."""
        answer.drawn += 1
        complete = answer.constraint is not None and answer.constraint.accept(token)
        if token in self._ends:
            return "stop"
        answer.tokens.append(token)
        if complete or (answer.stops and _first_stop(self._text(answer), answer.stops) is not None):
            return "stop"
        return "length" if answer.drawn >= answer.limit else None

    def _text(self, answer: _Answer) -> str:
        return self._prompts.decode(answer.tokens).removeprefix(answer.lead)

    def _completion(self, answer: _Answer, reason: FinishReason) -> Completion:
        text = self._text(answer)
        usage = Usage(len(answer.prompt), answer.drawn, requests=1)
        return Completion(text[: _first_stop(text, answer.stops)], reason, usage)


def _first_stop(text: str, stops: Sequence[str]) -> int | None:
    """Where the first stop text begins."""
    return min((place for place in map(text.find, stops) if place >= 0), default=None)


def _in_order(answers: Sequence[_Answer]) -> list[_Answer]:
    """Longest first, but prompts that share a long beginning together.

    Rows of similar length waste little attention, and the longest first shows at once whether memory is enough.
    """
    groups: list[list[_Answer]] = []
    for answer in sorted(answers, key=lambda answer: answer.prompt):
        before = groups[-1][-1].prompt if groups else []
        if common_length(before, answer.prompt) >= max(_SHARED_ENOUGH, len(answer.prompt) // 2):
            groups[-1].append(answer)
        else:
            groups.append([answer])
    groups.sort(key=lambda group: -max(answer.longest for answer in group))
    return [answer for group in groups for answer in group]


def _end_tokens(network: Network, prompts: PromptFormat) -> set[int]:
    """Tokens that end an answer, by the model's generation settings and by its tokenizer."""
    stated = getattr(network.model.generation_config, "eos_token_id", None)
    ends = set(stated if isinstance(stated, list) else [stated])
    return {int(end) for end in ends | {prompts.tokenizer.eos_token_id} if end is not None}
