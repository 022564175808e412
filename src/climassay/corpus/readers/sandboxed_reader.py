"""Read untrusted files in a separate process, so that a crash, a hang or exhausted memory does not affect this process.

This matters most for PDF files, which are read by a large C library.
"""

import base64
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from climassay.corpus.documents import (
    MEBIBYTE,
    Block,
    Document,
    OmittedParts,
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

MAX_MEMORY = 4096 * MEBIBYTE
"""Maximum address space of the reading process, in bytes."""
READ_TIMEOUT = 300.0
"""Maximum time per page, or per file without pages, in seconds."""
DRAW_TIMEOUT = 60.0
"""Maximum time for rendering a page, in seconds."""


def read_sandboxed(
    path: Path,
    options: ReadOptions,
    *,
    source: str,
    on_page: PageCallback | None = None,
    max_memory: int = MAX_MEMORY,
    timeout: float = READ_TIMEOUT,
) -> ReadResult:
    """Read one file in a separate process; see :func:`climassay.corpus.readers.file_types.read`.

    The process may use ``max_memory`` bytes of address space, and is killed if it does not finish a page within
    ``timeout`` seconds. An exception raised by ``on_page`` stops the process. If the process crashes, hangs or runs out
    of memory, the result has no documents and one reason for skipping the file.
    """
    request = {"path": str(path), "source": source, "options": asdict(options), "memory": max_memory}
    with _start_reader(request, timeout) as lines:
        for line in lines:
            message = json.loads(line)
            if "result" in message:
                result = message["result"]
                for fields in result["documents"]:
                    blocks = (Block(**block | {"headings": tuple(block["headings"])}) for block in fields["blocks"])
                    fields["blocks"] = tuple(blocks)
                    omitted_parts = (
                        OmittedParts(**part | {"pages": tuple(part["pages"])}) for part in fields["omitted_parts"]
                    )
                    fields["omitted_parts"] = tuple(omitted_parts)
                documents = tuple(Document(**fields) for fields in result["documents"])
                return ReadResult(
                    result["source"],
                    documents,
                    tuple(Skipped(**skipped_fields) for skipped_fields in result["skipped"]),
                )
            if on_page is not None:
                on_page(message["page"], message["of"])
    reason = f"{source} cannot be read: the reader broke off (damaged, too large or too intricate)."
    return ReadResult(source, (), (Skipped(source, reason),))


def draw_sandboxed(path: Path, page: int, *, max_memory: int = MAX_MEMORY) -> "DrawnPage":
    """Render a page of a PDF file in a separate process; see :func:`climassay.corpus.readers.pdf.draw_page`.

    Raises:
        DocumentError: The page cannot be rendered within the limits of memory and time.
    """
    from climassay.corpus.readers.pdf import DrawnPage

    with _start_reader({"path": str(path), "page": page, "memory": max_memory}, DRAW_TIMEOUT) as lines:
        for line in lines:
            message = json.loads(line)
            if "error_message" in message:
                raise DocumentError(message["error_message"])
            boxes = tuple((left, top, right, bottom) for left, top, right, bottom in message["boxes"])
            return DrawnPage(**message | {"png": base64.b64decode(message["png"]), "boxes": boxes})
    raise DocumentError(f"Page {page} is damaged or too complex to be drawn.")


@contextmanager
def _start_reader(request: dict[str, Any], timeout: float) -> Iterator[Iterator[bytes]]:
    """Start a reading process and yield an iterator over its output lines; kill the process when the block ends."""
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
            yield _lines_until_timeout(process, process.stdout, timeout)
        finally:
            process.kill()


def _lines_until_timeout(process: "subprocess.Popen[bytes]", lines: IO[bytes], timeout: float) -> Iterator[bytes]:
    """Yield the output lines of a process; kill it if the next line takes more than ``timeout`` seconds."""
    while True:
        timer = threading.Timer(timeout, process.kill)
        timer.daemon = True
        timer.start()
        try:
            line = lines.readline()
        finally:
            timer.cancel()
        if not line:
            return
        yield line


def _serve_request(requests: IO[bytes], responses: IO[bytes]) -> None:
    """Read one request; write progress messages and one result, each as a line of JSON."""
    request = json.loads(requests.read())
    with suppress(ImportError):  # Windows has no such module.
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (request["memory"], request["memory"]))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    def send(message: dict[str, Any]) -> None:
        responses.write(json.dumps(message).encode() + b"\n")
        responses.flush()

    (_serve_drawing if "page" in request else _serve_reading)(request, send)


def _serve_drawing(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    from climassay.corpus.readers.pdf import draw_page

    try:
        drawn_page = draw_page(Path(request["path"]).read_bytes(), request["page"])
    except DocumentError as error:
        send({"error_message": str(error)})
    else:
        send(asdict(drawn_page) | {"png": base64.b64encode(drawn_page.png).decode()})


def _serve_reading(request: dict[str, Any], send: Callable[[dict[str, Any]], None]) -> None:
    from climassay.corpus.readers.file_types import read

    columns = request["options"].pop("columns")
    columns["document"] = tuple(columns["document"])
    options = ReadOptions(columns=TableColumns(**columns), **request["options"])

    def on_page(page: int, of: int) -> None:
        send({"page": page, "of": of})

    send({"result": asdict(read(request["path"], options, source=request["source"], on_page=on_page))})


if __name__ == "__main__":
    _serve_request(sys.stdin.buffer, sys.stdout.buffer)
