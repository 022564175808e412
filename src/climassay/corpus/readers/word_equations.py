"""Write Word equations (Office Math Markup) as one line of text that keeps the meaning of digits."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_RAISED = dict(zip("0123456789+-−=()ni", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿⁱ", strict=True))
_LOWERED = dict(zip("0123456789+-−=()", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎", strict=True))


def equation_text(element: ET.Element) -> str:
    """Return an equation as one line of text, for example ``ΔF=5.35 ln(C/C₀)`` or ``(a+1)/(b−2)``.

    Superscripts and subscripts of digits and signs become Unicode characters, others follow ``^`` and ``_``. Rows of
    matrices and equation arrays are separated by semicolons.

    Args:
        element: An ``m:oMath`` or ``m:oMathPara`` element, or any element within one. The caller must limit its
            depth, because the function is recursive.
    """
    name = element.tag.removeprefix(MATH)
    if name in ("t", f"{_WORD}t"):
        return element.text or ""
    if name in ("del", f"{_WORD}del", f"{_WORD}moveFrom") or name.endswith("Pr"):
        return ""
    write = _WRITERS.get(name)
    return write(element) if write else "".join(map(equation_text, element))


def _part(element: ET.Element, name: str) -> str:
    part = element.find(MATH + name)
    return "" if part is None else equation_text(part).strip()


def _setting(element: ET.Element, name: str, default: str) -> str:
    """Return a property's value, such as the bracket of a delimiter; an empty value means that it is not drawn."""
    setting = element.find(f"{MATH}{element.tag.removeprefix(MATH)}Pr/{MATH}{name}")
    return default if setting is None else setting.get(f"{MATH}val", "")


def _grouped(text: str) -> str:
    """Put a text in brackets unless it is one word or number."""
    return text if text.replace(".", "").isalnum() else f"({text})"


def _shifted(text: str, characters: dict[str, str], sign: str) -> str:
    if not text:
        return ""
    if all(character in characters for character in text):
        return "".join(characters[character] for character in text)
    return sign + _grouped(text)


def _superscript(element: ET.Element) -> str:
    return _shifted(_part(element, "sup"), _RAISED, "^")


def _subscript(element: ET.Element) -> str:
    return _shifted(_part(element, "sub"), _LOWERED, "_")


def _fraction(element: ET.Element) -> str:
    return f"{_grouped(_part(element, 'num'))}/{_grouped(_part(element, 'den'))}"


def _root(element: ET.Element) -> str:
    return f"{_shifted(_part(element, 'deg'), _RAISED, '')}√{_grouped(_part(element, 'e'))}"


def _brackets(element: ET.Element) -> str:
    separator = _setting(element, "sepChr", "|")
    inner = separator.join(equation_text(part).strip() for part in element.findall(f"{MATH}e"))
    return f"{_setting(element, 'begChr', '(')}{inner}{_setting(element, 'endChr', ')')}"


def _operator(element: ET.Element) -> str:
    return f"{_setting(element, 'chr', '∫')}{_subscript(element)}{_superscript(element)} {_part(element, 'e')}"


def _limit(sign: str) -> Callable[[ET.Element], str]:
    return lambda element: f"{_part(element, 'e')}{sign}{_grouped(_part(element, 'lim'))} "


def _rows(element: ET.Element) -> str:
    rows = element.findall(f"{MATH}mr") or element.findall(f"{MATH}e")
    cells = ([*row] if row.tag == f"{MATH}mr" else [row] for row in rows)
    return "; ".join(" ".join(equation_text(cell).strip() for cell in row) for row in cells)


_WRITERS: dict[str, Callable[[ET.Element], str]] = {
    "oMathPara": lambda element: "; ".join(filter(None, (equation_text(part).strip() for part in element))),
    "f": _fraction,
    "sSup": lambda element: _part(element, "e") + _superscript(element),
    "sSub": lambda element: _part(element, "e") + _subscript(element),
    "sSubSup": lambda element: _part(element, "e") + _subscript(element) + _superscript(element),
    "sPre": lambda element: _subscript(element) + _superscript(element) + _part(element, "e"),
    "rad": _root,
    "d": _brackets,
    "nary": _operator,
    "func": lambda element: f"{_part(element, 'fName')} {_grouped(_part(element, 'e'))}",
    "limLow": _limit("_"),
    "limUpp": _limit("^"),
    "m": _rows,
    "eqArr": _rows,
}
