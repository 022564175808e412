"""``climassay judge`` as it is typed, on a small random model (what is tested is the path) and on the bundled one."""

import csv
import json

import numpy as np
import pytest

from climassay.judging import load_probe
from climassay.records.queries import list_runs, run_details
from climassay.session import Session
from climassay.web.results.stored_run import StoredRun
from command_line import done, json_of, refused
from tiny_models import save_tiny

ARTICLES = {
    "heat": "The ocean has taken up most of the heat. Its level rises.",
    "ice": "Glaciers lost mass in every decade. The loss speeds up.",
    "rain": "Warm air holds more water. Heavy rain grows more likely.",
    "fire": "Dry summers feed fires. Forests recover slowly.",
    "wind": "Wind speeds changed little. Records are short.",
}
SUMMARIES = ("Bad.", "It says something on climate.", "{} are changing, the article says, and it says why.")
LEVELS = ("low", "medium", "high")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    # A token is a letter or two here: the prompts are longer than the tiny models of other tests take.
    return f"local:{save_tiny(tmp_path_factory.mktemp('model'), context=2048)}"


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    return tmp_path_factory.mktemp("cache"), tmp_path_factory.mktemp("workspace")


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    rows = [
        {
            "article_id": name,
            "summary_id": f"S{number}",
            "id": f"{name}{number}",
            "article": article,
            "summary": summary.format(name),
            "relevance": number + 1,
            "coherence": 3 - number % 2,
            "grade": LEVELS[number],
        }
        for name, article in ARTICLES.items()
        for number, summary in enumerate(SUMMARIES)
    ]
    file = tmp_path_factory.mktemp("data") / "summaries.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


COLUMNS = ("--group", "article_id", "--item", "summary_id", "--text", "summary", "--context", "article")


@pytest.fixture
def climassay(places, model, monkeypatch, climassay):
    cache, workspace = places
    monkeypatch.setenv("CLIMASSAY_CACHE", str(cache))
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments, using=model):
        return climassay("judge", *arguments, "--model", using, "--workspace", str(workspace))

    return run


@pytest.fixture
def probe(climassay, table, tmp_path):
    file = tmp_path / "probe.safetensors"
    done(climassay("train", table, "-o", file, *COLUMNS, "--aspect", "relevance", "--json"))
    return file


def benchmark(climassay, table, *more):
    out = done(climassay("benchmark", table, *COLUMNS, *more, "--train-items", 9, "--json"))
    return json.loads(out)


def test_benchmark_gives_the_figures_with_intervals_and_baselines_flat(climassay, table):
    found = benchmark(climassay, table, "--aspect", "relevance", "--learning-curve", "6,9")
    for name in ("accuracy_differing", "accuracy_three_way", "spearman", "kendall"):
        for figures in (found, found["baselines"]["constant"], found["baselines"]["longer"]):
            assert figures[name]["low"] <= figures[name]["value"] <= figures[name]["high"]
    # The labels grow with the length of the text.
    assert found["baselines"]["longer"]["accuracy_differing"]["value"] == 1.0
    assert found["baselines"]["constant"]["accuracy_differing"]["value"] == 0.5
    gain = found["accuracy_differing"]["value"] - 1.0
    assert found["versus_longer"]["value"] == pytest.approx(gain)
    assert (found["n_pairs"], found["n_groups"], found["n_items"], found["failed"]) == (15, 5, 15, 0)
    assert (found["method"], found["quality"], found["wording"]) == ("ppairs", "relevance", 1)
    assert (found["seed"], found["train_items"], found["folds"]) == (0, 9, 3)
    assert found["stored"] + found["computed"] == 30
    assert 0 < found["tokens_computed"] < found["tokens_two_pass"] / 2 or found["stored"] == 30
    assert {point["items"] for point in found["learning_curve"]} <= {6, 9}
    assert found["calibration"]["brier_constant"] == pytest.approx(0.25)


def test_the_leaky_evaluation_of_the_thesis_stands_beside_ours(climassay, table):
    options = (
        "--aspect",
        "relevance",
        "--method",
        "ppairs",
        "--method",
        "direct",
        "--method",
        "pointwise",
        "--layer",
        1,
    )
    rows = benchmark(climassay, table, *options, "--as-published", "--beam-size", 50)["results"]
    assert [row["as_published"] is None for row in rows] == [False, False, True]
    leaky = rows[0]["as_published"]
    assert leaky["accuracy"]["n"] == 15  # of 15 pairs in both orders, one half
    assert leaky["accuracy"]["low"] <= leaky["accuracy"]["value"] <= leaky["accuracy"]["high"]
    assert leaky["constant"] >= 0.5
    assert rows[0]["accuracy_differing"]["n"] == 15
    out = done(climassay("benchmark", table, *COLUMNS, *options, "--as-published", "--train-items", 9))
    assert "Leaky, only to compare with the thesis" in out
    assert benchmark(climassay, table, *options[:4])["as_published"] is None


@pytest.mark.model
def test_all_methods_of_two_aspects_with_every_output(climassay, table, tmp_path):
    endings = {"csv": "csv", "markdown": "md", "html": "html", "predictions": "jsonl"}
    files = {name: tmp_path / f"out.{ending}" for name, ending in endings.items()}
    outputs = [
        part for name, file in files.items() for part in ("--predictions" if name == "predictions" else "-o", file)
    ]
    found = benchmark(climassay, table, "--aspect", "relevance", "--aspect", "coherence", "--method", "all", *outputs)
    methods = [row["method"] for row in found["results"][:9]]
    assert methods == [
        "direct", "direct-expected", "pairs", "zero-shot", "ppairs", "ppairs-length", "principal", "pointwise",
        "pointwise-length",
    ]  # fmt: skip
    assert [row["quality"] for row in found["results"]] == ["relevance"] * 9 + ["coherence"] * 9
    assert all(row["failed"] == 0 for row in found["results"])
    # Directly scored again by another rule: the answers are in the records.
    expected = found["results"][1]
    assert (expected["tokens_computed"], expected["computed"]) == (0, 0)
    assert expected["tokens_two_pass"] > 0
    rows = list(csv.reader(files["csv"].open()))
    assert len(rows) == 19
    assert "| quality |" in files["markdown"].read_text()
    page = files["html"].read_text()
    assert page.count('<line class="line ') > 4
    assert "Components 1 and 2" in page
    places = [json.loads(line) for line in files["predictions"].read_text().splitlines()]
    assert len(places) == 18 * 15
    assert sorted(row["rank"] for row in places[:15]) == sorted([1, 2, 3] * 5)


def test_several_wordings_give_the_spread(climassay, table):
    found = benchmark(
        climassay, table, "--aspect", "relevance", "--wording", 1, "--wording", 3, "--method", "zero-shot"
    )
    (spread,) = found["spread_over_wordings"]
    values = [row["accuracy_differing"]["value"] for row in found["results"]]
    assert spread["wordings"] == [1, 3]
    assert spread["accuracy_differing"] == {
        "mean": pytest.approx(sum(values) / 2), "lowest": min(values), "highest": max(values),
    }  # fmt: skip


def test_train_says_how_good_the_probe_is_on_held_out_items(climassay, table, probe, tmp_path):
    out = tmp_path / "again.safetensors"
    found = json_of(
        climassay("train", table, "-o", out, *COLUMNS, "--aspect", "relevance", "--html", tmp_path / "p.html", "--json")
    )
    assert found["accuracy_held_out"]["n"] == 15
    assert found["provenance"]["layers"] in ([2], [-1])  # chosen by cross-validation
    assert found["tokens_computed"] == 0
    assert "Choice of the regularisation" in (tmp_path / "p.html").read_text()
    np.testing.assert_allclose(load_probe(out).weights, load_probe(probe).weights, rtol=1e-5)


def test_evaluate_scores_a_judge_on_items_that_it_does_not_know(climassay, table, probe, tmp_path):
    arguments = (table, *COLUMNS, "--seed", 1, "--json")
    found = json_of(climassay("evaluate", "zero-shot", *arguments, "--aspect", "relevance"))
    assert (found["n_items"], found["n_pairs"], found["left_out"], found["failed"]) == (15, 15, 0, 0)
    assert found["baselines"]["longer"]["accuracy_differing"]["value"] == 1.0
    assert "was trained on every item" in refused(climassay("evaluate", probe, *arguments), alone=False)
    known = json.loads(climassay("evaluate", probe, *arguments, "--include-trained")[1])
    assert (known["quality"], known["n_items"], known["layers"]) == ("relevance", 15, [[]])
    more = tmp_path / "more.jsonl"
    new = [json.loads(line) for line in table.read_text().splitlines()[:3]]
    rows = [{**row, "summary": f"{row['summary']} And more.", "article_id": "new"} for row in new]
    more.write_text(table.read_text() + "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    fresh = json_of(climassay("evaluate", probe, more, *COLUMNS, "--label", "relevance", "--json"))
    assert (fresh["left_out"], fresh["n_items"], fresh["n_groups"]) == (15, 3, 1)
    assert "Agreement with the experts" in climassay("evaluate", "pairs", table, *COLUMNS, "--aspect", "relevance")[1]


@pytest.mark.parametrize("sort", ["exact", "greedy", "strengths"])
def test_rank_orders_every_group(climassay, table, probe, sort, tmp_path):
    found = json_of(climassay(
        "rank", table, *COLUMNS, "--probe", probe, "--sort", sort, "--label", "relevance", "--json",
        "-o", tmp_path / "r.csv", "-o", tmp_path / "r.html",
    ))  # fmt: skip
    for group in ARTICLES:
        ours = [row for row in found["items"] if row["group"] == group]
        assert [row["rank"] for row in ours] == [1, 2, 3]
        assert sum(row["strength"] for row in ours) == pytest.approx(0, abs=1e-6)
    assert found["comparisons"] <= found["possible"] == 15
    assert len((tmp_path / "r.csv").read_text().splitlines()) == 16
    assert "Ranking by relevance" in (tmp_path / "r.html").read_text()


def test_runs_of_judges_have_a_page_with_tables_and_figures(climassay, table, probe, places):
    done(climassay("evaluate", probe, table, *COLUMNS, "--label", "relevance", "--include-trained"))
    done(climassay("rank", table, *COLUMNS, "--probe", probe))
    with Session.opened(places[1]) as session:
        runs = {one.command: one.id for one in list_runs(session.records.database)}
        pages = {name: StoredRun(run_details(session.records.database, run)).report() for name, run in runs.items()}
    for command, kinds in (
        ("judge train", {"Table", "LinePlot", "ScatterPlot"}),
        ("judge evaluate", {"Table", "DotPlot"}),
        ("judge rank", {"Table"}),
    ):
        page = pages[command]
        assert all(page.has(kind) for kind in kinds), command
        # Nothing is shown as the plain rows that it was stored as.
        assert not {section.heading for section in page.sections} & {"Probe", "Judges", "Ablation"}
        assert page.to_html()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--aspect", "beauty"), "no aspect 'beauty'"),
        ((), "Name the aspect with --aspect"),
        (("--aspect", "relevance", "--folds", "9"), "9 folds need at least 9 groups, there are 5"),
        (("--aspect", "relevance", "--layer", "40"), "no layer 40"),
        (("--aspect", "relevance", "--layer", "last"), "--layer takes whole numbers"),
        (("--kind", "claims"), "--label"),
        (("--aspect", "relevance", "--label", "grade"), "no usable item"),
        (("--kind", "claims", "--aspect", "relevance"), "--aspect goes with --kind text"),
        (("--aspect", "relevance", "--group", "id"), "only one of its group"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else "",
)
def test_a_mistake_in_benchmark_is_one_sentence_and_exit_code_two(climassay, table, arguments, sentence):
    assert sentence in refused(climassay("benchmark", table, *COLUMNS, *arguments, "--json"), alone=False)


def test_other_mistakes(climassay, table, probe, tmp_path, model):
    other = save_tiny(tmp_path / "other", seed=1)
    for arguments, sentence, using in (
        (("rank", table, *COLUMNS, "--probe", probe), "was trained on the model", f"local:{other}"),
        (("rank", table, *COLUMNS, "--probe", tmp_path / "none"), "There is no probe", model),
        (("rank", table, *COLUMNS, "--probe", probe, "--method", "pairs"), "either a probe or a method", model),
        (("rank", table, *COLUMNS, "--aspect", "relevance", "--method", "ppairs"), "without a probe", model),
        (("insert", table, "--anchors", table, "--kind", "claims"), "--label", model),
        (("train", table, "-o", tmp_path / "no" / "p", *COLUMNS, "--aspect", "relevance"), "does not exist", model),
        (("train", table, "-o", tmp_path, *COLUMNS, "--aspect", "relevance"), "is a folder", model),
        (("compare", "a", " ", "--aspect", "fluency"), "empty", model),
    ):
        assert sentence in refused(climassay(*arguments, using=using))
