"""Entries of BibTeX."""

import re
from collections.abc import Mapping

from climassay.reporting.tables import escape_latex


def bibtex_entry(key: str, texts: Mapping[str, str], addresses: Mapping[str, str]) -> str:
    """Return a BibTeX entry of the type ``misc``; empty fields are left out.

    Args:
        key: Key of the entry; characters that BibTeX does not allow in keys are replaced.
        texts: Fields that are escaped for LaTeX; ``author`` is an organisation, whose words are not parts of a name.
        addresses: Fields with web addresses, in which only braces, backslashes and spaces are escaped.
    """
    values = {name: escape_latex(text) for name, text in texts.items()}
    if "author" in values:
        values["author"] = f"{{{values['author']}}}"
    values |= {name: re.sub(r"[{}\\\s]", _percent_code, address) for name, address in addresses.items()}
    lines = [f"  {name} = {{{value}}}," for name, value in values.items() if value]
    return "\n".join([f"@misc{{{re.sub(r'[^A-Za-z0-9:_-]+', '-', key)},", *lines, "}"])


def _percent_code(match: re.Match[str]) -> str:
    return f"%{ord(match.group()):02X}"
