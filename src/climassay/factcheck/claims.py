"""Claims to be checked: tables of them, the years that they are about, and which evidence is too old for them."""

import datetime
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from climassay.claim_identity import bare_words
from climassay.corpus.collection_storage import StoredDocument
from climassay.corpus.documents import Passage
from climassay.errors import InputError
from climassay.factcheck.transcript import Claim
from climassay.io import Row, parse_rows, read_bytes


def make_claim(text: str, *, source: str = "", date: str = "") -> Claim:
    """A claim, its words one space apart.

    Raises:
        InputError: There is no text.
    """
    words = " ".join(text.split())
    if not words:
        raise InputError("The claim is empty.")
    return Claim(words, source.strip(), date.strip())


_CLAIM_COLUMNS = ("claim", "statement", "text")
_DATES = ("%Y-%m-%d", "%d-%b-%y", "%d-%B-%y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%d.%m.%Y", "%d/%m/%Y")


@dataclass(frozen=True, slots=True)
class ClaimColumns:
    """Which columns hold what; None takes those called so, where there are any."""

    claim: str | None = None
    """``claim``, ``statement`` or ``text`` by default."""
    verdict: str | None = None
    """Published verdicts; none by default."""
    source: str | None = None
    date: str | None = None


@dataclass(frozen=True, slots=True)
class ClaimTable:
    """Claims of a file."""

    claims: tuple[Claim, ...]
    verdicts: tuple[str | None, ...]
    """As the file spells them; None where there is none."""
    skipped: tuple[str, ...]
    """Why rows were left out, one sentence each."""

    @property
    def judged(self) -> bool:
        """Whether any claim has a published verdict."""
        return any(verdict is not None for verdict in self.verdicts)


def read_claims(file: Path, columns: ClaimColumns | None = None) -> ClaimTable:
    """Claims from CSV, TSV, JSON lines, a JSON array or Parquet, gzip included.

    Args:
        file: The table.
        columns: Which columns to read.

    Raises:
        InputError: The file cannot be read, a column is not there, or no row has a claim.
    """
    wanted = columns or ClaimColumns()
    rows = list(parse_rows(file, read_bytes(file)))
    if not rows:
        raise InputError(f"{file} has no rows.")
    # Rows of JSON may leave columns out; what a row of CSV has beyond the header has no name.
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if name is not None]
    text = _column(wanted.claim, _CLAIM_COLUMNS, names, "--claim", file)
    if text is None:
        raise InputError(f"{file} has no column of claims: name one of {', '.join(names)} with --claim.")
    verdict = _column(wanted.verdict, (), names, "--truth", file)
    source = _column(wanted.source, ("source",), names, "--source", file)
    date = _column(wanted.date, ("date",), names, "--date", file)
    claims, verdicts, skipped = [], [], []
    for number, row in enumerate(rows, start=1):
        words = _cell(row, text)
        if not words:
            skipped.append(f"row {number} has no claim")
            continue
        claims.append(make_claim(words, source=_cell(row, source), date=iso_date(_cell(row, date))))
        verdicts.append(_cell(row, verdict) or None)
    if not claims:
        raise InputError(f"No row of {file} has a claim in the column {text}.")
    return ClaimTable(tuple(claims), tuple(verdicts), tuple(skipped))


def _column(given: str | None, usual: Sequence[str], names: Sequence[str], option: str, file: Path) -> str | None:
    if given is not None:
        if given not in names:
            raise InputError(f"{file} has no column {given!r} ({option}): it has {', '.join(names)}.")
        return given
    lower: Mapping[str, str] = {name.strip().lower(): name for name in reversed(names)}
    return next((lower[name] for name in usual if name in lower), None)


def _cell(row: Row, column: str | None) -> str:
    value = row.get(column) if column is not None else None
    return "" if value is None else " ".join(str(value).split())


def iso_date(text: str) -> str:
    """A date as ISO 8601 where it is understood, the year where only that is; else as it stands.

    Example: ``15-May-23`` is ``2023-05-15``. Of ``05/06/2023`` the first number is taken for the day;
    a time is left out.
    """
    text = re.sub(r"^(\d{4}-\d\d-\d\d)[T ].*", r"\1", text)
    for form in _DATES:
        try:
            return datetime.datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
    match = re.search(r"\b(?:1[89]|20)\d\d\b", text)
    return text if match is None or len(text) > 40 else (text if re.match(r"\d{4}-\d\d", text) else match[0])


EARLIEST_YEAR = 1800
"""A claim's number below this is not a year of its own time: 1500 years, 1000 m, the Middle Ages."""

# A year is a bare number of four digits: no decimals, no thousands, no unit behind it, and no name it belongs to.
_YEAR = re.compile(
    r"(?:(?<![\w.,$€£#/-])|(?<=\bpre-)|(?<=\bpost-)|(?<=\bmid-))(?P<first>[12]\d{3})(?:s\b)?"
    r"(?:\s?[–—/-]\s?(?P<last>[12]\d{3}|\d{2})(?!\d))?"
    r"(?![\w%°]|[.,]\d|\s?[–—-]\s?\d)"
    r"(?!\s*(?:years?|people|scientists?|experts?|deaths?|times|stations?|studies|papers|species|tonn?e?s?|tons"
    r"|million|billion|trillion|percent|per\s?cent|degrees?|pp[mbt]v?|k?m|[cm]m|km2|GtCO2|Gt|Mt|[GMTk]W(?:h)?|W|K|C|m2"
    r"|met(?:re|er)s?|kilomet(?:re|er)s?|miles?|feet|ft|hectares?|acres|dollars|euros|USD|jobs|homes|days|hours)\b)"
)
_UP_TO_NOW = re.compile(
    r"\b(?:since|today|nowadays|currently|at present|presently|now|so far|to date|recent(?:ly)?|still"
    r"|(?:this|last|past) (?:year|month|week|summer|winter|decade))\b",
    re.IGNORECASE,
)
_SHORT_DATE = re.compile(r"\b\d{1,2}-[A-Za-z]{3}-(?P<year>\d{2})\b")
_ANY_YEAR = re.compile(r"(?<!\d)(1[89]\d{2}|20\d{2})(?!\d)")


def subject_year(claim: Claim, *, today: datetime.date | None = None) -> int | None:
    """The year that a claim is about, as far as evidence has to know of it.

    It is the latest year that the text names, or the year in which the claim was made, where

    - the text names none;
    - it names one after that: of a projection ("by 2100") evidence has to know what was known when it was made;
    - it speaks of the present beside it ("since 1998", "in 1950 ... today").

    Args:
        claim: With its date where that is known.
        today: Tells future years from past ones where the claim has no date; by default the current date.

    Returns:
        None where the text names no past year and the claim has no date.
    """
    made = year_of(claim.date)
    now = made or (today or datetime.date.today()).year
    named = years_named(claim.text)
    past = [year for year in named if year <= now]
    if made is not None and (len(past) < len(named) or _UP_TO_NOW.search(claim.text)):
        return made
    return max(past, default=made)


def years_named(text: str) -> tuple[int, ...]:
    """Years from 1800 to 2999 that a text names, both ends of a span (``1998-2012``, ``1998-12``), in order."""
    found: list[int] = []
    for match in _YEAR.finditer(text):
        first, last = int(match["first"]), match["last"]
        found.append(first)
        if last is not None:
            found.append(int(last) if len(last) == 4 else first - first % 100 + int(last))
    return tuple(year for year in found if year >= EARLIEST_YEAR)


def passage_year(passage: Passage) -> int | None:
    """Year of a passage's document: of its date, else one in its edition; None where neither has one."""
    return year_of(passage.date) or year_of(passage.edition)


def year_of(date: str | None) -> int | None:
    """Year of a date as sources write it (``2023-05-15``, ``15-May-23``, ``May 2023``, ``2nd edition 2019``), or None.

    Two digits are a year of the hundred that ends twenty years from now at the latest: 23 is 2023, 95 is 1995.
    """
    text = date or ""
    if short := _SHORT_DATE.search(text):
        latest = datetime.date.today().year + 20
        year = latest - latest % 100 + int(short["year"])
        return year if year <= latest else year - 100
    years = _ANY_YEAR.findall(text)
    return int(years[-1]) if years else None


def dating_warning(claim: Claim, passages: Iterable[Passage], *, today: datetime.date | None = None) -> str | None:
    """One sentence where all dated evidence is older than what the claim is about; None otherwise.

    Passages without a date say nothing for or against; ``today`` is as in :func:`subject_year`.
    """
    subject = subject_year(claim, today=today)
    years = [year for passage in passages if (year := passage_year(passage)) is not None]
    if subject is None or not years or max(years) >= subject:
        return None
    dated = f"the newest is from {max(years)}" if len(set(years)) > 1 else f"it is from {years[0]}"
    return f"All dated evidence is older than what the claim is about ({subject}): {dated}."


# ------------------------------------------------------------------------------------------------------- editions


def latest_editions(documents: Sequence[StoredDocument]) -> frozenset[str]:
    """Ids of the documents to keep where only the latest edition of each work counts.

    Editions of one work have the same title and report once numbers of years, editions and versions are taken out:
    "Climate Change 2014: Synthesis Report" and "Climate Change 2023: Synthesis Report". The one with the latest date is
    kept (then the latest edition), or all of them where several have it, and every document without date and edition.
    """
    dated: dict[tuple[str, str], list[tuple[tuple[str, int], str]]] = {}
    kept = set()
    for document in documents:
        # Editions of one work are ordered by date (ISO, or year alone), then by the number of the edition.
        year = year_of(document.date) or year_of(document.edition)
        number = re.search(r"(?<!\d)(\d{1,3})(?!\d)", document.edition or "")
        if year is None and number is None:
            kept.add(document.id)
            continue
        iso = re.fullmatch(r"\d{4}-\d{2}(?:-\d{2})?", (document.date or "").strip()[:10])
        age = (iso[0] if iso else f"{year or 0:04d}", int(number[1]) if number else 0)
        work = _without_edition(document.title), _without_edition(document.report or "")
        dated.setdefault(work, []).append((age, document.id))
    for editions in dated.values():
        latest = max(age for age, _ in editions)
        kept.update(name for age, name in editions if age == latest)
    return frozenset(kept)


_EDITION_WORDS = re.compile(
    r"\b(?:\d{4}|(?:edition|ed|version|ver|v|volume|update|updated|revised|revision)\b\.?\s*(?:no\.?\s*)?\d*"
    r"|\d{1,2}(?:st|nd|rd|th)|first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b"
    r"|\bAR\d\b|(?<=\bAR)\d\b",
    re.IGNORECASE,
)


def _without_edition(text: str) -> str:
    return bare_words(_EDITION_WORDS.sub(" ", text))
