"""Run functions on untrusted input in a separate process, which may hang, crash or exhaust its memory safely.

A process runs one call after another. Both sides write lines of JSON: the parent sends a call, and the process answers
with questions to the parent and finally with the result. Nothing that the process sends can run code in the parent.
"""

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from importlib import import_module
from typing import IO, Any, Literal, Self

from climassay import errors
from climassay.errors import ClimassayError
from climassay.io.reading import format_size
from climassay.redaction import environment_without_secrets

WATCH_SECONDS = 0.2
"""Time between two checks of the limits of a call, in seconds."""

Ask = Callable[[str, Any], Any]
"""Function by which a sandboxed function asks the parent: takes the name of a question and JSON-serialisable arguments,
and returns the parent's answer."""
SandboxedFunction = Callable[[Any, Ask], Any]
"""Function of a module, called with one JSON-serialisable argument; returns JSON-serialisable values or dataclasses."""
Reason = Literal["processor", "time", "memory", "stopped", "crash"]


class SandboxError(ClimassayError):
    """Error for a call that did not finish. The message is a clause that can follow "because"."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Sandbox:
    """Process that runs functions on untrusted input.

    A process whose call did not finish has ended and must not be used again: see :attr:`is_alive`.

    Args:
        max_memory: Maximum address space of the process, in bytes.
        modules: Names of modules that the process imports at once, so that its first call does not wait for them.
    """

    def __init__(self, max_memory: int, modules: tuple[str, ...] = ()) -> None:
        self._max_memory = max_memory
        # If an input takes control of the process, the environment has no key or password.
        environment = {**environment_without_secrets(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "climassay.io.sandbox", str(max_memory), *modules]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
        )
        self._kill_error: SandboxError | None = None
        self._deadline = 0.0

    @property
    def is_alive(self) -> bool:
        """Whether the process can run another call."""
        return self._process.poll() is None

    def call(
        self,
        function: SandboxedFunction,
        argument: Any,
        *,
        timeout: float,
        max_processor_seconds: int | None = None,
        answer: Ask | None = None,
        is_stopped: Callable[[], bool] | None = None,
    ) -> Any:
        """Run a function in the process and return its result as JSON values.

        The process ends if the call does not finish, also if ``answer`` raises an exception.

        Args:
            function: Function of a module, which the process imports.
            argument: JSON-serialisable argument of the function.
            timeout: Maximum time until the result or the next question, in seconds.
            max_processor_seconds: Maximum processor time of the call; None for no limit.
            answer: Function that answers the questions of the sandboxed function.
            is_stopped: Function that returns whether to end the call, called every :data:`WATCH_SECONDS`.

        Raises:
            SandboxError: The call reached a limit, was stopped, or crashed.
            ClimassayError: The function raised this error.
        """
        self._max_processor_seconds = max_processor_seconds
        name = f"{function.__module__}:{function.__qualname__}"
        is_finished = False
        with self._watch(timeout, is_stopped):
            try:
                message = self._exchange({"call": name, "argument": argument, "processor": max_processor_seconds})
                while "ask" in message:
                    assert answer is not None
                    self._deadline = float("inf")
                    reply = answer(message["ask"], message["argument"])
                    self._deadline = time.monotonic() + timeout
                    message = self._exchange({"answer": reply})
                is_finished = "memory" not in message
            finally:
                if not is_finished:
                    self.close()
        if not is_finished:
            raise SandboxError("memory", f"it needs more memory than {format_size(self._max_memory)}")
        if "error" in message:
            raise getattr(errors, message["type"], ClimassayError)(message["error"])
        return message["result"]

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            with suppress(OSError):  # Closing flushes data that the dead process has not read.
                stream.close()  # type: ignore[union-attr]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def _exchange(self, message: dict[str, Any]) -> dict[str, Any]:
        """Send a message to the process and return its next message."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(_to_line(message))
            self._process.stdin.flush()
        line = self._process.stdout.readline(self._max_memory)
        if not line.endswith(b"\n"):
            raise self._explain_end()
        received_message: dict[str, Any] = json.loads(line)
        return received_message

    def _explain_end(self) -> SandboxError:
        """Wait until the process has ended, and return the reason."""
        self._process.kill()  # If a signal has already ended the process, the return code is that of the first signal.
        return_code = self._process.wait()
        if self._kill_error is not None:
            return self._kill_error
        if return_code == -getattr(signal, "SIGXCPU", 0) != 0:
            message = f"it took more than {self._max_processor_seconds} seconds of processor time"
            return SandboxError("processor", message)
        return SandboxError("crash", "its process crashed")

    @contextmanager
    def _watch(self, timeout: float, is_stopped: Callable[[], bool] | None) -> Iterator[None]:
        """Kill the process if the context is stopped or the process is silent for too long."""
        self._deadline = time.monotonic() + timeout
        is_over = threading.Event()

        def watch() -> None:
            while self._kill_error is None:
                if is_stopped is not None and is_stopped():
                    self._kill_error = SandboxError("stopped", "it was stopped")
                elif time.monotonic() > self._deadline:
                    self._kill_error = SandboxError("time", f"it took more than {timeout:g} seconds")
                elif is_over.wait(WATCH_SECONDS):
                    return
            self._process.kill()

        thread = threading.Thread(target=watch, name="sandbox-watch", daemon=True)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def _to_line(message: dict[str, Any]) -> bytes:
    return json.dumps(message, default=asdict).encode() + b"\n"


def _limit_resources(max_memory: int) -> None:
    with suppress(ImportError):  # Windows has no such module.
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (max_memory, max_memory))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _limit_processor_time(seconds: int | None) -> None:
    """Limit this process to ``seconds`` more of processor time, after which the system ends it; None sets no limit."""
    with suppress(ImportError):
        import resource

        usage = resource.getrusage(resource.RUSAGE_SELF)
        soft_limit = resource.RLIM_INFINITY if seconds is None else int(usage.ru_utime + usage.ru_stime) + 1 + seconds
        resource.setrlimit(resource.RLIMIT_CPU, (soft_limit, resource.RLIM_INFINITY))


def _serve(calls: IO[bytes], responses: IO[bytes]) -> None:
    """Run the calls of the parent until it closes the pipe."""

    def send(message: dict[str, Any]) -> None:
        responses.write(_to_line(message))
        responses.flush()

    def ask(question: str, argument: Any) -> Any:
        send({"ask": question, "argument": argument})
        return json.loads(calls.readline())["answer"]

    for line in calls:
        message = json.loads(line)
        module, _, name = message["call"].partition(":")
        function: SandboxedFunction = getattr(import_module(module), name)
        _limit_processor_time(message["processor"])
        try:
            send({"result": function(message["argument"], ask)})
        except ClimassayError as error:
            send({"error": str(error), "type": type(error).__name__})
        except MemoryError:
            send({"memory": True})
            return


if __name__ == "__main__":
    _limit_resources(int(sys.argv[1]))
    for module_name in sys.argv[2:]:
        import_module(module_name)
    _serve(sys.stdin.buffer, sys.stdout.buffer)
