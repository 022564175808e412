"""Fine-tuning jobs against a small server of files and jobs."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from climassay.errors import InputError, ModelError
from climassay.models.openai.connection import RetryPolicy
from climassay.models.openai.finetuning import fine_tune, read_state
from patience import LOOK_EVERY, PATIENCE, reached

DATA = b'{"messages": [{"role": "user", "content": "?"}, {"role": "assistant", "content": "VALID"}]}\n'
REAL = "sk-51f8c2e0d9"
FAST = RetryPolicy(attempt_timeout=PATIENCE, max_attempts=3, base=0.0)


class Jobs:
    """What the server has, and what it is told to do."""

    def __init__(self):
        self.files, self.jobs, self.asked = {}, {}, []
        self.script = ["queued", "running", "succeeded"]
        """States of a job, one a look; the last one stays."""
        self.faults = []
        """(path, status, headers) that the next requests get."""
        self.looked = threading.Event()
        self.error = None
        self.added = ""
        """To the names of fine-tuned models."""


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *_):
        pass

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.failed("POST"):
            return
        if self.path.endswith("/files"):
            name = f"file-{len(self.server.jobs_state.files)}"
            self.server.jobs_state.files[name] = body
            self.reply({"id": name, "object": "file"})
        else:
            wanted = json.loads(body)
            number = f"job-{len(self.server.jobs_state.jobs)}"
            self.server.jobs_state.jobs[number] = {"id": number, "looks": 0, **wanted}
            self.reply(self.described(number))

    def do_GET(self):
        if self.failed("GET"):
            return
        state = self.server.jobs_state
        found = re.search(r"/jobs/([\w-]+)", self.path)
        if found is None:
            self.reply({"object": "list", "data": [self.described(number) for number in state.jobs]})
            return
        state.jobs[found[1]]["looks"] += 1
        self.reply(self.described(found[1]))
        state.looked.set()

    def described(self, number):
        state = self.server.jobs_state
        job = state.jobs[number]
        status = state.script[min(job["looks"], len(state.script) - 1)]
        return {
            "id": number,
            "status": status,
            "training_file": job["training_file"],
            "fine_tuned_model": f"ft:{job['model']}:{number}{state.added}" if status == "succeeded" else None,
            "error": state.error if status == "failed" else None,
        }

    def failed(self, verb):
        state = self.server.jobs_state
        state.asked.append((verb, self.path.partition("?")[0]))
        for fault in state.faults:
            path, status, headers = fault
            if path in f"{verb} {self.path}":
                state.faults.remove(fault)
                message = f"Status {status} for {self.headers['Authorization']}"
                self.reply({"error": {"message": message}}, status, headers)
                return True
        return False

    def reply(self, value, status=200, headers=None):
        body = json.dumps(value).encode()
        self.send_response(status)
        for name, text in {"Content-Type": "application/json", **(headers or {})}.items():
            self.send_header(name, text)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server():
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    made.jobs_state = Jobs()
    thread = threading.Thread(target=made.serve_forever, args=(LOOK_EVERY,), daemon=True)
    thread.start()
    yield made
    made.shutdown()
    made.server_close()


def url(server):
    return f"http://127.0.0.1:{server.server_port}/v1"


def run(server, state, *, data=DATA, **options):
    """The state in the end, and the waits on the way to it."""
    waits = []
    given = {"base_url": url(server), "api_key": REAL, "sleep": waits.append, "policy": FAST, **options}
    return fine_tune("openai:small", data, state, **given), waits


def test_upload_create_poll_adopt(server, tmp_path):
    state, told = tmp_path / "state.json", []
    found, waits = run(server, state, validation=DATA * 2, epochs=3, suffix="check", seed=7, on_status=told.append)
    assert found.model_name == "openai:ft:small:job-0"
    (job,) = server.jobs_state.jobs.values()
    assert (job["model"], job["training_file"], job["validation_file"]) == ("small", "file-0", "file-1")
    assert job["method"] == {"type": "supervised", "supervised": {"hyperparameters": {"n_epochs": 3}}}
    assert (job["suffix"], job["seed"]) == ("check", 7)
    assert DATA in server.jobs_state.files["file-0"]
    assert b"fine-tune" in server.jobs_state.files["file-0"]
    assert waits == [30.0]
    assert [one.status for one in told] == ["new", "new", "new", "queued", "running", "succeeded"]
    assert read_state(state) == found
    assert "sk-51f8c2e0d9" not in state.read_text()


def test_what_is_done_asks_nothing(server, tmp_path):
    state = tmp_path / "state.json"
    run(server, state)
    before = len(server.jobs_state.asked)
    found, _ = run(server, state)
    assert found.model == "ft:small:job-0"
    assert len(server.jobs_state.asked) == before


def test_other_data_are_refused(server, tmp_path):
    state = tmp_path / "state.json"
    run(server, state)
    with pytest.raises(InputError, match="other data or settings"):
        run(server, state, data=DATA * 2)
    with pytest.raises(InputError, match="other data or settings"):
        run(server, state, epochs=9)


def test_outages_are_outlived_and_the_last_one_leaves_a_state_to_go_on_from(server, tmp_path):
    state = tmp_path / "state.json"
    server.jobs_state.faults = [("GET /v1/fine_tuning/jobs/", 503, None)] * 3
    with pytest.raises(ModelError, match=r"No answer after 3 attempts.*503"):
        run(server, state)
    assert read_state(state).job_id == "job-0"
    found, _ = run(server, state)
    assert found.model == "ft:small:job-0"
    assert len(server.jobs_state.jobs) == len(server.jobs_state.files) == 1


def test_a_real_key_is_blanked_in_a_job_s_error_and_refused_in_its_names(server, tmp_path):
    server.jobs_state.script, server.jobs_state.error = ["failed"], {"message": f"No credit for {REAL}."}
    with pytest.raises(ModelError, match=r"No credit for \*\*\*\."):
        run(server, tmp_path / "failed.json")
    server.jobs_state.script, server.jobs_state.added = ["succeeded"], REAL
    with pytest.raises(ModelError, match="repeats the API key"):
        run(server, tmp_path / "state.json", data=DATA * 3)
    assert all(REAL not in file.read_text() for file in (tmp_path / "failed.json", tmp_path / "state.json"))


def test_a_failed_job_says_why_and_is_not_started_again(server, tmp_path):
    state = tmp_path / "state.json"
    server.jobs_state.script = ["running", "failed"]
    server.jobs_state.error = {"message": "The file has too few examples."}
    with pytest.raises(ModelError, match="is failed: The file has too few examples"):
        run(server, state)
    with pytest.raises(ModelError, match=r"Remove .* to start another"):
        run(server, state)
    assert len(server.jobs_state.jobs) == 1


def test_a_job_that_was_created_and_not_written_down_is_adopted(server, tmp_path):
    state = tmp_path / "state.json"
    run(server, state)
    # As a process leaves it that is killed between the server's answer and the write.
    data = json.loads(state.read_text())
    state.write_text(json.dumps({**data, "job_id": None, "status": "new", "model": None}))
    found, _ = run(server, state)
    assert found.job_id == "job-0"
    assert len(server.jobs_state.jobs) == 1


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
    server.jobs_state.script = ["running"]
    process = subprocess.Popen([sys.executable, "-c", KILLED, str(data), str(state), url(server)], env=os.environ)
    reached(server.jobs_state.looked)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert read_state(state).job_id == "job-0"
    server.jobs_state.script = ["running", "succeeded"]
    found, _ = run(server, state, seed=0)
    assert found.model == "ft:small:job-0"
    assert len(server.jobs_state.jobs) == len(server.jobs_state.files) == 1


@pytest.mark.parametrize("text", ["{", "[]", '{"format": "other"}'], ids=["cut", "list", "other"])
def test_a_file_that_is_no_state(server, tmp_path, text):
    state = tmp_path / "state.json"
    state.write_text(text)
    with pytest.raises(InputError, match="not a fine-tuning of climassay"):
        run(server, state)
