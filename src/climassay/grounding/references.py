"""Check whether the references of a text exist.

References are numbers in brackets (read by :mod:`climassay.grounding.citations`), works named by author and year or
page, titles of documents, DOIs and web addresses. Numbers are looked up in the text's list of references and among the
passages of its prompt, works and addresses among the documents of the collections. DOIs and addresses are validated by
their form, and requested only if requests are allowed.
"""

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from ipaddress import ip_address
from typing import IO, TYPE_CHECKING, Any, Literal, Self
from urllib.parse import quote, urlsplit

from climassay.grounding.citations import CitingSentence, Reference, read_citations

if TYPE_CHECKING:
    from climassay.corpus.collection_storage import StoredDocument

ReferenceKind = Literal["number", "work", "doi", "url"]
ReferenceStatus = Literal["exists", "invented", "malformed", "not checked"]
"""``invented``: a number without an entry, a page after the last one, or an address for which the server returns 404 or
410. ``malformed``: not a valid DOI or address. ``not checked``: could not be looked up.
"""
TIMEOUT_SECONDS = 10
"""Timeout of a request in seconds."""

_HEADING = re.compile(
    r"\s*(?:#+\s*|\*\*)?(?:references|sources|bibliography|literature(?:\s+cited)?|works\s+cited|citations|further\s+reading)"
    r"\s*:?\s*(?:\*\*)?\s*:?\s*",
    re.IGNORECASE,
)
_NUMBER = r"[\[(\u3010](?P<bracket>\d{1,3})[\])\u3011]:?"
_ENTRY = re.compile(rf"\s*(?:[-*\u2022]\s+)?(?:{_NUMBER}|(?P<plain>\d{{1,3}})[.)])\s+(?P<entry>\S.*)")
_BRACKETED_ENTRY = re.compile(rf"\s*(?:[-*\u2022]\s+)?{_NUMBER}\s+\S.*")
_BULLET = re.compile(r"\s*[-*\u2022]\s+(?P<entry>\S.*)")
_NUMBERED_LINK = re.compile(r"(\[\d{1,3}\])\((https?://[^\s()]+)\)")
_DOI = re.compile(
    r"(?:https?://)?(?:dx\.)?doi\.org/(?P<link>[^\s<>\"\]]*)|\bdoi:?\s*(?P<named>10[^\s<>\"\]]*|[^\s<>\"\]/]{0,200}/[^\s<>\"\]]*)"
    r"|\b(?P<bare>10\.\d{4,9}/[^\s<>\"\]]+)",
    re.IGNORECASE,
)
_DOI_FORM = re.compile(r"10\.\d{4,9}(?:\.\d+)*/\S+")
_URL = re.compile(r"\b(?:https?:(?:/|\b)[^\s<>\"\]]*|www\.[^\s<>\"\]]+)", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,60}[a-z0-9]", re.IGNORECASE)
_RESERVED_HOST = re.compile(r"(?:.+\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)", re.IGNORECASE)
"""Pattern of reserved host names (RFC 2606)."""
_REPORT_PAGE = re.compile(
    r"\b(?P<name>(?:IPCC|AR\s?[3-6]|SR15|SRCCL|SROCC|SREX)(?:[\s,]+(?:AR\s?[3-6]|WG\s?(?:[1-3]|I{1,3})|SYR|SPM|TS|(?:19|20)\d\d))*),?"
    r"\s+(?:on\s+)?(?:pp?\.|pages?)\s*(?P<page>\d{1,4})"
)
"""Pattern of a reference, in running text, to a page of an IPCC report."""
_TRAILING_PUNCTUATION = ".,;:!?'\u2019\u201d*_"


@dataclass(frozen=True, slots=True)
class CheckedReference:
    """Reference with the result of its check."""

    text: str
    """Text of the reference as written, or ``[3]`` for a citation by number."""
    kind: ReferenceKind
    status: ReferenceStatus
    reason: str
    """Reason for the status, in one sentence."""
    document: str | None = None
    """Title of the document, in the collections, that matches the reference; None if there is none."""


@dataclass(frozen=True, slots=True)
class ReferenceList:
    """List of references at the end of a text, and the text before the list."""

    body: str
    numbered: Mapping[int, str]
    """Numbered entries of the list, by number."""
    unnumbered: tuple[str, ...] = ()
    """Entries of the list without a number."""

    @classmethod
    def split(cls, text: str) -> Self:
        """Split a text at a heading such as "References", or before numbered lines in brackets at its end."""
        lines = text.splitlines()
        heading_index = next((index for index in reversed(range(len(lines))) if _HEADING.fullmatch(lines[index])), None)
        if heading_index is not None:
            start, entries = heading_index, lines[heading_index + 1 :]
        else:
            start = len(lines)
            while start and (not lines[start - 1].strip() or _BRACKETED_ENTRY.fullmatch(lines[start - 1])):
                start -= 1
            entries = lines[start:]
        numbered_entries: dict[int, str] = {}
        unnumbered_entries: list[str] = []
        for line in filter(str.strip, entries):
            if match := _ENTRY.fullmatch(line):
                numbered_entries.setdefault(int(match["bracket"] or match["plain"]), match["entry"].strip())
            else:
                bullet = _BULLET.fullmatch(line)
                unnumbered_entries.append(bullet["entry"].strip() if bullet else line.strip())
        return cls("\n".join(lines[:start]).rstrip(), numbered_entries, tuple(unnumbered_entries))


@dataclass(frozen=True)
class ReferenceChecker:
    """Looks up references in the collections, among numbered passages and in a list of references.

    Args:
        documents: Documents of the collections.
        passages: Citations of numbered passages by number, for example those in the prompt of the text's author.
        entries: Entries of the text's list of references, by number.
        address_exists: Function such as :func:`check_address` that returns whether an address exists, or None if that
            is unknown. Without it, nothing is requested.
    """

    documents: "Sequence[StoredDocument]" = ()
    passages: Mapping[int, str] = field(default_factory=dict)
    entries: Mapping[int, str] = field(default_factory=dict)
    address_exists: Callable[[str], bool | None] | None = None
    _answers: dict[str, bool | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def valid_numbers(self) -> frozenset[int]:
        """Numbers that a citation may contain: those of passages and of list entries."""
        return frozenset({*self.passages, *self.entries})

    @cached_property
    def _document_texts(self) -> "list[tuple[str, StoredDocument]]":
        return [
            (" ".join(filter(None, (document.title, document.source, document.report, document.date))), document)
            for document in self.documents
        ]

    def check(self, sentence: CitingSentence) -> tuple[CheckedReference, ...]:
        """Check all references of a sentence read by :func:`~climassay.grounding.citations.read_citations`."""
        works = [self.check_work(reference) for reference in sentence.references]
        numbers = [self.check_number(number) for number in sentence.numbers]
        return (*numbers, *works, *self.check_text(sentence.plain))

    def check_number(self, number: int) -> CheckedReference:
        """Look up a bracketed number among the passages and in the list of references."""
        text = f"[{number}]"
        if number in self.passages:
            return CheckedReference(text, "number", "exists", f"Names {self.passages[number]}.", self.passages[number])
        if number in self.entries:
            result = self.check_entry(self.entries[number])
            return replace(result, text=f"{text} {result.text}", kind="number")
        if self.valid_numbers:
            return CheckedReference(text, "number", "invented", "There is no entry of this number.")
        return CheckedReference(text, "number", "not checked", "The text has no list of references to look it up in.")

    def check_entry(self, entry: str) -> CheckedReference:
        """Check an entry of a list of references. An entry with an invalid part is invalid."""
        checked_references = self.check_text(entry)
        existing_reference = next((reference for reference in checked_references if reference.status == "exists"), None)
        invalid_reference = next(
            (reference for reference in checked_references if reference.status in ("malformed", "invented")), None
        )
        decisive_reference = invalid_reference or existing_reference or next(iter(checked_references), None)
        if decisive_reference is None:
            works = [reference for sentence in read_citations(entry, ()) for reference in sentence.references]
            decisive_reference = next((self.check_work(reference) for reference in works), None)
        if decisive_reference is None:
            decisive_reference = CheckedReference(entry, "work", "not checked", "No document at hand has this title.")
        return replace(decisive_reference, text=entry)

    def check_work(self, reference: Reference) -> CheckedReference:
        """Check a reference that names a work by its authors, with a year or a page."""
        matching_documents = [document for words, document in self._document_texts if reference.names(words)]
        if not matching_documents:
            return CheckedReference(reference.text, "work", "not checked", "No document at hand is this work.")
        last_page = max((document.pages or 0 for document in matching_documents), default=0)
        title = matching_documents[0].title
        if reference.pages is not None and last_page and reference.pages[0] > last_page:
            reason = f"{title} has no page {reference.pages[0]}; its last one is {last_page}."
            return CheckedReference(reference.text, "work", "invented", reason, title)
        return CheckedReference(reference.text, "work", "exists", f"Names {title}.", title)

    def check_text(self, text: str) -> tuple[CheckedReference, ...]:
        """Check DOIs, web addresses, report pages and titles of documents that occur in a text."""
        checked_references: list[CheckedReference] = []
        remaining_text = text
        for match in _DOI.finditer(text):
            address = _strip_punctuation(match[0])
            checked_references.append(
                self._check_doi(address, _strip_punctuation(match["link"] or match["named"] or match["bare"] or ""))
            )
            remaining_text = remaining_text.replace(match[0], " ")
        checked_references += [self._check_url(_strip_punctuation(match[0])) for match in _URL.finditer(remaining_text)]
        for match in _REPORT_PAGE.finditer(remaining_text):
            words = [re.sub(r"\s", "", word) for word in re.findall(r"(?:AR|WG)\s?\w+|[^\W_]+", match["name"])]
            names = tuple(word.lower() for word in words if word not in ("SPM", "TS"))
            checked_references.append(self.check_work(Reference(match[0], names, (int(match["page"]),) * 2)))
        lower_case_text = " ".join(text.lower().split())
        for document in self.documents:
            if len(document.title.split()) > 1 and document.title.lower() in lower_case_text:
                checked_references.append(
                    CheckedReference(document.title, "work", "exists", f"Names {document.title}.", document.title)
                )
        return tuple(dict.fromkeys(checked_references))

    def _check_doi(self, text: str, doi: str) -> CheckedReference:
        if not _DOI_FORM.fullmatch(doi):
            reason = "A DOI is 10., a number of four or more digits, a slash and a name."
            return CheckedReference(text, "doi", "malformed", reason)
        matching_document = next(
            (
                document
                for words, document in self._document_texts
                if doi.lower() in f"{words} {document.url or ''}".lower()
            ),
            None,
        )
        if matching_document is not None:
            return CheckedReference(text, "doi", "exists", f"Names {matching_document.title}.", matching_document.title)
        return self._request_address(text, "doi", f"https://doi.org/{quote(doi, safe='/:;()._-')}")

    def _check_url(self, text: str) -> CheckedReference:
        address = text if text.lower().startswith("http") else f"https://{text}"
        try:
            parts = urlsplit(address)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            host = ""
        if not _HOST.fullmatch(host) and not (host and _RESERVED_HOST.fullmatch(host)):
            return CheckedReference(text, "url", "malformed", "This is not an address of a page in the web.")
        if _RESERVED_HOST.fullmatch(host):
            return CheckedReference(text, "url", "invented", f"{host} is a name for examples; no site can have it.")
        document_by_address = {
            _normalise_address(document.url): document for document in self.documents if document.url
        }
        document_by_address |= {
            _normalise_address(document.source): document for document in self.documents if "://" in document.source
        }
        if (matching_document := document_by_address.get(_normalise_address(address))) is not None:
            return CheckedReference(text, "url", "exists", f"Names {matching_document.title}.", matching_document.title)
        return self._request_address(text, "url", address)

    def _request_address(self, text: str, kind: ReferenceKind, address: str) -> CheckedReference:
        if self.address_exists is None:
            reason = "Its form is right; whether it exists was not asked, for no request was allowed."
            return CheckedReference(text, kind, "not checked", reason)
        if address not in self._answers:
            self._answers[address] = self.address_exists(address)
        match self._answers[address]:
            case True:
                return CheckedReference(
                    text, kind, "exists", "A server answers at this address; what it says was not read."
                )
            case False:
                return CheckedReference(text, kind, "invented", "The server says that there is nothing (404 or 410).")
            case _:
                return CheckedReference(text, kind, "not checked", "No server could be asked.")


def expand_links(text: str) -> str:
    """Replace each citation number that is a link (``[3](https://...)``) by the number, followed by the address."""
    return _NUMBERED_LINK.sub(r"\1 \2", text)


def remove_addresses(text: str) -> str:
    """Remove DOIs and web addresses from a text."""
    remaining_text = re.sub(r"\[([^\]]{1,300})\]\(\s*https?://[^\s()]*\s*\)", r"\1", text)
    for pattern in (_DOI, _URL):
        remaining_text = pattern.sub(lambda match: match[0][len(_strip_punctuation(match[0])) :], remaining_text)
    normalised_text = " ".join(re.sub(r"[(\[]\s*[)\]]", " ", remaining_text).split())
    return re.sub(r" ([.,;:!?])", r"\1", normalised_text)


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Handler that does not follow redirections, since these may lead to any address."""

    def redirect_request(self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> None:
        """Return None, which prevents urllib from following the redirection."""


def check_address(address: str) -> bool | None:
    """Request a web address without following redirections, and return whether it exists.

    Returns:
        True for a page or a redirection, False for the status 404 or 410. None for other responses, for a missing
            response, and for addresses outside the public internet.
    """
    parts = urlsplit(address)
    try:
        address_infos = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    if parts.scheme not in ("http", "https") or not all(
        ip_address(str(entry[4][0])).is_global for entry in address_infos
    ):
        return None
    request = urllib.request.Request(address, method="HEAD", headers={"User-Agent": "climassay"})
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=TIMEOUT_SECONDS):
            return True
    except urllib.error.HTTPError as error:
        with error:
            return True if error.code < 400 else False if error.code in (404, 410) else None
    except (OSError, ValueError):
        return None


def _strip_punctuation(text: str) -> str:
    """Remove trailing punctuation and unmatched closing brackets from a text."""
    end, n_unmatched = len(text), text.count(")") - text.count("(")
    while end and (text[end - 1] in _TRAILING_PUNCTUATION or (text[end - 1] == ")" and n_unmatched > 0)):
        end -= 1
        n_unmatched -= text[end] == ")"
    return text[:end]


def _normalise_address(address: str) -> str:
    parts = urlsplit(address)
    return f"{(parts.hostname or '').removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}".lower()
