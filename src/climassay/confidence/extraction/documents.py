"""What a document is before statements are taken from it: its language, its report, or passages of a collection."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from climassay.corpus.documents import Block, Document, Passage
from climassay.corpus.passages import shared_start
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.corpus.collection import Collection


READ_LANGUAGES = ("English", "French", "Spanish")
_COMMON = {
    "English": "the of and to is that with for are by",
    "French": "les des et du est dans une pour sont au",
    "Spanish": "los las del y es una por con el se",
    "Portuguese": "os das dos uma para com não são pela em",
    "Italian": "gli dei il della che di sono nel una per",
    "German": "der die und das ist mit von den nicht werden",
    "Dutch": "het een van en zijn dat voor niet met op",
}
_LANGUAGES_OF = {
    word: [name for name, words in _COMMON.items() if word in words.split()]
    for words in _COMMON.values()
    for word in words.split()
}
_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE = 200_000
_FEWEST = 20
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")


def language_of(texts: Iterable[str]) -> str | None:
    """The language of texts: an English name, "another script", or None where there is too little to tell."""
    sample = " ".join(texts)[:_SAMPLE]
    words = [word.lower() for word in _WORD.findall(sample)]
    if len(words) >= _FEWEST and sum(_LATIN.match(word) is not None for word in words) < len(words) / 2:
        return "another script"
    counts = Counter(name for word in words for name in _LANGUAGES_OF.get(word, ()))
    return counts.most_common(1)[0][0] if counts.total() >= _FEWEST else None


def check_language(title: str, texts: Iterable[str]) -> None:
    """Refuse a document whose calibrated words cannot be read.

    Raises:
        InputError: It is in another language than :data:`READ_LANGUAGES`.
    """
    language = language_of(texts)
    if language is not None and language not in READ_LANGUAGES:
        known = f"{', '.join(READ_LANGUAGES[:-1])} and {READ_LANGUAGES[-1]}"
        raise InputError(f"{title} seems to be in {language}: levels of confidence are read in {known} only.")


class ReportIdentity(NamedTuple):
    """A report of the IPCC, as far as its names tell."""

    cycle: str | None
    """``AR3`` to ``AR6``."""
    working_group: str | None
    """``WG1``, ``WG2``, ``WG3``, ``SYR``, or a special report."""

    @property
    def name(self) -> str | None:
        """For example ``AR6 WG1``, ``AR5 SYR`` or ``SR15``; None where the working group is not known."""
        if self.working_group is None:
            return None
        if self.working_group in _CYCLE_OF_SPECIAL:
            return self.working_group
        return f"{self.cycle} {self.working_group}" if self.cycle else self.working_group


# As the IPCC counts them: its special reports of 2018 and 2019 belong to the sixth assessment.
_CYCLE_OF_SPECIAL = {"SR15": "AR6", "SRCCL": "AR6", "SROCC": "AR6", "SREX": "AR5", "SRREN": "AR5"}
_SPECIAL = (
    ("SR15", r"sr\s?1\.?5\b|global\s+warming\s+of\s+1\.5\s*[°º]?\s*c|special report on global warming"),
    ("SRCCL", r"srccl|special report on climate change and land|^climate change and land\b"),
    ("SROCC", r"srocc|ocean and cryosphere in a changing climate"),
    ("SREX", r"srex|managing the risks of extreme events"),
    ("SRREN", r"srren|renewable energy sources and climate change mitigation"),
)
_GROUPS = (
    ("SYR", r"\bsyr\b|synthesis\s+report"),
    ("WG1", r"\bwg\s?(?:1|i)\b|working\s+group\s+(?:1|i)\b|physical\s+science\s+basis|\bthe\s+scientific\s+basis"),
    ("WG2", r"\bwg\s?(?:2|ii)\b|working\s+group\s+(?:2|ii)\b|impacts,\s+adaptation,?\s+and\s+vulnerability"),
    ("WG3", r"\bwg\s?(?:3|iii)\b|working\s+group\s+(?:3|iii)\b|climate\s+change\s+\d{4}\W+mitigation"),
)
_CYCLE = re.compile(r"\bar\s?([3-6])\b|\b(tar)\b", re.IGNORECASE)
_CYCLE_OF_WORD = {"third": "AR3", "fourth": "AR4", "fifth": "AR5", "sixth": "AR6"}
_CYCLE_OF_YEAR = {2001: "AR3", 2007: "AR4", 2013: "AR5", 2014: "AR5", 2021: "AR6", 2022: "AR6", 2023: "AR6"}
_YEAR = re.compile(r"climate\s+change\s+(20\d\d)|\bipcc,?\s+(20\d\d)", re.IGNORECASE)
_OWN_CITATION = re.compile(r"\bIn:\s+(.{0,400})", re.DOTALL)
_FIRST_BLOCKS = 8


def identify(document: Document, report: str | None = None, cycle: str | None = None) -> ReportIdentity:
    """Cycle and working group of a document, from what the user says, then its report, title and file name.

    Where these tell nothing, the way the document says it is to be cited does ("In: Climate Change 2021: The Physical
    Science Basis ..."), which appears in its first paragraphs.
    """
    sources = [report, document.report, document.title, document.source]
    names = [name for name in sources if name]
    cited = [match[1] for block in document.blocks[:_FIRST_BLOCKS] if (match := _OWN_CITATION.search(block.text))]
    group = next((found for name in [*names, *cited] if (found := _group(name))), None)
    if group in _CYCLE_OF_SPECIAL:
        return ReportIdentity(cycle or _CYCLE_OF_SPECIAL[group], group)
    found_cycle = cycle or next((found for name in [*names, *cited] if (found := _cycle(name))), None)
    return ReportIdentity(found_cycle, group)


def _group(name: str) -> str | None:
    plain = name.replace("_", " ")
    return next((group for group, words in (*_SPECIAL, *_GROUPS) if re.search(words, plain, re.IGNORECASE)), None)


def _cycle(name: str) -> str | None:
    plain = name.replace("_", " ")
    if match := _CYCLE.search(plain):
        return f"AR{match[1]}" if match[1] else "AR3"
    if match := re.search(r"\b(third|fourth|fifth|sixth)\s+assessment", plain, re.IGNORECASE):
        return _CYCLE_OF_WORD[match[1].lower()]
    if match := _YEAR.search(plain):
        return _CYCLE_OF_YEAR.get(int(match[1] or match[2]))
    return None


def documents_of_collection(collection: "Collection") -> Iterator[Document]:
    """The documents that a collection holds, by title, as far as its passages tell.

    What neighbouring passages share is there once. A passage knows its first page and the headings that its paragraphs
    have in common: pages and sections are coarser than those of the file.
    """
    for stored in collection.documents():
        passages = collection.document_passages(stored.id)
        yield Document(
            id=stored.id,
            title=stored.title,
            source=stored.source,
            blocks=tuple(_blocks(passages)),
            url=stored.url,
            report=stored.report,
            date=stored.date,
            edition=stored.edition,
            licence=stored.licence,
            media="collection",
        )


def _blocks(passages: list[Passage]) -> Iterator[Block]:
    """Paragraphs of passages; one that two passages divide is put together where they share their section."""
    for _, run in groupby(passages, key=lambda passage: (passage.chapter, passage.headings)):
        before = ""
        open_block: Block | None = None
        for passage in run:
            shared = shared_start(before, passage.text) if before else 0
            for number, text in enumerate(passage.text[shared:].split("\n")):
                if shared and number == 0 and open_block is not None:
                    open_block = replace(open_block, text=open_block.text + text)
                    continue
                if open_block is not None and open_block.text.strip():
                    yield open_block
                one = passage.paragraph_ids[0] if len(passage.paragraph_ids) == 1 else None
                pages = passage.first_page, passage.last_page
                open_block = Block(text, *pages, passage.headings, one, passage.chapter, passage.url)
            before = passage.text
        if open_block is not None and open_block.text.strip():
            yield open_block
