"""A server that is killed in the middle of a debate goes on with it, and it comes out as if nothing had happened."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from check_parts import SUN, ask, ended, furnish, scripted, write_settings
from climassay.factcheck import as_data, make_claim
from climassay.web import AppState, ServerSettings
from climassay.web.checks.debate import BEGIN_EVENT, get_check_store, load_live_debate
from climassay.web.jobs import JobEvent
from climassay.workspace import Workspace
from patience import PATIENCE
from web_parts import application_over

pytestmark = pytest.mark.process

DRIVER = Path(__file__).with_name("checks_killed_driver.py")


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Opens servers; ``server(folder)`` gives a place and its settings' file is the same for all."""
    monkeypatch.setenv("CLIMASSAY_CACHE", str(tmp_path / "cache"))
    settings, places = write_settings(tmp_path), []

    def opened(name):
        places.append(AppState(Workspace.open(tmp_path / name), ServerSettings(debates=(settings,))))
        return places[-1]

    opened.settings = settings
    yield opened
    for place in places:
        place.close()


def share(place, script):
    """What a server that starts again loads; the collections are there."""
    furnish(place, script, texts={})
    return script


def test_a_debate_that_was_killed_goes_on_and_only_what_is_missing_is_asked(server, tmp_path):
    whole = server("whole")
    every = scripted()
    furnish(whole, every)
    with application_over(whole) as client_of:
        wanted = ended(whole, ask(client_of("annotator"))).transcript
    questions = len(every.model.texts)
    cut = questions // 2
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(DRIVER.parents[1]), *sys.path])}
    driver = subprocess.run(
        [sys.executable, str(DRIVER), str(tmp_path / "killed"), str(server.settings), str(cut)],
        env=environment, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert driver.returncode == -9, driver.stderr
    place = server("killed")
    place.jobs.requeue_foreign_jobs()
    script = share(place, scripted())
    [about] = get_check_store(place).list().checks
    assert (about.state, about.claim.text) == ("waiting", SUN)
    with application_over(place) as client_of:
        kept = ended(place, about.id)
        page = client_of("annotator").get(f"/checks/{about.id}").text
    assert kept.about.state == "done", kept.about.error
    assert as_data(kept.transcript) == as_data(wanted)
    assert "incorrect" in page
    # What a call was about to answer when it died is asked again; what earlier calls answered is not.
    assert 0 < len(script.model.texts) < questions
    kinds = [event.kind for event in place.jobs.events(kept.about.job)]
    assert kinds.count(BEGIN_EVENT) == 2
    again = kinds[len(kinds) - kinds[::-1].index(BEGIN_EVENT) :]
    assert again.count("subclaims") == again.count("verdict") == 1


def test_a_page_shows_only_what_the_present_attempt_has_told(server):
    place = server("attempts")
    furnish(place, scripted())
    with application_over(place) as client_of:
        kept = ended(place, ask(client_of("annotator")))
    job, settings = kept.about.job, kept.settings
    told = place.jobs.events(job)

    def jobs_with(*more):
        every = [*told, *more]
        return SimpleNamespace(events=lambda _job, after: [event for event in every if event.number > after])

    begin = JobEvent(len(told) + 1, BEGIN_EVENT, {}, told[-1].told_at + 1000)
    before = load_live_debate(jobs_with(), job, settings)
    begun = load_live_debate(jobs_with(begin), job, settings)
    again = JobEvent(len(told) + 2, told[1].kind, told[1].body, begin.told_at + 1)
    going = load_live_debate(jobs_with(begin, again), job, settings)
    assert len(before.entries) == sum(event.kind not in (BEGIN_EVENT, "activity") for event in told)
    assert (before.progress.step, before.progress.final) == (before.progress.steps, True)
    assert (begun.progress.step, going.progress.step) == (1, 2)
    # The time between the attempts does not count, that of the first one does.
    assert begin.told_at - begun.began == pytest.approx(told[-1].told_at - told[0].told_at)
    assert (begun.entries, begun.sources, begun.last_number) == ((), (), len(told) + 1)
    assert [(entry.number, entry.kind) for entry in going.entries] == [(len(told) + 2, "subclaims")]


def test_a_check_that_was_stored_but_not_queued_is_queued_at_the_next_start(server):
    from climassay.web.checks.store import choose_debate

    place = server("forgotten")
    furnish(place, scripted())
    check = get_check_store(place).begin(make_claim(SUN), choose_debate(place, "").settings, setup="two sides")
    with application_over(place):
        assert ended(place, check).about.label == "incorrect"
