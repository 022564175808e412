"""Generate many completions together: a queue of prompts, and a batch that is refilled as rows finish.

Rows are not padded on the left: each has its own length, writes its next token after its last one, and attends only to
its own columns. A row can therefore be replaced at any time, and its result does not depend on other rows.
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
from climassay.models.local.network import Network
from climassay.models.local.prefix_tree import PrefixTree, RowCache, SharedPrefix, common_length
from climassay.models.local.prompt_format import PromptFormat
from climassay.models.local.reader import SequenceReader, cache_columns, same_distributions
from climassay.models.local.schema_grammar import Constraint, Grammars
from climassay.questions.thoughts import separate_thoughts

DEFAULT_MAX_TOKENS = 256
_ROWS_ON_CPU = 32
_ROWS_ON_GPU = 128
_MIN_SHARED_PREFIX = 64
"""Prompts are scheduled together, rather than by length, if their common prefix has at least this number of tokens."""
_MAX_RESERVED = 128
"""Maximum number of answer tokens for which memory is reserved when a prompt is added."""
_MIN_SAVING = 256
"""Minimum number of tokens that storing a common prefix once must save, since reading it costs additional operations in
each layer and step."""


class TokenSampler:
    """Sampling parameters and random numbers of one sequence.

    Random numbers depend on the seed and the prompt only, not on other sequences of the batch; different prompts with
    the same seed get different numbers.
    """

    def __init__(self, sampling: Sampling, prompt: Sequence[int]) -> None:
        self.temperature, self.top_p = sampling.temperature, sampling.top_p
        tokens = hashlib.sha256(",".join(map(str, prompt)).encode()).hexdigest()
        self._random = random.Random(f"{sampling.seed}:{tokens}")

    def uniform(self) -> float:
        """Return the next random number in [0, 1)."""
        return self._random.random()


def draw_tokens(logits: Tensor, samplers: Sequence[TokenSampler]) -> list[int]:
    """Draw a token for each row; the most probable one if its temperature is 0.

    Args:
        logits: float32 [rows, vocabulary]; forbidden tokens at minus infinity.
        samplers: Sampler of each row.
    """
    tokens: list[int] = logits.argmax(dim=-1).tolist()
    rows = [row for row, sampler in enumerate(samplers) if sampler.temperature > 0]
    if not rows:
        return tokens
    device, random_samplers = logits.device, [samplers[row] for row in rows]
    temperatures = torch.tensor([[sampler.temperature] for sampler in random_samplers], device=device)
    # The cumulative distribution over tokens, from the most to the least probable, is inverted.
    sorted_probabilities, sorted_tokens = (
        (logits[rows] / temperatures).softmax(dim=-1).sort(dim=-1, descending=True, stable=True)
    )
    cumulative = sorted_probabilities.double().cumsum(dim=-1)
    top_p = torch.tensor([[sampler.top_p] for sampler in random_samplers], dtype=torch.float64, device=device)
    # A token is in the nucleus when those before it have less than this of the mass; the first one always is.
    nucleus_size = ((cumulative - sorted_probabilities) < top_p).sum(dim=-1, keepdim=True).clamp_(min=1)
    total = cumulative.gather(1, nucleus_size - 1)
    draws = torch.tensor([[sampler.uniform()] for sampler in random_samplers], dtype=torch.float64, device=device)
    positions = torch.searchsorted(cumulative, draws * total, right=True).clamp_(max=nucleus_size - 1)
    for row, token in zip(rows, sorted_tokens.gather(1, positions)[:, 0].tolist(), strict=True):
        tokens[row] = token
    return tokens


class AddedRow(NamedTuple):
    """Prompt that was added to the batch as its last row."""

    prompt: int
    """Index of the prompt among those passed to ``add_rows``."""
    logits: Tensor
    """Logits of the next token, float32 [vocabulary]."""


class SharedRows:
    """Batch of sequences (rows) that stores long common prefixes once; for models with attention layers only.

    Rows are numbered from 0 without gaps. A prefix is shared if this saves at least ``min_saving`` tokens; if
    ``min_saving`` is None, no prefix is shared.
    """

    def __init__(self, network: Network, reader: SequenceReader, *, min_saving: int | None = _MIN_SAVING) -> None:
        self._network, self._reader, self._min_saving = network, reader, min_saving
        self._cache = RowCache(network.layers)
        self._lengths: list[int] = []
        self._last_prefixes: list[SharedPrefix | None] = []
        """Last shared segment of each row; None if a row shares none."""

    def tokens(self, prompts: Sequence[Sequence[int]] = (), n_new_tokens: int = 1) -> int:
        """Return the number of tokens stored after adding ``prompts`` and extending each row by ``n_new_tokens``."""
        last_prefixes = self._assign_shared_prefixes(prompts)
        new_prefixes = {
            prefix for last_prefix in last_prefixes for prefix in _list_prefixes(last_prefix) if not prefix.layers
        }
        unshared_lengths = [*self._unshared_lengths(), *map(_unshared_length, map(len, prompts), last_prefixes)]
        return len(unshared_lengths) * self._cache.columns(max(unshared_lengths, default=0) + n_new_tokens) + sum(
            len(prefix.tokens) for prefix in (*self._cache.shared_prefixes, *new_prefixes)
        )

    def add_rows(self, prompts: Sequence[Sequence[int]]) -> Iterator[AddedRow]:
        """Add a row for each prompt, computing shared prefixes once; yield each prompt when its row is filled."""
        last_prefixes = self._assign_shared_prefixes(prompts)
        max_length = max(*map(_unshared_length, map(len, prompts), last_prefixes), 0, *self._unshared_lengths())
        rows = len(self._lengths) + len(prompts)
        for reading in self._reader.read(prompts, [[len(prompt) - 1] for prompt in prompts]):
            for token_position in reading.positions:
                row, last_prefix, cache = len(self._lengths), last_prefixes[token_position.sequence], self._reader.cache
                self._cache.reserve(cache, rows, max_length, row)
                assert reading.step is not None
                segment = next(
                    segment
                    for segment in reading.step.segments
                    if token_position.sequence in segment.sequences
                    and segment.start <= token_position.position < segment.end
                )
                columns = torch.tensor(
                    cache_columns(reading.step, segment), dtype=torch.long, device=self._network.device
                )
                for prefix in _list_prefixes(last_prefix):
                    if not prefix.layers:
                        self._cache.share(prefix, cache, columns[prefix.start : prefix.end])
                        self._cache.shared_prefixes.append(prefix)
                    prefix.rows += 1
                self._cache.fill(row, cache, columns[0 if last_prefix is None else last_prefix.end :])
                self._lengths.append(len(prompts[token_position.sequence]))
                self._last_prefixes.append(last_prefix)
                yield AddedRow(token_position.sequence, reading.logits[token_position.row])

    def append_tokens(self, tokens: Sequence[int]) -> Tensor:
        """Append one token to every row; return the logits of the next token, float32 [rows, vocabulary]."""
        self._cache.prepare_step(self._unshared_lengths(), self._last_prefixes, self._network.device)
        logits = self._network.continue_rows(tokens, self._lengths, self._cache)
        self._lengths = [length + 1 for length in self._lengths]
        return logits

    def remove_row(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        for prefix in _list_prefixes(self._last_prefixes[row]):
            prefix.rows -= 1
            if not prefix.rows:
                self._cache.shared_prefixes.remove(prefix)
        last_index = len(self._lengths) - 1
        if row != last_index:
            self._cache.move(last_index, row, self._unshared_lengths()[last_index])
            self._lengths[row], self._last_prefixes[row] = self._lengths[last_index], self._last_prefixes[last_index]
        self._lengths.pop()
        self._last_prefixes.pop()
        if not self._lengths:
            self._cache = RowCache(self._network.layers)

    def _unshared_lengths(self) -> list[int]:
        """Return the number of tokens of each row that are not in shared prefixes."""
        return list(map(_unshared_length, self._lengths, self._last_prefixes))

    def _assign_shared_prefixes(self, prompts: Sequence[Sequence[int]]) -> list[SharedPrefix | None]:
        """Return the last shared prefix of each prompt, stored or to be created; None if the prompt shares none."""
        results = [self._find_stored_prefix(tuple(prompt)) for prompt in prompts]
        if self._min_saving is None:
            return results
        groups: dict[SharedPrefix | None, list[int]] = {}
        for index, prefix in enumerate(results):
            if len(prompts[index]) > (prefix.end if prefix else 0):
                groups.setdefault(prefix, []).append(index)
        for parent_prefix, indices in groups.items():
            start = parent_prefix.end if parent_prefix else 0
            new_prefixes: list[SharedPrefix] = []
            for segment in PrefixTree([prompts[index][start:] for index in indices]).shared_segments(self._min_saving):
                parent = parent_prefix if segment.parent is None else new_prefixes[segment.parent]
                new_prefixes.append(SharedPrefix(segment.tokens, start + segment.start, parent))
                for sequence in segment.sequences:
                    results[indices[sequence]] = new_prefixes[-1]
        return results

    def _find_stored_prefix(self, prompt: tuple[int, ...]) -> SharedPrefix | None:
        """Return the last stored prefix in the chain of prefixes with which a prompt begins; None if there is none."""
        last_prefix: SharedPrefix | None = None
        for prefix in self._cache.shared_prefixes:  # parents come first
            if prefix.parent is last_prefix and prompt[prefix.start : prefix.end] == prefix.tokens:
                last_prefix = prefix
        return last_prefix


class PlainRows:
    """Batch that computes each row separately, for models that cannot share prefixes.

    The methods are those of :class:`SharedRows`.

    It uses transformers' cache for the model, or recomputes all tokens if the model accepts no cache.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._rows: list[tuple[list[int], Any]] = []
        """Tokens and cache of each row."""

    def tokens(self, prompts: Sequence[Sequence[int]] = (), n_new_tokens: int = 1) -> int:
        """Return the number of tokens stored after adding ``prompts`` and extending each row by ``n_new_tokens``."""
        return sum(len(tokens) + n_new_tokens for tokens in (*(tokens for tokens, _ in self._rows), *prompts))

    def add_rows(self, prompts: Sequence[Sequence[int]]) -> Iterator[AddedRow]:
        """Add a row for each prompt; yield each prompt when its row is computed."""
        from transformers import DynamicCache

        for index, prompt in enumerate(prompts):
            cache = DynamicCache(config=self._network.model.config) if self._network.can_continue else None
            self._rows.append(([], cache))
            yield AddedRow(index, self._append_tokens(*self._rows[-1], prompt)[0])

    def append_tokens(self, tokens: Sequence[int]) -> Tensor:
        """Append one token to every row; return the logits of the next token, float32 [rows, vocabulary]."""
        return torch.cat([self._append_tokens(*row, [token]) for row, token in zip(self._rows, tokens, strict=True)])

    def remove_row(self, row: int) -> None:
        """Remove a row; the last row takes its number."""
        self._rows[row] = self._rows[-1]
        self._rows.pop()

    def _append_tokens(self, row: list[int], cache: Any, tokens: Sequence[int]) -> Tensor:
        row.extend(tokens)
        if cache is None:
            return self._network.compute_sequence(row, [len(row) - 1]).logits
        return self._network.continue_sequence(tokens, cache)


def create_rows(network: Network, reader: SequenceReader) -> SharedRows | PlainRows:
    """Return an empty batch of the class that a model supports. Support is tested on first use."""
    if not reader.shares_prefixes:
        return PlainRows(network)
    if network.shares_rows is None:
        network.shares_rows = _is_sharing_exact(network)
    return SharedRows(network, reader, min_saving=_MIN_SAVING if network.shares_rows else None)


def _is_sharing_exact(network: Network) -> bool:
    """Return whether shared prefixes and plain computation give the same results for a few short prompts."""
    tokens = [(7919 * number + 13) % network.vocabulary for number in range(24)]
    prompts = [tokens[:9], [*tokens[:8], *tokens[12:16]], [*tokens[:8], *tokens[12:15]], tokens[16:20]]
    rows = SharedRows(network, SequenceReader(network), min_saving=1)
    try:
        prompt_indices = [new_row.prompt for new_row in rows.add_rows(prompts)]
        logits = rows.append_tokens(tokens[20:24])
        plain_logits = [
            network.compute_sequence([*prompts[prompt], token], [len(prompts[prompt])]).logits
            for prompt, token in zip(prompt_indices, tokens[20:24], strict=True)
        ]
    except (TypeError, ValueError, RuntimeError, AttributeError, IndexError, KeyError):
        return False
    return same_distributions(logits, torch.cat(plain_logits), network.dtype)


def _list_prefixes(prefix: SharedPrefix | None) -> list[SharedPrefix]:
    """Return a shared prefix and all prefixes before it in its rows, in the order of the tokens."""
    chain = []
    while prefix is not None:
        chain.append(prefix)
        prefix = prefix.parent
    return chain[::-1]


def _unshared_length(length: int, prefix: SharedPrefix | None) -> int:
    return length - (prefix.end if prefix else 0)


@dataclass(slots=True)
class _Answer:
    """Answer that is being generated."""

    index: int
    prompt: list[int]
    limit: int
    """Maximum number of tokens of the answer."""
    sampler: TokenSampler
    stops: tuple[str, ...]
    constraint: Constraint | None
    removed_spaces: str
    """Spaces removed from the end of the prompt, with which the generated text therefore begins."""
    tokens: list[int] = field(default_factory=list)
    n_drawn: int = 0
    """Number of tokens drawn, including the end token."""

    @property
    def row_tokens(self) -> list[int]:
        """Tokens of the prompt and of the answer so far."""
        return self.prompt + self.tokens

    @property
    def max_row_length(self) -> int:
        """Maximum number of tokens of prompt and answer."""
        return len(self.prompt) + self.limit


class Generation:
    """Generator of one model's answers; the number of answers generated together depends on the device by default."""

    def __init__(
        self, network: Network, reader: SequenceReader, prompts: PromptFormat, *, rows: int | None = None
    ) -> None:
        self._network, self._reader, self._prompts = network, reader, prompts
        self._max_rows = rows or (_ROWS_ON_CPU if network.device.type == "cpu" else _ROWS_ON_GPU)
        end_ids = getattr(network.model.generation_config, "eos_token_id", None)
        end_tokens = {*(end_ids if isinstance(end_ids, list) else [end_ids]), prompts.tokenizer.eos_token_id}
        self._end_tokens = frozenset(int(token) for token in end_tokens if token is not None)

    @cached_property
    def _grammars(self) -> Grammars:
        return Grammars(self._prompts.tokenizer, self._network.vocabulary, sorted(self._end_tokens))

    def run(
        self,
        requests: Sequence[GenerationRequest],
        *,
        on_result: CompletionCallback | None = None,
        on_text: TextCallback | None = None,
    ) -> list[Completion]:
        """Return a completion for each request, in order; a completion with an error if a request cannot be answered.

        Args:
            requests: Requests to answer.
            on_result: Called with (index, completion) as each answer is finished.
            on_text: Called with (index, text so far) after every token but the last.
        """
        results: dict[int, Completion] = {}

        def store(index: int, completion: Completion) -> None:
            results[index] = completion
            if on_result is not None:
                on_result(index, completion)

        answers = []
        for index, request in enumerate(requests):
            try:
                answers.append(self._prepare_answer(index, request))
            except ModelError as error:
                store(index, Completion.failed(str(error)))
        for answer, reason in self._generate_answers(deque(_schedule_order(answers)), on_text):
            text = self._decode_answer(answer)
            usage = Usage(len(answer.prompt), answer.n_drawn, requests=1)
            text = text[: _find_stop(text, answer.stops)]
            reasoning = ""
            if requests[answer.index].schema is not None:
                text = repair_backslashes(text)
            else:
                text, reasoning = separate_thoughts(text)
            store(answer.index, Completion(text, reason, usage, reasoning=reasoning))
        return [results[index] for index in range(len(requests))]

    def _prepare_answer(self, index: int, request: GenerationRequest) -> _Answer:
        text = self._prompts.render(request.messages, request.assistant_prefix)
        # A tokenizer joins a space to the next word, so a prompt that ends with a space would be continued badly.
        ends_with_space = request.schema is None and request.assistant_prefix.endswith(" ")
        prompt_text = text.rstrip(" ") if ends_with_space else text
        prompt = self._prompts.encode(prompt_text)
        max_new_tokens = self._network.context - len(prompt)
        if max_new_tokens < 1 or not prompt:
            raise ModelError(
                f"The prompt has {len(prompt)} tokens, the model accepts 1 to {self._network.context - 1}."
            )
        max_tokens = request.sampling.max_tokens
        if max_tokens is not None and max_tokens < 1:
            raise ModelError(f"max_tokens is {max_tokens}: at least one token must be allowed.")
        constraint = None
        answer_limit = max_tokens or DEFAULT_MAX_TOKENS
        if request.schema is not None:
            compiled_schema = self._grammars.compile(request.schema, max_new_tokens if max_tokens is None else None)
            answer_limit, constraint = max_tokens or compiled_schema.max_tokens, Constraint(compiled_schema)
        return _Answer(
            index,
            prompt,
            min(max_new_tokens, answer_limit),
            TokenSampler(request.sampling, prompt),
            tuple(stop for stop in request.sampling.stop if stop) + self._prompts.stops,
            constraint,
            text[len(prompt_text) :],
        )

    def _generate_answers(
        self, queue: "deque[_Answer]", on_text: TextCallback | None
    ) -> Iterator[tuple[_Answer, FinishReason]]:
        rows = create_rows(self._network, self._reader)
        budget = self._network.free_tokens()
        active_answers: list[_Answer] = []
        while queue or active_answers:
            while len(active_answers) > 1 and rows.tokens() > budget:
                rows.remove_row(len(active_answers) - 1)
                queue.appendleft(active_answers.pop())
            new_answers = self._take_from_queue(queue, len(active_answers), rows, budget)
            if new_answers:
                n_before = len(active_answers)
                new_rows = list(rows.add_rows([answer.row_tokens for answer in new_answers]))
                active_answers += [new_answers[row.prompt] for row in new_rows]
                logits = torch.stack([row.logits for row in new_rows])
            else:
                n_before = 0
                logits = rows.append_tokens([answer.tokens[-1] for answer in active_answers])
            yield from self._draw_next_tokens(rows, active_answers, n_before, logits)
            if on_text is not None:
                for answer in active_answers[n_before:]:
                    # A token may end within a character, which the next one completes.
                    on_text(answer.index, self._decode_answer(answer).rstrip("\ufffd"))

    def _take_from_queue(
        self, queue: "deque[_Answer]", n_active: int, rows: SharedRows | PlainRows, budget: int
    ) -> list[_Answer]:
        """Remove the next answers from the queue, as many as fit into a budget of tokens.

        No answer is taken while less than a quarter of the rows is free. Some tokens are reserved for each row. If a
        row needs more, the last row returns to the queue; later, its prompt and its unfinished answer are computed
        again.
        """
        if n_active > 3 * self._max_rows // 4:
            return []
        candidates = list(islice(queue, self._max_rows - n_active))
        prompts = [answer.row_tokens for answer in candidates]
        n_reserved = max((min(_MAX_RESERVED, answer.limit - answer.n_drawn) for answer in candidates), default=0)
        counts = range(1, len(prompts) + 1)
        n_answers = bisect_right(counts, budget, key=lambda count: rows.tokens(prompts[:count], n_reserved))
        return [queue.popleft() for _ in range(n_answers if n_active else max(n_answers, min(1, len(queue))))]

    def _draw_next_tokens(
        self, rows: SharedRows | PlainRows, active_answers: list[_Answer], first_row: int, logits: Tensor
    ) -> Iterator[tuple[_Answer, FinishReason]]:
        """Draw a token for each row from ``first_row`` on; remove and yield the answers that are then complete."""
        extended_answers = active_answers[first_row:]
        constraints = [answer.constraint for answer in extended_answers]
        if any(constraint is not None for constraint in constraints):
            self._grammars.mask(logits, constraints)
        tokens = draw_tokens(logits, [answer.sampler for answer in extended_answers])
        reasons = [self._append_token(answer, token) for answer, token in zip(extended_answers, tokens, strict=True)]
        for row in reversed(range(first_row, len(active_answers))):
            reason = reasons[row - first_row]
            if reason is not None:
                finished_answer = active_answers[row]
                rows.remove_row(row)
                active_answers[row] = active_answers[-1]
                active_answers.pop()
                yield finished_answer, reason

    def _append_token(self, answer: _Answer, token: int) -> FinishReason | None:
        """Append a token to an answer; return the finish reason, or None if the answer is not complete."""
        answer.n_drawn += 1
        is_complete = answer.constraint is not None and answer.constraint.accept(token)
        if token in self._end_tokens:
            return "stop"
        answer.tokens.append(token)
        if is_complete or (answer.stops and _find_stop(self._decode_answer(answer), answer.stops) is not None):
            return "stop"
        return "length" if answer.n_drawn >= answer.limit else None

    def _decode_answer(self, answer: _Answer) -> str:
        return self._prompts.decode(answer.tokens).removeprefix(answer.removed_spaces)


def _find_stop(text: str, stops: Sequence[str]) -> int | None:
    return min((index for index in map(text.find, stops) if index >= 0), default=None)


def _schedule_order(answers: Sequence[_Answer]) -> list[_Answer]:
    """Order answers by maximum length, descending, but keep prompts with a long common prefix together.

    Rows of similar length waste little attention. Starting with the longest rows shows at once whether memory suffices.
    """
    groups: list[list[_Answer]] = []
    for answer in sorted(answers, key=lambda answer: answer.prompt):
        last_prompt = groups[-1][-1].prompt if groups else []
        if common_length(last_prompt, answer.prompt) >= max(_MIN_SHARED_PREFIX, len(answer.prompt) // 2):
            groups[-1].append(answer)
        else:
            groups.append([answer])
    groups.sort(key=lambda group: -max(answer.max_row_length for answer in group))
    return [answer for group in groups for answer in group]
