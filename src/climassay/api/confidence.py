"""Stated confidence: statements taken out of reports, and drafts checked for how they state certainty."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from climassay.errors import InputError
from climassay.reporting import Table
from climassay.reporting.results import Result
from climassay.session import Place, Session, one_or_several

if TYPE_CHECKING:
    from climassay.confidence.extraction import CertaintyTerm, ExtractOptions
    from climassay.confidence.linting import Checked
    from climassay.confidence.statement import Statement
    from climassay.corpus import Document, Skipped


@dataclass(frozen=True, slots=True)
class ExtractedStatements(Result):
    """Statements of reports with their level of confidence."""

    statements: "tuple[Statement, ...]"
    terms: "tuple[CertaintyTerm, ...]"
    """Terms of likelihood, evidence and agreement."""
    skipped: "tuple[Skipped, ...]" = ()

    def to_dict(self) -> dict[str, Any]:
        """Statements, other terms, and what could not be read."""
        return {"statements": self.statements, "terms": self.terms, "skipped": self.skipped}

    def rows(self) -> list[dict[str, Any]]:
        """A row a statement."""
        return [asdict(one) for one in self.statements]

    def tables(self) -> list[Table]:
        """Levels by report, and other terms."""
        from climassay.confidence.extraction.review import summary_table, term_table

        return [summary_table(self.statements), *([term_table(self.terms)] if self.terms else [])]

    def notes(self) -> Iterator[str]:
        """What could not be read."""
        for one in self.skipped:
            yield f"Not read: {one.source}: {one.reason}"

    def page(self) -> str:
        """The statements in their context, to be reviewed."""
        from climassay.confidence.extraction.review import review_page

        return review_page(self.statements, self.terms)


@dataclass(frozen=True, slots=True)
class LintedDrafts(Result):
    """Drafts with what was found in them."""

    drafts: "tuple[Checked, ...]"

    def to_dict(self) -> dict[str, Any]:
        """Every finding with its place."""
        from climassay.confidence.linting.presentation import data

        return {"files": [data(one) for one in self.drafts]}

    def rows(self) -> list[dict[str, Any]]:
        """A row a finding."""
        return [{"file": file["file"], **finding} for file in self.to_dict()["files"] for finding in file["findings"]]

    def tables(self) -> tuple[Table, ...]:
        """A row a finding: rule, words, and what is the matter."""
        rows = [
            (one.draft.name, finding.rule, finding.words, finding.message)
            for one in self.drafts
            for finding in one.findings
        ]
        return (Table.of("Findings", ("file", "rule", "words", "message"), rows, left=4),)

    def page(self) -> str:
        """The drafts with their findings in the text."""
        from climassay.confidence.linting.presentation import lint_page

        return lint_page(self.drafts)


def extract_confidence(
    reports: str | Path | Iterable[str | Path] = (),
    *,
    collections: str | Sequence[str] = (),
    options: "ExtractOptions | None" = None,
    workspace: Place = None,
) -> ExtractedStatements:
    """Extract statements with their level of confidence, likelihood, evidence and agreement, and their context.

    Args:
        reports: Files of reports, or folders of them.
        collections: Names of collections whose documents are read as well.
        options: How statements are taken out.
        workspace: Where the collections lie.

    Raises:
        InputError: There is nothing to read, or nothing that could be read.
    """
    from climassay.confidence.extraction import (
        ExtractOptions,
        documents_of_collection,
        extract,
        extract_terms,
        mark_duplicates,
    )
    from climassay.corpus import Collection, read_all

    files = [Path(one) for one in ([reports] if isinstance(reports, (str, Path)) else reports)]
    wanted = options or ExtractOptions()
    documents: list[Document] = []
    skipped: list[Skipped] = []
    with Session.opened(workspace) as session:
        for result in read_all(files):
            documents += result.documents
            skipped += result.skipped
        for name in one_or_several(collections):
            documents += documents_of_collection(Collection.open(session.workspace, name))
        if not documents:
            reason = f": {skipped[0].source}: {skipped[0].reason}" if skipped else "."
            raise InputError(f"Nothing was read{reason}")
        found: list[Statement] = []
        with session.progress.task("Extracting", total=len(documents)) as task:
            for document in documents:
                found += extract([document], wanted)
                task.advance()
    return ExtractedStatements(
        tuple(mark_duplicates(found)), tuple(extract_terms(documents, wanted.report)), tuple(skipped)
    )


def lint_confidence(drafts: str | Path | Iterable[str | Path], *, rules: str = "") -> LintedDrafts:
    """Check drafts of an assessment report for how they state certainty.

    Args:
        drafts: Files, or texts: what names no file and has a space is taken for a text.
        rules: Rules, divided by commas: these alone; with a minus before each, all but these; or ``all``.

    Raises:
        InputError: A file cannot be read, or there is no such rule.

    Example:
        >>> found = lint_confidence("Sea level will very likely rise (low confidence).")
        >>> [finding.rule for finding in found.drafts[0].findings]
        ['likelihood-low-confidence']
    """
    from climassay.confidence.linting import check, chosen_rules, draft_of, read_draft

    chosen = chosen_rules(rules)
    listed = [drafts] if isinstance(drafts, (str, Path)) else list(drafts)
    opened = [
        draft_of(one) if isinstance(one, str) and " " in one and not Path(one).is_file() else read_draft(Path(one))
        for one in listed
    ]
    return LintedDrafts(tuple(check(draft, chosen) for draft in opened))
