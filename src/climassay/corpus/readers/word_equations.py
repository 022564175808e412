"""Write Word equations (Office Math Markup) as one line of text that preserves exponents, indices and fractions."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_SUPERSCRIPTS = dict(zip("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ", strict=True))
_SUBSCRIPTS = dict(zip("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎", strict=True))


def format_equation(element: ET.Element) -> str:
    """Return an equation as one line of text, for example ``ΔF=5.35 ln(C/C₀)`` or ``(a+1)/(b−2)``.

    Superscripts and subscripts that consist of digits and signs become Unicode characters; others follow ``^`` and
    ``_``. Rows of matrices and equation arrays are separated by semicolons.

    Args:
        element: An ``m:oMath`` or ``m:oMathPara`` element, or any element inside one. The caller must limit its depth,
            because the function is recursive.
    """
    name = element.tag.removeprefix(MATH)
    if name in ("t", f"{_WORD}t"):
        return element.text or ""
    if name in ("del", f"{_WORD}del", f"{_WORD}moveFrom") or name.endswith("Pr"):
        return ""
    format_element = _FORMATTERS.get(name)
    return format_element(element) if format_element else "".join(map(format_equation, element))


def _format_child(element: ET.Element, name: str) -> str:
    part = element.find(MATH + name)
    return "" if part is None else format_equation(part).strip()


def _read_property(element: ET.Element, name: str, default: str) -> str:
    """Return the value of a property, such as the bracket of a delimiter; an empty value means no bracket."""
    setting = element.find(f"{MATH}{element.tag.removeprefix(MATH)}Pr/{MATH}{name}")
    return default if setting is None else setting.get(f"{MATH}val", "")


def _bracket(text: str) -> str:
    """Put a text in brackets unless it is a single word or number."""
    return text if text.replace(".", "").isalnum() else f"({text})"


def _format_script(text: str, characters: dict[str, str], sign: str) -> str:
    if not text:
        return ""
    if all(character in characters for character in text):
        return "".join(characters[character] for character in text)
    return sign + _bracket(text)


def _format_superscript(element: ET.Element) -> str:
    return _format_script(_format_child(element, "sup"), _SUPERSCRIPTS, "^")


def _format_subscript(element: ET.Element) -> str:
    return _format_script(_format_child(element, "sub"), _SUBSCRIPTS, "_")


def _format_fraction(element: ET.Element) -> str:
    return f"{_bracket(_format_child(element, 'num'))}/{_bracket(_format_child(element, 'den'))}"


def _format_root(element: ET.Element) -> str:
    return f"{_format_script(_format_child(element, 'deg'), _SUPERSCRIPTS, '')}√{_bracket(_format_child(element, 'e'))}"


def _format_brackets(element: ET.Element) -> str:
    separator = _read_property(element, "sepChr", "|")
    content = separator.join(format_equation(part).strip() for part in element.findall(f"{MATH}e"))
    return f"{_read_property(element, 'begChr', '(')}{content}{_read_property(element, 'endChr', ')')}"


def _format_operator(element: ET.Element) -> str:
    sign = _read_property(element, "chr", "∫")
    return f"{sign}{_format_subscript(element)}{_format_superscript(element)} {_format_child(element, 'e')}"


def _make_limit_formatter(sign: str) -> Callable[[ET.Element], str]:
    return lambda element: f"{_format_child(element, 'e')}{sign}{_bracket(_format_child(element, 'lim'))} "


def _format_rows(element: ET.Element) -> str:
    rows = element.findall(f"{MATH}mr") or element.findall(f"{MATH}e")
    cells = ([*row] if row.tag == f"{MATH}mr" else [row] for row in rows)
    return "; ".join(" ".join(format_equation(cell).strip() for cell in row) for row in cells)


_FORMATTERS: dict[str, Callable[[ET.Element], str]] = {
    "oMathPara": lambda element: "; ".join(filter(None, (format_equation(part).strip() for part in element))),
    "f": _format_fraction,
    "sSup": lambda element: _format_child(element, "e") + _format_superscript(element),
    "sSub": lambda element: _format_child(element, "e") + _format_subscript(element),
    "sSubSup": lambda element: _format_child(element, "e") + _format_subscript(element) + _format_superscript(element),
    "sPre": lambda element: _format_subscript(element) + _format_superscript(element) + _format_child(element, "e"),
    "rad": _format_root,
    "d": _format_brackets,
    "nary": _format_operator,
    "func": lambda element: f"{_format_child(element, 'fName')} {_bracket(_format_child(element, 'e'))}",
    "limLow": _make_limit_formatter("_"),
    "limUpp": _make_limit_formatter("^"),
    "m": _format_rows,
    "eqArr": _format_rows,
}
