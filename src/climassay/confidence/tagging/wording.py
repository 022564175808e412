"""The words of a statement, without what would give its tag away or says nothing about its certainty."""

import re

from climassay.confidence.extraction.cleaning import clean_sentence


def plain_statement(text: str) -> str:
    """A statement without confidence tags, evidence and agreement terms, references and section marks.

    The same rules as for statements extracted from reports, so that a tagger reads at use what it read in training;
    words that a line end broke are joined by their hyphen first ("climate- induced").
    """
    joined = re.sub(r"(?<=[a-z]-)\s+(?=[a-z])(?!(?:and|or|to)\b)", "", text.replace("\u00ad", ""))
    return clean_sentence(" ".join(joined.split()))


def normalised(text: str) -> str:
    """Letters and digits of a text in lower case, words parted by one blank: what makes two texts the same."""
    return " ".join(re.findall(r"[^\W_]+", text.casefold()))
