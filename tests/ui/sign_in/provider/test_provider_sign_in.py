"""Sign-in at a provider: who is let in with which role, and every lie that is refused."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from msgspec.structs import replace

from federated_optimizer.coordinator.contract.principal import Role
from federated_optimizer.coordinator.people.passwords import Passwords, PasswordWork
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from host.clocks import wall_clock
from tests.federated_optimizer.coordinator.people.office import GOOD, QUICK, ROOT, Office
from tests.ui.conftest import Console, FakeCoordinator
from tests.ui.sign_in.local_provider import CLIENT, SECRET, LocalProvider, local_provider
from ui.console_settings import ConsoleSettings
from ui.provider_settings import ProviderSettings
from ui.sign_in.provider import provider_answers

Open = Callable[..., httpx.Client]
ROLES = {"sensors-read": Role.ANALYST, "sensors-run": Role.OPERATOR}


@pytest.fixture
def provider() -> Iterator[LocalProvider]:
    """Return a provider."""
    with local_provider() as made:
        yield made


@pytest.fixture
def browser(
    coordinator: FakeCoordinator,
    settings: ConsoleSettings,
    office: Office,
    provider: LocalProvider,
) -> Iterator[Open]:
    """Return a browser at a console whose settings of the provider a test completes."""
    served: list[Console] = []
    clients: list[httpx.Client] = []

    def start(**more: Any) -> httpx.Client:
        if served:
            clients.append(httpx.Client(base_url=served[0].address, trust_env=False, timeout=20))
            return clients[-1]
        oidc = ProviderSettings(
            **{
                "issuer": provider.issuer,
                "client_id": CLIENT,
                "client_secret": SECRET,
                "public_url": "https://pando.example",
                "label": "Example",
                **more,
            }
        )
        work = PasswordWork(Passwords(QUICK))
        people = People(PeopleStore(office.url), wall_clock, office, work=work)
        console = Console(coordinator, replace(settings, oidc=oidc), people)
        console.start()
        served.append(console)
        console.run(people.add_account("root", Role.ADMINISTRATOR, GOOD, None))
        return start()

    yield start
    for client in clients:
        client.close()
    for console in served:
        console.stop()


def leave(client: httpx.Client, page: str = "/queries") -> str:
    """Return the address at the provider to which a browser is sent."""
    left = client.get("/sign-in/provider", params={"next": page})
    assert left.status_code == 303, left.text
    cookie = left.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    return left.headers["location"]


def sign_in(
    client: httpx.Client, provider: LocalProvider, page: str = "/queries"
) -> httpx.Response:
    """Go to the provider and come back."""
    return client.get("/sign-in/return", params=provider.authorize(leave(client, page)))


def test_whom_the_provider_knows_is_let_in(
    browser: Open, provider: LocalProvider, office: Office
) -> None:
    client = browser(new_role=Role.ANALYST)
    assert "Sign in with Example" in client.get("/sign-in").text
    answer = sign_in(client, provider, "/queries?text=SELECT 1&x=<b>")
    assert answer.status_code == 200
    assert 'content="0;url=/queries?text=SELECT%201&amp;x=%3Cb%3E"' in answer.text
    assert "samesite=strict" in answer.headers["set-cookie"].lower()
    me = client.get("/api/me").json()
    assert (me["name"], me["role"], me["account"]["provider"]) == (
        "eve",
        "analyst",
        provider.issuer,
    )
    assert ("", "add account", "eve") in [entry[:3] for entry in office.noted]
    provider.claims = {"preferred_username": "renamed"}
    again = browser()
    assert sign_in(again, provider).status_code == 200
    assert again.get("/api/me").json()["name"] == "eve"


NOW = int(time.time())


@pytest.mark.parametrize(
    ("forged", "claims", "header"),
    [
        ("other", {}, {}),
        ("none", {}, {}),
        ("shared", {}, {}),
        ("", {"nonce": "another"}, {}),
        ("", {"nonce": None}, {}),
        ("", {"aud": "another"}, {}),
        ("", {"aud": None}, {}),
        ("", {"aud": [CLIENT, "another"], "azp": "another"}, {}),
        ("", {"azp": "another"}, {}),
        ("", {"iss": "http://127.0.0.1:1"}, {}),
        ("", {"iss": None}, {}),
        ("", {"exp": NOW - 3_600}, {}),
        ("", {"exp": None}, {}),
        ("", {"exp": "soon"}, {}),
        ("", {"iat": NOW + 3_600}, {}),
        ("", {"iat": NOW - 86_400, "exp": NOW + 86_400}, {}),
        ("", {"iat": None}, {}),
        ("", {"nbf": NOW + 3_600}, {}),
        ("", {"sub": None}, {}),
        ("", {"sub": 17}, {}),
        ("", {"sub": ""}, {}),
        ("", {"sub": "x" * 300}, {}),
        ("", {"at_hash": "wrong"}, {}),
        ("", {}, {"kid": "unknown"}),
        ("", {}, {"alg": "RS1"}),
        ("", {}, {"crit": ["x"]}),
    ],
)
def test_what_cannot_be_trusted_lets_nobody_in(
    browser: Open,
    provider: LocalProvider,
    forged: str,
    claims: dict[str, Any],
    header: dict[str, Any],
) -> None:
    client = browser(new_role=Role.ANALYST)
    provider.forged, provider.claims, provider.header = forged, claims, header
    answer = sign_in(client, provider)
    assert answer.status_code == 401, answer.text
    assert 'role="alert">' in answer.text
    assert client.get("/api/me").json()["signed_in"] is False
    provider.forged, provider.claims, provider.header = "", {}, {}
    assert sign_in(client, provider).status_code == 200


def test_a_way_back_is_for_one_browser_and_once(browser: Open, provider: LocalProvider) -> None:
    client, other = browser(new_role=Role.VIEWER), browser()
    back = provider.authorize(leave(client))
    leave(other)
    assert other.get("/sign-in/return", params=back).status_code == 401
    fresh = browser()
    assert fresh.get("/sign-in/return", params=back).status_code == 401
    assert client.get("/sign-in/return", params={**back, "state": "x"}).status_code == 401
    assert client.get("/sign-in/return").status_code == 401
    assert client.get("/sign-in/return", params=back).status_code == 200
    assert client.get("/sign-in/return", params=back).status_code == 401


def test_what_the_provider_refuses_is_said_as_text(browser: Open, provider: LocalProvider) -> None:
    client = browser(new_role=Role.VIEWER)
    back = {**provider.authorize(leave(client)), "error": "<b>denied"}
    answer = client.get("/sign-in/return", params=back)
    assert answer.status_code == 401
    assert "the provider refuses: &lt;b&gt;denied" in answer.text
    for told in ((400, b'{"error": "x"}'), (200, b"[]"), (200, b"{}"), (200, b"<html>")):
        provider.answer = told
        assert sign_in(client, provider).status_code == 401
    provider.answer = (200, b" " * (provider_answers.MAX_ANSWER + 1))
    assert "too large" in sign_in(client, provider).text


def test_new_keys_of_the_provider_are_asked_for(
    browser: Open, provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = browser(new_role=Role.VIEWER)
    assert sign_in(client, provider).status_code == 200
    provider.new_key()
    # Not at once: tokens with made-up keys would let us flood the provider.
    assert sign_in(client, provider).status_code == 401
    assert provider.asked.count("/keys") == 1
    monkeypatch.setattr(provider_answers, "AGAIN_SECONDS", 0.0)
    assert sign_in(client, provider).status_code == 200
    assert provider.asked.count("/keys") == 2


@pytest.mark.parametrize(
    "described",
    [
        {"issuer": "https://other.example"},
        {"authorization_endpoint": "http://other.example/authorize"},
        {"authorization_endpoint": None},
    ],
)
def test_a_provider_that_describes_another_is_not_used(
    browser: Open, provider: LocalProvider, described: dict[str, Any]
) -> None:
    client = browser(new_role=Role.VIEWER)
    provider.described = described
    answer = client.get("/sign-in/provider")
    assert answer.status_code == 401
    assert "the provider" in answer.text


def test_claims_give_roles(browser: Open, provider: LocalProvider) -> None:
    client = browser(role_claim="realm.roles", roles=ROLES)
    for roles, found in (
        (["sensors-run", "x", "sensors-read", 5], "operator"),
        (["sensors-read"], "analyst"),
        ("sensors-run", "operator"),
    ):
        provider.claims = {"realm": {"roles": roles}}
        assert sign_in(client, provider).status_code == 200
        assert client.get("/api/me").json()["role"] == found
    lacking: list[dict[str, Any]] = [
        {},
        {"realm": {"roles": []}},
        {"realm": [1]},
        {"realm": {"roles": {}}},
    ]
    for claims in lacking:
        provider.claims = claims
        answer = sign_in(browser(), provider)
        assert answer.status_code == 401
        assert "no role" in answer.text


def test_accounts_are_made_only_where_that_is_allowed(
    browser: Open, provider: LocalProvider
) -> None:
    client = browser(creates_accounts=False, new_role=Role.ANALYST)
    answer = sign_in(client, provider)
    assert answer.status_code == 401
    assert "there is no account for this person" in answer.text


def test_a_provider_takes_no_account_over(browser: Open, provider: LocalProvider) -> None:
    provider.claims = {"preferred_username": "Root"}
    client = browser(new_role=Role.ADMINISTRATOR)
    answer = sign_in(client, provider)
    assert answer.status_code == 401
    assert "there is an account root already" in answer.text


def test_no_provider_no_way(ask: Any) -> None:
    client = ask("")
    assert client.get("/sign-in/provider").status_code == 404
    assert client.get("/sign-in/return").status_code == 404
    assert ROOT.name not in client.get("/sign-in").text
