"""Every schema that the project asks a model to answer under is one that every provider's strict mode takes."""

import json

import pytest

from climassay.confidence.extraction import dividing
from climassay.confidence.linting import model_rule
from climassay.confidence.topics import naming
from climassay.factcheck.debate import assessment, reading
from climassay.factcheck.scales import CLIMATE_FEVER
from climassay.generation import writing as schemas
from climassay.models.json_answers import extract_valid_json
from climassay.models.openai.schema import response_format
from climassay.prompts import STRONG
from climassay.questions import KINDS

BEYOND_STRICT = {
    "maxLength", "minLength", "maxItems", "minItems", "const", "oneOf", "allOf", "not", "pattern", "format",
}  # fmt: skip


def assessment_prompts():
    yield assessment.AssessmentPrompt((), (1, 2), (1, 2), (), is_advocate=False)
    for recipients in ((), ("ipcc", "pamphlet")):
        yield assessment.AssessmentPrompt((), (1, 2), (1, 2), recipients, is_advocate=True, n_replies=len(recipients))


SCHEMAS = {
    **{f"question {kind}": schemas.answer_schema(kind) for kind in KINDS},
    **{
        f"assessment {number}": assessment.answer_schema(prompt, CLIMATE_FEVER, STRONG)
        for number, prompt in enumerate(assessment_prompts())
    },
    "claim read": reading.answer_schema(200, STRONG.queries),
    "subclaims": reading.answer_schema(200, 0),
    "topic": naming._SCHEMA,
    "divided sentence": dividing._SCHEMA,
    "problems of a draft": model_rule._SCHEMA,
}


def nodes(schema, path="answer"):
    yield path, schema
    for name, part in schema.get("properties", {}).items():
        yield from nodes(part, f"{path}.{name}")
    if "items" in schema:
        yield from nodes(schema["items"], f"{path}[]")
    for way in schema.get("anyOf", []):
        yield from nodes(way, path)


def instance(schema, length):
    """A value of the schema whose texts have that length."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "object":
        return {name: instance(part, length) for name, part in schema["properties"].items()}
    if schema["type"] == "array":
        return [instance(schema["items"], length)] * 3
    return {"string": "x" * length, "integer": 1, "number": 0.5, "boolean": True}[schema["type"]]


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_list_is_bounded_so_that_answers_of_local_models_end(schema):
    assert [path for path, node in nodes(schema) if node.get("type") == "array" and "maxItems" not in node] == []


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_every_schema_is_sent_in_the_form_that_strict_servers_take(schema):
    sent = response_format(schema)["json_schema"]["schema"]
    assert sent["type"] == "object", "strict servers answer with objects"
    for path, node in nodes(sent):
        assert "type" in node or "anyOf" in node, path
        assert not node.keys() & BEYOND_STRICT, path
        if node.get("type") == "object":
            assert node["additionalProperties"] is False, path
            assert node["required"] == list(node["properties"]), path


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_what_the_sent_schema_allows_is_kept_however_long_it_is(schema):
    sent = response_format(schema)["json_schema"]["schema"]
    value = instance(sent, 5000)
    kept = json.loads(extract_valid_json(json.dumps(value), schema))
    assert kept == (value if schema["type"] == "object" else value["answer"])


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS)
def test_a_missing_field_is_named(schema):
    if schema["type"] != "object":
        return
    missing = list(schema["properties"])[-1]
    value = instance(response_format(schema)["json_schema"]["schema"], 50)
    del value[missing]
    with pytest.raises(ValueError, match=missing):
        extract_valid_json(json.dumps(value), schema)
