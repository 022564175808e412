"""The doctor: what it finds on a machine that has everything, and on one that lacks something."""

import json
import shutil
import sqlite3
import struct
from importlib import metadata
from pathlib import Path

import pytest

from api_server import ApiServer
from climassay import doctor
from climassay.corpus import open_or_create, read
from climassay.doctor import (
    Diagnosis,
    examine,
    examine_installation,
    examine_servers,
    examine_workspace,
    find_header_fault,
    is_healthy,
)
from climassay.records import Records
from climassay.registry import EXTRAS, find_extra
from climassay.workspace import Workspace
from command_line import done, json_of
from patience import PATIENCE

CANARY = "sk-canary-5f1c"


@pytest.fixture(autouse=True)
def no_servers(monkeypatch):
    for name in ("OPENAI_API_KEY", "CLIMASSAY_API_KEY", "OPENAI_BASE_URL", "CLIMASSAY_DATABASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def in_no_hurry(monkeypatch):
    """The doctor looks for moments only; here it finds what is there on a busy machine too."""
    monkeypatch.setattr(doctor, "INTEGRITY_SECONDS", PATIENCE)
    monkeypatch.setattr(doctor, "TIMEOUT_SECONDS", PATIENCE)


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A workspace with records and a collection."""
    place = Workspace.open(tmp_path_factory.mktemp("filled"))
    collection = open_or_create(place, "heat")
    file = place.root / "heat.md"
    file.write_text("# Heat\n\nThe ocean has taken up about ninety per cent of the excess heat.", encoding="utf-8")
    collection.add(read(file).documents)
    Records(place.records_url).close()
    return place.root


@pytest.fixture
def workspace(filled, tmp_path):
    """A copy that may be damaged."""
    return Path(shutil.copytree(filled, tmp_path / "work"))


def by_name(findings):
    return {finding.name: finding for finding in findings}


def test_where_all_is_there_the_exit_code_is_0(workspace, climassay):
    told = json_of(climassay("doctor", "--workspace", workspace, "--json"))
    found = {finding["name"]: finding for finding in told["findings"]}
    assert told["healthy"]
    assert {"Python", "packages", "local:smollm2", "local:minilm", "cache", "memory", "cores", "GPU"} <= set(found)
    assert {f"[{extra}]" for extra in EXTRAS} <= set(found)
    assert found["collection heat"]["message"] == "1 passage, local:minilm"
    assert found["records"]["level"] == "ok"
    assert all(finding["level"] == "ok" for finding in told["findings"] if finding["is_required"])
    out = done(climassay("doctor", "--workspace", workspace))
    assert "Workspace" in out
    assert "collection heat" in out


def test_a_workspace_that_is_not_there_is_not_made(tmp_path, climassay):
    out = done(climassay("doctor", "--workspace", tmp_path / "none", "--json"))
    assert "is not there yet" in out
    assert not (tmp_path / "none").exists()


def test_a_configuration_that_is_missing_is_told_once(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CONFIG", str(tmp_path / "missing.toml"))
    (tmp_path / "work").mkdir()
    told = [one.name for one in examine(tmp_path / "work") if "missing.toml" in one.message]
    assert told == ["providers"]


def test_extras_tell_what_they_are_for_and_how_to_get_them(monkeypatch):
    real = metadata.version

    def version(name):
        if name in ("uvicorn", "torch"):
            raise metadata.PackageNotFoundError(name)
        return "0.0.1" if name == "sqlalchemy" else real(name)

    monkeypatch.setattr(metadata, "version", version)
    found = by_name(examine_installation())
    assert found["[web]"].level == "missing"
    assert "uvicorn" in found["[web]"].message
    assert found["[web]"].advice == "pip install 'climassay[web]'"
    assert not found["[web]"].is_blocking
    assert found["[local]"].is_blocking
    assert "sqlalchemy" in found["packages"].message
    assert not is_healthy(list(found.values()))


def test_every_extra_of_the_package_is_known_or_for_working_on_it():
    named = metadata.metadata("climassay").get_all("Provides-Extra")
    assert set(named) - set(EXTRAS) <= {"all", "dev", "docs"}
    assert set(EXTRAS) <= set(named)
    assert {find_extra(module) for module in ("torch.nn", "sentence_transformers", "huggingface_hub")} == {"local"}
    assert [find_extra(module) for module in ("argon2", "psycopg", "ray", "numpy", "nonsense", "")] == [
        "web", "postgres", "ray", None, None, None,
    ]  # fmt: skip


def test_a_bundled_model_with_another_hash_is_broken(tmp_path, monkeypatch):
    from climassay.models import bundled

    other = tmp_path / "model.bin"
    other.write_bytes(b"not the weights")
    monkeypatch.setattr(bundled, "_locate_file", lambda model, inside: other)
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    found = by_name(examine_installation())
    for name in ("local:smollm2", "local:minilm"):
        assert found[name].level == "broken"
        assert found[name].is_blocking
        assert "SHA-256" in found[name].message


def test_a_bundled_model_that_is_not_installed_is_missing(monkeypatch):
    from climassay.errors import ModelError
    from climassay.models import bundled

    def locate(model, inside):
        raise ModelError("gone")

    monkeypatch.setattr(bundled, "_locate_file", locate)
    found = by_name(examine_installation())["local:minilm"]
    assert (found.level, found.advice) == ("missing", "climassay models install")


def overwritten(file):
    data = file.read_bytes()
    file.write_bytes(data[:100] + b"\xff" * 3996 + data[4096:])


def newer(file):
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE meta SET value = '99' WHERE name = 'schema_version'")
    connection.close()


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (overwritten, "records.sqlite"),
        (lambda file: file.write_bytes(b"a letter to a friend\n" * 100), "records.sqlite"),
        (newer, "99"),
    ],
    ids=["damaged", "no database", "of a newer version"],
)
def test_a_database_that_cannot_be_used_is_broken_and_stays_as_it_is(workspace, damage, words):
    damage(workspace / "records.sqlite")
    before = (workspace / "records.sqlite").read_bytes()
    found = by_name(examine_workspace(workspace))["records"]
    assert found.is_blocking
    assert words in found.message
    assert (workspace / "records.sqlite").read_bytes() == before


def test_a_large_database_is_looked_at_for_a_while_only(workspace, monkeypatch):
    with Records(Workspace(workspace).records_url) as records, records.run("test", {}) as run:
        run.save_results("rows", [{"number": number, "text": "x" * 200} for number in range(3000)])
    monkeypatch.setattr(doctor, "INTEGRITY_SECONDS", -1.0)
    assert by_name(examine_workspace(workspace))["records"].level == "ok"


def test_a_postgresql_that_does_not_answer_is_broken_without_its_password(workspace, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_DATABASE_URL", f"postgresql://user:{CANARY}@127.0.0.1:1/nowhere")
    found = by_name(examine_workspace(workspace))["records"]
    assert found.is_blocking
    assert CANARY not in repr(found)


@pytest.mark.parametrize("url", ["postgres:canary", "mysql://root:canary@host/name", "nonsense", "sqlite://"])
def test_an_address_that_names_no_database_is_broken(workspace, monkeypatch, url):
    monkeypatch.setenv("CLIMASSAY_DATABASE_URL", url)
    found = by_name(examine_workspace(workspace))["records"]
    assert found.is_blocking
    assert "canary" not in repr(found)


def test_a_postgresql_that_answers_is_left_as_it_is(workspace, monkeypatch, postgres_server, postgres_database):
    monkeypatch.setenv(
        "CLIMASSAY_DATABASE_URL", f"postgresql://tester@/{postgres_database}?host={postgres_server.folder}"
    )
    assert "empty" in by_name(examine_workspace(workspace))["records"].message
    assert "empty" in by_name(examine_workspace(workspace))["records"].message


def test_a_collection_of_another_encoder_is_broken(workspace, monkeypatch):
    monkeypatch.setattr(doctor, "_compute_fingerprint", lambda encoder: "0" * 64)
    found = by_name(examine_workspace(workspace))["collection heat"]
    assert found.level == "broken"
    assert "weights or settings have changed" in found.message


def test_a_collection_whose_encoder_is_not_here_is_left_alone(workspace, monkeypatch):
    monkeypatch.setattr(doctor, "_compute_fingerprint", lambda encoder: None)
    assert by_name(examine_workspace(workspace))["collection heat"].level == "ok"


def test_a_damaged_collection_is_broken(workspace):
    for file in (workspace / "collections" / "heat.lance").rglob("*"):
        if file.is_file():
            file.write_bytes(b"")
    found = by_name(examine_workspace(workspace))["collection heat"]
    assert found.level == "broken"
    assert "heat" in found.advice


def safetensors(header=b'{"weights":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}', data=b"\0" * 4):
    return struct.pack("<Q", len(header)) + header + data


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        (safetensors(), ""),
        (safetensors(data=b"\0" * 3), "cut short"),
        (safetensors(b"{nonsense}"), "damaged"),
        (safetensors(b"[]"), "damaged"),
        (b"", "cut short"),
        (b"a text, not a tensor", "cut short"),
        (struct.pack("<Q", 2**60), "cut short"),
    ],
    ids=["whole", "short", "no-json", "no-object", "empty", "text", "huge-header"],
)
def test_trained_files_are_judged_by_header_and_length(tmp_path, content, fault):
    file = tmp_path / "probe.safetensors"
    file.write_bytes(content)
    assert fault in find_header_fault(file)
    assert bool(find_header_fault(file)) == bool(fault)


def test_broken_and_left_over_files_are_named(workspace):
    (workspace / "validators").mkdir()
    (workspace / "validators" / "old.safetensors").write_bytes(b"half")
    (workspace / "head.safetensors").write_bytes(safetensors())
    (workspace / ".report.html.123.new").write_bytes(b"half")
    (workspace / "prices.toml").write_text("[[[")
    found = by_name(examine_workspace(workspace))
    assert found["validators/old.safetensors"].level == "broken"
    assert found["trained files"].message == "1 can be read"
    assert found["left over"].level == "warning"
    assert found["prices"].level == "broken"
    assert is_healthy(list(found.values()))


def test_a_workspace_that_is_a_file_is_broken(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    [found] = examine_workspace(file)
    assert found.is_blocking


def test_a_cache_that_cannot_be_made_is_broken(tmp_path, monkeypatch, climassay):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "file" / "cache"))
    code, out, _ = climassay("doctor", "--workspace", tmp_path / "none", "--json")
    assert code == 1
    found = {finding["name"]: finding for finding in json.loads(out)["findings"]}
    assert found["cache"]["level"] == "broken"
    assert "CLIMASSAY_CACHE" in found["cache"]["advice"]


def test_a_key_is_never_shown_and_no_network_is_touched_unasked(monkeypatch, climassay, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:1/v1")
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: pytest.fail("the network was touched"))
    for arguments in ((), ("--json",)):
        _, out, err = climassay("doctor", "--workspace", tmp_path / "none", *arguments)
        assert "OPENAI_API_KEY is set" in out
        assert CANARY not in out + err


@pytest.mark.parametrize(
    ("status", "level", "words"), [(200, "ok", "answers"), (401, "warning", "refuses the key"), (404, "warning", "404")]
)
def test_online_the_server_is_asked_for_its_models(monkeypatch, status, level, words):
    seen = []

    class Models(ApiServer):
        def other_route(self, method, path, headers, raw):
            seen.append((path, headers.get("authorization")))
            return status, {}

    monkeypatch.setenv("OPENAI_API_KEY", CANARY)
    with Models() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        found = by_name(examine_servers(online=True))["server"]
    assert (found.level, words in found.message) == (level, True)
    assert seen == [("/v1/models", f"Bearer {CANARY}")]
    assert CANARY not in repr(found)


def test_online_what_does_not_answer_is_a_warning(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://me:{CANARY}@127.0.0.1:1/v1?key={CANARY}")
    found = by_name(examine_servers(online=True))["server"]
    assert found.level == "warning"
    assert CANARY not in repr(found)


def test_only_what_is_needed_stops():
    assert not is_healthy([Diagnosis("a", "b", "missing", "c", is_required=True)])
    assert is_healthy([Diagnosis("a", "b", "broken", "c"), Diagnosis("a", "b", "warning", "c", is_required=True)])
    assert {finding.area for finding in examine()} == {"installation", "machine", "workspace", "servers"}
