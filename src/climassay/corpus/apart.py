"""Read files of strangers in a process of their own, which may crash, hang or fill its memory without harm to ours.

PDF files in particular are read by a large library in C; a file that is made to crash it must not end a server, nor be
tried again and again by every start of it.
"""

import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from climassay.corpus.documents import Block, Document, Skipped
from climassay.corpus.options import MEBIBYTE, PageCallback, ReadOptions, ReadResult, TableColumns
from climassay.redaction import environment_without_secrets

LARGEST_MEMORY = 4096 * MEBIBYTE
"""Address space of the reading process."""
LONGEST_SILENCE = 300.0
"""Seconds in which a reader must have finished a page, or a file that has none."""


def read_apart(
    path: Path,
    options: ReadOptions,
    *,
    source: str,
    on_page: PageCallback | None = None,
    memory: int = LARGEST_MEMORY,
    silence: float = LONGEST_SILENCE,
) -> ReadResult:
    """Read one file in another process; see :func:`climassay.corpus.reading.read`.

    Args:
        path: The file.
        options: As for ``read``.
        source: What its people call it.
        on_page: Called before each page of a PDF file; what it raises ends the reading.
        memory: Bytes of address space that the reader may use.
        silence: Seconds without a page after which it is given up.

    Returns:
        What ``read`` gives. A file on which the reader crashes, hangs or runs out of memory gives no document and the
        reason.
    """
    order = {"path": str(path), "source": source, "options": asdict(options), "memory": memory}
    with _reader(order, silence) as lines:
        for line in lines:
            told = json.loads(line)
            if "result" in told:
                return _result(told["result"])
            if on_page is not None:
                on_page(told["page"], told["of"])
    reason = f"{source} cannot be read: the reader broke off (damaged, too large or too intricate)."
    return ReadResult(source, (), (Skipped(source, reason),))


@contextmanager
def _reader(order: dict[str, Any], silence: float) -> Iterator[Iterator[bytes]]:
    """The lines that a reading process writes; it has ended when the block ends."""
    # Should a file take the reader over, it finds no key and no password there.
    environment = {**environment_without_secrets(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "climassay.corpus.apart"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(order).encode())
                process.stdin.close()
            yield _watched(process, process.stdout, silence)
        finally:
            process.kill()


def _watched(process: "subprocess.Popen[bytes]", lines: IO[bytes], silence: float) -> Iterator[bytes]:
    """The lines of a process, which is killed when it is silent for too long."""
    watch = _Watch(process, silence)
    watch.start()
    try:
        while line := watch.listen(lines):
            yield line
    finally:
        watch.over.set()


class _Watch(threading.Thread):
    """Kills a process that says nothing for too long while somebody listens to it; one thread for all of its lines."""

    def __init__(self, process: "subprocess.Popen[bytes]", silence: float) -> None:
        super().__init__(daemon=True)
        self.over = threading.Event()
        self._process = process
        self._silence = silence
        self._patient_until = math.inf

    def listen(self, lines: IO[bytes]) -> bytes:
        """The next line."""
        self._patient_until = time.monotonic() + self._silence
        try:
            return lines.readline()
        finally:
            self._patient_until = math.inf

    def run(self) -> None:
        """Watch until it is over."""
        # No wait is longer than the silence allowed, so that who begins to listen meanwhile is looked at in time.
        while not self.over.wait(max(0.001, min(self._silence, self._patient_until - time.monotonic()))):
            if time.monotonic() >= self._patient_until:
                self._process.kill()
                return


def _result(told: dict[str, Any]) -> ReadResult:
    documents = tuple(_document(fields) for fields in told["documents"])
    return ReadResult(told["source"], documents, tuple(Skipped(**skipped) for skipped in told["skipped"]))


def _document(fields: dict[str, Any]) -> Document:
    blocks = tuple(Block(**block | {"headings": tuple(block["headings"])}) for block in fields["blocks"])
    return Document(**fields | {"blocks": blocks})


def _read_as_ordered(orders: IO[bytes], answers: IO[bytes]) -> None:
    """The reading process: one order in, pages and one result out, a line of JSON each."""
    from climassay.corpus.reading import read

    order = json.loads(orders.read())
    _bound_memory(order["memory"])
    columns = order["options"].pop("columns")
    columns["document"] = tuple(columns["document"])
    options = ReadOptions(columns=TableColumns(**columns), **order["options"])

    def tell(told: dict[str, Any]) -> None:
        answers.write(json.dumps(told).encode() + b"\n")
        answers.flush()

    def on_page(page: int, of: int) -> None:
        tell({"page": page, "of": of})

    tell({"result": asdict(read(order["path"], options, source=order["source"], on_page=on_page))})


def _bound_memory(most: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has none.
        return
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _read_as_ordered(sys.stdin.buffer, sys.stdout.buffer)
