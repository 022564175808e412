"""Read files of strangers in a process of their own, which may crash, hang or fill its memory without harm to ours.

PDF files in particular are read by a large library in C; a file that is made to crash it must not end a server, nor be
tried again and again by every start of it.
"""

import base64
import json
import math
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from climassay.corpus.documents import (
    MEBIBYTE,
    Block,
    Document,
    LeftOut,
    PageCallback,
    ReadOptions,
    ReadResult,
    Skipped,
    TableColumns,
)
from climassay.errors import DocumentError
from climassay.redaction import environment_without_secrets

if TYPE_CHECKING:
    from climassay.corpus.readers.pdf import DrawnPage

LARGEST_MEMORY = 4096 * MEBIBYTE
"""Address space of the reading process."""
LONGEST_SILENCE = 300.0
"""Seconds in which a reader must have finished a page, or a file that has none."""
LONGEST_DRAWING = 60.0
"""Seconds in which a page must be drawn."""


def read_sandboxed(
    path: Path,
    options: ReadOptions,
    *,
    source: str,
    on_page: PageCallback | None = None,
    memory: int = LARGEST_MEMORY,
    silence: float = LONGEST_SILENCE,
) -> ReadResult:
    """Read one file in another process; see :func:`climassay.corpus.readers.file_types.read`.

    The reader may use ``memory`` bytes of address space and be silent for so many seconds; what ``on_page`` raises ends
    the reading. A file on which it crashes, hangs or runs out of memory gives no document and the reason.
    """
    request = {"path": str(path), "source": source, "options": asdict(options), "memory": memory}
    with _reader(request, silence) as lines:
        for line in lines:
            message = json.loads(line)
            if "result" in message:
                result = message["result"]
                for fields in result["documents"]:
                    blocks = (Block(**block | {"headings": tuple(block["headings"])}) for block in fields["blocks"])
                    fields["blocks"] = tuple(blocks)
                    left_out = (LeftOut(**part | {"pages": tuple(part["pages"])}) for part in fields["left_out"])
                    fields["left_out"] = tuple(left_out)
                documents = tuple(Document(**fields) for fields in result["documents"])
                return ReadResult(result["source"], documents, tuple(Skipped(**each) for each in result["skipped"]))
            if on_page is not None:
                on_page(message["page"], message["of"])
    reason = f"{source} cannot be read: the reader broke off (damaged, too large or too intricate)."
    return ReadResult(source, (), (Skipped(source, reason),))


def draw_sandboxed(
    path: Path, page: int, *, memory: int = LARGEST_MEMORY, silence: float = LONGEST_DRAWING
) -> "DrawnPage":
    """Draw a page of a PDF file in another process; see :func:`climassay.corpus.readers.pdf.draw_page`.

    Raises:
        DocumentError: It cannot be drawn, or not in so much memory or so many seconds.
    """
    from climassay.corpus.readers.pdf import DrawnPage

    with _reader({"path": str(path), "page": page, "memory": memory}, silence) as lines:
        for line in lines:
            message = json.loads(line)
            if "refused" in message:
                raise DocumentError(message["refused"])
            boxes = tuple((left, top, right, bottom) for left, top, right, bottom in message["boxes"])
            return DrawnPage(**message | {"png": base64.b64decode(message["png"]), "boxes": boxes})
    raise DocumentError(f"Page {page} is damaged or too complex to be drawn.")


@contextmanager
def _reader(request: dict[str, Any], silence: float) -> Iterator[Iterator[bytes]]:
    """The lines that a reading process writes; it has ended when the block ends."""
    # Should a file take the reader over, it finds no key and no password there.
    environment = {**environment_without_secrets(), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "climassay.corpus.readers.sandboxed_reader"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            with suppress(BrokenPipeError):
                process.stdin.write(json.dumps(request).encode())
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


def _serve_request(requests: IO[bytes], answers: IO[bytes]) -> None:
    """The reading process: one request in, pages and one result out, a line of JSON each."""
    request = json.loads(requests.read())
    with suppress(ImportError):  # Windows has no such module.
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def send(message: dict[str, Any]) -> None:
        answers.write(json.dumps(message).encode() + b"\n")
        answers.flush()

    (_draw if "page" in request else _read)(request, send)


def _draw(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    from climassay.corpus.readers.pdf import draw_page

    try:
        drawn = draw_page(Path(request["path"]).read_bytes(), request["page"])
    except DocumentError as error:
        send({"refused": str(error)})
    else:
        send(asdict(drawn) | {"png": base64.b64encode(drawn.png).decode()})


def _read(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    from climassay.corpus.readers.file_types import read

    columns = request["options"].pop("columns")
    columns["document"] = tuple(columns["document"])
    options = ReadOptions(columns=TableColumns(**columns), **request["options"])

    def on_page(page: int, of: int) -> None:
        send({"page": page, "of": of})

    send({"result": asdict(read(request["path"], options, source=request["source"], on_page=on_page))})


if __name__ == "__main__":
    _serve_request(sys.stdin.buffer, sys.stdout.buffer)
