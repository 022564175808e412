"""The recipe of a dataset, in TOML: which collections, how many questions of which kind and level, who decides.

    name = "silver"
    collections = ["books"]

    [writer]
    model = "local:smollm2"

    [counts]
    mcq = 30
    freeform = 30
    cloze = 30

``climassay generate init FILE`` writes one with every entry explained.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from climassay.corpus import SearchMode
from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.models.profiles import ProfileSettings
from climassay.models.servers import normalised_base_url
from climassay.questions import KINDS, LEVELS, TYPES, Kind, Level
from climassay.settings import filled, load_toml


@dataclass(frozen=True, slots=True)
class Stream:
    """All questions of one kind and level: what is asked for, counted and balanced on its own."""

    kind: Kind
    level: Level

    @property
    def name(self) -> str:
        """For example ``mcq/reasoning``."""
        return f"{self.kind}/{self.level}"


@dataclass(frozen=True, slots=True)
class WriterSpec:
    """The model that writes and evolves."""

    model: str
    """As in ``--model``."""
    base_url: str | None = None
    """Gets no API key unless the user has bound one to its host: see :mod:`climassay.models.servers`."""
    dtype: str | None = None
    device: str | None = None
    adapter: str | None = None
    concurrency: int | None = None
    temperature: float = 0.7
    max_tokens: int | None = None
    """Room for an answer; by default 400 tokens with brief prompts, else 1000."""
    examples: str = ""
    """A question file whose questions are shown as examples; ``primer``; empty: none."""
    shown: int = 2
    """Examples that are shown: so many of each kind and level."""
    brief: bool | None = None
    """Short prompts, for very small models; by default as the profile says."""
    reasoning_effort: str | None = None
    """How much a model behind a server is to think."""
    timeout: float | None = None
    """Seconds that one attempt may take; by default as long as the deadline allows."""
    price_in: float | None = None
    """US dollars per million prompt tokens."""
    price_out: float | None = None
    """US dollars per million completion tokens."""

    def __post_init__(self) -> None:
        """See that the address holds no name and password, which would be kept with every run."""
        if self.base_url:
            object.__setattr__(self, "base_url", normalised_base_url(self.base_url))


@dataclass(frozen=True, slots=True)
class CountSpec:
    """How many accepted questions are wanted."""

    mcq: int = 0
    freeform: int = 0
    cloze: int = 0
    base: float = 1.0
    """Share of the level among types that have levels; the three shares need not sum to 1."""
    reasoning: float = 0.0
    hypothetical: float = 0.0
    others: dict[str, int] = field(default_factory=dict)
    """Questions of further types, by kind; in a file each stands beside the first three."""

    def of(self, kind: Kind) -> int:
        """Questions wanted of a kind."""
        return {"mcq": self.mcq, "freeform": self.freeform, "cloze": self.cloze, **self.others}.get(kind, 0)


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """What is shown beside the main passage."""

    most: int = 2
    """Retrieved passages; 0 shows the main passage alone."""
    threshold: float | None = None
    """Cosine below which a passage is not shown; by default what was measured for the collection's encoder."""
    mode: SearchMode = "dense"
    other_documents: bool = False
    """Only passages of other documents than the main one's."""


@dataclass(frozen=True, slots=True)
class ScreenSpec:
    """Which checks are made."""

    without: tuple[str, ...] = ()
    """Names of checks that are left out; see ``climassay generate checks``."""
    entailment: str = ""
    """For the check that the passage supports the answer, as in ``climassay metrics``; empty: word overlap only."""
    consistency: str = "writer"
    """Who answers the questions again: ``writer``, a model, or empty for nobody. A strong model looks at questions of
    all kinds in one request each; the next three entries are for small ones."""
    orders: int = 4
    """Orders of the options in which each question is answered."""
    needed: float = 1.0
    """Share of the orders that must be answered right."""
    margin: float = 0.2
    """Least lead of the marked option's probability over the next one's."""
    jaccard: float = 0.8
    """Share of common word triples above which two questions are the same."""
    cosine: float = 0.92
    """Similarity of meaning above which two questions are the same."""
    language: str = "en"
    """In which questions and passages are written."""


@dataclass(frozen=True, slots=True)
class ValidatorSpec:
    """Who validates, by kind, as in ``climassay generate validate``; empty: nobody."""

    mcq: str = ""
    freeform: str = ""
    threshold: float | None = None
    """P(valid) from which a question is kept; by default the validator's own."""


@dataclass(frozen=True, slots=True)
class MaskerSpec:
    """Who chooses the term of a cloze statement."""

    use: str = ""
    """``statistics``, the file of a trained masker, or ``prompted:MODEL``; empty: the writer names the term with its
    statement, or ``statistics`` chooses where the writer gets brief prompts."""
    glossary: str = ""
    """File of terms, one a line, for the statistics masker."""


@dataclass(frozen=True, slots=True)
class StopSpec:
    """When to stop before the counts are reached."""

    cost: float | None = None
    """US dollars."""
    asked: int | None = None
    """Drafts of one stream."""
    min_yield: float = 0.01
    """Accepted share of a stream's drafts below which the stream is given up ..."""
    after: int = 200
    """... once so many drafts have been written for it."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides which questions are made."""

    name: str
    collections: tuple[str, ...]
    writer: WriterSpec
    counts: CountSpec = field(default_factory=CountSpec)
    subject: Subject = field(default_factory=Subject)
    contexts: ContextSpec = field(default_factory=ContextSpec)
    screening: ScreenSpec = field(default_factory=ScreenSpec)
    validator: ValidatorSpec = field(default_factory=ValidatorSpec)
    masker: MaskerSpec = field(default_factory=MaskerSpec)
    stop: StopSpec = field(default_factory=StopSpec)
    profile: ProfileSettings = field(default_factory=ProfileSettings)
    seed: int = 0
    batch: int = 32
    """Most drafts of a stream that are written before the next ones are planned."""
    folder: Path = Path()
    """Where relative files are looked for."""

    def wanted(self) -> dict[Stream, int]:
        """Accepted questions wanted of each stream, without the empty ones.

        A kind's number is split over its levels by largest remainder.
        """
        counts = self.counts
        shares = {level: float(getattr(counts, level)) for level in LEVELS}
        found: dict[Stream, int] = {}
        for kind in KINDS:
            number = counts.of(kind)
            parts: dict[Level, int] = _apportioned(number, shares) if TYPES[kind].levels else {"base": number}
            found |= {Stream(kind, level): part for level, part in parts.items() if part}
        return found

    def deciding(self) -> dict[str, Any]:
        """The entries that must not change while a dataset grows; counts, stops and batch may."""
        values = asdict(self)
        for name in ("counts", "stop", "batch", "folder", "name"):
            del values[name]
        for name in ("base_url", "device", "concurrency", "timeout", "price_in", "price_out"):
            del values["writer"][name]
        if self.writer.reasoning_effort is None:  # as in datasets begun before there was such an entry
            del values["writer"]["reasoning_effort"]
        return values


def _apportioned(number: int, shares: Mapping[Level, float]) -> dict[Level, int]:
    """A number split by shares so that the parts sum to it (largest remainder; ties to the first)."""
    total = sum(shares.values())
    exact = {level: number * share / total for level, share in shares.items()} if total else dict.fromkeys(shares, 0.0)
    parts = {level: int(value) for level, value in exact.items()}
    left = number - sum(parts.values())
    for level in sorted(exact, key=lambda one: parts[one] - exact[one])[:left]:
        parts[level] += 1
    return parts


_TABLES: dict[str, type] = {
    "writer": WriterSpec,
    "counts": CountSpec,
    "subject": Subject,
    "contexts": ContextSpec,
    "screening": ScreenSpec,
    "validator": ValidatorSpec,
    "masker": MaskerSpec,
    "stop": StopSpec,
    "profile": ProfileSettings,
}


def load_recipe(path: Path) -> Recipe:
    """The recipe of a file.

    Raises:
        InputError: The file is missing or not TOML, or an entry does not exist or fit.
    """
    return parse_recipe(load_toml(path), where=str(path), folder=path.absolute().parent)


def parse_recipe(data: Mapping[str, Any], *, where: str, folder: Path) -> Recipe:
    """The recipe of a table as in the module's example.

    Args:
        data: Entries.
        where: The file, for messages.
        folder: Where relative files are looked for.

    Raises:
        InputError: An entry does not exist or does not fit.
    """
    values = dict(data)
    for name, kind in _TABLES.items():
        entry = values.get(name, {})
        if not isinstance(entry, Mapping):
            raise InputError(f"{where}: {name} is a table that begins with [{name}].")
        if kind is CountSpec:
            further = {word: entry[word] for word in entry if word in KINDS and not hasattr(CountSpec, word)}
            entry = {word: entry[word] for word in entry if word not in further} | (
                {"others": further} if further else {}
            )
        if name in values or name == "writer":
            values[name] = filled(kind, entry, where, f"[{name}]")
    if isinstance(values.get("collections"), str):
        raise InputError(f'{where}: collections is a list of texts, for example collections = ["books"].')
    recipe = filled(Recipe, {"name": Path(where).stem, **values, "folder": folder}, where, "the file")
    check_recipe(recipe, where)
    return recipe


def check_recipe(recipe: Recipe, where: str) -> None:
    """Whether a recipe can be followed.

    Raises:
        InputError: It cannot; the sentence says why.
    """
    counts, screening, stop = recipe.counts, recipe.screening, recipe.stop
    shares = (counts.base, counts.reasoning, counts.hypothetical)
    faults = (
        (not recipe.collections, "name at least one collection (climassay corpus add NAME FILE...)"),
        (min(map(counts.of, KINDS)) < 0, "a count cannot be negative"),
        (not any(map(counts.of, KINDS)), "say in [counts] how many questions are wanted"),
        (min(shares) < 0, "a level's share cannot be negative"),
        (
            any(counts.of(kind) for kind in KINDS if TYPES[kind].levels) and not sum(shares),
            "at least one level needs a share above 0",
        ),
        (recipe.batch < 1, "the batch must be at least 1"),
        (recipe.contexts.most < 0, "[contexts] most cannot be negative"),
        (not 0 <= recipe.writer.temperature <= 2, "the writer's temperature must be between 0 and 2"),
        (
            recipe.writer.max_tokens is not None and recipe.writer.max_tokens < 1,
            "the writer's max_tokens must be at least 1",
        ),
        (recipe.writer.shown < 0, "the writer's shown cannot be negative"),
        (screening.orders < 1, "[screening] orders must be at least 1"),
        (not 0 <= screening.needed <= 1, "[screening] needed must be between 0 and 1"),
        (not 0 <= screening.margin < 1, "[screening] margin must be at least 0 and below 1"),
        (not 0 < screening.jaccard <= 1, "[screening] jaccard must be above 0 and at most 1"),
        (not 0 < screening.cosine <= 1, "[screening] cosine must be above 0 and at most 1"),
        (not 0 <= stop.min_yield <= 1, "[stop] min_yield must be between 0 and 1"),
        (stop.after < 1, "[stop] after must be at least 1"),
        (stop.cost is not None and stop.cost < 0, "[stop] cost cannot be negative"),
        (stop.asked is not None and stop.asked < 1, "[stop] asked must be at least 1"),
    )
    for wrong, sentence in faults:
        if wrong:
            raise InputError(f"{where}: {sentence}.")


COMMENTED = """\
# A dataset of questions, from books to silver.
# climassay corpus add books *.pdf ; climassay generate run this-file.toml

name = "silver"
collections = ["books"]                 # passages to write from; several are searched as one
seed = 0
batch = 32                              # most drafts of one kind and level between two plans

[subject]                               # another science is a matter of these words and another collection
field = "climate science"
source = "a graduate-level climate science textbook"
audience = "graduate students of climate science"

[writer]
model = "local:smollm2"                 # local:HUB_ID_OR_FOLDER or openai:MODEL
# base_url = "http://localhost:8000/v1" # gets your API key only if you allow it: see docs/how-to/api-models.md
# dtype = "bfloat16"
temperature = 0.7
# max_tokens = 1000                     # room for an answer; by default 400 with brief prompts, else 1000
# brief = true                          # short prompts; by default for models below 3 billion parameters
# reasoning_effort = "low"              # how much a model behind a server is to think
# examples = "primer"                   # a question file whose questions are shown as examples
# shown = 2                             # of each kind and level
# price_in = 0.15                       # US dollars per million tokens, for cost and budget
# price_out = 0.60

[counts]                                # accepted questions
mcq = 30
freeform = 30
cloze = 30
# true_false = 30                       # statements that are true or false
base = 0.5                              # shares of the levels among mcq and freeform
reasoning = 0.25
hypothetical = 0.25

[contexts]
most = 2                                # passages beside the main one
# threshold = 0.45                      # cosine; by default as measured for the encoder
mode = "dense"                          # or bm25, hybrid, rrf
other_documents = false                 # true: only passages of other documents

[screening]
without = []                            # names of checks to leave out: climassay generate checks
entailment = ""                         # "bundled", "nli:MODEL" ...: does the passage support the answer?
consistency = "writer"                  # who answers the questions again: writer, a model, or "" for nobody
orders = 4                              # small models: orders of the options,
needed = 1.0                            # share of them that must be answered right,
margin = 0.2                            # least lead of the marked option over the next one
jaccard = 0.8                           # near-duplicates: common word triples ...
cosine = 0.92                           # ... and similarity of meaning
language = "en"

[validator]                             # climassay generate validate train
# mcq = "validator-mcq"
# freeform = "validator-freeform"
# threshold = 0.5                       # by default the validator's own

[masker]
use = ""                                # the writer's own term; or statistics, a trained masker's file, prompted:MODEL
# glossary = "terms.txt"

[profile]
name = "auto"                           # how models are asked, by their size; or small, strong

[stop]
# cost = 5.0                            # US dollars
# asked = 1000                          # drafts of one kind and level
min_yield = 0.01                        # give a kind and level up below this share of accepted drafts ...
after = 200                             # ... once so many are written
"""
