"""The pages of results, asked for as a browser would."""

import csv
import io
import json
import re
from html import unescape
from xml.dom import minidom

import pytest

from climassay.evaluation import Cell, CellRecord, Experiment, Outcome
from climassay.metrics.factual_accuracy import AnswerJudgement
from climassay.reporting import Report, Section, Table
from climassay.reporting.html import breakable, report_data
from climassay.web.results.questions import prompt_messages
from experiments import experiment, question
from html_pages import Page, words
from stored_runs import ask, store_experiment, store_factchecks, store_long_answer, store_mcq


@pytest.fixture
def reader(client_of):
    return client_of("annotator")


def page_of(client, address, status=200):
    answer = client.get(address)
    assert answer.status_code == status, answer.text
    return Page(answer.text)


def test_a_new_workspace_says_what_will_be_here(reader):
    assert "Nothing has been run in this workspace yet" in page_of(reader, "/results").text
    assert "No dataset has been generated" in page_of(reader, "/results/datasets").text
    assert "0 of them failed" in page_of(reader, "/usage").text


def test_runs_are_listed_with_what_they_used(reader, place):
    with place.records.run("ask", {"model": "openai:costly"}) as run:
        ask(place.records, run, "one", "broken", "free")
        shown = page_of(reader, "/results").rows("Runs")
    [row] = shown
    assert row[:3] == [run.id, "ask", "running"]
    assert row[4:] == ["openai:costly", "3", "1", "0", "24", "$0.0100 + 1 unpriced"]
    assert page_of(reader, "/results").rows("Runs")[0][2] == "done"


def test_runs_are_filtered_sorted_and_paged(reader, place):
    for number in range(60):
        with place.records.run("ask" if number % 2 else "demo", {"question": f"number-{number}_x"}) as run:
            if number == 7:
                ask(place.records, run, "one", "two")
    first = page_of(reader, "/results")
    assert len(first.rows("Runs")) == 50
    assert "1 to 50 of 60 runs" in first.text
    assert len(page_of(reader, "/results?page=2").rows("Runs")) == 10
    assert len(page_of(reader, "/results?page=999").rows("Runs")) == 10
    assert "30 runs" in page_of(reader, "/results?command=demo").text
    assert len(page_of(reader, "/results?text=NUMBER-5_").rows("Runs")) == 1
    assert page_of(reader, "/results?text=%25").rows("Runs") == []
    top = page_of(reader, "/results?order=tokens&direction=down").rows("Runs")[0]
    assert top[5] == "2"
    assert page_of(reader, "/results?order=tokens&direction=up").rows("Runs")[-1] != top
    assert len(page_of(reader, "/results?order=nonsense").rows("Runs")) == 50


def test_an_experiment_shows_tables_figures_and_set_up(reader, place):
    run = store_experiment(place.records, asked=("What about it?",))
    page, tables = page_of(reader, f"/results/{run}"), page_of(reader, f"/results/{run}?show=tables")
    for text in ("Multiple choice and cloze, primer", "Paired tests", "Answers that are not plain answers"):
        assert text in tables.text
    assert "<figure" not in tables.markup
    assert page_of(reader, f"/results/{run}?show=figures").markup.count("<figure") >= 5
    assert page.markup.count("<table") < tables.markup.count("<table")
    assert "a" * 64 in page.text
    assert "Seed of plan 7" in page.text
    assert "models.1.name local:small" in page.text
    assert page.headings_in_order()
    assert page.style_attributes == page.inline_scripts == []


def test_published_results_stand_beside_ours_when_wanted(reader, place):
    run = store_experiment(place.records)
    assert "gpt-4o (published)" not in page_of(reader, f"/results/{run}?show=tables").text
    assert "gpt-4o (published)" in page_of(reader, f"/results/{run}?show=tables&published=gold").text
    page = page_of(reader, f"/results/{run}?show=tables&published=silver")
    table = next(link for link in page.links if link.endswith(".csv?published=silver"))
    assert "gpt-4o (published)" in reader.get(table).text


def test_every_table_and_figure_can_be_fetched_in_every_form(reader, place):
    run = store_experiment(place.records)
    shown = [page_of(reader, f"/results/{run}?show={show}") for show in ("", "tables", "figures")]
    links = {link: None for one in shown for link in one.links}
    tables = {link.rpartition(".")[0] for link in links if "/tables/" in link}
    figures = [link for link in links if "/figures/" in link]
    assert len(tables) >= 5
    assert len(figures) >= 5
    for table in tables:
        rows = list(csv.reader(io.StringIO(reader.get(f"{table}.csv").text)))
        data = json.loads(reader.get(f"{table}.json").text)
        assert len(rows) == len(data["rows"]) + 1
        assert len(rows[0]) == len(set(rows[0])) >= len(data["columns"])
        for row, cells in zip(rows[1:], data["rows"], strict=True):
            # Values, intervals and counts have cells of their own.
            numbers = re.sub(r"[\[\],]| to ", " ", " ".join(cells)).split()
            assert set(numbers) <= set(re.sub(r",", " ", " ".join(row)).split())
        assert reader.get(f"{table}.md").text.startswith(f"### {data['title']}")
        assert "\\begin{tabular}" in reader.get(f"{table}.tex").text
    for figure in figures:
        answer = reader.get(figure)
        assert answer.headers["content-disposition"].startswith("attachment; filename=")
        drawing = minidom.parseString(answer.text.strip())
        assert drawing.documentElement.tagName == "svg"
    assert reader.get(f"{next(iter(tables))}.exe").status_code == 404
    assert reader.get(f"/results/{run}/tables/999.csv").status_code == 404
    assert reader.get(f"/results/{run}/figures/999.svg").status_code == 404


def test_a_run_can_be_fetched_whole(reader, place):
    run = store_experiment(place.records, asked=("What <b>about</b> it?", "And this?"))
    data = json.loads(reader.get(f"/results/{run}/run.json").text)
    assert data["summary"]["id"] == run
    assert data["config"]["seed"] == 7
    assert len(data["results"]["outcomes"]) == len(experiment().outcomes)
    answers = [json.loads(line) for line in reader.get(f"/results/{run}/answers.jsonl").text.splitlines()]
    assert [one["prompt"] for one in answers] == ["What <b>about</b> it?", "And this?"]
    report = reader.get(f"/results/{run}/report.html")
    assert report.headers["content-disposition"] == f'attachment; filename="{run}.html"'
    assert report.text.count('<details class="item"') == 27


def test_a_large_experiment_comes_after_its_page(reader, place):
    asked = [question("mcq", number) for number in range(1500)]
    skills = {("small", "default"): 0.4, ("large", "default"): 0.7}
    run = store_experiment(place.records, experiment(skills, questions=asked))
    page = page_of(reader, f"/results/{run}?show=tables")
    assert "Multiple choice and cloze" not in page.text
    [address] = re.findall(r'data-load="([^"]+)"', page.markup)
    piece = page_of(reader, unescape(address))
    assert "Multiple choice and cloze, primer" in piece.text
    assert "<html" not in piece.markup
    # Whoever has no script follows the link; and once computed, the results stand in the page.
    assert "Multiple choice and cloze" in page_of(reader, f"/results/{run}?wait=true&show=tables").text
    assert "Multiple choice and cloze" in page_of(reader, f"/results/{run}?show=tables").text


def test_a_question_shows_every_answer_and_what_was_given(reader, place):
    run = store_experiment(place.records)
    page = page_of(reader, f"/results/{run}/questions/mcq-1?benchmark=primer")
    rows = page.rows("Answers")
    assert [row[:2] for row in rows] == [["small", "default"], ["small", "rag-source"], ["large", "default"]]
    for row, one in zip(rows, [one for one in experiment().outcomes if one.question == "mcq-1"], strict=True):
        assert one.answer in row[2]
        assert ("wrong" in row[2]) == (one.scores["accuracy"] == 0)
        assert row[3] == f"{one.scores['accuracy']:.0f}"
    assert "option B of question 1 correct" in page.text
    assert "A passage about aerosols." in page.text
    assert "The text behind questions 0." in page.text
    following = page.links[[*page.link_texts].index("Next question")]
    assert following == f"/results/{run}/questions/mcq-2?benchmark=primer"
    assert page_of(reader, f"/results/{run}/questions/none", 404).text


def test_prompts_are_shown_word_for_word_where_they_are_kept(reader, place):
    asked = ("Read. What about mcq number 1? Say a letter, <b>please</b>.", "What about mcq number 10? And?")
    run = store_experiment(place.records, asked=asked)
    page = page_of(reader, f"/results/{run}/requests?question=mcq-1&benchmark=primer")
    assert asked[0] in page.text
    assert asked[1] not in page.text
    assert "a) this one" in page.text
    nothing = page_of(reader, f"/results/{run}/requests?question=mcq-2&benchmark=primer")
    assert "None of the prompts" in nothing.text


def test_ids_of_questions_may_hold_anything(reader, place):
    from dataclasses import replace

    name = 'a/b?c=1&d=<script>"'
    asked = replace(question("mcq", 0), id=name)
    run = store_experiment(place.records, experiment({("small", "default"): 1.0}, questions=[asked]))
    page = page_of(reader, f"/results/{run}/questions")
    address, marked = [link for link in page.links if "/questions/" in link]
    assert marked == f"{address}#answer-1"
    assert "What about mcq number 0?" in page_of(reader, address).text
    assert "<script>" not in page.markup.replace("<script src", "")


def test_a_long_answer_is_shown_with_its_rubric_and_what_was_found_in_it(reader, place):
    run = store_long_answer(place.records)
    page = page_of(reader, f"/results/{run}/questions/q")
    for text in ("Says <b>why</b>", "should, weight 2", "contradicted", "It says otherwise.", "CO2 cools"):
        assert text in page.text
    assert 'class="part wrong" title="contradicted: The book says that it warms."' in page.markup
    assert page.style_attributes == page.inline_scripts == []
    assert "Points and references" in page_of(reader, f"/results/{run}").text


def test_a_single_evaluation_has_tables_and_questions(reader, place):
    run = store_mcq(place.records)
    assert "Multiple choice and cloze, primer" in page_of(reader, f"/results/{run}?show=tables").text
    assert "See 12 questions" in page_of(reader, f"/results/{run}").text
    rows = page_of(reader, f"/results/{run}/questions/mcq-5").rows("Answers")
    assert rows == [["local:small", "default", "wrong c) option C of question 5", "0"]]


def test_runs_are_compared_on_the_questions_that_both_were_asked(reader, place):
    first = store_mcq(place.records, right=range(3), model="local:small")
    second = store_mcq(place.records, right=range(11), model="local:large")
    page = page_of(reader, f"/results/compare?runs={first}&runs={second}")
    scores = page.rows_below("Accuracy, overall")
    # Both runs are named after their questions: their ids tell them apart.
    known = [("local:small", f"primer, {first}", "12"), ("local:large", f"primer, {second}", "12")]
    assert [(row[1], row[3], row[4]) for row in scores] == known
    [test] = page.rows_below("Compared on the questions that both runs asked")
    # Eight questions only the second got right: exact McNemar 2 * 0.5 ** 8.
    assert test[2:4] == ["12", "+66.7"]
    assert test[5:7] == ["8 / 0", "0.008"]
    table = next(link for link in page.links if "/tables/" in link and ".csv" in link)
    assert reader.get(table).text.startswith("benchmark,model,setting,run,n,accuracy")
    choices = page_of(reader, "/results/compare")
    assert [one["value"] for one in choices.every("input", name="runs")] == [second, first]
    assert not choices.every("input", name="runs", checked="")
    [chosen] = page_of(reader, f"/results/compare?runs={first}").every("input", name="runs", checked=None)
    assert chosen["value"] == first
    other = place.records.run("ask", {})
    with other:
        pass
    assert "cannot be compared" in page_of(reader, f"/results/compare?runs={other.id}", 400).text
    many = ",".join(f"r{number}" for number in range(9))
    assert "At most 8 runs" in page_of(reader, f"/results/compare?runs={many}", 400).text


def test_fact_checks_are_scored_and_lead_to_each_claim(reader, place):
    run = store_factchecks(place.records)
    page = page_of(reader, f"/results/{run}")
    assert "Verdicts against the published ones" in page.text
    assert f"/results/{run}/claims/1" in page.links
    claims = page_of(reader, f"/results/{run}/claims").rows("Claims")
    assert [row[2] for row in claims] == ["incorrect", "correct", "correct", "correct", "not enough information"]
    assert claims[1][3] == "incorrect"
    assert len(page_of(reader, f"/results/{run}/claims?verdict=incorrect").rows("Claims")) == 1
    claim = page_of(reader, f"/results/{run}/claims/1")
    assert "The Sun has not become brighter since 1950" in claim.text
    assert "Published verdict: correct" in claim.text
    assert "Text of passage 1." in claim.text
    assert claim.style_attributes == claim.inline_scripts == []
    assert "<script>alert" not in page_of(reader, f"/results/{run}/claims/5").markup
    assert reader.get(f"/results/{run}/claims/1.html").headers["content-disposition"].startswith("attachment")
    for number in (0, 6):
        page_of(reader, f"/results/{run}/claims/{number}", 404)


def test_fact_checks_without_published_verdicts_say_so(reader, place):
    run = store_factchecks(place.records, published=False)
    assert "No claim has a published verdict" in page_of(reader, f"/results/{run}").text


def test_a_run_whose_result_is_a_report_shows_it(reader, place):
    table = Table.of("Topics <b>", ("topic", "n"), [("ice", "3")])
    report = Report("Topics of confidence", "By chapter.", (Section("Counts", (table,)),))
    with place.records.run("topics", {}) as run:
        run.save_results("report", [report_data(report)])
    page = page_of(reader, f"/results/{run.id}")
    assert "Topics of confidence" in page.text
    assert page.rows_below("Topics <b>") == [["ice", "3"]]


def test_runs_of_other_commands_have_pages_of_their_own(reader, place):
    with place.records.run("judge rank", {"quality": "relevance", "model": "local:small"}) as ranked:
        row = {"group": "", "rank": 1, "item": "a", "text": "A <b> text.", "label": None, "strength": 0.5}
        ranked.save_results("ranking", [row])
    assert page_of(reader, f"/results/{ranked.id}").rows_below("Ranking by relevance") == [
        ["1", "a", "A <b> text.", "+0.50"]
    ]
    with place.records.run("generate run", {"recipe": {"name": "silver"}}) as made:
        row = {"stream": "mcq, base", "requested": 4, "drafts": 9, "failed": 1, "accepted": 4, "ended": None}
        made.save_results("streams", [row])
    page = page_of(reader, f"/results/{made.id}")
    assert page.rows_below("Drafts of this run") == [["mcq, base", "4", "9", "1", "4", "-"]]
    assert "/results/datasets/silver" in page.links
    with place.records.run("ask", {"model": "local:small"}) as asked:
        said = {"text": "Ice melts.", "citations": [1], "in_house": False}
        source = {"number": 1, "citation": "A book, p. 3", "passage": {"text": "Ice melts above 0 degrees."}}
        asked.save_results("answer", [{"question": "Does it?", "sentences": [said], "sources": [source], "text": "",
                                       "error": None, "removed_citations": 2, "truncated": True}])  # fmt: skip
    text = page_of(reader, f"/results/{asked.id}").text
    for part in ("Does it?", "Ice melts. [1]", "A book, p. 3", "Ice melts above 0 degrees.", "2 citations", "cut off"):
        assert part in text


def test_results_that_nobody_foresaw_are_shown_as_they_are(reader, place):
    with place.records.run("own work", {"a": {"b": [1, None]}}) as run:
        run.save_results("rows", [{"name": f"row {number}", "value": number / 3} for number in range(3)])
        run.save_results("facts", [{"depth": {"mean": 0.5}, "note": "<i>"}])
    page = page_of(reader, f"/results/{run.id}")
    assert page.rows_below("rows") == [["row 0", "0"], ["row 1", "0.333333"], ["row 2", "0.666667"]]
    assert "depth.mean 0.5 note <i>" in page.text
    assert "a.b 1, –" in page.text


def test_damaged_results_of_a_known_command_are_shown_as_they_are(reader, place):
    with place.records.run("evaluate mcq", {}) as run:
        run.save_results("outcomes", [{"setting": "default"}, {"setting": "rag"}])
    page = page_of(reader, f"/results/{run.id}")
    assert "cannot be shown in their usual form" in page.text
    assert page.rows_below("outcomes") == [["default"], ["rag"]]


def test_usage_is_counted_by_model_command_and_day(reader, place):
    with place.records.run("first", {}) as run:
        ask(place.records, run, "one", "broken", "free")
    with place.records.run("second", {}) as run:
        ask(place.records, run, "one", "two")
    page = page_of(reader, "/usage")
    assert page.rows_below("Tokens, cost and failures by command") == [
        ["first", "3", "1", "0", "0.0%", "5", "20", "4", "0", "$0.0100 + 1 unpriced"],
        ["second", "1", "0", "1", "50.0%", "1", "10", "2", "0", "$0.0100"],
    ]
    [model] = page.rows_below("Tokens, cost and failures by model")
    assert model == ["openai:costly", "4", "1", "1", "20.0%", "6", "30", "6", "0", "$0.0200 + 1 unpriced"]
    [day] = page.rows_below("Tokens, cost and failures by day")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", day[0])
    assert day[1:] == model[1:]
    assert reader.get("/usage/tables/1.csv").text.startswith("model,requested")


def test_a_dataset_shows_its_statistics_and_drafts(reader, place):
    from climassay.generation import DatasetStore
    from climassay.generation.dataset_store import StoredDraft
    from drafts import make_draft, rejected

    store = DatasetStore(place.records)
    store.begin("silver <one>", {})
    drafts = [make_draft(f"d{number}", "freeform") for number in range(3)]
    drafts.append(make_draft("out", "freeform", decisions=(rejected("length"),)))
    store.save("silver <one>", [StoredDraft(draft, "book", number) for number, draft in enumerate(drafts)])
    assert page_of(reader, "/results/datasets").rows("Datasets")[0][2:] == ["3", "1", "0"]
    [address] = [link for link in page_of(reader, "/results/datasets").links if link.startswith("/results/datasets/")]
    page = page_of(reader, address)
    assert "3 accepted questions of 4 drafts." in page.text
    assert "screening" in page.text
    assert "length" in page.text
    table = next(link for link in page.links if link.endswith(".csv"))
    assert reader.get(table).text.startswith("kind,level,drafts")
    figure = next(link for link in page.links if link.endswith(".svg"))
    assert "<svg" in reader.get(figure).text
    page_of(reader, "/results/datasets/none", 404)
    store.save("silver <one>", [StoredDraft(make_draft(f"m{n}", "freeform"), "book", n) for n in range(4, 70)])
    text = reader.get(address).text
    assert "The first 60 of 70 drafts" in text
    assert 'data-all="70"' in text
    assert reader.get(f"{address}/report.html").text.count('<details class="item"') == 70


@pytest.mark.parametrize("address", ["", "/questions", "/claims", "/run.json", "/answers.jsonl", "/tables/1.csv"])
def test_a_run_that_is_not_there_is_missing(reader, address):
    assert "There is no run rnone" in page_of(reader, f"/results/rnone{address}", 404).text


def test_the_page_of_a_run_begins_with_its_scores(reader, place):
    run = store_experiment(place.records)
    markup = page_of(reader, f"/results/{run}").markup
    places = [markup.index(text) for text in ("Multiple choice and cloze, primer", "Highest accuracy", "What it used")]
    assert places == sorted(places)
    assert "<table" not in markup[: markup.index('class="blocks"')]


def test_all_scores_can_be_fetched_as_numbers(reader, place):
    run = store_experiment(place.records)
    address = f"/results/{run}/scores.csv"
    assert address in page_of(reader, f"/results/{run}").links
    rows = list(csv.DictReader(io.StringIO(reader.get(address).text)))
    for row in rows:
        low, value, high = (float(row[name]) for name in ("low", "value", "high"))
        assert low <= value <= high
        assert int(row["n"]) > 0
    assert {"accuracy", "exact_match"} <= {row["metric"] for row in rows}
    assert reader.get(f"/results/{store_factchecks(place.records)}/scores.csv").status_code == 404


CHAT = [("system", 'You are "terse".'), ("user", "Why?\n\nBecause <MASK>.")]
PROMPTS = {
    "json": json.dumps([{"role": role, "content": text} for role, text in CHAT]),
    "parts": json.dumps([{"role": role, "content": [{"type": "text", "text": text}]} for role, text in CHAT]),
    "chatml": "".join(f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in CHAT) + "<|im_start|>assistant\n",
    "llama": "<|begin_of_text|>"
    + "".join(f"<|start_header_id|>{role}<|end_header_id|>\n\n{text}<|eot_id|>" for role, text in CHAT)
    + "<|start_header_id|>assistant<|end_header_id|>\n\n",
    "gemma": "<bos>"
    + "".join(f"<start_of_turn>{role}\n{text}<end_of_turn>\n" for role, text in CHAT)
    + "<start_of_turn>model\n",
    "phi": "".join(f"<|{role}|>\n{text}<|end|>\n" for role, text in CHAT) + "<|assistant|>\n",
    "zephyr": "".join(f"<|{role}|>\n{text}</s>\n" for role, text in CHAT) + "<|assistant|>\n",
}


@pytest.mark.parametrize("prompt", PROMPTS.values(), ids=PROMPTS)
def test_messages_are_read_from_prompts_in_every_form(prompt):
    assert prompt_messages(prompt) == CHAT


@pytest.mark.parametrize("prompt", ["[1] A passage.\nWhy?", "[1, 2]", "[]", "Why?", '[{"role": "user"}]'])
def test_a_prompt_without_messages_is_shown_as_one_text(prompt):
    assert prompt_messages(prompt) == [("prompt", prompt)]


def test_messages_come_with_setting_verdict_and_the_judge_s_reason(reader, place):
    asked = question("freeform", 1, "base")
    cells = [Cell("primer", "small", setting, "freeform") for setting in ("default", "rag:books")]
    judged = AnswerJudgement("wrong", "It names another cause.")
    outcomes = (
        Outcome(cells[0], asked.id, "base", "Because of the wind.", {"judged_accuracy": 0.0}, judgement=judged),
        Outcome(cells[1], asked.id, "base", "Because of the sea.", {"judged_accuracy": 1.0}, passages=("p-1",)),
    )
    records = tuple(CellRecord(cell, "openai:costly", "f" * 64, {}, "freeform", "0" * 64, 1, 0) for cell in cells)
    given = Experiment(
        "", "judged", {}, records, outcomes, {"primer": (asked,)}, passages={"p-1": "The sea warms the coast."}
    )
    prompts = (
        asked.question,
        f"[1] The sea  warms the coast.\n\n{asked.question}",
        f"Grade this. {asked.question} Answer: Because of the wind.",
    )
    run = store_experiment(place.records, given, asked=prompts)
    page = page_of(reader, f"/results/{run}/requests?question={asked.id}&benchmark=primer")
    texts = [words(one) for one in page.root.css("section.card")]
    assert [re.search(r"Setting (\S+)|(Graded answer)", text)[0] for text in texts] == [
        "Setting default",
        "Setting rag:books",
        "Graded answer",
    ]
    assert "wrong" in texts[0]
    assert "right" in texts[1]
    assert "judged wrong: It names another cause." in texts[0]
    assert "small, default" in texts[2]
    shown = page_of(reader, f"/results/{run}/questions/{asked.id}?benchmark=primer")
    [first, second] = shown.rows("Answers")
    assert first[2].startswith("wrong Because of the wind. judged wrong: It names another cause.")
    assert second[2].startswith("right ")


def test_long_names_may_break_at_their_slashes(reader, place):
    name = "openai:organisation/very-long-model-name/variant"
    run = store_mcq(place.records, model=name)
    for address in ("", "/questions", "/questions/mcq-1"):
        markup = page_of(reader, f"/results/{run}{address}").markup
        assert "openai:<wbr>organisation/<wbr>very-long-model-name/<wbr>variant" in markup
    assert str(breakable("a:b/c<b>/ d")) == "a:<wbr>b/<wbr>c&lt;b&gt;/ d"
