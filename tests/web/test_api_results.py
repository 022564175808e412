"""Operations on results and datasets: each is called with real content, and compared with the pages and the stores."""

import re

from annotated_dataset import DATASET
from climassay.evaluation import load_experiment
from climassay.evaluation.comparing import compare_runs
from climassay.evaluation.results import experiment_of
from climassay.metrics.long_answers import DimensionRating
from climassay.records.queries import list_runs as stored_runs
from climassay.records.queries import run_details
from stored_runs import ask, store_long_answer


def begin_run(server, command="ask"):
    with server.place.records.run(command, {"question": "What melts?"}) as run:
        ask(server.place.records, run, f"What melts, {run.id}?")
    return run.id


def test_list_runs(server):
    begin_run(server)
    seen = [one["id"] for one in server.get("/runs", limit=200)["items"]]
    assert seen == [one.id for one in stored_runs(server.place.database)][::-1]
    assert [one["id"] for one in server.get("/runs", command="evaluate run")["items"]] == [server.content.run]
    assert [one["id"] for one in server.get("/runs", text=server.content.run.upper())["items"]] == [server.content.run]
    assert server.get("/runs", after="rffffffff", status=400) == {"error": "There is no run 'rffffffff'."}


def test_get_run(server):
    made = begin_run(server)
    seen, known = server.get(f"/runs/{made}"), run_details(server.place.database, made)
    assert (seen["run"]["asked"], seen["run"]["models"]) == (1, [known.usage[0].model])
    assert (seen["config"], seen["usage"][0]["cost"]) == (known.config, known.usage[0].cost)
    assert server.get(f"/runs/{server.content.run}")["stored"]["outcomes"] == len(
        load_experiment(server.place.records, server.content.run).outcomes
    )
    assert "no run rffffffff" in server.get("/runs/rffffffff", status=404)["error"]


def test_compare(server):
    runs = [server.content.run, server.content.other_run]
    seen = server.get("/runs/compare", run=runs, metric="accuracy")
    records = server.place.records
    experiments = [load_experiment(records, runs[0]), experiment_of(run_details(records.database, runs[1]))]
    known = compare_runs(experiments, "accuracy")
    assert [(one["run"], one["score"]["value"]) for one in seen["scores"]] == [
        (one.run, one.estimate.value) for one in known.scores
    ]
    assert [one["p_holm"] for one in seen["tests"]] == [one.result.p_holm for one in known.tests]
    first = seen["tests"][0]
    assert {seen["scores"][first[side]]["run"] for side in ("first", "second")} == set(runs)
    assert "no metric 'beauty'" in server.get("/runs/compare", run=runs, metric="beauty", status=400)["error"]


def test_list_tables(server):
    seen = server.get(f"/runs/{server.content.run}/tables")["items"]
    page = server.page(f"/results/{server.content.run}?wait=true&show=tables")
    plain = " ".join(re.sub(r"<[^>]*>", " ", page).split())
    assert len(seen) >= 3
    for table in seen:
        assert all(len(row) == len(table["columns"]) for row in table["rows"])
        assert table["title"] in plain
        assert f"/results/{server.content.run}/tables/{table['number']}.csv" in page
    assert any("best" in mark["marks"] for table in seen for mark in table["marks"])


def test_list_questions(server):
    path = f"/runs/{server.content.run}/questions"
    first = server.get(path, limit=10)
    seen = [*first["items"], *server.get(path, after=first["next"], limit=200)["items"]]
    known = load_experiment(server.place.records, server.content.run)
    assert [one["id"] for one in seen] == [one.id for one in known.questions["primer"]]
    assert [one["number"] for one in seen] == list(range(len(seen)))
    wrong = server.get(path, wrong=True, kind="mcq", model="small", limit=200)["items"]
    missed = {one.question for one in known.outcomes if one.cell.model == "small" and one.scores.get("accuracy") == 0}
    assert {one["id"] for one in wrong} == missed
    assert server.get(path, text="number 3?", kind="mcq")["items"][0]["id"] == "mcq-3"


def test_get_grid(server):
    run, other = server.content.run, server.content.other_run
    path = f"/runs/{run}/grid"
    seen = server.get(path, limit=200)
    known = load_experiment(server.place.records, run)
    columns = [(one["model"], one["setting"]) for one in seen["columns"]]
    assert columns == list(dict.fromkeys((one.cell.model, one.cell.setting) for one in known.outcomes))
    assert [row["id"] for row in seen["items"]] == [one.id for one in known.questions["primer"]]
    scores = {(one.cell.model, one.cell.setting, one.question): one.scores for one in known.outcomes}
    for row in seen["items"]:
        assert [cell["scores"] for cell in row["cells"]] == [scores[*column, row["id"]] for column in columns]
    chosen = server.get(path, right=0, fails=1, limit=200)["items"]
    split = [one for one in seen["items"] if not one["cells"][0]["wrong"] and one["cells"][1]["wrong"]]
    assert chosen == split
    beside = server.get(path, beside=other, limit=200)
    assert {one["run"] for one in beside["columns"]} == {run, other}
    assert all(len(row["cells"]) == len(beside["columns"]) for row in beside["items"])
    assert "no column 99" in server.get(path, right=99, status=404)["error"]


def test_get_question(server):
    seen = server.get(f"/runs/{server.content.run}/questions/0")
    known = [
        one for one in load_experiment(server.place.records, server.content.run).outcomes if one.question == "mcq-0"
    ]
    assert [(one["model"], one["setting"], one["answer"], one["scores"]) for one in seen["answers"]] == [
        (one.cell.model, one.cell.setting, one.answer, dict(one.scores)) for one in known
    ]
    assert seen["passages"]["p1"] == "A passage about aerosols."
    assert "numbered from 0" in server.get(f"/runs/{server.content.run}/questions/1000", status=404)["error"]
    assert "has no stored questions" in server.get(f"/runs/{begin_run(server)}/questions/0", status=404)["error"]


def test_a_long_answer_has_its_rubric_and_what_was_found_in_it(server):
    run = store_long_answer(server.place.records, DimensionRating("accuracy", 2.0))
    seen = server.get(f"/runs/{run}/questions/0")
    [listed] = server.get(f"/runs/{run}/questions")["items"]
    assert listed == seen["question"]
    assert listed["audience"] == "a pupil"
    assert listed["rubric"] == [{"text": "Says <b>why</b>", "weight": 2.0, "level": "should", "source": "p. 3"}]
    [said] = seen["answers"]
    assert said["scores"] == {"rubric_score": 0.0, "rubric_uncontradicted": 0.0}
    assert [one["verdict"] for one in said["assessment"]["criteria"]] == ["contradicted"]
    assert [(one["dimension"], one["rating"]) for one in said["assessment"]["ratings"]] == [("accuracy", 2.0)]
    [point] = said["points"]
    assert (point["status"], point["references"][0]["status"]) == ("contradicted", "invented")
    plain = server.get(f"/runs/{server.content.run}/questions/0")["answers"][0]
    assert (plain["assessment"], plain["points"]) == (None, [])


def test_usage(server):
    before = {one["name"]: one["answers"] for one in server.get("/usage", by="command")["items"]}
    begin_run(server)
    after = {one["name"]: one["answers"] for one in server.get("/usage", by="command")["items"]}
    assert after["ask"] == before.get("ask", 0) + 1
    assert sum(one["answers"] for one in server.get("/usage")["items"]) == sum(after.values())


def test_datasets(server):
    [seen] = server.get("/datasets")["items"]
    assert (seen["name"], seen["drafts"]) == (DATASET, {"accepted": 6})
    assert DATASET in server.page(seen["page"])


def test_dataset(server):
    seen = server.get(f"/datasets/{DATASET}")
    assert (seen["accepted"], seen["sources"]) == (6, {"Clouds and Climate": 6})
    assert {(one["kind"], one["accepted"]) for one in seen["streams"]} == {("mcq", 2), ("freeform", 2), ("cloze", 2)}
    assert server.get("/datasets/none", status=404) == {"error": "There is no dataset 'none'."}


def test_drafts(server):
    first = server.get(f"/datasets/{DATASET}/drafts", role="adjudicator", limit=4)
    rest = server.get(f"/datasets/{DATASET}/drafts", role="adjudicator", after=first["next"])
    assert [one["id"] for one in (*first["items"], *rest["items"])] == [f"q{number}" for number in range(1, 7)]
    assert first["items"][0]["draft"]["wording"]["correct"] == 1
    assert server.get(f"/datasets/{DATASET}/drafts", role="adjudicator", state="rejected")["items"] == []
