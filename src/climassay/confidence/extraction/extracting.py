"""Take the statements of reports out of their documents, each with its level of confidence and its context.

What a document is before statements are taken from it: its language, its report, or passages of a collection.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from climassay.confidence.extraction.cleaning import (
    AcronymList,
    Acronyms,
    bracketed_spans,
    clean_sentence,
    is_reference,
    paragraph_label,
    references_in,
)
from climassay.confidence.marks import TagMark, find_likelihoods, find_tags
from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import Tag
from climassay.corpus.documents import Block, Document, Passage, shared_start
from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.extraction.dividing import SentenceDivider
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
_LETTERS_OF_WORD = re.compile(r"[^\W\d_]+")
_SAMPLE = 200_000
_FEWEST = 20
_LATIN = re.compile(r"[A-Za-zÀ-ɏ]")
_LANGUAGE_OF_LEVEL = {"confiance": "French", "confianza": "Spanish"}
"""What the word of a level tells of a text that is too short to tell by its other words."""


def language_of(texts: Iterable[str]) -> str | None:
    """The language of texts: an English name, "another script", or None where there is too little to tell."""
    sample = " ".join(texts)[:_SAMPLE]
    words = [word.lower() for word in _LETTERS_OF_WORD.findall(sample)]
    if len(words) >= _FEWEST and sum(_LATIN.match(word) is not None for word in words) < len(words) / 2:
        return "another script"
    counts = Counter(name for word in words for name in _LANGUAGES_OF.get(word, ()))
    if counts.total() >= _FEWEST:
        return counts.most_common(1)[0][0]
    levels = (name for word, name in _LANGUAGE_OF_LEVEL.items() if word in words)
    return next((name for name in levels if counts[name] >= counts["English"]), None)


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
    group = next((result for name in [*names, *cited] if (result := _group(name))), None)
    if group in _CYCLE_OF_SPECIAL:
        return ReportIdentity(cycle or _CYCLE_OF_SPECIAL[group], group)
    found_cycle = cycle or next((result for name in [*names, *cited] if (result := _cycle(name))), None)
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


RangeEnd = Literal["upper", "lower"]
ParagraphTags = Literal["found", "always", "never"]
MOST_CONTEXT = 50


@dataclass(frozen=True, slots=True)
class ExtractOptions:
    """How statements are taken out of reports.

    Raises:
        InputError: A setting that is not possible.
    """

    acronyms: Acronyms = "every"
    """Expand acronyms at every occurrence (Maiya 2024, C.1), on first use in each sentence, or not at all."""
    context: int = 5
    """Maximum number of sentences kept before and after a statement, within its section."""
    untagged: bool = False
    """Give the sentences without a level of confidence too."""
    ranges: RangeEnd = "upper"
    """Which end of "medium to high confidence" is the tag."""
    paragraph_tags: ParagraphTags = "found"
    """Whether a tag that stands alone behind a paragraph's last full stop holds for all its sentences: where the
    document uses it so (it hardly has such tags within paragraphs), always, or never."""
    report: str | None = None
    """Name of the report, in place of what the documents say."""
    cycle: str | None = None
    """Assessment cycle, in place of what the documents say: ``AR3`` to ``AR6``."""

    def __post_init__(self) -> None:
        if not 0 <= self.context <= MOST_CONTEXT:
            raise InputError(f"A context of {self.context} sentences is not possible: use 0 to {MOST_CONTEXT}.")
        for name, kind in (("acronyms", Acronyms), ("ranges", RangeEnd), ("paragraph_tags", ParagraphTags)):
            if getattr(self, name) not in get_args(kind):
                raise InputError(f"{name} cannot be {getattr(self, name)}: it is {' or '.join(get_args(kind))}.")


SHORTEST_UNTAGGED = 4
"""Words of a sentence that is given without a level; shorter ones are mostly labels."""
LONGEST_SCOPE = 14
_EXPLAINS = re.compile(
    r"\btypeset\s+in\s+italics\b|\bqualifiers\b|\bcalibrated\s+(?:uncertainty\s+)?(?:language|terms?)\b"
    r"|\bundetectable\s+risk\s+level\b|\b(?:dark|light)\s+shad(?:e|ing)\b"
    r"|\blevels?\s+of\s+confidence\s+(?:is|are)\s+(?:expressed|given)\b|\b(?:one|two|three|four)\s+dots?\b"
    r"|\b(?:square|circle|hexagon|triangle|bar|line|arrow|dot|symbol|colour|color|shading|hatching)s?\s+"
    r"(?:indicate|denote|show|represent|mark|mean)s?\s+(?:(?:very\s+)?(?:low|medium|high)\s+confidence"
    r"|(?:regions?|areas?|places|locations?|models?)\s+(?:where|with|for|that))\b|\bconfidence\s+is\s+based\s+on\b|\b(?:three|four|five)\s+levels\b[^.]{0,20}:",
    re.IGNORECASE,
)
_BEHIND_STOP = re.compile(r"[.!?][”’\"]?\d{0,2}\s*[(\[]")
_RARE = 4
"""Tags behind full stops at the ends of paragraphs for each one within, where they are those of paragraphs."""
_WORD = re.compile(r"[^\W\d_]+")
_NORMAL = re.compile(r"[^a-z0-9]+")


class _Sentence(NamedTuple):
    words: str
    block: int
    number: int
    """In its block, from 0."""


def extract(
    documents: Iterable[Document], options: ExtractOptions | None = None, divider: "SentenceDivider | None" = None
) -> list[Statement]:
    """Extract the statements of documents, in reading order (Maiya 2024, C.1).

    A sentence with several levels gives one statement for each, whose text is the whole sentence. A level in brackets
    behind a full stop is that of the sentence before it; some reports mean the sentences before that one too, which
    appear in the context. Footnotes are passed over.

    Args:
        documents: As :func:`climassay.corpus.read_all` gives them, or
            :func:`climassay.confidence.extraction.documents_of_collection`.
        options: See :class:`ExtractOptions`.
        divider: Divides sentences of several levels among them; without it, none is divided.

    Returns:
        Statements with a level of confidence; all sentences if ``options.untagged``. Ids depend on the document and
        the settings alone. ``duplicate_of`` names the first statement of the same report, else of any, that has the
        same words and level.

    Raises:
        InputError: A document is in a language whose calibrated words are not known.
    """
    settings = options or ExtractOptions()
    statements: list[Statement] = []
    for document in documents:
        of_document = _DocumentStatements(document, settings)
        statements += of_document if divider is None else of_document.divided(divider)
    return mark_duplicates(statements)


def mark_duplicates(statements: Sequence[Statement]) -> list[Statement]:
    """Set ``duplicate_of`` of statements with the words (without case and punctuation) and level of an earlier one.

    The first of the same report is named if there is one, else the first of all.
    """
    first: dict[tuple[str, Tag | None], str] = {}
    first_of_report: dict[tuple[str, Tag | None, str], str] = {}
    marked = []
    for statement in statements:
        key = (normalised(statement.text), statement.tag)
        near = first_of_report.setdefault((*key, statement.report), statement.id)
        far = first.setdefault(key, statement.id)
        known = near if near != statement.id else far if far != statement.id else None
        marked.append(replace(statement, duplicate_of=known))
    return marked


def normalised(text: str) -> str:
    """Letters and digits of a text in lower case, single spaces between words."""
    return _NORMAL.sub(" ", text.lower()).strip()


def explains_terms(sentence: str) -> bool:
    """Whether a sentence explains the calibrated vocabulary, or a legend, so that its terms state nothing."""
    return _EXPLAINS.search(sentence) is not None


def split_report_sentences(text: str) -> list[str]:
    """The sentences of a paragraph, with the marks, references and section marks that follow their full stop."""
    masked = list(text)
    brackets = [mark.whole for mark in find_tags(text) if mark.in_brackets]
    for start, end in [*brackets, *bracketed_spans(text)]:
        masked[start:end] = " " * (end - start)
    spans = sentence_spans("".join(masked))
    if not spans:
        return [text] if text.strip() else []
    # What comes before the first words belongs to the first sentence.
    starts = [0, *(start for start, _ in spans[1:])]
    ends = [*starts[1:], len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


class _DocumentStatements:
    """The statements of one document, and what they share."""

    def __init__(self, document: Document, options: ExtractOptions) -> None:
        texts = [block.text for block in document.blocks]
        check_language(document.title, texts)
        self.document, self.options = document, options
        self.identity = identify(document, options.report, options.cycle)
        self.acronyms = AcronymList.of(texts) if options.acronyms != "none" else AcronymList()
        self.labels: list[str | None] = []
        """The number of each block, or of the last numbered one above it in its chapter."""
        for _, blocks in groupby(document.blocks, key=lambda block: block.chapter):
            label = None
            for block in blocks:
                label = paragraph_label(block.text) or label
                self.labels.append(label)
        self.paragraph_tags = options.paragraph_tags == "always"
        """Whether tags behind a paragraph's last full stop hold for the paragraph: within it such tags are rare."""
        if options.paragraph_tags == "found":
            ends = within = 0
            for block in document.blocks:
                if block.footnote:
                    continue
                *before, last = split_report_sentences(block.text) or [""]
                within += sum(_tag_behind(words) is not None for words in before)
                ends += bool(before) and _tag_behind(last) is not None
            self.paragraph_tags = ends > 0 and within * _RARE <= ends

    def __iter__(self) -> Iterator[Statement]:
        numbered = ((place, block) for place, block in enumerate(self.document.blocks) if not block.footnote)
        for _, section in groupby(numbered, key=lambda entry: (entry[1].chapter, entry[1].headings)):
            yield from self._of_section([
                _Sentence(words, place, number)
                for place, block in section
                for number, words in enumerate(split_report_sentences(block.text))
            ])  # fmt: skip

    def _of_section(self, sentences: Sequence[_Sentence]) -> Iterator[Statement]:
        of_paragraph = _tags_of_paragraphs(sentences) if self.paragraph_tags else {}
        clean = cache(lambda place: self._clean(sentences[place].words))
        for place, sentence in enumerate(sentences):
            results = list(self._of_sentence(sentence, of_paragraph.get(place)))
            if not results:
                continue
            most = self.options.context
            before = tuple(islice(filter(None, map(clean, range(place - 1, -1, -1))), most))[::-1]
            after = tuple(islice(filter(None, map(clean, range(place + 1, len(sentences)))), most))
            for part, one in enumerate(results):
                name = f"{self.document.id}-{sentence.block}.{sentence.number}.{part}"
                yield replace(one, id=name, part=part, parts=len(results), before=before, after=after)

    def divided(self, divider: "SentenceDivider") -> Iterator[Statement]:
        """Yield the statements; if the divider found the words of each level of a sentence, their texts are these."""
        groups = [list(group) for _, group in groupby(self, key=lambda one: one.sentence_id)]
        undivided = [group for group in groups if len(group) > 1 and len({one.text for one in group}) == 1]
        parts = divider.divide([
            (group[0].sentence, [one.sentence[one.start : one.end] for one in group]) for group in undivided
        ])  # fmt: skip
        texts = {
            one.id: self._clean(part)
            for group, found in zip(undivided, parts, strict=True)
            for one, part in zip(group, found or (), strict=found is not None)
        }
        for one in (one for group in groups for one in group):
            yield replace(one, text=texts[one.id], divided=True) if texts.get(one.id) else one

    def _of_sentence(self, sentence: _Sentence, of_paragraph: TagMark | None) -> Iterator[Statement]:
        """Yield the statements of a sentence without context: one for each level, or the untagged one if wanted."""
        words = sentence.words
        marks = [] if explains_terms(words) else find_tags(words)
        levels = [mark for mark in marks if mark.levels and not mark.attributive]
        if of_paragraph is not None:
            text = self._clean(words)
            if _is_long_enough(text):
                yield replace(self._statement(text, of_paragraph, marks, sentence), whole_paragraph=True)
            return
        if not levels and not self.options.untagged:
            return
        text = self._clean(words)
        same_brackets = len({mark.whole for mark in levels}) == 1
        for mark in levels or (None,):
            if text and (mark is not None or _is_long_enough(text)):
                scoped = self._clean(_with_scope(text, mark)) if same_brackets else text
                yield self._statement(scoped, mark, marks, sentence)

    def _clean(self, text: str) -> str:
        return clean_sentence(self.acronyms.expand(clean_sentence(text), self.options.acronyms))

    def _statement(self, text: str, mark: TagMark | None, marks: Sequence[TagMark], sentence: _Sentence) -> Statement:
        """Return a statement without id and context.

        Its terms of likelihood are those of the sentence; so are evidence and agreement, unless the sentence has
        several levels: then they are those of the level's own brackets.
        """
        several = sum(bool(one.levels) for one in marks) > 1
        rated = [one for one in (mark, *(() if several else marks)) if one is not None]
        span = (mark.start, mark.end) if mark is not None and mark in marks else (0, 0)
        document, block = self.document, self.document.blocks[sentence.block]
        return Statement(
            id="",
            text=text,
            tag=mark.levels[0 if self.options.ranges == "lower" else -1] if mark is not None and mark.levels else None,
            report=self.identity.name or document.report or document.title,
            document_id=document.id,
            document=document.title,
            likelihood=tuple(term.term for term in find_likelihoods(sentence.words)),
            evidence=next((one.evidence for one in rated if one.evidence), None),
            agreement=next((one.agreement for one in rated if one.agreement), None),
            sentence=sentence.words,
            start=span[0],
            end=span[1],
            label=self.labels[sentence.block],
            references=references_in(block.text),
            page=block.page,
            headings=block.headings,
            paragraph_id=block.paragraph_id,
            chapter=block.chapter,
            cycle=self.identity.cycle,
            working_group=self.identity.working_group,
        )


def _tag_behind(words: str) -> TagMark | None:
    """The only tag of a sentence, where it stands alone behind the full stop."""
    if _BEHIND_STOP.search(words) is None:
        return None
    marks = [mark for mark in find_tags(words) if mark.levels]
    if len(marks) != 1 or not marks[0].in_brackets or marks[0].scope:
        return None
    start, end = marks[0].whole
    alone = words[:start].rstrip(' ”’"').endswith((".", "!", "?")) and not clean_sentence(words[end:])
    return marks[0] if alone else None


def _tags_of_paragraphs(sentences: Sequence[_Sentence]) -> dict[int, TagMark]:
    """By place, the tag of the paragraph for its last sentence and those before it that follow no other tag."""
    results: dict[int, TagMark] = {}
    for place, sentence in enumerate(sentences):
        ends = place + 1 == len(sentences) or sentences[place + 1].block != sentence.block
        mark = _tag_behind(sentence.words) if ends and sentence.number else None
        if mark is None:
            continue
        first = place
        while sentences[first].number and not any(one.levels for one in find_tags(sentences[first - 1].words)):
            first -= 1
        if first < place:
            results |= dict.fromkeys(range(first, place + 1), mark)
    return results


def _is_long_enough(text: str) -> bool:
    return len(_WORD.findall(text)) >= SHORTEST_UNTAGGED


def _with_scope(text: str, mark: TagMark | None) -> str:
    """A statement with what its brackets say besides the level: the regions or things that the level is for."""
    if mark is None or not mark.scope or not text or is_reference(mark.scope):
        return text
    scope = "; ".join(part.strip() for part in mark.scope.split(";") if not is_reference(part))
    if not scope or len(scope.split()) > LONGEST_SCOPE or re.match(r"(?:but|and|albeit)\b|with$", scope):
        return text
    return f"{text.rstrip(' .,;:')} ({scope})"
