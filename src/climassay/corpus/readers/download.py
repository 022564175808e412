"""Download a document whose web address the user names; addresses found in documents or answers are never fetched."""

import codecs
import ipaddress
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import suppress
from dataclasses import replace
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path, PurePosixPath
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from climassay.corpus.documents import ReadOptions, ReadResult, Skipped
from climassay.corpus.readers.file_types import find_file_type, read
from climassay.errors import DocumentError
from climassay.io import decompress, describe_error, format_size
from climassay.io.decoding import decode_text

TIMEOUT_SECONDS = 60.0
"""Maximum time without a response."""
MAX_SECONDS = 600.0
"""Maximum duration of a download."""
_CHUNK_BYTES = 1 << 20
_MAX_NAME_LENGTH = 100
_SAFE_CHARACTERS = "%/:=&?~+!$,;'@()*[]"
_ENDINGS = {
    "application/pdf": ".pdf",
    "application/x-pdf": ".pdf",
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
}
"""File name ending by media type; for other types, the address determines the ending."""


def is_address(name: str | Path) -> bool:
    """Return whether the name of a document is a web address."""
    return str(name).lower().startswith(("http://", "https://"))


def read_address(address: str, folder: Path, options: ReadOptions | None = None) -> ReadResult:
    """Download a document and read it; see :func:`climassay.corpus.read`.

    Args:
        address: Web address of the document; it becomes the document's ``url``, unless the options have one.
        folder: Folder in which the file is saved.
        options: Options for reading the file.

    Returns:
        The documents. If the download fails, the result has no documents and one reason.
    """
    options = options or ReadOptions()
    try:
        file = download(address, folder, options.max_bytes)
    except DocumentError as error:
        return ReadResult(address, (), (Skipped(address, str(error)),))
    return read(file, replace(options, url=options.url or address))


def download(address: str, folder: Path, max_bytes: int) -> Path:
    """Download a file into a new subfolder, and return its path.

    The file is named after the address or the server's suggestion, with an ending for the media type. A text whose
    encoding only the response states is saved as UTF-8 with a byte order mark.

    Args:
        address: Web address. Redirections to other web addresses are followed, but not from a server on the internet to
            one on this machine or its network, whose pages only this machine may be able to read.
        folder: Folder in which the subfolder is created.
        max_bytes: Maximum size in bytes, compressed and decompressed.

    Raises:
        DocumentError: The address is malformed, the server cannot be reached or refuses the request, or the file is too
            large.
    """
    try:
        request = urllib.request.Request(_encode_address(address), headers={"User-Agent": "climassay"})
        with _make_opener().open(request, timeout=TIMEOUT_SECONDS) as response:
            data, headers = _read_body(response, address, max_bytes), response.headers
        if headers.get("Content-Encoding", "").lower() in ("gzip", "x-gzip"):
            data = decompress(data, max_bytes)
    except urllib.error.HTTPError as error:
        with error:
            reason = f"{error.code} {' '.join(str(error.reason).split())}".strip()
        if error.code in (401, 403, 429):
            hint = "open it in a browser, save it, and name the file"
            raise DocumentError(f"{address} was refused by its server ({reason}): {hint}.") from None
        raise DocumentError(f"{address} cannot be fetched ({reason}).") from None
    except (OSError, ValueError, HTTPException) as error:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        reason = describe_error(cause) if isinstance(cause, Exception) else str(cause)
        raise DocumentError(f"{address} cannot be fetched ({reason}).") from None
    name = _choose_name(response.url, headers.get_filename(), headers.get_content_type(), data)
    charset = headers.get_content_charset()
    if charset not in (None, "utf-8", "utf8") and find_file_type(Path(name)) in ("html", "text", "markdown"):
        with suppress(ValueError):  # binary data, which the reader refuses
            data = codecs.BOM_UTF8 + decode_text(data, charset).encode()
    file = Path(tempfile.mkdtemp(dir=folder)) / name
    file.write_bytes(data)
    return file


def _make_opener() -> urllib.request.OpenerDirector:
    """Return an opener for one download, which speaks HTTP only and does not leave the internet once it is there."""
    is_first_public: bool | None = None

    def check_peer(connection: HTTPConnection) -> None:
        # A name may lead elsewhere each time that it is looked up, so the address of the open connection decides.
        nonlocal is_first_public
        is_public = _is_public(connection.sock.getpeername()[0])
        if is_first_public is None:
            is_first_public = is_public
        if is_first_public and not is_public:
            connection.close()
            raise OSError(f"it redirects to {connection.host}, which is not on the internet")

    class Connection(HTTPConnection):
        def connect(self) -> None:
            super().connect()
            check_peer(self)

    class SecureConnection(HTTPSConnection):
        def connect(self) -> None:
            super().connect()
            check_peer(self)

    class Handler(urllib.request.HTTPHandler):
        def http_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(Connection, req)

    class SecureHandler(urllib.request.HTTPSHandler):
        def https_open(self, req: urllib.request.Request) -> HTTPResponse:
            return self.do_open(SecureConnection, req)

    opener = urllib.request.OpenerDirector()
    handlers = [Handler(), SecureHandler(), urllib.request.ProxyHandler(), urllib.request.UnknownHandler()]
    handlers += [urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor()]
    for handler in (*handlers, urllib.request.HTTPRedirectHandler()):
        opener.add_handler(handler)
    return opener


def _is_public(address: str) -> bool:
    return ipaddress.ip_address(address).is_global


def _encode_address(address: str) -> str:
    """Return an address without fragment, with characters outside ASCII encoded.

    Raises:
        ValueError: The address has no host, or contains a password.
    """
    parts = urlsplit(address.strip())
    if not parts.hostname:
        raise ValueError("it names no server")
    if "@" in parts.netloc:
        raise ValueError("it contains a user name or password, which would be shown with every citation")
    host = parts.netloc.encode("idna").decode()
    path, query = (quote(part, safe=_SAFE_CHARACTERS) for part in (parts.path, parts.query))
    return urlunsplit((parts.scheme, host, path, query, ""))


def _read_body(response: HTTPResponse, address: str, max_bytes: int) -> bytes:
    chunks: list[bytes] = []
    size, end = 0, time.monotonic() + MAX_SECONDS
    while chunk := response.read(_CHUNK_BYTES):
        chunks.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise DocumentError(f"{address} is larger than the limit of {format_size(max_bytes)}.")
        if time.monotonic() > end:
            raise TimeoutError(f"the download took longer than {MAX_SECONDS / 60:g} minutes")
    return b"".join(chunks)


def _choose_name(address: str, suggestion: str | None, media_type: str, data: bytes) -> str:
    """Return a file name with an ending that fits the content: its first bytes, its media type, or the address."""
    parts = urlsplit(address)
    name = PurePosixPath((suggestion or unquote(parts.path)).replace("\\", "/")).name[-_MAX_NAME_LENGTH:]
    name = "".join(character for character in name if character.isprintable()) or parts.hostname or "page"
    ending = ".pdf" if data.startswith(b"%PDF-") else _ENDINGS.get(media_type, "")
    kind = find_file_type(Path(name))
    if media_type == "text/plain" and not ending and kind is None:
        ending = ".txt"
    return name if not ending or kind == find_file_type(Path(f"page{ending}")) else name + ending
