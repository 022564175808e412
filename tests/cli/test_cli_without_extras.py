"""What climassay says where only its own packages are installed, and none of an extra."""

import json
import os
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from api_server import ApiServer
from climassay.corpus import list_collections, open_or_create, read
from climassay.workspace import Workspace

pytestmark = pytest.mark.process

ONLY_WITH_LOCAL = ("huggingface_hub",)
"""Comes with the packages of [local] and with nothing else."""
SCRIPT = Path(__file__).parents[1] / "without_packages.py"


def packages_of(*extras):
    """Names of the packages that extras bring."""
    lines = metadata.requires("climassay") or []
    found = [line for line in lines if any(f'extra == "{extra}"' in line.replace("'", '"') for extra in extras)]
    return [re.match(r"[\w.-]+", line).group() for line in found]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory):
    """A workspace with a collection that was made elsewhere."""
    place = Workspace.open(tmp_path_factory.mktemp("bare"))
    file = place.root / "heat.md"
    file.write_text("# Heat\n\nThe ocean has taken up about ninety per cent of the excess heat.", encoding="utf-8")
    open_or_create(place, "heat").add(read(file).documents)
    (place.root / "items.csv").write_text("text,label\nA warm day,1\nA cold day,0\n", encoding="utf-8")
    (place.root / "recipe.toml").write_text(
        'collections = ["heat"]\n[writer]\nmodel = "local:smollm2"\n[counts]\ncloze = 1\n', encoding="utf-8"
    )
    return place.root


NEED_LOCAL = {
    "add": ["corpus", "add", "new", "heat.md"],
    "search": ["corpus", "search", "heat", "excess heat"],
    "ask": ["ask", "How much heat?", "-c", "heat"],
    "factcheck": ["check", "The ocean warms.", "-c", "heat"],
    "generate": ["generate", "run", "recipe.toml"],
    "evaluate": ["evaluate", "mcq", "primer"],
    "rank": ["judge", "rank", "items.csv", "--text", "text", "--aspect", "fluency"],
    "tune": ["tune", "finetune", "primer", "--output", "adapter"],
}
OTHERS = {
    "bm25": ["corpus", "search", "heat", "excess heat", "--mode", "bm25", "--all", "--json"],
    "show": ["corpus", "show", "heat"],
    "server": ["evaluate", "mcq", "primer", "--model", "openai:test", "--limit", "3", "--scoring", "letter", "--json"],
    "records": ["records", "runs", "--json"],
    "doctor": ["doctor", "--json"],
    "serve": ["serve", "--port", "0"],
}


@pytest.fixture(scope="module")
def told(workspace):
    """Exit code, stdout and stderr of every command, in one process in which the extras are not installed."""
    commands = NEED_LOCAL | OTHERS
    names = [*packages_of("local", "web", "postgres"), *ONLY_WITH_LOCAL]
    given = [[*command, "--workspace", str(workspace)] for command in commands.values()]
    with ApiServer() as server:
        process = subprocess.run(
            [sys.executable, str(SCRIPT), json.dumps(names), json.dumps(given)],
            capture_output=True,
            text=True,
            check=False,
            cwd=workspace,
            env={**os.environ, "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none"},
        )
    assert process.returncode == 0, process.stderr
    return dict(zip(commands, json.loads(process.stdout), strict=True))


def test_the_packages_of_the_extras_are_known():
    assert {"torch", "transformers", "onnxruntime", "safetensors", "tokenizers"} <= set(packages_of("local"))
    assert "uvicorn" in packages_of("web")


@pytest.mark.parametrize("name", NEED_LOCAL)
def test_what_needs_local_says_so_in_one_sentence(name, told):
    code, _, err = told[name]
    assert code == 2, err
    assert "Traceback" not in err
    said = err.strip().splitlines()[-1]
    assert said.startswith("climassay: ")
    assert "pip install 'climassay[local]'" in said


def test_an_addition_that_cannot_be_embedded_leaves_no_collection(told, workspace):
    assert told["add"][0] == 2
    assert [one.name for one in list_collections(Workspace.open(workspace))] == ["heat"]


def test_what_does_not_need_it_works(told):
    for name in ("bm25", "show", "server", "records"):
        code, out, err = told[name]
        assert code == 0, (name, out, err)
    assert len(json.loads(told["bm25"][1])["hits"]) == 1
    assert json.loads(told["server"][1])["n"] == 3


def test_the_doctor_names_what_is_missing(told):
    code, out, _ = told["doctor"]
    found = {finding["name"]: finding for finding in json.loads(out)["findings"]}
    assert code == 1
    assert (found["[local]"]["level"], found["[local]"]["advice"]) == ("missing", "pip install 'climassay[local]'")
    assert found["[web]"]["level"] == "missing"
    assert found["packages"]["level"] == "ok"


def test_the_pages_say_what_they_need(told):
    code, _, err = told["serve"]
    assert code == 2
    assert "climassay[web]" in err
