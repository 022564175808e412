"""The demo with a random model in place of the bundled one, and (slow) with the bundled one."""

import json
import re
from collections import Counter

import pytest

from climassay.demo import run_demo, term_questions
from climassay.progress import Progress
from climassay.workspace import Workspace
from command_line import done
from debate_workspaces import make_model, stored
from documentation import calls, fault


class Screen:
    """Takes down what is shown."""

    def __init__(self):
        self.lines = []

    def say(self, line):
        self.lines.append(line)


def run(folder, model):
    screen = Screen()
    steps = run_demo(
        Workspace.open(folder / "workspace"),
        folder / "report.html",
        model=model,
        say=screen.say,
        progress=Progress(),
    )
    return steps, screen


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    model = make_model(folder / "tiny")
    steps, screen = run(folder, model)
    return folder, model, steps, screen


def test_every_step_has_a_title_lines_and_a_section_of_the_report(shown):
    folder, _, steps, screen = shown
    assert [line.partition("  ")[0].strip() for line in screen.lines if line.startswith("\n")] == [
        f"{number}/{len(steps)}" for number in range(1, len(steps) + 1)
    ]
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert all(step.lines and step.title.replace("'", "&#39;") in page for step in steps)
    assert not re.search(r"<script|<link|https?://", page)
    assert "primer-contrarian" in (folder / "factcheck.html").read_text(encoding="utf-8")


def test_the_screen_shows_a_result_before_the_model_is_loaded(shown, tmp_path):
    screen = Screen()
    with pytest.raises(Exception, match="nowhere"):
        run_demo(
            Workspace.open(shown[0] / "workspace"),
            tmp_path / "report.html",
            model=f"local:{tmp_path / 'nowhere'}",
            say=screen.say,
            progress=Progress(),
        )
    assert any("medium confidence" in line for line in screen.lines)


def test_what_the_books_do_not_hold_is_not_answered(shown):
    answers = {name: value for step in shown[2] for name, value in step.data.items()}["answers"]
    assert answers[1]["text"] == "Not enough information."
    assert answers[0]["text"] != answers[1]["text"]


def test_what_it_says_for_ones_own_model_are_commands_that_exist(shown):
    for step in shown[2]:
        found = calls(step.command)
        assert found
        for words in found:
            files = [word for word in words if word in ("report.pdf", "draft.md")]
            said = fault(words, whole=True)
            assert said is None or any(file in said for file in files), said


def test_the_choices_of_words_follow_their_rule():
    rows = term_questions()
    assert len(rows) == 30
    assert all(len(set(row["options"])) == 4 for row in rows)
    assert max(Counter(row["answer"] for row in rows).values()) == 8
    assert all("____" in row["question"] and "<MASK>" not in row["question"] for row in rows)


def test_a_second_run_asks_nothing_and_says_the_same_without_a_terminal_and_as_json(shown, monkeypatch, climassay):
    from climassay.models import load_model, provider

    folder, model, steps, screen = shown
    asked = stored(folder / "workspace", "answers")
    assert asked > 0
    monkeypatch.setattr(provider, "load_model", lambda _name, *options, **others: load_model(model, *options, **others))
    monkeypatch.setenv("COLUMNS", "2000")
    arguments = ("demo", "--output", folder / "report.html")
    out = done(climassay(*arguments))
    assert all(line in out for line in screen.lines)
    out = done(climassay(*arguments, "--json"))
    assert stored(folder / "workspace", "answers") == asked
    told = json.loads(out)
    assert {"report", "documents", "passages", "answers", "claim", "verdict", "accuracy", "paired", "judge"} <= set(
        told
    )
    [evaluated] = [step.data for step in steps if "accuracy" in step.data]
    assert [row["accuracy"]["value"] for row in told["accuracy"]] == [
        row.accuracy.value for row in evaluated["accuracy"]
    ]


@pytest.mark.slow
def test_the_bundled_model_shows_what_the_demo_promises(tmp_path, climassay):
    report = tmp_path / "demo" / "report.html"
    out = done(climassay("demo", "--output", report))
    for promised in ("Not enough information.", "[1]", "medium confidence", "Verdict: ", "not to be relied on"):
        assert promised in out
    assert not re.search(r"<script|<link|https?://", report.read_text(encoding="utf-8"))
