"""The built site (``make docs``) loads nothing from elsewhere, and can be read, searched and used on a phone."""

import functools
import re
import threading
from collections import Counter
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import module_from_spec, spec_from_file_location
from urllib.parse import urlsplit

import pytest
import yaml

from browser import PHONE, WIDE, inside
from documentation import ROOT
from required_programs import missing

SITE = ROOT / "site"
LOADED = re.compile(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"(https?:)?//|<link\b[^>]*\bhref=\"(https?:)?//")
PAGES = ("index.html", "tutorials/judge.html", "explanation/climaqa.html", "reference/judging.html", "gallery.html")


def nav_pages(entries):
    for entry in entries:
        for value in entry.values() if isinstance(entry, dict) else [entry]:
            yield from nav_pages(value) if isinstance(value, list) else [value]


def configured():
    return yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))


def test_every_page_is_in_the_navigation_and_the_other_way_round():
    nav = set(nav_pages(configured()["nav"]))
    there = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    made = {page for page in nav if page.startswith("reference/")}
    assert there - nav == set()
    assert nav - made - there <= {"scale.md", "reliability.md", "security.md"}


def test_every_room_with_public_names_has_a_reference_page():
    nav = {page for page in nav_pages(configured()["nav"]) if page.startswith("reference/")}
    # Commands, pages, what climassay itself offers, and io, which is for other rooms.
    rooms = {"cli", "web", "api", "reproduction", "io"}
    there = {path.parent.name for path in (ROOT / "src" / "climassay").glob("*/__init__.py")}
    assert {f"reference/{name}.md" for name in there - rooms} <= nav


@pytest.fixture(scope="module")
def site_pages():
    specification = spec_from_file_location("site_pages", ROOT / "docs" / "site_pages.py")
    pages = module_from_spec(specification)
    specification.loader.exec_module(pages)
    return pages


def test_the_page_of_commands_shows_the_help_of_each(site_pages):
    page = "\n".join(site_pages._commands())
    assert page.count("\n```text\nUsage: climassay") > 80
    assert "### climassay evaluate mcq\n\n```text\nUsage: climassay evaluate mcq" in page


def test_every_public_name_has_one_place_in_the_reference(site_pages):
    places = [
        place
        for name in (site_pages.TOP, *(f"{site_pages.TOP}.{room}" for room in site_pages._rooms()))
        for place in re.findall(r"(?m)^::: (.+)$", site_pages._room(name))
    ]
    assert len(places) > 200
    assert [place for place, count in Counter(places).items() if count > 1] == []


@pytest.fixture(scope="module")
def site():
    if not (SITE / "index.html").is_file():
        missing("site", "make docs has not been run")
    return SITE


@pytest.mark.slow
def test_nothing_is_loaded_from_another_host(site):
    found = [str(page) for page in site.rglob("*.html") if LOADED.search(page.read_text(encoding="utf-8"))]
    assert found == []


@pytest.fixture
def served(site):
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.mark.slow
@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_pages_work_in_a_browser(chromium, served, viewport, scheme):
    from axe_playwright_python.sync_playwright import Axe

    browser, loop = chromium
    faults = []
    with inside(loop):
        context = browser.new_context(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
        context.on("console", lambda line: faults.append(line.text) if line.type == "error" else None)
        context.on("weberror", lambda error: faults.append(str(error.error)))
        context.on(
            "request", lambda request: urlsplit(request.url).hostname == "127.0.0.1" or faults.append(request.url)
        )
        page = context.new_page()
        for path in PAGES:
            page.goto(f"{served}/{path}")
            assert page.locator("h1").count() == 1
            wider = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
            assert wider <= 0, f"{path} is {wider} pixels wider than the screen"
            shade = page.evaluate("document.body.getAttribute('data-md-color-scheme')")
            assert shade == {"light": "default", "dark": "slate"}[scheme]
            # Colours are ours; roles and names of its parts are the theme's.
            faults += [
                f"{path}: {fault['help']}: {fault['nodes'][0]['html'][:200]}"
                for fault in Axe().run(page).response["violations"]
                if fault["id"] in ("color-contrast", "link-in-text-block")
            ]
        context.close()
    assert not [fault for fault in faults if not fault.startswith(("data:", "blob:"))]


@pytest.mark.slow
def test_search_finds_a_page(chromium, served):
    browser, loop = chromium
    with inside(loop):
        page = browser.new_page()
        page.goto(f"{served}/index.html")
        page.get_by_placeholder("Search").first.fill("McNemar")
        page.locator(".md-search-result__item").first.wait_for()
        assert "McNemar" in page.locator(".md-search-result__list").inner_text()
        page.close()
