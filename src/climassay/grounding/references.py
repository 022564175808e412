"""References of a text, and whether what they point to exists.

Found are numbers in brackets (read by :mod:`climassay.grounding.citations`), works named by author and year or page,
titles of documents at hand, DOIs and web addresses. Each is looked up where that can be done without a guess: numbers
in the text's own list of references or among the passages that lay before its writer, works and addresses among the
documents of the collections. DOIs and addresses are judged by their form, and asked for only where a
request is allowed.
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
"""``invented``: points to nothing, be it a number without an entry, a page behind the last one, or an address at which
a server says that there is nothing. ``malformed``: can be no DOI or address. ``not checked``: nobody has looked."""
SECONDS = 10
"""How long an answer of a server is waited for."""

_HEADING = re.compile(
    r"\s*(?:#+\s*|\*\*)?(?:references|sources|bibliography|literature(?:\s+cited)?|works\s+cited|citations|further\s+reading)"
    r"\s*:?\s*(?:\*\*)?\s*:?\s*",
    re.IGNORECASE,
)
_NUMBER = r"[\[(\u3010](?P<bracket>\d{1,3})[\])\u3011]:?"
_ENTRY = re.compile(rf"\s*(?:[-*\u2022]\s+)?(?:{_NUMBER}|(?P<plain>\d{{1,3}})[.)])\s+(?P<entry>\S.*)")
_BRACKETED = re.compile(rf"\s*(?:[-*\u2022]\s+)?{_NUMBER}\s+\S.*")
_BULLET = re.compile(r"\s*[-*\u2022]\s+(?P<entry>\S.*)")
_NUMBERED_LINK = re.compile(r"(\[\d{1,3}\])\((https?://[^\s()]+)\)")
_DOI = re.compile(
    r"(?:https?://)?(?:dx\.)?doi\.org/(?P<link>[^\s<>\"\]]*)|\bdoi:?\s*(?P<named>10[^\s<>\"\]]*|[^\s<>\"\]]*/[^\s<>\"\]]*)"
    r"|\b(?P<bare>10\.\d{4,9}/[^\s<>\"\]]+)",
    re.IGNORECASE,
)
_DOI_FORM = re.compile(r"10\.\d{4,9}(?:\.\d+)*/\S+")
_URL = re.compile(r"\b(?:https?:(?:/|\b)[^\s<>\"\]]*|www\.[^\s<>\"\]]+)", re.IGNORECASE)
_HOST = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,60}[a-z0-9]", re.IGNORECASE)
_RESERVED = re.compile(r"(?:.+\.)?(?:example(?:\.(?:com|net|org))?|test|invalid|localhost)", re.IGNORECASE)
"""Names that no site can have (RFC 2606)."""
_REPORT_PAGE = re.compile(
    r"\b(?P<name>(?:IPCC|AR\s?[3-6]|SR15|SRCCL|SROCC|SREX)(?:[\s,]+(?:AR\s?[3-6]|WG\s?(?:[1-3]|I{1,3})|SYR|SPM|TS|(?:19|20)\d\d))*),?"
    r"\s+(?:on\s+)?(?:pp?\.|pages?)\s*(?P<page>\d{1,4})"
)
"""A report of the IPCC with a page, in running words."""
_SENTENCE_END = ".,;:!?'\u2019\u201d*_"


@dataclass(frozen=True, slots=True)
class CheckedReference:
    """A reference, and whether what it points to exists."""

    text: str
    """As written; of a number ``[3]``."""
    kind: ReferenceKind
    status: ReferenceStatus
    reason: str
    """What was found or why nothing was, in one sentence."""
    document: str | None = None
    """Title of the document of the collections that it names."""


@dataclass(frozen=True, slots=True)
class ReferenceList:
    """The list of references at the end of a text, and the text before it."""

    body: str
    numbered: Mapping[int, str]
    """Entries by their number."""
    others: tuple[str, ...] = ()
    """Entries without a number."""

    @classmethod
    def split(cls, text: str) -> Self:
        """Take the list off: lines below a heading such as "References", or numbered lines in brackets at the end."""
        lines = text.splitlines()
        heading = next((place for place in reversed(range(len(lines))) if _HEADING.fullmatch(lines[place])), None)
        if heading is not None:
            start, entries = heading, lines[heading + 1 :]
        else:
            start = len(lines)
            while start and (not lines[start - 1].strip() or _BRACKETED.fullmatch(lines[start - 1])):
                start -= 1
            entries = lines[start:]
        numbered: dict[int, str] = {}
        others: list[str] = []
        for line in filter(str.strip, entries):
            if match := _ENTRY.fullmatch(line):
                numbered.setdefault(int(match["bracket"] or match["plain"]), match["entry"].strip())
            else:
                bullet = _BULLET.fullmatch(line)
                others.append(bullet["entry"].strip() if bullet else line.strip())
        return cls("\n".join(lines[:start]).rstrip(), numbered, tuple(others))


@dataclass(frozen=True)
class ReferenceChecker:
    """Looks references up in what is at hand.

    Args:
        documents: Documents of the collections.
        passages: What numbers name beside the text's own list, for example the passages that lay before its writer.
        entries: The text's own list of references, by number.
        ask: Tells whether something answers at an address, None where that cannot be known; without it nothing is
            asked. See :func:`address_answers`.
    """

    documents: "Sequence[StoredDocument]" = ()
    passages: Mapping[int, str] = field(default_factory=dict)
    entries: Mapping[int, str] = field(default_factory=dict)
    ask: Callable[[str], bool | None] | None = None
    _asked: dict[str, bool | None] = field(default_factory=dict, init=False, repr=False)

    @property
    def known(self) -> frozenset[int]:
        """Numbers that name something."""
        return frozenset({*self.passages, *self.entries})

    @cached_property
    def _words(self) -> "list[tuple[str, StoredDocument]]":
        return [(" ".join(filter(None, (one.title, one.source, one.report, one.date))), one) for one in self.documents]

    def check(self, sentence: CitingSentence) -> tuple[CheckedReference, ...]:
        """All references of a sentence that :func:`~climassay.grounding.citations.read_citations` read."""
        works = [self.work(one) for one in sentence.references]
        numbers = [self.number(one) for one in sentence.numbers]
        return (*numbers, *works, *self.written_out(sentence.plain))

    def number(self, number: int) -> CheckedReference:
        """A number in brackets."""
        text = f"[{number}]"
        if number in self.passages:
            return CheckedReference(text, "number", "exists", f"Names {self.passages[number]}.", self.passages[number])
        if number in self.entries:
            result = self.entry(self.entries[number])
            return replace(result, text=f"{text} {result.text}", kind="number")
        if self.known:
            return CheckedReference(text, "number", "invented", "There is no entry of this number.")
        return CheckedReference(text, "number", "not checked", "The text has no list of references to look it up in.")

    def entry(self, entry: str) -> CheckedReference:
        """An entry of a list of references: a document at hand, or the worst of what it names."""
        result = self.written_out(entry)
        known = next((one for one in result if one.status == "exists"), None)
        wrong = next((one for one in result if one.status in ("malformed", "invented")), None)
        chosen = wrong or known or next(iter(result), None)
        if chosen is None:
            read = [one for sentence in read_citations(entry, ()) for one in sentence.references]
            chosen = next((self.work(one) for one in read), None)
        if chosen is None:
            chosen = CheckedReference(entry, "work", "not checked", "No document at hand has this title.")
        return replace(chosen, text=entry)

    def work(self, reference: Reference) -> CheckedReference:
        """A work named by its authors, with its year or a page."""
        named = [one for words, one in self._words if reference.names(words)]
        if not named:
            return CheckedReference(reference.text, "work", "not checked", "No document at hand is this work.")
        last = max((one.pages or 0 for one in named), default=0)
        title = named[0].title
        if reference.pages is not None and last and reference.pages[0] > last:
            said = f"{title} has no page {reference.pages[0]}; its last one is {last}."
            return CheckedReference(reference.text, "work", "invented", said, title)
        return CheckedReference(reference.text, "work", "exists", f"Names {title}.", title)

    def written_out(self, text: str) -> tuple[CheckedReference, ...]:
        """DOIs, web addresses and titles of documents at hand that appear in a text."""
        results: list[CheckedReference] = []
        left = text
        for match in _DOI.finditer(text):
            written = _trimmed(match[0])
            results.append(self._doi(written, _trimmed(match["link"] or match["named"] or match["bare"] or "")))
            left = left.replace(match[0], " ")
        results += [self._url(_trimmed(match[0])) for match in _URL.finditer(left)]
        for match in _REPORT_PAGE.finditer(left):
            words = [re.sub(r"\s", "", one) for one in re.findall(r"(?:AR|WG)\s?\w+|[^\W_]+", match["name"])]
            named = tuple(one.lower() for one in words if one not in ("SPM", "TS"))
            results.append(self.work(Reference(match[0], named, (int(match["page"]),) * 2)))
        lower = " ".join(text.lower().split())
        for one in self.documents:
            if len(one.title.split()) > 1 and one.title.lower() in lower:
                results.append(CheckedReference(one.title, "work", "exists", f"Names {one.title}.", one.title))
        return tuple(dict.fromkeys(results))

    def _doi(self, written: str, doi: str) -> CheckedReference:
        if not _DOI_FORM.fullmatch(doi):
            said = "A DOI is 10., a number of four or more digits, a slash and a name."
            return CheckedReference(written, "doi", "malformed", said)
        holder = next((one for words, one in self._words if doi.lower() in f"{words} {one.url or ''}".lower()), None)
        if holder is not None:
            return CheckedReference(written, "doi", "exists", f"Names {holder.title}.", holder.title)
        return self._asked_for(written, "doi", f"https://doi.org/{quote(doi, safe='/:;()._-')}")

    def _url(self, written: str) -> CheckedReference:
        address = written if written.lower().startswith("http") else f"https://{written}"
        try:
            parts = urlsplit(address)
            host, _ = parts.hostname or "", parts.port
        except ValueError:
            host = ""
        if not _HOST.fullmatch(host) and not (host and _RESERVED.fullmatch(host)):
            return CheckedReference(written, "url", "malformed", "This is not an address of a page in the web.")
        if _RESERVED.fullmatch(host):
            return CheckedReference(written, "url", "invented", f"{host} is a name for examples; no site can have it.")
        same = {_bare(one.url): one for one in self.documents if one.url}
        same |= {_bare(one.source): one for one in self.documents if "://" in one.source}
        if (holder := same.get(_bare(address))) is not None:
            return CheckedReference(written, "url", "exists", f"Names {holder.title}.", holder.title)
        return self._asked_for(written, "url", address)

    def _asked_for(self, written: str, kind: ReferenceKind, address: str) -> CheckedReference:
        if self.ask is None:
            said = "Its form is right; whether it exists was not asked, for no request was allowed."
            return CheckedReference(written, kind, "not checked", said)
        if address not in self._asked:
            self._asked[address] = self.ask(address)
        match self._asked[address]:
            case True:
                return CheckedReference(
                    written, kind, "exists", "A server answers at this address; what it says was not read."
                )
            case False:
                return CheckedReference(
                    written, kind, "invented", "The server says that there is nothing (404 or 410)."
                )
            case _:
                return CheckedReference(written, kind, "not checked", "No server could be asked.")


def open_links(text: str) -> str:
    """Numbers that are links (``[3](https://...)``) with the address behind them, so that it is not lost."""
    return _NUMBERED_LINK.sub(r"\1 \2", text)


def without_addresses(text: str) -> str:
    """A text without its DOIs and web addresses: what it says, rather than where that stands."""
    bare = re.sub(r"\[([^\]]+)\]\(\s*https?://[^\s()]*\s*\)", r"\1", text)
    for pattern in (_DOI, _URL):
        bare = pattern.sub(lambda match: match[0][len(_trimmed(match[0])) :], bare)
    return " ".join(re.sub(r"\s+([.,;:!?])", r"\1", re.sub(r"[(\[]\s*[)\]]", " ", bare)).split())


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Leaves redirections unfollowed: that there is one says enough, and it may lead anywhere."""

    def redirect_request(self, req: Any, fp: IO[bytes], code: int, msg: str, headers: Any, newurl: str) -> None:
        """No request."""


def address_answers(address: str) -> bool | None:
    """Whether something is at a web address, by the head of its answer; redirections are not followed.

    Returns:
        True for a page or a redirection, False where the server says that there is nothing (404 or 410), None where it
        says anything else or does not answer, and for addresses that are not in the public internet.
    """
    parts = urlsplit(address)
    try:
        result = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    if parts.scheme not in ("http", "https") or not all(ip_address(str(one[4][0])).is_global for one in result):
        return None
    request = urllib.request.Request(address, method="HEAD", headers={"User-Agent": "climassay"})
    try:
        with urllib.request.build_opener(_NoRedirect).open(request, timeout=SECONDS):
            return True
    except urllib.error.HTTPError as error:
        with error:
            return True if error.code < 400 else False if error.code in (404, 410) else None
    except (OSError, ValueError):
        return None


def _trimmed(written: str) -> str:
    """Without the signs that end a sentence or close a bracket opened before it."""
    while written and (
        written[-1] in _SENTENCE_END or (written[-1] == ")" and written.count("(") < written.count(")"))
    ):
        written = written[:-1]
    return written


def _bare(address: str) -> str:
    parts = urlsplit(address)
    return f"{(parts.hostname or '').removeprefix('www.')}{parts.path.rstrip('/')}?{parts.query}".lower()
