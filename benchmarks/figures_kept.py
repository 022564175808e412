"""Figures kept: the numbers of what climassay reads, against those that programs of others find in the same files.

The reference is pandoc for web pages, EPUB books and Word files, and ``pdftotext -layout`` for PDF files. Both texts
are cut into number tokens: digits with their decimal and thousands marks, a sign if one stands before, and the
exponent if one follows (``-1.5``, ``1,000``, ``10^22``, ``^-2`` of ``W m⁻²``). Tokens are compared as multisets:

* kept: tokens of the reference's text and tables that climassay has;
* missing: tokens of the reference's text and tables that climassay does not have;
* invented: tokens that climassay has and the reference does not have anywhere;
* apart: tokens of the reference that are not compared: blocks that are links for the most part, marks of notes,
  program text, tables of contents, mathematics (pandoc writes TeX), and in PDF files running lines, lines of few words
  (axes, labels), and what follows the heading of a list of references.

    python benchmarks/figures_kept.py FILES [--examples 5] [--json]
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from climassay.corpus import ReadOptions, read

PANDOC_FORMATS = {".html": "html", ".htm": "html", ".xhtml": "html", ".epub": "epub", ".docx": "docx"}
MIN_LINK_SHARE = 0.5
MIN_WORDS = 4
"""Fewest words of a line of a PDF file that counts as running text."""
MIN_REPEATED = 3
"""Pages from which on a line that differs in its numbers only is a running line."""
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿ", "0123456789+-=()n", strict=True))
_RAISED_RUN = re.compile(f"[{''.join(_RAISED)}]+")
_EXPONENT = re.compile(r"[+\-−–‒]?\d{1,3}|\d{1,2}[+\-−–‒]")
_TOKEN = re.compile(r"(?:(?<![\w.,)\]}%°^-])[+-](?=\.?\d))?\d+(?:[.,]\d+)*(?:\^[+-]?\d+)?|\^[+-]?\d+")
MATHEMATICS = "mathematics"
_MATHEMATICS = re.compile(r"\\[A-Za-z]+|[{}$&\\^_]")
_REFERENCES = re.compile(r"(?:\d+\.?\s+)?(?:references|bibliography|works cited|literature cited)", re.IGNORECASE)
_DASHES = str.maketrans("−‐‑‒–—﹣－", "--------", "\u00ad\u200b\u2060\ufeff")


def number_tokens(text: str, *, signs: bool = True) -> Counter[str]:
    """Return the number tokens of a text as a multiset; characters are compared by NFKC, dashes as hyphens.

    Args:
        text: The text.
        signs: Whether signs and exponents belong to the numbers; ``pdftotext`` sets both apart.
    """
    text = _RAISED_RUN.sub(lambda match: "^" + "".join(_RAISED[char] for char in match.group()) + " ", text)
    plain = unicodedata.normalize("NFKC", text).translate(_DASHES).replace("⁄", "/")
    return Counter(_TOKEN.findall(plain) if signs else re.findall(r"\d+(?:[.,]\d+)*", plain))


@dataclass
class Reference:
    """Texts of a reference, apart by whether readers should have them."""

    text: list[str] = field(default_factory=list)
    apart: dict[str, list[str]] = field(default_factory=dict)

    def add(self, text: str, kind: str | None = None) -> None:
        """Add a text to what is compared, or to what is left out as this kind."""
        (self.text if kind is None else self.apart.setdefault(kind, [])).append(text)


class PandocReader:
    """Collects the text of a pandoc document, block by block."""

    def __init__(self) -> None:
        self.reference = Reference()
        self._linked = 0
        self._kind: str | None = None

    def blocks(self, blocks: list[dict[str, Any]]) -> None:
        """Add the text of blocks and of all within them."""
        for block in blocks:
            content = block.get("c")
            match block["t"]:
                case "Para" | "Plain":
                    self._end_block(self._inlines(content))
                case "Header":
                    self._end_block(self._inlines(content[2]))
                case "LineBlock":
                    self._end_block(" ".join(self._inlines(line) for line in content))
                case "CodeBlock":
                    self.reference.add(content[1], "program text")
                case "BulletList":
                    for item in content:
                        self.blocks(item)
                case "OrderedList":
                    for item in content[1]:
                        self.blocks(item)
                case "DefinitionList":
                    for term, definitions in content:
                        self._end_block(self._inlines(term))
                        for definition in definitions:
                            self.blocks(definition)
                case "BlockQuote":
                    self.blocks(content)
                case "Div":
                    self._within("table of contents" if _is_contents(content[0]) else self._kind, content[1])
                case "Figure":
                    self.blocks(content[2])
                case "Table":
                    self._table(content)

    def _within(self, kind: str | None, blocks: list[dict[str, Any]]) -> None:
        outer, self._kind = self._kind, kind
        self.blocks(blocks)
        self._kind = outer

    def _table(self, content: list[Any]) -> None:
        _, caption, _, head, bodies, foot = content
        self.blocks(caption[1])
        rows = [*head[1], *(row for body in bodies for part in body[2:4] for row in part), *foot[1]]
        for row in rows:
            for cell in row[1]:
                self.blocks(cell[4])

    def _end_block(self, text: str) -> None:
        is_navigation = self._linked > MIN_LINK_SHARE * len(text.replace(" ", "")) and len(text) < 300
        self._linked = 0
        self.reference.add(text, self._kind or ("links" if is_navigation else None))

    def _inlines(self, inlines: list[dict[str, Any]]) -> str:
        text = ""
        for inline in inlines:
            text += self._inline(inline, text)
        return text

    def _inline(self, inline: dict[str, Any], before: str) -> str:
        content = inline.get("c")
        match inline["t"]:
            case "Str":
                return str(content)
            case "Space" | "SoftBreak" | "LineBreak":
                return " "
            case "Superscript":
                return self._raised(content, before)
            case "Math":
                self.reference.add(_MATHEMATICS.sub(" ", content[1]), MATHEMATICS)
                return " "
            case "Image" if content[2][1].startswith("fig:"):  # the caption of a figure, for pandoc before 3.0
                return self._inlines(content[1])
            case "Code":
                return f" {content[1]} "
            case "Note":
                self.blocks(content)
            case "Link":
                linked = self._inlines(content[1])
                self._linked += len(linked.replace(" ", ""))
                return linked
            case "Emph" | "Strong" | "Underline" | "Strikeout" | "Subscript" | "SmallCaps":
                return self._inlines(content)
            case "Span" | "Quoted" | "Cite":
                return self._inlines(content[1])
        return ""

    def _raised(self, content: list[dict[str, Any]], before: str) -> str:
        """Return an exponent; put the mark of a note apart: a link, a list of marks, or a figure after a word."""
        linked = self._linked
        text = self._inlines(content).strip()
        is_link, self._linked = self._linked > linked, linked
        plain = text.translate(_DASHES)
        if (
            is_link
            or re.fullmatch(r"[\[(]?\d+[\])]?(?:\s*[,;-]\s*\d+)+", plain)
            or re.fullmatch(r"[\[(]\w{1,3}[\])]", plain)
        ):
            self.reference.add(text, "marks of notes")
            return ""
        if plain.isdigit() and re.search(r"[^\W\d_]{3,}$|[.,;:!?”’)\]]$|^$", before):
            self.reference.add(f"^{plain}", "marks of notes")
            return ""
        return f"^{plain} " if _EXPONENT.fullmatch(plain) else text


def _is_contents(attributes: list[Any]) -> bool:
    return bool({"toc", "TOC"} & {attributes[0], *attributes[1]})


def read_pandoc(path: Path) -> Reference:
    command = ["pandoc", "--from", PANDOC_FORMATS[path.suffix.lower()], "--to", "json", str(path)]
    done = subprocess.run(command, capture_output=True, timeout=600, check=True)
    reader = PandocReader()
    reader.blocks(json.loads(done.stdout)["blocks"])
    return reader.reference


def read_pdftotext(path: Path) -> Reference:
    done = subprocess.run(["pdftotext", "-layout", str(path), "-"], capture_output=True, timeout=600, check=True)
    pages = [page.splitlines() for page in done.stdout.decode("utf-8", "replace").split("\f")]
    masks = Counter(mask for page in pages for mask in {re.sub(r"\d+", "#", line.strip()) for line in page})
    reference = Reference()
    in_references = False
    for line in (line.strip() for page in pages for line in page):
        in_references = in_references or _REFERENCES.fullmatch(line) is not None
        if in_references:
            kind: str | None = "references"
        elif masks[re.sub(r"\d+", "#", line)] >= MIN_REPEATED:
            kind = "running lines"
        else:
            kind = None if len(re.findall(r"[^\W\d_]{2,}", line)) >= MIN_WORDS else "lines of few words"
        reference.add(line, kind)
    return reference


def read_ours(path: Path) -> str:
    """Return the text and headings that climassay reads."""
    result = read(path, ReadOptions(references=True, captions=True))
    texts: list[str] = []
    for document in result.documents:
        headings: set[tuple[str, ...]] = set()
        for block in document.blocks:
            # A heading is a text of its own that the blocks below it repeat.
            for depth in range(1, len(block.headings) + 1):
                if block.headings[:depth] not in headings:
                    headings.add(block.headings[:depth])
                    texts.append(block.headings[depth - 1])
            texts.append(block.text)
    return "\n".join(texts)


@dataclass(frozen=True)
class Comparison:
    """Counts of number tokens of one file or of several."""

    file: str
    in_reference: int
    kept: int
    missing: dict[str, int]
    invented: dict[str, int]
    apart: dict[str, int]

    @property
    def share(self) -> float | None:
        """Kept as a share of the numbers in the reference's text and tables."""
        return self.kept / self.in_reference if self.in_reference else None


def compare(path: Path) -> Comparison:
    is_pdf = path.suffix.lower() == ".pdf"
    reference = read_pdftotext(path) if is_pdf else read_pandoc(path)
    return compare_texts(path.name, read_ours(path), reference, signs=not is_pdf)


def compare_texts(name: str, text: str, reference: Reference, *, signs: bool = True) -> Comparison:
    found = number_tokens(text, signs=signs)
    expected = number_tokens("\n".join(reference.text), signs=signs)
    apart = {kind: number_tokens("\n".join(texts), signs=signs) for kind, texts in reference.apart.items()}
    everywhere = sum(apart.values(), Counter(expected))
    mathematics = apart.get(MATHEMATICS, Counter())
    # Tables repeat the names of their columns in each row: a number is invented if the reference has it nowhere.
    unknown = {token: count for token, count in found.items() if token not in everywhere}
    # Signs and exponents within formulas are written differently by TeX.
    invented = {
        token: n for token, n in unknown.items() if not set(re.findall(r"[\d.,]+", token)) <= mathematics.keys()
    }
    missing = expected - found
    return Comparison(
        name,
        expected.total(),
        (expected & found).total(),
        dict(missing.most_common()),
        invented,
        {kind: tokens.total() for kind, tokens in apart.items() if tokens},
    )


def in_total(rows: list[Comparison]) -> Comparison:
    def total(part: Callable[[Comparison], dict[str, int]]) -> dict[str, int]:
        return dict(sum((Counter(part(row)) for row in rows), Counter()).most_common())

    return Comparison(
        f"{len(rows)} files",
        sum(row.in_reference for row in rows),
        sum(row.kept for row in rows),
        total(lambda row: row.missing),
        total(lambda row: row.invented),
        total(lambda row: row.apart),
    )


def lines(row: Comparison, n_examples: int) -> Iterator[str]:
    share = "" if row.share is None else f"{row.share:.4f}"
    n_missing, n_invented = sum(row.missing.values()), sum(row.invented.values())
    counts = f"{row.in_reference:9} {row.kept:9} {share:>7} {n_missing:8} {n_invented:9} {sum(row.apart.values()):8}"
    yield f"{row.file[:60]:60} {counts}"
    for name, tokens in (("missing", row.missing), ("invented", row.invented), ("apart", row.apart)):
        if tokens and n_examples:
            yield f"    {name}: " + ", ".join(f"{token} ({n})" for token, n in [*tokens.items()][:n_examples])


def main() -> None:
    parser = argparse.ArgumentParser(description="Numbers that climassay reads, against pandoc and pdftotext.")
    parser.add_argument("files", nargs="+", type=Path, help="HTML, EPUB, DOCX and PDF files")
    parser.add_argument("--examples", type=int, default=0, help="number of tokens to show of each kind")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    endings = {path.suffix.lower() for path in arguments.files}
    for program, needed in (("pandoc", endings & PANDOC_FORMATS.keys()), ("pdftotext", endings & {".pdf"})):
        if needed and not shutil.which(program):
            sys.exit(
                f"{program} is needed for {', '.join(sorted(needed))}: install it (Debian: pandoc, poppler-utils)."
            )
    if unknown := endings - PANDOC_FORMATS.keys() - {".pdf"}:
        sys.exit(f"No reference reads {', '.join(sorted(unknown))}; give HTML, EPUB, DOCX or PDF files.")
    rows = []
    if not arguments.json:
        print(f"{'file':60} {'reference':>9} {'kept':>9} {'share':>7} {'missing':>8} {'invented':>9} {'apart':>8}")
    for path in arguments.files:
        try:
            rows.append(compare(path))
        except subprocess.CalledProcessError as error:
            print(f"{path.name}: the reference program failed ({error.stderr[:100]!r}).", file=sys.stderr)
            continue
        if not arguments.json:
            print(*lines(rows[-1], arguments.examples), sep="\n", flush=True)
    total = in_total(rows)
    if arguments.json:
        print(json.dumps([{**asdict(row), "share": row.share} for row in (*rows, total)], indent=2))
    else:
        print(*lines(total, 4 * arguments.examples), sep="\n")


if __name__ == "__main__":
    main()
