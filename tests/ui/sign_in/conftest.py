"""A console that has accounts, and somebody of each role who has signed in."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from federated_optimizer.coordinator.contract.principal import Role
from federated_optimizer.coordinator.people.passwords import Passwords, PasswordWork
from federated_optimizer.coordinator.people.people_service import People
from federated_optimizer.coordinator.people.people_store import PeopleStore
from host.clocks import wall_clock
from tests.federated_optimizer.coordinator.people.office import GOOD, QUICK, ROOT, Office
from tests.ui.conftest import Console, FakeCoordinator
from ui.console_settings import ConsoleSettings

Ask = Callable[[str], httpx.Client]


@pytest.fixture
def office(tmp_path: Path) -> Office:
    """Return the audit and the catalog of the people."""
    return Office(f"sqlite:///{tmp_path / 'catalog.db'}")


@pytest.fixture
def nobody_yet(
    coordinator: FakeCoordinator, settings: ConsoleSettings, office: Office
) -> Iterator[Console]:
    """Return a console without an account."""
    work = PasswordWork(Passwords(QUICK))
    people = People(PeopleStore(office.url), wall_clock, office, work=work)
    made = Console(coordinator, settings, people)
    made.start()
    yield made
    made.stop()


@pytest.fixture
def staffed(nobody_yet: Console) -> Console:
    """Return a console with an account for each role, which has the role's name and a y."""
    people = nobody_yet.people
    assert people is not None
    for role in reversed(Role):
        nobody_yet.run(people.add_account(f"{role}y", role, GOOD, ROOT))
    return nobody_yet


@pytest.fixture
def ask(staffed: Console) -> Iterator[Ask]:
    """Return a client that has signed in with a role's account; "" has not."""
    made: list[httpx.Client] = []

    def client(role: str) -> httpx.Client:
        made.append(httpx.Client(base_url=staffed.address, timeout=30, trust_env=False))
        if role:
            body = {"name": f"{role}y", "password": GOOD}
            answer = made[-1].post("/api/sign-in", json=body)
            assert answer.status_code == 200, answer.text
        return made[-1]

    yield client
    for each in made:
        each.close()


def error_of(answer: httpx.Response) -> Any:
    """Return the error in an answer."""
    return answer.json()["error"]
