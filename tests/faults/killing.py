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

    def order_of(self, request: Request) -> str | None:
        """Count an answer, or give none."""
        if self.answers_left == 0:
            return "hang"
        if self.answers_left is not None:
            self.answers_left -= 1
        return super().order_of(request)


def kill_between_answers(process: "subprocess.Popen[str]", server: SilencedServer, workspace: Path) -> None:
    """Kill a process when all answers that its server had left are stored, and have the server answer again.

    An answer that was given may not be stored yet, so what counts is the records. No answer can come after them, so
    that the kill falls between two answers however slow the machine is.
    """
    last = server.answers_left
    assert last is not None
    kill_when(lambda: stored_answers(workspace) >= last, process)
    server.answers_left = None
    assert stored_answers(workspace) == last
