"""Follow the tutorials with the bundled model, and put the reports that they write into ``docs/gallery``.

Run: make gallery
"""

import os
import shutil
import tempfile
from pathlib import Path

from documentation import ROOT, WIDTH, Reader

REPORTS = {
    "evaluate": ("report.html", "experiment.html"),
    "judge": ("judge.html", "judge.html"),
    "factcheck": ("check.html", "check.html"),
    "benchmark": ("dataset.html", "dataset.html"),
}
"""By tutorial: the report that it writes, and its name in the gallery."""


def main() -> None:
    """Replace every report of the gallery."""
    os.environ.pop("CLIMASSAY_WORKSPACE", None)
    os.environ |= {"COLUMNS": str(WIDTH), "HF_HUB_OFFLINE": "1"}
    for tutorial, (written, name) in REPORTS.items():
        with tempfile.TemporaryDirectory() as folder:
            for _ in Reader(Path(folder)).follow(ROOT / "docs" / "tutorials" / f"{tutorial}.md"):
                pass
            shutil.copy(Path(folder) / written, ROOT / "docs" / "gallery" / name)
        print(f"docs/gallery/{name} written")


if __name__ == "__main__":
    main()
