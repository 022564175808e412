"""A model and an encoder whose weights are in the workers: the contract's ``OpenWeights`` and ``StreamingEncoder``.

What goes to a worker (what is to be loaded, and a job) and what comes back are frozen dataclasses. A key of a server
never travels: models behind a server stay where the command runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from climassay.errors import ClimassayError, InputError, MissingExtraError, ModelError
from climassay.models import contract
from climassay.models.local.prompt_format import DescribedModel, ModelInfo

if TYPE_CHECKING:
    from climassay.models.local.prompt_format import ModelInfo


_ERRORS: dict[str, type[ClimassayError]] = {
    error.__name__: error for error in (InputError, ModelError, MissingExtraError)
}


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """What a worker is to have loaded: a local model, as :func:`climassay.models.load_model` takes it.

    Specs can be hashed: a worker loads equal ones once.
    """

    name: str
    """A folder or an adapter must be found under the same path on every node."""
    device: str | None = None
    dtype: str | None = None
    adapter: str | None = None
    concurrency: int | None = None
    max_output_tokens: int | None = None

    def load(self) -> Any:
        """The model."""
        from climassay.models import load_model

        return load_model(**asdict(self))

    def resolved(self) -> "ModelSpec":
        """The same with the number format that this worker's machine decides where none is named, to load both once."""
        from climassay.models.local.loading import default_device, default_dtype

        return self if self.dtype else replace(self, dtype=default_dtype(self.device or default_device()))


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """An encoder, as :func:`climassay.models.encoders.load_encoder` takes it."""

    name: str
    threads: int | None = None
    """Texts encoded at the same time by one worker."""

    def load(self) -> contract.Encoder:
        """The encoder."""
        from climassay.models.encoders import load_encoder

        return load_encoder(self.name, threads=self.threads)

    def resolved(self) -> "EncoderSpec":
        """Itself: nothing is left to decide."""
        return self


LoadSpec = ModelSpec | EncoderSpec


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What an encoder says about itself."""

    fingerprint: str
    width: int


@dataclass(frozen=True, slots=True)
class Job:
    """A call of one method of what a worker has loaded, or the question what that says about itself (``info``)."""

    method: Literal["info", "generate", "option_logprobs", "harvest", "encode"]
    items: Sequence[Any] = ()
    """Requests or texts; the result has an entry for each, in their order."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, loaded: Any) -> Any:
        """The method's result."""
        if self.method == "info":
            return loaded.info if hasattr(loaded, "info") else EncoderInfo(loaded.fingerprint, loaded.width)
        return getattr(loaded, self.method)(self.items, **self.options)


@dataclass(frozen=True, slots=True)
class JobResult:
    """What became of a job."""

    result: Any = None
    """What :meth:`Job.run` gave; None where there is nothing."""
    fingerprint: str = ""
    """Fingerprint of what the worker had loaded."""
    passes: int = 0
    """Forward passes that the job took, where what is loaded counts them."""
    tokens: int = 0
    """Tokens computed."""
    refusal: tuple[str, str] | None = None
    """Class and sentence of an error that every worker would raise: the call as a whole is at fault."""
    lost: str | None = None
    """Why the job has no result although it was tried again: its requests have failed, others may succeed."""

    @classmethod
    def refused(cls, error: ClimassayError) -> "JobResult":
        """A job that cannot be done by anybody."""
        kind = next((name for name, known in _ERRORS.items() if isinstance(error, known)), "ModelError")
        return cls(refusal=(kind, str(error)))

    def checked(self, fingerprint: str | None = None) -> "JobResult":
        """Itself, unless the call as a whole failed.

        Args:
            fingerprint: What the worker must have had loaded; None where that is not known yet.

        Raises:
            InputError, ModelError, MissingExtraError: As in the worker.
            ModelError: The worker has other weights.
        """
        if self.refusal is not None:
            kind, sentence = self.refusal
            raise _ERRORS[kind](sentence)
        if fingerprint is not None and self.lost is None and self.fingerprint != fingerprint:
            raise ModelError(
                "Two workers have different weights under the same name: install the same model on every node, or name "
                "a folder that all of them share."
            )
        return self

    def vectors(self) -> NDArray[np.float32]:
        """Vectors of encoded texts, shape [texts, width].

        Raises:
            ModelError: The job was lost; an encoder has no failures in place.
        """
        if self.lost is not None:
            raise ModelError(f"Texts could not be encoded: {self.lost}")
        return cast("NDArray[np.float32]", self.result)


class JobRunner(Protocol):
    """Whoever has jobs done in several processes: :class:`climassay.distributed.pool.WorkerPool`."""

    @property
    def workers(self) -> int:
        """Number of processes."""

    def run(self, spec: LoadSpec, jobs: Iterable[Job]) -> Iterator[tuple[int, JobResult]]:
        """Have jobs done; number and result of each, as they come."""

    def forget(self, spec: LoadSpec) -> None:
        """Let the processes give back the memory of what was loaded."""


R = TypeVar("R", contract.GenerationRequest, contract.OptionRequest)
A = TypeVar("A", contract.Completion, contract.OptionScores, contract.Activations)

_AT_ONCE = {"cpu": 32, "cuda": 256}
"""Maximum number of requests of a job, by device: what is lost when a worker dies over it, and what fills a GPU."""


class DistributedModel(DescribedModel):
    """Generates, weighs options and gives hidden states through a pool of workers.

    It has the name and the fingerprint of the model it stands for and renders the same prompts, so that records and
    activations made with it are found without it, and the other way round. Each request carries its own seed, so an
    answer does not depend on the worker that gave it. Answers come, and are recorded, job by job.
    """

    def __init__(self, pool: JobRunner, spec: LoadSpec, name: str, info: ModelInfo) -> None:
        super().__init__(name, info)
        self._pool, self._spec = pool, spec
        self.work = contract.Work(0, 0)
        """Computed so far by all workers together for this model."""
        self._max_requests = _AT_ONCE["cuda" if info.device.startswith("cuda") else "cpu"]

    def __repr__(self) -> str:
        return f"DistributedModel({self.name!r}, workers={self._pool.workers})"

    @property
    def requests_at_once(self) -> int:
        """Requests of one call that keep every worker busy; see :class:`climassay.models.contract.MultiWorkerModel`."""
        return 4 * self._pool.workers * self._max_requests

    def generate(
        self, requests: Sequence[contract.GenerationRequest], *, on_result: contract.CompletionCallback | None = None
    ) -> list[contract.Completion]:
        """Answer every request, in order; see the contract.

        Raises:
            ModelError: No worker is left, or two of them have different weights.
        """
        return self._ask("generate", requests, contract.Completion.failed, on_result)

    def option_logprobs(
        self, requests: Sequence[contract.OptionRequest], *, on_result: contract.ScoresCallback | None = None
    ) -> list[contract.OptionScores]:
        """Weigh every request's options, in order; raises as :meth:`generate`."""
        return self._ask("option_logprobs", requests, contract.OptionScores.failed, on_result)

    def harvest(
        self,
        requests: Sequence[contract.OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: contract.ActivationsCallback | None = None,
    ) -> list[contract.Activations]:
        """Hidden states at the last token of every option, float32 [options, layers, width]; see the contract.

        Raises:
            ModelError: A layer does not exist, no worker is left, or two of them have different weights.
            InputError: The token budget is less than 1, or no layer is asked for.
        """
        options = {"layers": tuple(layers), "token_budget": token_budget}
        return self._ask("harvest", requests, contract.Activations.failed, on_result, options)

    def close(self) -> None:
        """Let the workers give back the memory."""
        self._pool.forget(self._spec)

    def _ask(
        self,
        method: Literal["generate", "option_logprobs", "harvest"],
        requests: Sequence[R],
        failed: Callable[[str], A],
        on_result: Callable[[int, A], None] | None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> list[A]:
        def text_of(index: int) -> tuple[str, ...]:
            return (*(turn.content for turn in requests[index].messages), requests[index].assistant_prefix)

        # In the order of the prompts, so that those with a common beginning are computed by the same worker.
        order = sorted(range(len(requests)), key=text_of)
        size = shares(len(order), self._pool.workers, self._max_requests)
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        results: dict[int, A] = {}
        jobs = (Job(method, [requests[index] for index in part], dict(options)) for part in parts)
        for number, done in self._pool.run(self._spec, jobs):
            done.checked(self.fingerprint)
            self.work = contract.Work(self.work.passes + done.passes, self.work.tokens + done.tokens)
            answers = done.result if done.lost is None else [failed(done.lost) for _ in parts[number]]
            for index, answer in zip(parts[number], answers, strict=True):
                results[index] = answer
                if on_result is not None:
                    on_result(index, answer)
        return [results[index] for index in range(len(requests))]


MAX_TEXTS = 64
"""Texts of a job."""

Vectors = NDArray[np.float32]


@dataclass(slots=True)
class _Chunk:
    """A chunk of texts of which some parts may be encoded."""

    number: int
    vectors: Vectors
    left: int
    """Texts that have no vector yet."""


class DistributedEncoder:
    """Encodes in many workers what another encoder would encode here, to the same vectors.

    It has the name and the fingerprint of that encoder: a collection made with it is searched and added to without it.
    """

    def __init__(self, pool: JobRunner, spec: LoadSpec, name: str, info: EncoderInfo) -> None:
        self._pool, self._spec = pool, spec
        self.name, self.fingerprint, self.width = name, info.fingerprint, info.width

    def encode(
        self,
        texts: Sequence[str],
        *,
        role: contract.EncoderRole = "passage",
        on_progress: Callable[[int], None] | None = None,
    ) -> Vectors:
        """Unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`.

        Raises:
            ModelError: No worker is left, or a text could not be encoded by several workers in turn.
        """
        size = shares(len(texts), self._pool.workers, MAX_TEXTS)
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for _, result in self._encoded([texts], size, role, on_progress):
            vectors = result
        return vectors

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], *, on_progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[int, Vectors]]:
        """Vectors of chunks of passages; see :class:`~climassay.models.contract.StreamingEncoder`.

        Raises:
            ModelError: No worker is left, or a text could not be encoded by several workers in turn.
        """
        return self._encoded(chunks, MAX_TEXTS, "passage", on_progress)

    def _encoded(
        self,
        chunks: Iterable[Sequence[str]],
        size: int,
        role: contract.EncoderRole,
        on_progress: Callable[[int], None] | None,
    ) -> Iterator[tuple[int, Vectors]]:
        indices: dict[int, tuple[_Chunk, int]] = {}
        numbers = count()

        def jobs() -> Iterator[Job]:
            for number, texts in enumerate(chunks):
                chunk = _Chunk(number, np.zeros((len(texts), self.width), dtype=np.float32), len(texts))
                for start in range(0, len(texts), size):
                    indices[next(numbers)] = (chunk, start)
                    yield Job("encode", texts[start : start + size], {"role": role})

        for number, done in self._pool.run(self._spec, jobs()):
            chunk, start = indices.pop(number)
            vectors = done.checked(self.fingerprint).vectors()
            chunk.vectors[start : start + len(vectors)] = vectors
            chunk.left -= len(vectors)
            if on_progress is not None:
                on_progress(len(vectors))
            if not chunk.left:
                yield chunk.number, chunk.vectors


def shares(count: int, workers: int, max_size: int) -> int:
    """Requests of a job: a quarter of a worker's share, so that none is waited for long, and at most ``max_size``."""
    return max(1, min(max_size, -(-count // (4 * workers))))
