"""What goes to a worker and what comes back: what is to be loaded, a job for it, and the job's answers.

Everything here is a frozen dataclass that travels between processes of one cluster. A key of a server never does:
models behind a server stay where the command runs.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from climassay.errors import ClimassayError, InputError, MissingExtraError, ModelError
from climassay.models.contract import (
    Activations,
    Completion,
    Encoder,
    EncoderRole,
    GenerationRequest,
    OpenWeights,
    OptionRequest,
    OptionScores,
)

if TYPE_CHECKING:
    from climassay.models.local.described import ModelInfo

_ERRORS: dict[str, type[ClimassayError]] = {
    error.__name__: error for error in (InputError, ModelError, MissingExtraError)
}


class LoadSpec(Protocol):
    """What a worker is to have loaded. Hashable: a worker loads equal ones once."""

    def load(self) -> Any:
        """Load it, in the worker."""

    def resolved(self) -> "LoadSpec":
        """The same with what this worker's machine decides where nothing is said, so that both are loaded once."""

    def __hash__(self) -> int: ...


@dataclass(frozen=True, slots=True)
class ModelSpec:
    """A local model, as :func:`climassay.models.load_model` takes it."""

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

        return load_model(
            self.name,
            device=self.device,
            dtype=self.dtype,
            adapter=self.adapter,
            concurrency=self.concurrency,
            max_output_tokens=self.max_output_tokens,
        )

    def resolved(self) -> "ModelSpec":
        """With the number format that is the default here."""
        from climassay.models.local.loading import default_device, default_dtype

        return self if self.dtype else replace(self, dtype=default_dtype(self.device or default_device()))


@dataclass(frozen=True, slots=True)
class EncoderSpec:
    """An encoder, as :func:`climassay.models.encoders.loading.load_encoder` takes it."""

    name: str
    threads: int | None = None
    """Texts encoded at the same time by one worker."""

    def load(self) -> Encoder:
        """The encoder."""
        from climassay.models.encoders.loading import load_encoder

        return load_encoder(self.name, threads=self.threads)

    def resolved(self) -> "EncoderSpec":
        """Itself: nothing is left to decide."""
        return self


@dataclass(frozen=True, slots=True)
class EncoderInfo:
    """What an encoder says about itself."""

    fingerprint: str
    width: int


class Job(Protocol):
    """Something that a worker does with what it has loaded."""

    def run(self, loaded: Any) -> Any:
        """The answers."""


@dataclass(frozen=True, slots=True)
class ModelInfoJob:
    """Ask a model for its info."""

    def run(self, loaded: Any) -> "ModelInfo":
        """The info."""
        info: ModelInfo = loaded.info
        return info


@dataclass(frozen=True, slots=True)
class EncoderInfoJob:
    """Ask an encoder for its info."""

    def run(self, loaded: Encoder) -> EncoderInfo:
        """The info."""
        return EncoderInfo(loaded.fingerprint, loaded.width)


@dataclass(frozen=True, slots=True)
class GenerationJob:
    """Chats to be continued."""

    requests: Sequence[GenerationRequest]

    def run(self, loaded: OpenWeights) -> list[Completion]:
        """Completions in the order of the requests."""
        return loaded.generate(self.requests)


@dataclass(frozen=True, slots=True)
class ScoringJob:
    """Options to be weighed."""

    requests: Sequence[OptionRequest]

    def run(self, loaded: OpenWeights) -> list[OptionScores]:
        """Scores in the order of the requests."""
        return loaded.option_logprobs(self.requests)


@dataclass(frozen=True, slots=True)
class HarvestJob:
    """Hidden states to be read."""

    requests: Sequence[OptionRequest]
    layers: tuple[int, ...]
    token_budget: int | None

    def run(self, loaded: OpenWeights) -> list[Activations]:
        """Activations in the order of the requests."""
        return loaded.harvest(self.requests, layers=self.layers, token_budget=self.token_budget)


@dataclass(frozen=True, slots=True)
class EncodingJob:
    """Texts to be encoded."""

    texts: Sequence[str]
    role: EncoderRole = "passage"

    def run(self, loaded: Encoder) -> NDArray[np.float32]:
        """Unit vectors, float32 [texts, width]."""
        return loaded.encode(self.texts, role=self.role)


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
