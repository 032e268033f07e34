"""Signing in and out over HTTP, one's password and one's tokens."""

import httpx
import pytest

from federated_optimizer.coordinator.people import passwords
from tests.federated_optimizer.coordinator.people.office import GOOD, Office
from tests.ui.conftest import Console
from tests.ui.sign_in.conftest import Ask, error_of

MINE = {"name": "analysty", "password": GOOD}


def test_a_session_is_in_a_cookie_that_scripts_and_other_sites_do_not_get(
    ask: Ask, office: Office
) -> None:
    client = ask("")
    answer = client.post("/api/sign-in", json={"name": " AnalystY ", "password": GOOD})
    assert answer.json()["name"] == "analysty"
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"]
    name, _, attributes = cookie.partition(";")
    assert name.startswith("pando_8420=")
    assert {part.strip().lower() for part in attributes.split(";")} >= {
        "httponly",
        "path=/",
        "samesite=strict",
    }
    secret = name.partition("=")[2]
    assert len(secret) >= 43
    assert secret not in answer.text
    me = client.get("/api/me").json()
    assert (me["name"], me["role"], me["signed_in"]) == ("analysty", "analyst", True)
    gone = client.post("/api/sign-out")
    assert "max-age=0" in gone.headers["set-cookie"].lower()
    assert client.get("/api/me").json() == {"accounts": True, "signed_in": False}
    client.cookies.clear()
    again = client.get("/api/sites", headers={"cookie": f"pando_8420={secret}"})
    assert again.status_code == 401
    assert office.noted[-1][:3] == ("analysty", "sign out", "analysty")
    assert office.details[office.noted.index(office.noted[-2])].endswith("127.0.0.1")


def test_a_program_may_have_the_sessions_secret_itself(ask: Ask) -> None:
    client = ask("")
    answer = client.post("/api/sign-in", json={**MINE, "cookie": False})
    assert "set-cookie" not in answer.headers
    headers = {"authorization": f"Bearer {answer.json()['secret']}"}
    assert client.get("/api/sites", headers=headers).status_code == 200
    assert client.post("/api/sign-out", headers=headers).status_code == 200
    assert client.get("/api/sites", headers=headers).status_code == 401


def test_guesses_are_told_to_wait(ask: Ask) -> None:
    client = ask("")
    said = [client.post("/api/sign-in", json={**MINE, "password": "wrong!"}) for _ in range(7)]
    assert [answer.status_code for answer in said] == [401] * 5 + [429] * 2
    assert error_of(said[0])["message"] == "name or password is wrong"
    assert int(said[-1].headers["retry-after"]) >= 1
    assert error_of(said[-1])["code"] == "too_many_attempts"


def test_a_flood_of_sign_ins_is_refused_in_words(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "WAITING", -2)
    answer = ask("").post("/api/sign-in", json=MINE)
    assert answer.status_code == 429
    assert "at the same time" in error_of(answer)["message"]


@pytest.mark.parametrize("body", [{}, {"name": "x" * 257, "password": "y"}, {"name": 1}, []])
def test_a_malformed_sign_in_is_refused(ask: Ask, body: object) -> None:
    answer = ask("").post("/api/sign-in", json=body)
    assert answer.status_code == 422


def test_one_changes_ones_own_password(ask: Ask) -> None:
    here, there = ask("analyst"), ask("analyst")
    wrong = here.post("/api/me/password", json={"old": "no, not this", "new": "a new long one"})
    assert wrong.status_code == 401
    weak = here.post("/api/me/password", json={"old": GOOD, "new": "short"})
    assert (weak.status_code, error_of(weak)["code"]) == (400, "weak_password")
    changed = here.post("/api/me/password", json={"old": GOOD, "new": "a new long one"})
    assert changed.status_code == 200
    assert here.get("/api/sites").status_code == 200
    assert there.get("/api/sites").status_code == 401


def test_one_makes_lists_and_revokes_ones_own_tokens(ask: Ask, office: Office) -> None:
    client, other = ask("analyst"), ask("viewer")
    made = client.post("/api/me/tokens", json={"label": " nightly  report ", "days": 7}).json()
    assert (made["label"], made["role"], made["account"]) == (
        "nightly report",
        "analyst",
        "analysty",
    )
    assert made["secret"].startswith("pando_")
    listed = client.get("/api/me/tokens").json()
    assert listed == [{key: value for key, value in made.items() if key != "secret"}]
    assert made["secret"] not in str(office.noted) + str(office.details)
    assert other.get("/api/me/tokens").json() == []
    assert other.delete(f"/api/me/tokens/{made['id']}").status_code == 404
    high = other.post("/api/me/tokens", json={"label": "x", "role": "operator"})
    assert high.status_code == 400
    assert client.delete(f"/api/me/tokens/{made['id']}").status_code == 200
    assert client.get("/api/me/tokens").json() == []


def with_token(ask: Ask, account: str, **wanted: object) -> httpx.Client:
    """Return a client that asks with a token of a role's account."""
    made = ask(account).post("/api/me/tokens", json={"label": "script", **wanted}).json()
    client = ask("")
    client.headers["authorization"] = f"Bearer {made['secret']}"
    return client


def test_a_token_makes_no_tokens_that_outlive_it(ask: Ask) -> None:
    for client in (with_token(ask, "analyst"), with_token(ask, "administrator", sources=["a"])):
        assert client.get("/api/me").json()["token"] == "script"
        answer = client.post("/api/me/tokens", json={"label": "another", "days": None})
        assert answer.status_code == 403
    limited = with_token(ask, "administrator", role="viewer")
    assert limited.get("/api/accounts").status_code == 403
    assert limited.post("/api/me/tokens", json={"label": "another"}).status_code == 403
    full = with_token(ask, "administrator")
    assert full.post("/api/me/tokens", json={"label": "another"}).status_code == 200


def test_other_consoles_of_this_host_keep_their_own_cookie(staffed: Console, ask: Ask) -> None:
    client = ask("viewer")
    assert list(client.cookies) == ["pando_8420"]
    assert staffed.port != 8420
