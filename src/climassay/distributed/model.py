"""A local model whose weights are in the workers: the contract's ``OpenWeights``, answered by many."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from climassay.distributed.jobs import (
    Done,
    GenerationJob,
    HarvestJob,
    Job,
    ModelFront,
    ScoringJob,
    Wanted,
)
from climassay.models.contract import (
    Activations,
    ActivationsCallback,
    Completion,
    CompletionCallback,
    GenerationRequest,
    Message,
    OptionRequest,
    OptionScores,
    ScoresCallback,
    Work,
)

if TYPE_CHECKING:
    from climassay.distributed.pool import WorkerPool

R = TypeVar("R", GenerationRequest, OptionRequest)
A = TypeVar("A", Completion, OptionScores, Activations)

_AT_ONCE = {"cpu": 32, "cuda": 256}
"""Most requests of a job, by device: what is lost when a worker dies over it, and what fills a GPU."""


class DistributedModel:
    """Generates, weighs options and gives hidden states through a pool of workers.

    It has the name and the fingerprint of the model it stands for and renders the same prompts, so that records and
    activations made with it are found without it, and the other way round. Each request carries its own seed, so an
    answer does not depend on the worker that gave it. Answers come, and are recorded, job by job.

    Args:
        pool: The workers.
        wanted: What they load.
        name: Of the model, as the user wrote it.
        front: What it says about itself.
    """

    def __init__(self, pool: "WorkerPool", wanted: Wanted, name: str, front: ModelFront) -> None:
        self._pool = pool
        self._wanted = wanted
        self._name = name
        self._front = front
        self._work = Work(0, 0)

    def __repr__(self) -> str:
        return f"DistributedModel({self._name!r}, workers={self._pool.workers})"

    @property
    def name(self) -> str:
        """As the user wrote it."""
        return self._name

    @property
    def fingerprint(self) -> str:
        """That of the model in the workers."""
        return self._front.fingerprint

    @property
    def window(self) -> int:
        """Most tokens of prompt and answer together."""
        return self._front.window

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return self._front.parameters

    @property
    def layers(self) -> int:
        """Number of layers."""
        return self._front.layers

    @property
    def dtype(self) -> str:
        """Of weights and computation in the workers."""
        return self._front.dtype

    @property
    def device(self) -> str:
        """Where a worker computes."""
        return self._front.device

    @property
    def token_budget(self) -> int:
        """Most tokens computed side by side in one forward pass of a worker."""
        return self._front.token_budget

    @property
    def work(self) -> Work:
        """Computed so far by all workers together for this model."""
        return self._work

    @property
    def wave(self) -> int:
        """Requests of one call that keep every worker busy; see :class:`climassay.models.contract.Spread`."""
        return 4 * self._pool.workers * self._most

    @property
    def _most(self) -> int:
        return _AT_ONCE["cuda" if self._front.device.startswith("cuda") else "cpu"]

    def render(self, messages: Sequence[Message], assistant_prefix: str = "") -> str:
        """The prompt as the model receives it.

        Raises:
            ModelError: The model's chat template does not accept these messages.
        """
        return self._front.prompts.render(messages, assistant_prefix)

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text, without those of the chat template."""
        return [len(tokens) for tokens in self._front.prompts.encode_all(texts)]

    def generate(
        self, requests: Sequence[GenerationRequest], *, on_result: CompletionCallback | None = None
    ) -> list[Completion]:
        """Answer every request, in order; see the contract.

        Raises:
            ModelError: No worker is left, or two of them have different weights.
        """
        return self._ask(requests, GenerationJob, Completion.failed, on_result)

    def option_logprobs(
        self, requests: Sequence[OptionRequest], *, on_result: ScoresCallback | None = None
    ) -> list[OptionScores]:
        """Weigh every request's options, in order; raises as :meth:`generate`."""
        return self._ask(requests, ScoringJob, OptionScores.failed, on_result)

    def harvest(
        self,
        requests: Sequence[OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: ActivationsCallback | None = None,
    ) -> list[Activations]:
        """Hidden states at the last token of every option, float32 [options, layers, width]; see the contract.

        Raises:
            ModelError: A layer does not exist, no worker is left, or two of them have different weights.
            InputError: The token budget is less than 1, or no layer is asked for.
        """

        def job(part: Sequence[OptionRequest]) -> Job:
            return HarvestJob(part, tuple(layers), token_budget)

        return self._ask(requests, job, Activations.failed, on_result)

    def close(self) -> None:
        """Let the workers give back the memory."""
        self._pool.forget(self._wanted)

    def _ask(
        self,
        requests: Sequence[R],
        job: Callable[[Sequence[R]], Job],
        failed: Callable[[str], A],
        on_result: Callable[[int, A], None] | None,
    ) -> list[A]:
        from climassay.distributed.pool import shares

        order = _by_text(requests)
        size = shares(len(order), self._pool.workers, self._most)
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        results: dict[int, A] = {}
        jobs = (job([requests[index] for index in part]) for part in parts)
        for number, done in self._pool.run(self._wanted, jobs):
            for index, answer in zip(parts[number], self._answers(done, len(parts[number]), failed), strict=True):
                results[index] = answer
                if on_result is not None:
                    on_result(index, answer)
        return [results[index] for index in range(len(requests))]

    def _answers(self, done: Done, count: int, failed: Callable[[str], A]) -> list[A]:
        done.checked(self.fingerprint)
        if done.lost is not None:
            return [failed(done.lost) for _ in range(count)]
        self._work = Work(self._work.passes + done.passes, self._work.tokens + done.tokens)
        answers: list[A] = done.result
        return answers


def _by_text(requests: Sequence[Any]) -> list[int]:
    """Indices in the order of the prompts, so that those with a common beginning are computed by the same worker."""
    return sorted(
        range(len(requests)),
        key=lambda index: (*(turn.content for turn in requests[index].messages), requests[index].assistant_prefix),
    )
