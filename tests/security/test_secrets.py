"""Canaries: a key and passwords go through the real commands, and afterwards no byte that these wrote holds them."""

import json
import logging
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from api_server import ApiServer, Behaviour, Reply, by_hash, schema_of
from climassay import redaction
from climassay.models import ModelOptions
from climassay.redaction import TrustedUrl
from command_line import run_command
from published_sample import write_sample
from web_routes import Site, crawl

KEY = 'sk-canary/"6d3f0c27b1"'
URL_PASSWORD = "canary-of-the-address"
DATABASE_PASSWORD = "canary-of-the-database"
CANARIES = ("6d3f0c27b1", URL_PASSWORD, DATABASE_PASSWORD)
SEAS = "The ocean takes up heat and carbon. It warms slowly because water mixes down to great depths.\n"
ICE = "A glacier loses mass where it melts faster than snow falls, and the sea level rises.\n"
STARTS = (
    "/", "/ask", "/checks", "/check", "/library", "/results", "/usage", "/users", "/annotate", "/account",
)  # fmt: skip
MOST_PAGES = 60


class Tried:
    """Commands in one workspace, and everything that came of them."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder = folder
        self._monkeypatch, self._capsys = monkeypatch, capsys
        self.said: dict[str, str] = {}

    def run(self, *arguments, code=0, workspace=True):
        where = ("--workspace", self.folder / "workspace") if workspace else ()
        found, out, err = run_command(self._monkeypatch, self._capsys, *arguments, *where)
        assert found == code, err
        self.said[f"{len(self.said)} {' '.join(map(str, arguments[:2]))}"] = out + err
        return out


def leaks(texts) -> list[str]:
    """Names of texts, or of bytes, with a canary."""
    return [name for name, text in texts.items() if any(one in as_text(text) for one in CANARIES)]


def as_text(content) -> str:
    return content if isinstance(content, str) else content.decode("latin-1")


def files_below(folder):
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture
def tried(tmp_path, monkeypatch, capsys):
    for name, value in {
        "OPENAI_API_KEY": KEY,
        "CLIMASSAY_API_KEY": "",
        "CLIMASSAY_CACHE": str(tmp_path / "cache"),
        "COLUMNS": "300",
    }.items():
        monkeypatch.setenv(name, value)
    return Tried(tmp_path, monkeypatch, capsys)


@pytest.fixture
def logged(tmp_path):
    """Everything that any library says to the log goes into a file of the folder that is searched."""
    handler, root = logging.FileHandler(tmp_path / "log.txt"), logging.getLogger()
    level = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield
    root.removeHandler(handler)
    root.setLevel(level)
    handler.close()


EXPERIMENT = """
name = "canary"
settings = ["default"]
[[model]]
name = "openai:test"
base_url = "{url}"
[[benchmark]]
name = "gold"
files = ["questions.csv"]
"""


QUESTIONS = """Question,Options,Answer,Complexity
"What warms slowly?","a) ice\nb) the ocean\nc) air\nd) rock",b,Base
"What rises?","a) the sea level\nb) ice\nc) rock\nd) wood",a,Base
"""


@pytest.mark.faults
def test_commands_write_down_no_key_and_no_password(tried, logged, monkeypatch):
    folder = tried.folder
    (folder / "seas.txt").write_text(SEAS)
    (folder / "ice.txt").write_text(ICE)
    (folder / "questions.csv").write_text(QUESTIONS)
    tried.run("corpus", "add", "seas", folder / "seas.txt", folder / "ice.txt", "--json")
    with ApiServer(Behaviour(echo_authorization=True)) as server:
        asked = ("--model", "openai:test", "--base-url", server.url)
        tried.run("ask", "Why does the ocean warm slowly?", "-c", "seas", *asked, code=1)
        tried.run("evaluate", "mcq", folder / "questions.csv", *asked, "--json", code=1)
        tried.run("check", "The ocean warms slowly.", "-c", "seas", *asked, "--split", "whole", "--json", code=1)
    with ApiServer(Behaviour(echo_in_errors=True)) as server:
        url = server.url.replace("http://", f"http://user:{URL_PASSWORD}@")
        asked = ("--model", "openai:test", "--base-url", url)
        monkeypatch.setenv("OPENAI_BASE_URL", url)  # the server that an experiment's file may name with the key
        tried.run(
            "ask", "Why does the ocean warm slowly?", "-c", "seas", *asked, "-o", folder / "answer.html", "--json"
        )
        tried.run("ask", "Why does the ocean warm [[400 refused]]?", "-c", "seas", *asked, code=1)
        tried.run("evaluate", "mcq", folder / "questions.csv", *asked, "-o", folder / "a.csv", "-o",
                  folder / "a.md", "-o", folder / "a.html", "--predictions", folder / "a.jsonl")  # fmt: skip
        tried.run("check", "The ocean warms slowly.", "-c", "seas", *asked, "--split", "whole", "--json")
        (folder / "experiment.toml").write_text(EXPERIMENT.format(url=url))
        tried.run("evaluate", "run", folder / "experiment.toml", "-o", folder / "run.html", "--json")
        (folder / "experiment.toml").unlink()  # the user's own file
        assert {request.headers["authorization"] for request in server.asked} == {f"Bearer {KEY}"}
        assert all(URL_PASSWORD not in json.dumps(request.headers) for request in server.asked)
        (runs,) = [json.loads(tried.run("records", "runs", "--json"))]
        for run in runs:
            tried.run("records", "show", run["id"], "--json")
            tried.run("records", "show", run["id"])
        tried.run("records", "usage", "--json")
        for ending in ("csv", "jsonl"):
            tried.run("records", "export", folder / f"answers.{ending}", "--json")
        pages = pages_of(folder / "workspace", model_options=ModelOptions(base_url=TrustedUrl(url)))
    for told in ("***", "repeats the API key"):
        assert told in (folder / "answers.jsonl").read_text(), "the server did echo the key"
    assert len(pages) > 15
    assert leaks(tried.said) == []
    assert leaks(pages) == []
    assert leaks(files_below(folder)) == []
    # The search would notice.
    assert leaks({"said": f"see {KEY}", "file": URL_PASSWORD.encode(), "clean": "***"}) == ["said", "file"]


RECIPE = """
name = "{name}"
collections = ["seas"]
[writer]
model = "openai:test"
base_url = "{url}"
[counts]
mcq = 1
cloze = 1
base = 1
[contexts]
max_passages = 0
[stop]
drafts = 2
"""


def with_the_key_in_every_text(request) -> Reply:
    """What the schema asks for, but for the key within its texts."""
    reply = by_hash(request)
    if schema_of(request.body) is None:
        return reply
    sent = request.headers["authorization"]
    told = json.loads(reply.text)
    return Reply(json.dumps({name: f"{one} {sent}" if isinstance(one, str) else one for name, one in told.items()}))


@pytest.mark.faults
def test_what_writes_screens_and_ranks_writes_down_no_key(tried, logged, monkeypatch):
    folder = tried.folder
    (folder / "seas.txt").write_text(SEAS + ICE)
    rows = [{"group": "g", "id": str(n), "text": f"{text} {n}"} for n, text in enumerate((SEAS, ICE, SEAS))]
    (folder / "items.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    sample = write_sample(folder)
    tried.run("corpus", "add", "seas", folder / "seas.txt")
    broken, within = ApiServer(Behaviour(echo_authorization=True)), ApiServer(rule=with_the_key_in_every_text)
    for name, server in {"broken": broken, "within": within}.items():
        with server:
            url = server.url.replace("http://", f"http://user:{URL_PASSWORD}@")
            monkeypatch.setenv("OPENAI_BASE_URL", url)  # the server that a recipe may name with the key
            recipe = folder / f"{name}.toml"
            recipe.write_text(RECIPE.format(name=name, url=url))
            tried.run("generate", "run", recipe, "-o", folder / f"{name}.html", "--json", code=1)
            recipe.unlink()  # the user's own file
            tried.run("generate", "export", name, "-o", folder / f"{name}.jsonl")
            asked, marked = ("--base-url", url, "--json"), folder / f"{name}-marked.jsonl"
            tried.run("generate", "screen", sample, "--consistency", "openai:test", "-o", marked, *asked)
            rank = folder / f"{name}-rank"
            files = ("-o", f"{rank}.csv", "-o", f"{rank}.html")
            tried.run("judge", "rank", folder / "items.jsonl", "--group", "group", "--quality", "is clear", "--model",
                      "openai:test", *files, *asked, code=int(server is broken))  # fmt: skip
            assert {request.headers["authorization"] for request in server.asked} == {f"Bearer {KEY}"}
    drafts = {name: [json.loads(line) for line in (folder / f"{name}.jsonl").open()] for name in ("broken", "within")}
    assert all(drafts.values())
    assert all(draft["error"] for draft in drafts["broken"])
    assert all("repeats the API key" in draft["error"] for draft in drafts["within"]), "the server did echo the key"
    assert leaks(tried.said) == []
    assert leaks(files_below(folder)) == []


def pages_of(workspace, **settings) -> dict[str, str]:
    """All pages that an admin finds from the entrances on."""
    site = Site(workspace, model="openai:test", **settings)
    try:
        found = crawl(site.visitor("admin"), [*STARTS, "/api/openapi.json"], MOST_PAGES)
        return {address: answer.text for address, answer in found}
    finally:
        site.close()


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://user:{DATABASE_PASSWORD}@127.0.0.1:1/name",
        f"postgresql://user@127.0.0.1:1/name?password={DATABASE_PASSWORD}",
        f"mysql://user:{DATABASE_PASSWORD}@127.0.0.1/name",
        f"postgresql//user:{DATABASE_PASSWORD}@127.0.0.1/name",
        f"postgresql://user:{DATABASE_PASSWORD}@127.0.0.1:port/name",
    ],
    ids=["nobody-there", "among-the-options", "another-kind", "no-address", "bad-port"],
)
@pytest.mark.parametrize(
    "command", [("records", "runs"), ("evaluate", "mcq", "primer", "--limit", "1"), ("users", "list")]
)
def test_a_database_that_does_not_work_is_told_without_its_password(url, command, tried, logged, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_DATABASE_URL", url)
    model = ("--model", "openai:test", "--base-url", "http://127.0.0.1:1/v1") if command[0] == "evaluate" else ()
    found, out, err = run_command(
        monkeypatch, tried._capsys, *command, *model, "--json", "--workspace", tried.folder / "workspace"
    )
    assert found != 0
    assert err.splitlines()[-1].startswith("climassay: ")
    assert "Traceback" not in err
    assert leaks({"out": out, "err": err, **files_below(tried.folder)}) == []


def test_a_refused_key_is_not_repeated(tried):
    with ApiServer(Behaviour(echo_authorization=True)) as server:
        question = "Is it warm? [[401 bad key]]"
        (tried.folder / "seas.txt").write_text(SEAS)
        tried.run("corpus", "add", "seas", tried.folder / "seas.txt")
        arguments = (
            "ask", question, "-c", "seas", "--min-cosine", -1, "--model", "openai:test", "--base-url", server.url,
        )  # fmt: skip
        found, out, err = run_command(
            tried._monkeypatch, tried._capsys, *arguments, "--workspace", tried.folder / "workspace"
        )
    assert found == 2
    assert "bad key" in err
    assert leaks({"out": out, "err": err, **files_below(tried.folder)}) == []


SPELLED = st.lists(st.sampled_from(["plain", "lower", "upper"]), min_size=len(KEY), max_size=len(KEY))


@given(SPELLED, st.text(max_size=20), st.text(max_size=20))
def test_a_key_is_blanked_however_json_spells_it(spellings, before, after):
    ways = {"plain": lambda c: {'"': '\\"', "/": "\\/"}.get(c, c), "lower": lambda c: f"\\u{ord(c):04x}",
            "upper": lambda c: f"\\u{ord(c):04X}"}  # fmt: skip
    spelled = "".join(ways[how](character) for how, character in zip(spellings, KEY, strict=True))
    body = f'{{"a": {json.dumps(before)}, "b": "{spelled}", "c": {json.dumps(after)}}}'
    assert json.loads(body)["b"] == KEY
    blanked = json.loads(redaction.without_key(body.encode(), KEY))
    assert blanked == {"a": before, "b": "***", "c": after}


@pytest.mark.parametrize("depth", [1, 2, 3])
@pytest.mark.parametrize(
    "spelled",
    [json.dumps(KEY), json.dumps(KEY).replace("/", "\\/").replace("k", "\\u006b")],
    ids=["as-ever", "escaped"],
)
def test_a_key_is_blanked_within_json_that_an_answer_holds(depth, spelled):
    body = f'{{"a": {spelled}}}'
    for _ in range(depth - 1):
        body = json.dumps({"a": body})
    found = json.loads(redaction.without_key(body.encode(), KEY))
    for _ in range(depth - 1):
        found = json.loads(found["a"])
    assert found == {"a": "***"}


def test_a_body_of_backslashes_is_read_in_one_go():
    body = b"\\" * 3_000_000 + KEY.encode()
    assert redaction.without_key(body, KEY) == b"\\" * 3_000_000 + b"***"


@pytest.mark.parametrize("body", [b'{"a": "\\u0073 and \\\\ and \\""}', b"plain", b""])
def test_other_bodies_stay_as_they_are(body):
    assert redaction.without_key(body, KEY) == body
    assert redaction.without_key(body, None) == body
    assert redaction.without_key(body, "") == body


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://user:word@host:8000/v1 failed", "http://***@host:8000/v1 failed"),
        ("postgresql+psycopg://u:p%40@[::1]/name", "postgresql+psycopg://***@[::1]/name"),
        ("postgresql://u:p@ss@host/name", "postgresql://***@host/name"),
        ("http://:word@host", "http://***@host"),
        ("postgresql://user@host/name", "postgresql://user@host/name"),
        ("http://host/a?mail=b:c@d", "http://host/a?mail=b:c@d"),
        ("see http://host: mail a@b.org", "see http://host: mail a@b.org"),
        ("https://doi.org/10.1/x:y", "https://doi.org/10.1/x:y"),
    ],
)
def test_passwords_in_addresses_are_blanked_and_nothing_else(text, shown):
    assert redaction.without_secrets(text) == shown


def test_short_keys_are_placeholders(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    assert redaction.without_secrets("none of these") == "none of these"
    monkeypatch.setenv("OPENAI_API_KEY", "l0ng-enough")
    assert not re.search("l0ng", redaction.without_secrets("a l0ng-enough b"))
