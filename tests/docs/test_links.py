"""Links of pages, and the pages that code refers to, lead to files and headings that exist."""

import re
import unicodedata
from functools import cache

import pytest

from documentation import ROOT, page_name, pages

pytestmark = pytest.mark.core

FENCED = re.compile(r"(?ms)^ *(```+).*?^ *\1\s*$")
CODE = re.compile(r"(`+).+?\1", re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"(?m)^#{1,6} (.+)$")
MADE_BY_THE_SITE = re.compile(r"(^|/)reference/[\w]+\.md$")
FILE_IN_PAGE = re.compile(r"\b(?:benchmarks|tests|notebooks|docs|requirements)/[\w/-]+\.\w+\b")
PAGE_IN_CODE = re.compile(r"\bdocs/[\w/-]+\.md\b")


def anchor(heading):
    """The anchor that MkDocs gives a heading."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", text).strip().lower())


@cache
def anchors(page):
    return {anchor(heading) for heading in HEADING.findall(FENCED.sub("", page.read_text(encoding="utf-8")))}


def broken_links(page):
    text = CODE.sub("", FENCED.sub("", page.read_text(encoding="utf-8")))
    for link in LINK.findall(text):
        path, _, wanted = link.partition("#")
        if "://" in link or link.startswith("mailto:") or MADE_BY_THE_SITE.search(path):
            continue
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (wanted and target.suffix == ".md" and wanted not in anchors(target)):
            yield f"{page_name(page)}: {link}"


@pytest.mark.parametrize("page", [*pages(), ROOT / "CHANGELOG.md", ROOT / "SECURITY.md"], ids=page_name)
def test_links_lead_to_files_and_headings(page):
    assert list(broken_links(page)) == []


def test_a_broken_link_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr("documentation.ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "# One `name`: two\n\n[a](#one-name-two) [b](#two) [c](page.md#one-name-two) [d](none.md) `[e](x.md)`\n"
        "\n```text\n[f](none.md)\n# three\n```\n\n[g](#three) [h](https://example.org/none.md)\n",
        encoding="utf-8",
    )
    assert list(broken_links(page)) == ["page.md: #two", "page.md: none.md", "page.md: #three"]


@pytest.mark.parametrize("page", pages(), ids=page_name)
def test_files_named_in_sentences_and_commands_exist(page):
    named = set(FILE_IN_PAGE.findall(page.read_text(encoding="utf-8")))
    assert sorted(name for name in named if not (ROOT / name).exists()) == []


def test_pages_named_in_code_exist():
    files = [
        ROOT / "Makefile",
        *(path for folder in ("src", "tests", "benchmarks") for path in (ROOT / folder).rglob("*.py")),
    ]
    named = {(name, path) for path in files for name in PAGE_IN_CODE.findall(path.read_text(encoding="utf-8"))}
    assert len(named) > 20
    assert sorted(f"{path.relative_to(ROOT)}: {name}" for name, path in named if not (ROOT / name).exists()) == []
