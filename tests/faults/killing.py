"""Kills between answers: the API server falls silent after some of them, and whoever waits for the next is killed.

What is left afterwards is compared with what an uninterrupted life leaves.
"""

import math
import subprocess
from pathlib import Path

from api_server import ApiServer, Behaviour, Reply, Request, by_hash
from faults.left_behind import stored_answers
from killed_process import kill_when


def answered(request: Request) -> Reply:
    """By the prompt's hash; what an explanation says of a claim is answered in the words that are asked for."""
    if "right or that it is wrong" not in request.content:
        return by_hash(request)
    share = (1 + int(request.prompt[:2], 16)) / 258
    likely = [(" right", math.log(share)), (" wrong", math.log(1 - share))]
    return Reply("right" if share > 0.5 else "wrong", [likely])


class SilencedServer(ApiServer):
    """An API server that answers only so many requests more, and leaves those after them without an answer."""

    answers_left: int | None = None
    """None: it answers all."""

    def __init__(self, latency: float) -> None:
        super().__init__(Behaviour(latency=latency), answered)
        self._answered: list[str] = []
        self._unanswered: set[str] = set()

    def order_of(self, request: Request) -> str | None:
        """Count an answer, or give none."""
        if self.answers_left is None:
            return super().order_of(request)
        if self.answers_left == 0:
            self._unanswered.add(request.prompt)
            return "hang"
        self.answers_left -= 1
        self._answered.append(request.prompt)
        return super().order_of(request)

    def grant(self, answers: int) -> None:
        """Fall silent after so many answers from now on."""
        self._answered.clear()
        self._unanswered.clear()
        self.answers_left = answers

    @property
    def storable(self) -> int | None:
        """Answers that can certainly be stored although the server is silent; None while it still answers.

        One that takes two requests cannot be if the second got no answer, and both have the same prompt.
        """
        if not self._unanswered:
            return None
        return sum(prompt not in self._unanswered for prompt in list(self._answered))


def kill_between_answers(process: "subprocess.Popen[str]", server: SilencedServer, workspace: Path) -> int:
    """Kill a process when the answers that its server had granted are stored, and have the server answer again.

    An answer that was given may not be stored yet, so what counts is the records. The server is silent by then, so that
    the kill falls between two answers however slow the machine is.

    Returns:
        Number of stored answers.
    """
    kill_when(lambda: server.storable is not None and stored_answers(workspace) >= server.storable, process)
    server.answers_left = None
    return stored_answers(workspace)
