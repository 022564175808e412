"""Convert MathML to parts of a line: exponents raised, fractions with a slash."""

from collections.abc import Callable

from selectolax.lexbor import LexborNode

from climassay.corpus.readers.raised_text import Script, TextPart, join_parts

MAX_DEPTH = 60
"""Maximum nesting that is converted by structure; deeper elements are written as plain text."""
_SILENT = frozenset({"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "-comment"})
_INVISIBLE_OPERATORS = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064"))
_ATOMS = frozenset({"mn", "mi", "mtext", "mo", "ms"})


def math_parts(node: LexborNode) -> list[TextPart]:
    """Return the parts of a ``<math>`` element in reading order, or its alternative text if it is empty."""
    if not any((child.tag or "-") not in _SILENT and not (child.tag or "-").startswith("-") for child in node.iter()):
        return [TextPart(f" {node.attributes.get('alttext') or node.text()} ")]
    return [TextPart(" "), *_parts(node, 0), TextPart(" ")]


def _parts(node: LexborNode, depth: int) -> list[TextPart]:
    tag = (node.tag or "").rpartition(":")[2]
    if tag == "-text":
        return [TextPart("".join((node.text(deep=False) or "").split()).translate(_INVISIBLE_OPERATORS))]
    if tag in _SILENT:
        return []
    if tag in _ATOMS or depth > MAX_DEPTH:
        text = " ".join(node.text().split()).translate(_INVISIBLE_OPERATORS)
        return [TextPart(f" {text} " if tag == "mtext" else text)]
    if tag == "mspace":
        return [TextPart(" ")]
    if tag == "mfenced":
        attributes = node.attributes
        inside = [part for child in node.iter() for part in (TextPart(", "), *_parts(child, depth + 1))][1:]
        return [TextPart(attributes.get("open", "(") or ""), *inside, TextPart(attributes.get("close", ")") or "")]
    children = [child for child in node.iter() if (child.tag or "") not in _SILENT]
    write = _WRITERS.get(tag)
    if write is not None and len(children) >= _N_CHILDREN.get(tag, 1):
        return write(children, depth + 1)
    parts: list[TextPart] = []
    last_tag = ""
    for child in node.iter(include_text=True):
        written = [part for part in _parts(child, depth + 1) if part.text]
        if not written:
            continue
        if parts and parts[-1].text[-1:].isdigit() and written[0].text[:1].isdigit():
            # Figures of two expressions beside each other are two numbers; those of two <mn> are one.
            parts += [] if last_tag == child.tag == "mn" else [TextPart(" ")]
        parts += written
        last_tag = child.tag or ""
    return parts


def _grouped(node: LexborNode, depth: int) -> list[TextPart]:
    """Return the parts of an element, in brackets if there are several."""
    parts = _parts(node, depth)
    text = _text(parts)
    is_single = len(parts) == 1 or text.isalnum() or (text[:1] == "(" and text[-1:] == ")")
    return parts if is_single else [TextPart("("), *parts, TextPart(")")]


def _text(parts: list[TextPart]) -> str:
    return join_parts(parts).text.strip()


def _power(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [*_grouped(children[0], depth), TextPart(_text(_parts(children[1], depth)), Script.POWER)]


def _index(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [*_grouped(children[0], depth), TextPart(_text(_parts(children[1], depth)), Script.LOWERED)]


def _index_and_power(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [*_index(children, depth), TextPart(_text(_parts(children[2], depth)), Script.POWER)]


def _fraction(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [TextPart(" "), *_grouped(children[0], depth), TextPart("/"), *_grouped(children[1], depth), TextPart(" ")]


def _root(children: list[LexborNode], depth: int) -> list[TextPart]:
    inside = [part for child in children for part in _parts(child, depth)]
    return [TextPart("√("), *inside, TextPart(")")]


def _other_root(children: list[LexborNode], depth: int) -> list[TextPart]:
    degree = _text(_parts(children[1], depth))
    return [TextPart("("), *_parts(children[0], depth), TextPart(")"), TextPart(f"1/{degree}", Script.POWER)]


def _limits(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [*_parts(children[0], depth), *(part for child in children[1:] for part in _limit(child, depth))]


def _limit(node: LexborNode, depth: int) -> list[TextPart]:
    text = _text(_parts(node, depth))
    return [TextPart(f" [{text}] ")] if any(char.isalnum() for char in text) else [TextPart(text)]


def _rows(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [part for child in children for part in (*_parts(child, depth), TextPart("; "))]


def _row(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [part for child in children for part in (*_parts(child, depth), TextPart(" "))]


_WRITERS: dict[str, Callable[[list[LexborNode], int], list[TextPart]]] = {
    "msup": _power,
    "msub": _index,
    "msubsup": _index_and_power,
    "mfrac": _fraction,
    "msqrt": _root,
    "mroot": _other_root,
    "munder": _limits,
    "mover": _limits,
    "munderover": _limits,
    "mtable": _rows,
    "mtr": _row,
    "mstack": _rows,
    "mlongdiv": _rows,
    "msgroup": _rows,
    "mmultiscripts": _limits,
}
_N_CHILDREN = {"msup": 2, "msub": 2, "msubsup": 3, "mfrac": 2, "mroot": 2}
