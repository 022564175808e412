"""Convert MathML to parts of a line, with exponents as superscripts and fractions with a slash."""

from collections.abc import Callable

from selectolax.lexbor import LexborNode

from climassay.corpus.readers.superscripts import Script, TextPart, join_parts

MAX_DEPTH = 60
"""Maximum nesting depth of elements whose structure is converted; deeper elements are written as plain text."""
_IGNORED_TAGS = frozenset({"annotation", "annotation-xml", "mphantom", "maligngroup", "malignmark", "-comment"})
_INVISIBLE_OPERATORS = dict.fromkeys(map(ord, "\u2061\u2062\u2063\u2064"))
_TOKEN_TAGS = frozenset({"mn", "mi", "mtext", "mo", "ms"})


def convert_math(node: LexborNode) -> list[TextPart]:
    """Return the parts of a ``<math>`` element in reading order, or its alternative text if it is empty."""
    if not any(
        (child.tag or "-") not in _IGNORED_TAGS and not (child.tag or "-").startswith("-") for child in node.iter()
    ):
        return [TextPart(f" {node.attributes.get('alttext') or node.text()} ")]
    return [TextPart(" "), *_convert_node(node, 0), TextPart(" ")]


def _convert_node(node: LexborNode, depth: int) -> list[TextPart]:
    tag = (node.tag or "").rpartition(":")[2]
    if tag == "-text":
        return [TextPart("".join((node.text(deep=False) or "").split()).translate(_INVISIBLE_OPERATORS))]
    if tag in _IGNORED_TAGS:
        return []
    if tag in _TOKEN_TAGS or depth > MAX_DEPTH:
        text = " ".join(node.text().split()).translate(_INVISIBLE_OPERATORS)
        return [TextPart(f" {text} " if tag == "mtext" else text)]
    if tag == "mspace":
        return [TextPart(" ")]
    if tag == "mfenced":
        attributes = node.attributes
        content_parts = [part for child in node.iter() for part in (TextPart(", "), *_convert_node(child, depth + 1))][
            1:
        ]
        return [
            TextPart(attributes.get("open", "(") or ""),
            *content_parts,
            TextPart(attributes.get("close", ")") or ""),
        ]
    children = [child for child in node.iter() if (child.tag or "") not in _IGNORED_TAGS]
    convert = _CONVERTERS.get(tag)
    if convert is not None and len(children) >= _N_CHILDREN.get(tag, 1):
        return convert(children, depth + 1)
    parts: list[TextPart] = []
    last_tag = ""
    for child in node.iter(include_text=True):
        child_parts = [part for part in _convert_node(child, depth + 1) if part.text]
        if not child_parts:
            continue
        if parts and parts[-1].text[-1:].isdigit() and child_parts[0].text[:1].isdigit():
            # Figures of two expressions beside each other are two numbers; those of two <mn> are one.
            parts += [] if last_tag == child.tag == "mn" else [TextPart(" ")]
        parts += child_parts
        last_tag = child.tag or ""
    return parts


def _bracket_parts(node: LexborNode, depth: int) -> list[TextPart]:
    """Return the parts of an element, in brackets unless they are a single term."""
    parts = _convert_node(node, depth)
    text = _join_text(parts)
    is_single = len(parts) == 1 or text.isalnum() or (text[:1] == "(" and text[-1:] == ")")
    return parts if is_single else [TextPart("("), *parts, TextPart(")")]


def _join_text(parts: list[TextPart]) -> str:
    return join_parts(parts).text.strip()


def _convert_superscript(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [
        *_bracket_parts(children[0], depth),
        TextPart(_join_text(_convert_node(children[1], depth)), Script.EXPONENT),
    ]


def _convert_subscript(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [
        *_bracket_parts(children[0], depth),
        TextPart(_join_text(_convert_node(children[1], depth)), Script.SUBSCRIPT),
    ]


def _convert_subscript_and_superscript(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [
        *_convert_subscript(children, depth),
        TextPart(_join_text(_convert_node(children[2], depth)), Script.EXPONENT),
    ]


def _convert_fraction(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [
        TextPart(" "),
        *_bracket_parts(children[0], depth),
        TextPart("/"),
        *_bracket_parts(children[1], depth),
        TextPart(" "),
    ]


def _convert_square_root(children: list[LexborNode], depth: int) -> list[TextPart]:
    content_parts = [part for child in children for part in _convert_node(child, depth)]
    return [TextPart("√("), *content_parts, TextPart(")")]


def _convert_root(children: list[LexborNode], depth: int) -> list[TextPart]:
    degree = _join_text(_convert_node(children[1], depth))
    return [TextPart("("), *_convert_node(children[0], depth), TextPart(")"), TextPart(f"1/{degree}", Script.EXPONENT)]


def _convert_limits(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [
        *_convert_node(children[0], depth),
        *(part for child in children[1:] for part in _convert_limit(child, depth)),
    ]


def _convert_limit(node: LexborNode, depth: int) -> list[TextPart]:
    text = _join_text(_convert_node(node, depth))
    return [TextPart(f" [{text}] ")] if any(char.isalnum() for char in text) else [TextPart(text)]


def _convert_rows(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [part for child in children for part in (*_convert_node(child, depth), TextPart("; "))]


def _convert_row(children: list[LexborNode], depth: int) -> list[TextPart]:
    return [part for child in children for part in (*_convert_node(child, depth), TextPart(" "))]


_CONVERTERS: dict[str, Callable[[list[LexborNode], int], list[TextPart]]] = {
    "msup": _convert_superscript,
    "msub": _convert_subscript,
    "msubsup": _convert_subscript_and_superscript,
    "mfrac": _convert_fraction,
    "msqrt": _convert_square_root,
    "mroot": _convert_root,
    "munder": _convert_limits,
    "mover": _convert_limits,
    "munderover": _convert_limits,
    "mtable": _convert_rows,
    "mtr": _convert_row,
    "mstack": _convert_rows,
    "mlongdiv": _convert_rows,
    "msgroup": _convert_rows,
    "mmultiscripts": _convert_limits,
}
_N_CHILDREN = {"msup": 2, "msub": 2, "msubsup": 3, "mfrac": 2, "mroot": 2}
