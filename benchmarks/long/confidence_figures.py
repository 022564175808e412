"""What the text layer of reports tells of levels of confidence in figures.

Counts, for each page with a figure's caption, text objects that are nothing but a level's mark: letters (L, M, H, VH),
dots, or its words; and whether the page explains them. Paths are what is drawn instead.

    python benchmarks/long/confidence_figures.py --data ../shared/data
"""

import argparse
import re
from pathlib import Path

import pypdfium2
import pypdfium2.raw as pdfium

FILES = ("ipcc_ar6_wg1_spm.pdf", "ipcc_sr15_spm.pdf", "ipcc_ar6_wg3_ch07_agriculture.pdf")
_CAPTION = re.compile(r"Figure\s+(SPM\.\d+|\d+\.\d+)\s*[|:]")
_MARKS = {
    "letters": re.compile(r"(?:(?:VH|VL|H|M|L)[\s,]*)+"),
    "dots": re.compile(r"[•●○◦∙⬤\s]*[•●○◦∙⬤][•●○◦∙⬤\s]*"),
    "words": re.compile(r"(?:very )?(?:high|medium|low)(?: confidence)?", re.IGNORECASE),
}
_KEY = re.compile(r"\bL ?= ?low\b|\bH ?= ?high\b|(?:high|medium|low)\s*[•●]", re.IGNORECASE)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = parser.parse_args().data / "pdf"
    for name in FILES:
        document = pypdfium2.PdfDocument(folder / name)
        figures: set[str] = set()
        for number, page in enumerate(document, start=1):
            text = page.get_textpage().get_text_bounded().replace("\r\n", "\n")
            captions = set(_CAPTION.findall(text))
            figures |= captions
            lines = [line.strip() for line in text.split("\n")]
            found = {kind: sum(bool(mark.fullmatch(line)) for line in lines) for kind, mark in _MARKS.items()}
            if (captions or _KEY.search(text)) and (any(found.values()) or _KEY.search(text)):
                paths = sum(one.type == pdfium.FPDF_PAGEOBJ_PATH for one in page.get_objects())
                key = "explained" if _KEY.search(text) else "not explained"
                print(f"{name}, page {number}: {found}, {key}; {paths} drawn paths")
        print(f"{name}: {len(figures)} figures with a caption")


if __name__ == "__main__":
    main()
