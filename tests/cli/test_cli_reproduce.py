"""``climassay reproduce``: the papers' tables with a model of ours, from the questions to the finished table."""

import csv
from pathlib import Path

import pytest

from climassay import evaluation, reproduce_climaqa
from climassay.evaluation import has_published_questions
from climassay.questions import read_questions
from climassay.reproduction.climaqa import climaqa_tables
from climassay.workspace import Workspace
from command_line import json_of, refused
from debate_tables import make_collection
from scripted_model import ScriptedModel

LEVELS = {"BASE": 126, "REASONING": 72, "HYPOTHETICAL": 47}
OPTIONS = "\n--------------------\n".join(f"{letter}) state {letter}" for letter in "abcd")


@pytest.fixture(scope="module")
def gold(tmp_path_factory):
    """A folder as the authors' with made-up questions, as many of each kind and level as ClimaQA-Gold has."""
    folder = tmp_path_factory.mktemp("climaqa_gold")
    choices = [
        (
            f"What is the state of sample {number} at level {level}?",
            OPTIONS,
            "abcd"[number % 4],
            f"Text {number}.",
            level,
        )
        for level, count in LEVELS.items()
        for number in range(count)
    ]
    written = [
        (f"Why does {level} process {number} happen?", f"Because of heat {number}.", f"Text {number}.", level)
        for level, count in {"BASE": 54, "REASONING": 52, "HYPOTHETICAL": 55}.items()
        for number in range(count)
    ]
    cloze = [(f"In sample {number} the <MASK> rises.", "temperature", f"Text {number}.") for number in range(160)]
    for name, headings, rows in (
        ("mcq", ("Question", "Options", "Answer", "Context", "Complexity"), choices),
        ("ffq", ("Question", "Answer", "Context", "Complexity"), written),
        ("cloze", ("Question", "Answer", "Context"), cloze),
    ):
        (folder / name).mkdir()
        with (folder / name / f"{name}_benchmark.csv").open("w", newline="", encoding="utf-8") as lines:
            csv.writer(lines).writerows([headings, *rows])
    return folder


@pytest.fixture
def model():
    """A model that always chooses b, and writes one word."""
    return ScriptedModel(
        choose=lambda _, options: next(option for option in options if option.strip().lower().startswith("b")),
        write=lambda _, schema: "temperature",
        name="local:scripted",
    )


def test_published_tables_have_the_paper_s_figures():
    tables = climaqa_tables()
    assert list(tables) == ["3", "5", "6", "7"]
    rows = {row.system: row.scores for row in tables["3"].published}
    assert rows["gpt-4o-rag-source"] == pytest.approx(
        {"Base": 95.77, "Reason": 91.67, "Hypo": 86.52, "Overall": 92.79, "EM": 71.88, "PS": 0.94}
    )
    assert rows["gemini-1.5-flash-long-cxt-held-out"]["EM"] == pytest.approx(46.88)
    freeform = {row.system: row.scores for row in tables["5"].published}
    assert freeform["mistral-7b-cp-held-out"]["BLEU O"] == pytest.approx(0.221)
    assert freeform["llama3-70b-fs"]["FA H"] == pytest.approx(0.78)
    assert len(tables["7"].published) == 5
    assert tables["3"].published_n == {"Base": 126, "Reason": 72, "Hypo": 47, "Overall": 245, "EM": 160, "PS": 160}


def test_table_3_is_finished_with_a_model_and_a_collection(gold, model, tmp_path):
    workspace = tmp_path / "w"
    make_collection(Workspace.open(workspace), "books", ("Samples", "The state of sample 1 is warm."), title="A Book")
    result = reproduce_climaqa(
        tables=["3"],
        models=model,
        gold=str(gold),
        source="books",
        limit=8,
        workspace=workspace,
        output=tmp_path / "out",
    )
    [table] = result.paper_tables
    ours = {row.system: row.scores for row in table.ours}
    assert set(ours) == {"scripted", "scripted-fs", "scripted-rag-source", "best constant answer"}
    right = [question.correct == 1 for question in _sampled(gold, 8, "mcq")]
    assert ours["scripted"]["Overall"].value == pytest.approx(100 * sum(right) / 8)
    assert ours["scripted"]["Overall"].n == 8
    assert ours["scripted"]["EM"].value == 100
    assert ours["scripted"]["PS"].value == pytest.approx(1, abs=1e-6)
    assert list(table.not_comparable) == ["PS"], "the questions are the paper's, and the encoder is another one"
    assert any("at most 8 questions" in sentence for sentence in table.differences)
    assert any("--held-out" in sentence for sentence in table.differences)
    [books] = result.more_tables
    assert sum(int(row[1]) for row in books.rows) == 16
    assert result.figures[0].title.startswith("Figure 5")
    assert dict(result.facts)["Model local:scripted"].startswith(model.fingerprint)
    assert (tmp_path / "out" / "table-3.tex").exists()
    answered = len(model.options) + len(model.texts)
    again = reproduce_climaqa(tables=["3"], models=model, gold=str(gold), source="books", limit=8, workspace=workspace)
    assert len(model.options) + len(model.texts) == answered, "a second run asks for nothing"
    assert again.rows() == result.rows()


def _sampled(gold, limit, kind):
    plan = evaluation.ExperimentPlan(
        "p", (evaluation.BenchmarkSpec("gold", (str(gold),)),), (), (), tasks=("mcq", "cloze"), limit=limit
    )
    return evaluation.read_benchmark(plan.benchmarks[0], plan).of_kind(kind)


def test_other_questions_are_marked_as_not_comparable(gold, model, tmp_path):
    result = reproduce_climaqa(
        tables=["6"], models=model, silver=str(gold / "cloze"), limit=3, workspace=tmp_path / "w"
    )
    [table] = result.paper_tables
    assert set(table.not_comparable) == {"EM", "PS"}
    assert all("not those of the paper" in reason for reason in table.not_comparable.values())
    assert [row.system for row in table.ours] == ["scripted", "best constant answer"]


def test_failed_answers_are_counted_in_the_table(gold, tmp_path):
    failing = ScriptedModel(
        choose=lambda prompt, options: RuntimeError("no luck") if "REASONING" in prompt else options[0], name="local:f"
    )
    result = reproduce_climaqa(tables=["3"], models=failing, gold=str(gold / "mcq"), limit=10, workspace=tmp_path / "w")
    assert any("of ours failed and count as wrong" in sentence for sentence in result.paper_tables[0].differences)


def test_questions_are_the_paper_s_by_their_files_or_by_their_number(gold):
    questions = read_questions(gold).questions
    assert has_published_questions("gold", questions)
    assert not has_published_questions("gold", questions[:-1])
    assert not has_published_questions("silver", questions)
    assert not has_published_questions("gold", ())
    few = questions[:3]
    assert has_published_questions("gold", few, ["hub:UCSD-GENIE/ClimaQA/Gold"])
    assert has_published_questions("gold", few, ["hub:UCSD-GENIE/ClimaQA/climaqa_gold/mcq/mcq_benchmark.csv"])
    assert not has_published_questions("gold", few, ["hub:UCSD-GENIE/ClimaQA/Silver"])
    assert not has_published_questions("gold", few, ["hub:UCSD-GENIE/ClimaQA/Gold", "mine.csv"])


def test_an_estimate_asks_no_model(gold, climassay, tmp_path):
    estimate = json_of(
        climassay(
            "reproduce climaqa --table 5 --estimate --json --limit 10", "--gold", gold, "-m", "openai:absent",
            "--price-in", 1, "--price-out", 2, "--scoring", "letter", "-w", tmp_path / "w",
        )
    )  # fmt: skip
    default, few_shot = estimate["parts"]
    assert (default["calls"], few_shot["calls"]) == (10, 10)
    assert few_shot["prompt_tokens"] > default["prompt_tokens"]
    assert default["cost"] == pytest.approx((default["prompt_tokens"] + 2 * default["completion_tokens"]) / 1e6)


def test_a_model_with_an_adapter_has_the_paper_s_rows(gold, tmp_path, monkeypatch):
    folders = {"silver-scripted": tmp_path / "silver-scripted", "books": tmp_path / "books"}
    for folder in folders.values():
        folder.mkdir()
        (folder / "adapter_config.json").write_text("{}")
    adapters = []

    def load(name, options, **_):
        adapters.append(Path(options.adapter).name)
        adapted = ScriptedModel(write=lambda _, schema: "temperature", name=name)
        adapted.fingerprint = f"{len(adapters)}" * 64
        return adapted

    monkeypatch.setattr("climassay.api.benchmarks.load_model", load)
    result = reproduce_climaqa(
        tables=["3"],
        models=ScriptedModel(write=lambda _, schema: "pressure"),
        gold=str(gold / "cloze"),
        fine_tuned=str(tmp_path / "silver-{model}"),
        continued_pretraining=str(tmp_path / "books"),
        limit=3,
        workspace=tmp_path / "w",
    )
    ours = {row.system: row.scores["EM"] for row in result.paper_tables[0].ours}
    assert adapters == ["silver-scripted", "books"]
    assert ours["scripted"].value == 0
    assert ours["scripted-ft-silver"].value == ours["scripted-cp-held-out"].value == 100
    assert any("silver-{model}" in sentence for sentence in result.paper_tables[0].differences)


@pytest.mark.parametrize(
    ("options", "word"),
    [
        (("--table", "4"), "3, 5, 6, 7"),
        (("--table", "3", "--source", "nothing"), "nothing"),
        (("--table", "3", "--gold", "absent.csv"), "absent.csv"),
    ],
)
def test_bad_input_is_one_sentence(gold, climassay, tmp_path, options, word):
    questions = () if "--gold" in options else ("--gold", gold)
    assert word in refused(climassay("reproduce climaqa", *options, *questions, "-w", tmp_path / "w"), alone=False)
