"""Damage to files, the same for the same seed: blind damage to bytes, or damage that keeps JSON, TOML and zip whole."""

import copy
import gzip
import io
import json
import random
import struct
import tomllib
import zipfile
from collections.abc import Callable, Iterator

HUGE_NUMBER = "9" * 5000
"""More digits than Python turns into a number."""
HOSTILE_TEXTS = (
    b"\x00", b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xc3", b"\x1a", b"\r", b"\x0c", b"\x1b[2J",
    b"\xe2\x80\xa8",
    HUGE_NUMBER.encode(), b"-1e999", b"NaN", b"Infinity", b"\\ud800", b'"' * 3, b"'''", b"%s%n{{7*7}}", b"../../../etc",
    b"=cmd|'/c'!A1", b"<!ENTITY a 'b'>", b"]" * 50, b"<b>" * 200, b"a" * 70_000,
)  # fmt: skip
HOSTILE_VALUES = (
    None, True, -1, 0, 2**63, 2**200, 1e308, float("nan"), float("inf"), "", " ", "\x00", "\ud800", "9" * 400,
    "é" * 3000,
    [], {}, [[]], [None], {"a": None}, [1, "a", None], "nan", "1e999", "-0", "0001-13-45", [{}], {"": ""},
)  # fmt: skip


def mutated(data: bytes, kind: str, seed: int) -> bytes:
    """A file, damaged.

    Args:
        data: The file as it should be.
        kind: ``json``, ``jsonl``, ``toml``, ``zip``, ``safetensors``, ``gzip`` or ``bytes``: what the damage may know.
        seed: Decides the damage.
    """
    draw = random.Random(f"{kind}-{seed}")
    known = _KNOWING.get(kind)
    if known is not None and draw.random() < 0.65:
        return known(data, draw)
    damage = draw.choice(_BLIND)
    for _ in range(draw.choice((1, 1, 1, 2, 5))):
        data = damage(data, draw)
    return data


def _flip(data: bytes, draw: random.Random) -> bytes:
    changed = bytearray(data or b"\0")
    for _ in range(draw.choice((1, 2, 8, 64))):
        changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    return bytes(changed)


def _overwrite(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    return data[:start] + draw.randbytes(draw.choice((1, 4, 32))) + data[start + draw.randrange(40) :]


def _truncate(data: bytes, draw: random.Random) -> bytes:
    return data[: draw.randrange(len(data) + 1)]


def _splice(data: bytes, draw: random.Random) -> bytes:
    one, other = sorted((draw.randrange(len(data) + 1), draw.randrange(len(data) + 1)))
    part = data[one:other][:4096]
    place = draw.randrange(len(data) + 1)
    return data[:place] + part * draw.choice((1, 1, 3, 30)) + data[place:]


def _drop(data: bytes, draw: random.Random) -> bytes:
    start = draw.randrange(len(data) + 1)
    return data[:start] + data[start + draw.randrange(1, 200) :]


def _insert(data: bytes, draw: random.Random) -> bytes:
    place = draw.randrange(len(data) + 1)
    return data[:place] + draw.choice(HOSTILE_TEXTS) + data[place:]


def _number(data: bytes, draw: random.Random) -> bytes:
    """A digit of the file becomes a huge number."""
    digits = [place for place, byte in enumerate(data) if 48 <= byte <= 57]
    if not digits:
        return _insert(data, draw)
    place = draw.choice(digits)
    return data[:place] + draw.choice((HUGE_NUMBER, "1e999", "-", "18446744073709551616")).encode() + data[place + 1 :]


def _recode(data: bytes, draw: random.Random) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(draw.choice(("utf-16", "utf-32", "cp1252", "utf-7", "shift_jis", "utf-8-sig")), "replace")


def _other_file(data: bytes, draw: random.Random) -> bytes:
    return draw.choice((b"", b"\n", b"\0" * 5000, draw.randbytes(3000), b"%PDF-1.7\n", b"PK\3\4", b"PAR1", b"\x1f\x8b"))


_BLIND: tuple[Callable[[bytes, random.Random], bytes], ...] = (
    _flip, _overwrite, _truncate, _splice, _drop, _insert, _number, _recode, _other_file,
)  # fmt: skip


def _places(value: object) -> Iterator[tuple[dict | list, str | int]]:
    """Every place of a tree that holds something, by its holder."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, held in list(entries):
        yield value, name
        yield from _places(held)


def _damaged_tree(value: object, draw: random.Random) -> object:
    for _ in range(draw.choice((1, 1, 2, 4))):
        places = list(_places(value))
        if not places or draw.random() < 0.04:
            return copy.deepcopy(draw.choice(HOSTILE_VALUES))
        holder, name = draw.choice(places)
        act = draw.random()
        if act < 0.2:
            del holder[name]
        elif act < 0.3 and isinstance(holder, dict):
            holder[draw.choice(("", "unknown", "é", "\x00", "__class__"))] = copy.deepcopy(draw.choice(HOSTILE_VALUES))
        elif act < 0.38:
            holder[name] = _deep(draw.choice((100, 20_000)))
        else:
            holder[name] = copy.deepcopy(draw.choice(HOSTILE_VALUES))
    return value


def _deep(depth: int) -> str:
    return f"@deep{depth}@"


def _write_json(value: object) -> bytes:
    text = json.dumps(value)
    for depth in (100, 20_000):
        text = text.replace(f'"@deep{depth}@"', "[" * depth + "]" * depth)
    return text.encode()


def _json(data: bytes, draw: random.Random) -> bytes:
    return _write_json(_damaged_tree(json.loads(data), draw))


def _jsonl(data: bytes, draw: random.Random) -> bytes:
    lines = data.rstrip(b"\n").split(b"\n")
    for _ in range(draw.choice((1, 1, 3))):
        place = draw.randrange(len(lines))
        try:
            lines[place] = _json(lines[place], draw)
        except (ValueError, RecursionError):
            lines[place] = _flip(lines[place], draw)
    return b"\n".join(lines) + b"\n"


def _toml(data: bytes, draw: random.Random) -> bytes:
    tree = _damaged_tree(tomllib.loads(data.decode()), draw)
    return _write_toml(tree).encode("utf-8", "surrogatepass")


def _write_toml(value: object) -> str:
    if not isinstance(value, dict):
        return f"value = {_toml_value(value)}\n"
    return "".join(f"{_toml_value(str(name))} = {_toml_value(held)}\n" for name, held in value.items())


def _toml_value(value: object) -> str:
    if isinstance(value, str) and value.startswith("@deep"):
        depth = int(value.strip("@dep"))
        return "[" * depth + "]" * depth
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, int):
        return hex(value) if value > 2**64 else str(value)
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_toml_value(str(name))} = {_toml_value(held)}" for name, held in value.items()) + "}"
    return json.dumps("" if value is None else value)


def _zip(data: bytes, draw: random.Random) -> bytes:
    """An entry of a zip is damaged, a bomb, missing, or has a strange name; the zip itself is in order."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as book, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        names = book.namelist()
        chosen = draw.choice(names)
        for name in names:
            content = book.read(name)
            if name == chosen:
                act = draw.randrange(6)
                if act == 0:
                    continue
                content = b"a" * 20_000_000 if act == 1 else mutated(content, "bytes", draw.randrange(10**6))
                name = draw.choice(("../" + name, "/" + name, name * 50)) if act == 2 else name
            made.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
    return target.getvalue()


def _safetensors(data: bytes, draw: random.Random) -> bytes:
    length = struct.unpack("<Q", data[:8])[0]
    if draw.random() < 0.15:
        return struct.pack("<Q", draw.choice((0, 1, 2**40, 2**63, len(data)))) + data[8:]
    header = json.loads(data[8 : 8 + length])
    part = header["__metadata__"] if draw.random() < 0.7 else header
    name = draw.choice(list(part))
    if part is header and name != "__metadata__":
        _damaged_tree(header[name], draw)
    elif part is not header:
        # Facts stand in the header as JSON in a text.
        try:
            part[name] = _write_json(_damaged_tree(json.loads(part[name]), draw)).decode()
        except ValueError:
            part[name] = "{"
    text = _write_json(header)
    return struct.pack("<Q", len(text)) + text + data[8 + length :]


def _gzip(data: bytes, draw: random.Random) -> bytes:
    if draw.random() < 0.1:
        return gzip.compress(b"a,b\n" + b"\0" * 8_000_000, 9, mtime=0)
    return gzip.compress(mutated(gzip.decompress(data), "bytes", draw.randrange(10**6)), mtime=0)


_KNOWING: dict[str, Callable[[bytes, random.Random], bytes]] = {
    "json": _json, "jsonl": _jsonl, "toml": _toml, "zip": _zip, "safetensors": _safetensors, "gzip": _gzip,
}  # fmt: skip
