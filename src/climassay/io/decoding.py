"""Decode text whose encoding is unknown or wrongly declared, following the rules of browsers."""

import codecs
import re
from contextlib import suppress

import webencodings

_BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_STRAY_BYTE_HANDLER = "climassay.stray-windows-1252"
"""Name under which the handler for decoding errors is registered with Python."""
_PYTHON_NAMES = {"shift_jis": "cp932", "euc-kr": "cp949", "big5": "big5hkscs", "gbk": "gb18030"}
"""Python codecs for encodings that the WHATWG standard extends under their original names."""
MIN_UTF8_CHARACTERS = 8
"""If valid UTF-8 has at least this many non-ASCII characters, the declared encoding is ignored."""
SAMPLE_BYTES = 1 << 16
MAX_CONTROL_SHARE = 0.02
"""Maximum fraction of control characters; bytes that decode to a higher fraction are not text."""
_CONTROL = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")


def decode_text(data: bytes, label: str | None = None) -> str:
    """Decode text of unknown or declared encoding.

    The encoding is determined by the first of these that applies: a byte order mark, UTF-16 (recognised by its zero
    bytes), the declared encoding, UTF-8, windows-1252. Single bytes that are invalid in UTF-8 are decoded as
    windows-1252 if most other non-ASCII characters are valid.

    Args:
        data: The encoded text.
        label: Name of the encoding that the file declares, with the meaning that the WHATWG Encoding standard gives it
            (``iso-8859-1`` and ``latin1`` mean windows-1252).

    Raises:
        ValueError: The bytes are not text; the message is worded to follow the file's name.
    """
    for mark, encoding in _BYTE_ORDER_MARKS:
        if data.startswith(mark):
            is_utf8 = encoding == "utf-8-sig"
            return _decode_utf8_with_strays(data[len(mark) :]) if is_utf8 else _decode_strictly(data, encoding)
    sample = data[:SAMPLE_BYTES]
    if b"\0" in sample:
        n_even, n_odd = sample[::2].count(0), sample[1::2].count(0)
        n_half = len(sample) / 2
        if n_odd > 0.3 * n_half and n_even < 0.05 * n_half:
            return _decode_strictly(data, "utf-16-le")
        if n_even > 0.3 * n_half and n_odd < 0.05 * n_half:
            return _decode_strictly(data, "utf-16-be")
        raise ValueError("is not a text file (it holds binary data)")
    text = _decode_labelled(data, label) if label else _decode_utf8_with_strays(data)
    if len(_CONTROL.findall(text[:SAMPLE_BYTES])) > MAX_CONTROL_SHARE * len(text[:SAMPLE_BYTES]):
        raise ValueError("is not a text file (it holds binary data)")
    return text


def _decode_strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError:
        raise ValueError(f"begins as {encoding} text but is damaged or truncated") from None


def _decode_labelled(data: bytes, label: str) -> str:
    encoding = webencodings.lookup(label)
    name = _PYTHON_NAMES.get(encoding.name, encoding.codec_info.name) if encoding is not None else "utf-8"
    if name.startswith("utf"):
        return _decode_utf8_with_strays(data)  # a label that ASCII bytes can spell is not UTF-16
    with suppress(UnicodeDecodeError):
        text = data.decode("utf-8")  # a file may have been re-encoded without changing its declaration
        if name == "cp1252" or sum(not char.isascii() for char in text) >= MIN_UTF8_CHARACTERS:
            return text
    with suppress(UnicodeDecodeError):
        return data.decode(name)
    return data.decode(name, "replace" if name != "cp1252" else _STRAY_BYTE_HANDLER)


def _decode_utf8_with_strays(data: bytes) -> str:
    """Decode UTF-8 that contains single invalid bytes of windows-1252.

    If many bytes are invalid, decode all as windows-1252.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        text = data.decode("utf-8", _STRAY_BYTE_HANDLER)
    n_high_bytes = sum(data.count(byte) for byte in range(0x80, 0x100))
    n_characters = sum(not char.isascii() for char in text)
    # Each character of UTF-8 that is not ASCII has two to four such bytes, each stray is one.
    return text if n_high_bytes > 1.5 * n_characters else data.decode("cp1252", _STRAY_BYTE_HANDLER)


def _decode_stray_bytes(error: UnicodeError) -> tuple[str, int]:
    """Decode an invalid byte as windows-1252, or as a control character if windows-1252 does not define it."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    byte = error.object[error.start : error.start + 1]
    try:
        return byte.decode("cp1252"), error.start + 1
    except UnicodeDecodeError:
        return byte.decode("latin-1"), error.start + 1


codecs.register_error(_STRAY_BYTE_HANDLER, _decode_stray_bytes)
