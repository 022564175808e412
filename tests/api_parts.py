"""A server with something of everything, for tests of the API, and its operations as the document names them."""

from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from annotated_dataset import DATASET, fill
from check_parts import SUN, scripted, write_settings
from check_parts import furnish as furnish_debates
from climassay.corpus import Collection, read
from climassay.factcheck import load_settings, make_claim
from climassay.primer import book_path
from climassay.web import AppState, ServerSettings
from climassay.web.access import SESSION_COOKIE
from climassay.workspace import Workspace
from debate_parts import WordEncoder
from factcheck_transcripts import checked
from patience import job_at_its_end
from stored_runs import store_experiment, store_mcq
from web_parts import ORIGIN

BOOKS = ("physical_climate", "carbon_ice_past")
COLLECTION = "books"
API = "/api/v1"


@dataclass(frozen=True)
class Content:
    """What lies in the server."""

    documents: tuple[str, ...]
    passage: str
    run: str
    other_run: str
    check: str


def settings_of(folder: Path) -> dict:
    """Settings of a server whose debates are answered by a script."""
    return {"debates": (write_settings(folder),), "publisher": "Example Observatory"}


def furnish(place) -> Content:
    """Two primer books, six drafts to annotate twice each, two experiments, a finished check."""
    encoder = WordEncoder()
    furnish_debates(place, scripted())
    for name in ("words", "local:minilm"):
        place.shared(f"encoder {name}", lambda: encoder)
    made = Collection.create(place.workspace, COLLECTION, encoder)
    for book in BOOKS:
        made.add(read(book_path(book)).documents)
    documents = tuple(sorted(document.id for document in made.documents()))
    fill(place, dataset=DATASET, overlap=2)
    runs = store_experiment(place.records), store_mcq(place.records)
    return Content(documents, f"{documents[0]}-0", *runs, finished_check(place))


class Server:
    """A filled server, and programs that work for its users."""

    def __init__(self, place, content, client):
        self.place, self.content, self.client = place, content, client
        self._tokens = {}

    def call(self, method, path, *, role="admin", status=200, **options):
        """The response to a request, whose status is checked."""
        if role not in self._tokens:
            self._tokens[role] = bearer(self.place, role)
        response = self.client.request(method, API + path, headers=self._tokens[role], **options)
        assert response.status_code == status, response.text
        return response

    def get(self, path, *, role="annotator", status=200, **query):
        return self.call("GET", path, role=role, status=status, **({"params": query} if query else {})).json()

    def post(self, path, body=None, *, role="admin", status=200):
        return self.call("POST", path, role=role, status=status, json=body).json()

    def file(self, path, *, role):
        return self.call("GET", path, role=role).content

    def upload(self, path, name, content, status=200):
        return self.call("POST", path, status=status, files={"file": (name, content)}).json()

    def page(self, path):
        """A page as an annotator sees it."""
        bearer(self.place, "annotator")
        cookie = {"Cookie": f"{SESSION_COOKIE}={self.place.accounts.begin_session('annotator', days=1)}"}
        response = self.client.get(path, headers=cookie)
        assert response.status_code == 200, response.text
        return response.text

    def ended(self, job):
        job_at_its_end(self.place.jobs, job)


@contextmanager
def serving(folder: Path):
    """A running application over a filled workspace, as a :class:`Server`."""
    from starlette.testclient import TestClient

    from climassay.web import create_app

    place = AppState(Workspace.open(folder / "workspace"), ServerSettings(**settings_of(folder)))
    content = furnish(place)
    with TestClient(create_app(place), base_url=ORIGIN, follow_redirects=False) as client:
        yield Server(place, content, client)
    place.close()


def finished_check(place, claim=SUN) -> str:
    """A check that has ended with a verdict."""
    from climassay.web.checks.store import get_check_store

    checks = get_check_store(place)
    settings = load_settings(place.settings.debates[0])
    check = checks.begin(make_claim(claim, source="A columnist"), settings, setup="two sides", by="annotator")
    with place.records.run("check", {"claim": claim}) as run:
        checks.finish(check, checked(claim, ({"Physical": "incorrect"}, "incorrect")), run=run.id)
    checks.set_visibility(check, "published")
    return check


def bearer(place, role):
    """Headers of a program that works for the user of a role, who is made when first needed."""
    if role is None:
        return {}
    if role not in [user.name for user in place.accounts.users()]:
        place.accounts.add(role, role)
    return {"Authorization": f"Bearer {place.accounts.make_token(role, 'test')}"}


@cache
def document():
    """The OpenAPI document."""
    from climassay.web import create_app

    with TemporaryDirectory() as folder:
        state = AppState(Workspace.open(folder), ServerSettings())
        described = create_app(state).openapi()
        state.close()
    return described


def operations():
    """(method, path, operation) of all of them."""
    return [
        (method.upper(), path, operation)
        for path, methods in document()["paths"].items()
        for method, operation in methods.items()
    ]
