"""Statements of assessment reports with the certainty that their authors gave them, and files of statements.

A statement is a sentence of a report, with the position of its level. A sentence with several levels results in several
statements with the same text, unless a model divided the sentence into parts.
"""

from dataclasses import dataclass
from pathlib import Path

from pydantic import ConfigDict, TypeAdapter, ValidationError

from climassay.confidence.vocabulary import Agreement, EvidenceRating, Level, Likelihood
from climassay.errors import InputError
from climassay.io import describe_first_problem, read_text


@dataclass(frozen=True, slots=True)
class Statement:
    """Sentence with one level of confidence. A sentence with several levels results in several statements."""

    __pydantic_config__ = ConfigDict(extra="forbid", strict=False)
    id: str
    """Stable id, which depends only on the document and the settings."""
    text: str
    """Text without tags, references, section numbers and footnote numbers; acronyms are expanded if the options say
    so."""
    tag: Level | None
    """Level of confidence; None if the authors state none."""
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
    """Index after the level's last character; ``sentence[start:end]`` is empty if the level is not in the sentence."""
    divided: bool = False
    """Whether ``text`` is only the part of the sentence that the level qualifies, as selected by a model."""
    is_paragraph_level: bool = False
    """Whether the level was stated after a paragraph's last full stop, and applies to all of its sentences without a
    level."""
    label: str | None = None
    """Paragraph number in the report, for example ``A.1.3``. For an unnumbered paragraph, the number of the nearest
    numbered paragraph above."""
    references: tuple[str, ...] = ()
    """References of the paragraph in curly brackets, for example ``3.2.1`` and ``Figure SPM.1``."""
    page: int | None = None
    """Page of the file on which the paragraph begins, from 1."""
    headings: tuple[str, ...] = ()
    """Headings above the statement, outermost first."""
    paragraph_id: str | None = None
    chapter: str | None = None
    before: tuple[str, ...] = ()
    """Cleaned sentences before the statement in its section, in order."""
    after: tuple[str, ...] = ()
    part: int = 0
    """Index of the statement among the statements of its sentence."""
    parts: int = 1
    """Number of statements that were extracted from the sentence of this statement."""
    cycle: str | None = None
    """Assessment cycle, ``AR3`` to ``AR6``; None if unknown."""
    working_group: str | None = None
    """``WG1``, ``WG2``, ``WG3``, ``SYR`` or a special report (``SR15`` ...); None if unknown."""
    duplicate_of: str | None = None
    """Id of an earlier statement with the same words and level. Only the earlier statement is counted."""

    @property
    def sentence_id(self) -> str:
        """Id of the sentence: the common prefix of the ids of its statements."""
        return self.id.rsplit(".", 1)[0]

    @property
    def context(self) -> str:
        """Statement with the sentences before and after it."""
        return " ".join((*self.before, self.text, *self.after))

    @property
    def section(self) -> str:
        """Headings, joined by `` > ``."""
        return " > ".join(self.headings)

    @property
    def group(self) -> str:
        """Section that the bootstrap resamples as a unit: its number (``A.1``), or its headings if it has no number."""
        return ".".join(self.label.split(".")[:2]) if self.label else self.section


_STATEMENT = TypeAdapter(Statement)


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
            problem = describe_first_problem(error)
            raise InputError(f"{path}, line {number} is not a statement of climassay: {problem}.") from None
    return results
