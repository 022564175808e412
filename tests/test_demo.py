import re

import pytest

from climassay.cli.main import main


@pytest.mark.slow
def test_the_demo_runs_the_whole_path_and_its_report_is_self_contained(tmp_path, monkeypatch, capsys):
    report = tmp_path / "demo" / "report.html"
    monkeypatch.setattr("sys.argv", ["climassay", "demo", "--output", str(report)])
    main()
    shown = capsys.readouterr().out
    assert "Accuracy by level" in shown
    assert "Not enough information." in shown
    page = report.read_text(encoding="utf-8")
    assert "<svg" in page
    assert not re.search(r"<script|<link|https?://", page)
    assert "A claim, debated" in page
    assert "Verdict after" in shown
    debate = report.with_name("factcheck.html").read_text(encoding="utf-8")
    assert "primer-contrarian" in debate
