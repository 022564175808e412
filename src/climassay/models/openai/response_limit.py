"""Limit on the size of a server's responses, which are read into memory."""

from collections.abc import AsyncIterator, Iterator

import httpx2

from climassay.models.openai.replies import BadReplyError

MAX_RESPONSE_BYTES = 64 * 2**20
"""Maximum size of a response in bytes, both as received and after decompression."""
MAX_INFLATION = 1032
"""Maximum ratio of the sizes of a text with and without DEFLATE compression (zlib, "Technical Details")."""
REQUEST_HEADERS = {"Accept-Encoding": "identity"}
"""Headers that ask for uncompressed responses."""


def limit_response(response: httpx2.Response) -> None:
    """Limit the size of a response that has not been read yet.

    If it grows too large, reading it raises BadReplyError.

    Raises:
        BadReplyError: The response is compressed in a way that has no known limit.
    """
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "deflate"):
        raise BadReplyError(f"The server's answer is compressed ({encoding[:40]}), which was not asked for.")
    max_bytes = MAX_RESPONSE_BYTES if encoding == "identity" else MAX_RESPONSE_BYTES // MAX_INFLATION
    stream = response.stream
    if isinstance(stream, httpx2.AsyncByteStream):
        response.stream = _LimitedAsyncStream(stream, max_bytes)
    elif isinstance(stream, httpx2.SyncByteStream):
        response.stream = _LimitedStream(stream, max_bytes)


async def limit_async_response(response: httpx2.Response) -> None:
    """Limit the size of a response as :func:`limit_response` does, for clients whose hooks are coroutines."""
    limit_response(response)


class _ByteCount:
    def __init__(self, max_bytes: int) -> None:
        self._n_left = self._max_bytes = max_bytes

    def add(self, part: bytes) -> bytes:
        self._n_left -= len(part)
        if self._n_left < 0:
            raise BadReplyError(f"The server's answer is larger than {self._max_bytes / 2**20:.3g} MB.")
        return part


class _LimitedStream(httpx2.SyncByteStream):
    def __init__(self, stream: httpx2.SyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._count = _ByteCount(max_bytes)

    def __iter__(self) -> Iterator[bytes]:
        return map(self._count.add, self._stream)

    def close(self) -> None:
        self._stream.close()


class _LimitedAsyncStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, max_bytes: int) -> None:
        self._stream = stream
        self._count = _ByteCount(max_bytes)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for part in self._stream:
            yield self._count.add(part)

    async def aclose(self) -> None:
        await self._stream.aclose()
