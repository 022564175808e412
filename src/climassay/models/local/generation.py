"""Generate many completions together: a queue of prompts, and a batch that is refilled as rows finish.

Rows are not padded on the left: each keeps its own length, writes its next token after its own last one, and is shown
only its own columns. So a row can leave and another take its place at any time, and what a row computes does not
depend on its neighbours.
"""

import hashlib
import random
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from climassay.errors import ModelError
from climassay.models.contract import (
    Completion,
    CompletionCallback,
    FinishReason,
    GenerationRequest,
    Sampling,
    TextCallback,
    Usage,
)
from climassay.models.json_answers import repair_backslashes
from climassay.models.local.loading import PromptFormat
from climassay.models.local.network import Network, Reader, columns, same_distributions
from climassay.models.local.prefix_tree import PrefixTree, RowCache, SharedRun, common_length
from climassay.models.local.schema_grammar import Constraint, Grammars

DEFAULT_MAX_TOKENS = 256
_ROWS_ON_CPU = 32
_ROWS_ON_GPU = 128
_SHARED_ENOUGH = 64
"""Tokens that neighbours must share to be kept together rather than sorted by length."""
_ROOM = 128
"""Maximum number of tokens that rows are given room for when one is admitted; they may need more."""
_WORTH_SHARING = 256
"""Tokens that a shared run must save: reading it apart costs a few small operations a layer at every step."""


class Draw:
    """How one sequence draws its tokens.

    Its random numbers depend on the seed and the prompt alone: not on what else is in the batch, and not shared with
    other prompts that were given the same seed.
    """

    def __init__(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        self.temperature, self.top_p = sampling.temperature, sampling.top_p
        tokens = hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()
        self._random = random.Random(f"{sampling.seed}:{tokens}")

    def uniform(self) -> float:
        """The sequence's next random number in [0, 1)."""
        return self._random.random()


def draw_tokens(logits: Tensor, draws: Sequence[Draw]) -> list[int]:
    """Draw a token for each row: the most probable one where its temperature is 0.

    Args:
        logits: float32 [rows, vocabulary]; forbidden tokens at minus infinity.
        draws: One for each row.
    """
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    rows = [row for row, draw in enumerate(draws) if draw.temperature > 0]
    if not rows:
        return tokens
    device, drawing = logits.device, [draws[row] for row in rows]
    temperatures = torch.tensor([[draw.temperature] for draw in drawing], device=device)
    # The cumulative distribution over tokens, from the most to the least probable, is inverted.
    ordered, index = (logits[rows] / temperatures).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    mass = ordered.double().cumsum(dim=-1)
    limits = torch.tensor([[draw.top_p] for draw in drawing], dtype=torch.float64, device=device)
    # A token is in the nucleus when those before it have less than this of the mass; the first one always is.
    inside = ((mass - ordered) < limits).sum(dim=-1, keepdim=True).clamp_(min=1)
    total = mass.gather(1, inside - 1)
    uniform = torch.tensor([[draw.uniform()] for draw in drawing], dtype=torch.float64, device=device)
    place = torch.searchsorted(mass, uniform * total, right=True).clamp_(max=inside - 1)
    for row, token in zip(rows, index.gather(1, place)[:, 0].tolist(), strict=True):
        tokens[row] = token
    return tokens


class Admitted(NamedTuple):
    """A prompt that became the last row."""

    prompt: int
    """Its index among those offered."""
    logits: Tensor
    """For the token after it, float32 [vocabulary]."""


class SharedRows:
    """Rows in one batch, for models whose layers are all attention; long beginnings that rows share are kept once.

    Rows are numbered from 0 without gaps. A shared run must save so many tokens; None keeps every row for itself.
    """

    def __init__(self, network: Network, reader: Reader, *, saving: int | None = _WORTH_SHARING) -> None:
        self._network, self._reader, self._saving = network, reader, saving
        self._cache = RowCache(network.layers)
        self._lengths: list[int] = []
        self._runs: list[SharedRun | None] = []
        """The last shared run that each row begins with."""

    def tokens(self, prompts: Sequence[Sequence[int]] = (), room: int = 1) -> int:
        """Tokens whose keys and values are held when these prompts are rows too, and each row has room for more."""
        runs = self._plan(prompts)
        new = {run for last in runs for run in _chain(last) if not run.layers}
        own = [*self._own(), *map(_own_length, map(len, prompts), runs)]
        return len(own) * self._cache.columns(max(own, default=0) + room) + sum(
            len(run.tokens) for run in (*self._cache.runs, *new)
        )

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts, what they share once, and copy each one's keys and values into a row of its own."""
        runs = self._plan(prompts)
        longest = max(*map(_own_length, map(len, prompts), runs), 0, *self._own())
        rows = len(self._lengths) + len(prompts)
        for reading in self._reader.read(prompts, [[len(prompt) - 1] for prompt in prompts]):
            for place in reading.places:
                row, last, cache = len(self._lengths), runs[place.sequence], self._reader.cache
                self._cache.reserve(cache, rows, longest, row)
                assert reading.step is not None
                segment = next(
                    segment
                    for segment in reading.step.segments
                    if place.sequence in segment.sequences and segment.start <= place.position < segment.end
                )
                held = torch.tensor(columns(reading.step, segment), dtype=torch.long, device=self._network.device)
                for run in _chain(last):
                    if not run.layers:
                        self._cache.share(run, cache, held[run.start : run.end])
                        self._cache.runs.append(run)
                    run.rows += 1
                self._cache.fill(row, cache, held[0 if last is None else last.end :])
                self._lengths.append(len(prompts[place.sequence]))
                self._runs.append(last)
                yield Admitted(place.sequence, reading.logits[place.row])

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""
        self._cache.aim(self._own(), self._runs, self._network.device)
        logits = self._network.continue_rows(tokens, self._lengths, self._cache)
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        for run in _chain(self._runs[row]):
            run.rows -= 1
            if not run.rows:
                self._cache.runs.remove(run)
        last = len(self._lengths) - 1
        if row != last:
            self._cache.move(last, row, self._own()[last])
            self._lengths[row], self._runs[row] = self._lengths[last], self._runs[last]
        self._lengths.pop()
        self._runs.pop()
        if not self._lengths:
            self._cache = RowCache(self._network.layers)

    def _own(self) -> list[int]:
        """Tokens that each row holds alone."""
        return list(map(_own_length, self._lengths, self._runs))

    def _plan(self, prompts: Sequence[Sequence[int]]) -> list[SharedRun | None]:
        """The last shared run of each prompt: runs that rows hold already, and new ones that several prompts share."""
        results = [self._held(tuple(prompt)) for prompt in prompts]
        if self._saving is None:
            return results
        groups: dict[SharedRun | None, list[int]] = {}
        for index, run in enumerate(results):
            if len(prompts[index]) > (run.end if run else 0):
                groups.setdefault(run, []).append(index)
        for base, indices in groups.items():
            start = base.end if base else 0
            new: list[SharedRun] = []
            for segment in PrefixTree([prompts[index][start:] for index in indices]).shared(self._saving):
                parent = base if segment.parent is None else new[segment.parent]
                new.append(SharedRun(segment.tokens, start + segment.start, parent))
                for sequence in segment.sequences:
                    results[indices[sequence]] = new[-1]
        return results

    def _held(self, prompt: tuple[int, ...]) -> SharedRun | None:
        """The last of the runs in use, one behind the other, that a prompt begins with."""
        best: SharedRun | None = None
        for run in self._cache.runs:  # parents come first
            if run.parent is best and prompt[run.start : run.end] == run.tokens:
                best = run
        return best


class PlainRows:
    """Rows computed one after the other, for every other kind of model; the same methods as :class:`SharedRows`.

    With transformers' own cache for the kind of model, or all from the beginning where the model takes no cache.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._rows: list[tuple[list[int], Any]] = []
        """Tokens and cache of each row."""

    def tokens(self, prompts: Sequence[Sequence[int]] = (), room: int = 1) -> int:
        """Tokens whose keys and values are held when these prompts are rows too, and each row has room for more."""
        return sum(len(tokens) + room for tokens in (*(tokens for tokens, _ in self._rows), *prompts))

    def admit(self, prompts: Sequence[Sequence[int]]) -> Iterator[Admitted]:
        """Compute prompts one by one."""
        from transformers import DynamicCache

        for index, prompt in enumerate(prompts):
            cache = DynamicCache(config=self._network.model.config) if self._network.can_continue else None
            self._rows.append(([], cache))
            yield Admitted(index, self._add(*self._rows[-1], prompt)[0])

    def advance(self, tokens: Sequence[int]) -> Tensor:
        """Add one token to every row; return the logits of the next, float32 [rows, vocabulary]."""
        return torch.cat([self._add(*row, [token]) for row, token in zip(self._rows, tokens, strict=True)])

    def drop(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        self._rows[row] = self._rows[-1]
        self._rows.pop()

    def _add(self, row: list[int], cache: Any, tokens: Sequence[int]) -> Tensor:
        row.extend(tokens)
        if cache is None:
            return self._network.whole(row, [len(row) - 1]).logits
        return self._network.continue_plainly(tokens, cache)


def rows_for(network: Network, reader: Reader) -> SharedRows | PlainRows:
    """The rows that suit a model; found out on a few tokens at first use."""
    if not reader.shares:
        return PlainRows(network)
    if network.shares_rows is None:
        network.shares_rows = _agrees(network)
    return SharedRows(network, reader, saving=_WORTH_SHARING if network.shares_rows else None)


def _agrees(network: Network) -> bool:
    """Compare rows with shared beginnings with plain computation; an architecture may do more than attend."""
    ids = [(7919 * number + 13) % network.vocabulary for number in range(24)]
    prompts = [ids[:9], [*ids[:8], *ids[12:16]], [*ids[:8], *ids[12:15]], ids[16:20]]
    rows = SharedRows(network, Reader(network), saving=1)
    try:
        order = [admitted.prompt for admitted in rows.admit(prompts)]
        logits = rows.advance(ids[20:24])
        whole = [
            network.whole([*prompts[prompt], token], [len(prompts[prompt])]).logits
            for prompt, token in zip(order, ids[20:24], strict=True)
        ]
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
        return False
    return same_distributions(logits, torch.cat(whole), network.dtype)


def _chain(run: SharedRun | None) -> list[SharedRun]:
    """A run and all that come before it, the first one first."""
    chain = []
    while run is not None:
        chain.append(run)
        run = run.parent
    return chain[::-1]


def _own_length(length: int, run: SharedRun | None) -> int:
    return length - (run.end if run else 0)


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
    """Generates with one model; by default so many rows side by side as pay on its device."""

    def __init__(self, network: Network, reader: Reader, prompts: PromptFormat, *, rows: int | None = None) -> None:
        self._network, self._reader, self._prompts = network, reader, prompts
        self._most_rows = rows or (_ROWS_ON_CPU if network.device.type == "cpu" else _ROWS_ON_GPU)
        stated = getattr(network.model.generation_config, "eos_token_id", None)
        ends = {*(stated if isinstance(stated, list) else [stated]), prompts.tokenizer.eos_token_id}
        self._ends = frozenset(int(end) for end in ends if end is not None)

    @cached_property
    def _grammars(self) -> Grammars:
        return Grammars(self._prompts.tokenizer, self._network.vocabulary, sorted(self._ends))

    def run(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_result: CompletionCallback | None = None,
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        """Answer every request, in order; one that cannot be answered gives a failed completion.

        Args:
            requests: Any number.
            on_result: Called with (index, completion) as soon as each is known.
            on_text: Called with (index, text so far) after every token but the last.
        """
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
        for answer, reason in self._answers(deque(_in_order(answers)), on_text):
            text = self._text(answer)
            usage = Usage(len(answer.prompt), answer.drawn, requests=1)
            text = text[: _first_stop(text, answer.stops)]
            if requests[answer.index].schema is not None:
                text = repair_backslashes(text)
            keep(answer.index, Completion(text, reason, usage))
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
            raise ModelError(
                f"The prompt has {len(prompt)} tokens, the model accepts 1 to {self._network.context - 1}."
            )
        wanted = request.sampling.max_tokens
        if wanted is not None and wanted < 1:
            raise ModelError(f"max_tokens is {wanted}: at least one token must be allowed.")
        constraint = None
        limit = wanted or DEFAULT_MAX_TOKENS
        if request.schema is not None:
            compiled = self._grammars.compile(request.schema, room if wanted is None else None)
            limit, constraint = wanted or compiled.max_tokens, Constraint(compiled)
        return _Answer(
            index,
            prompt,
            min(room, limit),
            Draw(request.sampling, prompt),
            tuple(stop for stop in request.sampling.stop if stop) + self._prompts.stops,
            constraint,
            text[len(shown) :],
        )

    def _answers(self, queue: "deque[_Answer]", on_text: TextCallback | None) -> Iterator[tuple[_Answer, FinishReason]]:
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
            if on_text is not None:
                for answer in active[first:]:
                    # A token may end within a character, which the next one completes.
                    on_text(answer.index, self._text(answer).rstrip("\ufffd"))

    def _newcomers(
        self, queue: "deque[_Answer]", active: int, rows: SharedRows | PlainRows, budget: int
    ) -> list[_Answer]:
        """Take answers from the queue when a good part of the rows is free, as many as the budget has room for.

        Every row gets room for some tokens more than it has. One that outgrows it puts the last row back into the
        queue, from where it is computed anew with what it has said so far.
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
        self, rows: SharedRows | PlainRows, active: list[_Answer], first: int, logits: Tensor
    ) -> Iterator[tuple[_Answer, FinishReason]]:
        """Draw a token for the active rows from ``first`` on; take out those that are finished."""
        drawing = active[first:]
        constraints = [answer.constraint for answer in drawing]
        if any(constraint is not None for constraint in constraints):
            self._grammars.mask(logits, constraints)
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
