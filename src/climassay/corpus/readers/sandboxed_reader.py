"""Read untrusted files in a separate process, so that a crash, a hang or exhausted memory does not affect this process.

This matters most for PDF files, which are read by a large C library.
"""

import base64
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter

from climassay.corpus.documents import (
    MEBIBYTE,
    Block,
    Document,
    OmittedParts,
    PageCallback,
    ReadOptions,
    ReadResult,
    Skipped,
)
from climassay.errors import DocumentError
from climassay.io.sandbox import Ask, Sandbox, SandboxError

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
    is_stopped: Callable[[], bool] | None = None,
    max_memory: int = MAX_MEMORY,
    timeout: float = READ_TIMEOUT,
) -> ReadResult:
    """Read one file in a separate process; see :func:`climassay.corpus.readers.file_types.read`.

    The process may use ``max_memory`` bytes of address space, and is killed if it does not finish a page within
    ``timeout`` seconds, or if ``is_stopped`` returns True. An exception raised by ``on_page`` stops the process. If the
    process crashes, hangs, runs out of memory or is stopped, the result has no documents and one reason for skipping
    the file.
    """

    def answer(_question: str, pages: Any) -> None:
        if on_page is not None:
            on_page(*pages)

    request = {"path": str(path), "source": source, "options": asdict(options)}
    with Sandbox(max_memory) as sandbox:
        try:
            result = sandbox.call(_read_file, request, timeout=timeout, answer=answer, is_stopped=is_stopped)
        except SandboxError as error:
            reason = f"{source} cannot be read: the reader broke off because {error} (damaged or too intricate)."
            return ReadResult(source, (), (Skipped(source, reason),))
    return _restore_result(result)


def _restore_result(data: dict[str, Any]) -> ReadResult:
    # Without pydantic, which refuses file names that are not UTF-8.
    for fields in data["documents"]:
        fields["blocks"] = tuple(Block(**block | {"headings": tuple(block["headings"])}) for block in fields["blocks"])
        fields["omitted_parts"] = tuple(
            OmittedParts(**part | {"pages": tuple(part["pages"])}) for part in fields["omitted_parts"]
        )
    documents = tuple(Document(**fields) for fields in data["documents"])
    return ReadResult(data["source"], documents, tuple(Skipped(**fields) for fields in data["skipped"]))


def draw_sandboxed(path: Path, page: int, *, max_memory: int = MAX_MEMORY) -> "DrawnPage":
    """Render a page of a PDF file in a separate process; see :func:`climassay.corpus.readers.pdf.draw_page`.

    Raises:
        DocumentError: The page cannot be rendered within the limits of memory and time.
    """
    from climassay.corpus.readers.pdf import DrawnPage

    with Sandbox(max_memory) as sandbox:
        try:
            drawn_page = sandbox.call(_draw_page, {"path": str(path), "page": page}, timeout=DRAW_TIMEOUT)
        except SandboxError as error:
            raise DocumentError(f"Page {page} is damaged or too complex to be drawn: {error}.") from None
    boxes = tuple((left, top, right, bottom) for left, top, right, bottom in drawn_page["boxes"])
    return DrawnPage(**drawn_page | {"png": base64.b64decode(drawn_page["png"]), "boxes": boxes})


def _draw_page(request: dict[str, Any], _ask: Ask) -> dict[str, Any]:
    from climassay.corpus.readers.pdf import draw_page

    drawn_page = draw_page(Path(request["path"]).read_bytes(), request["page"])
    return asdict(drawn_page) | {"png": base64.b64encode(drawn_page.png).decode()}


def _read_file(request: dict[str, Any], ask: Ask) -> ReadResult:
    from climassay.corpus.readers.file_types import read

    options = TypeAdapter(ReadOptions).validate_python(request["options"])
    return read(request["path"], options, source=request["source"], on_page=lambda *pages: ask("page", pages))
