"""The example configurations of a cluster, run as far as one machine allows.

A server as vLLM is one, an S3 server, and a PostgreSQL server stand where the files name those of the cluster.
"""

import importlib.util
import json
import os
import shlex
from pathlib import Path

import pytest
import yaml

from api_server import ApiServer
from climassay.corpus import Collection
from climassay.errors import InputError
from climassay.records import Records
from climassay.records.recorded_answers import iterate_answers
from climassay.workspace import Workspace
from command_line import done, run_command

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples" / "cluster"


def lines_of(name):
    return [line.strip() for line in (EXAMPLES / name).read_text(encoding="utf-8").splitlines()]


def exported():
    pairs = [line.removeprefix("export ").split("=", 1) for line in lines_of("environment.sh") if "export " in line]
    return {name: value.strip('"') for name, value in pairs}


@pytest.mark.parametrize(
    "line", [line for line in lines_of("commands.sh") if line.startswith("climassay ")], ids=lambda line: line[:40]
)
def test_the_commands_have_these_options(line, monkeypatch):
    from climassay.cli.main import app

    app.parse_args(shlex.split(line)[1:])  # raises for an option that there is not


def test_the_cluster_file_is_what_ray_takes(tmp_path):
    ray = pytest.importorskip("ray", reason="Ray is not installed (the extra ray brings it)")
    assert ray.__version__
    from ray.autoscaler._private.commands import _bootstrap_config  # noqa: F401 - the file is read by this module
    from ray.autoscaler._private.util import prepare_config, validate_config

    config = yaml.safe_load((EXAMPLES / "ray-cluster.yaml").read_text(encoding="utf-8"))
    for mounted in config["file_mounts"].values():
        assert (EXAMPLES / mounted).is_file()
    validate_config(prepare_config(config))


@pytest.fixture(scope="module")
def object_store():
    """An S3 server in this process; LanceDB finds it by the variables of the example."""
    if importlib.util.find_spec("moto") is None:
        pytest.skip("moto is not installed (the extra dev brings it)")
    import logging

    import boto3
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    address = f"http://{host}:{port}"
    store = boto3.client(
        "s3", endpoint_url=address, region_name="us-east-1", aws_access_key_id="a", aws_secret_access_key="b"
    )
    store.create_bucket(Bucket="climate")
    yield address
    server.stop()


@pytest.fixture
def environment(object_store, monkeypatch):
    """The example's variables, with the addresses of this machine; CLIMASSAY_CACHE stays as it is."""
    for name, value in exported().items():
        if name not in ("CLIMASSAY_CACHE", "CLIMASSAY_DATABASE_URL"):
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT", object_store)


def command(monkeypatch, capsys, *arguments):
    out = done(run_command(monkeypatch, capsys, *arguments, "--json"))
    return json.loads(out)


def test_the_experiment_runs_on_servers_like_the_cluster_s(environment, postgres_url, monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("CLIMASSAY_DATABASE_URL", postgres_url)
    monkeypatch.chdir(tmp_path)
    added = command(monkeypatch, capsys, "corpus", "add", "books", "primer:aerosols_clouds")
    assert added["passages"] > 10
    assert not list((tmp_path / ".climassay").rglob("*.lance"))
    text = (EXAMPLES / "experiment.toml").read_text(encoding="utf-8")
    with ApiServer() as server:
        own = text.replace("http://vllm-1.cluster:8000/v1", server.url)
        assert own != text
        # The second model is the bundled one, whose answers take long and are tested elsewhere.
        Path("experiment.toml").write_text(own[: own.rindex("[[model]]")], encoding="utf-8")
        first = command(monkeypatch, capsys, "evaluate", "run", "experiment.toml", "--limit", "4")
        asked = len(server.asked)
        again = command(monkeypatch, capsys, "evaluate", "run", "experiment.toml", "--limit", "4")
        assert len(server.asked) == asked == 8 + 1  # once, whether it goes on with an answer that has begun
    assert {**first, "run": None} == {**again, "run": None}
    with Records(postgres_url) as store:
        stored = [answer for bundle in iterate_answers(store.database) for answer in bundle]
    assert len(stored) == 8
    assert exported()["AWS_SECRET_ACCESS_KEY"] not in str(stored)


@pytest.mark.cluster
def test_a_collection_in_object_storage_is_added_to_and_searched(environment, monkeypatch, capsys, tmp_path):
    where = ("--workspace", tmp_path)
    page = tmp_path / "page.txt"
    page.write_text("Glaciers lose ice because summers are warmer.\n\nThe sea rises.", encoding="utf-8")
    assert command(monkeypatch, capsys, "corpus", "add", "ice", page, *where)["passages"] == 1
    assert command(monkeypatch, capsys, "corpus", "add", "ice", page, *where)["passages"] == 0
    [hit] = command(monkeypatch, capsys, "corpus", "search", "ice", "why do glaciers shrink", "--all", *where)["hits"]
    assert "Glaciers lose ice" in hit["passage"]["text"]
    assert Collection.open(exported()["CLIMASSAY_COLLECTIONS"], "ice").summary().documents == 1
    assert command(monkeypatch, capsys, "corpus", "remove", "ice", "--yes", *where) == {"removed": "ice"}
    assert "ice" not in [one["name"] for one in command(monkeypatch, capsys, "corpus", "list", *where)]


def test_an_address_of_collections_that_is_none_is_told(monkeypatch, tmp_path):
    monkeypatch.setenv("CLIMASSAY_COLLECTIONS", "my/folder")
    with pytest.raises(InputError, match="not an address of an object store"):
        _ = Workspace.open(tmp_path).collections_address
    monkeypatch.delenv("CLIMASSAY_COLLECTIONS")
    assert Workspace.open(tmp_path).collections_address == os.fspath(tmp_path / "collections")
