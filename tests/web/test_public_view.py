"""What visitors without an account see of the server behind the pages: no folders, servers, names, messages."""

import io
import json
import zipfile
from pathlib import Path

import pytest

from climassay.errors import ModelError, RecordsError
from climassay.factcheck import DebateSettings, make_claim
from climassay.models.openai.connection import FATAL_STATUS_ADVICE
from climassay.web.checks.store import get_check_store
from climassay.web.failures import explain, plain_message
from climassay.web.redaction import RedactedResponses, Redactor

HIDDEN = {
    "base URL": "http://10.1.2.3:8001/v1",
    "host without a domain": "http://llm-box/v1",
    "host of an institute": "https://models.example.org/v1",
    "user in an address": "https://team:word@models.example.org/",
    "database": "postgresql+psycopg://climassay@db.example.org/records",
    "bucket": "s3://our-bucket/collections",
    "home": "/home/ada/papers/draft.pdf",
    "temporary file": "/tmp/pytest-of-ada/x",
    "on Windows": "C:\\Users\\ada\\papers",
    "from home": "~/climassay/records.sqlite",
}
SHOWN = (
    "https://www.ipcc.ch/report/ar6/wg1/chapter/chapter-9/",
    "https://doi.org/10.1029/2020RG000712",
    "https://www.gov.uk/media/5f/report.pdf",
    "See https://example.org/home/news, https://example.org/tmp/v1x and a/b/c; 1/2 of the mass; and/or.",
    "/library/search?q=ice and /results/r1",
    "The sea rose (IPCC, 2021).",
)


@pytest.fixture
def place_settings():
    return {"public": "read", "address": "http://127.0.0.1:8000"}


@pytest.fixture
def view(place):
    return Redactor(place)


@pytest.mark.parametrize("secret", HIDDEN.values(), ids=HIDDEN)
@pytest.mark.parametrize("around", ["The server {} did not answer.", '{{"base": "{}"}}', "<dd>{}</dd>", "{}", "({}),"])
def test_folders_and_servers_are_taken_out(view, secret, around):
    shown = view.redact(around.format(secret).encode()).decode()
    assert secret not in shown
    assert not any(part in shown for part in ("ada", "10.1.2.3", "llm-box", "models.example", "db.example", "bucket"))
    before, _, after = around.format("\x00").partition("\x00")
    assert shown.startswith(before)
    assert shown.endswith(after.lstrip("."))


@pytest.mark.parametrize("secret", HIDDEN.values(), ids=HIDDEN)
def test_json_stays_json_where_a_quotation_mark_follows(view, secret):
    said = f'It said "no {secret}" twice, and "{secret}".'
    shown = json.loads(view.redact(json.dumps({"error": said}).encode()))["error"]
    assert shown.startswith('It said "no (a ')
    assert shown.count('"') == said.count('"')
    assert secret not in shown


@pytest.mark.parametrize("text", SHOWN)
def test_what_is_public_stays(view, text):
    assert view.redact(text.encode()).decode() == text


def test_the_workspace_and_the_address_of_the_pages(view, place):
    said = f"{place.workspace.root}/collections/primer.lance at {place.settings.root}/checks/c1, {Path.home()}/x"
    shown = view.redact(said.encode()).decode()
    assert str(place.workspace.root) not in shown
    assert str(Path.home()) not in shown
    assert f"{place.settings.root}/checks/c1" in shown


def test_a_base_url_is_known_by_its_name_wherever_it_leads(view):
    for said in (
        '{"base_url": "https://example.org/api"}',
        "<dt>model.base_url</dt><dd>https://example.org/api</dd>",
        "base_url = https://example.org/api",
        "&#34;base_url&#34;: &#34;https://example.org/api&#34;",
    ):
        assert "example.org" not in view.redact(said.encode()).decode()


@pytest.fixture
def published(client_of, place):
    """A check that broke with an error of everything, asked for and reviewed by people; a run with a configuration."""
    checks = get_check_store(place)
    for name in ("secretlogin", "otherlogin"):
        place.accounts.add(name)
    place.accounts.change("otherlogin", display_name="Dr Ada")
    error = f"The model failed at {HIDDEN['base URL']} with {HIDDEN['home']}."
    place.jobs.register("check", lambda *_: None, "nobody")
    job = place.jobs.submit("check", "Check", {}, by="secretlogin")
    ids = []
    for name in ("secretlogin", "otherlogin"):
        check = checks.begin(make_claim(f"A claim of {len(ids)}."), DebateSettings(), setup="x", by=name)
        checks.assign_job(check, job)
        checks.fail(check, error)
        checks.set_visibility(check, "published")
        ids.append(check)
    with place.records.run("check", {"base_url": HIDDEN["host of an institute"], "head": HIDDEN["home"]}) as run:
        run.save_results("report_of_it", [{"path": HIDDEN["home"], "server": HIDDEN["base URL"]}])
    return ids, run.id


def test_no_page_and_no_data_tell_strangers_more_than_is_theirs(client_of, published, place):
    (mine, other), run = published
    paths = [
        f"/checks/{mine}", f"/checks/{mine}/check.json", f"/checks/{other}", "/checks",
        f"/api/v1/checks/{mine}", "/api/v1/checks", f"/results/{run}", f"/api/v1/runs/{run}",
        f"/results/{run}/results", "/results", "/checks.csv", "/checks.jsonl",
    ]  # fmt: skip
    stranger, member = client_of(), client_of("annotator")
    known = ""
    for path in paths:
        text = stranger.get(path).text
        for secret in (*HIDDEN.values(), "secretlogin", "otherlogin", str(place.workspace.root)):
            assert secret not in text, (path, secret)
        known += member.get(path).text
    assert "secretlogin" in known
    assert HIDDEN["home"] in known
    workbook = (
        zipfile.ZipFile(io.BytesIO(stranger.get("/checks.xlsx").content)).read("xl/worksheets/sheet1.xml").decode()
    )
    assert mine in workbook
    assert not any(secret in workbook for secret in (*HIDDEN.values(), "secretlogin", "otherlogin"))
    for path in ("/checks", "/checks.csv", "/api/v1/checks"):
        assert stranger.get(f"{path}?reviewer=secretlogin").status_code in (303, 401)
    assert "Dr Ada" not in stranger.get(f"/checks/{other}").text
    assert "Dr Ada" in member.get(f"/checks/{other}").text
    assert json.loads(stranger.get(f"/api/v1/checks/{mine}").text)["error"].startswith("The model failed at (a server)")


@pytest.mark.parametrize(
    "path",
    ["/", "/sign-in", "/checks", "/check", "/check-text", "/confidence", "/ask", "/library", "/results",
     "/results/datasets", "/nothing"],
)  # fmt: skip
def test_visitors_are_told_nothing_of_the_command_line(client_of, path):
    text = client_of().get(path).text
    assert "<code>climassay" not in text
    assert "command line" not in text


@pytest.mark.parametrize("error", [RecordsError("The records database sqlite:////home/x is locked"), ModelError("x:9")])
def test_what_the_database_says_is_for_the_log(client_of, place, monkeypatch, error, caplog):
    def broken(*_given, **_named):
        raise error

    client = client_of()
    monkeypatch.setattr("climassay.web.checks.pages.get_check_store", broken)
    answer = client.get("/checks")
    assert answer.status_code == 500
    assert str(error) not in answer.text
    assert "locked" not in answer.text
    assert str(error) in caplog.text


def test_an_answer_in_pieces_is_seen_as_a_whole(place):
    import asyncio

    said = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200,
                    "headers": [(b"content-type", b"text/plain"), (b"content-length", b"99")]})  # fmt: skip
        for piece in (b"at http://10.1", b".2.3:80", b"01/v1 and /ho", b"me/ada"):
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})

    async def send(message):
        said.append(message)

    asyncio.run(RedactedResponses(app, place)({"type": "http", "state": {"user": None}}, None, send))
    assert b"".join(one.get("body", b"") for one in said) == b"at (a server) and (a folder of the server)"
    assert b"content-length" not in dict(said[0]["headers"])


def test_who_may_only_read_is_led_to_past_checks(client_of):
    """And not to a form that asks them to sign in first."""
    stranger, member = client_of(), client_of("annotator")
    for path in ("/", "/library"):
        assert 'href="/checks"' in stranger.get(path).text
        assert 'href="/check"' not in stranger.get(path).text
        assert 'href="/check"' in member.get(path).text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('{"a": [1, "é"]}', '{\n  "a": [\n    1,\n    "é"\n  ]\n}'),
        ("The sea rose.", "The sea rose."),
        ("12", "12"),
        ('{"a": ', '{"a": '),
        ("[" * 100_000, "[" * 100_000),
        (None, ""),
    ],
    ids=["object", "text", "number", "cut", "deep", "nothing"],
)
def test_json_is_laid_out_and_other_texts_are_as_they_are(text, shown):
    from climassay.web.pages import format_json

    assert format_json(text) == shown


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (f"The server answered 401: Incorrect API key provided. {FATAL_STATUS_ADVICE[401]}", "did not accept the key"),
        ("OpenAI's server needs an API key: set OPENAI_API_KEY, or give another --base-url.", "did not accept the key"),
        (
            "The server answered 404: No such model. Check the model's name: the server does not offer 'x' to you.",
            "not available",
        ),
        ("The connection to http://localhost:8000/v1 failed: Connect call failed.", "cannot be reached"),
        ("There is no collection 'ipcc': see climassay corpus list.", "no longer in the library"),
    ],
)
def test_a_known_error_is_told_in_plain_words_with_what_to_do(error, words):
    known = explain(error)
    assert words in known.what
    assert known.what == plain_message(error)
    assert known.advice.endswith(".")


def test_an_error_that_is_not_known_stays_as_it_is():
    assert explain("Something unforeseen went wrong (KeyError).") is explain(None) is None
    assert plain_message("The model gave no answer.") == "The model gave no answer."
