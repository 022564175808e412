"""Models of answers made from the records themselves: fields, types and descriptions of an answer are its record's."""

import ast
import inspect
import math
import re
import textwrap
from collections.abc import Mapping
from itertools import pairwise
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import AfterValidator, AliasPath, BeforeValidator, Field, JsonValue, create_model, model_validator

from climassay.questions import Criterion
from climassay.statistics import Estimate, ResampledEstimate
from climassay.web.api.base import Data, Moment, field

EXAMPLES: Mapping[str, Any] = {
    "address": "http://127.0.0.1:8000/enter/TWmZ2q",
    "advocates": ["primer"],
    "annotator": "ada",
    "answer": "An ice embryo of critical size hardly ever forms by chance.",
    "audience": "a student",
    "author": "Annotator 1",
    "benchmark": "primer",
    "body": {"shown": "carbon-cycle.pdf", "outcome": "added"},
    "by": "ada",
    "Check.id": "c9f3a1b2c4d5",
    "citation": "The carbon cycle (carbon-cycle.pdf), Sinks > The ocean, pp. 7-8",
    "claim": "Sea level has not risen since 1900.",
    "collection": "primer",
    "command": "evaluate run",
    "comment": "The tide gauges say otherwise.",
    "config": {"seed": 0},
    "dataset": "clouds",
    "Dataset.name": "clouds",
    "date": "2021",
    "dimension": "accuracy",
    "document": "The carbon cycle",
    "Document.id": "3f2a9c1d",
    "document_id": "3f2a9c1d",
    "draft": "q0123456789ab",
    "Draft.draft": {"wording": {"question": "Why?", "answer": "Because."}},
    "encoder": "local:minilm",
    "events": "/jobs/j4f0c2d1e9a8b/events",
    "excerpt": "The ocean takes up about a quarter of the carbon dioxide that people emit.",
    "files": ["carbon-cycle.pdf"],
    "fingerprint": "5e1f",
    "first": "ada",
    "heading": "MCQ Overall n=120",
    "headings": ["Sinks", "The ocean"],
    "id": "q0123456789ab",
    "job": "j4f0c2d1e9a8b",
    "Job.id": "j4f0c2d1e9a8b",
    "Job.kind": "add-documents",
    "JobEvent.kind": "file",
    "key": "7f3c-1",
    "level": "base",
    "licence": "CC BY 4.0",
    "meaning": "The marked answer is wrong",
    "message": "passages of carbon-cycle.pdf",
    "metric": "accuracy",
    "model": "local:smollm2",
    "models": ["local:smollm2"],
    "name": "ada",
    "note": "In brackets: 95% intervals.",
    "outcome": "verdict",
    "page": "/results/r00c0ffee",
    "Passage.id": "3f2a9c1d-4",
    "publisher": "Example Institute",
    "question": "Why do pure droplets not freeze at −10 °C?",
    "quotation": "CO2 is rising.",
    "reason": "wrong answer",
    "reasons": ["wrong answer"],
    "remark": "The passage says −38 °C.",
    "result": {"collection": "primer", "documents": 1},
    "rows": [["small", "default", "41.7"]],
    "run": "r00c0ffee",
    "Run.id": "r00c0ffee",
    "second": "bob",
    "section": "Scores",
    "seeds": {"bootstrap": 0},
    "set_up": "every collection",
    "setting": "default",
    "settings": {"model": "local:smollm2", "rounds": 3},
    "shown": "Ada Lovelace",
    "source": "carbon-cycle.pdf",
    "status": "done",
    "step": "screen",
    "text": "The ocean takes up about a quarter of the carbon dioxide that people emit.",
    "title": "The carbon cycle",
    "topic": "1.6",
    "transcript": {"scale": "climate-feedback", "rounds": []},
    "url": "https://example.org/carbon-cycle",
    "verdict": "incorrect",
    "version": "0.7.0",
}
"""Examples of answered fields by name, or by model and name; what is not here gets one that is made from its type."""
_ROLE = re.compile(r":\w+:(?=`)")
_PLAIN: Mapping[Any, Any] = {bool: True, int: 12, float: 0.41, str: None}


Figure = Annotated[
    float | None,
    BeforeValidator(lambda value: None if isinstance(value, float) and not math.isfinite(value) else value),
]
"""A computed number; null where it is not defined."""


class Share(Data):
    """A mean, share or coefficient, with its confidence interval."""

    value: Figure = field(0.82, "The mean, or the share from 0 to 1.")
    low: Figure = field(0.71, "Lower end of the interval; null where a single item has none.")
    high: Figure = field(0.9, "Upper end of the interval.")
    n: int = field(60, "Independent items behind it.")
    level: float = field(0.95, "Confidence level of the interval.")

    @model_validator(mode="before")
    @classmethod
    def _of_estimate(cls, given: Any) -> Any:
        if not isinstance(given, Estimate | ResampledEstimate):
            return given
        low, high = given.interval or (None, None)
        return {"value": given.value, "low": low, "high": high, "n": given.n, "level": given.level}


_MODELS: dict[Any, Any] = {Estimate: Share, ResampledEstimate: Share}
"""Models of answers by the records that they are made from."""


class Answered(Data, use_attribute_docstrings=False):
    """What is answered of a record, which describes the fields: there is no source of the model's own to look for."""


def answer(name: str, record: Any, fields: str = "", /, *, below: str = "", **more: Any) -> Any:
    """A model of answers.

    Args:
        name: Its name in the document.
        record: The record that is answered: a class whose docstring describes the answer; or, for an answer that is no
            record, that description.
        fields: Names of the record's fields that are answered, with spaces between them.
        below: Name of the attribute that holds the record, where that is not what an operation gives back.
        **more: Types of further fields, or of those that are answered in another form than the record's.
    """
    parts: dict[str, Any] = {}
    words = record
    if not isinstance(record, str):
        words = " ".join((inspect.getdoc(record) or "").partition("\n\n")[0].split())
        described, kinds = _descriptions(record), get_type_hints(record)
        for part in fields.split():
            path = AliasPath(*below.split("."), part) if below else None
            kind = more.pop(part) if part in more else _answered(kinds[part], part)
            parts[part] = Annotated[kind, Field(validation_alias=path, description=described.get(part))]
    for part, kind in (parts | more).items():
        examples = _examples(kind, EXAMPLES.get(f"{name}.{part}", EXAMPLES.get(part)))
        parts[part] = Annotated[kind, Field(examples=examples)] if examples else kind
    made = create_model(name, __base__=Answered, __module__=__name__, __doc__=words, **parts)
    _MODELS.setdefault(record, made)
    return made


def at(path: str, kind: Any, description: str | None = None) -> Any:
    """A field that is read from another attribute than that of its name, perhaps from one of an attribute's."""
    return Annotated[kind, Field(validation_alias=AliasPath(*path.split(".")), description=description)]


def said(kind: Any, description: str) -> Any:
    """A field with its description."""
    return Annotated[kind, Field(description=description)]


def many(kind: Any) -> Any:
    """A list of answers."""
    return list[kind]


def page_at(pattern: str, path: str) -> Any:
    """The address on this server of the page about a record."""
    return at(path, Annotated[str, AfterValidator(pattern.format)], "Permanent address on this server.")


def _descriptions(record: Any) -> dict[str, str]:
    """The texts below the fields of a class."""
    sources = [record]
    if isinstance(record, type):
        sources = [one for one in reversed(record.__mro__) if one.__module__.startswith("climassay.")]
    bodies = (ast.parse(textwrap.dedent(inspect.getsource(one))).body for one in sources)
    results: dict[str, str] = {}
    for one, below in (pair for [node] in bodies for pair in pairwise(getattr(node, "body", ()))):
        if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name) and isinstance(below, ast.Expr):
            words = " ".join(ast.literal_eval(below.value).split()).replace("None", "null").replace("``", "`")
            results[one.target.id] = _ROLE.sub("", words)
    return results


def _answered(kind: Any, name: str) -> Any:
    """The type in which a record's field is answered."""
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        if name.endswith("_at"):
            return Moment | None
        return Figure if parts == (float, type(None)) else Union[tuple(_answered(one, name) for one in parts)]  # noqa: UP007
    if name.endswith("_at"):
        return Moment
    if origin is Annotated or origin is Literal:
        return kind
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[parts[0], _answered(parts[1], "")]  # type: ignore[valid-type,misc]
    if origin in (tuple, frozenset, list):
        return list[_answered(parts[0], "")]  # type: ignore[misc]
    return JsonValue if kind is Any else _MODELS.get(kind, kind)


def _examples(kind: Any, known: Any) -> list[Any]:
    """Examples of a type: the value that is known for its name where that is of the type; none for a model."""
    while get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return _examples(parts[0], known)
    if origin is Literal:
        return [known if known in parts else parts[0]]
    if isinstance(known, origin or kind):
        return [known]
    if origin is list:
        entries = _examples(parts[0], known)
        return [[one for one in entries if one is not None]] if entries else []
    if origin is dict:
        return [dict(zip(_examples(parts[0], "wrong answer"), _examples(parts[1], None), strict=True))]
    return [_PLAIN[kind]] if kind in _PLAIN else []


CriterionData = answer("Criterion", Criterion, "text weight level source")
