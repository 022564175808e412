"""Make anew what a visitor sees first: the reports of ``docs/gallery`` and the pictures in the documentation.

Tutorials and demo are followed with the bundled model; a scripted one, which answers as a strong one would, debates.

Run: make gallery
"""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from annotated_dataset import DATASET, fill
from browser import arriving, inside, server_over, started_chromium, visiting
from check_parts import SUN, Gate, ended, furnish, scripted, write_settings
from climassay.factcheck import factcheck_page, load_scale
from climassay.web.checks.store import get_check_store
from documentation import ROOT, WIDTH, Reader
from patience import reached

REPORTS = {
    "evaluate": ("report.html", "experiment.html"),
    "judge": ("judge.html", "judge.html"),
    "benchmark": ("dataset.html", "dataset.html"),
}
"""By tutorial: the report that it writes, and its name in the gallery."""
DOCS = ROOT / "docs"


def shoot(page, name, height=None):
    """Take a picture of a page's upper part, by default of what a window shows."""
    if height is not None:
        page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    page.screenshot(path=DOCS / f"{name}.png")
    print(f"docs/{name}.png written")


@contextlib.contextmanager
def pages_of(chromium, folder, **settings):
    """A server over a workspace, and how to visit it."""
    with server_over(folder, **settings) as server, visiting(chromium, server) as visit:
        yield server.place, visit


def follow_tutorials(folder):
    """Replace every report of the gallery."""
    for tutorial, (written, name) in REPORTS.items():
        (folder / tutorial).mkdir()
        for _ in Reader(folder / tutorial).follow(DOCS / "tutorials" / f"{tutorial}.md"):
            pass
        shutil.copyfile(folder / tutorial / written, DOCS / "gallery" / name)
        print(f"docs/gallery/{name} written")


def show_demo(chromium, folder):
    """What the demo writes."""
    from climassay.cli.main import app

    with contextlib.chdir(folder):
        app(["demo", "--output", "demo/report.html"])
    browser, loop = chromium
    for file, name, size in (("report", "demo-report", (1000, 1385)), ("factcheck", "factcheck-page", (900, 1500))):
        with inside(loop):
            page = browser.new_page(viewport=dict(zip(("width", "height"), size, strict=True)))
            page.goto((folder / "demo" / f"{file}.html").as_uri())
            if file == "report":
                page.get_by_role("heading", name="A cited answer").evaluate("heading => heading.scrollIntoView()")
            shoot(page, name)
            page.close()


def show_results(chromium, workspace):
    """An experiment and the library, as the tutorial on evaluation leaves them."""
    with pages_of(chromium, workspace) as (place, visit):
        place.accounts.add("anna", display_name="Anna")
        page = visit("anna")
        page.goto("/results")
        with arriving(page):
            page.get_by_role("link", name="retrieval").first.click()
        with arriving(page):
            page.get_by_role("link", name="Tables").click()
        shoot(page, "screenshots/results-experiment")
        with arriving(page):
            page.get_by_role("link", name="Questions", exact=True).click()
        with arriving(page):
            page.get_by_role("link", name="If water vapour rises by 7 per cent").click()
        shoot(page, "screenshots/results-question", 920)
        page.goto("/library/search?q=Why+does+the+stratosphere+cool%3F")
        shoot(page, "screenshots/library-search", 800)


def show_annotation(chromium, folder):
    """Questions about clouds, two annotators and what they agree on."""
    from climassay.generation.annotation import Label

    with pages_of(chromium, folder) as (place, visit):
        for name, role in (("anna", "annotator"), ("ben", "annotator"), ("carla", "admin")):
            place.accounts.add(name, role, name.capitalize())
        queue = fill(place, overlap=2)
        page, phone = visit("anna"), visit("ben", phone=True)
        page.goto(f"/annotate/{DATASET}/q1")
        shoot(page, "screenshots/annotate-mcq")
        phone.goto(f"/annotate/{DATASET}/q3")
        shoot(phone, "screenshots/annotate-cloze-phone")
        for annotator, rejected in (("anna", "q5"), ("ben", "q2 q5")):
            for number, draft in enumerate(("q1", "q2", "q3", "q4", "q5")):
                accepted = draft not in rejected
                reasons = () if accepted else ("wrong answer",)
                seconds = 9.0 + 4 * number + len(annotator)
                queue.label(
                    DATASET,
                    Label(draft, annotator, accepted=accepted, reasons=reasons, seconds=seconds, key=annotator + draft),
                )
        page = visit("carla")
        page.goto(f"/annotate/{DATASET}/agreement")
        shoot(page, "screenshots/annotate-agreement", 900)


def show_debate(chromium, folder):
    """A debate that goes on, and its verdict."""
    gate = Gate()
    with pages_of(chromium, folder, debates=(write_settings(folder),)) as (place, visit):
        furnish(place, scripted(gate))
        place.accounts.add("anna", display_name="Anna")
        page = visit("anna")
        page.goto("/check")
        page.get_by_label("The claim").fill(SUN)
        with arriving(page):
            page.get_by_role("button", name="Check it").click()
        page.wait_for_url("**/checks/c*")
        reached(gate.reached)
        page.get_by_text("The mediator is weighing").wait_for()
        shoot(page, "screenshots/check-live", 1760)
        gate.open.set()
        page.get_by_role("heading", name="How this was made").wait_for()
        check = page.url.rpartition("/")[2]
        ended(place, check)
        shoot(page, "screenshots/check-verdict", 1900)
        transcript = get_check_store(place).get(check).transcript
        (DOCS / "gallery" / "check.html").write_text(factcheck_page(transcript, load_scale("climate-feedback")))
        print("docs/gallery/check.html written")


def main() -> None:
    """Replace reports and pictures."""
    os.environ.pop("CLIMASSAY_WORKSPACE", None)
    os.environ |= {"COLUMNS": str(WIDTH), "HF_HUB_OFFLINE": "1"}
    with tempfile.TemporaryDirectory() as name, started_chromium() as chromium:
        folder = Path(name)
        follow_tutorials(folder)
        show_demo(chromium, folder)
        show_results(chromium, folder / "evaluate" / ".climassay")
        show_annotation(chromium, folder / "annotation")
        (folder / "debate").mkdir()
        show_debate(chromium, folder / "debate")


if __name__ == "__main__":
    main()
