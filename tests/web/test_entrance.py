import re

from web_parts import post

GOOD = "a long enough one"


def linked(text):
    return re.search(r"http://127\.0\.0\.1:8000(/enter/[\w-]+)", text).group(1)


def test_an_invitation_from_the_admin_to_the_first_page(client_of, place):
    admin = client_of("admin")
    told = post(admin, "/users", {"name": " Ada ", "shown": "Ada L.", "role": "adjudicator"})
    assert told.status_code == 200
    path = linked(told.text)
    ada = client_of(None)
    assert "ada" in ada.get(path).text
    assert ada.get(path).status_code == 200, "looking at a link does not use it up"
    assert post(ada, path, {"password": GOOD, "again": "other words"}).status_code == 400
    entered = post(ada, path, {"password": GOOD, "again": GOOD})
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
    assert ada.get("/account").status_code == 200
    post(ada, "/sign-out")
    assert ada.get("/account").status_code == 303


def test_a_password_is_changed_with_the_present_one(client_of, place):
    place.accounts.add("annotator", "annotator")
    place.accounts.set_password("annotator", GOOD)
    here, elsewhere = client_of("annotator"), client_of("annotator")
    new = {"password": "another long one", "again": "another long one"}
    assert post(here, "/account/password", {**new, "present": "wrong"}).status_code == 400
    assert place.accounts.check_password("annotator", GOOD, "t") is not None
    assert post(here, "/account/password", {**new, "present": GOOD}).status_code == 200
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
