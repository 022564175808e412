"""Operations on annotation: each is called with real content, and its answer is checked against the store."""

from dataclasses import asdict

import pytest

from annotated_dataset import fill
from climassay.generation.annotation import AnnotationSettings, AnnotationStore
from climassay.generation.annotation.long_answers import finished_rubrics, rubric_drafts
from climassay.questions import Question

WRONG = {"accepted": False, "reasons": ["wrong answer"]}


class Queue:
    """A dataset of its own to annotate."""

    def __init__(self, server, name, **settings):
        self.server, self.name, self.path = server, name, f"/annotate/datasets/{name}"
        self.store: AnnotationStore = fill(server.place, dataset=name, **settings)

    def get(self, path, **more):
        return self.server.get(f"{self.path}/{path}", **more)

    def post(self, path, body=None, **more):
        return self.server.post(f"{self.path}/{path}", body, **more)

    def label(self, draft, who, key, **said):
        return self.post(f"items/{draft}/label", {"key": key, **(said or WRONG)}, role=who)

    def divide(self, draft="q2"):
        """Have an adjudicator and an admin disagree on an item."""
        self.label(draft, "adjudicator", f"{draft}-a", accepted=True)
        self.label(draft, "admin", f"{draft}-b")


def test_reasons(server):
    names = [one["name"] for one in server.get("/annotate/reasons")["items"]]
    assert {"bad context", "wrong answer", "other", "self-inconsistency"} <= set(names)


def test_queues(server):
    Queue(server, "a-queue", overlap=3)
    found = {one["dataset"]: one for one in server.get("/annotate/datasets")["items"]}
    assert (found["a-queue"]["items"], found["a-queue"]["open"], found["a-queue"]["overlap"]) == (6, 6, 3)
    first = server.get("/annotate/datasets", limit=1)
    assert first["next"] == first["items"][0]["dataset"] == min(found)


def test_get_settings(server):
    assert Queue(server, "set-up", overlap=2, seed=4).get("settings") == asdict(AnnotationSettings(2, seed=4))
    assert "no dataset 'none'" in server.get("/annotate/datasets/none/settings", status=404)["error"]


def test_change_settings(server):
    queue = Queue(server, "changed")
    sent = {"overlap": 3, "order": "random", "hide_confidence": False}
    answered = server.ask("PUT", f"{queue.path}/settings", json=sent)
    assert queue.store.settings("changed") == AnnotationSettings(3, order="random", hide_confidence=False)
    assert answered == queue.get("settings")
    server.ask("PUT", f"{queue.path}/settings", json={"overlap": 0}, status=422)
    server.ask("PUT", f"{queue.path}/settings", json={"overlaps": 2}, status=422)


def test_retrain(server):
    job = Queue(server, "few-labels").post("retrain", status=202)
    assert (job["kind"], job["title"], job["by"]) == ("retrain", "Train the validator of few-labels", "admin")
    ended = server.ended(job["id"])
    assert (ended["state"], "label" in ended["error"]) == ("failed", True)


def test_next_item(server):
    queue = Queue(server, "following")
    item = queue.get("next")["item"]
    assert item["draft"] == queue.store.next("following", "annotator").draft.id
    other = queue.get("next", after=item["draft"])["item"]
    assert other["draft"] != item["draft"]


def test_get_item(server):
    queue = Queue(server, "items")
    item = queue.get("items/q1", role="adjudicator")
    stored = queue.store.item("items", "q1").draft
    assert (item["kind"], item["wording"]["options"], item["wording"]["correct"]) == (
        "mcq", list(stored.wording.options), 1
    )  # fmt: skip
    assert [one["text"] for one in item["passages"]] == [one.text for one in stored.passages]
    cloze = queue.get("items/q3", role="adjudicator")
    assert cloze["suggested_term"] == "dust"
    assert "dust" in cloze["term_candidates"]
    queue.get("items/none", role="adjudicator", status=404)


def test_list_items(server):
    queue = Queue(server, "listed", overlap=2)
    queue.divide()
    whole = queue.get("items", role="adjudicator")
    assert [one["draft"] for one in whole["items"]] == ["q1", "q2", "q3", "q4", "q5", "q6"]
    assert [one["own"] and one["own"]["key"] for one in whole["items"]] == [None, "q2-a", None, None, None, None]
    seen, after = [], -1
    while after is not None:
        part = queue.get("items", state="todo", limit=2, after=after)
        seen += [one["draft"] for one in part["items"]]
        after = part["next"]
    assert seen == ["q1", "q3", "q4", "q5", "q6"]
    assert [one["draft"] for one in queue.get("items", state="conflict")["items"]] == ["q2"]
    assert [one["question"] for one in queue.get("items", kind="freeform", q="TWOMEY")["items"]] == [
        queue.store.item("listed", "q5").draft.wording.question
    ]
    queue.get("items", state="lost", status=422)


def test_label_item(server):
    queue = Queue(server, "labels")
    said = {"accepted": False, "reasons": ["other"], "remark": "Too easy.", "seconds": 12.5}
    first = queue.label("q2", "adjudicator", "one", **said)
    assert (first["annotator"], first["reasons"], first["remark"], first["seconds"]) == (
        "adjudicator", ["other"], "Too easy.", 12.5
    )  # fmt: skip
    again = queue.label("q2", "adjudicator", "one", accepted=True)
    assert again == first
    assert len(queue.store.labels("labels", current=False)) == 1
    belongs = queue.post("items/q5/label", {"key": "one", **WRONG}, role="adjudicator", status=400)
    assert "belongs to another label" in belongs["error"]
    assert "needs a remark" in queue.post("items/q5/label", {"key": "k", **said, "remark": ""}, status=400)["error"]


def test_a_label_that_is_sent_many_times_at_once_is_stored_once(server):
    from concurrent.futures import ThreadPoolExecutor

    queue = Queue(server, "at-once")
    server.get("/me", role="adjudicator")
    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda _: queue.label("q2", "adjudicator", "same", **WRONG), range(12)))
    assert all(answer == answers[0] for answer in answers)
    assert [label.key for label in queue.store.labels("at-once", current=False)] == ["same"]


def test_an_edit_is_kept_with_its_option_as_the_answer(server):
    queue = Queue(server, "edited")
    wording = {"question": "When do pure droplets freeze?", "options": ["−5 °C", "−38 °C"], "correct": 1}
    label = queue.label("q1", "adjudicator", "edit", accepted=True, wording=wording)
    assert (label["wording"]["answer"], label["wording"]["correct"]) == ("−38 °C", 1)
    stored = queue.store.labels("edited")[0].wording
    assert (stored.question, stored.options, stored.answer) == (wording["question"], ("−5 °C", "−38 °C"), "−38 °C")


def test_skip(server):
    queue = Queue(server, "skipped")
    item = queue.get("next")["item"]["draft"]
    progress = queue.post(f"items/{item}/skip", role="annotator")
    assert (progress["skipped"], progress["left_for_me"]) == (1, 5)
    assert [one.draft for one in queue.store.skipped("skipped")] == [item]


def test_undo(server):
    queue = Queue(server, "undone")
    queue.label("q2", "adjudicator", "k")
    assert queue.post("undo", role="adjudicator") == {"draft": "q2"}
    assert queue.store.labels("undone") == []
    assert queue.post("undo", role="adjudicator") == {"draft": None}


def test_unskip(server):
    queue = Queue(server, "taken-up")
    queue.post(f"items/{queue.get('next')['item']['draft']}/skip", role="annotator")
    assert queue.post("unskip", role="annotator") == {"items": 1}
    assert queue.get("progress")["left_for_me"] == 6


def test_progress(server):
    queue = Queue(server, "progress", overlap=2)
    queue.label("q2", "adjudicator", "k", accepted=True, seconds=8)
    seen = queue.get("progress", role="adjudicator")
    assert (seen["items"], seen["mine"], seen["left_for_me"], seen["seconds"]) == (6, 1, 5, 8.0)
    assert seen["labelled_by"] == {"adjudicator": 1}


def test_history(server):
    queue = Queue(server, "history", overlap=2)
    for key, draft in (("a", "q2"), ("b", "q5")):
        queue.label(draft, "adjudicator", key)
    assert [one["key"] for one in queue.get("history", role="adjudicator")["items"]] == ["b", "a"]
    first = queue.get("history", role="adjudicator", limit=1)
    assert ([one["key"] for one in first["items"]], first["next"]) == (["b"], "b")
    last = queue.get("history", role="adjudicator", limit=1, after="b")
    assert ([one["key"] for one in last["items"]], last["next"]) == (["a"], None)
    queue.label("q2", "admin", "c")
    seen = queue.get("history", role="admin", annotator="adjudicator")["items"]
    assert [one["key"] for one in seen] == ["a"], "q5 is not decided yet"


def test_comment(server):
    queue = Queue(server, "commented", overlap=2)
    sent = {"key": "c1", "text": "Which page?"}
    assert queue.post("items/q2/comments", sent, role="annotator") == {"items": 1}
    assert queue.post("items/q2/comments", sent, role="annotator") == {"items": 0}
    assert [(one.author, one.text) for one in queue.store.comments("commented")] == [("annotator", "Which page?")]
    queue.post("items/q2/comments", {"key": "c2", "text": " "}, role="annotator", status=400)
    as_other = {"key": "c3", "text": "Page 3.", "adjudicates": True}
    queue.post("items/q2/comments", as_other, role="annotator", status=403)
    assert queue.post("items/q2/comments", as_other, role="adjudicator") == {"items": 1}


def test_comments(server):
    queue = Queue(server, "discussed", overlap=2)
    queue.divide()
    queue.post("items/q2/comments", {"key": "c1", "text": "Why?"}, role="admin")

    def authors(role):
        return [one["author"] for one in queue.get("items/q2/comments", role=role)["items"]]

    [number] = {one["annotator"] for one in queue.get("items/q2", role="adjudicator")["labels"]} - {"adjudicator"}
    assert authors("adjudicator") == [number]
    assert number.startswith("Annotator ")
    queue.post("items/q2/adjudicate", {"key": "d", "accepted": True}, role="adjudicator")
    assert authors("adjudicator") == ["admin"]


def test_conflicts(server):
    queue = Queue(server, "conflicts", overlap=2)
    queue.divide("q5")
    queue.divide("q2")
    first = queue.get("conflicts", role="adjudicator", limit=1)
    assert ([one["draft"] for one in first["items"]], first["next"]) == (["q2"], "q2")
    [second] = queue.get("conflicts", role="adjudicator", after="q2")["items"]
    assert [one["accepted"] for one in second["labels"]] == [True, False]


def test_adjudicate(server):
    queue = Queue(server, "decided", overlap=2)
    queue.divide()
    sent = {"key": "decision", "accepted": True}
    decided = queue.post("items/q2/adjudicate", sent, role="adjudicator")
    assert (decided["adjudicates"], decided["accepted"]) == (True, True)
    assert queue.post("items/q2/adjudicate", sent, role="adjudicator") == decided
    assert queue.get("conflicts", role="adjudicator")["items"] == []
    waiting = queue.post("items/q5/adjudicate", {"key": "x", **WRONG}, role="adjudicator", status=400)
    assert "still waiting" in waiting["error"]


def test_agreement(server):
    queue = Queue(server, "agreement", overlap=2)
    assert queue.get("agreement", role="adjudicator")["krippendorff"] is None
    queue.divide("q2")
    one = queue.get("agreement", role="adjudicator")["krippendorff"]
    assert (one["n"], one["low"], one["high"]) == (1, None, None)
    for draft in ("q5", "q1"):
        queue.label(draft, "adjudicator", f"{draft}-a")
        queue.label(draft, "admin", f"{draft}-b")
    seen, direct = queue.get("agreement", role="adjudicator"), queue.store.agreement("agreement")
    assert (seen["items"], seen["raw"]["value"]) == (3, pytest.approx(2 / 3))
    assert seen["krippendorff"]["value"] == pytest.approx(direct.krippendorff.value)
    [pair] = seen["pairs"]
    assert (pair["first"], pair["second"]) == ("adjudicator", "admin")
    assert pair["kappa"]["value"] == direct.pairs[0].kappa.value
    assert f"{seen['raw']['value']:.2f}" in server.page("/annotate/agreement/agreement")


def test_annotators(server):
    queue = Queue(server, "annotators", overlap=2)
    queue.divide()
    by = {one["annotator"]: one for one in queue.get("annotators", role="adjudicator")["items"]}
    assert (by["adjudicator"]["accepted"]["value"], by["admin"]["reasons"]) == (1.0, {"wrong answer": 1})


def test_rubrics(server):
    asked = [Question(f"r{number}", "longform", f"Why {number}?", "", audience="a pupil") for number in range(3)]
    drafts = [one.draft for one in rubric_drafts(asked)]
    store = fill(server.place, drafts, dataset="rubrics")
    said = {"accepted": True, "reasons": [], "wording": {"question": "", "answer": "[should] Names rain (weight 2)"}}
    for one in drafts[:2]:
        server.post(f"/annotate/datasets/rubrics/items/{one.id}/label", {"key": one.id, **said})
    first = server.get("/annotate/datasets/rubrics/rubrics", limit=1, role="adjudicator")
    rest = server.get("/annotate/datasets/rubrics/rubrics", after=first["next"], role="adjudicator")
    seen, known = [*first["items"], *rest["items"]], finished_rubrics(store.items("rubrics"))
    assert [(one["id"], one["audience"]) for one in seen] == [(one.id, one.audience) for one in known]
    assert seen[0]["rubric"] == [{"text": "Names rain", "weight": 2.0, "level": "should", "source": ""}]
    assert (rest["next"], len(seen)) == (None, 2)


def test_export(server):
    queue = Queue(server, "exported", overlap=2)
    queue.divide()
    queue.post("undo", role="admin")
    seen = queue.get("export", role="adjudicator")
    assert [(one["key"], one["withdrawn_at"] is None) for one in seen["labels"]] == [("q2-a", True), ("q2-b", False)]
    assert seen["settings"]["overlap"] == 2


def test_take_in(server):
    source, target = Queue(server, "source", overlap=2), Queue(server, "target", overlap=2)
    source.divide()
    source.post("items/q5/skip", role="adjudicator")
    source.post("items/q2/comments", {"key": "c", "text": "Why?"}, role="adjudicator")
    given = source.get("export", role="adjudicator")
    sent = {name: given[name] for name in ("labels", "skips", "comments")}
    assert target.post("import", sent) == {"stored": 2, "known": 0, "withdrawn": 0, "refused": [], "comments": 1}
    assert target.post("import", sent) == {"stored": 0, "known": 2, "withdrawn": 0, "refused": [], "comments": 0}
    moved = target.get("export", role="adjudicator")
    assert {name: moved[name] for name in sent} == sent
    unknown = {**given["labels"][0], "key": "other", "draft": "q99"}
    assert "q99" in target.post("import", {"labels": [unknown]})["refused"][0]
