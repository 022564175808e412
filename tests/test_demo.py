import re

import pytest

from command_line import run_command


@pytest.mark.slow
def test_the_demo_runs_the_whole_path_and_its_report_is_self_contained(tmp_path, monkeypatch, capsys):
    report = tmp_path / "demo" / "report.html"
    code, shown, _ = run_command(monkeypatch, capsys, "demo", "--output", report)
    assert code == 0
    assert "Accuracy by level" in shown
    assert "Not enough information." in shown
    page = report.read_text(encoding="utf-8")
    assert "<svg" in page
    assert not re.search(r"<script|<link|https?://", page)
    assert "A claim, debated" in page
    assert "Verdict after" in shown
    debate = report.with_name("factcheck.html").read_text(encoding="utf-8")
    assert "primer-contrarian" in debate
