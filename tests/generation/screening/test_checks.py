"""Every check finds its fault, and leaves alone what only looks like it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from climassay.errors import InputError
from climassay.generation.screening import MODEL_CHECKS, check_names, question_draft, screen
from climassay.primer import screening_examples
from screened_drafts import ANSWER, OPTIONS, PASSAGE, cloze, faults, freeform, mcq

FAULTY = [
    ("context reference", freeform("According to the passage, why do droplets not freeze at higher temperatures?")),
    ("context reference", freeform("Which particles does the text mention as rare in pure cloud droplets?")),
    ("context reference", freeform("What is the author's view of freezing in cloud droplets?")),
    ("context reference", freeform("Why do droplets not freeze, based on the information in the provided context?")),
    ("context reference", cloze("As described above, the freezing of droplets relies on an immersed particle.")),
    ("figure reference", freeform("What does Figure 3.1 show of the freezing of cloud droplets?")),
    ("figure reference", freeform("Which temperature in Table 2 is that of freezing droplets?")),
    ("figure reference", freeform("Which particles are shown in the graph of freezing temperatures?")),
    ("figure reference", freeform("Why do droplets not freeze, according to Eq. (4)?")),
    ("not self-contained", freeform("These particles freeze droplets at which temperature?")),
    ("not self-contained", freeform("What did the researchers find in droplets near −38 °C?")),
    ("not self-contained", freeform("How did droplets freeze in the experiment described?")),
    ("not self-contained", freeform("Why does this happen to pure cloud droplets only near −38 °C?")),
    ("not self-contained", cloze("However, the freezing of droplets relies on an immersed particle.")),
    ("option count", mcq(options=OPTIONS[:3])),
    ("option count", mcq(options=(*OPTIONS, "Near −1 °C"))),
    ("option count", mcq(correct=None)),
    ("option count", mcq(options=(*OPTIONS[:3], " "))),
    ("duplicate options", mcq(options=(*OPTIONS[:3], "near –38 °C."))),
    ("duplicate options", mcq(options=("The dust", "a dust", "Soot", "Salt"), correct=2)),
    ("overlapping options", mcq(options=("It freezes", "It freezes at once", "It melts", "It falls"), correct=2)),
    ("overlapping options", mcq(options=("Dust is melting", "Dust melts", "Soot", "Salt"), correct=2)),
    ("gathering option", mcq(options=(*OPTIONS[:3], "All of the above"))),
    ("gathering option", mcq(options=(*OPTIONS[:3], "None of these"))),
    ("gathering option", mcq(options=(*OPTIONS[:3], "Both A and C"))),
    ("negative option", mcq(options=(*OPTIONS[:3], "Droplets do not freeze"))),
    ("negative option", mcq(options=(*OPTIONS[:3], "Never"))),
    (
        "clue by length",
        mcq(options=("Near −38 °C, where molecules arrange into an embryo", *OPTIONS[2:], "At 0"), correct=0),
    ),
    ("clue by length", mcq("What freezes?", ("Ice", *(f"A droplet of the {one} cloud in air" for one in "xyz")), 0)),
    ("clue by words", mcq(options=("Near −38 °C pure droplets freeze", *OPTIONS[2:], "Near 0 °C"), correct=0)),
    ("clue by grammar", mcq("Freezing of a warm droplet relies on an", ("ice particle", "salt", "drop", "dust"), 0)),
    ("clue by grammar", mcq("Droplets freeze on a:", ("nucleus", "ice", "embryo", "aerosol"), 0)),
    ("clue by grammar", mcq("The particles that freeze droplets are", ("proteins", "soot", "salt", "air"), 0)),
    ("several sentences", cloze("Droplets freeze near −38 °C. Mineral dust helps them at warmer temperatures.")),
    ("several sentences", cloze("Droplets freeze.")),
    ("several sentences", cloze("Which immersed particle makes droplets freeze at warmer temperatures?")),
    ("no sentence", cloze("Ice-nucleating particles and the freezing of cloud droplets")),
    ("no sentence", cloze("Aerosol Sources, Composition and Size > Modes of the size distribution:")),
    ("no sentence", cloze("The leading types are the following: dust, soot, pollen and biological;")),
    ("no sentence", cloze("Mineral dust, soot from biomass burning, and sea salt in the marine air.")),
    ("no sentence", cloze("The freezing of droplets in the absence of an immersed particle of dust.")),
    ("no sentence", cloze("## 3.2 Droplets freeze near −38 °C when they are pure.")),
    ("no sentence", cloze("- Droplets freeze near −38 °C when they are pure.")),
    ("no sentence", cloze("8.3.2 Droplets freeze near −38 °C when they are pure.")),
    ("no sentence", cloze("Figure 2.1 | Droplets that freeze near −38 °C when they are pure.")),
    ("no sentence", cloze("Droplets freeze near −38 °C when they are pure, and above it only if a")),
    ("no sentence", cloze("Das Gefrieren der reinen Tropfen in den Wolken")),
    ("term not one word", cloze(term="mineral dust")),
    ("term absent", cloze(term="soot")),
    ("term absent", cloze(term="drop")),
    ("term repeated", cloze("A particle makes droplets freeze when particles are immersed in them.", "particle")),
    ("term trivial", cloze(term="such")),
    ("term trivial", cloze("Droplets freeze near 38 degrees below zero when they are pure.", "38")),
    ("foreign quantity", mcq(options=("Near −38 °C", "Near 2", "Near −41 °C", "Near 1"), correct=2)),
    ("foreign quantity", cloze("Mineral dust is the leading type of ice-nucleating particle below about −25 °C.")),
    ("foreign quantity", freeform("How long is ice?", "It is about 40 km.", level="reasoning")),
    ("unsupported answer", freeform("Why do snails dissolve?", "Carbonate becomes scarce in acidified seawater.")),
    ("unsupported answer", cloze("Coral reefs bleach whenever the summer sea stays unusually warm for weeks.")),
    ("unsupported answer", freeform(answer="The answer is")),
    ("no question mark", freeform("The freezing of pure cloud droplets.")),
    ("no question mark", mcq("Pure cloud droplets freeze at a temperature.")),
    ("copied question", freeform("Mineral dust is the leading type below about −15 °C?")),
    ("long answer", freeform(answer=f"{ANSWER} It is tiny. So nothing freezes.")),
    ("no answer", freeform(answer=" ")),
    ("no answer", freeform("")),
    ("no answer", freeform(answer="Do they not freeze?")),
    ("other language", freeform("Warum gefrieren die Tropfen nicht?", "Weil der Keim zu klein ist und sich auflöst.")),
    ("other language", cloze("As gotas das nuvens não congelam sem uma partícula de poeira.")),
]
SOUND = [
    ("context reference", freeform("In which context do droplets freeze near −38 °C, and why?")),
    ("context reference", freeform("How does the passage of a front change the freezing of cloud droplets?")),
    ("context reference", freeform("How does the passage of air through a cloud change its droplets?")),
    ("figure reference", freeform("Why does the water table sink when droplets freeze at −38 °C?")),
    ("figure reference", freeform("What does the equation of state say about section 5 km above the cloud?")),
    ("not self-contained", freeform("If dust nucleates ice, at which temperature does this freezing begin?")),
    ("not self-contained", freeform("A study froze droplets with dust. Why did the study fail near 0 °C?")),
    ("not self-contained", freeform("Suppose dust fell on a cloud. How would droplets freeze in this scenario?")),
    ("not self-contained", freeform("If all dust were gone, what would freeze in the scenario described?")),
    ("not self-contained", cloze("It takes an immersed particle to freeze droplets at warmer temperatures.")),
    ("figure reference", freeform("Which value of the equation x = 3 y belongs to freezing?")),
    ("not self-contained", freeform("How will the freezing of droplets change in this century?")),
    ("duplicate options", mcq(options=("+1 °C", "−1 °C", "1 K", "1 m"))),
    ("overlapping options", mcq(options=("It rises", "It rises, but less", "It falls", "It falls by half"))),
    ("overlapping options", mcq(options=("About 3", "About 3.5", "About 30", "About 3 m"))),
    (
        "gathering option",
        mcq(options=("All droplets", "None, as ice melts", "Both phases of water", "Some of them freeze")),
    ),
    ("negative option", mcq(options=("Not only ice but water", "It does not change", "Ice", "Air"))),
    ("negative option", mcq(options=tuple(f"It does not touch {one}" for one in ("ice", "air", "dust", "soot")))),
    ("clue by grammar", mcq("Freezing relies on an", ("ice particle", "aerosol", "embryo", "dust grain"), 0)),
    ("clue by grammar", mcq("Droplets consist of a", ("uniform liquid", "mist", "dust", "gas"), 0)),
    ("several sentences", cloze("Droplets freeze on particles, e.g. on mineral dust, at approx. −15 °C.")),
    ("no sentence", cloze("Droplets freeze near −38 °C unless dust helps them (high confidence). {3.2.1, Figure 3.4}")),
    ("no sentence", cloze("Argo floats measure the salinity of the upper ocean every ten days.")),
    ("no sentence", cloze("Vertical shear tears tropical cyclones apart.")),
    ("no sentence", cloze("Mass loss from ice sheets rose in the 1990s.")),
    ("no sentence", cloze("1.5 °C of warming doesn’t melt the ice sheet of East Antarctica.")),
    ("no sentence", cloze("0.5 W m⁻² of forcing warmed the surface of the ocean.")),
    ("no sentence", cloze("“Droplets freeze near −38 °C when they are pure.”")),
    ("no sentence", cloze("Reine Tropfen gefrieren erst bei etwa −38 °C ohne einen Keim.")),
    ("term repeated", cloze(term="freezing")),
    ("term not one word", cloze("Freezing relies on an ice-nucleating particle that is immersed.", "ice-nucleating")),
    ("foreign quantity", freeform("By how much?", "By 60 K.", level="hypothetical")),
    ("no question mark", mcq("Pure cloud droplets freeze at")),
    ("no question mark", mcq("Pure cloud droplets freeze near ____.")),
    ("long answer", freeform(answer="It is tiny, e.g. at −5 °C. So nothing freezes.")),
    ("other language", cloze("El Niño and La Niña alternate over the Pacific.", "La")),
]


def _ids(cases):
    return [f"{name.replace(' ', '-')}-{number}" for number, (name, _) in enumerate(cases)]


@pytest.mark.parametrize(("name", "draft"), FAULTY, ids=_ids(FAULTY))
def test_a_fault_is_found_by_its_check(name, draft):
    assert name in faults(draft)
    assert faults(draft, only=[name]) == [name]


@pytest.mark.parametrize(("name", "draft"), SOUND, ids=_ids(SOUND))
def test_what_only_looks_like_a_fault_is_left_alone(name, draft):
    assert name not in faults(draft)


def test_all_faults_are_told_in_the_order_of_the_checks_and_nothing_is_removed():
    drafts = [mcq(), freeform("According to the text, see Table 1.", ""), freeform(error="It was cut off."), cloze()]
    marked = screen(drafts)
    assert [draft.id for draft in marked] == [draft.id for draft in drafts]
    reasons = [decision.reason for decision in marked[1].decisions]
    assert reasons == [name for name in check_names() if name in reasons]
    assert {"no answer", "no question mark", "context reference", "figure reference"} <= set(reasons)
    assert all(decision.detail.endswith(".") for decision in marked[1].decisions)
    assert marked[2] == drafts[2]


def test_checks_can_be_switched_off_and_chosen():
    draft = freeform("According to the text, see Table 1?")
    assert faults(draft) == ["context reference", "figure reference"]
    assert faults(draft, without=["context reference"]) == ["figure reference"]
    assert faults(draft, only=["context reference", "figure reference"], without=["figure reference"]) == [
        "context reference"
    ]
    with pytest.raises(InputError, match="no check called 'grammar'"):
        screen([draft], without=["grammar"])
    with pytest.raises(InputError, match="needs a model: give an encoder"):
        screen([draft], only=["off topic"])


def test_another_language_can_be_asked_for():
    german = freeform("Warum gefrieren die Tropfen nicht?", "Weil der Keim zu klein ist und sich auflöst.")
    assert faults(german, only=["other language"], language="de") == []
    assert faults(freeform(), only=["other language"], language="de") == ["other language"]
    with pytest.raises(InputError, match="is not supported"):
        screen([german], language="xx")


def test_passages_are_the_measure_of_numbers_whatever_their_unit():
    halved = PASSAGE.replace("−38 °C", "235 K")
    assert faults(mcq(passage=PASSAGE), only=["foreign quantity"]) == []
    assert faults(mcq(passage=halved), only=["foreign quantity"]) == ["foreign quantity"]


@given(st.text(max_size=60), st.text(max_size=60), st.lists(st.text(max_size=20), max_size=5), st.integers(-1, 5))
def test_no_text_breaks_a_check(question, answer, options, correct):
    drafts = [
        mcq(question, options, None if correct < 0 else correct),
        freeform(question, answer),
        cloze(question, answer),
    ]
    marked = screen(drafts)
    assert all(draft.decisions for draft in marked)


def test_the_examples_with_faults_are_stopped_and_the_good_ones_are_not():
    examples = screening_examples()
    assert len(examples) == 60
    marked = screen([question_draft(example) for example in examples])
    for example, draft in zip(examples, marked, strict=True):
        found = {decision.reason for decision in draft.decisions if decision.accepted is False}
        ruled = set(example.faults) - set(MODEL_CHECKS)
        assert found == ruled, example.id


@pytest.mark.parametrize(
    "question",
    [
        "Explain how droplets freeze without an ice-nucleating particle.",
        "Describe what an ice embryo is.",
        "Suppose a cloud has no mineral dust. State why its droplets stay liquid.",
        "Compare mineral dust with bacterial proteins as ice-nucleating particles.",
    ],
)
def test_a_task_asks_as_well_as_a_question(question):
    assert "no question mark" not in faults(freeform(question))


@pytest.mark.parametrize(
    "options",
    [
        ("Likely", "Very likely", "Extremely likely", "About as likely as not"),
        ("High confidence", "Very high confidence", "Medium confidence", "Low confidence"),
        ("It cools slightly", "It cools strongly", "It warms slightly", "It warms strongly"),
    ],
)
def test_steps_of_a_scale_are_different_options(options):
    assert faults(mcq(options=options), only=["overlapping options", "duplicate options"]) == []


@pytest.mark.parametrize(
    ("question", "found"),
    [
        ("How much does the sea rise under the lower scenario?", True),
        ("How does the rise differ between the two pathways?", True),
        ("How much more does the sea rise under SSP5-8.5 than under SSP1-1.9, the lower scenario?", False),
        ("In a scenario without volcanoes and in one with them, how do the two scenarios differ in warming?", False),
        ("Why is the warming smaller in the scenario with less methane?", False),
    ],
)
def test_a_case_is_named_and_not_only_ranked(question, found):
    assert bool(faults(mcq(question), only=["not self-contained"])) is found
