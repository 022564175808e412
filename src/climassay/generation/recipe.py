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
from climassay.questions import KINDS, LEVELS, TYPES, Kind, Level
from climassay.settings import commented_table, load_toml, parse_table, settings


@dataclass(frozen=True, slots=True)
class Stream:
    """Kind and level of questions; each combination is requested and counted separately."""

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
    """Name of the model: local:HUB_ID_OR_FOLDER or openai:MODEL."""
    adapter: Annotated[str | None, Field(examples=["my-adapter"])] = None
    """Folder of a PEFT adapter."""
    temperature: Annotated[float, Field(ge=0, le=2)] = 0.7
    """Sampling temperature."""
    max_tokens: Annotated[int, Field(ge=1)] = 1000
    """Maximum tokens of an answer."""
    examples: Annotated[str, Field(examples=["primer"])] = ""
    """Question file with examples for the prompts, or primer."""
    n_examples: Annotated[int, Field(ge=0)] = 2
    """Number of examples of each kind and level."""


@settings
class CountSpec:
    """Numbers of requested questions; only accepted questions count."""

    mcq: Annotated[int, Field(ge=0)] = 0
    """Number of multiple-choice questions."""
    freeform: Annotated[int, Field(ge=0)] = 0
    """Number of questions answered in sentences."""
    cloze: Annotated[int, Field(ge=0)] = 0
    """Number of statements with a masked term."""
    base: Annotated[float, Field(ge=0)] = 1.0
    """Relative weight of this level, for kinds that have levels; the three weights need not sum to 1."""
    reasoning: Annotated[float, Field(ge=0)] = 0.0
    hypothetical: Annotated[float, Field(ge=0)] = 0.0
    further_kinds: dict[str, int] = field(default_factory=dict)
    """Numbers of questions of other kinds; in a recipe file each kind is an entry like the first three."""

    def of(self, kind: Kind) -> int:
        """Return the requested number of questions of a kind."""
        number: int = self.further_kinds.get(kind, getattr(self, kind, 0))
        return number


@settings
class ContextSpec:
    """Settings for retrieving further passages for each main passage."""

    max_passages: Annotated[int, Field(ge=0)] = 2
    """Maximum number of retrieved passages; with 0 the model sees only the main passage."""
    threshold: Annotated[float | None, Field(examples=[0.45])] = None
    """Minimum cosine similarity to the main passage; by default the value measured for the encoder."""
    mode: SearchMode = "dense"
    """Search mode: dense, bm25, hybrid or rrf."""
    other_documents: bool = False
    """Retrieve only passages of documents other than the main passage's."""


@settings
class ScreenSpec:
    """Settings of the checks that drafts must pass."""

    without: tuple[str, ...] = ()
    """Names of checks to disable; climassay generate checks lists them."""
    entailment: str = ""
    """Model that scores whether the passage supports the answer: prompted:MODEL, supports:MODEL or nli:MODEL; "" uses
    only word overlap."""
    consistency: str = "writer"
    """Model that answers each question again and verifies it in one request: writer, a model, or "" for none."""
    jaccard: Annotated[float, Field(gt=0, le=1)] = 0.8
    """Minimum Jaccard similarity of word pairs at which two questions are duplicates."""
    cosine: Annotated[float, Field(gt=0, le=1)] = 0.92
    """Minimum cosine similarity at which two questions are duplicates."""
    language: str = "en"
    """Language of questions and passages."""


@settings
class ValidatorSpec:
    """Validator of each kind, named as in ``climassay generate validate``; an empty name means no validator."""

    mcq: Annotated[str, Field(examples=["validator-mcq"])] = ""
    freeform: Annotated[str, Field(examples=["validator-freeform"])] = ""
    threshold: Annotated[float | None, Field(examples=[0.5])] = None
    """Minimum P(valid) of an accepted question; by default the validator's own threshold."""


@settings
class MaskerSpec:
    """Settings of the masker, which chooses the term of a cloze statement."""

    use: str = ""
    """Masker: statistics or prompted:MODEL. With "" the writer names the term of its statement."""
    glossary: Annotated[str, Field(examples=["terms.txt"])] = ""
    """File of terms, one per line, for the masker statistics."""


@settings
class StopSpec:
    """Limits at which the generation of a kind and level ends before its requested number of questions is reached."""

    cost: Annotated[float | None, Field(ge=0, examples=[5.0])] = None
    """Budget in US dollars."""
    drafts: Annotated[int | None, Field(ge=1, examples=[1000])] = None
    """Maximum number of drafts of one kind and level."""
    min_yield: Annotated[float, Field(ge=0, le=1)] = 0.01
    """Minimum proportion of accepted drafts; if it is lower, the generation of the kind and level ends."""
    after: Annotated[int, Field(ge=1)] = 200
    """Number of drafts of a kind and level after which min_yield applies."""


@settings
class Recipe:
    """Settings that determine the questions of a dataset."""

    name: str
    collections: tuple[str, ...]
    """Collections whose passages the questions are written from; several collections are searched together."""
    writer: WriterSpec
    counts: CountSpec = field(default_factory=CountSpec)
    subject: Subject = field(default_factory=Subject)
    contexts: ContextSpec = field(default_factory=ContextSpec)
    screening: ScreenSpec = field(default_factory=ScreenSpec)
    validator: ValidatorSpec = field(default_factory=ValidatorSpec)
    masker: MaskerSpec = field(default_factory=MaskerSpec)
    stop: StopSpec = field(default_factory=StopSpec)
    seed: int = 0
    batch: Annotated[int, Field(ge=1)] = 32
    """Maximum number of drafts per kind and level in one batch."""
    folder: Path = Path()
    """Folder of the recipe file, to which relative paths refer."""

    def requested(self) -> dict[Stream, int]:
        """Return the requested number of accepted questions by kind and level, omitting zeros.

        The number of each kind is apportioned to its levels by the largest-remainder method.
        """
        counts = self.counts
        weights = {level: float(getattr(counts, level)) for level in LEVELS}
        total_weight = sum(weights.values())
        results: dict[Stream, int] = {}
        for kind in KINDS:
            number = counts.of(kind)
            parts: dict[Level, int] = {"base": number}
            if TYPES[kind].has_levels:
                quotas = {
                    level: number * weight / total_weight if total_weight else 0.0 for level, weight in weights.items()
                }
                parts = {level: int(quota) for level, quota in quotas.items()}
                n_remaining = number - sum(parts.values())
                for level in sorted(quotas, key=lambda level: parts[level] - quotas[level])[:n_remaining]:
                    parts[level] += 1
            results |= {Stream(kind, level): part for level, part in parts.items() if part}
        return results

    def identity(self) -> dict[str, Any]:
        """Return the entries that must stay the same when a dataset is continued.

        Counts, limits and the batch size may change, and so may the writer's token limit and the way in which the model
        is reached.
        """
        changeable = ("counts", "stop", "batch", "folder", "name")
        values = {name: value for name, value in asdict(self).items() if name not in changeable}
        for name in ("max_tokens", "base_url", "device", "concurrency", "timeout", "price_in", "price_out"):
            del values["writer"][name]
        return values


_TABLES: dict[str, Any] = {name: kind for name, kind in get_type_hints(Recipe).items() if is_dataclass(kind)}
"""Settings class of each table in a recipe file, by name of the table."""


def load_recipe(path: Path) -> Recipe:
    """Load a recipe from a file.

    Raises:
        InputError: The file is missing or not TOML, or an entry is unknown or has an invalid value.
    """
    return parse_recipe(load_toml(path), source=str(path), folder=path.absolute().parent)


def parse_recipe(data: Mapping[str, Any], *, source: str, folder: Path) -> Recipe:
    """Create a recipe from parsed TOML.

    Args:
        data: Parsed TOML, as in the module's example.
        source: Name of the file, for messages.
        folder: Folder to which relative paths refer.

    Raises:
        InputError: An entry is unknown or has an invalid value.
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
        commented_table(StopSpec, "[stop]"),
    )
)
"""Text of the recipe file that ``climassay generate init`` writes."""
