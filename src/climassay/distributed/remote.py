"""Model and encoder whose weights are in the workers: the contract's ``OpenWeights`` and ``StreamingEncoder``.

A worker receives the spec of a model and a job, and returns the job's result; all three are frozen dataclasses. Keys of
servers are never sent: models behind a server stay in the process of the command.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import count
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from climassay.errors import ClimassayError, InputError, MissingExtraError, ModelError
from climassay.models import contract
from climassay.models.local.prompt_format import DescribedModel, ModelInfo

_ERRORS: dict[str, type[ClimassayError]] = {
    error.__name__: error for error in (InputError, ModelError, MissingExtraError)
}


@dataclass(frozen=True, slots=True)
class ModelArguments:
    """Name and options of a local model.

    Instances are hashable, and a worker loads equal ones only once.
    """

    name: str
    """Name of the model; a folder must have the same path on every node."""
    device: str | None = None
    dtype: str | None = None
    adapter: str | None = None
    concurrency: int | None = None
    max_output_tokens: int | None = None

    def load(self) -> Any:
        """Load the model."""
        from climassay.models import ModelOptions, load_model

        options = asdict(self)
        return load_model(options.pop("name"), ModelOptions(**options))

    def resolved(self) -> "ModelArguments":
        """Return the arguments, with this machine's default number format if none is set.

        A worker therefore loads a model only once, whether or not its number format is stated.
        """
        from climassay.models.local.loading import default_device, default_dtype

        return self if self.dtype else replace(self, dtype=default_dtype(self.device or default_device()))


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """Arguments of :func:`climassay.models.encoders.load_encoder`."""

    name: str
    threads: int | None = None
    """Number of texts that each worker encodes concurrently."""

    def load(self) -> contract.Encoder:
        """Load the encoder."""
        from climassay.models.encoders import load_encoder

        return load_encoder(self.name, threads=self.threads)

    def resolved(self) -> "EncoderSpec":
        """Return the arguments unchanged, since they have no defaults that depend on the machine."""
        return self


LoadSpec = ModelArguments | EncoderSpec


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """Fingerprint and vector width of an encoder."""

    fingerprint: str
    width: int


@dataclass(frozen=True, slots=True)
class RemoteCall:
    """Call of a method of a loaded model or encoder.

    The method name ``info`` requests a description of the model or encoder.
    """

    method: Literal["info", "generate", "option_logprobs", "harvest", "encode"]
    items: Sequence[Any] = ()
    """Requests or texts; the result has one entry for each, in the same order."""
    options: Mapping[str, Any] = field(default_factory=dict)

    def run(self, loaded: Any) -> Any:
        """Call the method on a loaded model or encoder and return its result."""
        if self.method == "info":
            return loaded.info if hasattr(loaded, "info") else EncoderInfo(loaded.fingerprint, loaded.width)
        return getattr(loaded, self.method)(self.items, **self.options)


@dataclass(frozen=True, slots=True)
class JobResult:
    """Result or error of a job."""

    result: Any = None
    """Return value of :meth:`RemoteCall.run`; None if the job has no result."""
    fingerprint: str = ""
    """Fingerprint of the model or encoder in the worker."""
    passes: int = 0
    """Number of forward passes of the job; 0 if they are not counted."""
    tokens: int = 0
    """Number of tokens computed; 0 if they are not counted."""
    error: tuple[str, str] | None = None
    """Class name and message of an error that every worker would raise; otherwise None."""
    failure_reason: str | None = None
    """Reason why all attempts at the job failed; other jobs may succeed. None if an attempt succeeded."""

    @classmethod
    def from_error(cls, error: ClimassayError) -> "JobResult":
        """Return the result of a job that raised an error."""
        error_name = next(
            (name for name, error_class in _ERRORS.items() if isinstance(error, error_class)), "ModelError"
        )
        return cls(error=(error_name, str(error)))

    def raise_for_error(self, fingerprint: str | None = None) -> "JobResult":
        """Return this result, or raise the error that the worker returned.

        Args:
            fingerprint: Required fingerprint of the worker's model; None if it is not known yet.

        Raises:
            InputError, ModelError, MissingExtraError: The worker raised this error.
            ModelError: The fingerprint differs.
        """
        if self.error is not None:
            error_name, sentence = self.error
            raise _ERRORS[error_name](sentence)
        if fingerprint is not None and self.failure_reason is None and self.fingerprint != fingerprint:
            raise ModelError(
                "Two workers have different weights under the same name: install the same model on every node, or name "
                "a folder that all of them share."
            )
        return self

    def vectors(self) -> NDArray[np.float32]:
        """Return the vectors of encoded texts, shape [texts, width].

        Raises:
            ModelError: All attempts at the job failed.
        """
        if self.failure_reason is not None:
            raise ModelError(f"Texts could not be encoded: {self.failure_reason}")
        return cast("NDArray[np.float32]", self.result)


class JobRunner(Protocol):
    """Interface that runs jobs in several processes; see :class:`climassay.distributed.pool.WorkerPool`."""

    @property
    def workers(self) -> int:
        """Number of processes."""

    def run(self, spec: LoadSpec, jobs: Iterable[RemoteCall]) -> Iterator[tuple[int, JobResult]]:
        """Run jobs and yield the index and result of each, in order of completion."""

    def forget(self, spec: LoadSpec) -> None:
        """Unload a model or encoder in all processes."""


R = TypeVar("R", contract.GenerationRequest, contract.OptionRequest)
A = TypeVar("A", contract.Completion, contract.OptionScores, contract.Activations)

_MAX_REQUESTS_PER_JOB = {"cpu": 32, "cuda": 256}
"""Maximum number of requests per job, by device. A job must use a GPU fully, but be small enough to repeat if a worker
is lost."""


class DistributedModel(DescribedModel):
    """Model that generates, scores options and computes hidden states in a pool of workers.

    Name, fingerprint and prompts are those of the local model, so that both share recorded answers and activations.
    Each request has its own seed, so that an answer does not depend on the worker. Answers arrive, and are recorded,
    job by job.
    """

    def __init__(self, pool: JobRunner, spec: LoadSpec, name: str, info: ModelInfo) -> None:
        super().__init__(name, info)
        self._pool, self._spec = pool, spec
        self.work = contract.Work(0, 0)
        """Forward passes and tokens so far, over all workers."""
        self._max_requests = _MAX_REQUESTS_PER_JOB["cuda" if info.device.startswith("cuda") else "cpu"]

    def __repr__(self) -> str:
        return f"DistributedModel({self.name!r}, workers={self._pool.workers})"

    @property
    def requests_at_once(self) -> int:
        """Number of requests per call that keeps all workers busy."""
        return 4 * self._pool.workers * self._max_requests

    def generate(
        self, requests: Sequence[contract.GenerationRequest], *, on_result: contract.CompletionCallback | None = None
    ) -> list[contract.Completion]:
        """Return a completion for each request, in order; see :class:`climassay.models.contract.Generator`.

        Raises:
            ModelError: No worker is left, or two workers have different weights.
        """
        return self._run_jobs("generate", requests, contract.Completion.failed, on_result)

    def option_logprobs(
        self, requests: Sequence[contract.OptionRequest], *, on_result: contract.ScoresCallback | None = None
    ) -> list[contract.OptionScores]:
        """Return the scores of each request's options, in order; raise the same errors as :meth:`generate`."""
        return self._run_jobs("option_logprobs", requests, contract.OptionScores.failed, on_result)

    def harvest(
        self,
        requests: Sequence[contract.OptionRequest],
        *,
        layers: Sequence[int] = (-1,),
        token_budget: int | None = None,
        on_result: contract.ActivationsCallback | None = None,
    ) -> list[contract.Activations]:
        """Return the hidden states at the last token of each option, float32 [options, layers, width].

        Raises:
            ModelError: A layer does not exist, no worker is left, or two workers have different weights.
            InputError: The token budget is less than 1, or ``layers`` is empty.
        """
        options = {"layers": tuple(layers), "token_budget": token_budget}
        return self._run_jobs("harvest", requests, contract.Activations.failed, on_result, options)

    def close(self) -> None:
        """Unload the model in all workers."""
        self._pool.forget(self._spec)

    def _run_jobs(
        self,
        method: Literal["generate", "option_logprobs", "harvest"],
        requests: Sequence[R],
        create_failure: Callable[[str], A],
        on_result: Callable[[int, A], None] | None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> list[A]:
        def prompt_text(index: int) -> tuple[str, ...]:
            return (*(turn.content for turn in requests[index].messages), requests[index].assistant_prefix)

        # Sorted by prompt, so that the same worker computes requests with a common prefix.
        order = sorted(range(len(requests)), key=prompt_text)
        size = job_size(len(order), self._pool.workers, self._max_requests)
        parts = [order[start : start + size] for start in range(0, len(order), size)]
        results: dict[int, A] = {}
        jobs = (RemoteCall(method, [requests[index] for index in part], dict(options)) for part in parts)
        for number, job_result in self._pool.run(self._spec, jobs):
            job_result.raise_for_error(self.fingerprint)
            self.work = contract.Work(self.work.passes + job_result.passes, self.work.tokens + job_result.tokens)
            answers = (
                job_result.result
                if job_result.failure_reason is None
                else [create_failure(job_result.failure_reason) for _ in parts[number]]
            )
            for index, answer in zip(parts[number], answers, strict=True):
                results[index] = answer
                if on_result is not None:
                    on_result(index, answer)
        return [results[index] for index in range(len(requests))]


MAX_TEXTS_PER_JOB = 64
"""Maximum number of texts per job."""

Vectors = NDArray[np.float32]


@dataclass(slots=True)
class _Chunk:
    """Chunk of texts that is being encoded."""

    index: int
    vectors: Vectors
    n_missing: int
    """Number of texts of the chunk that have no vector yet."""


class DistributedEncoder:
    """Encoder that computes the vectors of a local encoder in a pool of workers.

    Name and fingerprint are those of the local encoder, so that collections made with one of them can be used with the
    other.
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
        """Encode texts to unit vectors, shape [texts, width]; see :class:`~climassay.models.contract.Encoder`.

        Raises:
            ModelError: No worker is left, or several workers failed to encode a text.
        """
        size = job_size(len(texts), self._pool.workers, MAX_TEXTS_PER_JOB)
        vectors = np.zeros((len(texts), self.width), dtype=np.float32)
        for _, result in self._encode_chunks([texts], size, role, on_progress):
            vectors = result
        return vectors

    def encode_stream(
        self, chunks: Iterable[Sequence[str]], *, on_progress: Callable[[int], None] | None = None
    ) -> Iterator[tuple[int, Vectors]]:
        """Yield the index and the vectors of each chunk of passages when they are finished.

        See :class:`~climassay.models.contract.StreamingEncoder`.

        Raises:
            ModelError: No worker is left, or several workers failed to encode a text.
        """
        return self._encode_chunks(chunks, MAX_TEXTS_PER_JOB, "passage", on_progress)

    def _encode_chunks(
        self,
        chunks: Iterable[Sequence[str]],
        size: int,
        role: contract.EncoderRole,
        on_progress: Callable[[int], None] | None,
    ) -> Iterator[tuple[int, Vectors]]:
        indices: dict[int, tuple[_Chunk, int]] = {}
        numbers = count()

        def jobs() -> Iterator[RemoteCall]:
            for index, texts in enumerate(chunks):
                chunk = _Chunk(index, np.zeros((len(texts), self.width), dtype=np.float32), len(texts))
                for start in range(0, len(texts), size):
                    indices[next(numbers)] = (chunk, start)
                    yield RemoteCall("encode", texts[start : start + size], {"role": role})

        for number, job_result in self._pool.run(self._spec, jobs()):
            chunk, start = indices.pop(number)
            vectors = job_result.raise_for_error(self.fingerprint).vectors()
            chunk.vectors[start : start + len(vectors)] = vectors
            chunk.n_missing -= len(vectors)
            if on_progress is not None:
                on_progress(len(vectors))
            if not chunk.n_missing:
                yield chunk.index, chunk.vectors


def job_size(count: int, workers: int, max_size: int) -> int:
    """Return the number of requests per job: a quarter of each worker's equal share, from 1 to ``max_size``.

    With small jobs, all workers finish at almost the same time.
    """
    return max(1, min(max_size, -(-count // (4 * workers))))
