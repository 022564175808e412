"""A passage as a reference that can be copied."""

import re
from dataclasses import dataclass

from climassay.corpus.documents import Passage
from climassay.reporting.tables import escape_latex
from climassay.web.library.names import is_web_address

_YEAR = re.compile(r"\b(?:1[5-9]|20)\d{2}\b")
_KEY = re.compile(r"[^A-Za-z0-9:_-]+")


@dataclass(frozen=True, slots=True)
class Reference:
    """How a passage is cited."""

    text: str
    """In one line, with its permanent address."""
    bibtex: str


def reference(passage: Passage, address: str) -> Reference:
    """The reference of a passage.

    Args:
        passage: What is cited.
        address: Its permanent page on this server.
    """
    return Reference(f"{passage.citation}. {address}", _bibtex(passage, address))


def _bibtex(passage: Passage, address: str) -> str:
    year = _YEAR.search(passage.date or "")
    fields = {
        "title": escape_latex(passage.document),
        "series": escape_latex(passage.report or ""),
        "edition": escape_latex(passage.edition or ""),
        "chapter": escape_latex(passage.chapter or ""),
        "year": year.group() if year else "",
        "pages": _pages(passage),
        "url": _plain_address(passage.url) if is_web_address(passage.url) else "",
        "note": escape_latex(f"Passage {passage.id} of {passage.source}"),
        "annote": _plain_address(address),
    }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{_KEY.sub('-', passage.id)},", *lines, "}"])


def _pages(passage: Passage) -> str:
    if passage.first_page is None:
        return ""
    last = passage.last_page
    return str(passage.first_page) if last in (None, passage.first_page) else f"{passage.first_page}--{last}"


def _plain_address(address: str | None) -> str:
    """An address that cannot end the braces it stands in."""
    return re.sub(r"[{}\\\s]", lambda match: f"%{ord(match.group()):02X}", address or "")
