"""Find statements again in the paragraphs of their report, and with them their section and context."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from climassay.confidence.tagging.wording import normalised, plain_statement
from climassay.errors import InputError
from climassay.given_files import parse_json

_SHINGLE = 4
"""Words in a row that are looked up."""
_FOUND = 0.6
"""Least share of a statement's shingles in one paragraph: a sentence of the same words but for numbers of footnotes,
blanks inside formulas and hyphens at line ends has more, another sentence on the same matter less."""
CONTEXT = 5
"""Sentences each side, as the thesis takes."""


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report as cleaned sentences."""

    name: str
    """Document and headings."""
    document: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Place:
    """Where a statement stands."""

    section: Section
    first: int
    """Its sentence among those of the section."""

    @property
    def before(self) -> tuple[str, ...]:
        """Up to five sentences before it."""
        return self.section.sentences[max(0, self.first - CONTEXT) : self.first]

    @property
    def after(self) -> tuple[str, ...]:
        """Up to five sentences after it."""
        return self.section.sentences[self.first + 1 : self.first + 1 + CONTEXT]


class SectionIndex:
    """Sections of one report, found by what is said in them."""

    def __init__(self, sections: Sequence[Section]) -> None:
        self._sections = list(sections)
        self._places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for number, section in enumerate(self._sections):
            for first, sentence in enumerate(section.sentences):
                for shingle in _shingles(sentence):
                    self._places[shingle].append((number, first))

    def find(self, text: str) -> Place | None:
        """The sentence that has most of a statement's words in a row; None where none has enough of them.

        Args:
            text: A cleaned statement. Of equally good sentences the first is taken.
        """
        wanted = _shingles(text)
        hits = Counter(place for shingle in wanted for place in self._places.get(shingle, ()))
        if not hits:
            return None
        best = max(hits.values())
        # A statement that runs over two sentences is found by the one that has more of it.
        if best < _FOUND * len(wanted):
            return None
        section, first = min(place for place, count in hits.items() if count == best)
        return Place(self._sections[section], first)


def read_sections(path: Path) -> dict[str, list[Section]]:
    """Sections of each report in a file of paragraphs.

    Args:
        path: JSON lines (gzip or plain) with ``report``, ``doc_id``, ``headings``, ``class`` and ``text``.

    Returns:
        By ``report``, in the order of the file; footnotes and captions left out.

    Raises:
        InputError: The file cannot be read.
    """
    import gzip

    from climassay.corpus.sentences import split_sentences

    opened = gzip.open if path.suffix == ".gz" else open
    found: dict[str, dict[str, list[str]]] = defaultdict(dict)
    documents: dict[str, str] = {}
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                row = parse_json(line)
                if row["class"] != "body":
                    continue
                name = f"{row['doc_id']}: {row['headings']}"
                documents[name] = row["doc_id"]
                kept = found[row["report"]].setdefault(name, [])
                kept += [plain for one in split_sentences(row["text"]) if (plain := plain_statement(one))]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is no file of report paragraphs: {error}.") from None
    return {
        report: [Section(name, documents[name], tuple(sentences)) for name, sentences in sections.items()]
        for report, sections in found.items()
    }


def index_reports(sections: Mapping[str, Sequence[Section]]) -> dict[str, SectionIndex]:
    """An index for each report."""
    return {report: SectionIndex(found) for report, found in sections.items()}


def _shingles(text: str) -> set[str]:
    # Blanks inside formulas and after hyphens come and go with the way a PDF was read, digits with footnotes.
    words = "".join(one if not one.isdigit() else " " for one in normalised(text)).split()
    if len(words) < _SHINGLE:
        return {" ".join(words)} if words else set()
    return {" ".join(words[start : start + _SHINGLE]) for start in range(len(words) - _SHINGLE + 1)}
