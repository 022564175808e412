"""Extract the statements of reports, each with its level of confidence and its context.

Documents are read from files or rebuilt from a collection. Their language and report are identified first.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from climassay.confidence.extraction.cleaning import (
    AcronymList,
    clean_sentence,
    find_paragraph_label,
    find_reference_brackets,
    find_references,
    is_reference,
)
from climassay.confidence.settings import ExtractOptions
from climassay.confidence.statement import Statement
from climassay.confidence.tags import Tag, find_likelihoods, find_tags
from climassay.confidence.vocabulary import Level
from climassay.corpus.documents import Block, Document, Passage, count_repeated_characters
from climassay.corpus.languages import LANGUAGE_NAMES, OTHER_SCRIPT, count_function_words, is_in_other_script
from climassay.corpus.sentences import sentence_spans
from climassay.errors import InputError

if TYPE_CHECKING:
    from climassay.confidence.extraction.dividing import SentenceDivider
    from climassay.corpus.collection import Collection

READ_LANGUAGES = ("English", "French", "Spanish")
_MAX_CHARACTERS = 200_000
_MIN_WORDS = _MIN_FUNCTION_WORDS = 20
_LANGUAGE_OF_LEVEL = {"confiance": "fr", "confianza": "es"}
"""Language code by the language's word for confidence, for texts too short to be identified by common words."""


def detect_language(texts: Iterable[str]) -> str | None:
    """Return the English name of the texts' language, "another script", or None if there is too little text."""
    sample = " ".join(texts)[:_MAX_CHARACTERS]
    function_word_counts, n_words = count_function_words(sample)
    if n_words >= _MIN_WORDS and is_in_other_script(sample):
        return OTHER_SCRIPT
    likeliest_code = max(function_word_counts, key=lambda code: function_word_counts[code])
    if function_word_counts[likeliest_code] >= _MIN_FUNCTION_WORDS:
        return LANGUAGE_NAMES[likeliest_code]
    words = set(re.findall(r"\w+", sample.lower()))
    languages = (code for word, code in _LANGUAGE_OF_LEVEL.items() if word in words)
    return next(
        (LANGUAGE_NAMES[code] for code in languages if function_word_counts[code] >= function_word_counts["en"]), None
    )


def check_language(title: str, texts: Iterable[str]) -> None:
    """Validate that the calibrated terms of a document's language are supported.

    Raises:
        InputError: The language is not one of :data:`READ_LANGUAGES`.
    """
    language = detect_language(texts)
    if language is not None and language not in READ_LANGUAGES:
        names = f"{', '.join(READ_LANGUAGES[:-1])} and {READ_LANGUAGES[-1]}"
        raise InputError(f"{title} seems to be in {language}: levels of confidence are read in {names} only.")


class ReportIdentity(NamedTuple):
    """Cycle and working group of a report of the IPCC."""

    cycle: str | None
    """``AR3`` to ``AR6``; None if unknown."""
    working_group: str | None
    """``WG1``, ``WG2``, ``WG3``, ``SYR``, or a special report; None if unknown."""

    @property
    def name(self) -> str | None:
        """Name, for example ``AR6 WG1``, ``AR5 SYR`` or ``SR15``; None if the working group is unknown."""
        if self.working_group is None:
            return None
        if self.working_group in _CYCLE_BY_SPECIAL:
            return self.working_group
        return f"{self.cycle} {self.working_group}" if self.cycle else self.working_group


# The IPCC's special reports of 2018 and 2019 belong to the sixth assessment.
_CYCLE_BY_SPECIAL = {"SR15": "AR6", "SRCCL": "AR6", "SROCC": "AR6", "SREX": "AR5", "SRREN": "AR5"}
_SPECIAL_REPORTS = (
    ("SR15", r"sr\s?1\.?5\b|global\s+warming\s+of\s+1\.5\s*[°º]?\s*c|special report on global warming"),
    ("SRCCL", r"srccl|special report on climate change and land|^climate change and land\b"),
    ("SROCC", r"srocc|ocean and cryosphere in a changing climate"),
    ("SREX", r"srex|managing the risks of extreme events"),
    ("SRREN", r"srren|renewable energy sources and climate change mitigation"),
)
_WORKING_GROUPS = (
    ("SYR", r"\bsyr\b|synthesis\s+report"),
    ("WG1", r"\bwg\s?(?:1|i)\b|working\s+group\s+(?:1|i)\b|physical\s+science\s+basis|\bthe\s+scientific\s+basis"),
    ("WG2", r"\bwg\s?(?:2|ii)\b|working\s+group\s+(?:2|ii)\b|impacts,\s+adaptation,?\s+and\s+vulnerability"),
    ("WG3", r"\bwg\s?(?:3|iii)\b|working\s+group\s+(?:3|iii)\b|climate\s+change\s+\d{4}\W+mitigation"),
)
_CYCLE = re.compile(r"\bar\s?([3-6])\b|\b(tar)\b", re.IGNORECASE)
_CYCLE_BY_WORD = {"third": "AR3", "fourth": "AR4", "fifth": "AR5", "sixth": "AR6"}
_CYCLE_BY_YEAR = {2001: "AR3", 2007: "AR4", 2013: "AR5", 2014: "AR5", 2021: "AR6", 2022: "AR6", 2023: "AR6"}
_YEAR = re.compile(r"climate\s+change\s+(20\d\d)|\bipcc,?\s+(20\d\d)", re.IGNORECASE)
_OWN_CITATION = re.compile(r"\bIn:\s+(.{0,400})", re.DOTALL)
_FIRST_BLOCKS = 8


def identify_report(document: Document, report: str | None = None, cycle: str | None = None) -> ReportIdentity:
    """Return the cycle and working group of a document.

    The first of these texts that identifies a report is used: ``report``, the document's report, title, and file name,
    and the recommended citation in its first paragraphs ("In: Climate Change 2021: The Physical Science Basis ...").
    """
    sources = [report, document.report, document.title, document.source]
    names = [name for name in sources if name]
    citations = [match[1] for block in document.blocks[:_FIRST_BLOCKS] if (match := _OWN_CITATION.search(block.text))]
    working_group = next((result for name in [*names, *citations] if (result := _find_working_group(name))), None)
    if working_group in _CYCLE_BY_SPECIAL:
        return ReportIdentity(cycle or _CYCLE_BY_SPECIAL[working_group], working_group)
    found_cycle = cycle or next((result for name in [*names, *citations] if (result := _find_cycle(name))), None)
    return ReportIdentity(found_cycle, working_group)


def _find_working_group(name: str) -> str | None:
    spaced_name = name.replace("_", " ")
    return next(
        (
            group
            for group, words in (*_SPECIAL_REPORTS, *_WORKING_GROUPS)
            if re.search(words, spaced_name, re.IGNORECASE)
        ),
        None,
    )


def _find_cycle(name: str) -> str | None:
    spaced_name = name.replace("_", " ")
    if match := _CYCLE.search(spaced_name):
        return f"AR{match[1]}" if match[1] else "AR3"
    if match := re.search(r"\b(third|fourth|fifth|sixth)\s+assessment", spaced_name, re.IGNORECASE):
        return _CYCLE_BY_WORD[match[1].lower()]
    if match := _YEAR.search(spaced_name):
        return _CYCLE_BY_YEAR.get(int(match[1] or match[2]))
    return None


def documents_of_collection(collection: "Collection") -> Iterator[Document]:
    """Yield the documents of a collection, rebuilt from their passages, ordered by title.

    Text that neighbouring passages share is included once. Pages and sections are less precise than in the original
    file: a passage has only its first page, and only the headings shared by all its paragraphs.
    """
    for stored_document in collection.documents():
        passages = collection.document_passages(stored_document.id)
        yield Document(
            id=stored_document.id,
            title=stored_document.title,
            source=stored_document.source,
            blocks=tuple(_rebuild_blocks(passages)),
            url=stored_document.url,
            report=stored_document.report,
            date=stored_document.date,
            edition=stored_document.edition,
            licence=stored_document.licence,
            media="collection",
        )


def _rebuild_blocks(passages: list[Passage]) -> Iterator[Block]:
    """Yield the paragraphs of passages, joining paragraphs that were split between two passages of a section."""
    for _, section_passages in groupby(passages, key=lambda passage: (passage.chapter, passage.headings)):
        previous_text = ""
        open_block: Block | None = None
        for passage in section_passages:
            n_shared = count_repeated_characters(previous_text, passage.text) if previous_text else 0
            for line_index, text in enumerate(passage.text[n_shared:].split("\n")):
                if n_shared and line_index == 0 and open_block is not None:
                    open_block = replace(open_block, text=open_block.text + text)
                    continue
                if open_block is not None and open_block.text.strip():
                    yield open_block
                paragraph_id = passage.paragraph_ids[0] if len(passage.paragraph_ids) == 1 else None
                pages = passage.first_page, passage.last_page
                open_block = Block(text, *pages, passage.headings, paragraph_id, passage.chapter, passage.url)
            previous_text = passage.text
        if open_block is not None and open_block.text.strip():
            yield open_block


MIN_UNTAGGED_WORDS = 4
"""Minimum number of words of a sentence without a level. Shorter sentences are mostly labels and are skipped."""
MAX_SCOPE_WORDS = 14
_EXPLANATION = re.compile(
    r"\btypeset\s+in\s+italics\b|\bqualifiers\b|\bcalibrated\s+(?:uncertainty\s+)?(?:language|terms?)\b"
    r"|\bundetectable\s+risk\s+level\b|\b(?:dark|light)\s+shad(?:e|ing)\b"
    r"|\blevels?\s+of\s+confidence\s+(?:is|are)\s+(?:expressed|given)\b|\b(?:one|two|three|four)\s+dots?\b"
    r"|\b(?:square|circle|hexagon|triangle|bar|line|arrow|dot|symbol|colour|color|shading|hatching)s?\s+"
    r"(?:indicate|denote|show|represent|mark|mean)s?\s+(?:(?:very\s+)?(?:low|medium|high)\s+confidence"
    r"|(?:regions?|areas?|places|locations?|models?)\s+(?:where|with|for|that))\b|\bconfidence\s+is\s+based\s+on\b|\b(?:three|four|five)\s+levels\b[^.]{0,20}:",
    re.IGNORECASE,
)
_BRACKET_AFTER_STOP = re.compile(r"[.!?][”’\"]?\d{0,2}\s*[(\[]")
_MIN_END_RATIO = 4
"""If the ratio of tags at the ends of paragraphs to tags after other full stops is at least this value, tags at the
ends of paragraphs apply to whole paragraphs."""
_WORD = re.compile(r"[^\W\d_]+")
_NON_ALPHANUMERIC = re.compile(r"[^a-z0-9]+")


class _ExtractedSentence(NamedTuple):
    words: str
    block: int
    number: int
    """Index of the sentence in its block."""


def extract(
    documents: Iterable[Document], options: ExtractOptions | None = None, divider: "SentenceDivider | None" = None
) -> list[Statement]:
    """Extract the statements of documents, in reading order (Maiya 2024, C.1).

    A sentence with several levels results in one statement per level, each with the complete sentence as its text. A
    level in brackets after a full stop belongs to the sentence before it. Footnotes are skipped.

    Args:
        documents: Documents from :func:`climassay.corpus.read_all` or
            :func:`climassay.confidence.extraction.documents_of_collection`.
        options: Options of the extraction; None uses the defaults.
        divider: Divider of sentences with several levels; None leaves them undivided.

    Returns:
        Statements with a level of confidence and, if ``options.untagged`` is set, all other sentences. Ids depend only
        on the document and the options. ``duplicate_of`` is set as by :func:`mark_duplicates`.

    Raises:
        InputError: The calibrated terms of a document's language are unknown.
    """
    settings = options or ExtractOptions()
    statements: list[Statement] = []
    for document in documents:
        document_statements = _DocumentStatements(document, settings)
        statements += document_statements if divider is None else document_statements.divided(divider)
    return mark_duplicates(statements)


def mark_duplicates(statements: Sequence[Statement]) -> list[Statement]:
    """Return the statements, with ``duplicate_of`` set for those with the words and level of an earlier statement.

    Case and punctuation are ignored. ``duplicate_of`` is the id of the first such statement in the same report or, if
    there is none, in any report.
    """
    first_ids: dict[tuple[str, Level | None], str] = {}
    first_ids_by_report: dict[tuple[str, Level | None, str], str] = {}
    marked_statements = []
    for statement in statements:
        key = (normalise_words(statement.text), statement.tag)
        id_in_report = first_ids_by_report.setdefault((*key, statement.report), statement.id)
        id_overall = first_ids.setdefault(key, statement.id)
        original = id_in_report if id_in_report != statement.id else id_overall
        marked_statements.append(replace(statement, duplicate_of=None if original == statement.id else original))
    return marked_statements


def normalise_words(text: str) -> str:
    """Return the letters a to z and the digits of a text, in lower case.

    A single space replaces each sequence of other characters.
    """
    return _NON_ALPHANUMERIC.sub(" ", text.lower()).strip()


def explains_terms(sentence: str) -> bool:
    """Return whether a sentence explains calibrated terms or a figure's legend; its terms then qualify no statement."""
    return _EXPLANATION.search(sentence) is not None


def split_report_sentences(text: str) -> list[str]:
    """Split a paragraph into sentences; levels and references after a full stop belong to the sentence before it."""
    masked_characters = list(text)
    brackets = [tag.span_with_brackets for tag in find_tags(text) if tag.in_brackets]
    for start, end in [*brackets, *find_reference_brackets(text)]:
        masked_characters[start:end] = " " * (end - start)
    spans = sentence_spans("".join(masked_characters))
    if not spans:
        return [text] if text.strip() else []
    # Text before the first words belongs to the first sentence.
    starts = [0, *(start for start, _ in spans[1:])]
    ends = [*starts[1:], len(text)]
    return [text[start:end].strip() for start, end in zip(starts, ends, strict=True)]


class _DocumentStatements:
    """Statements of one document."""

    def __init__(self, document: Document, options: ExtractOptions) -> None:
        texts = [block.text for block in document.blocks]
        check_language(document.title, texts)
        self.document, self.options = document, options
        self.identity = identify_report(document, options.report, options.cycle)
        self.acronyms = AcronymList.from_texts(texts) if options.acronyms != "never" else AcronymList()
        self.labels: list[str | None] = []
        """Number of each block; if it has none, the number of the last numbered block above it in its chapter."""
        for _, blocks in groupby(document.blocks, key=lambda block: block.chapter):
            label = None
            for block in blocks:
                label = find_paragraph_label(block.text) or label
                self.labels.append(label)
        self.paragraph_tags = options.paragraph_tags == "always"
        """True if tags after a paragraph's last full stop hold for the paragraph."""
        if options.paragraph_tags == "found":
            n_ends = n_inner = 0
            for block in document.blocks:
                if block.footnote:
                    continue
                *inner_sentences, last_sentence = split_report_sentences(block.text) or [""]
                n_inner += sum(_tag_after_full_stop(words) is not None for words in inner_sentences)
                n_ends += bool(inner_sentences) and _tag_after_full_stop(last_sentence) is not None
            self.paragraph_tags = n_ends > 0 and n_inner * _MIN_END_RATIO <= n_ends

    def __iter__(self) -> Iterator[Statement]:
        body_blocks = (
            (block_index, block) for block_index, block in enumerate(self.document.blocks) if not block.footnote
        )
        for _, section in groupby(body_blocks, key=lambda entry: (entry[1].chapter, entry[1].headings)):
            yield from self._extract_from_section([
                _ExtractedSentence(words, block_index, number)
                for block_index, block in section
                for number, words in enumerate(split_report_sentences(block.text))
            ])  # fmt: skip

    def _extract_from_section(self, sentences: Sequence[_ExtractedSentence]) -> Iterator[Statement]:
        paragraph_tags = _map_paragraph_tags(sentences) if self.paragraph_tags else {}
        cleaned_words = cache(lambda index: self._clean(sentences[index].words))
        for index, sentence in enumerate(sentences):
            statements = list(self._extract_from_sentence(sentence, paragraph_tags.get(index)))
            if not statements:
                continue
            n_context = self.options.context
            preceding_sentences = tuple(islice(filter(None, map(cleaned_words, range(index - 1, -1, -1))), n_context))[
                ::-1
            ]
            following_sentences = tuple(
                islice(filter(None, map(cleaned_words, range(index + 1, len(sentences)))), n_context)
            )
            for part, statement in enumerate(statements):
                id_ = f"{self.document.id}-{sentence.block}.{sentence.number}.{part}"
                yield replace(
                    statement,
                    id=id_,
                    part=part,
                    parts=len(statements),
                    before=preceding_sentences,
                    after=following_sentences,
                )

    def divided(self, divider: "SentenceDivider") -> Iterator[Statement]:
        """Yield the statements; a statement from a divided sentence has the part that its level qualifies as text."""
        statements = list(self)
        groups = [list(group) for _, group in groupby(statements, key=lambda statement: statement.sentence_id)]
        undivided_groups = [group for group in groups if len(group) > 1 and len({s.text for s in group}) == 1]
        sentences = [(group[0].sentence, [s.sentence[s.start : s.end] for s in group]) for group in undivided_groups]
        texts: dict[str, str] = {}
        for group, parts in zip(undivided_groups, divider.divide(sentences), strict=True):
            if parts is not None:
                texts |= {s.id: self._clean(part) for s, part in zip(group, parts, strict=True)}
        for statement in statements:
            text = texts.get(statement.id)
            yield replace(statement, text=text, divided=True) if text else statement

    def _extract_from_sentence(self, sentence: _ExtractedSentence, paragraph_tag: Tag | None) -> Iterator[Statement]:
        """Yield a sentence's statements without context: one per level.

        A sentence without a level yields an untagged statement if these are included.
        """
        words = sentence.words
        tags = [] if explains_terms(words) else find_tags(words)
        level_tags = [tag for tag in tags if tag.levels and not tag.attributive]
        if paragraph_tag is not None:
            text = self._clean(words)
            if _is_long_enough(text):
                yield replace(self._make_statement(text, paragraph_tag, tags, sentence), is_paragraph_level=True)
            return
        if not level_tags and not self.options.untagged:
            return
        text = self._clean(words)
        same_brackets = len({tag.span_with_brackets for tag in level_tags}) == 1
        for tag in level_tags or (None,):
            if text and (tag is not None or _is_long_enough(text)):
                scoped_text = self._clean(_append_scope(text, tag)) if same_brackets else text
                yield self._make_statement(scoped_text, tag, tags, sentence)

    def _clean(self, text: str) -> str:
        return clean_sentence(self.acronyms.expand(clean_sentence(text), self.options.acronyms))

    def _make_statement(
        self, text: str, tag: Tag | None, sentence_tags: Sequence[Tag], sentence: _ExtractedSentence
    ) -> Statement:
        """Return a statement without id and context, with the likelihood terms, evidence and agreement of its sentence.

        If the sentence has several levels, evidence and agreement are taken from the brackets of the statement's own
        level.
        """
        has_several_levels = sum(bool(sentence_tag.levels) for sentence_tag in sentence_tags) > 1
        own_tags = [] if tag is None else [tag]
        source_tags = own_tags if has_several_levels else [*own_tags, *sentence_tags]
        span = (tag.start, tag.end) if tag is not None and tag in sentence_tags else (0, 0)
        document, block = self.document, self.document.blocks[sentence.block]
        return Statement(
            id="",
            text=text,
            tag=tag.levels[0 if self.options.ranges == "lower" else -1] if tag is not None and tag.levels else None,
            report=self.identity.name or document.report or document.title,
            document_id=document.id,
            document=document.title,
            likelihood=tuple(likelihood.term for likelihood in find_likelihoods(sentence.words)),
            evidence=next((source_tag.evidence for source_tag in source_tags if source_tag.evidence), None),
            agreement=next((source_tag.agreement for source_tag in source_tags if source_tag.agreement), None),
            sentence=sentence.words,
            start=span[0],
            end=span[1],
            label=self.labels[sentence.block],
            references=find_references(block.text),
            page=block.page,
            headings=block.headings,
            paragraph_id=block.paragraph_id,
            chapter=block.chapter,
            cycle=self.identity.cycle,
            working_group=self.identity.working_group,
        )


def _tag_after_full_stop(words: str) -> Tag | None:
    """Return the only tag of a sentence if nothing but the tag follows the full stop; otherwise None."""
    if _BRACKET_AFTER_STOP.search(words) is None:
        return None
    tags = [tag for tag in find_tags(words) if tag.levels]
    if len(tags) != 1 or not tags[0].in_brackets or tags[0].scope:
        return None
    start, end = tags[0].span_with_brackets
    is_alone = words[:start].rstrip(' ”’"').endswith((".", "!", "?")) and not clean_sentence(words[end:])
    return tags[0] if is_alone else None


def _map_paragraph_tags(sentences: Sequence[_ExtractedSentence]) -> dict[int, Tag]:
    """Map the indices of sentences to the tags that apply to their paragraphs.

    Such a tag applies to the last sentence and to the untagged sentences directly before it.
    """
    tags_by_index: dict[int, Tag] = {}
    for index, sentence in enumerate(sentences):
        is_last = index + 1 == len(sentences) or sentences[index + 1].block != sentence.block
        tag = _tag_after_full_stop(sentence.words) if is_last and sentence.number else None
        if tag is None:
            continue
        first_index = index
        while sentences[first_index].number and not any(
            previous_tag.levels for previous_tag in find_tags(sentences[first_index - 1].words)
        ):
            first_index -= 1
        if first_index < index:
            tags_by_index |= dict.fromkeys(range(first_index, index + 1), tag)
    return tags_by_index


def _is_long_enough(text: str) -> bool:
    return len(_WORD.findall(text)) >= MIN_UNTAGGED_WORDS


def _append_scope(text: str, tag: Tag | None) -> str:
    """Append the scope of a level (the regions or subjects in its brackets) to a statement's text."""
    if tag is None or not tag.scope or not text or is_reference(tag.scope):
        return text
    scope = "; ".join(part.strip() for part in tag.scope.split(";") if not is_reference(part))
    if not scope or len(scope.split()) > MAX_SCOPE_WORDS or re.match(r"(?:but|and|albeit)\b|with$", scope):
        return text
    return f"{text.rstrip(' .,;:')} ({scope})"
