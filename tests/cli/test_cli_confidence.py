"""The commands of ``climassay confidence`` from files to files."""

import csv
import json
import re

import pytest

import climassay
from api_server import ApiServer, Reply
from climassay.confidence.linting import RULES
from climassay.confidence.statement import read_statements
from climassay.confidence.tagging import train_tagger
from climassay.confidence.trends import read_predictions
from climassay.errors import InputError
from climassay.learning import ClassifierSpec, PartSpec, Provenance
from command_line import done, json_of, refused
from confidence.tagging.planted import SIGNS, planted, write_climatex, write_extracted
from confidence.tagging.test_insertion import labelled
from planted_model import PlantedModel
from tiny_models import save_tiny

REPORT = """# Seas

Seas will rise (high confidence), but ice on land may stay (low confidence). Nobody has seen how fast it goes.

GHGs warm the sea (medium to high confidence; Doe et al., 2013).
"""


@pytest.fixture
def command(tmp_path, monkeypatch, climassay):
    monkeypatch.setenv("COLUMNS", "120")
    (tmp_path / "report.md").write_text(REPORT, encoding="utf-8")

    return lambda *arguments: climassay("confidence extract", *arguments)


def test_statements_go_to_a_file_that_is_read_back(command, tmp_path):
    code, out, err = command(tmp_path / "report.md", "-o", tmp_path / "s.jsonl", "--report", "AR5 WG2")
    assert code == 0
    assert "3 statements" in out
    assert "AR5 WG2" in out
    assert "s.jsonl" in err
    assert "1 sentence with several levels" in err
    found = read_statements(tmp_path / "s.jsonl")
    assert [(one.tag, one.text) for one in found] == [
        ("high", "Seas will rise, but ice on land may stay."),
        ("low", "Seas will rise, but ice on land may stay."),
        ("high", "Greenhouse gases warm the sea."),
    ]
    assert {(one.cycle, one.working_group) for one in found} == {("AR5", "WG2")}


def test_nothing_found_is_said_in_a_sentence(command, tmp_path):
    german = "Der Meeresspiegel wird weiter steigen (hohes Vertrauen). Das ist eine Folge der Erwärmung."
    (tmp_path / "de.txt").write_text(german, encoding="utf-8")
    code, _, err = command(tmp_path / "de.txt", "-o", tmp_path / "s.jsonl")
    assert code == 0
    assert "No level of confidence was found. Levels are read in English, French and Spanish." in err
    _, out, _ = command(tmp_path / "de.txt")
    assert out == "", "a table of nothing"
    _, _, err = command(tmp_path / "report.md", tmp_path / "de.txt")
    assert "No level of confidence was found in de." in err


def test_a_model_divides_sentences_of_several_levels(command, tmp_path):
    parts = json.dumps({"parts": ["Seas will rise", "ice on land may stay"]})
    with ApiServer(rule=lambda _: Reply(parts)) as server:
        asked = ("--model", "openai:test", "--base-url", server.url, "--workspace", tmp_path / "w")
        code, _, err = command(tmp_path / "report.md", "-o", tmp_path / "s.jsonl", *asked)
        assert sum("Levels:" in str(request) for request in server.asked) == 1
    assert code == 0
    assert "openai:test divided 1 of 1 sentence" in err
    found = [(one.tag, one.text, one.divided) for one in read_statements(tmp_path / "s.jsonl")]
    assert found[:2] == [("high", "Seas will rise.", True), ("low", "Ice on land may stay.", True)]


def test_two_extractions_are_compared(command, climassay, tmp_path):
    (tmp_path / "new.md").write_text(REPORT.replace("high", "medium"), encoding="utf-8")
    for name in ("report", "new"):
        command(tmp_path / f"{name}.md", "-o", tmp_path / f"{name}.jsonl")
    files = (tmp_path / "report.jsonl", tmp_path / "new.jsonl")
    told = json_of(climassay("confidence diff", *files, "--json"))
    assert told["counts"] == {"level changed": 2, "removed": 0, "added": 0, "reworded": 0, "unchanged": 0}
    assert [(one["old_levels"], one["new_levels"]) for one in told["changes"]] == [
        (["high", "low"], ["medium", "low"]),
        (["high"], ["medium"]),
    ]
    assert "level changed" in done(climassay("confidence diff", *files))
    assert "none.jsonl" in refused(climassay("confidence diff", files[0], tmp_path / "none.jsonl"))


def test_other_terms_are_rows_of_their_own(command, tmp_path):
    text = "Seas will very likely rise by 1 m (0.5 to 2 m, very likely range) (robust evidence, high agreement).\n"
    (tmp_path / "t.md").write_text(text, encoding="utf-8")
    out = done(command(tmp_path / "t.md", "--terms", tmp_path / "t.jsonl", "--json"))
    rows = json.loads(out)["terms"]
    assert [(one["kind"], one["term"], one["names_range"]) for one in rows] == [
        ("likelihood", "very likely", False),
        ("likelihood", "very likely", True),
        ("agreement", "high", False),
        ("evidence", "robust", False),
    ]
    assert [text[one["start"] : one["end"]] for one in rows[:2]] == ["very likely"] * 2
    written = [json.loads(line) for line in (tmp_path / "t.jsonl").read_text(encoding="utf-8").splitlines()]
    assert written == rows
    assert "very likely" in command(tmp_path / "t.md")[1]


def test_review_page(command, tmp_path):
    code, _, err = command(tmp_path / "report.md", "-o", tmp_path / "pages" / "review.html")
    assert (code, "review.html" in err) == (0, True)
    assert "but ice on land may stay." in (tmp_path / "pages" / "review.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "Nothing to read"),
        (("missing.pdf",), "missing.pdf"),
        (("report.md", "--context", "99"), "context"),
        (("report.md", "--column", "nonsense"), "nonsense"),
        (("--collection", "nowhere"), "nowhere"),
    ],
    ids=["nothing", "missing", "context", "column", "collection"],
)
def test_what_cannot_be_done_is_said_in_a_sentence(command, tmp_path, monkeypatch, arguments, words):
    monkeypatch.setenv("CLIMASSAY_WORKSPACE", str(tmp_path / "w"))
    monkeypatch.chdir(tmp_path)
    assert words in refused(command(*arguments), alone=False)


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
    starts = [line.split(": ")[:2] for line in out.splitlines()]
    assert starts == [["draft.md", "paragraph 1, character 11"], ["draft.md", "paragraph 1, character 42"]]
    assert "[confidence-vocabulary]" in out
    assert "draft.md: 2 findings in 11 words" in err
    assert "good.md: 0 findings in 4 words" in err


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (["good.md"], 0), (["draft.md"], 1), (["draft.md", "--exit-zero"], 0),
        (["draft.md", "--rules", "misspelt-term"], 0),
        (["draft.md", "--rules=-confidence-vocabulary,-likelihood-range"], 0), (["none.md"], 2),
        (["draft.md", "none.md"], 2), (["draft.md", "--rules", "nonsense"], 2),
        (["draft.md", "-o", "good.md/page.html"], 2), (["draft.md", "-o", "page.docx"], 2), ([], 2),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else str(value),
)  # fmt: skip
def test_exit_codes(lint, args, code):
    found, out, err = lint(*args)
    assert found == code
    assert "Traceback" not in err
    if code == 2:
        assert out == ""
        assert len(err.strip().splitlines()) == 1


@pytest.mark.parametrize("more", [[], ["-o", "out.html"]], ids=["text", "page"])
def test_a_text_without_an_assessment_gets_no_all_clear(lint, tmp_path, more):
    (tmp_path / "cake.md").write_text("Whisk the eggs. Bake the cake for an hour.\n")
    code, out, err = lint("cake.md", *more)
    assert (code, out) == (0, "")
    page = (tmp_path / "out.html").read_text() if more else err
    for told in (" ".join(err.split()), " ".join(page.split())):
        assert "there is nothing to check" in told


def test_a_model_reads_too_and_a_server_that_does_not_answer_is_no_all_clear(lint, tmp_path):
    (tmp_path / "act.md").write_text("Act now (high confidence).\n")
    problem = {"words": "Act now", "problem": "A call.", "suggestion": ""}
    said = json.dumps({"reasoning": "A call has a level.", "problems": [problem]})
    asked = ("act.md", "--model", "openai:test", "--workspace", str(tmp_path / "home"))
    with ApiServer(rule=lambda _: Reply(said)) as server:
        code, out, err = lint(*asked, "--base-url", server.url)
    assert (code, out) == (1, "act.md: paragraph 1, character 1: note [model-finding] A call. | Act now\n")
    assert "openai:test read 1 passage with words of certainty." in err
    (tmp_path / "act.md").write_text("Wait now, [[400 no such model]] (high confidence).\n")
    with ApiServer() as server:
        code, out, err = lint(*asked, "--base-url", server.url)
    assert (code, out) == (1, "")
    assert "gave no usable answer, only the rules were applied" in err


def test_json(lint):
    code, out, _ = lint("draft.md", "--json")
    (file,) = json.loads(out)["files"]
    assert code == 1
    assert file["by_rule"]["likelihood-range"] == 1
    (finding,) = [one for one in file["findings"] if one["rule"] == "likelihood-range"]
    assert (finding["page"], finding["paragraph"], finding["column"]) == (None, 1, 42)
    assert finding["words"] == "very likely (66–100%)"


def test_a_page_is_written(lint, tmp_path):
    code, _, _ = lint("draft.md", "-o", "pages/out.html", "-o", "out.csv")
    assert (tmp_path / "out.csv").read_text().startswith("file,rule,severity,page,paragraph,column,")
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


TEXT = "The record unequivocally shows that carbon and ocean change."


@pytest.fixture(scope="module")
def tagger(tmp_path_factory):
    """Reads words only, so that no encoder is loaded."""
    path = tmp_path_factory.mktemp("tagger") / "t.safetensors"
    specs, source = (ClassifierSpec("words", (PartSpec(("words",)),)),), Provenance(data="planted", licence="CC0")
    train_tagger(planted(), specs=specs, folds=4, resamples=20, provenance=source).classifier.save(path)
    return path


@pytest.mark.parametrize("more", [(), ("--context", "[/bold]")])
def test_brackets_in_a_statement_are_no_markup(monkeypatch, climassay, tagger, more) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    text = "The record [bold] shows that carbon and [/red] ocean change [IPCC, 2021]."
    out = done(climassay("confidence tag apply", tagger, text, *more))
    assert text in " ".join(out.split())


def test_several_statements_are_tagged_as_each_alone(tagger, tmp_path) -> None:
    texts = ["Ice and snow change.", "Seas rise."]
    several = climassay.tag_statements(texts, str(tagger), workspace=tmp_path).rows()
    assert several == [climassay.tag_statements(one, str(tagger), workspace=tmp_path).rows()[0] for one in texts]
    with pytest.raises(InputError, match="nothing to tag"):
        climassay.tag_statements([], str(tagger), workspace=tmp_path)


def test_a_statement_alone_is_tagged_by_the_bundled_tagger(climassay, tmp_path) -> None:
    out = done(climassay("confidence tag", "Human influence has warmed the atmosphere, ocean and land.", "--json"))
    [row] = json.loads(out)["statements"]
    assert row["tag"] in row["probabilities"]
    assert sum(row["probabilities"].values()) == pytest.approx(1)


def test_a_table_of_statements(climassay, tmp_path, tagger) -> None:
    file = tmp_path / "s.csv"
    file.write_text(
        "claim,around\n" + "".join(f"The record {sign} that ice and snow change.,It is so.\n" for sign in SIGNS),
        encoding="utf-8",
    )
    output = tmp_path / "out.jsonl"
    out = done(climassay(
        "confidence tag apply", tagger, file, "--text", "claim", "--context-column", "around", "--mix", "equal",
        "-o", output, "--json",
    ))  # fmt: skip
    assert [row["tag"] for row in json.loads(out)["statements"]] == ["low", "medium", "high", "very high"]
    assert [json.loads(line)["tag"] for line in output.read_text().splitlines()] == [
        "low",
        "medium",
        "high",
        "very high",
    ]


def extracted(folder, tags=("low", "medium", "high", "very high")):
    path = folder / "statements.jsonl"
    pairs = [(one.item.text, tags[number % len(tags)]) for number, one in enumerate(planted(80, seed=5))]
    return path, write_extracted(pairs, path)


def test_a_file_of_extract_needs_no_column(climassay, tmp_path, tagger) -> None:
    file, statements = extracted(tmp_path)
    output = tmp_path / "tagged.jsonl"
    done(climassay("confidence tag apply", tagger, file, "-o", output))
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [one.id for one in statements]
    assert [row["authors"] for row in rows] == [one.tag for one in statements]
    assert sum(row["tag"] == row["authors"] for row in rows) > 70
    assert set(read_predictions(output).probabilities) == {one.id for one in statements}


def test_held_out_answers_are_written_for_the_report(monkeypatch, climassay, tmp_path) -> None:
    file, statements = extracted(tmp_path)
    output = tmp_path / "held-out.jsonl"
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda _: None)
    out = done(
        climassay("confidence tag evaluate", file, "--method", "words", "--folds", 4, "--predictions", output, "--json")
    )
    rows = [json.loads(line) for line in output.read_text().splitlines()]
    assert [row["id"] for row in rows] == [one.id for one in statements]
    right = sum(row["tag"] == row["authors"] for row in rows) / len(rows)
    assert right == pytest.approx(json.loads(out)["scores"][0]["natural"]["accuracy"]["value"])


def test_train_and_evaluate(monkeypatch, climassay, tmp_path, tagger) -> None:
    file, output = write_climatex(tmp_path / "c.tsv"), tmp_path / "new.safetensors"
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda _: None)
    code, out, err = climassay("confidence tag train", file, "-o", output, "--method", "words", "--folds", 3)
    assert code == 0, err
    assert "Chosen: words" in out
    assert "No context" in err
    code, out, _ = climassay("confidence tag apply", output, TEXT, "--json")
    assert json.loads(out)["statements"][0]["tag"] == "very high"
    out = done(climassay("confidence tag evaluate", tagger, file, "--json"))
    scores = json.loads(out)["scores"][0]
    assert {mix: scores[mix]["mix"] for mix in ("natural", "equal", "climatex")} == {
        "natural": None, "equal": [1, 1, 1, 1], "climatex": [50, 100, 100, 50],
    }  # fmt: skip
    assert scores["natural"]["accuracy"]["value"] > 0.95
    assert "was trained on c.tsv" in refused(climassay("confidence tag evaluate", output, file))
    more = tmp_path / "more.tsv"
    new = file.read_text().splitlines()[1].replace("\tThe record", "\tAnother record")
    more.write_text(f"{file.read_text()}{new}\n", encoding="utf-8")
    out = done(climassay("confidence tag evaluate", output, more, "--json"))
    assert json.loads(out)["statements"] == 1
    assert json.loads(out)["left_out"] > 50
    known = ("confidence tag evaluate", output, file, "--include-trained", "--limit", 40, "--json")
    assert {name: json_of(climassay(*known))[name] for name in ("statements", "left_out")} == {
        "statements": 40, "left_out": 0,
    }  # fmt: skip
    tried = json_of(climassay("confidence tag evaluate", file, "--method", "words", "--limit", 40, "--json"))
    assert tried["statements"] == 40


def test_published_figures_stand_by_those_on_their_mix_only(monkeypatch, climassay, tmp_path, tagger) -> None:
    monkeypatch.setenv("COLUMNS", "150")
    file, _ = extracted(tmp_path)
    out = done(climassay("confidence tag evaluate", tagger, file))
    natural, equal, climatex = (out.index(words) for words in ("as frequent as in", "equally frequent", "test mix"))
    assert natural < equal < climatex < out.index("published: GPT-4")
    # Without a statement of very high confidence nothing can be said of mixes that have such statements.
    few, _ = extracted(tmp_path, ("low", "medium", "high"))
    out = done(climassay("confidence tag evaluate", tagger, few))
    assert "published" not in out
    assert "Other mixes need statements of each level" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["  "], "nothing to tag"),
        (["Seas rise.", "--mix", "many"], "--mix is natural"),
        (["none.csv", "--text", "claim"], "no file"),
        (["evaluate", "none.tsv"], "none.tsv"),
        (["evaluate", "bundled"], "evaluate bundled LABELS"),
        (["train", "none.tsv", "-o", "no/folder/t"], "folder"),
    ],
    ids=["blank", "mix", "no table", "no file", "no labels", "no folder"],
)
def test_bad_input_is_one_sentence(monkeypatch, climassay, tmp_path, tagger, arguments, said) -> None:
    monkeypatch.chdir(tmp_path)
    more = [] if arguments[0] in ("evaluate", "train") else ["apply", tagger]
    assert said in refused(climassay("confidence tag", *more, *arguments))


def test_a_file_needs_its_column(climassay, tmp_path, tagger) -> None:
    file = tmp_path / "s.csv"
    file.write_text('claim\nSeas rise.\n""\n', encoding="utf-8")
    for arguments, said in (
        ([], "name the column"),
        (["--text", "text"], "no column 'text'"),
        (["--text", "claim"], "Row 2"),
    ):
        assert said in refused(climassay("confidence tag apply", tagger, file, *arguments))


@pytest.fixture
def known(tmp_path):
    """Statements of known level, as ``confidence extract`` writes them."""
    path = tmp_path / "known.jsonl"
    write_extracted([(one.item.text, one.tag) for one in labelled()], path)
    return path


def test_statements_are_inserted_among_those_of_known_level(monkeypatch, climassay, tmp_path, known):
    monkeypatch.setattr("climassay.models.provider.load_model", lambda *_, **_options: PlantedModel(noise=0.02))
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    new = labelled(12, start=500)
    file, output = tmp_path / "new.csv", tmp_path / "tagged.jsonl"
    file.write_text("id,claim\n" + "".join(f"{n},{one.item.text}\n" for n, one in enumerate(new)), encoding="utf-8")
    arguments = ("confidence", "tag", "insert", file, "--text", "claim", "--anchors", known, "--layer", -1)
    found = json_of(climassay(*arguments, "--train-items", 48, "-o", output, "--json"))
    assert sum(row["tag"] == one.tag for row, one in zip(found["statements"], new, strict=True)) >= 10
    assert found["probe"]["pair_accuracy"]["value"] > 0.9
    assert [json.loads(line) for line in output.read_text().splitlines()] == found["statements"]
    out = done(climassay(*arguments, "--train-items", 48, "--probe", "pointwise"))
    assert "pairs of held-out statements" in " ".join(out.split())


def test_inserted_statements_keep_their_columns_and_are_scored_by_cycle(monkeypatch, climassay, tmp_path, known):
    monkeypatch.setattr("climassay.models.provider.load_model", lambda *_, **_options: PlantedModel(noise=0.02))
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    new = labelled(12, start=500)
    file, output = tmp_path / "new.csv", tmp_path / "tagged.csv"
    seen = labelled()[0]  # among the statements of known level, all of which are trained on
    rows = [f"{one.item.text},{one.tag.replace(' ', '_')},AR{5 + n % 2},p{n}" for n, one in enumerate([*new, seen])]
    file.write_text("\n".join(["claim,tag,cycle,page", *rows, "No level here.,,AR6,p99"]), encoding="utf-8")
    arguments = ("confidence", "tag", "insert", file, "--text", "claim", "--anchors", known, "--layer", -1)
    found = json_of(climassay(
        *arguments, "--train-items", 48, "--truth", "tag", "--by", "cycle", "-o", output, "--json"
    ))  # fmt: skip
    written = list(csv.DictReader(output.open(encoding="utf-8")))
    assert list(written[0]) == ["statement", "tag (file)", "cycle", "page", "tag"]
    assert [row["page"] for row in written] == [f"p{n}" for n in range(12)]
    right = [row["tag"] == row["tag (file)"].replace("_", " ") for row in written]
    assert found["scores"]["all"]["n"] == 12
    assert found["scores"]["all"]["accuracy"]["value"] == pytest.approx(sum(right) / 12)
    assert found["scores"]["AR5"]["accuracy"]["value"] == pytest.approx(sum(right[::2]) / 6)
    assert "1 statements without a level, and 1 that the probe was trained on" in found["notes"][-1]
    assert "most frequent level" in done(climassay(*arguments, "--train-items", 48, "--truth", "tag", "--limit", 5))
    for options, reason in (
        (["--by", "cycle"], "name the column of the authors' levels"),
        (["--truth", "verdict"], "no column 'verdict'"),
        (["--truth", "page"], "holds no level"),
        (["--truth", "tag", "--train-by", "cycle", "--anchors", file], "has no column report"),
    ):
        assert reason in refused(climassay(*arguments, *options))


def test_a_model_behind_a_server_shows_no_states(monkeypatch, climassay, known):
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    assert "hidden states: use a local: model, not openai:any" in refused(
        climassay("confidence tag insert", "Seas rise.", "--anchors", known, "--model", "openai:any")
    )


@pytest.mark.model
def test_a_pointwise_probe_on_states_is_trained_and_used(monkeypatch, climassay, tmp_path, known):
    model = f"local:{save_tiny(tmp_path / 'tiny')}"
    output = tmp_path / "states.safetensors"
    monkeypatch.setattr("climassay.models.encoders.load_encoder", lambda _: None)
    done(climassay(
        "confidence tag train", known, "-o", output, "--method", "mean states", "--model", model, "--layer", 1,
        "--folds", 3,
    ))  # fmt: skip
    out = done(climassay("confidence tag apply", output, labelled()[3].item.text, "--json"))
    row = json.loads(out)["statements"][0]
    assert sum(row["probabilities"].values()) == pytest.approx(1)
    assert json.loads(out)["tagger"]["sources"] == ["mean states"]
