"""A statement of an assessment report with the certainty that its authors gave it, and files of statements.

The record keeps the sentence as the report has it. What a level speaks about is a span of that sentence, and the
divided statement is a view of the span: where the division is not sure, the view is the whole sentence.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from climassay.confidence.vocabulary import Agreement, Evidence, Likelihood, Tag
from climassay.errors import InputError
from climassay.io import parse_json, read_text
from climassay.reporting.results import write_rows
from climassay.settings import check_types


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement; where a sentence carries several tags, there is one statement for each.

    Where it is not sure which words a tag speaks about (``sure`` is False), ``text`` is the whole sentence, and all
    such statements of it but that of the lowest level name that one in ``duplicate_of``: the sentence counts once.
    """

    id: str
    """Stable: the same document and settings give the same ids."""
    text: str
    """Without tags, references, section marks and footnote numbers; acronyms expanded where that was asked for."""
    tag: Tag | None
    """Level of confidence; None where the authors gave none."""
    report: str
    """For example ``AR6 WG1``; as the document says, else its title."""
    document_id: str
    document: str
    """Title of the document."""
    likelihood: tuple[Likelihood, ...] = ()
    """Terms of likelihood used in the statement or in its brackets, in order."""
    evidence: Evidence | None = None
    agreement: Agreement | None = None
    sentence: str = ""
    """The whole sentence as it appears in the report, tags and references included."""
    start: int = 0
    end: int = 0
    """``sentence[start:end]`` are the words that the tag was found to speak about, with the tag."""
    sure: bool = True
    """Whether rules can vouch for the division of the sentence among its tags."""
    whole_paragraph: bool = False
    """Whether the tag follows the last full stop of a paragraph, for all its sentences without one."""
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
    """Statements that its sentence was split into."""
    cycle: str | None = None
    """Assessment cycle, ``AR3`` to ``AR6``, where the report tells."""
    working_group: str | None = None
    """``WG1``, ``WG2``, ``WG3``, ``SYR`` or a special report (``SR15`` ...), where the report tells."""
    duplicate_of: str | None = None
    """Id of the statement that is counted in place of this one: an earlier one of the same words and tag, or the one
    of the lowest tag of a sentence whose division is not sure. All are kept."""

    @property
    def original(self) -> str:
        """The words that the tag was found to speak about, as they appear in the report."""
        return self.sentence[self.start : self.end]

    @property
    def sentence_id(self) -> str:
        """What the ids of all statements of one sentence begin with."""
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
    """The statement that ``asdict`` wrote, now or before sentences were kept.

    A row without a sentence has the report's words of the statement alone, or only its text; these appear in its place.

    Raises:
        InputError: A field is missing or unknown.
    """
    if "sentence" not in row:
        words = row.get("original") or row.get("text")
        kept = {name: value for name, value in row.items() if name != "original"}
        row = {**kept, "sentence": words, "start": 0, "end": len(words) if isinstance(words, str) else 0}
    lists = {name: tuple(row.get(name) or ()) for name in ("likelihood", "references", "headings", "before", "after")}
    try:
        statement = Statement(**{**row, **lists})
        check_types(statement)
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
