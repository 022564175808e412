"""Fine-tuning jobs against a small server of files and jobs."""

import json
import os
import re
import signal
import subprocess
import sys
import threading

import pytest

from api_server import ApiServer
from climassay.errors import InputError, ModelError
from climassay.models.openai.finetuning import fine_tune, read_state
from climassay.models.openai.pacing import RetryPolicy
from patience import PATIENCE, reached

DATA = b'{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "VALID"}]}\n'
REAL = "sk-51f8c2e0d9"
FAST = RetryPolicy(attempt_timeout=PATIENCE, max_attempts=3, base=0.0)


class Jobs(ApiServer):
    """A server of files and jobs: what it has, and what it is told to do."""

    def __init__(self):
        super().__init__()
        self.files, self.jobs, self.requested = {}, {}, []
        self.script = ["queued", "running", "succeeded"]
        """States of a job, one a look; the last one stays."""
        self.faults = []
        """(path, status, headers) that the next requests get."""
        self.looked = threading.Event()
        self.failure = None
        self.added = ""
        """To the names of fine-tuned models."""

    def other_route(self, method, path, headers, raw):
        self.requested.append((method, path.partition("?")[0]))
        for fault in self.faults:
            place, status, more = fault
            if place in f"{method} {path}":
                self.faults.remove(fault)
                return status, {"error": {"message": f"Status {status} for {headers['authorization']}"}}, more
        if method == "POST" and path.endswith("/files"):
            name = f"file-{len(self.files)}"
            self.files[name] = raw
            return 200, {"id": name, "object": "file"}
        if method == "POST":
            number = f"job-{len(self.jobs)}"
            self.jobs[number] = {"id": number, "looks": 0, **json.loads(raw)}
            return 200, self.described(number)
        found = re.search(r"/jobs/([\w-]+)", path)
        if found is None:
            return 200, {"object": "list", "data": [self.described(number) for number in self.jobs]}
        self.jobs[found[1]]["looks"] += 1
        self.looked.set()
        return 200, self.described(found[1])

    def described(self, number):
        job = self.jobs[number]
        status = self.script[min(job["looks"], len(self.script) - 1)]
        return {
            "id": number,
            "status": status,
            "training_file": job["training_file"],
            "fine_tuned_model": f"ft:{job['model']}:{number}{self.added}" if status == "succeeded" else None,
            "error": self.failure if status == "failed" else None,
        }


@pytest.fixture
def server():
    with Jobs() as running:
        yield running


def run(server, state, *, data=DATA, **options):
    """The state in the end, and the waits on the way to it."""
    waits = []
    given = {"base_url": server.url, "api_key": REAL, "sleep": waits.append, "policy": FAST, **options}
    return fine_tune("openai:small", data, state, **given), waits


def test_upload_create_poll_adopt(server, tmp_path):
    state, told = tmp_path / "state.json", []
    found, waits = run(server, state, validation=DATA * 2, epochs=3, suffix="check", seed=7, on_status=told.append)
    assert found.model_name == "openai:ft:small:job-0"
    (job,) = server.jobs.values()
    assert (job["model"], job["training_file"], job["validation_file"]) == ("small", "file-0", "file-1")
    assert job["method"] == {"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 3}}}
    assert (job["suffix"], job["seed"]) == ("check", 7)
    assert DATA in server.files["file-0"]
    assert b"fine-tune" in server.files["file-0"]
    assert waits == [30.0]
    assert [one.status for one in told] == ["new", "new", "new", "queued", "running", "succeeded"]
    assert read_state(state) == found
    assert "sk-51f8c2e0d9" not in state.read_text()


def test_what_is_done_asks_nothing(server, tmp_path):
    state = tmp_path / "state.json"
    run(server, state)
    before = len(server.requested)
    found, _ = run(server, state)
    assert found.model == "ft:small:job-0"
    assert len(server.requested) == before


def test_other_data_are_refused(server, tmp_path):
    state = tmp_path / "state.json"
    run(server, state)
    with pytest.raises(InputError, match="other data or settings"):
        run(server, state, data=DATA * 2)
    with pytest.raises(InputError, match="other data or settings"):
        run(server, state, epochs=9)


def test_outages_are_outlived_and_the_last_one_leaves_a_state_to_go_on_from(server, tmp_path):
    state = tmp_path / "state.json"
    server.faults = [("GET /v1/fine_tuning/jobs/", 503, None)] * 3
    with pytest.raises(ModelError, match=r"No answer after 3 attempts.*503"):
        run(server, state)
    assert read_state(state).job_id == "job-0"
    found, _ = run(server, state)
    assert found.model == "ft:small:job-0"
    assert len(server.jobs) == len(server.files) == 1


def test_a_real_key_is_blanked_in_a_job_s_error_and_refused_in_its_names(server, tmp_path):
    server.script, server.failure = ["failed"], {"message": f"No credit for {REAL}."}
    with pytest.raises(ModelError, match=r"No credit for \*\*\*\."):
        run(server, tmp_path / "failed.json")
    server.script, server.added = ["succeeded"], REAL
    with pytest.raises(ModelError, match="repeats the API key"):
        run(server, tmp_path / "state.json", data=DATA * 3)
    assert all(REAL not in file.read_text() for file in (tmp_path / "failed.json", tmp_path / "state.json"))


def test_a_failed_job_says_why_and_is_not_started_again(server, tmp_path):
    state = tmp_path / "state.json"
    server.script = ["running", "failed"]
    server.failure = {"message": "The file has too few examples."}
    with pytest.raises(ModelError, match="is failed: The file has too few examples"):
        run(server, state)
    with pytest.raises(ModelError, match=r"Remove .* to start another"):
        run(server, state)
    assert len(server.jobs) == 1


def test_a_job_that_was_created_and_not_written_down_is_adopted(server, tmp_path):
    state = tmp_path / "state.json"
    run(server, state)
    # As a process leaves it that is killed between the server's answer and the write.
    data = json.loads(state.read_text())
    state.write_text(json.dumps({**data, "job_id": None, "status": "new", "model": None}))
    found, _ = run(server, state)
    assert found.job_id == "job-0"
    assert len(server.jobs) == 1


KILLED = """
import sys
from pathlib import Path
from climassay.models.openai.finetuning import fine_tune
fine_tune("small", Path(sys.argv[1]).read_bytes(), Path(sys.argv[2]), base_url=sys.argv[3], api_key="sk-51f8c2e0d9",
          poll_seconds=0.05)
"""


@pytest.mark.process
def test_a_process_killed_while_it_waits_goes_on_with_its_job(server, tmp_path):
    state, data = tmp_path / "state.json", tmp_path / "data.jsonl"
    data.write_bytes(DATA)
    server.script = ["running"]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(data), str(state), server.url], env=os.environ)
    reached(server.looked)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert read_state(state).job_id == "job-0"
    server.script = ["running", "succeeded"]
    found, _ = run(server, state, seed=0)
    assert found.model == "ft:small:job-0"
    assert len(server.jobs) == len(server.files) == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other"}'], ids=["cut", "list", "other"])
def test_a_file_that_is_no_state(server, tmp_path, text):
    state = tmp_path / "state.json"
    state.write_text(text)
    with pytest.raises(InputError, match="not the state of a fine-tuning job"):
        run(server, state)
