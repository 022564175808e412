"""Run notebooks from the first cell to the last, in an empty folder, and keep what the cells printed in the files.

``python notebooks/execute.py NOTEBOOK...``; ends with 1 where a cell fails, and leaves that notebook as it was.
"""

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

MINUTES = 30
"""Longest time of one cell: the bundled model takes its time on a busy machine."""


def execute(path: Path) -> str | None:
    """Run one notebook and write it back; the message of a cell that failed."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(
            notebook, timeout=MINUTES * 60, kernel_name="python3", resources={"metadata": {"path": folder}}
        )
        try:
            client.execute()
        except CellExecutionError as error:
            return str(error)
    for cell in notebook.cells:
        cell.metadata.clear()
        # Progress bars and notes of libraries are no results.
        if cell.cell_type == "code":
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(notebook, path)
    return None


def main(names: list[str]) -> int:
    """Run all of them; how many failed decides the exit code."""
    failed = 0
    for name in names:
        said = execute(Path(name))
        sys.stderr.write(f"{name}: {'run' if said is None else said}\n")
        failed += said is not None
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
