"""What another package adds by name, as docs/how-to/extend.md shows it, is found by commands and calls."""

import json
import os
import subprocess
import sys
import tomllib

import pytest

from climassay.errors import InputError
from climassay.registry import Registry
from documentation import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "extend.md"
FILES = {block.file: block.text for block in blocks(PAGE) if block.file}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder in which the page's package lies as pip would have put it."""
    site = tmp_path_factory.mktemp("site")
    for name, text in FILES.items():
        (site / name).parent.mkdir(exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    (site / "mine" / "__init__.py").touch()
    project = tomllib.loads(FILES["pyproject.toml"])["project"]
    facts = site / "mine-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    lines = [
        line
        for group, points in project["entry-points"].items()
        for line in (f"[{group}]", *(f"{name} = {module}" for name, module in points.items()))
    ]
    (facts / "entry_points.txt").write_text("\n".join(lines))
    return site


def python(code, site, folder):
    environment = {**os.environ, "PYTHONPATH": str(site)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=folder, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


CODE = """
import json
from types import SimpleNamespace
import numpy as np
from climassay.corpus import read
from climassay.generation.screening import check_names, question_draft, screen
from climassay.judging.judges import JUDGES
from climassay.metrics import METRICS, ReferencedAnswer, Scorer, score_answers
from climassay.metrics.registry import AnswerItem
from climassay.models import GenerationRequest, Message, load_model
from climassay.models.provider import (is_served)
from climassay.questions import Question

(scores,) = Scorer().score("freeform", [AnswerItem("Why?", "Ice", "Ice, ice")])
table = score_answers([ReferencedAnswer("1", "Ice", "Ice, ice")], ["brevity"])
model = load_model("echo:parrot")
(answer,) = model.generate([GenerationRequest((Message("user", "Say: ice"),))])
with open("note.rst", "w") as file:
    file.write("First\\nparagraph.\\n\\nSecond one.")
(document,) = read("note.rst").documents
long, short = SimpleNamespace(text="much longer"), SimpleNamespace(text="short")
judged = JUDGES.find("longer")(None, None, None).compare([short, long], np.array([[0, 1], [1, 0]]))
(draft,) = screen([question_draft(Question("1", "freeform", "WHY DOES ICE MELT?", "It is warm."))], only=["shouting"])
print(json.dumps({
    "brevity": scores["brevity"], "table": table.means["brevity"].value, "last": list(METRICS)[-1],
    "answer": answer.text, "name": model.name, "served": is_served("echo:parrot"),
    "blocks": [block.text for block in document.blocks], "media": document.media,
    "longer": (judged.log_odds > 0).tolist(), "fault": draft.decisions[-1].detail, "known": "shouting" in check_names(),
}))
"""


@pytest.mark.core
@pytest.mark.process
def test_what_the_page_adds_is_found_by_its_name(installed, tmp_path):
    found = python(CODE, installed, tmp_path)
    assert found == {
        "brevity": 3 / 8,
        "table": 3 / 8,
        "last": "brevity",
        "answer": "Say: ice",
        "name": "echo:parrot",
        "served": True,
        "blocks": ["First paragraph.", "Second one."],
        "media": "rst",
        "longer": [False, True],
        "fault": "Every letter is a capital.",
        "known": True,
    }


@pytest.mark.process
def test_a_package_that_cannot_be_imported_is_told_of_and_stops_nothing(tmp_path):
    facts = tmp_path / "site" / "broken-1.0.dist-info"
    facts.mkdir(parents=True)
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[climassay.metrics]\nbroken = not_there_at_all\n")
    code = (
        "import json, warnings\n"
        "from climassay.metrics import METRICS\n"
        "with warnings.catch_warnings(record=True) as told:\n"
        "    warnings.simplefilter('always')\n"
        "    names = list(METRICS)\n"
        "print(json.dumps([names, [str(one.message) for one in told]]))"
    )
    names, told = python(code, facts.parent, tmp_path)
    assert "accuracy" in names
    assert any("not_there_at_all adds no metric" in one for one in told)


def test_a_name_is_given_once_and_a_strange_one_is_answered_with_all_that_there_are():
    registry = Registry("fruit")
    registry.add("apple", 1)
    registry.add("pear", 2)
    with pytest.raises(InputError, match="fruit 'apple' already"):
        registry.add("apple", 3)
    with pytest.raises(InputError, match="no fruit 'plum': there are apple, pear"):
        registry.find("plum")
    assert dict(registry) == {"apple": 1, "pear": 2}
