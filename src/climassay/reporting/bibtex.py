"""Create BibTeX entries."""

import re
from collections.abc import Mapping

from climassay.reporting.tables import escape_latex


def bibtex_entry(key: str, texts: Mapping[str, str], addresses: Mapping[str, str]) -> str:
    """Return a BibTeX entry of the type ``misc``, without empty fields.

    Args:
        key: Key of the entry; characters that BibTeX does not allow in keys are replaced.
        texts: Values by field, which are escaped for LaTeX. An ``author`` is treated as an organisation, whose name is
            not split into first and last name.
        addresses: Web addresses by field, in which only braces, backslashes and spaces are escaped.
    """
    values = {name: escape_latex(text) for name, text in texts.items()}
    if "author" in values:
        values["author"] = f"{{{values['author']}}}"
    values |= {
        name: re.sub(r"[{}\\\s]", lambda match: f"%{ord(match[0]):02X}", address) for name, address in addresses.items()
    }
    lines = [f"  {name} = {{{value}}}," for name, value in values.items() if value]
    return "\n".join([f"@misc{{{re.sub(r'[^A-Za-z0-9:_-]+', '-', key)},", *lines, "}"])
