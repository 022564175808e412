r"""Convert LaTeX in texts of models to plain characters, so that its figures and formulas can be compared.

Models write ``$1.5\,^\circ\mathrm{C}$`` and ``$\mathrm{CO}_2$`` where sources have 1.5 °C and CO₂. Dollar signs around
math would otherwise be read as a currency, and subscripts as numbers.
"""

import re

_MATH = re.compile(
    r"\$\$(?P<display>[^$]+)\$\$|\$(?=\S)(?P<inline>[^$\n]*[^\s$])\$(?!\d)|\\\((?P<round>(?:[^\\]|\\[^()])+)\\\)"
)
"""Pattern of math with its delimiters. Amounts of money ("$5 and $6", "$5-$6") do not match."""
_STYLED = re.compile(r"\\(?:mathrm|mathit|mathbf|mathsf|text|textrm|operatorname|ce)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"\\[dt]?frac\{([^{}]+)\}\{([^{}]+)\}")
_DEGREE = re.compile(r"\^?\{?\\(?:circ|degree)\b\}?")
_SCRIPT = re.compile(r"(?P<sign>[\^_])(?:\{(?P<braced>[^{}]*)\}|(?P<digits>-?\d+)(?![\d.,]))")
_BRACED_EXPONENT = re.compile(r"(?P<sign>\^)\{(?P<braced>[-−]?\d+)\}(?P<digits>)")
_SPACE = re.compile(r"\\[,;: ]|\\quad\b|(?<=\S)~(?=\S)")
_MAX_NESTING = 5
"""Maximum number of commands within each other that are converted."""
_SYMBOL = re.compile(r"\\([A-Za-z]+)\s?|\\([%$&#!])")
_SYMBOLS = dict(
    zip(
        (
            "times",
            "cdot",
            "pm",
            "approx",
            "sim",
            "leq",
            "le",
            "geq",
            "ge",
            "mu",
            "Delta",
            "delta",
            "to",
            "left",
            "right",
        ),
        ("×", "·", "±", "≈", "~", "≤", "≤", "≥", "≥", "μ", "Δ", "δ", "→", "", ""),
        strict=True,
    )
)
"""Characters of commands; the name of any other command remains."""
_RAISED = str.maketrans("0123456789+-−", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻")
_LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def plain_latex(text: str) -> str:
    r"""Replace math in dollar signs or ``\( \)``, and exponents and per cent signs outside of it, by plain characters.

    Examples:
        >>> plain_latex(r"Warming of $1.5\,^\circ\mathrm{C}$ at $2.7\ \mathrm{W\,m^{-2}}$.")
        'Warming of 1.5 °C at 2.7 W m⁻².'
    """
    if not any(sign in text for sign in "$\\^"):
        return text
    plain_text = _MATH.sub(lambda match: _convert_math(match["display"] or match["inline"] or match["round"]), text)
    return _BRACED_EXPONENT.sub(_convert_script, plain_text).replace("\\%", "%")


def _convert_math(math: str) -> str:
    plain_text = _SPACE.sub(" ", _DEGREE.sub("°", math))
    for _ in range(_MAX_NESTING):
        previous_text = plain_text
        plain_text = _FRACTION.sub(r"\1/\2", _STYLED.sub(r"\1", _SCRIPT.sub(_convert_script, plain_text)))
        if plain_text == previous_text:
            break
    plain_text = _SYMBOL.sub(lambda match: _SYMBOLS.get(match[1], match[1]) if match[1] else match[2], plain_text)
    return plain_text.replace("{", "").replace("}", "")


def _convert_script(match: re.Match[str]) -> str:
    content = match["digits"] if match["braced"] is None else match["braced"]
    return content.translate(_RAISED if match["sign"] == "^" else _LOWERED)
