import re
from contextlib import suppress

import pytest

from climassay.errors import InputError
from climassay.records import Records
from climassay.web.access import SESSION_COOKIE
from climassay.web.accounts import (
    MAX_ATTEMPTS,
    MAX_ATTEMPTS_PER_ADDRESS,
    MAX_ATTEMPTS_PER_DEVICE,
    MAX_ATTEMPTS_WITHOUT_DELAY,
    MAX_DELAY,
    WINDOW_SECONDS,
    AccountStore,
    TooManyAttempts,
)
from web_parts import post

GOOD = "a long enough one"


class Clock:
    def __init__(self):
        self.now = 1_000_000.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def accounts(database_url, clock):
    with Records(database_url) as records:
        yield AccountStore(records.database, clock)


@pytest.mark.parametrize("name", ["", "a", "A", "-a", "a b", "a/b", "ä1", "a" * 41, "<b>", "a\n"])
def test_names_that_cannot_be_used(accounts, name):
    with pytest.raises(InputError, match="cannot be a user name"):
        accounts.add(name)


def test_a_name_is_taken_once(accounts):
    accounts.add("ada", "admin", "  Ada   L. ")
    assert accounts.user("ada").display_name == "Ada L."
    with pytest.raises(InputError, match="already a user 'ada'"):
        accounts.add("ada")
    with pytest.raises(InputError, match="no role 'boss'"):
        accounts.add("bob", "boss")
    assert [user.name for user in accounts.users()] == ["ada"]


@pytest.mark.parametrize("password", ["", "short", "aaaaaaaaaaaaaa", "x" * 1001, "ada-lovelace"])
def test_passwords_that_are_refused(accounts, password):
    accounts.add("ada-lovelace")
    with pytest.raises(InputError):
        accounts.set_password("ada-lovelace", password)


def test_a_password_is_kept_as_argon2id_only(accounts, database_url, quick_hashes, monkeypatch):
    import sqlalchemy as sa

    from climassay.web.accounts import users

    monkeypatch.setattr("climassay.web.accounts.password_hasher", quick_hashes)
    accounts.add("ada")
    accounts.set_password("ada", GOOD)
    with Records(database_url) as records, records.database.read() as connection:
        kept = connection.execute(sa.select(users.c.password)).scalar_one()
    assert kept.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert GOOD not in kept
    assert accounts.check_password(" Ada ", GOOD, "here").name == "ada"
    assert accounts.check_password("ada", GOOD + "!", "here") is None


def test_who_has_no_password_or_is_shut_out_does_not_get_in(accounts):
    accounts.add("root", "admin")
    accounts.add("ada")
    assert accounts.check_password("ada", "", "here") is None
    accounts.set_password("ada", GOOD)
    accounts.change("ada", active=False)
    assert accounts.check_password("ada", GOOD, "here") is None


def test_attempts_are_limited_by_name_and_address(accounts, clock):
    accounts.add("ada")
    accounts.set_password("ada", GOOD)
    for _ in range(MAX_ATTEMPTS):
        assert accounts.check_password("ada", "wrong", "here") is None
    with pytest.raises(TooManyAttempts, match="15 minutes"):
        accounts.check_password("ada", GOOD, "here")
    clock.now += WINDOW_SECONDS + 1
    assert accounts.check_password("ada", GOOD, "here") is not None


def test_strangers_lock_nobody_out(accounts):
    """However many guess from wherever: the owner gets in from elsewhere, after a wait that stays short."""
    accounts.add("ada")
    accounts.set_password("ada", GOOD)
    assert accounts.sign_in_delay("ada") == 0
    for number in range(300):
        with suppress(TooManyAttempts):
            accounts.check_password("ada", "wrong", f"203.0.113.{number % 50}")
    assert 1 <= accounts.sign_in_delay(" ADA ") <= MAX_DELAY
    assert accounts.sign_in_delay("nobody") == 0
    assert accounts.check_password("ada", GOOD, "elsewhere").name == "ada"


def test_the_wait_grows_with_the_guesses_and_is_the_same_for_names_that_nobody_has(accounts, clock):
    accounts.add("ada")
    accounts.set_password("ada", GOOD)
    waits = {}
    for name in ("ada", "nobody"):
        waits[name] = []
        for number in range(MAX_ATTEMPTS_WITHOUT_DELAY + 6):
            waits[name].append(accounts.sign_in_delay(name))
            accounts.check_password(name, "wrong", f"{name} {number}")
    assert waits["ada"] == waits["nobody"]
    assert waits["ada"][:MAX_ATTEMPTS_WITHOUT_DELAY] == [0] * MAX_ATTEMPTS_WITHOUT_DELAY
    assert sorted(waits["ada"]) == waits["ada"]
    assert waits["ada"][-1] == MAX_DELAY
    clock.now += WINDOW_SECONDS + 1
    assert accounts.sign_in_delay("ada") == 0


def test_a_browser_that_was_signed_in_before_is_not_held_up_by_strangers(accounts):
    accounts.add("ada")
    accounts.set_password("ada", GOOD)
    device = accounts.make_device_cookie("ada")
    for _ in range(MAX_ATTEMPTS_PER_ADDRESS + 5):
        with suppress(TooManyAttempts):
            accounts.check_password("ada", "wrong", "one network")
    with pytest.raises(TooManyAttempts):
        accounts.check_password("ada", GOOD, "one network")
    assert accounts.sign_in_delay("ada", device) == 0
    assert accounts.check_password("ada", GOOD, "one network", device).name == "ada"


def test_what_a_browser_keeps_lets_nobody_guess_for_ever_and_ends_with_the_password(accounts):
    accounts.add("ada")
    accounts.add("eve")
    for name in ("ada", "eve"):
        accounts.set_password(name, GOOD)
    device = accounts.make_device_cookie("ada")
    for _ in range(MAX_ATTEMPTS_PER_DEVICE):
        assert accounts.check_password("ada", "wrong", "stolen", device) is None
    with pytest.raises(TooManyAttempts):
        accounts.check_password("ada", GOOD, "stolen", device)
    accounts.set_password("ada", GOOD + " again")
    for invented in (device, accounts.make_device_cookie("eve"), "x.y", ".", "nonce.", "\ud83d.\ud83d"):
        for _ in range(MAX_ATTEMPTS):
            accounts.check_password("ada", "wrong", f"with {invented!r}", invented)
        with pytest.raises(TooManyAttempts):
            accounts.check_password("ada", GOOD + " again", f"with {invented!r}", invented)


def test_attempts_are_limited_by_address_whatever_the_names(accounts):
    for number in range(MAX_ATTEMPTS_PER_ADDRESS):
        accounts.check_password(f"name{number}", "wrong", "one address")
    with pytest.raises(TooManyAttempts):
        accounts.check_password("somebody-else", "wrong", "one address")
    assert accounts.check_password("somebody-else", "wrong", "another") is None


def test_sessions_end(accounts, clock):
    accounts.add("root", "admin")
    accounts.add("ada")
    token = accounts.begin_session("ada", days=1)
    other = accounts.begin_session("ada", days=1)
    assert accounts.session_user(token).name == "ada"
    accounts.end_session(other)
    assert accounts.session_user(other) is None
    accounts.set_password("ada", GOOD, keep_session=token)
    assert accounts.session_user(token) is not None
    accounts.set_password("ada", GOOD)
    assert accounts.session_user(token) is None
    token = accounts.begin_session("ada", days=1)
    clock.now += 86401
    assert accounts.session_user(token) is None
    token = accounts.begin_session("ada", days=1)
    accounts.change("ada", active=False)
    accounts.change("ada", active=True)
    assert accounts.session_user(token) is None


def test_a_link_works_once_and_not_for_ever(accounts, clock):
    accounts.add("ada")
    first = accounts.make_link("ada", "invitation")
    second = accounts.make_link("ada", "invitation")
    assert accounts.find_link(first) is None
    assert accounts.find_link(second).user.name == "ada"
    assert accounts.use_link(second).purpose == "invitation"
    assert accounts.use_link(second) is None
    assert accounts.find_link(second) is None
    third = accounts.make_link("ada", "password")
    clock.now += 25 * 3600
    assert accounts.find_link(third) is None
    assert accounts.use_link(third) is None


def test_tokens_of_programs(accounts):
    accounts.add("ada")
    accounts.add("bob")
    token = accounts.make_token("ada", " my   notebook ")
    [kept] = accounts.tokens("ada")
    assert kept.label == "my notebook"
    assert accounts.token_user(token).name == "ada"
    with pytest.raises(InputError, match="no such token"):
        accounts.revoke_token("bob", kept.id)
    accounts.revoke_token("ada", kept.id)
    assert accounts.token_user(token) is None
    assert accounts.tokens("ada")[0].revoked_at is not None


def test_the_last_admin_stays(accounts):
    accounts.add("root", "admin")
    with pytest.raises(InputError, match="must be at least one admin"):
        accounts.change("root", role="annotator")
    with pytest.raises(InputError, match="must be at least one admin"):
        accounts.change("root", active=False)
    assert accounts.user("root").may("manage users")
    accounts.add("second", "admin")
    accounts.change("root", active=False)
    assert not accounts.user("root").active


def test_keys_are_the_same_at_every_start(accounts, database_url):
    first = accounts.secret_key("csrf")
    assert len(first) == 32
    assert accounts.secret_key("other") != first
    with Records(database_url) as records:
        assert AccountStore(records.database).secret_key("csrf") == first


def linked(text):
    return re.search(r"http://127\.0\.0\.1:8000(/enter/[\w-]+)", text).group(1)


def test_an_invitation_from_the_admin_to_the_first_page(client_of, place):
    admin = client_of("admin")
    told = post(admin, "/users", {"name": " Ada ", "display_name": "Ada L.", "role": "adjudicator"})
    assert told.status_code == 200
    path = linked(told.text)
    ada = client_of(None)
    assert "ada" in ada.get(path).text
    assert ada.get(path).status_code == 200, "looking at a link does not use it up"
    assert post(ada, path, {"password": GOOD, "repeated_password": "other words"}).status_code == 400
    entered = post(ada, path, {"password": GOOD, "repeated_password": GOOD})
    assert (entered.status_code, entered.headers["location"]) == (303, "/")
    assert "Ada L." in ada.get("/").text
    assert client_of(None).get(path).status_code == 404
    assert place.accounts.check_password("ada", GOOD, "test").role == "adjudicator"


def test_signing_in_leads_to_where_one_wanted_to_go(client_of, place):
    place.accounts.add("ada")
    place.accounts.set_password("ada", GOOD)
    ada = client_of(None)
    sent = ada.get("/account?x=1")
    assert sent.headers["location"] == "/sign-in?next=%2Faccount%3Fx%3D1"
    form = {"name": "ada", "password": GOOD, "next": "/account?x=1"}
    wrong = post(ada, "/sign-in", {**form, "password": "wrong"})
    assert wrong.status_code == 401
    assert "Wrong name or password" in wrong.text
    assert post(ada, "/sign-in", form).headers["location"] == "/account?x=1"
    thief = client_of(None)
    thief.cookies.set(SESSION_COOKIE, ada.cookies[SESSION_COOKIE])
    assert [one.get("/account").status_code for one in (ada, thief)] == [200, 200]
    post(ada, "/sign-out")
    assert [one.get("/account").status_code for one in (ada, thief)] == [303, 303], "the session itself has ended"


def test_a_password_is_changed_with_the_present_one(client_of, place):
    place.accounts.add("annotator", "annotator")
    place.accounts.set_password("annotator", GOOD)
    here, elsewhere = client_of("annotator"), client_of("annotator")
    new = {"password": "another long one", "repeated_password": "another long one"}
    assert post(here, "/account/password", {**new, "current_password": "wrong"}).status_code == 400
    assert place.accounts.check_password("annotator", GOOD, "t") is not None
    assert post(here, "/account/password", {**new, "current_password": GOOD}).status_code == 200
    assert here.get("/account").status_code == 200
    assert elsewhere.get("/account").status_code == 303


def test_a_token_is_shown_once_and_can_be_ended(client_of, place):
    ada = client_of("annotator")
    shown = post(ada, "/account/tokens", {"label": "notebook"}).text
    token = re.search(r"climassay_[\w-]{20,}", shown).group(0)
    assert place.accounts.token_user(token).name == "annotator"
    page = ada.get("/account").text
    assert token not in page
    post(ada, re.search(r"/account/tokens/\w+/revoke", page).group(0))
    assert place.accounts.token_user(token) is None


def test_roles_are_changed_by_admins_only(client_of, place):
    client_of("annotator")
    for role in ("annotator", "adjudicator"):
        assert client_of(role).get("/users").status_code == 403
        assert post(client_of(role), "/users/annotator", {"role": "admin"}).status_code == 403
    assert place.accounts.user("annotator").role == "annotator"
    admin = client_of("admin")
    assert post(admin, "/users/annotator", {"role": "adjudicator"}).status_code == 303
    assert place.accounts.user("annotator").role == "adjudicator"
    assert post(admin, "/users/annotator", {"role": "emperor"}).status_code == 400
    assert post(admin, "/users/nobody", {"role": "admin"}).status_code == 400
    refused = post(admin, "/users/admin", {"active": "no"})
    assert refused.status_code == 400
    assert "must be at least one admin" in refused.text
