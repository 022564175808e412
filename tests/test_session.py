"""A session opens what it is asked for once, and closes it at the end."""

import io
import sys
import threading
from types import SimpleNamespace

import pytest
from rich.console import Console

import climassay
from climassay import progress
from climassay.models import ModelOptions
from climassay.progress import Bars, NotebookBars, Progress
from climassay.records import RecordedModel
from climassay.session import Session
from climassay.workspace import Workspace
from patience import until
from scripted_model import ScriptedModel


@pytest.fixture
def loads(monkeypatch):
    """Names of the models that are loaded, and of those that are closed."""
    loaded, closed = [], []

    def load(name, options, folder):
        loaded.append((name, options.dtype))
        model = ScriptedModel(write=lambda _, schema: "Heat.")
        model.close = lambda: closed.append(name)
        return model

    monkeypatch.setattr("climassay.models.provider.load_model", load)
    return loaded, closed


def test_a_model_is_loaded_once_and_closed_with_the_session(tmp_path, loads):
    loaded, closed = loads
    with Session.opened(tmp_path) as session:
        assert session.model("local:a") is session.model("local:a")
        assert session.model("local:a") is not session.model("local:a", ModelOptions(dtype="float32"))
        assert closed == []
    assert loaded == [("local:a", None), ("local:a", "float32")]
    assert sorted(closed) == ["local:a", "local:a"]


def test_a_loaded_model_belongs_to_whoever_loaded_it(tmp_path, loads):
    model = ScriptedModel()
    with Session.opened(tmp_path) as session:
        assert session.model(model) is model
    assert loads == ([], [])


def test_nothing_is_made_until_it_is_used(tmp_path):
    place = tmp_path / "later"
    with Session.opened(place) as session:
        assert not place.exists()
        assert session.workspace.root == place
        assert not session.workspace.has_records
    with Session.opened(place) as session:
        session.records.database  # noqa: B018
    assert Workspace(place).has_records


def test_an_open_session_stays_open(tmp_path):
    with Session.opened(tmp_path) as outer:
        with Session.opened(outer, ModelOptions(no_cache=True)) as inner:
            assert inner is outer
        with outer.run("ask", {}) as run:
            assert run.id


def test_options_of_a_command_decide_how_a_model_is_recorded(tmp_path):
    model = ScriptedModel(write=lambda _, schema: "Heat.")
    for afresh, asked in ((False, 1), (False, 1), (True, 2)):
        with Session.opened(tmp_path, ModelOptions(no_cache=afresh)) as session, session.run("ask", {}) as run:
            recorded = session.recorded(model, run)
            assert isinstance(recorded, RecordedModel)
            from climassay.models import GenerationRequest, Message

            recorded.generate([GenerationRequest((Message("user", "What?"),))])
        assert len(model.texts) == asked


def test_a_model_gets_the_options_that_go_with_it():
    given = ModelOptions(base_url="http://localhost:1/v1", dtype="bfloat16", device="cpu", reasoning_effort="low")
    local, served = given.fitting("local:a"), given.fitting("openai:b")
    assert (local.dtype, local.device, local.base_url, local.reasoning_effort) == ("bfloat16", "cpu", None, None)
    assert (served.dtype, served.device) == (None, None)
    assert (served.base_url, served.reasoning_effort) == ("http://localhost:1/v1", "low")
    assert given.fitting_each(["openai:b"])["openai:b"] == given  # an option that goes with none is refused, not lost


def test_collections_share_their_encoder_across_calls(tmp_path):
    for name in ("one", "two"):
        file = tmp_path / f"{name}.txt"
        file.write_text(f"The {name} glacier melts in summer and grows in winter.", encoding="utf-8")
        climassay.add_documents(name, file, workspace=tmp_path / "w")
    with Session.opened(tmp_path / "w") as session:
        first, second = session.collections("one"), session.collections(["two"])
        assert first.encoder is second.encoder
        found = climassay.search(["one", "two"], "melting glacier", threshold=None, workspace=session)
        assert {hit.passage.document for hit in found} == {"one", "two"}


class Writing(ScriptedModel):
    """Shows its answer word by word."""

    def generate_stream(self, requests, *, on_text, on_result=None):
        [completion] = self.generate(requests, on_result=on_result)
        words = completion.text.split(" ")
        for count in range(len(words)):
            on_text(0, " ".join(words[:count]))
        return [completion]


def test_a_terminal_shows_sentences_as_they_are_written_and_is_left_clean(tmp_path):
    file = tmp_path / "ice.txt"
    file.write_text("The glacier melts in summer and grows in winter.", encoding="utf-8")
    climassay.add_documents("ice", file, workspace=tmp_path / "w")
    said = "The glacier melts in summer [1]. It grows in winter [1]."
    seen, told = io.StringIO(), []
    console = Console(file=seen, force_terminal=True, width=100)
    with Session.opened(tmp_path / "w", progress=Bars(console)) as session:
        model = Writing(write=lambda _prompt, _schema: said)
        answer = climassay.ask(
            "When does the glacier melt?",
            "ice",
            model=model,
            threshold=-1.0,
            workspace=session,
            on_progress=told.append,
        )
    assert [len(one.sentences) for one in told] == [0, 1]
    assert [one.text for one in answer.sentences] == ["The glacier melts in summer.", "It grows in winter."]
    assert "The glacier melts in summer [1]." in seen.getvalue()
    assert "It grows" not in seen.getvalue(), "the last sentence comes with the answer"
    assert "Still being written" in seen.getvalue()
    assert seen.getvalue().rstrip().endswith("\x1b[2K"), "what was shown is wiped away"


def test_a_pipe_gets_no_preview():
    seen = io.StringIO()
    for silent in (Progress(), Bars(Console(file=seen))):
        with silent.preview() as show:
            assert show is None
    assert seen.getvalue() == ""


def test_progress_is_silent_unless_somebody_looks(capsys):
    with Progress().task("Asking", total=2) as task:
        task.advance()
    assert capsys.readouterr() == ("", "")
    bars = Bars()
    with bars.task("Asking", total=2) as outer, bars.task("Reading") as inner:
        outer.advance()
        inner.update(description="Reading more")
    assert "Asking" in capsys.readouterr().err


def test_a_log_file_says_what_runs_before_the_first_unit_ends_and_then_how_long_one_takes(monkeypatch):
    """A run of 25 minutes wrote nothing to its log file, as did one whose first answer took eight minutes."""
    clock = [0.0]
    monkeypatch.setattr(progress, "monotonic", lambda: clock[0])
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0.01)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    seen = io.StringIO()
    with Bars(Console(file=seen, force_terminal=False, width=120)).task("Asking", total=6) as task:
        until(lambda: "Asking: 0 of 6\n" in seen.getvalue())
        clock[0] += 41.0
        task.advance()
        until(lambda: "Asking: 1 of 6, 41 s each, 3 min left\n" in seen.getvalue())
        clock[0] += 164.0
        task.update(description="Asking the last", completed=5)
        until(lambda: "Asking the last: 5 of 6, 41 s each, 41 s left\n" in seen.getvalue())
    assert not any(thread.name == "climassay-progress" for thread in threading.enumerate())


def test_a_terminal_shows_bars_alone(monkeypatch):
    monkeypatch.setattr(progress, "FIRST_LINE_SECONDS", 0.0)
    seen = io.StringIO()
    with Bars(Console(file=seen, force_terminal=True, width=120)).task("Asking", total=6) as task:
        task.advance()
    assert "each, " in seen.getvalue()
    assert "Asking: " not in seen.getvalue()


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.04, "0.0 s"), (0.44, "0.4 s"), (9.94, "9.9 s"), (9.96, "10 s"), (89, "89 s"), (91, "2 min"), (5399, "90 min"),
     (5401, "1.5 h"), (90000, "25.0 h")],
)  # fmt: skip
def test_durations_have_two_figures_and_a_unit(seconds, words):
    assert progress.format_duration(seconds) == words


def test_a_notebook_shows_bars_below_the_cell_without_widgets(monkeypatch, capsys):
    handles = []

    def display(thing, display_id):
        shown = [drawn(thing)]
        handles.append(shown)
        return SimpleNamespace(update=lambda other: shown.append(drawn(other)))

    def drawn(thing):
        return thing if isinstance(thing, str) else thing._repr_mimebundle_([], [])["text/plain"]

    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace())
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display, HTML=str))
    bars = NotebookBars()
    with bars.task("Asking", total=2) as outer, bars.task("Reading", total=1) as inner:
        outer.advance()
        inner.advance()
        outer.update(description="Asking the last", completed=2)
    (bar,) = handles
    assert "0/2" in bar[0]
    assert "Asking the last" in bar[-1]
    assert "2/2" in bar[-1]
    assert "1/1" in bar[-1], "the tasks within a task are seen"
    with bars.status("Loading ..."):
        pass
    with bars.preview() as show:
        show("A sentence.")
    assert handles[1:] == [["Loading ...\n", ""], ["A sentence.\n", ""]], "nothing is left behind"
    assert capsys.readouterr() == ("", "")
