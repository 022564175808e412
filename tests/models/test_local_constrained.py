import json
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import xgrammar
from hypothesis import given
from hypothesis import strategies as st
from xgrammar.testing import _is_grammar_accept_string

from climassay.errors import ModelError
from climassay.models import GenerationRequest, Message, OpenWeights, Sampling
from climassay.models.local.model import LocalModel
from climassay.models.local.schema_grammar import schema_grammar
from tiny_models import save_tiny, smollm2

pytestmark = pytest.mark.model

ENUM = {"enum": ["entailed", "refuted", "not enough information", 'a "quoted" one', "µ²", 3, None]}


def accepts(schema: dict[str, Any], text: str) -> bool:
    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_ebnf(schema_grammar(schema).text), text))


def random_schema(chance: random.Random, longest: int, depth: int = 0) -> dict[str, Any]:
    """A schema of the kinds that this package uses: verdicts, reasons, scores, lists of facts, nested records."""
    kinds = ["enum", "string", "integer", "number", "boolean", "array", "nullable", "const"]
    if depth == 0 or (depth < 3 and chance.random() < 0.35):
        names = chance.sample(["verdict", "why", "score", "facts", "wärme", '"odd"'], 3)
        properties = {name: random_schema(chance, longest, depth + 1) for name in names[: chance.randint(1, 3)]}
        required = [name for name in properties if chance.random() < 0.6]
        return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    kind = chance.choice(kinds)
    if kind == "array":
        low = chance.randint(0, 2)
        items = random_schema(chance, longest, depth + 2)
        return {"type": "array", "items": items, "minItems": low, "maxItems": low + chance.randint(0, 2)}
    return {
        "enum": ENUM,
        "string": {"type": "string", "minLength": chance.randint(0, 3), "maxLength": chance.randint(3, longest)},
        "integer": {"type": "integer", "minimum": chance.randint(-20, 5), "maximum": chance.randint(6, 2100)},
        "number": {"type": "number", "minimum": 0, "maximum": chance.choice([1, 2.5, 100])},
        "boolean": {"type": "boolean"},
        "nullable": {"anyOf": [{"type": "string", "maxLength": longest}, {"type": "null"}]},
        "const": {"const": "climate"},
    }[kind]


def answer_all(model: OpenWeights, schemas: list[dict[str, Any]], temperature: float) -> None:
    """Every schema gives one complete object that validates; hot sampling makes the model as weak as can be."""
    requests = [
        GenerationRequest(
            (Message("user", "Judge this claim as JSON: the sea level rises."),),
            Sampling(max_tokens=None, temperature=temperature, seed=number),
            schema,
        )
        for number, schema in enumerate(schemas)
    ]
    for schema, completion in zip(schemas, model.generate(requests), strict=True):
        assert completion.error is None
        assert completion.finish_reason == "stop"
        jsonschema.validate(json.loads(completion.text), schema)
        assert completion.usage.completion_tokens <= schema_grammar(schema).max_bytes + 1


def test_a_hundred_random_schemas_give_a_hundred_valid_objects(tmp_path: Path) -> None:
    """Of a random model, which knows no JSON at all."""
    chance = random.Random(20)
    model = LocalModel(f"local:{save_tiny(tmp_path, context=1024)}")
    schemas = [random_schema(chance, longest=4) for _ in range(100)]
    answer_all(model, schemas[:70], temperature=0.0)
    answer_all(model, schemas[70:], temperature=1.5)


def test_random_schemas_with_the_tokens_of_the_bundled_model() -> None:
    """Tokens of many characters, which may begin one part of an object and end another."""
    chance = random.Random(22)
    answer_all(smollm2(), [random_schema(chance, longest=4) for _ in range(4)], temperature=0.0)
    answer_all(smollm2(), [random_schema(chance, longest=4) for _ in range(2)], temperature=1.5)


def test_a_worked_example() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "boolean"}, "b": {"enum": ["é"]}, "c": {"type": "string", "maxLength": 2}},
        "required": ["b"],
    }
    for text in ('{"a": true, "b": "é", "c": "€\\n"}', '{"b": "é"}', '{"b": "é", "c": ""}', '{"a": false, "b": "é"}'):
        assert accepts(schema, text)
        jsonschema.validate(json.loads(text), schema)
    for text in ("{}", '{"a": true}', '{"b": "é", "a": true}', '{"b":"é"}', '{"b": "é", "c": "abc"}', '{"b": "é",}'):
        assert not accepts(schema, text)
    # Two braces, two commas with spaces, "a": false, "b": "é" (two bytes), and c with two characters of four bytes.
    assert schema_grammar(schema).max_bytes == 2 + 4 + (5 + 5) + (5 + 4) + (5 + 2 + 8)


def test_every_combination_of_optional_members_is_accepted_in_order() -> None:
    names = "abcd"
    schema = {"type": "object", "properties": {name: {"const": 1} for name in names}, "required": ["c"]}
    for mask in range(16):
        chosen = [name for bit, name in enumerate(names) if mask >> bit & 1]
        assert accepts(schema, json.dumps(dict.fromkeys(chosen, 1))) == ("c" in chosen)


@given(
    st.integers(-3000, 3000),
    st.integers(0, 3000),
    st.lists(st.integers(-7000, 7000), min_size=1, max_size=8),
    st.booleans(),
)
def test_integers_between_bounds(low: int, width: int, values: list[int], exclusive: bool) -> None:
    high = low + width + 2
    names = ("exclusiveMinimum", "exclusiveMaximum") if exclusive else ("minimum", "maximum")
    schema = {"type": "integer", names[0]: low, names[1]: high}
    grammar = xgrammar.Grammar.from_ebnf(schema_grammar(schema).text)
    for value in [*values, low - 1, low, low + 1, high - 1, high, high + 1]:
        inside = low < value < high if exclusive else low <= value <= high
        assert _is_grammar_accept_string(grammar, str(value)) == inside
    assert not _is_grammar_accept_string(grammar, "-0")
    assert not _is_grammar_accept_string(grammar, "007")


@given(
    st.decimals(-50, 50, places=2), st.decimals(0, 60, places=1), st.lists(st.decimals(-130, 130, places=3), max_size=6)
)
def test_numbers_between_bounds(low: Decimal, width: Decimal, values: list[Decimal]) -> None:
    high = low + width
    schema = {"type": "number", "minimum": float(low), "maximum": float(high)}
    grammar = xgrammar.Grammar.from_ebnf(schema_grammar(schema).text)
    step = Decimal("0.0001")
    for value in [*values, low, high, low - step, low + step, high - step, high + step]:
        text = f"{value:f}"
        # Zero is written without a sign.
        assert _is_grammar_accept_string(grammar, text) == (
            (low <= value <= high and not text.startswith("-0.00")) or (low <= value <= high and value < 0)
        )


def test_numbers_without_bounds_are_bounded_and_exact() -> None:
    schema = {"type": "number"}
    assert accepts(schema, "-999999999999999.1234")
    assert not accepts(schema, "1000000000000000")
    assert not accepts(schema, "0.12345")
    assert not accepts(schema, "1e5")
    assert accepts({"type": "integer", "minimum": 0}, "999999999999999")
    assert schema_grammar(schema).max_bytes < 40


@pytest.mark.parametrize(
    ("schema", "sentence"),
    [
        ({"type": "string"}, r"string at \$ has no maxLength"),
        ({"type": "object", "properties": {"a": {"type": "array", "items": {}}}}, r"array at \$\.a has no maxItems"),
        ({"type": "array", "maxItems": 2, "items": {"type": "string"}}, r"string at \$\[\] has no maxLength"),
        ({"type": "array", "maxItems": 2}, r"\$\[\] allows anything"),
        ({}, r"\$ allows anything"),
        ({"type": "string", "maxLength": 5, "pattern": "a+"}, "uses 'pattern', which cannot be enforced"),
        ({"type": "number", "multipleOf": 2}, "uses 'multipleOf'"),
        ({"type": "number", "minimum": 2, "maximum": 1}, "exclude every value: 2 to 1"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "exclude every value"),
        ({"type": "string", "minLength": 3, "maxLength": 2}, "exclude every value: 3 to 2"),
        ({"type": "object", "required": ["a"]}, "requires 'a' without describing it"),
        ({"type": "object", "additionalProperties": {"type": "null"}}, "leaves property names open"),
        ({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}]}}}, "contains itself"),
        ({"$ref": "#/$defs/b"}, "not among its"),
        ({"type": "thing"}, "'thing'"),
        ({"enum": []}, "empty enum"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_place(schema: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        schema_grammar(schema)


def test_a_schema_that_pydantic_writes_can_be_used() -> None:
    from typing import Literal

    from pydantic import BaseModel, Field

    class Fact(BaseModel):
        text: str = Field(max_length=20)
        certainty: float = Field(ge=0, le=1)

    class Verdict(BaseModel):
        verdict: Literal["true", "false"]
        facts: list[Fact] = Field(max_length=2)
        remark: str | None = Field(default=None, max_length=9)

    text = '{"verdict": "true", "facts": [{"text": "a", "certainty": 0.5}], "remark": null}'
    assert accepts(Verdict.model_json_schema(), text)
    assert Verdict.model_validate_json(text).facts[0].certainty == 0.5


def test_bounds_of_strings_are_lowered_where_the_longest_answer_would_not_fit() -> None:
    model = smollm2()
    schema = {
        "type": "object",
        "properties": {"why": {"type": "string", "maxLength": 3000}, "code": {"type": "string", "maxLength": 4}},
        "required": ["why", "code"],
    }
    grammars = model._generation._grammars
    free, tight = grammars.compile(schema), grammars.compile(schema, max_tokens=200)
    assert free.max_tokens > 12_000
    assert 190 < tight.max_tokens <= 200
    assert grammars.compile(schema, max_tokens=200) is tight
    with pytest.raises(ModelError, match="only 20"):
        grammars.compile(schema, max_tokens=20)


def test_an_object_is_complete_even_where_the_context_window_is_nearly_full(tmp_path: Path) -> None:
    # 256 tokens of context, about 170 of them taken; the schema's longest answer would need 2500.
    model = LocalModel(f"local:{save_tiny(tmp_path)}")
    schema = {"type": "object", "properties": {"why": {"type": "string", "maxLength": 600}}, "required": ["why"]}
    sampling = [Sampling(max_tokens=None, temperature=1.0, seed=seed) for seed in range(5)]
    requests = [GenerationRequest((Message("user", "z" * 150),), each, schema) for each in sampling]
    for completion in model.generate(requests):
        assert completion.finish_reason == "stop"
        assert completion.usage.prompt_tokens > 160
        jsonschema.validate(json.loads(completion.text), schema)
