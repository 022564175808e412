"""Evidence mode: reading tables of claims with evidence, and verdicts by prompts."""

import json
import math
from pathlib import Path

import pytest

from climassay.errors import InputError, ModelError
from climassay.factcheck import check_with_evidence, read_evidence_claims
from climassay.factcheck.evidence_mode import EvidenceClaim
from climassay.factcheck.scales import CLIMATE_FEVER
from climassay.metrics import ClaimPassage
from climassay.models.contract import PLACEHOLDERS
from planted_evidence import published_rule
from scripted_model import ScriptedModel

CLIMATE_FEVER_FILE = Path(__file__).parents[3] / "shared" / "data" / "climate_fever.jsonl"


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_climate_fever_format(tmp_path):
    row = {
        "claim_id": "6",
        "claim": "The polar bear  population grows.",
        "claim_label": "REFUTES",
        "evidences": [
            {"evidence": "It shrinks.", "article": "Polar bear", "evidence_label": "REFUTES", "votes": [None]},
            {"evidence": "Bears are white.", "article": "Bear", "evidence_label": "NOT_ENOUGH_INFO"},
        ],
    }
    table = read_evidence_claims(write(tmp_path / "fever.jsonl", row))
    [claim] = table.rows
    assert claim.text == "The polar bear population grows."
    assert claim.label == "REFUTES"
    assert claim.passages == ("Polar bear: It shrinks.", "Bear: Bears are white.")
    assert [evidence.label for evidence in claim.evidence] == ["REFUTES", "NOT_ENOUGH_INFO"]
    assert len(table.sha256) == 64


@pytest.mark.parametrize(
    ("cells", "passages"),
    [
        ({"evidence": ["One.", "Two."]}, ("One.", "Two.")),
        ({"evidence": "One."}, ("One.",)),
        ({"evidence": '["One.", "Two."]'}, ("One.", "Two.")),
        ({"evidence": "[1] One."}, ("[1] One.",)),
        ({"evidence": None}, ()),
        ({"evidences": [{"text": "One.", "source": "A"}, None, ""]}, ("A: One.",)),
        (
            {"evidence_2": "Two.", "evidence_1": "One.", "evidence_10": "Ten.", "evidence_3": ""},
            ("One.", "Two.", "Ten."),
        ),
    ],
    ids=["list", "text", "json", "bracket", "none", "objects", "columns"],
)
def test_general_tables(tmp_path, cells, passages):
    [claim] = read_evidence_claims(write(tmp_path / "table.jsonl", {"claim": "A claim.", **cells})).rows
    assert claim.passages == passages
    assert claim.label is None


@pytest.mark.parametrize(
    ("row", "options", "message"),
    [
        ({"claim": "A."}, {}, "no evidence"),
        ({"evidence": "A."}, {}, "no column 'claim'"),
        ({"claim": "A.", "evidence": "B."}, {"label": "truth"}, "no column 'truth'"),
        ({"claim": " ", "evidence": "B."}, {}, "No row"),
        ({"claim": "A.", "evidence": 7}, {}, "row 1"),
        ({"claim": "A.", "evidence": [{"sentence": "B."}]}, {}, "no text"),
    ],
    ids=["evidence", "claim", "label", "empty", "number", "object"],
)
def test_tables_that_cannot_be_used_are_refused(tmp_path, row, options, message):
    with pytest.raises(InputError, match=message):
        read_evidence_claims(write(tmp_path / "table.jsonl", row), **options)


@pytest.mark.skipif(not CLIMATE_FEVER_FILE.is_file(), reason="the shared data folder is absent")
def test_published_verdicts_follow_from_published_evidence_by_the_rule():
    table = read_evidence_claims(CLIMATE_FEVER_FILE)
    assert len(table.rows) == 1028
    assert {len(row.evidence) for row in table.rows} == {5}
    by_rule = [published_rule([one.label for one in row.evidence]) for row in table.rows]
    assert by_rule == [row.label for row in table.rows]


def biased(broken=()):
    """Likes the last option always, and the option named in the claim a little; fails where it is told to."""

    def choose(prompt, options):
        if any(word in prompt for word in broken):
            return RuntimeError("No luck.")
        claim = prompt.partition("Claim: ")[2].partition("\n")[0]
        bias = [0.0] * (len(options) - 1) + [3.0]
        return [math.log(0.01) + b + (option.strip() in claim) for option, b in zip(options, bias, strict=True)]

    return ScriptedModel(choose, name="local:biased")


def claims(*texts, evidence=2):
    passages = tuple(ClaimPassage(f"Passage {number}.") for number in range(evidence))
    return [EvidenceClaim(text, passages) for text in texts]


def test_calibration_undoes_what_the_model_always_prefers():
    rows = claims("It says SUPPORTS.", "It says REFUTES.")
    raw = check_with_evidence(rows, biased(), CLIMATE_FEVER, calibrated=False)
    assert [one.verdict for one in raw] == ["NOT_ENOUGH_INFO"] * 2
    better = check_with_evidence(rows, biased(), CLIMATE_FEVER)
    assert [one.verdict for one in better] == ["SUPPORTS", "REFUTES"]
    # The bias gone, one option has e times the probability of each of the three others.
    assert max(better[0].probabilities) == pytest.approx(math.e / (math.e + 3))


def test_prompt_has_all_there_is_and_content_free_prompts_nothing_of_it():
    model = biased()
    check_with_evidence(claims("Ice melts."), model, CLIMATE_FEVER)
    prompts = [prompt for prompt, _ in model.options]
    blank, asked = prompts[: len(PLACEHOLDERS)], prompts[len(PLACEHOLDERS) :]
    assert len(asked) == 1
    for part in ("Claim: Ice melts.", "[1] Passage 0.", "[2] Passage 1.", "- REFUTES: ", "- NOT_ENOUGH_INFO: "):
        assert part in asked[0]
    for text, prompt in zip(PLACEHOLDERS, blank, strict=True):
        assert "Ice" not in prompt
        assert "Passage" not in prompt
        assert f"Claim: {text}" in prompt
        assert f"[2] {text}" in prompt


def test_failures_keep_their_place():
    done = []
    found = check_with_evidence(
        claims("A.", "Broken.", "REFUTES"), biased(broken=("Broken",)), CLIMATE_FEVER, on_progress=done.append
    )
    assert [one.error for one in found] == [None, "No luck.", None]
    assert found[1].verdict is None
    assert found[2].verdict == "REFUTES"
    assert sum(done) == 3


def test_prompts_without_content_that_all_fail_are_an_error():
    with pytest.raises(ModelError, match="No luck"):
        check_with_evidence(claims("A."), biased(broken=PLACEHOLDERS), CLIMATE_FEVER)
