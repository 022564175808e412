"""Sessions, passwords and links under attack: fixation, theft, guessing, open redirects, foreign hosts."""

import re
import threading
from urllib.parse import urlsplit

import pytest

from climassay.web import accounts
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import MAX_ATTEMPTS
from web_routes import Site

pytestmark = pytest.mark.faults

PASSWORD = "a long warm summer"


@pytest.fixture
def site(tmp_path):
    opened = Site(tmp_path / "workspace")
    opened.account("ada", password=PASSWORD)
    yield opened
    opened.close()


def sign_in(client, name="ada", password=PASSWORD, **fields):
    return client.post("/sign-in", data={"name": name, "password": password, **fields})


def signed_in(client) -> bool:
    return client.get("/account").status_code == 200


@pytest.mark.core
def test_a_session_known_before_signing_in_is_not_the_one_after(site):
    """Fixation: the attacker plants a cookie in the victim's browser and waits."""
    for planted in ("planted-by-the-attacker", site.place.accounts.begin_session(site.account("mallory"), 1)):
        victim = site.visitor(token=False)
        victim.cookies.set(SESSION_COOKIE, planted, domain="127.0.0.1")
        victim.headers["x-csrf-token"] = csrf(victim)
        assert sign_in(victim).status_code == 303
        given = victim.cookies.get(SESSION_COOKIE, domain="127.0.0.1")
        assert given != planted
        attacker = site.visitor(token=False)
        attacker.cookies.set(SESSION_COOKIE, planted)
        assert not signed_in(attacker)


def csrf(client):
    """The token for whatever cookies the client holds."""
    return re.search(r'<meta name="csrf" content="([0-9a-f]+)">', client.get("/").text).group(1)


def test_a_role_that_is_taken_away_is_gone_at_once(site):
    site.account("root", "admin")
    client = site.visitor("admin")
    assert client.get("/users").status_code == 200
    site.place.accounts.change("admin", role="annotator")
    assert client.get("/users").status_code == 403


@pytest.mark.parametrize(
    "cookie", ["", "x", "a" * 5000, "%00", "ü\u202e", "'; DROP TABLE web_users; --", '"quoted"', "\x80"]
)
def test_an_invented_cookie_signs_nobody_in(cookie, site):
    client = site.visitor(token=False)
    raw = f"{SESSION_COOKIE}={cookie}".encode("utf-8", "surrogatepass")
    answer = client.get("/account", headers=[(b"cookie", raw)])
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


@pytest.mark.parametrize("address", ["", "https://climassay.example.org"])
def test_cookies_are_kept_from_scripts_and_other_sites(address, tmp_path):
    site = Site(tmp_path / "workspace", address=address)
    site.account("ada", password=PASSWORD)
    client = site.visitor(base_url=address or "http://127.0.0.1:8000")
    visitor = site.visitor(base_url=client.base_url, token=False).get("/sign-in").headers["set-cookie"]
    session = next(
        one for one in sign_in(client).headers.get_list("set-cookie") if one.startswith(f"{SESSION_COOKIE}=")
    )
    for cookie in (visitor, session):
        flags = {part.strip().lower() for part in cookie.split(";")[1:]}
        assert {"httponly", "samesite=lax", "path=/"} <= flags
        assert ("secure" in flags) is bool(address)
        assert not any(flag.startswith("domain") for flag in flags)
    assert client.get("/").headers.get("strict-transport-security", "") == ("max-age=31536000" if address else "")
    site.close()


def test_neither_pages_nor_the_database_hold_what_lets_somebody_in(site, tmp_path):
    client = site.visitor()
    assert sign_in(client).status_code == 303
    link, token = site.place.accounts.make_link("ada", "password"), site.place.accounts.make_token("ada", "x")
    secrets = (client.cookies[SESSION_COOKIE], link, token, PASSWORD)
    site.place.close()
    stored = b"".join(file.read_bytes() for file in (tmp_path / "workspace").glob("records.sqlite*"))
    shown = "".join(site.visitor(token=False, cookies=client.cookies).get(path).text for path in ("/", "/account"))
    for secret in secrets:
        assert secret.encode() not in stored
        assert secret not in shown


def test_guesses_at_the_same_moment_are_counted_each(site):
    """Twenty requests that all pass the check before any of them has failed would be twenty guesses for five."""
    clients = [site.visitor() for _ in range(20)]
    barrier, said = threading.Barrier(len(clients)), []

    def guess(number):
        barrier.wait()
        said.append(sign_in(clients[number], password=f"guess {number}").status_code)

    threads = [threading.Thread(target=guess, args=(number,)) for number in range(len(clients))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said.count(401) <= MAX_ATTEMPTS
    assert set(said) == {401, 429}


def test_the_present_password_cannot_be_guessed_in_a_stolen_session(site):
    client = site.visitor(name="ada", role="annotator")
    form = {"password": "another long summer", "repeated_password": "another long summer"}
    said = [
        client.post("/account/password", data={**form, "current_password": f"guess {n}"}).status_code
        for n in range(MAX_ATTEMPTS + 1)
    ]
    assert said == [400] * MAX_ATTEMPTS + [429]


def test_answers_do_not_tell_who_has_an_account(site, monkeypatch):
    """The same status, the same words, and the same work: one hash is verified, whatever the name."""
    site.account("nopassword")
    site.account("removed", password=PASSWORD)
    site.place.accounts.change("removed", active=False)
    verified = []
    hasher = accounts.password_hasher()

    class Counting:
        def verify(self, kept, given):
            verified.append(given)
            return hasher.verify(kept, given)

        def hash(self, password):
            return hasher.hash(password)

    monkeypatch.setattr(accounts, "password_hasher", Counting)
    texts = set()
    for name, password in (
        ("ada", "wrong"), ("nobody", "wrong"), ("nopassword", "wrong"), ("removed", PASSWORD), ("a" * 3000, "wrong"),
    ):  # fmt: skip
        before = len(verified)
        client = site.visitor()
        answer = sign_in(client, name=name, password=password)
        assert answer.status_code == 401
        assert len(verified) == before + 1, name
        texts.add(re.sub("[0-9a-f]{128}", "TOKEN", answer.text).replace(f'value="{name[:40]}"', "NAME"))
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("name", "password"),
    [("ada", ""), ("ada", PASSWORD + "\x00"), ("ada\x00", PASSWORD), ("ada", "x" * 100_000), ("' OR 1=1 --", "x"),
     ("\ud83d", "\ud83d"), ("", ""), ("ada\u202e", PASSWORD)],
    ids=["empty", "nul-behind", "nul-in-the-name", "very-long", "sql", "half-a-character", "nothing", "rtl"],
)  # fmt: skip
def test_odd_names_and_passwords_are_simply_wrong(name, password, tmp_path, database_url):
    site = Site(tmp_path / "workspace", database_url=database_url)
    site.account("ada", password=PASSWORD)
    from urllib.parse import quote

    body = f"name={quote(name, errors='surrogatepass')}&password={quote(password, errors='surrogatepass')}"
    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = site.visitor().post("/sign-in", content=body, headers=headers)
    assert answer.status_code == 401
    site.close()


def test_of_two_who_use_a_link_at_once_one_gets_in_with_the_password_they_set(site):
    """Who comes second must not have set the password of the account that the first one now uses."""
    link = site.place.accounts.make_link("ada", "password")
    clients = [site.visitor() for _ in range(2)]
    barrier, said = threading.Barrier(2), {}

    def use(number):
        password = f"the summer of number {number}"
        barrier.wait()
        form = {"password": password, "repeated_password": password}
        said[number] = clients[number].post(f"/enter/{link}", data=form)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in said.values()) == [303, 404]
    winner = next(number for number, answer in said.items() if answer.status_code == 303)
    assert signed_in(clients[winner])
    assert site.place.accounts.check_password("ada", f"the summer of number {winner}", "here") is not None


ELSEWHERE = [
    "https://evil.example/", "//evil.example", "///evil.example", "/\\evil.example", "\\/evil.example",
    "\\\\evil.example",
    "/\t/evil.example", "/\n/evil.example", "\t//evil.example", " //evil.example", "javascript:alert(1)",
    "data:text/html,x", "evil.example", "http:evil.example", "/%0d%0aLocation:%20https://evil.example",
    "/\r\nset-cookie: x=y", "/@evil.example", "https:/evil.example", "/\u2028/evil.example", "//\u0000evil.example",
]  # fmt: skip


@pytest.mark.parametrize("wanted", ELSEWHERE, ids=range(len(ELSEWHERE)))
def test_signing_in_leads_nowhere_else(wanted, site):
    for answer in (
        sign_in(site.visitor(), next=wanted),
        site.visitor("annotator").get("/sign-in", params={"next": wanted}),
    ):
        assert answer.status_code == 303
        place = answer.headers["location"]
        assert place.startswith("/")
        assert place[1:2] not in ("/", "\\")
        assert not urlsplit(place).netloc
        assert not any(ord(character) < 33 for character in place)
        assert "set-cookie: x=y" not in str(answer.headers).lower().replace("'", "")


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "", "127.0.0.1@evil.example"]
)
def test_a_foreign_host_is_not_served(host, site):
    """A foreign name that resolves to this machine (DNS rebinding) would make a foreign page a page of this server."""
    client = site.visitor("admin")
    for method, path in (("GET", "/users"), ("POST", "/users"), ("GET", "/static/app.js")):
        assert client.request(method, path, headers={"host": host}).status_code == 400


def test_the_host_of_a_request_does_not_get_into_links(tmp_path):
    site = Site(tmp_path / "workspace", host="0.0.0.0", address="https://climassay.example.org")
    client = site.visitor("admin", base_url="https://climassay.example.org")
    forged = {"x-forwarded-host": "evil.example", "forwarded": "host=evil.example"}
    answer = client.post("/users", data={"name": "eve"}, headers=forged)
    assert answer.status_code == 200
    assert "https://climassay.example.org/enter/" in answer.text
    assert "evil.example" not in answer.text
    assert client.get("/", headers={"host": "evil.example"}).status_code == 400
    site.close()
