"""Processes in which users' texts are checked, so that no text can keep the server itself busy.

A user has one process at a time; a second text waits, and a third is refused. If a check reaches a limit, or its
visitor leaves, its process is killed. Beside the processes in use, one has always been started for the next text.
"""

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Annotated, Any

from fastapi import Depends, Request

from climassay.io.sandbox import Ask, Sandbox, SandboxedFunction, SandboxError
from climassay.web.accounts import User
from climassay.web.failures import Failure, TooLarge

MAX_PROCESSES = 2
"""Maximum number of texts that are checked at the same time; each process, and the idle one, needs about 70 MB."""
MAX_TEXTS_PER_USER = 2
"""Maximum number of a user's texts that are being checked or wait."""
MAX_MEMORY = 1 << 30
"""Maximum address space of a process, in bytes."""
MAX_PROCESSOR_SECONDS = 20
"""Maximum processor time of a check, without the searches and the encoder, which run in the server."""
TIMEOUT = 60.0
"""Maximum time between two answers of a process, in seconds."""
POLL_SECONDS = 0.5
"""Time between two checks of whether the user is still connected, in seconds."""


class TooManyTexts(Failure):
    """Error for a text of a user whose earlier texts are still being checked."""

    status = 429


class CheckStopped(Failure):
    """Error for a check that was stopped, because the user closed the connection or the server shuts down."""

    status = 503


async def _watch_connection(request: Request) -> AsyncIterator[Callable[[], bool]]:
    has_left = threading.Event()

    async def watch() -> None:
        while not await request.is_disconnected():
            await asyncio.sleep(POLL_SECONDS)
        has_left.set()

    task = asyncio.create_task(watch())
    try:
        yield has_left.is_set
    finally:
        task.cancel()


HasLeft = Annotated[Callable[[], bool], Depends(_watch_connection)]
"""Route parameter: function that returns whether the user has closed the connection."""


class TextProcesses:
    """Processes of a server in which texts are checked, and the users who wait for one."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._idle: list[Sandbox] = []
        self._users: set[str] = set()
        """Names of the users whose texts are being checked."""
        self._n_pending_by_user: Counter[str] = Counter()
        self._is_closed = False

    def warm_up(self) -> None:
        """Start a process unless one is idle, so that the next text does not wait until it has started."""
        with self._changed:
            if not self._idle and not self._is_closed:
                self._idle.append(self._start())

    def call(
        self,
        user: User,
        function: SandboxedFunction,
        argument: Any,
        *,
        has_left: Callable[[], bool],
        answer: Ask | None = None,
    ) -> Any:
        """Run a check of a text in a process; see :meth:`climassay.io.sandbox.Sandbox.call`.

        Raises:
            TooManyTexts: Earlier texts of the user are still being checked.
            TooLarge: The check reached a limit.
            CheckStopped: The user has closed the connection, or the server shuts down.
        """

        def is_stopped() -> bool:
            return self._is_closed or has_left()

        with self._borrow(user.name, is_stopped) as sandbox:
            try:
                return sandbox.call(
                    function,
                    argument,
                    timeout=TIMEOUT,
                    max_processor_seconds=MAX_PROCESSOR_SECONDS,
                    answer=answer,
                    is_stopped=is_stopped,
                )
            except SandboxError as error:
                if error.reason == "stopped":
                    raise CheckStopped("The check of the text was stopped.") from None
                raise TooLarge(
                    f"The text could not be checked, because {error}: shorten it, or check it in parts."
                ) from None

    @contextmanager
    def _borrow(self, user: str, is_stopped: Callable[[], bool]) -> Iterator[Sandbox]:
        """Wait until the user may have a process, and yield it."""
        with self._changed:
            if self._n_pending_by_user[user] >= MAX_TEXTS_PER_USER:
                raise TooManyTexts("Your earlier texts are still being checked: wait until they are done.")
            self._n_pending_by_user[user] += 1
            try:
                while user in self._users or len(self._users) >= MAX_PROCESSES:
                    self._changed.wait(POLL_SECONDS)
                    if is_stopped():
                        raise CheckStopped("The check of the text was stopped.")
                while self._idle and not self._idle[-1].is_alive:
                    self._idle.pop().close()  # The system has ended it, for example because memory was short.
                sandbox = self._idle.pop() if self._idle else self._start()
            except BaseException:
                self._remove_text(user)
                raise
            self._users.add(user)
            with suppress(OSError):  # Without a spare process, the next text waits until one has started.
                self.warm_up()
        try:
            yield sandbox
        finally:
            with self._changed:
                self._users.remove(user)
                self._remove_text(user)
                self._changed.notify_all()
                if self._is_closed:
                    sandbox.close()
                elif sandbox.is_alive:
                    self._idle.append(sandbox)

    def _remove_text(self, user: str) -> None:
        self._n_pending_by_user[user] -= 1
        if not self._n_pending_by_user[user]:
            del self._n_pending_by_user[user]

    @staticmethod
    def _start() -> Sandbox:
        return Sandbox(MAX_MEMORY, ("climassay.web.text_checks",))

    def close(self) -> None:
        """End all processes; running checks raise CheckStopped."""
        with self._changed:
            self._is_closed = True
            while self._idle:
                self._idle.pop().close()
