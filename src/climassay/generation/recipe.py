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
from climassay.settings import commented_table, load_toml, parse_table, validate_settings


@dataclass(frozen=True, slots=True)
class Stream:
    """Kind and level of questions that are requested, counted and balanced together."""

    kind: Kind
    level: Level

    @property
    def name(self) -> str:
        """Name of the stream, for example ``mcq/reasoning``."""
        return f"{self.kind}/{self.level}"


@dataclass(frozen=True, slots=True)
class WriterSpec(FileModel):
    """Settings of the model that writes and evolves questions."""

    model: Annotated[str, Field(description="local:HUB_ID_OR_FOLDER or openai:MODEL.")]
    adapter: Annotated[str | None, Field(description="Folder of a PEFT adapter.", examples=["my-adapter"])] = None
    temperature: Annotated[float, Field(ge=0, le=2, description="Sampling temperature.")] = 0.7
    max_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            description="Maximum tokens of an answer; by default 400 with brief prompts, else 1000.",
            examples=[1000],
        ),
    ] = None
    examples: Annotated[
        str,
        Field(description="Question file with examples for the prompts, or primer.", examples=["primer"]),
    ] = ""
    n_examples: Annotated[int, Field(ge=0, description="Number of examples of each kind and level.")] = 2
    brief: Annotated[
        bool | None,
        Field(description="Short prompts; by default for models below 3 billion parameters.", examples=[True]),
    ] = None


@dataclass(frozen=True, slots=True)
class CountSpec:
    """Numbers of requested questions; only accepted questions count."""

    mcq: Annotated[int, Field(ge=0, description="Multiple choice.")] = 0
    freeform: Annotated[int, Field(ge=0, description="Answered in sentences.")] = 0
    cloze: Annotated[int, Field(ge=0, description="Statements with a masked term.")] = 0
    base: Annotated[
        float,
        Field(ge=0, description="Share of the level among types that have levels; the three need not sum to 1."),
    ] = 1.0
    reasoning: Annotated[float, Field(ge=0)] = 0.0
    hypothetical: Annotated[float, Field(ge=0)] = 0.0
    further_kinds: dict[str, int] = field(default_factory=dict)
    """Numbers of questions of further kinds; in a file each kind is an entry like the first three."""

    def of(self, kind: Kind) -> int:
        """Return the requested number of questions of a kind."""
        number: int = self.further_kinds.get(kind, getattr(self, kind, 0))
        return number


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """Settings of the passages that are retrieved for the main passage."""

    max_passages: Annotated[
        int, Field(ge=0, description="Maximum number of retrieved passages; 0 shows the main passage only.")
    ] = 2
    threshold: Annotated[
        float | None,
        Field(
            description="Minimum cosine of a retrieved passage; by default the value measured for the encoder.",
            examples=[0.45],
        ),
    ] = None
    mode: Annotated[SearchMode, Field(description="dense, bm25, hybrid or rrf.")] = "dense"
    other_documents: Annotated[bool, Field(description="Only passages of other documents than the main one's.")] = False


@dataclass(frozen=True, slots=True)
class ScreenSpec:
    """Settings of the checks of drafts."""

    without: Annotated[
        tuple[str, ...], Field(description="Names of checks to leave out: climassay generate checks.")
    ] = ()
    entailment: Annotated[
        str,
        Field(
            description="Scorer of whether the passage supports the answer: prompted:MODEL, supports:MODEL or "
            'nli:MODEL; "" goes by word overlap only.'
        ),
    ] = ""
    consistency: Annotated[
        str,
        Field(
            description='Model that answers the questions again: writer, a model, or "" for none. A strong model '
            "verifies questions of all kinds in one request each; the next three entries are for small models."
        ),
    ] = "writer"
    orders: Annotated[int, Field(ge=1, description="Number of option orders in which each question is answered.")] = 4
    min_agreement: Annotated[
        float, Field(ge=0, le=1, description="Minimum share of the orders that must be answered correctly.")
    ] = 1.0
    margin: Annotated[
        float,
        Field(ge=0, lt=1, description="Minimum lead of the marked option's probability over the next option's."),
    ] = 0.2
    jaccard: Annotated[
        float,
        Field(gt=0, le=1, description="Jaccard similarity of word pairs from which two questions are duplicates."),
    ] = 0.8
    cosine: Annotated[float, Field(gt=0, le=1, description="Cosine from which two questions are duplicates.")] = 0.92
    language: Annotated[str, Field(description="Language of questions and passages.")] = "en"


@dataclass(frozen=True, slots=True)
class ValidatorSpec:
    """Validators by kind, as in ``climassay generate validate``; an empty name means no validator."""

    mcq: Annotated[str, Field(examples=["validator-mcq"])] = ""
    freeform: Annotated[str, Field(examples=["validator-freeform"])] = ""
    threshold: Annotated[
        float | None,
        Field(
            description="Minimum P(valid) of an accepted question; by default the validator's own.",
            examples=[0.5],
        ),
    ] = None


@dataclass(frozen=True, slots=True)
class MaskerSpec:
    """Settings of the masker, which chooses the term of a cloze statement."""

    use: Annotated[
        str,
        Field(
            description='statistics or prompted:MODEL; "": the writer names the term '
            "with its statement, or statistics chooses it if the writer gets brief prompts."
        ),
    ] = ""
    glossary: Annotated[
        str, Field(description="File of terms, one a line, for the statistics masker.", examples=["terms.txt"])
    ] = ""


@dataclass(frozen=True, slots=True)
class StopSpec:
    """Limits at which writing of a kind and level stops before its requested number is reached."""

    cost: Annotated[float | None, Field(ge=0, description="Budget in US dollars.", examples=[5.0])] = None
    drafts: Annotated[
        int | None, Field(ge=1, description="Maximum number of drafts of one kind and level.", examples=[1000])
    ] = None
    min_yield: Annotated[
        float,
        Field(ge=0, le=1, description="Yield below which a kind and level ends ..."),
    ] = 0.01
    after: Annotated[int, Field(ge=1, description="... after this number of its drafts.")] = 200


@dataclass(frozen=True, slots=True)
class Recipe:
    """Settings that determine the questions of a dataset."""

    name: str
    collections: Annotated[
        tuple[str, ...], Field(description="Collections to write from; several are searched as one.")
    ]
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
    batch: Annotated[int, Field(ge=1, description="Maximum number of drafts per kind and level between two plans.")] = (
        32
    )
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
    validate_settings(recipe, source)
    for name in _TABLES:
        validate_settings(getattr(recipe, name), source, f"[{name}]")


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
