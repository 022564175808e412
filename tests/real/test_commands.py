"""Every command with a real model: each ends well, no call fails, no answer stays unread, quotations are literal.

``make test-real FOLDER=...`` runs these tests on a local model, ``make test-real MODEL=openai:NAME URL=...`` on a
server's. They take minutes and judge no answer: what a model says is measured elsewhere.
"""

import json
import os
import sqlite3
from pathlib import Path

import pytest

from climassay.grounding.quotations import is_quoted
from command_line import done, json_of

MODEL, URL = os.environ.get("CLIMASSAY_REAL_MODEL", ""), os.environ.get("CLIMASSAY_REAL_URL")
IS_LOCAL = MODEL.startswith("local:")
SERVER = () if URL is None else ("--base-url", URL)
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not MODEL, reason="$CLIMASSAY_REAL_MODEL names no model")]
only_local = pytest.mark.skipif(not IS_LOCAL, reason="a server shows no hidden states and is not trained")
FALSE, TRUE = "Volcanoes emit more CO2 than humans.", "Carbon dioxide absorbs infrared radiation."


TEXTS = {
    "notes": """
# Carbon dioxide

Volcanoes on land and under the sea emit about 0.3 to 0.4 GtCO2 per year. That is about one per cent of the 37 GtCO2 per
year that are released from fossil fuels and cement.

# Radiation

Carbon dioxide absorbs infrared radiation that the Earth emits. More carbon dioxide raises the level from which
radiation escapes to space. Because that level is colder, it emits less, and the surface warms.

# Aerosols

Sulfate aerosols reflect sunlight and cool the surface. They stay in the lower atmosphere for days, and in the
stratosphere for a year or two.
""",
    "pamphlet": "# The truth\n\nA single volcano emits more CO2 than all cars. Carbon dioxide is only a trace gas.\n",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Workspace with two short documents; $CLIMASSAY_REAL_WORKSPACE keeps it, and its answers, for a later run."""
    import climassay

    folder = os.environ.get("CLIMASSAY_REAL_WORKSPACE") or tmp_path_factory.mktemp("real")
    files = tmp_path_factory.mktemp("documents")
    for name, text in TEXTS.items():
        file = files / f"{name}.md"
        file.write_text(text, encoding="utf-8")
        climassay.add_documents(name, file, workspace=folder)
    return folder


@pytest.fixture
def command(climassay, place):
    """Runs a command of the model and returns its JSON; a failed call among its answers is an error."""

    def run(name, *arguments, option="--model", code=0):
        before = _last_answer(place)
        # The file of an experiment or recipe names its model itself.
        model = (option, MODEL, *SERVER) if option else ()
        told = climassay(name, *arguments, *model, "--workspace", place, "--json")
        assert told[0] == code, told[2]
        failures = _failures(place, before)
        assert not failures, failures
        return json.loads(told[1])

    return run


def _answers(place, query, *values):
    with sqlite3.connect(f"{place}/records.sqlite") as database:
        return database.execute(query, values).fetchall()


def _last_answer(place):
    if not Path(place, "records.sqlite").is_file():
        return 0
    return _answers(place, "select coalesce(max(id), 0) from answers")[0][0]


def _failures(place, after):
    """Errors of the answers after one, without those of a server's first refusal, which a second attempt mends."""
    return [
        error for (error,) in _answers(place, "select error from answers where id > ? and error is not null", after)
    ]


def _quotations_are_literal(transcript):
    passages = {source["number"]: source["passage"]["text"] for source in transcript["sources"]}
    opinions = [opinion for held in transcript["rounds"] for opinion in held["opinions"]]
    for view in (transcript["verdict"], *opinions):
        assert all(is_quoted(quotation["text"], passages[quotation["passage"]]) for quotation in view["quotations"])


@pytest.mark.skipif(IS_LOCAL, reason="what a server can do is learned")
def test_what_the_server_can_do_is_learned(climassay, place):
    done(climassay("models check", MODEL, *SERVER, "--workspace", place))


def test_a_question_is_answered_with_citations(command):
    answer = command("ask", "Why does carbon dioxide warm the Earth?", "-c", "notes", "-k", "2")
    assert answer["sentences"]


def test_three_advocates_debate_a_claim_for_two_rounds(command):
    advocates = ("-c", "notes", "--adversary", "pamphlet", "--plain")
    transcript = command("check", FALSE, *advocates, "--rounds", "2", "-k", "2", "--split", "whole", "--force")
    assert transcript["verdict"]["outcome"] in ("verdict", "not enough information")
    assert transcript["failures"] == 0
    assert len(transcript["rounds"][0]["opinions"]) == 3
    _quotations_are_literal(transcript)


def test_the_claims_of_a_file_are_checked_and_scored(command, tmp_path):
    file, transcripts = tmp_path / "claims.csv", tmp_path / "transcripts.jsonl"
    file.write_text(f'claim,verdict\n"{FALSE}",incorrect\n"{TRUE}",correct\n', encoding="utf-8")
    options = ("--truth", "verdict", "--scale", "binary", "-c", "notes", "-k", "2", "--rounds", "1")
    command("factcheck run", file, *options, "--transcripts", transcripts)
    checked = [json.loads(line) for line in transcripts.read_text(encoding="utf-8").splitlines()]
    assert [transcript["verdict"]["error"] for transcript in checked] == [None, None]
    for transcript in checked:
        _quotations_are_literal(transcript)


def test_a_text_is_read_sentence_by_sentence(command, tmp_path):
    file = tmp_path / "text.txt"
    file.write_text(f"{FALSE} {TRUE}", encoding="utf-8")
    checked = command("check-text", file, "-c", "notes", "-k", "2", option="--judge")
    assert len(checked["sentences"]) == 2


@pytest.mark.parametrize("scoring", ["likelihood", "letter"])
def test_choices_are_read(command, tmp_path, scoring):
    predictions = tmp_path / "predictions.jsonl"
    command("evaluate mcq", "primer", "--limit", "3", "--scoring", scoring, "--predictions", predictions)
    rows = [json.loads(line) for line in predictions.read_text(encoding="utf-8").splitlines()]
    assert len(rows) == 3
    assert all(row["position"] is not None for row in rows), "an answer is unread"


@only_local
def test_choices_are_scored_by_their_texts(command):
    command("evaluate mcq", "primer", "--limit", "2", "--scoring", "text", "--scoring", "text-pmi")


def test_all_kinds_of_question_are_asked_in_all_settings(command, tmp_path):
    file = tmp_path / "experiment.toml"
    url = f'base_url = "{URL}"\n' if URL else ""
    file.write_text(
        'name = "real"\nbenchmarks = ["primer"]\ntasks = ["mcq", "freeform", "cloze"]\n'
        'settings = ["default", "few-shot:primer", "rag:notes"]\nlimit = 1\nscoring = "letter"\n'
        f'[[model]]\nname = "{MODEL}"\n{url}',
        encoding="utf-8",
    )
    result = command("evaluate run", file, option=None)
    assert result


def test_questions_are_written_screened_and_decided_on(command, climassay, place, tmp_path):
    file = tmp_path / "recipe.toml"
    url = f'base_url = "{URL}"\n' if URL else ""
    file.write_text(
        f'name = "real"\ncollections = ["notes"]\n[writer]\nmodel = "{MODEL}"\n{url}'
        "[counts]\nmcq = 1\nfreeform = 1\n[contexts]\nmax_passages = 0\n[stop]\ndrafts = 2\n",
        encoding="utf-8",
    )
    result = command("generate run", file, option=None)
    assert result


def test_texts_are_ranked_by_prompts(command, tmp_path):
    file = _summaries(tmp_path)
    ranked = command(
        "judge rank", file, "--aspect", "fluency", "--method", "pairs", "--group", "group", "--limit-groups", "2"
    )
    assert ranked


@only_local
def test_a_probe_is_trained_and_ranks(command, tmp_path):
    file, probe = _summaries(tmp_path), tmp_path / "probe.safetensors"
    options = ("--aspect", "fluency", "--group", "group", "--label", "label", "--layer", "-8")
    command("judge train", file, *options, "--output", probe)
    assert probe.is_file()


def _summaries(folder):
    """Twelve groups of three texts, the worse ones with their words in disorder."""
    lines = ["group,text,label"]
    for group in range(12):
        words = f"The glacier lost {group + 2} metres of ice between two summers".split()
        for label in range(3):
            disordered = words if label == 2 else [*words[label + 3 :], *words[: label + 3]][:: 1 if label else -1]
            lines.append(f"g{group},{' '.join(disordered)}.,{label}")
    file = folder / "texts.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


def test_a_draft_is_read_for_certainty(command, tmp_path):
    file = tmp_path / "draft.md"
    file.write_text("# Ice\n\nIt is likely (90%) that the glacier melts (hihg confidence).\n", encoding="utf-8")
    (checked,) = command("confidence lint", file, code=1)["files"]
    # The rules find the misspelt level, whatever the model finds.
    assert checked["by_rule"]["misspelt-term"] == 1


def test_topics_are_named(command, tmp_path):
    subjects = ("sea level", "ice sheet", "glacier", "drought", "rainfall", "heatwave", "forest", "crop yield")
    lines = [
        f"The {subject} of region {n} will change by {n} per cent (high confidence)."
        for subject in subjects
        for n in range(6)
    ]
    file, statements, topics = (tmp_path / name for name in ("report.md", "statements.jsonl", "topics.json"))
    file.write_text("# Changes\n\n" + "\n\n".join(lines) + "\n", encoding="utf-8")
    command("confidence extract", file, "--output", statements, option=None)
    named = ("--topics", "3", "--min-cluster-size", "4", "--output", topics)
    assert command("confidence topics", statements, *named)


def test_questions_are_judged_valid_or_not(command, tmp_path):
    file = tmp_path / "questions.csv"
    file.write_text(
        "question,answer,context,valid\n"
        "What melts in summer?,The glacier,The glacier melts in summer.,1\n"
        "What rises?,Bread,The sea level rises.,0\n",
        encoding="utf-8",
    )
    judged = command("generate validate evaluate", f"prompted:{MODEL}", file, *SERVER, option=None)
    assert judged


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The primer as tasks of lm-evaluation-harness and Inspect."""
    from climassay.integrations import publish_benchmark

    folder = tmp_path_factory.mktemp("published") / "primer"
    publish_benchmark("primer", folder)
    return folder


def test_a_task_of_the_harness_is_run(command, published):
    task = ("climassay_primer_mcq_letter_base", "--include-path", published / "lm_eval", "--chat-template")
    assert command("evaluate lm-eval", *task, "--limit", "2")


def test_a_task_of_inspect_is_run(command, published):
    assert command("evaluate inspect", f"{published / 'inspect_tasks.py'}@mcq", "--limit", "2")


@only_local
def test_a_statement_is_inserted_among_those_of_known_level(command, tmp_path):
    levels = ("low", "medium", "high", "very high")
    anchors = tmp_path / "anchors.jsonl"
    file = tmp_path / "known.md"
    file.write_text(
        "# Ice\n\n" + "".join(f"Glacier {n} melts ({levels[n % 4]} confidence). " for n in range(24)), encoding="utf-8"
    )
    command("confidence extract", file, "--output", anchors, option=None)
    options = ("--anchors", anchors, "--train-items", "16", "--layer", "-8")
    assert command("confidence tag insert", "Sea level will rise for centuries.", *options)


def test_answers_are_marked_by_a_judge(command, tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text(
        "question,reference,answer\n"
        "What melts?,The glacier melts in summer.,Glaciers melt when summers are warm.\n"
        "What rises?,The sea level rises.,Bread rises in the oven.\n",
        encoding="utf-8",
    )
    scored = command("metrics score", file, "--metric", "judged_accuracy", option="--judge")
    assert scored


@only_local
def test_an_adapter_is_trained(climassay, place):
    options = ("--limit", "4", "--epochs", "1", "--rank", "4", "--max-length", "256", "--replace")
    result = climassay(
        "tune finetune", "primer", "--output", "real", "--model", MODEL, *options, "--workspace", place, "--json"
    )
    assert json_of(result)
