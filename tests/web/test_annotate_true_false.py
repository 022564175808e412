"""The annotation page of a statement that is true or false."""

from annotated_dataset import DATASET, draft, fill
from climassay.generation import Wording
from web_parts import post

STATEMENT = Wording("Adding aerosol lowers a cloud's albedo.", "False", ("True", "False"), 1)


def test_a_statement_is_shown_with_its_verdict_and_edited_by_marking_the_other(place, client_of):
    queue = fill(place, [draft("q1", kind="true_false", wording=STATEMENT)])
    annotator = client_of("annotator")
    page = annotator.get(f"/annotate/{DATASET}")
    assert "True or false" in page.text
    assert page.text.count("readonly") == 2  # the two words stay as they are
    fields = {"key": "k", "verdict": "edit", "question": "Adding aerosol raises a cloud's albedo.", "correct": "0"}
    answer = post(annotator, f"/annotate/{DATASET}/q1", {**fields, "option": ["True", "False"]})
    assert answer.status_code == 303
    (label,) = queue.labels(DATASET)
    assert label.wording == Wording("Adding aerosol raises a cloud's albedo.", "True", ("True", "False"), 0)
    refused = post(annotator, f"/annotate/{DATASET}/q1", {**fields, "key": "l", "question": " ", "option": ["True"]})
    assert refused.status_code == 400
