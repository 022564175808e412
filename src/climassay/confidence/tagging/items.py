"""Statements to be tagged and statements with known tags, as taggers see them."""

from collections.abc import Sequence
from dataclasses import dataclass

from climassay.confidence.statement import Statement
from climassay.confidence.tagging.wording import plain_statement
from climassay.confidence.vocabulary import TAGS, Tag

LEVELS: tuple[Tag, ...] = TAGS[1:]
"""Low to very high: the four levels of ClimateX, which has no statement of very low confidence."""


@dataclass(frozen=True, slots=True)
class TaggingItem:
    """A statement with the sentences around it, freed of tags, references and section marks."""

    text: str
    before: tuple[str, ...] = ()
    """Sentences before it in its section, in order."""
    after: tuple[str, ...] = ()

    @classmethod
    def of(cls, given: "Statement | TaggingItem | tuple[str, str] | str") -> "TaggingItem":
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
        text, context = (given, "") if isinstance(given, str) else given
        before, found, after = context.partition(text) if text else (context, "", "")
        if not found:
            before, after = context, ""
        return cls(plain_statement(text), _sentences(before), _sentences(after))

    def window(self, sentences: int) -> str:
        """The statement between this many sentences each side."""
        if not sentences:
            return self.text
        return " ".join((*self.before[-sentences:], self.text, *self.after[:sentences]))

    def surroundings(self, sentences: int = 5) -> str:
        """The sentences around it without itself; empty where there are none."""
        return " ".join((*self.before[-sentences:], *self.after[:sentences]))


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


def level_places(items: Sequence[LabelledItem], levels: Sequence[Tag] = LEVELS) -> list[int]:
    """Place of each item's tag among the levels."""
    return [levels.index(one.tag) for one in items]


def _sentences(text: str) -> tuple[str, ...]:
    from climassay.corpus.sentences import split_sentences

    return tuple(plain for one in split_sentences(text) if (plain := plain_statement(one)))
