"""Brokers for the conformance suite: the same tests run on the embedded one and on Mosquitto."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import pytest

from broker.broker_launch import Preference, find_mosquitto
from broker.broker_testing import BrokerProcess, RawClient

_numbers = itertools.count(1)


def _kind(request: pytest.FixtureRequest) -> Preference:
    kind = cast("Preference", request.param)
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    return kind


@pytest.fixture(scope="session", params=["embedded", "mosquitto"])
def shared_broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[BrokerProcess]:
    """One process for all tests that leave it in peace; they keep apart by topic and client id."""
    with BrokerProcess(_kind(request), tmp_path_factory.mktemp("broker")) as process:
        yield process


@pytest.fixture(params=["embedded", "mosquitto"])
def own_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BrokerProcess]:
    """A process of the test's own, to stop, freeze or restart."""
    with BrokerProcess(_kind(request), tmp_path) as process:
        yield process


@pytest.fixture(params=[4, 5], ids=["v3.1.1", "v5"])
def version(request: pytest.FixtureRequest) -> int:
    return cast("int", request.param)


@pytest.fixture
def root() -> str:
    """A topic that no other test uses."""
    return f"t{next(_numbers)}"


Connect = Callable[..., RawClient]


@pytest.fixture
def connect(shared_broker: BrokerProcess, version: int, root: str) -> Iterator[Connect]:
    """Make connected clients of the tested version; `connect(name, **fields of CONNECT)`."""
    clients: list[RawClient] = []

    def make(name: str, **fields: object) -> RawClient:
        client = RawClient(shared_broker.port, f"{root}-{name}", version)
        clients.append(client)
        _, code = client.open(**fields)  # type: ignore[arg-type]
        assert code == 0
        return client

    yield make
    for client in clients:
        client.vanish()
