"""Fine-tuning jobs at an OpenAI-compatible API: upload, create, poll, adopt; interrupted jobs are continued.

The state of a job is written to a small JSON file after each step, before waiting. Repeating a call with the same data
uploads nothing twice and continues the running job.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from climassay.errors import InputError, ModelError
from climassay.io import parse_json, read_text, write_file
from climassay.models.openai.connection import REPEATED_KEY_ERROR, RETRYABLE
from climassay.models.openai.pacing import RetryPolicy, parse_retry_after
from climassay.models.openai.replies import BadReplyError, parse_error_reply
from climassay.models.servers import OPENAI, Server, find_server

FORMAT = "climassay-finetuning"
VERSION = 1
POLL_SECONDS = 30.0
"""Interval between status requests, unless the server asks for another."""
FAILED_STATUSES = ("failed", "cancelled")
"""Final statuses of a job without a model."""


@dataclass(frozen=True, slots=True)
class FineTuningState:
    """State of a fine-tuning job."""

    base_url: str
    base_model: str
    """Name of the model to fine-tune, without ``openai:``."""
    data_sha256: str
    """Hash of training data, validation data and settings."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    file_id: str | None = None
    validation_file_id: str | None = None
    job_id: str | None = None
    status: str = "new"
    """``new`` until there is a job, then the server's status."""
    model: str | None = None
    """Server's name of the fine-tuned model, once finished."""
    error: str | None = None
    """Error message of a failed job."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Additional data that the caller stores with the job, for example a threshold."""

    @property
    def model_name(self) -> str:
        """Name of the fine-tuned model for :func:`~climassay.models.load_model`.

        Raises:
            ModelError: The job has not finished, or has failed.
        """
        if self.model is None:
            raise ModelError(f"The fine-tuning of {self.base_model} has no model: its job is {self.status}.")
        return f"{OPENAI}:{self.model}"


def read_state(path: Path) -> FineTuningState:
    """Read the state of a fine-tuning job.

    Raises:
        InputError: The file is missing or damaged.
    """
    try:
        data = parse_json(read_text(path))
        if (data.pop("format"), data.pop("version")) != (FORMAT, VERSION):
            raise ValueError("another format")
        return FineTuningState(**data)
    except FileNotFoundError as error:
        raise InputError(f"There is no fine-tuning job at {path}: start one, or check the path.") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not the state of a fine-tuning job, or is damaged ({error}).") from error


def write_state(state: FineTuningState, path: Path) -> None:
    """Write the state of a fine-tuning job, replacing the file.

    Raises:
        InputError: The file cannot be written.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(state)}, indent=1, allow_nan=False)
    write_file(path, f"{text}\n".encode())


def fine_tune(
    model: str,
    training: bytes,
    state: Path,
    *,
    validation: bytes | None = None,
    epochs: int | None = 3,
    suffix: str | None = None,
    seed: int = 0,
    base_url: str | None = None,
    api_key: str | None = None,
    poll_seconds: float = POLL_SECONDS,
    policy: RetryPolicy | None = None,
    sleep: Callable[[float], None] = time.sleep,
    on_status: Callable[[FineTuningState], None] | None = None,
) -> FineTuningState:
    """Fine-tune a model on a server. If there is an earlier job with the same data, continue it or return it.

    Args:
        model: Base model, with or without ``openai:``.
        training: JSON Lines of ``{"messages": [...]}``.
        state: Path of the state file.
        validation: Validation data in the same format, or None.
        epochs: Number of epochs (3 in the paper); None for the server's default.
        suffix: Part of the new model's name.
        seed: Random seed, if the server supports it.
        base_url: See :class:`~climassay.models.openai.client.OpenAIModel`.
        api_key: API key; by default the key bound to the server's host.
        poll_seconds: Interval between status requests; a server's ``Retry-After`` has precedence.
        policy: Retries of each request; jobs have no deadline.
        sleep: Sleep function, replaced in tests.
        on_status: Called with each new state.

    Returns:
        Finished state, with the new model's name.

    Raises:
        InputError: The state file belongs to a job with other data or settings.
        ModelError: The server rejects the job, or it failed.
    """
    server = find_server(OPENAI, base_url, api_key)
    settings = {"epochs": epochs, "suffix": suffix, "seed": seed}
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode())
    for part in (training, validation or b""):
        digest.update(hashlib.sha256(part).digest())
    current_state = FineTuningState(server.base_url, model.removeprefix(f"{OPENAI}:"), digest.hexdigest(), settings)
    if state.exists():
        new_state, current_state = current_state, read_state(state)
        if any(
            getattr(current_state, name) != getattr(new_state, name)
            for name in ("base_url", "base_model", "data_sha256")
        ):
            raise InputError(
                f"{state} holds a fine-tuning job for {current_state.base_model} with other data or settings: name "
                "another file."
            )
        if current_state.status in FAILED_STATUSES:
            raise ModelError(
                f"The fine-tuning job {current_state.job_id} is {current_state.status}: "
                f"{current_state.error or 'no reason given'} "
                f"Remove {state} to start another."
            )
    job = _FineTuningJob(current_state, state, server, policy or RetryPolicy(), sleep, on_status)
    if job.state.model is not None:
        return job.state
    try:
        job.upload(training, validation)
        job.create(settings)
        return job.wait(poll_seconds)
    finally:
        job.close()


class _FineTuningJob:
    """Fine-tuning job with its client."""

    def __init__(
        self,
        state: FineTuningState,
        path: Path,
        server: Server,
        policy: RetryPolicy,
        sleep: Callable[[float], None],
        on_status: Callable[[FineTuningState], None] | None,
    ) -> None:
        self.state, self._path, self._policy = state, path, policy
        self._sleep, self._on_status = sleep, on_status
        self._server = server
        self._client: Any = None

    def upload(self, training: bytes, validation: bytes | None) -> None:
        """Upload the files that have not been uploaded, unless there is a job already."""
        self._store(self.state)
        if self.state.job_id is not None:
            return
        if self.state.file_id is None:
            self._store(replace(self.state, file_id=self._upload_file("training.jsonl", training)))
        if validation is not None and self.state.validation_file_id is None:
            self._store(replace(self.state, validation_file_id=self._upload_file("validation.jsonl", validation)))

    def _upload_file(self, name: str, data: bytes) -> str:
        file = (name, data, "application/jsonl")
        result, _ = self._request(lambda files: files.create(file=file, purpose="fine-tune"), "files")
        return _required_field(result, "id")

    def create(self, settings: Mapping[str, Any]) -> None:
        """Create the job, or adopt a job that an earlier process created without storing it."""
        if self.state.job_id is not None:
            return
        job = self._find_existing_job()
        if job is None:
            request: dict[str, Any] = {"model": self.state.base_model, "training_file": self.state.file_id}
            if self.state.validation_file_id is not None:
                request["validation_file"] = self.state.validation_file_id
            if settings["epochs"] is not None:
                hyperparameters = {"n_epochs": settings["epochs"]}
                request["method"] = {"type": "supervised", "supervised": {"hyperparameters": hyperparameters}}
            request |= {name: settings[name] for name in ("suffix", "seed") if settings[name] is not None}
            job, _ = self._request(lambda jobs: jobs.create(**request), "jobs")
        self._update(job)

    def wait(self, poll_seconds: float) -> FineTuningState:
        """Poll the job until it has ended, and return its final state.

        Raises:
            ModelError: The job has failed, or the server rejects the request.
        """
        while True:
            job, requested_wait = self._request(lambda jobs: jobs.retrieve(self.state.job_id), "jobs")
            self._update(job)
            if self.state.model is not None:
                return self.state
            if self.state.status in FAILED_STATUSES:
                reason = self.state.error or "The server gives no reason."
                raise ModelError(f"The fine-tuning job {self.state.job_id} is {self.state.status}: {reason}")
            if self.state.status == "succeeded":
                raise ModelError(f"The fine-tuning job {self.state.job_id} has ended without naming a model.")
            self._sleep(poll_seconds if requested_wait is None else requested_wait)

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()

    def _find_existing_job(self) -> Any | None:
        """Return a job at the server for the uploaded training file; None if there is none."""
        try:
            result, _ = self._request(lambda jobs: jobs.list(limit=100), "jobs")
        except ModelError:
            # A server may not list jobs; then there is nothing to adopt.
            return None
        jobs = result.get("data") if isinstance(result, dict) else None
        matching_jobs = [
            job for job in jobs or () if isinstance(job, dict) and job.get("training_file") == self.state.file_id
        ]
        return matching_jobs[0] if matching_jobs else None

    def _update(self, job: Any) -> None:
        status = str(job.get("status") or "unknown") if isinstance(job, dict) else "unknown"
        failure = job.get("error") if isinstance(job, dict) else None
        message = self._server.without_key(str(failure.get("message") or "")) if isinstance(failure, dict) else None
        model = job.get("fine_tuned_model") if isinstance(job, dict) and status == "succeeded" else None
        self._store(
            replace(
                self.state, job_id=_required_field(job, "id"), status=status, model=model or None, error=message or None
            )
        )

    def _store(self, state: FineTuningState) -> None:
        if state != self.state or not self._path.exists():
            self.state = state
            write_state(state, self._path)
            if self._on_status is not None:
                self._on_status(state)

    def _request(self, call: Callable[[Any], Any], resource: str) -> tuple[Any, float | None]:
        """Send a request, retrying as the policy allows; return the reply and the ``Retry-After`` seconds."""
        from openai import APIConnectionError, APIStatusError, OpenAIError

        policy, error = self._policy, ""
        for attempt in range(1, policy.max_attempts + 1):
            wait: float | None = None
            try:
                response = call(self._get_resource(resource))
                result = json.loads(response.http_response.content)
                # The key may occur in error messages only, since only these are redacted.
                serialised_result = json.dumps({**result, "error": None} if isinstance(result, dict) else result)
                if self._server.without_key(serialised_result) != serialised_result:
                    raise ModelError(REPEATED_KEY_ERROR)
                return result, _parse_headers_wait(response.headers)
            except APIStatusError as failure:
                status = failure.response.status_code
                message = parse_error_reply(failure.response.content).message or failure.response.reason_phrase
                error = self._server.without_key(f"The server answered {status}: {message}")
                error += "" if error.endswith((".", "!", "?")) else "."
                wait = _parse_headers_wait(failure.response.headers)
                if status < 500 and status not in RETRYABLE:
                    advice = self._server.withholding_reason if status in (401, 403) else ""
                    advice = advice or f"Check the model, the base URL {self._server.base_url} and the key."
                    raise ModelError(f"{error} {advice}") from None
            except APIConnectionError as failure:
                reason = failure.__cause__ or failure
                error = self._server.without_key(f"The connection to {self._server.base_url} failed: {reason}.")
            except (OpenAIError, ValueError, BadReplyError) as failure:
                message = self._server.without_key(f"The server's answer cannot be read: {failure}")
                raise ModelError(message) from None
            if attempt < policy.max_attempts:
                self._sleep(min(policy.cap, policy.base * 2.0 ** (attempt - 1)) if wait is None else wait)
        raise ModelError(
            f"No answer after {policy.max_attempts} attempts; the last one: {error} Run the command again."
        )

    def _get_resource(self, resource: str) -> Any:
        import httpx2
        from openai import DefaultHttpxClient, OpenAI

        from climassay.models.openai.response_limit import REQUEST_HEADERS, limit_response

        def filter_headers(request: httpx2.Request) -> None:
            self._server.filter_headers(request.headers)

        if self._client is None:
            self._client = OpenAI(
                base_url=self._server.base_url,
                api_key=self._server.key or "none",
                max_retries=0,
                timeout=self._policy.attempt_timeout,
                http_client=DefaultHttpxClient(
                    follow_redirects=False,
                    headers=REQUEST_HEADERS,
                    event_hooks={"request": [filter_headers], "response": [limit_response]},
                ),
            )
        raw_client = self._client.with_raw_response
        return raw_client.files if resource == "files" else raw_client.fine_tuning.jobs


def _required_field(reply: Any, name: str) -> str:
    value = reply.get(name) if isinstance(reply, dict) else None
    if not isinstance(value, str) or not value:
        raise ModelError(f"The server's answer has no {name!r}: it does not serve fine-tuning as OpenAI does.")
    return value


def _parse_headers_wait(headers: Any) -> float | None:
    return parse_retry_after(headers.get("retry-after"), headers.get("retry-after-ms"), time.time())
