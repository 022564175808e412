"""Tables of claims to be checked, with their published verdicts where they have some."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from climassay.errors import InputError
from climassay.factcheck.checking import make_claim
from climassay.factcheck.transcript import Claim
from climassay.questions.rows import Row, parse_rows, read_bytes

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
            return datetime.strptime(text, form).date().isoformat()
        except ValueError:
            continue
    match = re.search(r"\b(?:1[89]|20)\d\d\b", text)
    return text if match is None or len(text) > 40 else (text if re.match(r"\d{4}-\d\d", text) else match[0])
