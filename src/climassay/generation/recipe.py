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
from dataclasses import asdict, dataclass, field, is_dataclass
from pathlib import Path
from typing import Annotated, Any, get_type_hints

from pydantic import Field

from climassay.corpus import SearchMode
from climassay.errors import InputError
from climassay.generation.draft import Subject
from climassay.models.provider import FileModel
from climassay.prompts import ProfileSettings
from climassay.questions import KINDS, LEVELS, TYPES, Kind, Level
from climassay.settings import check_bounds, commented, filled, load_toml


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
class WriterSpec(FileModel):
    """The model that writes and evolves."""

    model: Annotated[str, Field(description="local:HUB_ID_OR_FOLDER or openai:MODEL.")]
    adapter: Annotated[str | None, Field(description="Folder of a PEFT adapter.", examples=["my-adapter"])] = None
    temperature: Annotated[float, Field(ge=0, le=2, description="Randomness of what is written.")] = 0.7
    max_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            description="Room for an answer; by default 400 tokens with brief prompts, else 1000.",
            examples=[1000],
        ),
    ] = None
    examples: Annotated[
        str,
        Field(description="A question file whose questions are shown as examples; or primer.", examples=["primer"]),
    ] = ""
    shown: Annotated[int, Field(ge=0, description="Examples shown of each kind and level.")] = 2
    brief: Annotated[
        bool | None,
        Field(description="Short prompts; by default for models below 3 billion parameters.", examples=[True]),
    ] = None


@dataclass(frozen=True, slots=True)
class CountSpec:
    """How many accepted questions are wanted."""

    mcq: Annotated[int, Field(ge=0, description="Multiple choice.")] = 0
    freeform: Annotated[int, Field(ge=0, description="Answered in sentences.")] = 0
    cloze: Annotated[int, Field(ge=0, description="Statements with a masked term.")] = 0
    base: Annotated[
        float,
        Field(ge=0, description="Share of the level among types that have levels; the three need not sum to 1."),
    ] = 1.0
    reasoning: Annotated[float, Field(ge=0)] = 0.0
    hypothetical: Annotated[float, Field(ge=0)] = 0.0
    others: dict[str, int] = field(default_factory=dict)
    """Questions of further types, by kind; in a file each appears beside the first three."""

    def of(self, kind: Kind) -> int:
        """Questions wanted of a kind."""
        return {"mcq": self.mcq, "freeform": self.freeform, "cloze": self.cloze, **self.others}.get(kind, 0)


@dataclass(frozen=True, slots=True)
class ContextSpec:
    """What is shown beside the main passage."""

    most: Annotated[
        int, Field(ge=0, description="Passages retrieved beside the main one; 0 shows the main passage alone.")
    ] = 2
    threshold: Annotated[
        float | None,
        Field(
            description="Cosine below which a passage is not shown; by default as measured for the encoder.",
            examples=[0.45],
        ),
    ] = None
    mode: Annotated[SearchMode, Field(description="dense, bm25, hybrid or rrf.")] = "dense"
    other_documents: Annotated[bool, Field(description="Only passages of other documents than the main one's.")] = False


@dataclass(frozen=True, slots=True)
class ScreenSpec:
    """Which checks are made."""

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
            description='Who answers the questions again: writer, a model, or "" for nobody. A strong model looks at '
            "questions of all kinds in one request each; the next three entries are for small ones."
        ),
    ] = "writer"
    orders: Annotated[int, Field(ge=1, description="Orders of the options in which each question is answered.")] = 4
    needed: Annotated[float, Field(ge=0, le=1, description="Share of the orders that must be answered right.")] = 1.0
    margin: Annotated[
        float,
        Field(ge=0, lt=1, description="Least lead of the marked option's probability over the next one's."),
    ] = 0.2
    jaccard: Annotated[
        float,
        Field(gt=0, le=1, description="Share of common word triples above which two questions are the same."),
    ] = 0.8
    cosine: Annotated[
        float, Field(gt=0, le=1, description="Similarity of meaning above which two questions are the same.")
    ] = 0.92
    language: Annotated[str, Field(description="Language of questions and passages.")] = "en"


@dataclass(frozen=True, slots=True)
class ValidatorSpec:
    """Who validates, by kind, as in ``climassay generate validate``; empty: nobody."""

    mcq: Annotated[str, Field(examples=["validator-mcq"])] = ""
    freeform: Annotated[str, Field(examples=["validator-freeform"])] = ""
    threshold: Annotated[
        float | None,
        Field(description="P(valid) from which a question is kept; by default the validator's own.", examples=[0.5]),
    ] = None


@dataclass(frozen=True, slots=True)
class MaskerSpec:
    """Who chooses the term of a cloze statement."""

    use: Annotated[
        str,
        Field(
            description='statistics or prompted:MODEL; "": the writer names the term '
            "with its statement, or statistics chooses where the writer gets brief prompts."
        ),
    ] = ""
    glossary: Annotated[
        str, Field(description="File of terms, one a line, for the statistics masker.", examples=["terms.txt"])
    ] = ""


@dataclass(frozen=True, slots=True)
class StopSpec:
    """When to stop before the counts are reached."""

    cost: Annotated[float | None, Field(ge=0, description="US dollars.", examples=[5.0])] = None
    asked: Annotated[int | None, Field(ge=1, description="Drafts of one kind and level.", examples=[1000])] = None
    min_yield: Annotated[
        float,
        Field(ge=0, le=1, description="Share of accepted drafts below which a kind and level is given up ..."),
    ] = 0.01
    after: Annotated[int, Field(ge=1, description="... once so many drafts have been written for it.")] = 200


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides which questions are made."""

    name: str
    collections: Annotated[tuple[str, ...], Field(description="Passages to write from; several are searched as one.")]
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
    """Where relative files are looked for."""

    def wanted(self) -> dict[Stream, int]:
        """Accepted questions wanted of each stream, without the empty ones.

        A kind's number is split over its levels by largest remainder.
        """
        counts = self.counts
        shares = {level: float(getattr(counts, level)) for level in LEVELS}
        total = sum(shares.values())
        results: dict[Stream, int] = {}
        for kind in KINDS:
            number = counts.of(kind)
            parts: dict[Level, int] = {"base": number}
            if TYPES[kind].levels:
                exact = {level: number * share / total if total else 0.0 for level, share in shares.items()}
                parts = {level: int(value) for level, value in exact.items()}
                left = number - sum(parts.values())
                for level in sorted(exact, key=lambda one: parts[one] - exact[one])[:left]:
                    parts[level] += 1
            results |= {Stream(kind, level): part for level, part in parts.items() if part}
        return results

    def deciding(self) -> dict[str, Any]:
        """The entries that must not change while a dataset grows; counts, stops and batch may."""
        free = ("counts", "stop", "batch", "folder", "name")
        values = {name: value for name, value in asdict(self).items() if name not in free}
        for name in ("base_url", "device", "concurrency", "timeout", "price_in", "price_out"):
            del values["writer"][name]
        if self.writer.reasoning_effort is None:  # as in datasets begun before there was such an entry
            del values["writer"]["reasoning_effort"]
        return values


_TABLES: dict[str, Any] = {name: kind for name, kind in get_type_hints(Recipe).items() if is_dataclass(kind)}
"""Tables of the file, by the entries that they fill."""


def load_recipe(path: Path) -> Recipe:
    """The recipe of a file.

    Raises:
        InputError: The file is missing or not TOML, or an entry does not exist or fit.
    """
    return parse_recipe(load_toml(path), where=str(path), folder=path.absolute().parent)


def parse_recipe(data: Mapping[str, Any], *, where: str, folder: Path) -> Recipe:
    """The recipe of a table as in the module's example; ``where`` names the file in messages.

    Raises:
        InputError: An entry does not exist or does not fit.
    """
    values = dict(data)
    for name, kind in _TABLES.items():
        entry = values.get(name, {})
        if not isinstance(entry, Mapping):
            raise InputError(f"{where}: {name} is a table that begins with [{name}].")
        if kind is CountSpec:
            own = {word: value for word, value in entry.items() if word not in KINDS or hasattr(CountSpec, word)}
            others = {word: value for word, value in entry.items() if word not in own}
            entry = own | ({"others": others} if others else {})
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
    counts = recipe.counts
    faults = (
        (not recipe.collections, "name at least one collection (climassay corpus add NAME FILE...)"),
        (min(map(counts.of, KINDS)) < 0, "a count cannot be negative"),
        (not any(map(counts.of, KINDS)), "say in [counts] how many questions are wanted"),
        (
            any(counts.of(kind) for kind in KINDS if TYPES[kind].levels)
            and not counts.base + counts.reasoning + counts.hypothetical,
            "at least one level needs a share above 0",
        ),
    )
    for wrong, sentence in faults:
        if wrong:
            raise InputError(f"{where}: {sentence}.")
    check_bounds(recipe, where)
    for name in _TABLES:
        check_bounds(getattr(recipe, name), where, f"[{name}]")


COMMENTED = "\n".join(
    (
        "# A dataset of questions, from books to silver.\n"
        "# climassay corpus add books *.pdf ; climassay generate run this-file.toml\n",
        commented(Recipe, values={"name": "silver", "collections": ("books",)}, leave_out=(*_TABLES, "folder")),
        commented(Subject, "[subject]                               # another science is a matter of these words"),
        commented(WriterSpec, "[writer]", values={"model": "local:smollm2"}),
        commented(
            CountSpec,
            "[counts]                                # accepted questions",
            values={"mcq": 30, "freeform": 30, "cloze": 30, "base": 0.5, "reasoning": 0.25, "hypothetical": 0.25},
            leave_out=("others",),
        )
        + "# true_false = 30                       # Statements that are true or false\n",
        commented(ContextSpec, "[contexts]"),
        commented(ScreenSpec, "[screening]"),
        commented(ValidatorSpec, "[validator]                             # climassay generate validate train"),
        commented(MaskerSpec, "[masker]"),
        commented(
            ProfileSettings,
            "[profile]                               # How models are asked",
            leave_out=("side_check", "queries", "grade_passages", "passages"),  # which fact-checks alone read
        ),
        commented(StopSpec, "[stop]"),
    )
)
"""The file that ``climassay generate init`` writes."""
