import pytest

from climassay.errors import ModelError
from climassay.generation import Decision, Draft, Origin, SourcePassage, Wording, read_drafts, write_drafts
from command_line import done, json_of, refused

pytestmark = pytest.mark.usefixtures("_own_cache")


@pytest.fixture
def _own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))


def drafts(count, *, labelled):
    for number in range(count):
        valid = number % 3 != 0
        answer = f"Warm water number {number} rises." if valid else "Bananas are sold on Mondays."
        text = f"Warm water number {number} rises, and cold water number {number} sinks in its place."
        decision = Decision("expert", "anna", valid, "" if valid else "wrong answer")
        yield Draft(
            f"q{number}",
            "freeform",
            "base",
            Wording(f"What does warm water number {number} do?", answer),
            (SourcePassage(f"p{number}", text, "d", "A book"),),
            Origin("local:test", "f" * 64, (), 0),
            (decision,) if labelled else (),
        )


@pytest.fixture
def labels(tmp_path):
    file = tmp_path / "labels.jsonl"
    write_drafts(file, drafts(36, labelled=True))
    return file


def test_train_show_and_apply(tmp_path, climassay, labels):
    file, html = tmp_path / "validator", tmp_path / "report.html"
    data = json_of(
        climassay("generate validate train", labels, "-o", file, "--precision", 0.9, "--html", html, "--json")
    )
    assert data["evaluation"]["auroc"]["value"] > 0.9
    assert data["source"]["items"] == 36
    assert data["threshold"]["precision"]["value"] >= 0.9
    page = html.read_text(encoding="utf-8")
    assert "Do the probabilities mean what they say?" in page
    assert "Why questions were rejected" in page

    shown = json_of(climassay("generate validate show", file, "--json"))
    assert (shown["kind"], shown["trained_on"], shown["threshold"]) == ("features", 36, data["threshold"])

    given, decided = tmp_path / "new.jsonl", tmp_path / "decided.jsonl"
    write_drafts(given, drafts(6, labelled=False))
    out = done(climassay("generate validate apply", file, given, "-o", decided))
    assert "Decisions of validator" in out
    accepted = [draft.decisions[-1].accepted for draft in read_drafts(decided)]
    assert accepted == [False, True, True, False, True, True]

    err = refused(climassay("generate validate evaluate", file, labels))
    assert "was trained on all questions" in " ".join(err.split())
    others = tmp_path / "others.jsonl"
    write_drafts(others, drafts(48, labelled=True))
    measured = json_of(climassay("generate validate evaluate", file, others, "--json"))
    assert (measured["trained_on"], measured["evaluation"]["n"]) == (36, 12)
    assert measured["evaluation"]["auroc"]["value"] > 0.9


def test_simulate(tmp_path, climassay, labels):
    html = tmp_path / "simulation.html"
    out = done(climassay(
        "generate validate simulate", labels, "--splits", 2, "--start", 6, "--batch", 10, "--strategies",
        "random,margin", "--html", html,
    ))  # fmt: skip
    assert "Gain over random choice" in out
    assert "margin" in out
    assert "Precision of what the validator keeps" in html.read_text(encoding="utf-8")


@pytest.mark.parametrize("field", [None, "botany"])
def test_the_science_reaches_what_is_trained_on(tmp_path, monkeypatch, climassay, field, labels):
    uploads = []

    def refused(model, training, state, **options):
        uploads.append(training.decode())
        raise ModelError("The server takes no files.")

    monkeypatch.setattr("climassay.generation.validation.training.fine_tune", refused)
    options = () if field is None else ("--field", field)
    arguments = ("-o", tmp_path / "state.json", "--method", "api", "-m", "openai:small", *options)
    code, _, err = climassay("generate validate train", labels, *arguments)
    assert code == ModelError.exit_code
    assert "takes no files" in err
    [lines] = [upload.splitlines() for upload in uploads]
    assert all(f"an examination in {field or 'climate science'}." in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("train", "missing.jsonl", "-o", "x"), "There is no file"),
        (("simulate", "LABELS", "--strategies", "best"), "must be different ones of"),
        (("train", "LABELS", "-o", "x", "--method", "api"), "write openai:NAME"),
        (("train", "LABELS", "-o", "nowhere/x"), "The folder of nowhere/x does not exist"),
    ],
    ids=["no labels", "strategy", "api", "place"],
)
def test_bad_input_is_one_sentence(tmp_path, monkeypatch, climassay, labels, arguments, words):
    monkeypatch.chdir(tmp_path)
    given = [labels if argument == "LABELS" else argument for argument in arguments]
    assert words in refused(climassay("generate validate", *given))
