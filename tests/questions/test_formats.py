"""Files of questions in every format, sets of the hub, and types of questions."""

import gzip
import io
import json
from contextlib import suppress
from pathlib import Path

import pytest

from climassay.errors import InputError
from climassay.generation.publishing import DatasetEntry, climaqa_row
from climassay.questions import TYPES, Question, question_row, read_questions
from climassay.questions.types import FOLDER

DASHES = "-" * 20
SHARED = Path(__file__).parents[3] / "shared" / "data"


def climaqa_rows():
    return [
        {
            "Question": "Which gas is the main greenhouse gas in Earth's atmosphere?",
            "Options": f"a) Argon\n{DASHES}\nb) Water vapour\n{DASHES}\nc) Oxygen\n{DASHES}\nd) Nitrogen",
            "Answer": "b",
            "Context": "Water vapour absorbs most.",
            "Complexity": "BASE",
            "Validation": "VALID",
        },
        {
            "Question": "And if it doubled?", "Options": "a) Cooler\nb) Warmer", "Answer": "b) Warmer", "Context": "",
            "Complexity": "Hypothetical", "Validation": "",
        },
        {
            "Question": "Rejected by experts?", "Options": "a) x\nb) y", "Answer": "a", "Context": "",
            "Complexity": "BASE", "Validation": "INVALID",
        },
    ]  # fmt: skip


def write_csv(path, rows):
    import csv

    with path.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def test_climaqa_table_as_csv_jsonl_parquet_and_gzip(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    rows = climaqa_rows()
    files = [write_csv(tmp_path / "q.csv", rows)]
    files.append(tmp_path / "q.jsonl")
    files[-1].write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    files.append(tmp_path / "q.json")
    files[-1].write_text(json.dumps(rows), encoding="utf-8")
    files.append(tmp_path / "q.parquet")
    pq.write_table(pa.Table.from_pylist(rows), files[-1])
    files.append(tmp_path / "q.csv.gz")
    files[-1].write_bytes(gzip.compress(files[0].read_bytes(), mtime=0))
    sets = [read_questions(file) for file in files]
    for found in sets:
        assert found.questions == sets[0].questions
        first, second = found.questions
        assert first.kind == "mcq"
        assert first.options == ("Argon", "Water vapour", "Oxygen", "Nitrogen")
        assert (first.correct, first.answer, first.level) == (1, "Water vapour", "base")
        assert (second.correct, second.level, second.context) == (1, "hypothetical", None)
        assert len(found.skipped) == 1
        assert "row 3" in found.skipped[0]


def test_climaqa_freeform_and_cloze(tmp_path):
    rows = [
        {"Question": "What warms?", "Answer": "The air does.", "Context": "c", "Complexity": "REASONING"},
        {"Question": "The <blank> layer shields.", "Answer": "ozone", "Context": "c", "Complexity": ""},
        {"Question": "Two <MASK> and <mask>.", "Answer": "gaps", "Context": "c", "Complexity": ""},
    ]
    found = read_questions(write_csv(tmp_path / "q.csv", rows))
    assert [question.kind for question in found.questions] == ["freeform", "cloze"]
    assert found.questions[0].level == "reasoning"
    assert found.questions[1].question == "The <MASK> layer shields."
    assert "exactly one" in found.skipped[0]


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared data folder is absent")
def test_pira_has_five_options_and_its_letter_names_the_correct_text():
    import csv

    found = read_questions(SHARED / "pira_mcq.csv")
    with (SHARED / "pira_mcq.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(found.questions) == len(rows) == 225
    assert {len(question.options) for question in found.questions} == {5}
    agreeing = [
        question.answer == " ".join(row["correct"].split()) for question, row in zip(found.questions, rows, strict=True)
    ]
    assert sum(agreeing) >= 224
    assert all(question.context for question in found.questions)
    assert len({question.id for question in found.questions}) == 225


def test_own_format_checks_each_row(tmp_path):
    rows = [
        {"id": "a", "kind": "mcq", "question": "Q?", "options": ["x", "y"], "answer": "b", "level": "base"},
        {"id": "a", "kind": "mcq", "question": "Q2?", "options": {"a": "x", "b": "y"}, "answer": "x"},
        {"id": "c", "kind": "mcq", "question": "Q?", "options": ["x", "x"], "answer": "a"},
        {"id": "d", "kind": "mcq", "question": "Q?", "options": ["x", "y"], "answer": "e"},
        {"id": "e", "kind": "mcq", "question": "Q?", "options": ["x"], "answer": "a"},
        {"id": "f", "kind": "essay", "question": "Q?", "answer": "a"},
        {"id": "g", "kind": "freeform", "question": "", "answer": "a"},
        {"id": "h", "kind": "freeform", "question": "Q?", "answer": "a", "level": "expert"},
        {"id": "i", "kind": "mcq", "question": "Q?", "options": 3, "answer": "a"},
    ]
    file = tmp_path / "q.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    found = read_questions(file)
    assert [question.id for question in found.questions] == ["a", "a-2"]
    assert [question.correct for question in found.questions] == [1, 0]
    reasons = " ".join(found.skipped)
    for word in ("twice", "any of the 2 options", "at least two", "essay", "empty", "expert", "instead of a list"):
        assert word in reasons


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("missing.csv", None, "no file at"),
        ("empty.csv", b"", "no rows"),
        ("other.csv", b"x,y\n1,2\n", "none of the known"),
        ("wide.csv", b'"many\nlines",' + b"x," * 2000 + b"y\n" + b"1," * 2001 + b"2\n", "many lines"),
        ("broken.jsonl", b'{"question": "Q?"\n', "not valid JSON"),
        ("list.json", b"[1, 2]", "not an object"),
        ("binary.csv", b"\x00\x01\x02" * 500, "UTF-8"),
        ("cut.parquet", b"PAR1 and nothing else", "Parquet"),
        ("cut.csv.gz", gzip.compress(b"Question,Answer\na,b\n" * 50, mtime=0)[:-20], "cannot be read"),
        ("bad.csv", b"Question,Options,Answer\nQ?,a) x,a\n", "no usable question"),
    ],
)
def test_bad_files_give_one_sentence(tmp_path, name, content, word):
    file = tmp_path / name
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_questions(file)
    assert word in str(caught.value)
    assert "\n" not in str(caught.value)


PIRA = {
    "id_qa": "A1", "question_en_origin": "What rises?", "answer_en_origin": "The sea.", "abstract": "The sea rises.",
    "answer_in_text": "1.0", "question_meaningful": "5.0", "answer_equivalent": "4.0",
}  # fmt: skip


@pytest.mark.parametrize(
    ("rating", "value", "reason"),
    [
        ("answer_in_text", "0.0", "not in the text"),
        ("question_meaningful", "2.0", "little sense"),
        ("answer_equivalent", "1.0", "answered differently"),
        ("answer_equivalent", "often", "is not a number"),
    ],
)
def test_freeform_of_pira_is_read_and_what_its_raters_refused_is_not(tmp_path, rating, value, reason):
    rows = [PIRA, PIRA | {"id_qa": "A2", rating: value}, PIRA | {"id_qa": "A3", rating: ""}]
    found = read_questions(write_csv(tmp_path / "q.csv", rows))
    assert [one.id for one in found.questions] == ["A1", "A3"]
    assert found.questions[0].kind == "freeform"
    assert (found.questions[0].answer, found.questions[0].context) == ("The sea.", "The sea rises.")
    assert reason in found.skipped[0]


def test_long_form_questions_are_read_from_json_from_cells_and_from_plain_lines(tmp_path):
    own = {"question": "Why?", "audience": "a pupil", "rubric": [{"text": "Says why", "weight": 2, "level": "should"}]}
    (tmp_path / "own.jsonl").write_text(json.dumps(own), encoding="utf-8")
    cells = [
        {"question_id": "c1", "question": "How?", "rubric": "- [must] Says how (weight 3)\n2. should: Gives a number"},
        {"question_id": "c2", "question": "Who?", "rubric": json.dumps(["Names people"])},
        {"question_id": "c3", "question": "When?", "rubric": "- maybe: \n- (must)"},
    ]
    write_csv(tmp_path / "clinb.csv", cells)
    (tmp_path / "plain.txt").write_text("Why is the sky blue?\n\nIs it, always?\n", encoding="utf-8")
    write_csv(tmp_path / "plain.csv", [{"question": "Why?"}])
    write_csv(tmp_path / "audience.csv", [{"question": "Why?", "audience": "pupils", "reference_answer": "Because."}])
    write_csv(tmp_path / "kind.csv", [{"question": "Why?", "kind": "longform", "section": "2"}])
    [one] = read_questions(tmp_path / "own.jsonl").questions
    assert (one.kind, one.audience, one.answer) == ("longform", "a pupil", "")
    assert [(c.text, c.weight, c.level) for c in one.rubric] == [("Says why", 2.0, "should")]
    found = read_questions(tmp_path / "clinb.csv")
    assert [q.id for q in found.questions] == ["c1", "c2"]
    first, second = found.questions[0].rubric
    assert (first.text, first.weight, first.level) == ("Says how", 3.0, "must")
    assert (second.text, second.weight, second.level) == ("Gives a number", 1.0, "should")
    assert "criterion 2 of the rubric has no text" in found.skipped[0]
    assert [q.question for q in read_questions(tmp_path / "plain.txt").questions] == [
        "Why is the sky blue?",
        "Is it, always?",
    ]
    assert read_questions(tmp_path / "plain.csv").questions[0].rubric == ()
    [asked] = read_questions(tmp_path / "audience.csv").questions
    assert (asked.kind, asked.audience, asked.answer, asked.rubric) == ("longform", "pupils", "Because.", ())
    [asked] = read_questions(tmp_path / "kind.csv").questions
    assert (asked.kind, asked.section, asked.answer) == ("longform", "2", "")


@pytest.mark.parametrize(
    ("rubric", "word"),
    [
        ([{"text": "x", "weight": 0}], "above 0"),
        ([{"text": "x", "weight": "much"}], "above 0"),
        ([{"text": "x", "level": "may"}], "must or should"),
        ([{"weight": 1}], "no text"),
        (3, "instead of a list"),
    ],
)
def test_a_rubric_that_cannot_be_read_is_told_in_one_sentence(tmp_path, rubric, word):
    rows = [{"question": "Why?", "rubric": rubric}, {"question": "Good?", "rubric": ["Says so"]}]
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    found = read_questions(tmp_path / "q.jsonl")
    assert len(found.questions) == 1
    assert word in found.skipped[0]


huggingface_hub = pytest.importorskip("huggingface_hub")
errors = pytest.importorskip("huggingface_hub.errors")


@pytest.fixture
def hub(tmp_path, monkeypatch):
    """A hub with one dataset of two tables and a picture."""
    (tmp_path / "gold").mkdir()
    (tmp_path / "gold" / "cloze.csv").write_text("Question,Answer,Context\nThe <MASK> rises.,sea,x\n")
    (tmp_path / "gold" / "freeform.csv").write_text(
        "Question,Answer,Context,Complexity\nWhy?,So.,x,base\nHow?,,x,base\n"
    )
    (tmp_path / "picture.png").write_bytes(b"x")
    asked = []

    def snapshot_download(name, *, repo_type, allow_patterns):
        asked.append((name, repo_type, tuple(allow_patterns)))
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    return asked


def test_all_tables_of_a_dataset_are_one_set(hub):
    found = read_questions("hub:UCSD-GENIE/ClimaQA")
    assert [one.kind for one in found.questions] == ["cloze", "freeform"]
    assert found.name == "UCSD-GENIE/ClimaQA"
    assert found.skipped == ("freeform.csv, row 2: the field 'answer' is empty",)
    assert {request[:2] for request in hub} == {("UCSD-GENIE/ClimaQA", "dataset")}
    assert not any("py" in pattern for request in hub for pattern in request[2])


CLIMAQA_CARD = """---
configs:
- config_name: Gold
  data_files:
  - split: cloze
    path: "gold/cloze.csv"
  - split: ffq
    path:
    - "gold/freeform.csv"
- config_name: Silver
  data_files:
  - split: cloze
    path: silver/cloze.csv
---
# ClimaQA
"""


@pytest.fixture
def subsets(hub, tmp_path):
    """The hub's dataset with a card of two subsets, as the card of ClimaQA."""
    (tmp_path / "silver").mkdir()
    (tmp_path / "silver" / "cloze.csv").write_text("Question,Answer,Context\nThe <MASK> melts.,ice,x\n")
    (tmp_path / "README.md").write_text(CLIMAQA_CARD)
    return hub


def test_a_subset_of_a_dataset_is_not_mixed_with_another(subsets):
    assert [one.answer for one in read_questions("hub:UCSD-GENIE/ClimaQA/Gold").questions] == ["sea", "So."]
    assert subsets[-1][2] == ("gold/cloze.csv", "gold/freeform.csv"), "no other table is downloaded"
    assert [one.answer for one in read_questions("hub:UCSD-GENIE/ClimaQA/Silver").questions] == ["ice"]
    assert [one.answer for one in read_questions("hub:UCSD-GENIE/ClimaQA/Gold/ffq").questions] == ["So."]
    assert [one.answer for one in read_questions("hub:UCSD-GENIE/ClimaQA/silver/cloze.csv").questions] == ["ice"]


@pytest.mark.parametrize(
    ("name", "word"),
    [("hub:UCSD-GENIE/ClimaQA", "Gold, Silver"), ("hub:UCSD-GENIE/ClimaQA/Gold/mcq", "no split 'mcq'")],
)
def test_a_dataset_with_subsets_needs_one_named(subsets, name, word):
    with pytest.raises(InputError, match=word):
        read_questions(name)


@pytest.mark.parametrize(
    "files",
    [
        "data_files: gold/*.csv",
        "data_files: [gold/cloze.csv, gold/freeform.csv]",
        "data_files: {train: gold/cloze.csv, test: [./gold/freeform.csv]}",
        "data_files: [{split: train, path: /gold/*.csv}, {split: out, path: ../../outside/*.csv}]",
        "data_dir: gold",
    ],
)
def test_a_card_lists_files_in_several_forms(hub, tmp_path, files):
    card = f"---\nconfigs:\n- config_name: first\n  default: true\n  {files}\n- config_name: second\n---\n"
    (tmp_path / "README.md").write_text(card)
    for name in ("hub:a/b", "hub:a/b/first"):
        assert [one.answer for one in read_questions(name).questions] == ["sea", "So."]


@pytest.mark.parametrize("card", ["---\nconfigs: [a\n---\n", "---\nconfigs: many\n---\n", "no metadata", ""])
def test_a_card_without_subsets_leaves_all_tables(hub, tmp_path, card):
    (tmp_path / "README.md").write_text(card)
    assert len(read_questions("hub:a/b").questions) == 2


@pytest.mark.parametrize(
    ("name", "word"), [("hub:", "hub:OWNER/NAME"), ("hub:onlyowner", "hub:OWNER/NAME"), ("hub:a/b/none*", "no table")]
)
def test_bad_names_are_told(hub, name, word):
    with pytest.raises(InputError, match=word):
        read_questions(name)


def _client_error():
    """A lost connection as the package's HTTP client tells it, which need not be an OSError."""
    client_base = errors.HfHubHTTPError.__mro__[1]
    return type("ConnectError", (client_base,), {})("no route")


@pytest.mark.parametrize(
    "error",
    [OSError("no route"), _client_error(), errors.OfflineModeIsEnabled("offline"), ValueError("odd")],
    ids=["system", "client", "offline", "value"],
)
def test_an_unreachable_hub_is_told(monkeypatch, error):
    def unreachable(*args, **options):
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", unreachable)
    with pytest.raises(InputError, match="could not be reached"):
        read_questions("hub:a/b")


STATEMENTS = [
    {"id": "a", "kind": "true_false", "question": "Warm air holds more vapour than cold air.", "answer": "SUPPORTS"},
    {"id": "b", "kind": "true_false", "question": "Sea ice that melts raises the sea level most.", "answer": "REFUTES"},
    {"id": "c", "kind": "true_false", "question": "Methane lives longer in the air than CO2.", "answer": "false"},
    {"id": "d", "kind": "true_false", "question": "Volcanic sulfate cools the surface.", "answer": "True"},
]  # fmt: skip


@pytest.fixture
def statements(tmp_path):
    file = tmp_path / "statements.jsonl"
    file.write_text("\n".join(map(json.dumps, STATEMENTS)), encoding="utf-8")
    return read_questions(file)


def test_no_file_outside_of_its_folder_knows_the_type():
    source = FOLDER.parents[1]
    files = [*source.rglob("*.py"), *source.rglob("*.j2")]
    knowing = {
        file.relative_to(source).as_posix() for file in files if "true_false" in file.read_text(encoding="utf-8")
    }
    # The commented recipe tells people that there is such a type.
    assert {name for name in knowing if "types/true_false/" not in name} == {"generation/recipe.py"}


def test_statements_are_read_with_the_words_that_files_have_for_true_and_false(statements):
    assert [one.correct for one in statements.questions] == [0, 1, 1, 0]
    assert {one.options for one in statements.questions} == {("True", "False")}
    assert statements.questions[1].answer == "False"
    with pytest.raises(InputError, match="neither true nor false"):
        TYPES["true_false"].parse("It rains.", "NOT ENOUGH INFO", ())


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        (" True.", 0), ("**False**", 1), ("The statement is false.", 1), ("True, although some call it false", 0),
        ("False. The statement is not correct", 1), ("False — it is not true that", 1), ("False - it is not so", 1),
        ("True or False: **False**", 1), ("True or false?", None), ("True? Not at all.", None),
        ("False is not right.", None),
        ("The statement that it is true is not supported.", None), ("True, not false.", 0),
        ("It is either true or false.", None), ("not true", None), ("It depends.", None), ("", None),
    ],
)  # fmt: skip
def test_what_a_model_writes_is_read_as_one_of_the_two_or_as_neither(text, choice):
    assert TYPES["true_false"].parse_choice(text, 2) == choice


def read_rows(tmp_path, *rows):
    file = tmp_path / "rows.jsonl"
    file.write_text("\n".join(json.dumps(row) for row in rows), encoding="utf-8")
    return read_questions(file)


KOPPEN = ["E", "A", "C", "B", "D"]


@pytest.mark.parametrize(
    ("fields", "options", "correct"),
    [
        ({"choices": ["oxygen", "nitrogen"], "answer": 1}, ("oxygen", "nitrogen"), 1),
        ({"choices": ["oxygen", "nitrogen"], "answer": "A"}, ("oxygen", "nitrogen"), 0),
        ({"options": ["oxygen", "nitrogen"], "answer": "B", "answer_index": 1}, ("oxygen", "nitrogen"), 1),
        ({"choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "B"}, ("x", "y"), 1),
        ({"options": {"text": ["x", "y", "z"], "label": ["1", "2", "3"]}, "answer": "3"}, ("x", "y", "z"), 2),
        ({"options": [{"label": "A", "text": "x"}, {"label": "B", "text": "y"}], "answer": "A"}, ("x", "y"), 0),
        ({"options": {"A": "x", "B": "y"}, "answer": "B"}, ("x", "y"), 1),
        ({"options": ["A. oxygen", "B. nitrogen"], "answer": "B"}, ("oxygen", "nitrogen"), 1),
        ({"options": ["(1) oxygen", "(2) nitrogen"], "answer": "2"}, ("oxygen", "nitrogen"), 1),
        ({"options": ["A. oxygen", "B. nitrogen"], "answer": "B. nitrogen"}, ("oxygen", "nitrogen"), 1),
        ({"options": ["a. m. hours", "p. m. hours"], "answer": "b"}, ("a. m. hours", "p. m. hours"), 1),
        ({"options": ["1.5 degrees", "2.5 degrees"], "answer": "a"}, ("1.5 degrees", "2.5 degrees"), 0),
        ({"options": ["mW", "MW", "kW"], "answer": "MW"}, ("mW", "MW", "kW"), 1),
        ({"options": ["Co", "CO"], "answer": "CO"}, ("Co", "CO"), 1),
        ({"options": KOPPEN, "correct": "b", "answer": "A"}, tuple(KOPPEN), 1),
        ({"options": KOPPEN, "correct": 1, "answer": "A"}, tuple(KOPPEN), 1),
        ({"options": KOPPEN, "answer": "b) A"}, tuple(KOPPEN), 1),
        ({"options": "a) oxygen\nb) nitrogen", "answer": "b"}, ("oxygen", "nitrogen"), 1),
        ({"options": "oxygen\nnitrogen", "answer": "nitrogen"}, ("oxygen", "nitrogen"), 1),
        ({"options": '["oxygen", "nitrogen"]', "answer": "b"}, ("oxygen", "nitrogen"), 1),
        ({"options": [1, 2.5], "answer": "b"}, ("1", "2.5"), 1),
        # Options in one cell, as users of spreadsheets write them.
        ({"options": "N2|O2|CO2", "answer": "CO2"}, ("N2", "O2", "CO2"), 2),
        ({"options": "N2; O2; CO2", "answer": "b"}, ("N2", "O2", "CO2"), 1),
        ({"options": "A) N2 B) O2 C) CO2", "answer": "C"}, ("N2", "O2", "CO2"), 2),
        ({"options": "A. N2, B. O2, C. CO2", "answer": "C"}, ("N2", "O2", "CO2"), 2),
        ({"options": "(1) 1.5 degrees (2) 2 degrees", "answer": 2}, ("1.5 degrees", "2 degrees"), 1),
        # Characters that look alike: a Cyrillic and a full-width letter, subscripts, quotation marks, composed accents.
        ({"options": ["N2", "O2", "CO2"], "answer": "\u0421"}, ("N2", "O2", "CO2"), 2),
        ({"options": ["N2", "CO2"], "answer": "\uff22\u200b"}, ("N2", "CO2"), 1),
        ({"options": ["N₂", "CO₂"], "answer": "CO2"}, ("N₂", "CO₂"), 1),
        ({"options": ["La Nin\u0303a", "El Nin\u0303o"], "answer": "El Niño"}, ("La Nin\u0303a", "El Nin\u0303o"), 1),
        ({"options": ["the Sun.", "Earth’s orbit."], "answer": "Earth's orbit"}, ("the Sun.", "Earth’s orbit."), 1),
        ({"options": ["N2", "CO2"], "answer": "Option B"}, ("N2", "CO2"), 1),
        ({"options": ["True", "False"], "answer": False}, ("True", "False"), 1),
        ({"choices": ["N2", "CO2"], "answer": 1.0}, ("N2", "CO2"), 1),
    ],
)  # fmt: skip
def test_options_and_keys_of_many_shapes_are_read(tmp_path, fields, options, correct):
    (question,) = read_rows(tmp_path, {"question": "Which?", **fields}).questions
    assert (question.options, question.correct, question.answer) == (options, correct, options[correct])


@pytest.mark.parametrize(
    ("table", "options", "correct"),
    [
        ("question,A,B,C,D,answer\nWhich?,N2,O2,CO2,Ar,C\n", ("N2", "O2", "CO2", "Ar"), 2),
        (" Question , Option A , Option-B ,Answer \nWhich?,N2,CO2,b\n", ("N2", "CO2"), 1),
        ("question,choice_1,choice_2,choice_3,label\nWhich?,N2,CO2,O2,2\n", ("N2", "CO2", "O2"), 1),
        ("question,option0,option1,correct_answer\nWhich?,N2,CO2,CO2\n", ("N2", "CO2"), 1),
        ("QUESTION,A,B,C,D,Correct\nWhich?,N2,CO2,,,B\n", ("N2", "CO2"), 1),
        ("question,A,B,C,answer\nWhich is sodium?,Na,NA,None,A\n", ("Na", "NA", "None"), 0),
        ("question,A,B,answer_index\nWhich?,N2,CO2,1\n", ("N2", "CO2"), 1),
        ("question,A,B,answer_index\nWhich?,N2,CO2,1.0\n", ("N2", "CO2"), 1),
        ("Question,Answer 1,Answer 2,Answer 3,Correct\nWhich?,N2,O2,CO2,2\n", ("N2", "O2", "CO2"), 1),
        ("prompt,A,B,answer_idx\nWhich?,N2,CO2,B\n", ("N2", "CO2"), 1),
        ("Question Text,A,B,answer_idx\nWhich?,N2,CO2,1\n", ("N2", "CO2"), 1),
        ("\u200bquestion,A,B,answer\nWhich?,N2,CO2,B\n", ("N2", "CO2"), 1),
        ("statement;label\nDas Meer kocht.;FALSCH\n", ("True", "False"), 1),
        ("statement;label\nLa mer est salée.;Vrai\n", ("True", "False"), 0),
        ("question,choices,answer\nWhich?,\"['N2', 'CO2']\",1\n", ("N2", "CO2"), 1),
        ("statement;label\nThe sea is boiling.;FALSE\n", ("True", "False"), 1),
    ],
)
def test_tables_of_spreadsheets_with_a_column_for_each_option(tmp_path, table, options, correct):
    (tmp_path / "q.csv").write_text(table, encoding="utf-8")
    (question,) = read_questions(tmp_path / "q.csv").questions
    assert (question.options, question.correct, question.answer) == (options, correct, options[correct])


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("question,A,B,answer\nWhich?,N2,CO2,1\n", ["'1'", "answer_index"]),
        ('question,A,B,C,answer\nWhich?,N2,CO2,O2,"A,C"\n', ["'A,C'"]),
        ("question,A,B,C,answer\nWhich?,N2,N2,O2,N2\n", ["'N2'", "2 options"]),
        # In the order of its own alphabet, the Cyrillic В is the third letter.
        ("question,A,B,C,answer\nWhich?,N2,CO2,O2,\u0412\n", ["\u0412"]),
        ("question,A,B,C,answer\nWhich?,N2,CO2,,C\n", ["'C'", "2 options"]),
        ("question,choices,answer\nWhich?,\"['2', '0', '5']\",0\n", ["index from 0 or the text"]),
        ("Which gas is it?,N2,CO2,B\nWhich ice?,sea,land,A\n", ["names of the columns"]),
    ],
)
def test_a_table_that_leaves_the_answer_open_is_refused(tmp_path, table, words):
    (tmp_path / "q.csv").write_text(table, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_questions(tmp_path / "q.csv")
    for word in words:
        assert word in str(caught.value)


def test_rows_inside_one_json_object_and_questions_as_arc_writes_them(tmp_path):
    arc = {"id": "m1", "answerKey": "B"}
    arc["question"] = {"stem": "Which?", "choices": [{"text": "N2", "label": "A"}, {"text": "CO2", "label": "B"}]}
    (tmp_path / "q.json").write_text(json.dumps({"version": "1", "data": [arc]}, indent=2), encoding="utf-8")
    (question,) = read_questions(tmp_path / "q.json").questions
    assert (question.id, question.question, question.answer) == ("m1", "Which?", "CO2")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"options": KOPPEN, "answer": "A"}, ["'A'", "correct"]),
        ({"options": KOPPEN, "correct": "a", "answer": "A"}, ["different options"]),
        ({"options": ["x", "y"], "answer": 1}, ["number 1", "answer_index"]),
        ({"choices": ["x", "y"], "answer": 2}, ["index 2", "0 to 1"]),
        ({"options": ["x", "y"], "answer": "A", "answer_index": 1}, ["different options"]),
        ({"options": ["mW", "MW"], "answer": "mw"}, ["'mw'"]),
        ({"options": ["x", "y"], "answer": "a) y"}, ["label", "text"]),
        ({"options": ["x", ["y"]], "answer": "a"}, ["'options'", "list"]),
        ({"options": ["x", None], "answer": "a"}, ["option is empty"]),
        ({"options": ["x", float("nan")], "answer": "a"}, ["option is empty"]),
        ({"options": ["x", True], "answer": "a"}, ["'options'", "truth value"]),
        ({"options": {"first": "x", "second": "y"}, "answer": "x"}, ["first, second"]),
        ({"choices": {"text": ["x", "y"], "label": ["A"]}, "answerKey": "A"}, ["'choices'"]),
        ({"options": ["x", "y"], "answer": ["a"]}, ["'answer'", "list"]),
        ({"options": ["x", "y"], "answer": None, "level": "base"}, ["'answer'", "empty"]),
        ({"answer": float("nan")}, ["'answer'", "empty"]),
        ({"answer": {"value": "x"}}, ["'answer'", "table"]),
        ({"answer": "x", "passage": ["p"]}, ["'passage'", "list"]),
        ({"label": 1}, ["label", "options"]),
    ],
)  # fmt: skip
def test_what_is_ambiguous_or_no_text_is_refused_by_name(tmp_path, fields, words):
    good = {"question": "Why?", "answer": "so"}
    found = read_rows(tmp_path, good, {"question": "Which?", **fields})
    assert len(found.questions) == 1
    assert found.skipped[0].startswith("row 2: ")
    for word in words:
        assert word in found.skipped[0]


@pytest.mark.parametrize(
    ("row", "options", "answer", "context"),
    [
        (
            {"distractor3": "argon", "distractor1": "neon", "correct_answer": "CH4", "support": "s"},
            {"CH4", "argon", "neon"},
            "CH4",
            "s",
        ),
        (
            {"Correct Answer": "10^-4", "Incorrect Answer 1": "10^-11", "Incorrect Answer 2": "A", "Subdomain": "x"},
            {"10^-4", "10^-11", "A"},
            "10^-4",
            None,
        ),
        (
            {"best_answer": "It is.", "correct_answers": ["Nothing."], "incorrect_answers": ["It grows.", "It dies."]},
            {"It is.", "It grows.", "It dies."},
            "It is.",
            None,
        ),
        (
            {"Best Answer": "w", "Best Incorrect Answer": "x", "Correct Answers": "w; v", "Incorrect Answers": "x; y"},
            {"w", "x", "y"},
            "w",
            None,
        ),
        (
            {"mc1_targets": {"choices": ["w", "x", "y"], "labels": [1, 0, 0]}, "mc2_targets": {}},
            {"w", "x", "y"},
            "w",
            None,
        ),
        ({"opa": "w", "opb": "x", "opc": "y", "opd": "z", "cop": 2, "exp": "e"}, {"w", "x", "y", "z"}, "y", None),
        ({"article": "Long.", "options": ["w", "x", "y"], "answer": "C"}, {"w", "x", "y"}, "y", "Long."),
        ({"answer": False, "passage": "p"}, {"Yes", "No"}, "No", "p"),
        ({"answer": "TRUE"}, {"Yes", "No"}, "Yes", None),
        ({"А": "w", "В": "x", "С": "y", "D": "z", "answer": "В"}, {"w", "x", "y", "z"}, "x", None),
        ({"А": "w", "Б": "x", "В": "y", "Г": "z", "answer": "В"}, {"w", "x", "y", "z"}, "y", None),
        ({"Α": "w", "Β": "x", "Γ": "y", "answer": "Γ"}, {"w", "x", "y"}, "y", None),
    ],
    ids=[
        *("sciq", "gpqa", "truthfulqa", "truthfulqa csv", "truthfulqa mc1", "medmcqa", "race", "boolq", "truth value"),
        *("look-alike heads", "Russian heads", "Greek heads"),
    ],
)  # fmt: skip
def test_published_layouts_are_read_with_all_their_options(tmp_path, row, options, answer, context):
    (question,) = read_rows(tmp_path, {"question": "Which?", **row}).questions
    assert (question.kind, set(question.options), question.answer, question.context) == (
        "mcq",
        options,
        answer,
        context,
    )
    assert question.options[question.correct] == answer


def test_correct_options_of_published_layouts_do_not_stay_first(tmp_path):
    targets = {"choices": ["w", "x", "y", "z"], "labels": [1, 0, 0, 0]}
    rows = [{"question": f"Which of {number}?", "mc1_targets": targets} for number in range(40)]
    read = read_rows(tmp_path, *rows).questions
    assert {question.correct for question in read} == {0, 1, 2, 3}
    assert {question.answer for question in read} == {"w"}
    assert read == read_rows(tmp_path, *rows).questions


def test_openbookqa_names_its_question_a_stem(tmp_path):
    choices = {"text": ["a puppy", "a plant"], "label": ["A", "B"]}
    (question,) = read_rows(
        tmp_path, {"question_stem": "The sun feeds", "choices": choices, "answerKey": "B"}
    ).questions
    assert (question.question, question.answer) == ("The sun feeds", "a plant")


def test_indices_that_count_from_one_are_refused_unless_another_row_counts_from_zero(tmp_path):
    rows = [{"question": f"Which {index}?", "options": ["x", "y"], "answer_index": index} for index in (0, 1, 2)]
    with pytest.raises(InputError, match="count from 1"):
        read_rows(tmp_path, *rows[1:])
    assert len(read_rows(tmp_path, *rows).skipped) == 1


def test_columns_in_place_of_rows_are_refused(tmp_path):
    file = tmp_path / "columns.json"
    file.write_text(json.dumps({"question": ["Q one?", "Q2?"], "answer": ["x", "y"]}))
    with pytest.raises(InputError, match="list"):
        read_questions(file)


def test_notes_in_a_column_without_a_name_keep_no_question_from_being_read(tmp_path):
    file = tmp_path / "questions.csv"
    file.write_text("question,,id\nWhy do seas rise?,ask Ann,1\n", encoding="utf-8")
    assert [question.question for question in read_questions(file).questions] == ["Why do seas rise?"]


def test_levels_that_are_missing_are_no_levels(tmp_path):
    (question,) = read_rows(tmp_path, {"question": "Q?", "answer": "x", "level": float("nan")}).questions
    assert (question.level, question.answer) == (None, "x")


@pytest.mark.parametrize("options", [tuple(KOPPEN), ("Co", "CO", "C"), ("a", "b", "c"), ("x) y", "z", "a) x")])
def test_a_key_that_is_written_and_read_stays_where_it_is(tmp_path, options):
    for correct in range(len(options)):
        question = Question("q", "mcq", "Which?", options[correct], None, options, correct)
        for row in (question_row(question), climaqa_row(DatasetEntry(question))):
            (read,) = read_rows(tmp_path, row).questions
            assert (read.options, read.correct) == (options, correct)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "cp1252", "utf-32"])
@pytest.mark.parametrize("name", ["questions.txt", "questions.csv"])
def test_text_that_is_not_utf8_is_read_rightly_or_refused(tmp_path, encoding, name):
    file = tmp_path / name
    lines = ["question", "Is the café warmer?"] if name.endswith("csv") else ["Is the café warmer?"]
    file.write_bytes("\n".join(lines).encode(encoding))
    read = None
    with suppress(InputError):
        read = [question.question for question in read_questions(file).questions]
    assert read in (None, ["Is the café warmer?"])


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "cp1252"])
def test_lines_of_text_are_decoded_as_people_save_them(tmp_path, encoding):
    file = tmp_path / "questions.txt"
    file.write_bytes("Is the café warmer?\n\nWhy – and how – does CO2 rise?\n".encode(encoding))
    assert [question.question for question in read_questions(file).questions] == [
        "Is the café warmer?",
        "Why – and how – does CO2 rise?",
    ]
    file.write_bytes(b"\x00\x01\xff" * 20)
    with pytest.raises(InputError, match="save it as UTF-8"):
        read_questions(file)


def make_workbook(rows, *others, formats=()):
    from openpyxl import Workbook

    book, file = Workbook(), io.BytesIO()
    for sheet, content in ((book.active, rows), *((book.create_sheet(), other) for other in others)):
        for row in content:
            sheet.append(row)
    for cell, number_format in formats:
        book.active[cell].number_format = number_format
    book.save(file)
    return file.getvalue()


def test_questions_are_read_from_a_workbook(tmp_path):
    file = tmp_path / "quiz.xlsx"
    table = [("question", "A", "B", "answer"), ("How much is left?", 0.5, 12.0, "a"), ("When?", 0.1 + 0.2, "now", "b")]
    file.write_bytes(make_workbook(table, [("a note",)], formats=[("B2", "0%")]))
    first, second = read_questions(file).questions
    assert first.options == ("50%", "12")
    assert second.options == ("0.3", "now")
    table = [("id", "question", "A", "B", "answer"), (7, "How much?", 5, 0.5, "a")]
    file.write_bytes(make_workbook(table, formats=[("A2", "0000"), ("C2", '0.0"%"'), ("D2", "0.00%")]))
    (question,) = read_questions(file).questions
    assert (question.id, question.options) == ("0007", ("5", "50%"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\x00" + b"\x00\x06\x08" * 40, "CSV"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\x00" * 40, "CSV"),
        (make_workbook([("question",), ("=A1",)]), "A2 has a formula without a stored result"),
        (make_workbook([("question",), ("Why?",)], [("question",), ("Why?",)]), "Sheet, Sheet1"),
        (make_workbook([]), "none"),
    ],
    ids=["archive", "old workbook", "formula", "two tables", "empty"],
)
def test_what_is_no_table_of_a_workbook_is_refused(tmp_path, content, message):
    file = tmp_path / "quiz.xlsx"
    file.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read_questions(file)
