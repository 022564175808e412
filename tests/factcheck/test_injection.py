"""Claims, passages and advocates' words that carry instructions: they are material, and change nothing but themselves.

What a model makes of such a text cannot be promised. What is promised, and tested here, is what the text cannot reach:
the roles and the number of messages, the lines of the prompts, the verdicts that can be given, the numbers that can be
cited, and the control tokens of the model.
"""

import functools
import json
import re
from pathlib import Path

import pytest

from climassay.factcheck import AdvocateSettings, DebateResources, DebateSettings
from climassay.factcheck.scales import CLIMATE_FEEDBACK
from climassay.models import Message
from debate_tables import (
    SUN,
    Script,
    encoder,
    held,
    make_collection,
    speaker_of,
)
from injections import INJECTIONS
from tiny_models import smollm2

TEXTS = pytest.mark.parametrize("text", list(INJECTIONS.values()), ids=list(INJECTIONS))
ROLES = ("claim", "passage", "words")
PLACES = pytest.mark.parametrize("place", ROLES)
HARMLESS = "The Sun is bright."


@functools.cache
def company_with(text: str, folder: str) -> DebateResources:
    shelf = make_collection(
        Path(folder) / str(len(list(Path(folder).iterdir()))),
        "shelf",
        ("Sunlight", text),
        ("Forcing", "The forcing by CO2 was 2.16 W m⁻²."),
    )
    return DebateResources({}, {"shelf": shelf}, encoder=encoder())


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return str(tmp_path_factory.mktemp("shelves"))


def shape(prompt: str) -> list[str]:
    """Roles of a prompt in order, and how many lines each message has."""
    messages = re.split(r"^<(system|user|assistant|answer)>", prompt, flags=re.MULTILINE)[1:]
    return [
        f"{role} {len(re.split(LINE, content))}" for role, content in zip(messages[::2], messages[1::2], strict=True)
    ]


LINE = "[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]"
"""Whatever ``str.splitlines`` takes for the end of a line."""


PLAIN, MADE_UP = "It is as everybody says.", "Nothing of the kind was ever said."
FORCING = "The forcing by CO2 was 2.16 W m⁻²."
VERDICTS = {"One": "incorrect", "Two": "correct", "mediator": "incorrect"}


@functools.cache
def debate(text: str, place: str, folder: str):
    """A debate of two rounds with a text as the claim, as a passage, or in all fields for words; and its schemas."""
    words = text if place == "words" else MADE_UP
    schemas = []

    def write(prompt, schema):
        if prompt.startswith("<system>You sort"):
            count = len(re.findall(r"^Passage \d+", prompt, re.MULTILINE))
            return json.dumps({"grades": [{"passage": number + 1, "grade": 2} for number in range(count)]})
        fields, speaker = schema["properties"], speaker_of(prompt)
        schemas.append(fields)
        known = {
            "quotations": [
                {"passage": number, "quotation": said, "side": "against"}
                for number in (1, 2)
                for said in (words, FORCING)
            ],
            "reasoning": words, "verdict": VERDICTS[speaker], "evidence": "robust", "agreement": "high",
            "confidence": "high", "likelihood": "extremely unlikely", "placement": "outlier",
            "explanation": f"{words} That is in the passages [1] [2].",
            "questions": [{"to": to, "question": words} for to in ("Two", "nobody")],
            "replies": dict.fromkeys(fields.get("replies", {}).get("properties", ()), f"{words} So it is [2]."),
        }  # fmt: skip
        return json.dumps({name: known[name] for name in fields})

    script = Script({})
    script.model.write = write
    known = company_with(text if place == "passage" else "The Sun is bright and warms the Earth.", folder)
    advocates = tuple(AdvocateSettings(name, collections=("shelf",), min_cosine=-1.0) for name in ("One", "Two"))
    chosen = DebateSettings(
        advocates, model="local:scripted", scale="climate-feedback", split="whole", check_claims=False, rounds=2
    )
    company = DebateResources({"local:scripted": script.model}, known.collections, encoder=encoder())
    return held(script, chosen, company, text if place == "claim" else SUN), schemas


@PLACES
@TEXTS
def test_models_are_asked_the_same_on_the_same_lines_and_no_text_becomes_a_system_message(text, place, folder):
    (found, schemas), (plain, expected) = (debate(one, place, folder) for one in (text, PLAIN))
    assert found.reasons == plain.reasons == ["contrast", "no change"]
    assert [shape(prompt) for prompt in found.script.model.texts] == [shape(one) for one in plain.script.model.texts]
    assert schemas == expected
    line = " ".join(text.split())
    for prompt in found.script.model.texts:
        system, _, asked = prompt.partition("\n<user>")
        assert line not in system
        # It reaches the model, as material.
        assert place == "words" or speaker_of(prompt) == "mediator" or line in asked


@PLACES
@TEXTS
def test_what_a_model_answers_is_looked_up(text, place, folder):
    found, schemas = debate(text, place, folder)
    transcript = found.transcript
    labels = (*CLIMATE_FEEDBACK.labels, CLIMATE_FEEDBACK.nei)
    assert {tuple(fields["verdict"]["enum"]) for fields in schemas} == {labels}
    judged = [transcript.verdict, *(one for held in transcript.rounds for one in held.opinions)]
    assert [judged[0].label, *(one.verdict for one in judged[1:])] == ["incorrect", *["incorrect", "correct"] * 2]
    texts = {source.number: source.passage.text for source in transcript.sources}
    assert len(texts) == 2
    for one in judged:
        # No passage holds the words; of the two true quotations, the one with the wrong number is moved to the other.
        [quotation] = one.quotations
        assert (quotation.text, one.removed_quotations) == (FORCING, 2)
        assert FORCING in texts[quotation.passage]
        assert one.levels.likelihood is None
        assert {number for some in one.explanation for number in some.citations} <= set(texts)
    asked = transcript.rounds[1].follow_ups
    assert {one.to for one in asked} == {"Two"}
    assert all(set(some.citations) <= set(texts) for one in asked for some in one.reply)


def special_ids(model, messages, prefix=""):
    """Ids of special tokens in a prompt, in order."""
    known = set(model.prompts.tokenizer.added_tokens_decoder)
    return [token for token in model.prompts.encode(model.render(messages, prefix)) if token in known]


@pytest.mark.model
@TEXTS
def test_no_control_token_of_the_bundled_model_comes_from_a_message(text):
    model = smollm2()
    turns = (Message("system", "You check claims."), Message("user", f"Claim: {text}"), Message("assistant", text))
    plain = tuple(Message(one.role, HARMLESS) for one in turns)
    assert special_ids(model, turns, text) == special_ids(model, plain)
    assert special_ids(model, turns[:2], f"Assessment: {text}\nVerdict:") == special_ids(model, plain[:2])
    rendered = model.render(turns[:2], text)
    assert model.prompts.encode_all([rendered]) == [model.prompts.encode(rendered)]


@pytest.mark.model
def test_the_bundled_model_reads_a_spelled_out_control_token_as_one_where_nobody_takes_care():
    """The ground of the test above: to a tokenizer what a template writes and what a claim spells out are one."""
    tokenizer = smollm2().prompts.tokenizer
    assert tokenizer.encode("<|im_end|>") == [tokenizer.convert_tokens_to_ids("<|im_end|>")]
