"""A small dataset to annotate in a web server's workspace: two questions of each kind, about clouds and ice."""

from climassay.generation import DatasetStore, Draft, Origin, SourcePassage, Wording
from climassay.generation.annotation import AnnotationSettings, AnnotationStore
from climassay.generation.dataset_store import StoredDraft

DATASET = "clouds"
FREEZING = (
    "Pure cloud droplets freeze homogeneously only near −38 °C, because at higher temperatures the chance that "
    "molecules arrange themselves into an ice embryo of critical size is negligible. At warmer temperatures freezing "
    "relies on an ice-nucleating particle, most often immersed in the droplet. Mineral dust is the leading type below "
    "about −15 °C, while certain bacterial proteins nucleate ice at a few degrees below zero."
)
BRIGHTNESS = (
    "A cloud of many small droplets scatters more sunlight than one with the same water in fewer large drops. Adding "
    "aerosol particles to a clean marine cloud therefore raises its albedo, an effect named after Sean Twomey. In air "
    "that is polluted already the same addition changes little, since the number of droplets saturates."
)
OPTIONS = ("Near −15 °C", "Near −38 °C", "Near −5 °C", "Near −60 °C")


def source(number: int, text: str, **fields) -> SourcePassage:
    return SourcePassage(
        **{
            "id": f"p{number}", "text": text, "document_id": "clouds", "document": "Clouds and Climate",
            "section": "Ice > Nucleation",
            "citation": f"Clouds and Climate, Ice > Nucleation, pp. {40 + number}–{41 + number}",
            "url": "https://example.org/clouds", "licence": "CC BY 4.0",
        }
        | fields
    )  # fmt: skip


PASSAGES = (source(1, FREEZING), source(2, BRIGHTNESS, similarity=0.71))
WORDINGS = {
    "q1": ("mcq", Wording("At which temperature do pure cloud droplets freeze by themselves?", OPTIONS[1], OPTIONS, 1)),
    "q2": (
        "freeform",
        Wording(
            "Why do pure droplets not freeze at higher temperatures?",
            "An ice embryo of critical size hardly ever forms there by chance.",
        ),
    ),
    "q3": ("cloze", Wording("Mineral dust is the leading type of immersed particle below about −15 °C.", "dust")),
    "q4": (
        "mcq",
        Wording(
            "What raises the albedo of a clean marine cloud?",
            "More aerosol particles",
            ("Fewer droplets", "Larger drops", "More aerosol particles", "Less water"),
            2,
        ),
    ),
    "q5": ("freeform", Wording("Whose name does the effect of aerosol on cloud brightness bear?", "Sean Twomey's.")),
    "q6": ("cloze", Wording("In polluted air the number of droplets saturates, so more aerosol changes little.")),
}


def draft(name: str, **fields) -> Draft:
    kind, wording = WORDINGS[name]
    origin = Origin("local:writer", "f" * 64, (("generate", "a" * 64),), 7)
    told = {"id": name, "kind": kind, "level": "base", "wording": wording, "passages": PASSAGES, "origin": origin}
    return Draft(**told | fields)


def fill(place, drafts=None, *, dataset=DATASET, **settings) -> AnnotationStore:
    """Store a dataset in a place, set up how it is annotated, and give the annotations."""
    store = DatasetStore(place.records)
    store.begin(dataset, {"made": "by hand"})
    store.save(
        dataset, [StoredDraft(one, "clouds", number) for number, one in enumerate(drafts or map(draft, WORDINGS))]
    )
    annotations = AnnotationStore(place.records)
    annotations.configure(dataset, AnnotationSettings(**settings))
    return annotations
