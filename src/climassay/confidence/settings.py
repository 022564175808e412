"""Settings of the extraction and grouping of statements; quick to import, because commands need them for help."""

from typing import Annotated, Literal

from pydantic import Field

from climassay.settings import settings

Acronyms = Literal["every", "first", "never"]
RangeEnd = Literal["upper", "lower"]
ParagraphTags = Literal["found", "always", "never"]
OutlierRule = Literal["assign", "leave"]
Reduction = Literal["embeddings", "words"]
MAX_CONTEXT = 50


@settings(subject="The extraction")
class ExtractOptions:
    """Options of the extraction."""

    acronyms: Acronyms = "every"
    """Spell out every acronym (Maiya 2024, C.1), the first of each in a sentence, or never any."""
    context: Annotated[int, Field(ge=0, le=MAX_CONTEXT)] = 5
    """Maximum number of sentences stored before and after a statement, from the same section."""
    untagged: bool = False
    """Also extract sentences without a level."""
    ranges: RangeEnd = "upper"
    """Level taken for "medium to high confidence": the upper or the lower end."""
    paragraph_tags: ParagraphTags = "found"
    """Whether a level after a paragraph's last full stop is the whole paragraph's: always, never, or (found) only if
    the document has hardly any such levels within paragraphs."""
    report: str | None = None
    """Report to which the files belong, for example "AR5 WG2"; by default the documents' own."""
    cycle: str | None = None
    """Assessment cycle, AR3 to AR6; by default read from the files."""


@settings(subject="The topics")
class TopicSettings:
    """Settings of the clustering."""

    topics: Annotated[int, Field(ge=2)] = 30
    """Maximum number of topics; the statements may have fewer clusters."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of UMAP, the only random step: the same data and seed give the same topics."""
    min_cluster_size: Annotated[int, Field(ge=2)] = 10
    """Minimum number of statements of a cluster before clusters are joined."""
    outliers: OutlierRule = "assign"
    """Assign statements outside every cluster to the nearest topic, or leave them without a topic."""
    reduction: Reduction = "embeddings"
    """Similarity by which clusters are merged: that of their mean vectors or of their words (c-TF-IDF)."""
    neighbours: int = 15
    components: int = 5
    """Number of dimensions for clustering."""
    words: int = 10
    """Maximum number of words of a topic, unigrams and bigrams."""
    diversity: float = 0.2
    """Diversity of maximal marginal relevance: 0 prefers the most typical words, 1 the most different ones."""
