"""The recipe of a dataset, in TOML: collections, numbers of questions by kind and level, models and checks.

    name = "silver"
    collections = ["books"]

    [writer]
    model = "local:smollm2"

    [counts]
    mcq = 30
    freeform = 30
    cloze = 30

``climassay generate init FILE`` writes a recipe with every entry explained.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import Field

from climassay.corpus import SearchMode
from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.models.options import FileModel
from climassay.prompts import ProfileSettings
from climassay.questions import KINDS, LEVELS, TYPES, Kind, Level
from climassay.settings import commented_table, load_toml, parse_table, settings


@dataclass(frozen=True, slots=True)
class Stream:
    """Kind and level of questions that are requested, counted and balanced together."""

    kind: Kind
    level: Level

    @property
    def name(self) -> str:
        """Name of the stream, for example ``mcq/reasoning``."""
        return f"{self.kind}/{self.level}"


@settings
class WriterSpec(FileModel):
    """Settings of the model that writes and evolves questions."""

    model: str
    """local:HUB_ID_OR_FOLDER or openai:MODEL."""
    adapter: Annotated[str | None, Field(examples=["my-adapter"])] = None
    """Folder of a PEFT adapter."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Sampling temperature."""
    max_tokens: Annotated[int | None, Field(ge=1, examples=[1000])] = None
    """Maximum tokens of an answer; by default 400 with brief prompts, else 1000."""
    examples: Annotated[str, Field(examples=["primer"])] = ""
    """Question file with examples for the prompts, or primer."""
    n_examples: Annotated[int, Field(ge=0)] = 2
    """Number of examples of each kind and level."""
    brief: Annotated[bool | None, Field(examples=[True])] = None
    """Short prompts; by default for models below 3 billion parameters."""


@settings
class CountSpec:
    """Numbers of requested questions; only accepted questions count."""

    mcq: Annotated[int, Field(ge=0)] = 0
    """Multiple choice."""
    freeform: Annotated[int, Field(ge=0)] = 0
    """Answered in sentences."""
    cloze: Annotated[int, Field(ge=0)] = 0
    """Statements with a masked term."""
    base: Annotated[float, Field(ge=0)] = 1.0
    """Share of the level among types that have levels; the three need not sum to 1."""
    reasoning: Annotated[float, Field(ge=0)] = 0.0
    hypothetical: Annotated[float, Field(ge=0)] = 0.0
    further_kinds: dict[str, int] = field(default_factory=dict)
    """Numbers of questions of further kinds; in a file each kind is an entry like the first three."""

    def of(self, kind: Kind) -> int:
        """Return the requested number of questions of a kind."""
        number: int = self.further_kinds.get(kind, getattr(self, kind, 0))
        return number


@settings
class ContextSpec:
    """Settings of the passages that are retrieved for the main passage."""

    max_passages: Annotated[int, Field(ge=0)] = 2
    """Maximum number of retrieved passages; 0 shows the main passage only."""
    threshold: Annotated[float | None, Field(examples=[0.45])] = None
    """Minimum cosine of a retrieved passage; by default the value measured for the encoder."""
    mode: SearchMode = "dense"
    """dense, bm25, hybrid or rrf."""
    other_documents: bool = False
    """Only passages of other documents than the main one's."""


@settings
class ScreenSpec:
    """Settings of the checks of drafts."""

    without: tuple[str, ...] = ()
    """Names of checks to leave out: climassay generate checks."""
    entailment: str = ""
    """Scorer of whether the passage supports the answer: prompted:MODEL, supports:MODEL or nli:MODEL; "" goes by
    word overlap only."""
    consistency: str = "writer"
    """Model that answers the questions again: writer, a model, or "" for none. A strong model verifies questions of
    all kinds in one request each; the next three entries are for small models."""
    orders: Annotated[int, Field(ge=1)] = 4
    """Number of option orders in which each question is answered."""
    min_agreement: Annotated[float, Field(ge=0, le=1)] = 1.0
    """Minimum share of the orders that must be answered correctly."""
    margin: Annotated[float, Field(ge=0, lt=1)] = 0.2
    """Minimum lead of the marked option's probability over the next option's."""
    jaccard: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Jaccard similarity of word pairs from which two questions are duplicates."""
    cosine: Annotated[float, Field(gt=0, le=1)] = 0.92
    """Cosine from which two questions are duplicates."""
    language: str = "en"
    """Language of questions and passages."""


@settings
class ValidatorSpec:
    """Validators by kind, as in ``climassay generate validate``; an empty name means no validator."""

    mcq: Annotated[str, Field(examples=["validator-mcq"])] = ""
    freeform: Annotated[str, Field(examples=["validator-freeform"])] = ""
    threshold: Annotated[float | None, Field(examples=[0.5])] = None
    """Minimum P(valid) of an accepted question; by default the validator's own."""


@settings
class MaskerSpec:
    """Settings of the masker, which chooses the term of a cloze statement."""

    use: str = ""
    """statistics or prompted:MODEL; "": the writer names the term with its statement, or statistics chooses it if
    the writer gets brief prompts."""
    glossary: Annotated[str, Field(examples=["terms.txt"])] = ""
    """File of terms, one a line, for the statistics masker."""


@settings
class StopSpec:
    """Limits at which writing of a kind and level stops before its requested number is reached."""

    cost: Annotated[float | None, Field(ge=0, examples=[5.0])] = None
    """Budget in US dollars."""
    drafts: Annotated[int | None, Field(ge=1, examples=[1000])] = None
    """Maximum number of drafts of one kind and level."""
    min_yield: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Yield below which a kind and level ends ..."""
    after: Annotated[int, Field(ge=1)] = 200
    """... after this number of its drafts."""


@settings
class Recipe:
    """Settings that determine the questions of a dataset."""

    name: str
    collections: tuple[str, ...]
    """Collections to write from; several are searched as one."""
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
    batch: Annotated[int, Field(ge=1)] = 32
    """Maximum number of drafts per kind and level between two plans."""
    folder: Path = Path()
    """Folder that relative paths start from."""

    def requested(self) -> dict[Stream, int]:
        """Return the requested number of accepted questions by stream, without empty streams.

        The number of a kind is divided over its levels by largest remainder.
        """
        counts = self.counts
        shares = {level: float(getattr(counts, level)) for level in LEVELS}
        total = sum(shares.values())
        results: dict[Stream, int] = {}
        for kind in KINDS:
            number = counts.of(kind)
            parts: dict[Level, int] = {"base": number}
            if TYPES[kind].has_levels:
                exact = {level: number * share / total if total else 0.0 for level, share in shares.items()}
                parts = {level: int(value) for level, value in exact.items()}
                left = number - sum(parts.values())
                for level in sorted(exact, key=lambda level: parts[level] - exact[level])[:left]:
                    parts[level] += 1
            results |= {Stream(kind, level): part for level, part in parts.items() if part}
        return results

    def identity(self) -> dict[str, Any]:
        """Return the entries that must not change while a dataset grows; counts, limits and batch may change."""
        changeable = ("counts", "stop", "batch", "folder", "name")
        values = {name: value for name, value in asdict(self).items() if name not in changeable}
        for name in ("base_url", "device", "concurrency", "timeout", "price_in", "price_out"):
            del values["writer"][name]
        return values


_TABLES: dict[str, Any] = {name: kind for name, kind in get_type_hints(Recipe).items() if is_dataclass(kind)}
"""Class of each table of the file, by its name."""


def load_recipe(path: Path) -> Recipe:
    """Load a recipe from a file.

    Raises:
        InputError: The file is missing or no TOML, or an entry does not exist or has a bad value.
    """
    return parse_recipe(load_toml(path), source=str(path), folder=path.absolute().parent)


def parse_recipe(data: Mapping[str, Any], *, source: str, folder: Path) -> Recipe:
    """Return the recipe of parsed TOML.

    Args:
        data: Parsed TOML, as in the module's example.
        source: Name of the file, for messages.
        folder: Folder that relative paths start from.

    Raises:
        InputError: An entry does not exist or has a bad value.
    """
    values = dict(data)
    for name, kind in _TABLES.items():
        entry = values.get(name, {})
        if not isinstance(entry, Mapping):
            raise InputError(f"{source}: {name} is a table that begins with [{name}].")
        if kind is CountSpec:
            fields = {key: value for key, value in entry.items() if key not in KINDS or hasattr(CountSpec, key)}
            further_kinds = {key: value for key, value in entry.items() if key not in fields}
            entry = fields | ({"further_kinds": further_kinds} if further_kinds else {})
        if name in values or name == "writer":
            values[name] = parse_table(kind, entry, source, f"[{name}]")
    if isinstance(values.get("collections"), str):
        raise InputError(f'{source}: collections is a list of texts, for example collections = ["books"].')
    recipe = parse_table(Recipe, {"name": Path(source).stem, **values, "folder": folder}, source, "the file")
    check_recipe(recipe, source)
    return recipe


def check_recipe(recipe: Recipe, source: str) -> None:
    """Validate a recipe; ``source`` names its file in messages.

    Raises:
        InputError: An entry is missing or out of range.
    """
    counts = recipe.counts
    faults = (
        (not recipe.collections, "name at least one collection (climassay corpus add NAME FILE...)"),
        (min(map(counts.of, KINDS)) < 0, "a count cannot be negative"),
        (not any(map(counts.of, KINDS)), "request at least one question in [counts]"),
        (
            any(counts.of(kind) for kind in KINDS if TYPES[kind].has_levels)
            and not counts.base + counts.reasoning + counts.hypothetical,
            "at least one level needs a share above 0",
        ),
    )
    for is_fault, sentence in faults:
        if is_fault:
            raise InputError(f"{source}: {sentence}.")


COMMENTED = "\n".join(
    (
        "# A dataset of questions, from books to silver.\n"
        "# climassay corpus add books *.pdf ; climassay generate run this-file.toml\n",
        commented_table(Recipe, values={"name": "silver", "collections": ("books",)}, exclude=(*_TABLES, "folder")),
        commented_table(
            Subject, "[subject]                               # another science is a matter of these words"
        ),
        commented_table(WriterSpec, "[writer]", values={"model": "local:smollm2"}),
        commented_table(
            CountSpec,
            "[counts]                                # accepted questions",
            values=dict.fromkeys((kind for kind in KINDS if TYPES[kind].in_climaqa), 30)
            | {"base": 0.5, "reasoning": 0.25, "hypothetical": 0.25},
            exclude=("further_kinds",),
        )
        + "# true_false = 30                       # Statements that are true or false\n",
        commented_table(ContextSpec, "[contexts]"),
        commented_table(ScreenSpec, "[screening]"),
        commented_table(ValidatorSpec, "[validator]                             # climassay generate validate train"),
        commented_table(MaskerSpec, "[masker]"),
        commented_table(
            ProfileSettings,
            "[profile]                               # How models are asked",
            exclude=("side_check", "queries", "grade_passages", "passages"),  # only fact-checks read these
        ),
        commented_table(StopSpec, "[stop]"),
    )
)
"""Content of the file that ``climassay generate init`` writes."""
