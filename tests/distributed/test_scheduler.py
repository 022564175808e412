"""Who gets a job, and what becomes of it when workers die; workers here are objects that answer as Ray's handles do."""

import asyncio
import importlib.util

import pytest

from climassay import __version__
from climassay.distributed import pool as scheduler_module
from climassay.distributed.pool import WorkerScheduler
from climassay.distributed.remote import JobResult
from climassay.errors import InputError, ModelError

if importlib.util.find_spec("ray") is None:
    pytest.skip("Ray is not installed (the extra ray brings it)", allow_module_level=True)


class Method:
    """A remote method: what it returns is awaited."""

    def __init__(self, call):
        self.remote = call


class Handle:
    """A worker that dies over the jobs named so many times, and is away for some greetings afterwards."""

    def __init__(self, deaths=0, away=0, version=__version__, gone=False):
        self.deaths, self.away, self.installed, self.gone = deaths, away, version, gone
        self.jobs = []
        self.version, self.run_job = Method(self._version), Method(self._run_job)

    async def _version(self):
        from ray.exceptions import ActorDiedError, ActorUnavailableError

        if self.gone:
            raise ActorDiedError
        if self.away:
            self.away -= 1
            raise ActorUnavailableError("It is being started.", None)
        return self.installed

    async def _run_job(self, spec, job):
        from ray.exceptions import ActorDiedError

        self.jobs.append(job)
        await asyncio.sleep(0)
        if self.deaths:
            self.deaths -= 1
            raise ActorDiedError
        return JobResult(f"{spec} {job}")


def run(handles, jobs):
    async def everything():
        scheduler = WorkerScheduler(handles)
        return await asyncio.gather(*(scheduler.run_job("model", job) for job in jobs))

    return asyncio.run(everything())


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch):
    monkeypatch.setattr(scheduler_module, "_POLL_SECONDS", 0)


def test_each_worker_has_one_job_at_a_time():
    handles = [Handle(), Handle()]
    done = run(handles, range(6))
    assert [one.result for one in done] == [f"model {number}" for number in range(6)]
    assert sorted(job for handle in handles for job in handle.jobs) == list(range(6))
    assert all(len(handle.jobs) == 3 for handle in handles)


def test_a_job_goes_to_another_worker_while_the_dead_one_is_started_again():
    back, other = Handle(deaths=1, away=3), Handle()
    done = run([back, other], range(6))
    assert all(one.failure_reason is None for one in done)
    assert back.jobs[0] in other.jobs
    assert len(back.jobs) + len(other.jobs) == 7


def test_a_job_that_kills_its_workers_is_given_up_and_the_others_are_done():
    done = run([Handle(deaths=9)], ["bad"])
    assert done[0].failure_reason == "No answer from 3 workers in turn; the last one: its worker died."


def test_a_worker_that_is_gone_for_good_leaves_the_work_to_the_others():
    handles = [Handle(gone=True), Handle(version="0.0"), Handle()]
    assert [one.result for one in run(handles, "ab")] == ["model a", "model b"]
    assert handles[2].jobs == ["a", "b"]


def test_without_any_worker_everybody_who_waits_is_told_why():
    with pytest.raises(
        ModelError, match=rf"No worker of the cluster is left: the nodes have climassay 0\.0, .*{__version__}"
    ):
        run([Handle(version="0.0")], "abc")


def test_a_worker_that_does_not_start_in_time_is_given_up(monkeypatch):
    monkeypatch.setattr(scheduler_module, "MAX_START_SECONDS", 0.0)
    with pytest.raises(ModelError, match="did not start within 0 s; is another job using the cluster"):
        run([Handle(away=10**9)], "a")


def test_a_refusal_is_raised_as_what_it_was():
    with pytest.raises(InputError, match=r"^No layer is asked for$"):
        JobResult.from_error(InputError("No layer is asked for")).raise_for_error()
    with pytest.raises(ModelError, match="different weights"):
        JobResult(result=[], fingerprint="b").raise_for_error("a")
    assert JobResult(failure_reason="its worker died.").raise_for_error("a").failure_reason
    with pytest.raises(ModelError, match=r"could not be encoded: its worker died\."):
        JobResult(failure_reason="its worker died.").vectors()
