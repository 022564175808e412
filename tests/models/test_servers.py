"""A key goes to the host it is bound to, and to no other: seen at the server that was asked."""

import ast
import json
import pickle
from pathlib import Path

import pytest

import climassay
from api_server import ApiServer
from climassay.errors import InputError, ModelError
from climassay.evaluation import ModelSpec
from climassay.models import GenerationRequest, Message, ModelOptions, load_model
from climassay.models.openai.client import OpenAIModel
from climassay.models.openai.finetuning import fine_tune
from climassay.models.openai.pacing import RetryPolicy
from climassay.models.provider import is_served, model_price
from climassay.models.servers import Price, find_price, find_server, normalised_base_url, price_from_options, providers
from climassay.redaction import TrustedUrl
from command_line import run_command
from faults.commands import arguments, walk

GENERAL, SPECIAL = "sk-general-4f9aB7c1", "tg-special-8d2eC6f0"
ELSEWHERE = "https://models.example/v1"
HERE = "http://127.0.0.1:8000/v1"


@pytest.fixture(autouse=True)
def configuration(tmp_path, monkeypatch):
    """The user's configuration file, which a test may write, and one key in the environment."""
    path = tmp_path / "config.toml"
    path.write_text("")
    monkeypatch.setenv("CLIMASSAY_CONFIG", str(path))
    for name in ("CLIMASSAY_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", GENERAL)
    monkeypatch.setenv("SPECIAL_KEY", SPECIAL)
    # What OpenAI's client adds of its own accord, which is nothing for other servers either.
    monkeypatch.setenv("OPENAI_ORG_ID", "org-canary")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Gateway-Token: canary")
    return path


def table(url, name="special", **entries) -> str:
    entries = {"base_url": url, "key_variable": "SPECIAL_KEY", **entries}
    return f"[providers.{name}]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in entries.items())


def ask(model) -> str:
    (answer,) = model.generate([GenerationRequest((Message("user", "hello"),))])
    model.close()
    assert answer.error is None, answer.error
    return answer.text


def headers_of(server) -> dict[str, str]:
    """Headers of the requests that a server got, which are the same for all."""
    found = [{name: said for name, said in one.headers.items() if name != "content-length"} for one in server.asked]
    assert all(one == found[0] for one in found)
    return found[0]


@pytest.mark.parametrize(
    ("base_url", "of_environment", "key"),
    [
        (None, None, GENERAL),
        ("https://API.openai.com:443/v1/", None, GENERAL),
        (TrustedUrl(ELSEWHERE), None, GENERAL),
        (None, ELSEWHERE, GENERAL),
        (f"{ELSEWHERE}/", ELSEWHERE, GENERAL),
        ("https://api.openai.com/v1", ELSEWHERE, GENERAL),
        (TrustedUrl(ELSEWHERE), "http://localhost:1", GENERAL),
        (ELSEWHERE, None, None),
        (ELSEWHERE, "https://models.example:8443/v1", None),
        (ELSEWHERE, "http://models.example/v1", None),
        ("https://api.openai.com.models.example/v1", None, None),
        ("https://api.openai.com@models.example/v1", None, None),
        ("https://models.example/https://api.openai.com/v1", None, None),
        ("http://api.openai.com/v1", None, None),
        (HERE, None, None),
    ],
)
def test_the_key_of_the_environment_is_bound_to_hosts_that_the_user_names(base_url, of_environment, key, monkeypatch):
    if of_environment:
        monkeypatch.setenv("OPENAI_BASE_URL", of_environment)
    server = find_server("openai", base_url)
    assert server.key == key
    assert bool(server.withholding_reason) == (key is None)
    assert str(key) not in repr(server)


@pytest.mark.parametrize(
    ("base_url", "key"),
    [
        (ELSEWHERE, SPECIAL),
        (TrustedUrl(f"{ELSEWHERE}/"), SPECIAL),
        (None, GENERAL),
        (TrustedUrl("https://third.example/v1"), GENERAL),
        ("https://third.example/v1", None),
    ],
)
def test_the_key_of_a_table_is_bound_to_its_host(base_url, key, configuration):
    configuration.write_text(table(ELSEWHERE))
    assert find_server("openai", base_url).key == key
    assert find_server("special").key == SPECIAL


def test_which_key_is_sent_is_told_by_its_variable_and_never_shown(configuration, monkeypatch):
    configuration.write_text(table(ELSEWHERE))
    assert "OPENAI_API_KEY" in find_server().key_note
    assert "SPECIAL_KEY" in find_server("special").key_note
    monkeypatch.setenv("CLIMASSAY_API_KEY", "another-key")
    assert "CLIMASSAY_API_KEY" in find_server().key_note
    assert "another-key" not in find_server().key_note
    for name in ("CLIMASSAY_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name)
    assert "No API key was sent" in find_server("openai", TrustedUrl(HERE)).key_note
    assert "set OPENAI_API_KEY" in find_server("openai", TrustedUrl(HERE)).key_note


def test_a_table_without_a_key_gets_none_and_one_whose_key_is_not_set_says_so(configuration, monkeypatch):
    configuration.write_text(f'[providers.open]\nbase_url = "{ELSEWHERE}"\n')
    assert find_server("open") == find_server("openai", ELSEWHERE)
    assert (find_server("open").key, find_server("open").withholding_reason) == (None, "")
    configuration.write_text(table(ELSEWHERE))
    monkeypatch.delenv("SPECIAL_KEY")
    for provider, base_url in (("special", None), ("openai", TrustedUrl(ELSEWHERE))):
        with pytest.raises(ModelError, match="set SPECIAL_KEY"):
            find_server(provider, base_url)


@pytest.mark.parametrize("variable", ["OPENAI_API_KEY", "CLIMASSAY_API_KEY"])
def test_a_key_is_taken_from_either_variable_without_its_line_end(variable, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    monkeypatch.setenv(variable, f"{GENERAL}\n")
    assert find_server("openai").key == GENERAL


def test_trust_goes_with_the_address():
    url = TrustedUrl("HTTP://User:word@LOCALHOST:80/v1/?key=x")
    assert normalised_base_url(url) == "http://localhost/v1"
    for one in (
        normalised_base_url(url),
        pickle.loads(pickle.dumps(url)),
        ModelSpec("openai:m", base_url=url).base_url,
    ):
        assert isinstance(one, TrustedUrl)
    assert not isinstance(ModelSpec("openai:m", base_url=str(url)).base_url, TrustedUrl)
    assert ModelSpec("openai:m", base_url=str(url)).base_url == "http://localhost/v1"


def test_an_address_of_nobody_gets_the_request_and_nothing_else():
    with ApiServer() as server:
        ask(load_model("openai:test", ModelOptions(base_url=server.url)))
        assert len(server.asked) == 1
    sent = {name for name in headers_of(server) if not name.startswith("x-stainless-")}
    assert sent <= {"host", "accept", "accept-encoding", "content-type", "user-agent", "connection"}


def test_an_address_of_the_user_gets_the_key(monkeypatch):
    with ApiServer() as server:
        ask(load_model("openai:test", ModelOptions(base_url=TrustedUrl(server.url))))
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        ask(load_model("openai:test"))
        ask(load_model("openai:test", ModelOptions(base_url=f"{server.url}/")))
        assert len(server.asked) == 3
    assert headers_of(server)["authorization"] == f"Bearer {GENERAL}"
    assert headers_of(server)["openai-organization"] == "org-canary"


def test_a_model_of_a_provider_is_named_with_it(configuration):
    with ApiServer() as server:
        configuration.write_text(table(server.url))
        model = load_model("special:owner/test:free")
        assert model.name == "special:owner/test:free"
        ask(model)
        assert server.asked[0].body["model"] == "owner/test:free"
    assert headers_of(server)["authorization"] == f"Bearer {SPECIAL}"
    assert "canary" not in json.dumps(headers_of(server))
    assert all(map(is_served, ("special:m", "openai:m")))
    assert not any(map(is_served, ("local:m", "smollm2", "other:m")))
    for name, options in (("other:m", {}), ("special:", {}), ("special:m", {"base_url": TrustedUrl(HERE)})):
        with pytest.raises(InputError):
            load_model(name, ModelOptions(**options))


EXPERIMENT = """
name = "shared"
settings = ["default"]
tasks = ["mcq"]
limit = 1
benchmarks = ["primer"]
[[model]]
name = "{model}"
{address}
"""
RECIPE = """
name = "shared"
collections = ["seas"]
[writer]
model = "{model}"
{address}
[counts]
mcq = 1
base = 1
[contexts]
max_passages = 0
[stop]
drafts = 1
"""
SEAS = "The ocean takes up heat and carbon. It warms slowly because water mixes down to great depths.\n" + (
    "A glacier loses mass where it melts faster than snow falls, and the sea level rises.\n"
)


@pytest.mark.parametrize(
    ("command", "allowed"),
    [("evaluate", allowed) for allowed in ("nothing", "environment", "table", "named")]
    + [("generate", allowed) for allowed in ("nothing", "table")],
)
def test_a_shared_file_steals_no_key(command, allowed, configuration, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    (tmp_path / "seas.txt").write_text(SEAS)
    place = ("--workspace", tmp_path / "workspace")
    if command == "generate":
        assert run_command(monkeypatch, capsys, "corpus", "add", "seas", tmp_path / "seas.txt", *place)[0] == 0
    with ApiServer() as server:
        if allowed == "environment":
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        elif allowed != "nothing":
            configuration.write_text(table(server.url))
        model = "special:test" if allowed == "named" else "openai:test"
        address = "" if allowed == "named" else f'base_url = "{server.url}"'
        text = EXPERIMENT if command == "evaluate" else RECIPE
        (tmp_path / "shared.toml").write_text(text.format(model=model, address=address))
        said = run_command(monkeypatch, capsys, command, "run", tmp_path / "shared.toml", "--json", *place)
        assert server.asked, said
    key = {"nothing": None, "environment": GENERAL}.get(allowed, SPECIAL)
    assert headers_of(server).get("authorization") == (key and f"Bearer {key}")
    if allowed == "nothing":
        assert "canary" not in json.dumps(headers_of(server))


@pytest.mark.parametrize("status", [401, 403])
def test_a_server_that_wants_the_key_it_did_not_get_is_told_how_to_be_allowed(status, configuration):
    with ApiServer() as server:
        model = load_model("openai:test", ModelOptions(base_url=server.url))
        with pytest.raises(ModelError) as told:
            model.generate([GenerationRequest((Message("user", f"[[{status} no key]]"),))])
        model.close()
    for words in ("No API key was sent", "OPENAI_BASE_URL", "[providers.NAME]", str(configuration)):
        assert words in str(told.value)
    assert "Check the model" not in str(told.value)


class HandingOn(ApiServer):
    """Sends every request on to another address."""

    def __init__(self, location, status):
        super().__init__()
        self.location, self.status, self.requested = location, status, []

    def error(self, request):
        return self.other_route("POST", f"{self.path}/chat/completions")

    def other_route(self, method, path, *_):
        self.requested.append(path)
        return self.status, {}, {"Location": self.location + path.removeprefix(self.path)}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_carries_neither_key_nor_prompt_to_another_server(status, tmp_path):
    policy = RetryPolicy(base=0.0, max_attempts=2)
    with ApiServer() as other, HandingOn(other.url, status) as server:
        url = TrustedUrl(server.url)
        model = OpenAIModel("test", base_url=url, policy=policy)
        (answer,) = model.generate([GenerationRequest((Message("user", "hello"),))])
        model.close()
        with pytest.raises(ModelError, match=str(status)):
            fine_tune("small", b"{}\n", tmp_path / "state.json", base_url=url, policy=policy)
        assert f"sends requests on to {other.url}/chat/completions" in answer.error
        assert server.requested == ["/v1/chat/completions", "/v1/files"]
        assert (other.asked, other.connections) == ([], 0)


@pytest.mark.parametrize(
    ("url", "key", "allowed"),
    [
        ("http://models.example/v1", GENERAL, False), ("http://10.0.0.5:8000/v1", GENERAL, False),
        ("http://localhost.models.example/v1", GENERAL, False), ("http://[fe80::1]/v1", GENERAL, False),
        ("https://models.example/v1", GENERAL, True), ("http://localhost:8000/v1", GENERAL, True),
        ("http://127.0.0.2:8000/v1", GENERAL, True), ("http://[::1]:8000/v1", GENERAL, True),
        ("http://models.example/v1", "EMPTY", True), ("http://models.example/v1", "not-needed", True),
        ("http://models.example/v1", "", True),
    ],
)  # fmt: skip
def test_a_key_travels_unencrypted_only_where_the_user_says_so(url, key, allowed, configuration, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    monkeypatch.setenv("SPECIAL_KEY", key)
    if allowed:
        assert find_server("openai", TrustedUrl(url)).key == (key or None)
        return
    with pytest.raises(InputError, match=r"unencrypted.*allow_http = true"):
        find_server("openai", TrustedUrl(url))
    configuration.write_text(table(url))
    with pytest.raises(InputError, match="unencrypted"):
        find_server("special")
    configuration.write_text(table(url, allow_http=True))
    assert find_server("special").key == key == find_server("openai", url).key


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[providers", "not valid TOML"),
        ("providers = 3", "tables that begin with"),
        ("[provider.a]\n", "'provider'"),
        ('[providers.a]\nkey_variable = "A"\n', "needs an entry 'base_url'"),
        ('[providers.a]\nbase_url = "models.example"\n', "not an http or https address"),
        ('[providers.a]\nbase_url = "https://a.example"\nkey = "sk-1"\n', "no entry 'key'"),
        ('[providers.a]\nbase_url = "https://a.example"\nallow_http = "yes"\n', "allow_http = 'yes'"),
        ('[providers.local]\nbase_url = "https://a.example"\n', "not a valid provider name"),
        ('[providers."a:b"]\nbase_url = "https://a.example"\n', "not a valid provider name"),
        ('[providers.openai]\nbase_url = "https://a.example"\n', "only prices"),
    ],
)
def test_a_configuration_that_does_not_fit_is_told_in_one_sentence(text, words, configuration):
    configuration.write_text(text)
    with pytest.raises(InputError) as told:
        providers()
    assert words in str(told.value)
    assert str(configuration) in str(told.value)


def test_a_configuration_that_others_may_write_binds_no_key(configuration):
    configuration.write_text(table(ELSEWHERE))
    configuration.chmod(0o666)
    with pytest.raises(InputError, match="written by everybody"):
        find_server("special")


def test_a_configuration_that_is_named_must_be_there_and_none_need_be(monkeypatch, tmp_path):
    monkeypatch.setenv("CLIMASSAY_CONFIG", str(tmp_path / "missing.toml"))
    with pytest.raises(InputError, match="there is no such file"):
        providers()
    monkeypatch.delenv("CLIMASSAY_CONFIG")
    monkeypatch.setattr("platformdirs.user_config_path", lambda *_, **__: tmp_path / "nothing")
    assert providers() == {}


def test_prices_of_providers_are_found_where_other_prices_are(configuration, tmp_path):
    place = tmp_path / "workspace"
    place.mkdir()
    configuration.write_text(
        table(ELSEWHERE) + '[providers.special.prices]\n"owner/m" = { prompt = 1.0, completion = 2.0 }\n'
        'worse = { prompt = "x" }\n[providers.openai.prices]\nm = { prompt = 3.0, completion = 4.0 }\n'
    )
    assert find_price("special:owner/m", place) == Price(1.0, 2.0)
    assert model_price("special:owner/m", ModelOptions(), place) == Price(1.0, 2.0)
    assert find_price("openai:m", place) == find_price("m", place) == Price(3.0, 4.0)
    assert find_price("special:m", place) is None
    assert model_price("local:m", ModelOptions(), place) is None
    (place / "prices.toml").write_text(
        '["special:owner/m"]\nprompt = 5\ncompletion = 6\n[m]\nprompt = 7\ncompletion = 8\n'
    )
    assert find_price("special:owner/m", place) == Price(5.0, 6.0)
    assert find_price("openai:m", place) == Price(7.0, 8.0)
    assert find_price("special:m", place) is None, "the file's m is another provider's"
    with pytest.raises(InputError, match=r"config\.toml cannot be read"):
        find_price("special:worse", place)


def test_the_command_line_names_providers_and_shows_no_key(configuration, monkeypatch, capsys):
    configuration.write_text(table(f"{ELSEWHERE}/"))
    code, out, _ = run_command(monkeypatch, capsys, "models", "list", "--json")
    assert code == 0
    assert json.loads(out)["providers"] == {"special": ELSEWHERE}
    code, out, _ = run_command(monkeypatch, capsys, "doctor", "--json")
    said = {finding["name"]: finding["message"] for finding in json.loads(out)["findings"]}
    assert "SPECIAL_KEY" in said["provider special"]
    assert SPECIAL not in out
    configuration.write_text("[other]\n")
    code, out, _ = run_command(monkeypatch, capsys, "doctor", "--json")
    assert {finding["level"] for finding in json.loads(out)["findings"] if finding["name"] == "providers"} == {"broken"}


def test_every_command_trusts_the_address_it_is_given_and_nothing_else_becomes_trusted(monkeypatch, capsys):
    found = [option for _, app in walk() for option in arguments(app) if option.name == "--base-url"]
    assert len(found) > 10
    assert len({(option.parameter.metavar, option.parameter.help) for option in found}) == 1, "one option serves all"
    with ApiServer() as server:
        asked = ("models", "check", "openai:test", "--base-url", server.url, "--json")
        assert run_command(monkeypatch, capsys, *asked)[0] == 0
    assert headers_of(server)["authorization"] == f"Bearer {GENERAL}"
    source = Path(climassay.__file__).parent
    made = {path.relative_to(source).as_posix() for path in source.rglob("*.py") if makes_trusted(path)}
    assert made == {"cli/options.py", "integrations/inspect/provider.py"}


def makes_trusted(path) -> bool:
    """Whether a file of the package calls TrustedUrl, or hands it on to be called."""
    text = path.read_text(encoding="utf-8")
    tree = ast.parse(text if "TrustedUrl" in text else "")
    asked = [one.args[1] for one in ast.walk(tree) if isinstance(one, ast.Call) and named(one.func) == "isinstance"]
    names = [one for one in ast.walk(tree) if named(one) == "TrustedUrl"]
    return len(names) > len([one for one in asked if named(one) == "TrustedUrl"])


def named(node) -> str:
    return node.id if isinstance(node, ast.Name) else ""


def test_prices_from_options():
    assert price_from_options(None, None) is None
    assert price_from_options(0.0, 2.0) == Price(0.0, 2.0)
    with pytest.raises(InputError, match="needs both"):
        price_from_options(1.0, None)


@pytest.mark.parametrize("price", [-1.0, float("nan"), float("inf")])
def test_a_price_is_a_number_of_dollars(price):
    with pytest.raises(InputError, match="US dollars per million"):
        Price(1.0, price)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("prices.toml", "not toml ["),
        ("prices.json", "[]"),
        ("prices.json", '{"m": {"prompt": 1}}'),
        ("prices.json", '{"m": {"prompt": "cheap", "completion": 1}}'),
        ("prices.json", '{"m": 3}'),
    ],
)
def test_a_table_that_cannot_be_read_is_one_sentence(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match="cannot be read"):
        find_price("m", tmp_path)


def chat(text):
    return (Message("user", text),)


@pytest.mark.parametrize("key", ["sk-\u2026", "sk-one\nsk-two"])
def test_a_key_that_cannot_be_a_header_is_refused_without_showing_it(monkeypatch, key):
    monkeypatch.setenv("OPENAI_API_KEY", key)
    with pytest.raises(ModelError) as caught:
        OpenAIModel("test", base_url=TrustedUrl("http://localhost/v1"))
    assert "sk-" not in str(caught.value)
