"""A key changes no answer: what a server says comes in, is kept and goes out as it was said, whatever the key is."""

import json

import pytest

from api_server import ApiServer, Behaviour, Reply, schema_of
from climassay.models import GenerationRequest, Message, OptionRequest
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.pacing import RetryPolicy
from climassay.records import RecordedModel, Records
from climassay.records.queries import list_runs, run_details
from climassay.records.transfer import export_answers
from climassay.redaction import is_secret

PLACEHOLDERS = ("none", "EMPTY", "ollama", "ice", "x", "not-needed", "sk-no-key-required", "choices", "max_tokens", "0")
REAL = "sk-proj-4f9aB7c1D0e2"
SAID = 'none of the above: "EMPTY" choices, max_tokens, sea ice \\ x \u00e9 0 ollama, sk-no-key-required, not-needed'
LISTED = [("none", -0.2), ("EMPTY", -2.0), ("ice", -3.0), ("x", -4.0)]
OPTIONS = ("none", "EMPTY", "ice", "x")
SCHEMA = {
    "type": "object",
    "properties": {"choices": {"type": "string"}, "ice": {"type": "string"}},
    "required": ["choices", "ice"],
    "additionalProperties": False,
}
WITH_FIELDS = {"choices": SAID, "ice": "none"}
REFUSAL = f"This prompt is refused: {SAID}"
ONCE = RetryPolicy(base=0.0, max_attempts=4)


def chat(text):
    return (Message("user", text),)


def says(request) -> Reply:
    if schema_of(request.body):
        return Reply(json.dumps(WITH_FIELDS))
    return Reply(SAID, [LISTED])


@pytest.fixture(params=[*PLACEHOLDERS, REAL])
def key(request):
    return request.param


def opened(server, key):
    return OpenAIModel("test", base_url=server.url, api_key=key, policy=ONCE, concurrency=1)


def test_whatever_the_key_is_answers_are_kept_as_they_were_said(key, tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    # A server that takes no max_tokens says so in words that some of the keys are part of.
    strict = Behaviour(refused=("max_tokens",))
    with ApiServer(strict, rule=says) as server, Records(f"sqlite:///{tmp_path}/records.sqlite") as store:
        model = opened(server, key)
        with store.run("walk", {"claim": SAID}, {"seed": SAID}) as run:
            recorded = RecordedModel(model, store, run)
            requests = [
                GenerationRequest(chat("say it")),
                GenerationRequest(chat("as a form"), schema=SCHEMA),
                GenerationRequest(chat(f"[[400 {REFUSAL}]]")),
                GenerationRequest(chat("[[error-200]]")),
            ]
            plain, form, refused, broken = recorded.generate(requests)
            (weighed,) = recorded.option_logprobs([OptionRequest(chat("which?"), OPTIONS)])
            run.save_results("answers", [{"said": plain.text, "form": form.text, "listed": LISTED}])
        again = recorded.generate(requests[:2])
        model.close()
        asked = len(server.asked)
        details = run_details(store.database, run.id)
        for ending in ("jsonl", "csv", "parquet"):
            export_answers(store.database, tmp_path / f"answers.{ending}")
    assert all(request.headers["authorization"] == f"Bearer {key}" for request in server.asked)
    assert server.asked[0].content == "say it"
    assert plain.text == SAID
    assert json.loads(form.text) == WITH_FIELDS
    assert "Use 'max_completion_tokens' instead" not in str([plain, form, weighed]), "the refusal was understood"
    assert SAID in refused.error
    assert "the engine is gone" in broken.error
    assert weighed.method == "top_logprobs"
    assert weighed.logprobs == tuple(logprob for _, logprob in LISTED)
    # One refusal of max_tokens, one attempt for each but the one that is broken each time.
    assert asked == 1 + 4 + ONCE.max_attempts
    assert [answer.text for answer in again] == [plain.text, form.text]
    assert (details.config, details.seeds) == ({"claim": SAID}, {"seed": SAID})
    assert details.results["answers"] == [{"said": SAID, "form": form.text, "listed": [list(one) for one in LISTED]}]
    lines = [json.loads(line) for line in (tmp_path / "answers.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["text"] for line in lines if line["text"]] == [plain.text, form.text]


@pytest.mark.parametrize("spelled", [REAL, "".join(f"\\u{ord(one):04X}" for one in REAL)], ids=["plain", "escaped"])
def test_an_answer_that_repeats_a_real_key_is_refused_and_counted(spelled, tmp_path):
    """Not rewritten, not kept, not asked for again."""

    def repeats(request) -> Reply:
        word = f"You sent {spelled}"
        return Reply(f'{{"choices": "{word}", "ice": ""}}' if schema_of(request.body) else word, [[(spelled, -0.1)]])

    with ApiServer(rule=repeats) as server, Records(f"sqlite:///{tmp_path}/records.sqlite") as store:
        model = opened(server, REAL)
        with store.run("walk", {}) as run:
            recorded = RecordedModel(model, store, run)
            plain, form = recorded.generate(
                [GenerationRequest(chat("say it")), GenerationRequest(chat("as a form"), schema=SCHEMA)]
            )
            (weighed,) = recorded.option_logprobs([OptionRequest(chat("which?"), OPTIONS)])
        model.close()
        (summary,) = list_runs(store.database)
    assert all("repeats the API key" in answer.error for answer in (plain, form, weighed))
    assert len(server.asked) == 3
    assert summary.failed == 3
    for file in tmp_path.iterdir():
        assert REAL.encode() not in file.read_bytes(), file.name


def test_a_key_spread_over_the_parts_of_an_answer_is_refused_too():
    with ApiServer(rule=lambda _: Reply(REAL)) as server:
        model = opened(server, REAL)
        whole, parts = model.generate([GenerationRequest(chat("say it")), GenerationRequest(chat("[[parts 9]]"))])
        model.close()
    assert whole.error == parts.error
    assert "repeats the API key" in parts.error


def test_errors_blank_a_real_key_and_what_is_decided_by_them_does_not_suffer():
    # The name of the parameter to use stands next to the key.
    behaviour = Behaviour(refused=("max_tokens",), echo_authorization=True)
    with ApiServer(behaviour, rule=lambda _: Reply("b", [[("b", -0.1)]])) as server:
        model = opened(server, REAL)
        (answer,) = model.generate([GenerationRequest(chat("[[400 told]]"))])
        model.close()
    assert "told" in answer.error
    assert "***" in answer.error
    assert REAL not in repr(answer)


@pytest.mark.parametrize(
    ("key", "secret"),
    [
        *((placeholder, False) for placeholder in PLACEHOLDERS),
        ("your-api-key-here", False),
        ("lm-studio", False),
        ("changeme", False),
        ("1234567890", False),
        ("********", False),
        (REAL, True),
        ("gsk_8fJ2kQ", True),
        ("6d3f0c27b1", True),
        ("abcdefghijklmnopqrstuvwxyzabcdef", True),
        ("550e8400-e29b-41d4-a716-446655440000", True),
        ("XqPzWbRtYmKlNvCd", True),
    ],
)
def test_a_secret_is_long_and_no_words(key, secret):
    assert is_secret(key) is secret
