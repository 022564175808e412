"""Tables for papers: LaTeX with the rules of ``booktabs``."""

from climassay.reporting.tables import Table

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\N{PLUS-MINUS SIGN}": r"$\pm$",
    "\N{MINUS SIGN}": r"$-$",
    "\N{GREATER-THAN OR EQUAL TO}": r"$\geq$",
    "\N{LESS-THAN OR EQUAL TO}": r"$\leq$",
}


def escape_latex(text: str) -> str:
    """Text with every character that LaTeX would take for a command or that its fonts may lack written out."""
    return "".join(_SPECIAL.get(character, character) for character in " ".join(text.split()))


def as_latex(table: Table) -> str:
    r"""A ``table`` environment with ``booktabs`` rules; the preamble needs ``\usepackage{booktabs}``.

    The best cell of a group is bold, the best of a column underlined. A group's name stands in its first row only, and
    a thin rule parts groups.
    """
    columns = "".join("r" if column.align == "right" else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escape_latex(table.title)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(escape_latex(column.label) for column in table.columns) + r" \\",
        r"\midrule",
    ]
    before: tuple[str, ...] | None = None
    for number, row in enumerate(table.rows):
        group = row[: table.grouped]
        repeated = table.grouped > 0 and group == before
        if table.grouped and before is not None and not repeated:
            lines.append(r"\midrule")
        cells = ["" if repeated and place < table.grouped else _cell(table, number, place) for place in range(len(row))]
        lines.append(" & ".join(cells) + r" \\")
        before = group
    lines += [r"\bottomrule", r"\end{tabular}"]
    note = table.explained("Bold", "Underlined")
    if note:
        lines += [r"\par\smallskip", rf"{{\footnotesize {escape_latex(note)}}}"]
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def _cell(table: Table, row: int, column: int) -> str:
    text = escape_latex(table.rows[row][column])
    if table.is_marked(row, column, "top"):
        text = rf"\underline{{{text}}}"
    if table.is_marked(row, column, "best") or row in table.strong:
        text = rf"\textbf{{{text}}}"
    return text
