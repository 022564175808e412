"""A statement of an assessment report with the certainty that its authors gave it, and files of statements.

A statement is a sentence of the report, with the span of the level in it. A sentence with several levels makes several
statements of the same words, unless a model divided it among them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from climassay.confidence.vocabulary import Agreement, Evidence, Likelihood, Tag
from climassay.errors import InputError
from climassay.io import parse_json, read_text
from climassay.reporting.results import write_rows
from climassay.settings import validate_types


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with one of its levels; a sentence with several levels makes a statement for each."""

    id: str
    """Stable: the same document and settings give the same ids."""
    text: str
    """Without tags, references, section marks and footnote numbers; acronyms expanded if that was asked for."""
    tag: Tag | None
    """Level of confidence; None if the authors gave none."""
    report: str
    """For example ``AR6 WG1``; the report that the document names, else its title."""
    document_id: str
    document: str
    """Title of the document."""
    likelihood: tuple[Likelihood, ...] = ()
    """Terms of likelihood in the sentence, in order."""
    evidence: Evidence | None = None
    agreement: Agreement | None = None
    sentence: str = ""
    """The whole sentence as it appears in the report, tags and references included."""
    start: int = 0
    end: int = 0
    """``sentence[start:end]`` are the words of the level; empty if the sentence has none of its own."""
    divided: bool = False
    """Whether the text is the part of the sentence that a model gave to this level."""
    whole_paragraph: bool = False
    """Whether the level follows the last full stop of a paragraph, for all its sentences without one."""
    label: str | None = None
    """The report's number of the paragraph or of the last numbered one above it, for example ``A.1.3``."""
    references: tuple[str, ...] = ()
    """What the paragraph refers to in curly brackets, for example ``3.2.1`` and ``Figure SPM.1``."""
    page: int | None = None
    """Page in the file on which it begins, from 1."""
    headings: tuple[str, ...] = ()
    """Headings above it, outermost first."""
    paragraph_id: str | None = None
    chapter: str | None = None
    before: tuple[str, ...] = ()
    """Up to five sentences before it in the same section, in order, cleaned like the text: no tags either."""
    after: tuple[str, ...] = ()
    part: int = 0
    """Number of the statement among those of its sentence, from 0."""
    parts: int = 1
    """Statements of its sentence."""
    cycle: str | None = None
    """Assessment cycle, ``AR3`` to ``AR6``, where the report tells."""
    working_group: str | None = None
    """``WG1``, ``WG2``, ``WG3``, ``SYR`` or a special report (``SR15`` ...), where the report tells."""
    duplicate_of: str | None = None
    """Id of an earlier statement of the same words and level, which is counted in place of this one. All are kept."""

    @property
    def sentence_id(self) -> str:
        """Common beginning of the ids of all statements of one sentence."""
        return self.id.rsplit(".", 1)[0]

    @property
    def context(self) -> str:
        """The sentences around the statement, and itself."""
        return " ".join((*self.before, self.text, *self.after))

    @property
    def section(self) -> str:
        """Its headings, joined by `` > ``."""
        return " > ".join(self.headings)

    @property
    def group(self) -> str:
        """What is resampled together: the numbered section of a summary (``A.1``), else the headings."""
        return ".".join(self.label.split(".")[:2]) if self.label else self.section


def statement_from_row(row: Mapping[str, Any]) -> Statement:
    """Return the statement that ``asdict`` turned into a row.

    Raises:
        InputError: A field is missing or unknown.
    """
    lists = {name: tuple(row.get(name) or ()) for name in ("likelihood", "references", "headings", "before", "after")}
    try:
        statement = Statement(**{**row, **lists})
        validate_types(statement)
    except TypeError as error:
        raise InputError(f"This is not a statement of climassay: {error}.") from None
    return statement


def write_statements(statements: Iterable[Statement], path: Path) -> int:
    """Write statements; a reader never sees half of the file.

    Args:
        statements: Any number.
        path: ``.csv`` and ``.xlsx`` make a table and a workbook, which are not read back; all else is JSON lines.

    Returns:
        How many.

    Raises:
        InputError: The file cannot be written.
    """
    rows = [asdict(one) for one in statements]
    write_rows(path, rows)
    return len(rows)


def read_statements(path: Path) -> list[Statement]:
    """The statements of a file.

    Raises:
        InputError: The file is missing, or a line is not a statement.
    """
    try:
        lines = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InputError(f"{path} cannot be read: {reason}.") from None
    results = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            results.append(statement_from_row(parse_json(line)))
        except (ValueError, TypeError, AttributeError, InputError) as error:
            raise InputError(f"{path}, line {number}: {error}") from None
    return results
