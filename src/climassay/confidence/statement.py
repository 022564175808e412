"""Statements of assessment reports with the certainty that their authors gave them, and files of statements.

A statement is a sentence of the report, with the span of the level in it. A sentence with several levels makes several
statements of the same words, unless a model divided it among them.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from climassay.confidence.vocabulary import Agreement, EvidenceRating, Likelihood, Tag
from climassay.errors import InputError
from climassay.io import read_text
from climassay.reporting.results import write_rows


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence with one of its levels; a sentence with several levels makes a statement for each."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=False)
    id: str
    """Stable id: the same document and settings give the same ids."""
    text: str
    """Text without tags, references, section marks and footnote numbers, with acronyms expanded by option."""
    tag: Tag | None
    """Level of confidence; None if the authors gave none."""
    report: str
    """Report named by the document, for example ``AR6 WG1``, else the document's title."""
    document_id: str
    document: str
    """Title of the document."""
    likelihood: tuple[Likelihood, ...] = ()
    """Terms of likelihood in the sentence, in order."""
    evidence: EvidenceRating | None = None
    agreement: Agreement | None = None
    sentence: str = ""
    """Sentence as it appears in the report, including tags and references."""
    start: int = 0
    end: int = 0
    """End of the level's words, ``sentence[start:end]``; empty if the level is not in the sentence."""
    divided: bool = False
    """True if a model assigned this part of the sentence to the level."""
    is_paragraph_level: bool = False
    """True if the level follows the last full stop of a paragraph, for all its sentences without a level."""
    label: str | None = None
    """Report's number of the paragraph, or of the last numbered one above it, for example ``A.1.3``."""
    references: tuple[str, ...] = ()
    """References of the paragraph in curly brackets, for example ``3.2.1`` and ``Figure SPM.1``."""
    page: int | None = None
    """Page of the file on which the paragraph begins, from 1."""
    headings: tuple[str, ...] = ()
    """Headings above the statement, outermost first."""
    paragraph_id: str | None = None
    chapter: str | None = None
    before: tuple[str, ...] = ()
    """Up to five cleaned sentences before it in the same section, in order."""
    after: tuple[str, ...] = ()
    part: int = 0
    """Index of the statement among those of its sentence."""
    parts: int = 1
    """Number of statements of its sentence."""
    cycle: str | None = None
    """Assessment cycle, ``AR3`` to ``AR6``; None if unknown."""
    working_group: str | None = None
    """``WG1``, ``WG2``, ``WG3``, ``SYR`` or a special report (``SR15`` ...); None if unknown."""
    duplicate_of: str | None = None
    """Id of an earlier statement of the same words and level, which is counted instead of this one."""

    @property
    def sentence_id(self) -> str:
        """Common prefix of the ids of all statements of one sentence."""
        return self.id.rsplit(".", 1)[0]

    @property
    def context(self) -> str:
        """Statement with the sentences around it."""
        return " ".join((*self.before, self.text, *self.after))

    @property
    def section(self) -> str:
        """Headings, joined by `` > ``."""
        return " > ".join(self.headings)

    @property
    def group(self) -> str:
        """Group that is resampled together: the numbered section of a summary (``A.1``), else the headings."""
        return ".".join(self.label.split(".")[:2]) if self.label else self.section


_STATEMENT = TypeAdapter(Statement)


def write_statements(statements: Iterable[Statement], path: Path) -> int:
    """Write statements to a file, atomically.

    Args:
        statements: Statements to write.
        path: ``.csv`` and ``.xlsx`` files cannot be read back; any other name is JSON lines.

    Returns:
        Number of statements.

    Raises:
        InputError: The file cannot be written.
    """
    rows = [asdict(statement) for statement in statements]
    write_rows(path, rows)
    return len(rows)


def read_statements(path: Path) -> list[Statement]:
    """Read a file of statements.

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
            results.append(_STATEMENT.validate_json(line))
        except ValidationError as error:
            fault = error.errors()[0]
            where = ".".join(map(str, fault["loc"]))
            raise InputError(
                f"{path}, line {number} is not a statement of climassay: {fault['msg']}{where and f' ({where})'}."
            ) from None
    return results
