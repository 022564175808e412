"""A server of somebody else's: ``transformers serve``, with the bundled model behind it.

It takes log-probabilities and JSON schemas and ignores them, and refuses parameters that it does not know with 422
(transformers/cli/serving/chat_completion.py). The bundled model is too small to say anything sensible when it is asked
as strong models are: what is looked at here is that every call is answered, that it is answered as the same weights
answer without a server, and what is learnt of the server.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from unittest.mock import patch

import pytest
from transformers.utils.import_utils import is_serve_available

from climassay.models.bundled import bundled_path
from climassay.models.contract import GenerationRequest, Message, OptionRequest, Sampling
from climassay.models.openai.client import OpenAIModel
from patience import until
from providers.knowing_model import FACTS
from providers.touring import told
from tiny_models import smollm2

if not is_serve_available():
    pytest.skip("transformers serve is not installed (transformers[serving] brings it)", allow_module_level=True)

pytestmark = pytest.mark.slow
START = "import sys; from transformers.cli.transformers import main; sys.argv[0] = 'transformers'; main()"
NAME = str(bundled_path("smollm2"))
"""A server that was started for one model wants to be asked for it."""
ROOM = 40
"""Tokens of an answer."""
FEW = ("--max-output-tokens", str(ROOM))


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The base URL of a server, which runs as a process of its own."""
    log = tmp_path_factory.mktemp("serve") / "log.txt"
    where = ("--host", "127.0.0.1", "--port", "0", "--device", "cpu", "--dtype", "float32")
    command = [sys.executable, "-c", START, "serve", NAME, *where]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
    with log.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file, env=environment) as process:
        try:

            def address():
                text = log.read_text()
                assert process.poll() is None, text
                return re.search(r"running on (http://127\.0\.0\.1:\d+)", text)

            yield f"{until(address)[1]}/v1"
        finally:
            process.send_signal(signal.SIGINT)


@pytest.fixture
def client(url):
    model = OpenAIModel(NAME, base_url=url, max_output_tokens=ROOM)
    yield model
    model.close()


def chat(text, system=None):
    turns = (Message("system", system),) if system else ()
    return (*turns, Message("user", text))


def test_it_answers_as_the_same_weights_do_without_a_server(client):
    requests = [
        GenerationRequest(chat(FACTS[0].question), Sampling(max_tokens=ROOM)),
        GenerationRequest(chat("Name three gases.", system="You answer in one line."), Sampling(max_tokens=ROOM)),
        GenerationRequest(chat("Count from one to nine in words."), Sampling(max_tokens=ROOM, stop=("four",))),
    ]
    served, own = client.generate(requests), smollm2().generate(requests)
    assert [answer.text.strip() for answer in served] == [answer.text.strip() for answer in own]
    assert [answer.error for answer in served] == [None] * 3
    assert all(answer.usage.prompt_tokens > 0 and answer.usage.completion_tokens > 0 for answer in served)


def test_what_it_ignores_is_learnt(client):
    asked = chat(FACTS[0].question)
    [said] = client.generate([GenerationRequest(asked, Sampling(max_tokens=ROOM))])
    [scores] = client.option_logprobs([OptionRequest(asked, ("Nobody knows.", said.text))])
    assert (scores.error, scores.method, scores.best) == (None, "generated", 1)
    assert client.capabilities.logprobs == "ignored"
    schema = {
        "type": "object",
        "properties": {"colour": {"type": "string"}},
        "required": ["colour"],
        "additionalProperties": False,
    }
    # It says hello and no JSON, whatever the schema.
    client.generate([GenerationRequest(chat("Say hello."), Sampling(max_tokens=ROOM), schema=schema)])
    assert client.capabilities.schema == "ignored"


def test_commands_have_no_failed_call(url, book, given, tmp_path):
    shutil.copytree(book, tmp_path / "w")
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(
        f'benchmarks = ["{given}/questions.jsonl"]\nscoring = "letter"\nlimit = 1\n[[model]]\nname = "openai:{NAME}"\n',
        encoding="utf-8",
    )
    model = ("--model", f"openai:{NAME}", *FEW)
    commands = (
        ("ask", FACTS[0].question, "-c", "book", "-k", "1", *model),
        ("evaluate", "mcq", f"{given}/questions.jsonl", "--limit", "2", "--scoring", "letter", *model),
        ("evaluate", "run", str(experiment), *FEW),
    )
    with patch.dict(os.environ, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": ""}):
        for command in commands:
            code, _, err = told(*command, "--workspace", str(tmp_path / "w"), "--json")
            assert code == 0, err
    _, out, _ = told("records", "runs", "--workspace", str(tmp_path / "w"), "--json")
    runs = [run for run in json.loads(out) if run["asked"]]
    assert [run["asked"] for run in runs] == [1, 2, 3]
    assert {(run["status"], run["failed"]) for run in runs} == {("done", 0)}
