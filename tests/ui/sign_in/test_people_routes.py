"""Accounts and tokens of everybody over HTTP."""

from tests.federated_optimizer.coordinator.people.office import GOOD, Office
from tests.ui.sign_in.conftest import Ask, error_of


def test_an_administrator_manages_accounts(ask: Ask, office: Office) -> None:
    root = ask("administrator")
    bob = {"name": "Bob", "role": "viewer", "password": GOOD}
    made = root.post("/api/accounts", json=bob)
    assert made.json()["name"] == "bob"
    assert root.post("/api/accounts", json=bob).status_code == 400
    assert "bob" in [account["name"] for account in root.get("/api/accounts").json()]
    changed = root.patch("/api/accounts/BOB", json={"role": "analyst", "disabled": True}).json()
    assert (changed["role"], changed["disabled"]) == ("analyst", True)
    assert root.patch("/api/accounts/nobody-such", json={"role": "viewer"}).status_code == 404
    assert root.delete("/api/accounts/bob").json() == {"removed": "bob"}
    assert root.delete("/api/accounts/bob").status_code == 404
    last = root.patch("/api/accounts/administratory", json={"role": "viewer"})
    assert error_of(last)["code"] == "last_administrator"
    assert GOOD not in root.get("/api/accounts").text
    assert "argon2" not in root.get("/api/accounts").text
    done = [entry[1] for entry in office.noted if entry[2] == "bob"]
    assert done == ["add account", "change account", "remove account"]


def test_an_administrator_makes_tokens_for_others(ask: Ask) -> None:
    root = ask("administrator")
    wanted = {"account": "analysty", "label": "meter", "sources": ["Temperature"], "days": 1}
    made = root.post("/api/tokens", json=wanted).json()
    assert made["sources"] == ["temperature"]
    client = ask("")
    client.headers["authorization"] = f"Bearer {made['secret']}"
    assert client.get("/api/me").json()["name"] == "analysty"
    assert [token["label"] for token in root.get("/api/tokens?account=ANALYSTY").json()] == [
        "meter"
    ]
    assert root.get("/api/tokens?account=viewery").json() == []
    assert root.delete(f"/api/tokens/{made['id']}").status_code == 200
    assert root.delete(f"/api/tokens/{made['id']}").status_code == 404
    assert client.get("/api/me").json()["signed_in"] is False
    unknown = root.post("/api/tokens", json={**wanted, "account": "nobody-such"})
    assert (unknown.status_code, error_of(unknown)["code"]) == (404, "unknown_account")


def test_a_token_that_is_limited_changes_nobody(ask: Ask) -> None:
    root = ask("administrator")
    kept = root.post("/api/me/tokens", json={"label": "kept"}).json()
    for limit in ({"sources": ["temperature"]}, {"role": "viewer"}):
        made = root.post("/api/me/tokens", json={"label": "limited", **limit}).json()
        client = ask("")
        client.headers["authorization"] = f"Bearer {made['secret']}"
        bob = {"name": "bob", "role": "administrator", "password": GOOD}
        answers = [
            client.post("/api/accounts", json=bob),
            client.patch("/api/accounts/viewery", json={"password": GOOD + "!"}),
            client.patch("/api/accounts/viewery", json={"role": "administrator"}),
            client.delete("/api/accounts/viewery"),
            client.delete(f"/api/tokens/{kept['id']}"),
            client.delete(f"/api/me/tokens/{kept['id']}"),
            client.post("/api/me/tokens", json={"label": "more"}),
        ]
        assert [answer.status_code for answer in answers] == [403] * len(answers)
    assert "kept" in [token["label"] for token in root.get("/api/me/tokens").json()]
    assert "bob" not in [account["name"] for account in root.get("/api/accounts").json()]
    whole = root.post("/api/me/tokens", json={"label": "whole"}).json()
    client = ask("")
    client.headers["authorization"] = f"Bearer {whole['secret']}"
    assert client.delete(f"/api/me/tokens/{kept['id']}").status_code == 200
