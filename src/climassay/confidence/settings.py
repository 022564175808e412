"""Settings for extracting and grouping statements, in a module that commands can import quickly for their help."""

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
    """Spell out acronyms: every occurrence (Maiya 2024, C.1), the first of each in a sentence, or never."""
    context: Annotated[int, Field(ge=0, le=MAX_CONTEXT)] = 5
    """Maximum number of sentences stored before and after a statement, from the same section."""
    untagged: bool = False
    """Also extract sentences without a level."""
    ranges: RangeEnd = "upper"
    """Level of a range such as "medium to high confidence": its upper or lower end."""
    paragraph_tags: ParagraphTags = "found"
    """Apply a level after a paragraph's last full stop to the whole paragraph: always, never, or found (only if levels
    hardly ever follow other full stops in the document)."""
    report: str | None = None
    """Name of the report, for example "AR5 WG2"; by default as identified from each document."""
    cycle: str | None = None
    """Assessment cycle, AR3 to AR6; by default as identified from each document."""


@settings(subject="The topics")
class TopicSettings:
    """Settings of the clustering."""

    topics: Annotated[int, Field(ge=2)] = 30
    """Maximum number of topics; there are fewer if the statements form fewer clusters."""
    seed: Annotated[int, Field(ge=0)] = 0
    """Seed of UMAP, the only random step: the same data and seed give the same topics."""
    min_cluster_size: Annotated[int, Field(ge=2)] = 10
    """Minimum number of statements in a cluster, before clusters are merged into topics."""
    outliers: OutlierRule = "assign"
    """Treatment of statements outside all clusters: assign to the nearest topic, or leave without a topic."""
    reduction: Reduction = "embeddings"
    """Similarity by which clusters are merged: cosine of their mean vectors, or of their word weights (c-TF-IDF)."""
    neighbours: int = 15
    components: int = 5
    """Number of dimensions to which vectors are reduced before clustering."""
    words: int = 10
    """Maximum number of words (unigrams and bigrams) that describe a topic."""
    diversity: float = 0.2
    """Diversity of the words selected by maximal marginal relevance: 0 selects the most typical words, 1 the most
    diverse."""
