"""``climassay confidence lint``."""

import json
import re

import pytest

from climassay.confidence.linting import RULES
from command_line import done, json_of

DRAFT = "# Ice\n\nIce melts (moderate confidence).\nRain is very likely (66–100%), 100% sure.\n"


@pytest.fixture
def lint(monkeypatch, climassay, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draft.md").write_text(DRAFT)
    (tmp_path / "good.md").write_text("Ice melts (medium confidence).\n")

    def run(*args):
        return climassay("confidence lint", *args)

    return run


def test_lines_name_file_place_and_rule(lint):
    code, out, err = lint("draft.md", "good.md")
    assert code == 1
    starts = [line.split(" ", 1)[0] for line in out.splitlines()]
    assert starts == ["draft.md:3:12:", "draft.md:4:9:"]
    assert "[confidence-vocabulary]" in out
    assert "2 findings in 16 words." in err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["good.md"], 0),
        (["draft.md"], 1),
        (["draft.md", "--exit-zero"], 0),
        (["draft.md", "--rules", "wide-range"], 0),
        (["draft.md", "--rules=-confidence-vocabulary,-likelihood-range"], 0),
        (["none.md"], 2),
        (["draft.md", "none.md"], 2),
        (["draft.md", "--rules", "nonsense"], 2),
        (["draft.md", "--tagger", "none.safetensors"], 2),
        (["draft.md", "--json", "--format", "sarif"], 2),
        (["draft.md", "--html", "good.md/page.html"], 2),
        ([], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)
def test_exit_codes(lint, args, code):
    found, out, err = lint(*args)
    assert found == code
    assert "Traceback" not in err
    if code == 2:
        assert out == ""
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("more", [[], ["--format", "github"], ["--html", "out.html"]], ids=["text", "github", "page"])
def test_a_text_without_an_assessment_gets_no_all_clear(lint, tmp_path, more):
    (tmp_path / "cake.md").write_text("Whisk the eggs. Bake the cake for an hour.\n")
    code, out, err = lint("cake.md", *more)
    assert (code, out) == (0, "")
    page = (tmp_path / "out.html").read_text() if "--html" in more else err
    for told in (" ".join(err.split()), page):
        assert "There is nothing to check" in told
        assert "Looked at: 2 sentences, 0 with a calibrated term" in told
        assert "Not looked at: whether the evidence bears the level" in told


def test_json(lint):
    code, out, _ = lint("draft.md", "--json")
    (file,) = json.loads(out)["files"]
    assert code == 1
    assert file["by_rule"]["likelihood-range"] == 1
    (finding,) = [one for one in file["findings"] if one["rule"] == "likelihood-range"]
    assert (finding["line"], finding["column"], finding["end_line"], finding["end_column"]) == (4, 9, 4, 29)
    assert DRAFT.split("\n")[3][8:29] == finding["words"]


def test_sarif(lint):
    _, out, _ = lint("draft.md", "good.md", "--format", "sarif")
    log = json.loads(out)
    (run,) = log["runs"]
    assert (log["version"], run["columnKind"]) == ("2.1.0", "unicodeCodePoints")
    for result in run["results"]:
        assert run["tool"]["driver"]["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        region = result["locations"][0]["physicalLocation"]["region"]
        lines = DRAFT.split("\n")
        # SARIF counts from 1, and the end stands behind the last character.
        words = lines[region["startLine"] - 1][region["startColumn"] - 1 : region["endColumn"] - 1]
        assert words == region["snippet"]["text"]
    assert [result["level"] for result in run["results"]] == ["warning", "error"]


def test_a_page_is_written(lint, tmp_path):
    code, _, _ = lint("draft.md", "--html", "pages/out.html")
    page = (tmp_path / "pages" / "out.html").read_text()
    assert code == 1
    for number in range(2):
        assert f'href="#place-1-{number}"' in page
        assert f'id="place-1-{number}"' in page
    assert not re.search(r'(?:src|href)="(?!#)', page)


def test_the_rules_are_explained(lint):
    out = done(lint("--list-rules"))
    assert all(f"{name} (" in out for name in RULES)
    told = json_of(lint("--list-rules", "--json"))
    assert [one["name"] for one in told] == list(RULES)
