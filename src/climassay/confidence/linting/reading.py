"""Open what is to be checked."""

from pathlib import Path

from climassay.confidence.linting.draft import Draft
from climassay.confidence.linting.html_draft import html_draft
from climassay.confidence.linting.markdown_draft import markdown_draft
from climassay.confidence.linting.plain_draft import paged_draft, plain_draft
from climassay.errors import DocumentError, InputError

MAKERS = {"markdown": markdown_draft, "text": plain_draft, "html": html_draft}
"""What makes a draft of a text, by the kind of text."""
_NOT_READ = (".doc", ".odt", ".rtf")


def draft_of(text: str, kind: str = "markdown", name: str = "text") -> Draft:
    """A draft of a text.

    Args:
        text: At most as much as fits into memory a few times.
        kind: ``markdown``, ``text`` or ``html``.
        name: Of the file that it stands for.

    Raises:
        InputError: There is no such kind.
    """
    if kind not in MAKERS:
        raise InputError(f"There are texts of the kinds {', '.join(MAKERS)}, not {kind!r}.")
    return MAKERS[kind](text.replace("\r\n", "\n").replace("\r", "\n"), name)


def read_draft(path: Path) -> Draft:
    """Read a file: Markdown, plain text and HTML on their own text, PDF and Word files by their pages and paragraphs.

    Raises:
        InputError: The file is missing, of a kind that is not checked, damaged, or has no text.
    """
    from climassay.corpus.documents import ReadOptions
    from climassay.corpus.readers.file_types import kind_of, open_file
    from climassay.corpus.readers.text import decode

    if path.suffix.lower() in _NOT_READ:
        raise InputError(
            f"{path} is a word processor's file, which is not read: save it as .docx, Markdown, HTML or PDF."
        )
    if path.is_dir():
        raise InputError(f"{path} is a folder: name the files in it.")
    kind = kind_of(path) if path.exists() else None
    if kind is not None and kind not in (*MAKERS, "pdf", "docx"):
        raise InputError(f"{path} cannot be checked: give Markdown, plain text, HTML, Word (.docx) or PDF.")
    try:
        source, kind, data = open_file(path, ReadOptions().max_bytes, None)
        if kind in ("pdf", "docx"):
            return _paged(path)
        draft = draft_of(decode(data, source), kind, str(path))
    except DocumentError as error:
        raise InputError(str(error)) from None
    if not draft.sentences:
        raise InputError(f"{path} has no text to check.")
    return draft


def _paged(path: Path) -> Draft:
    from climassay.corpus.readers.file_types import read

    result = read(path)
    if not result.documents:
        raise InputError(result.skipped[0].reason if result.skipped else f"{path} has no text to check.")
    return paged_draft(result.documents[0], str(path))
