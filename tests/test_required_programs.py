"""Tests that need a program say so in one line, or fail where it must be there."""

import pytest

from required_programs import REQUIRE_VARIABLE, missing, summary_of_skipped


def test_what_is_missing_is_skipped_or_fails(monkeypatch):
    monkeypatch.delenv(REQUIRE_VARIABLE, raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium"):
        missing("browser", "no Chromium")
    monkeypatch.setenv(REQUIRE_VARIABLE, "postgres")
    with pytest.raises(pytest.skip.Exception):
        missing("browser", "no Chromium")
    monkeypatch.setenv(REQUIRE_VARIABLE, "postgres, browser")
    with pytest.raises(pytest.fail.Exception, match="asks for browser, but no Chromium"):
        missing("browser", "no Chromium")


def test_one_line_tells_what_was_left_out():
    reasons = [
        "Skipped: [postgres] no initdb",
        "Skipped: no shared data",
        "Skipped: [browser] no chromium",
        "Skipped: [postgres] no initdb",
    ]
    assert summary_of_skipped(reasons) == (
        "Not run here: 2 tests on PostgreSQL (no initdb) and 1 test in a browser (no chromium); "
        ".ci/run installs what they need."
    )
    assert summary_of_skipped(["Skipped: no shared data"]) == ""
