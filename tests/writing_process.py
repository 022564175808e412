"""A process that opens the records and writes, at the same moment as its siblings.

python tests/writing_process.py URL FIRST COUNT   asks prompts from FIRST on, in COUNT overlapping calls of 20
"""

import subprocess
import sys

from climassay.models import Completion, GenerationRequest, Message, Usage
from climassay.records import RecordedModel, Records


class Shout:
    """Answers in capitals; the word ``fail`` fails. Counts what it is asked."""

    name, fingerprint = "local:shout", "5" * 64

    def __init__(self):
        self.asked = 0

    def render(self, messages, assistant_prefix=""):
        return messages[-1].content + assistant_prefix

    def generate(self, requests, *, on_result=None):
        for index, request in enumerate(requests):
            self.asked += 1
            text = request.messages[-1].content
            failed = Completion.failed("No luck.", Usage(requests=2))
            on_result(index, failed if text == "fail" else Completion(text.upper(), "stop", Usage(1, 2, 1, 0.5)))

    def close(self):
        """Nothing to give back."""


def ask(*texts):
    return [GenerationRequest((Message("user", text),)) for text in texts]


def write_at_once(url: str, firsts: list[int], count: int) -> None:
    """Start one process for each first prompt, let them begin together, and wait for all."""
    commands = [[sys.executable, __file__, url, str(first), str(count)] for first in firsts]
    processes = [subprocess.Popen(c, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for c in commands]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * len(processes)


def main() -> None:
    url, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    print("ready", flush=True)
    sys.stdin.readline()
    with Records(url) as store, store.run("at once", {}) as run:
        recorded = RecordedModel(Shout(), store, run, use_cache=False)
        for start in range(first, first + 10 * count, 10):
            recorded.generate(ask(*(f"text {n}" for n in range(start, start + 20))))


if __name__ == "__main__":
    main()
