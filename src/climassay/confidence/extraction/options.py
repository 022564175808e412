"""What a user may say about extraction."""

from dataclasses import dataclass
from typing import Literal

from climassay.errors import InputError

Acronyms = Literal["every", "first", "none"]
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
    """Most sentences kept before and after a statement, within its section."""
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
            raise InputError(f"A context of {self.context} sentences is not possible: take 0 to {MOST_CONTEXT}.")
        for name, allowed in (
            ("acronyms", ("every", "first", "none")),
            ("ranges", ("upper", "lower")),
            ("paragraph_tags", ("found", "always", "never")),
        ):
            if getattr(self, name) not in allowed:
                raise InputError(f"{name} cannot be {getattr(self, name)}: it is {' or '.join(allowed)}.")
