"""The quickstart from first step to last, with outputs written by hand and served by an API in place of a model."""

import json
import re
from pathlib import Path

import pytest

from api_server import ApiServer, Reply, by_hash, schema_of
from climassay import primer
from climassay.errors import InputError, ModelError
from climassay.generation import DatasetStore
from climassay.generation.annotation import AnnotationStore
from climassay.quickstart import NAME, STEPS, QuickstartContext, run_quickstart
from climassay.records import Records
from climassay.workspace import Workspace
from command_line import done, json_of
from documentation import calls, fault

WRITTEN = Path(__file__).parents[1] / "generation" / "hand_written_outputs.json"
SECTIONS = json.loads(WRITTEN.read_text(encoding="utf-8"))["sections"]
MODEL = "openai:hand-written"
ORDER = ["documents", "ask", "check", "questions", "annotate", "evaluate"]


def section_texts():
    book = primer.book_path("aerosols_clouds").read_text(encoding="utf-8")
    parts = re.split(r"^#+ (.+)$", book, flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True) if name in SECTIONS}


class Writer:
    """Writes the hand-written questions, speaks in debates as the server makes it up, and answers in one sentence."""

    def __init__(self):
        self.texts = section_texts()
        self.asked = 0

    def __call__(self, request):
        self.asked += 1
        schema = schema_of(request.body)
        names = schema["properties"] if schema else {}
        kind = "mcq" if "distractors" in names else "cloze" if "statement" in names else None
        if kind is None:
            return by_hash(request) if schema or request.body.get("logprobs") else Reply("Small particles grow. [1]")
        section = next(name for name, text in self.texts.items() if text[:60] in request.content)
        return Reply(json.dumps({name: SECTIONS[section][kind].get(name, "") for name in names}))


class Listener:
    """Answers from a list, or takes every offer; remembers what it was told."""

    def __init__(self, *answers, takes_offers=False):
        self.answers = list(answers)
        self.takes_offers = takes_offers
        self.told = []
        self.asked = []

    @property
    def patient(self):
        return not self.takes_offers

    def say(self, text):
        self.told.append(text)

    def answer(self, question, offer):
        self.asked.append(question)
        if self.takes_offers:
            return offer
        given = self.answers.pop(0)
        if isinstance(given, BaseException):
            raise given
        return {"": offer, "s": None}.get(given, given)


@pytest.fixture
def book(tmp_path):
    file = tmp_path / "particles.md"
    sections = [f"## {name}\n\n{text}" for name, text in section_texts().items()]
    file.write_text("# Particles\n\n" + "\n\n".join(sections), encoding="utf-8")
    return file


@pytest.fixture
def writer(monkeypatch):
    rule = Writer()
    with ApiServer(rule=rule) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        yield rule


@pytest.fixture
def room(tmp_path, writer):
    made = QuickstartContext(Workspace.open(tmp_path / "work"), MODEL, "anna")
    yield made
    made.close()


def states(outcomes):
    return {outcome.step: outcome.state for outcome in outcomes}


def test_all_steps_from_a_file_to_a_report(room, book, writer, tmp_path, climassay):
    listener = Listener(
        str(book), "What decides the phase of an ammonium sulfate particle?", "", "4", "2", "y", "n", "2", ""
    )
    outcomes = run_quickstart(room, listener)
    assert states(outcomes) == dict.fromkeys(ORDER, "done")
    assert listener.answers == []

    with Records(room.workspace.records_url) as records:
        drafts = [draft for draft in DatasetStore(records).drafts(NAME) if not draft.error]
        labels = AnnotationStore(records).labels(NAME)
    assert {draft.kind for draft in drafts} == {"mcq", "cloze"}
    assert [(label.annotator, label.accepted, label.reasons) for label in labels] == [
        ("anna", True, ()),
        ("anna", False, ("wrong answer",)),
    ]
    assert sum(draft.usable for draft in drafts) == 3
    for name in ("report.html", "factcheck.html", "recipe.toml", "experiment.toml", "benchmark/README.md"):
        assert (room.folder / name).is_file(), name
    said = {outcome.step: outcome.said for outcome in outcomes}
    assert "Particles" in said["documents"]
    assert "[1]" in said["ask"]
    assert "No verdict: " in said["check"]  # what the server makes up quotes nothing
    assert "4 of 4 drafts" in said["questions"]

    # Everything is found again, nothing is asked again, and the command that was told says the same from the records.
    asked = writer.asked
    again = Listener()
    assert states(run_quickstart(room, again)) == dict.fromkeys(ORDER, "found")
    assert again.asked == []
    words = outcomes[-1].command.removeprefix("climassay ").split()
    out = done(climassay(*words, "--workspace", room.workspace.root, "--json"))
    assert json.loads(out)["name"] == NAME
    assert writer.asked == asked


def test_an_interrupted_quickstart_goes_on_where_it_stopped(room, book, writer):
    with pytest.raises(KeyboardInterrupt):
        run_quickstart(
            room, Listener(str(book), "What decides the phase of an ammonium sulfate particle?", KeyboardInterrupt())
        )
    with pytest.raises(KeyboardInterrupt):
        run_quickstart(room, Listener("s", "2", "2", "y", KeyboardInterrupt()))
    listener = Listener("s", "", "", "")
    outcomes = run_quickstart(room, listener)
    assert states(outcomes) == {
        "documents": "found", "ask": "found", "check": "skipped", "questions": "found", "annotate": "done",
        "evaluate": "done",
    }  # fmt: skip
    with Records(room.workspace.records_url) as records:
        assert len(AnnotationStore(records).labels(NAME)) == 2


def test_why_drafts_did_not_pass_is_told(room, book, monkeypatch):
    draft = {"declined": "", "question": "Why?", "answer": "So.", "distractors": ["Or so."]}
    monkeypatch.setattr(Writer, "__call__", lambda _self, _request: Reply(json.dumps(draft)))
    outcomes = run_quickstart(room, Listener(str(book), "s", "s", "1"))
    said = {outcome.step: outcome.said for outcome in outcomes}["questions"]
    assert said.startswith("None of ")
    assert "mcq, unreadable reply: " in said
    assert "larger model" not in said  # it is behind a server


def test_what_builds_upon_a_skipped_step_is_left_out(room):
    listener = Listener("s")
    outcomes = run_quickstart(room, listener)
    assert states(outcomes) == dict.fromkeys(ORDER, "skipped")
    assert len(listener.asked) == 1
    assert not (room.workspace.root / "records.sqlite").exists()


def test_a_useless_answer_is_asked_for_again(room, book):
    listener = Listener("nowhere.pdf", str(book), "s", "s", "many", "0", "s")
    outcomes = run_quickstart(room, listener)
    assert states(outcomes)["documents"] == "done"
    assert states(outcomes)["questions"] == "skipped"
    told = "\n".join(listener.told)
    assert "nowhere.pdf" in told
    assert "from 1 to 200, not 'many'" in told


@pytest.mark.parametrize("model", ["local:smollm2", MODEL])
def test_the_commands_that_are_told_exist_for_models_here_and_behind_a_server(tmp_path, model):
    room = QuickstartContext(Workspace.open(tmp_path / "work"), model, "anna")
    for step in STEPS:
        [words] = calls(step.command(room, step.offer(room)))
        assert fault(words, whole=True) is None


def test_nobody_is_asked_again_who_is_not_there(room):
    listener = Listener(takes_offers=True)
    wrong = [step for step in STEPS if step.name == "documents"]
    object.__setattr__(listener, "answer", lambda question, offer: "nowhere.pdf")
    with pytest.raises(InputError, match=r"nowhere\.pdf"):
        run_quickstart(room, listener, wrong)


def test_a_model_that_is_not_there_ends_it_with_one_sentence(tmp_path, book):
    room = QuickstartContext(Workspace.open(tmp_path / "work"), "local:nowhere/at/all", "anna")
    with pytest.raises(ModelError):
        run_quickstart(room, Listener(str(book), "Why?"))


def test_steps_that_a_model_does_not_answer_have_failed_and_are_taken_again(room, book, writer, monkeypatch, climassay):
    from climassay import quickstart

    monkeypatch.setattr(quickstart.run_quickstart, "__defaults__", (STEPS[:4],))
    refused = (400, {"error": {"message": "no room"}})
    monkeypatch.setattr(ApiServer, "error", lambda _server, _request: refused)
    place = ("--yes", "--model", MODEL, "--workspace", room.workspace.root)
    code, out, err = climassay("quickstart", *place, "--json")
    assert code == 1
    steps = {step["step"]: step for step in json.loads(out)["steps"]}
    assert {name: step["state"] for name, step in steps.items()} == {
        "documents": "done", "ask": "failed", "check": "failed", "questions": "failed"
    }  # fmt: skip
    assert all("no room" in steps[name]["said"] for name in ("ask", "check", "questions"))
    assert err.splitlines()[-1].startswith("climassay: The model gave no answer in ask, check, questions")


def test_the_command_takes_every_offer(tmp_path, monkeypatch, climassay, writer):
    """The offered document is the primer's; questions and what builds on them are skipped, for nobody wrote them."""
    from climassay import quickstart

    monkeypatch.setattr(quickstart, "STEPS", STEPS[:3])
    monkeypatch.setattr(quickstart.run_quickstart, "__defaults__", (STEPS[:3],))
    arguments = ["quickstart", "--yes", "--model", MODEL, "--workspace", tmp_path / "work"]
    told = json_of(climassay(*arguments, "--json"))
    assert [(step["step"], step["state"]) for step in told["steps"]] == [
        (name, "done") for name in ("documents", "ask", "check")
    ]
    assert told["steps"][0]["command"].startswith("climassay corpus add quickstart primer:physical_climate")
    assert told["files"] == [str(tmp_path / "work" / "quickstart" / "factcheck.html")]
    out = done(climassay(*arguments))
    assert out.count("There already") == 3
    assert "climassay serve" in out


def test_without_a_terminal_it_asks_for_yes(tmp_path, climassay):
    code, out, err = climassay("quickstart", "--workspace", tmp_path / "work")
    assert (code, out) == (2, "")
    assert "--yes" in err
    assert len(err.strip().splitlines()) == 1


def test_on_a_terminal_the_answers_are_typed(tmp_path, monkeypatch, climassay, writer, book):
    import io

    class Keyboard(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Keyboard(f"{book}\ns\ns\ns\n"))
    out = done(climassay("quickstart", "--model", MODEL, "--workspace", tmp_path / "work"))
    assert "Files or folders [primer:physical_climate]" in out
    assert "Particles: " in out
    assert re.search(r"ask +skipped", out)
    monkeypatch.setattr("sys.stdin", Keyboard(""))
    code, out, err = climassay("quickstart", "--model", MODEL, "--workspace", tmp_path / "work")
    assert code == 130
    assert "run the same command again" in err
