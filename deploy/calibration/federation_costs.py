"""The optimizer's constants of a running federation: asked, timed there, and set."""

import contextlib
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from deploy.calibration.rounds import Measurement
from federated_optimizer.statistics.fact import Origin
from streamsql.errors import DeploymentError, FederationError
from ui.cli.client import DEFAULT_ADDRESS, ConsoleClient
from ui.cli.federations import console_address

ENGINE_SECONDS = 25.0
"""Within which an evaluation of a table is done, and its time has come with a state of the site."""
_POLL_SECONDS = 0.5

Object = dict[str, Any]


@contextlib.contextmanager
def federation(console: str | None) -> Iterator[ConsoleClient | None]:
    """Yield a client of the console that is meant; None: none is named, and none runs here.

    Raises:
        DeploymentError: The console that is meant does not answer.
    """
    address = console_address(console)
    with contextlib.closing(ConsoleClient(address)) as client:
        try:
            client.get("/api/health")
        except DeploymentError:
            if address is not None or client.address != DEFAULT_ADDRESS:
                raise
            yield None
        else:
            yield client


def constants_of(client: ConsoleClient) -> list[Object]:
    """Return the constants of the federation, as `GET /api/costs` lists them."""
    found: list[Object] = client.get("/api/costs")
    return found


def hops_of(client: ConsoleClient) -> list[float]:
    """Return milliseconds of messages of the console over its broker to itself."""
    found: list[float] = client.post("/api/costs/hops", {}, seconds=120.0)["milliseconds"]
    return found


def set_constants(
    client: ConsoleClient, measured: Mapping[str, Measurement], place: str
) -> list[Object]:
    """Set constants at the federation and return all of them.

    Raises:
        FederationError: One is refused, or we may not.
    """
    values = {
        name: {"value": each.value, "low": each.low, "high": each.high, "rounds": each.rounds}
        for name, each in measured.items()
    }
    found: list[Object] = client.post("/api/costs", {"values": values, "place": place})
    return found


def timed_engines(client: ConsoleClient) -> list[str]:
    """Let the static engine evaluate its smallest and its largest table, as far as it has any.

    It times what it evaluates, and tells the coordinator.

    Returns:
        Why it has timed nothing, in a sentence; empty if it has.
    """
    before = _timed(client)
    try:
        tables = sorted(client.get("/api/tables")["tables"], key=lambda each: each["rows"] or 0)
    except FederationError as error:
        return [f"the static engine is not timed: {error.message}"]
    readable = [each["name"] for each in tables if not each["problem"]]
    if not readable:
        return ["the static engine is not timed: it has no table that can be read"]
    for name in dict.fromkeys([readable[0], readable[-1]]):
        try:
            _evaluate(client, name)
        except FederationError as error:
            return [f"the static engine is not timed: table {name}: {error.message}"]
    deadline = time.monotonic() + ENGINE_SECONDS
    while time.monotonic() < deadline:
        if _timed(client) != before:
            return []
        time.sleep(_POLL_SECONDS)
    if before:
        return ["times of the static engine are those of earlier queries: they have not changed"]
    return [
        "the static engine has not timed anything; it does when a query reads a stored table, "
        "Spark when the table is large"
    ]


def _timed(client: ConsoleClient) -> dict[tuple[str, str], Object]:
    """Return the constants that the static engine has timed, by name and place."""
    return {
        (each["name"], each["place"]): each
        for each in constants_of(client)
        if each["origin"] == str(Origin.TIMED)
    }


def _evaluate(client: ConsoleClient, table: str) -> None:
    name = '"' + table.replace('"', '""') + '"'
    text = f"SELECT COUNT(*) AS n FROM {name}"  # noqa: S608 - StreamSQL, and quoted
    (started,) = client.post("/api/statements", {"text": text, "origin": "session"})
    query = quote(started["query"]["id"], safe="")
    try:
        deadline = time.monotonic() + ENGINE_SECONDS
        while time.monotonic() < deadline:
            if client.get(f"/api/queries/{query}")["settled"]:
                return
            time.sleep(_POLL_SECONDS)
    finally:
        with contextlib.suppress(FederationError):
            client.delete(f"/api/queries/{query}")
