"""Statements to be tagged and statements with known tags, as taggers see them."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from climassay.confidence.extraction.cleaning import clean_sentence
from climassay.confidence.statement import Statement
from climassay.confidence.vocabulary import TAGS, Tag
from climassay.learning.features import Text

LEVELS: tuple[Tag, ...] = TAGS[1:]
"""Low to very high: the four levels of ClimateX, which has no statement of very low confidence."""
Taggable: TypeAlias = "Statement | TaggingItem | tuple[str, str] | str"
"""A statement; a text; or a text and its context. Tags in them are taken out before they are read."""


def plain_statement(text: str) -> str:
    """A statement without confidence tags, evidence and agreement terms, references and section marks.

    The same rules as for statements extracted from reports, so that a tagger reads at use what it read in training;
    words that a line end broke are joined by their hyphen first ("climate- induced").
    """
    joined = re.sub(r"(?<=[a-z]-)\s+(?=[a-z])(?!(?:and|or|to)\b)", "", text.replace("\u00ad", ""))
    return clean_sentence(" ".join(joined.split()))


@dataclass(frozen=True, slots=True)
class TaggingItem:
    """A statement with the sentences around it, freed of tags, references and section marks."""

    text: str
    before: tuple[str, ...] = ()
    """Sentences before it in its section, in order."""
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: Taggable) -> "TaggingItem":
        """From whatever a user may have.

        Args:
            given: A statement; a text; or a text and its context, as one string: where the context contains the text
                it is parted there, else all of it counts as standing before.
        """
        if isinstance(given, TaggingItem):
            return given
        if isinstance(given, Statement):
            sides = (tuple(map(plain_statement, side)) for side in (given.before, given.after))
            return cls(plain_statement(given.text), *sides)
        from climassay.corpus.sentences import split_sentences

        text, context = (given, "") if isinstance(given, str) else given
        before, found, after = context.partition(text) if text else (context, "", "")
        if not found:
            before, after = context, ""
        around = (filter(None, map(plain_statement, split_sentences(side))) for side in (before, after))
        return cls(plain_statement(text), *map(tuple, around))

    def window(self, sentences: int) -> str:
        """The statement between this many sentences each side."""
        if not sentences:
            return self.text
        return " ".join((*self.before[-sentences:], self.text, *self.after[:sentences]))

    def read(self, sentences: int = 5) -> Text:
        """The statement, and this many sentences each side of it, without itself; empty where there are none."""
        return self.text, " ".join((*self.before[-sentences:], *self.after[:sentences]))


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """A statement whose tag is known."""

    item: TaggingItem
    tag: Tag
    report: str
    document: str
    """Chapter or summary of a report; taggers are tested on documents that they have not seen."""
    section: str
    """Statements of one section never stand on both sides of a split."""
    recovered: bool = False
    """Whether its place in the report, and so its context, was found."""
    id: str = ""
    """Of the extracted statement; empty where the data has none."""
