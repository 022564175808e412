"""Tasks of lm-evaluation-harness in the forms of ClimateEval: choices, a label found in an answer, named places."""

import json
from pathlib import Path

TEXT = "Glaciers lose mass where they melt faster than snow falls, and the sea rises with what they lose. " * 8
TASKS = ("climate_topics", "climate_stance", "climate_places")
TOPICS = ("adaptation", "mitigation", "impacts")
"""Labels of the task with a regular expression, as ClimateEval asks for them."""
PLACES = {
    "Heat waves struck Pakistan and the Sahel.": ["Pakistan", "Sahel"],
    "The Mekong floods earlier.": ["Mekong"],
    "Nothing is named here.": [],
    "Snow on the Andes and in Lapland thins.": ["Andes", "Lapland"],
}
MULTIPLE_CHOICE = """
task: climate_topics
dataset_path: json
dataset_kwargs: {data_files: {test: DATA/topics.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "Text: {{text}}\\nTopic:"
doc_to_choice: ["adaptation", "mitigation", "impacts"]
doc_to_target: label
target_delimiter: " "
metric_list:
  - {metric: acc, aggregation: mean, higher_is_better: true}
  - {metric: acc_norm, aggregation: mean, higher_is_better: true}
"""
REGULAR_EXPRESSION = """
task: climate_stance
dataset_path: json
dataset_kwargs: {data_files: {test: DATA/topics.jsonl}}
test_split: test
num_fewshot: 0
output_type: generate_until
doc_to_text: "Is this text about adaptation, mitigation or impacts?\\n{{text}}\\nAnswer:"
doc_to_target: topic
generation_kwargs: {until: ["\\n"], max_gen_toks: 6, do_sample: false}
filter_list:
  - name: first
    filter: [{function: regex, regex_pattern: "([a-z])"}, {function: take_first}]
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
"""
ENTITIES = """
task: climate_places
dataset_path: json
dataset_kwargs: {data_files: {test: DATA/places.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{text}}\\nPlaces as JSON:"
doc_to_target: "{{places | join(', ')}}]"
generation_kwargs: {until: ["]"], max_gen_toks: 8}
process_results: !function places.score
metric_list:
  - {metric: f1, aggregation: mean, higher_is_better: true}
"""
SCORE = """
def score(doc, results):
    found, wanted = set(results[0].replace('"', "").replace("[", "").split(", ")) - {""}, set(doc["places"])
    right = len(found & wanted)
    return {"f1": 1.0 if found == wanted else 2 * right / max(1, len(found) + len(wanted))}
"""
F1 = """

def f1(items):
    return items


def both(items):
    from sklearn.metrics import f1_score

    gold, found = zip(*items)
    return {name: f1_score(gold, found, average=name) for name in ("macro", "weighted")}
"""
AGGREGATE = "  - {metric: !function places.f1, aggregation: !function places.both, higher_is_better: true}"
GROUP = """
group: climate
task: [climate_topics, climate_more]
aggregate_metric_list:
  - {metric: acc, weight_by_size: true}
  - {metric: acc_norm, filter_list: none, weight_by_size: false}
"""


def write_tasks(folder: Path, *, group: bool = False) -> Path:
    """Write the tasks and their data; with a group, multiple choice has a macro-averaged F1 and a tag as well."""
    texts = [f"{TEXT[number : number + 60]} number {number}" for number in range(9)]
    rows = [{"text": text, "label": number % 3, "topic": TOPICS[number % 3][0]} for number, text in enumerate(texts)]
    (folder / "topics.jsonl").write_text("\n".join(map(json.dumps, rows)))
    places = [{"text": text, "places": found} for text, found in PLACES.items()]
    (folder / "places.jsonl").write_text("\n".join(map(json.dumps, places)))
    (folder / "places.py").write_text(SCORE + F1)
    written = [text.replace("DATA", str(folder)) for text in (MULTIPLE_CHOICE, REGULAR_EXPRESSION, ENTITIES)]
    if group:
        (folder / "group.yaml").write_text(GROUP)
        (folder / "more.jsonl").write_text("\n".join(map(json.dumps, [rows[0], *rows[:3]])))
        more = MULTIPLE_CHOICE.replace("topics.jsonl", "more.jsonl").replace("climate_topics", "climate_more")
        (folder / "climate_more.yaml").write_text(more.replace("DATA", str(folder)))
        written[0] = f"tag: ClimateEval{written[0].rstrip()}\n{AGGREGATE}\n"
        written[1] = f"tag: ClimateEval{written[1]}"
    for name, text in zip(TASKS, written, strict=True):
        (folder / f"{name}.yaml").write_text(text)
    return folder
