"""Moves of queries to better plans, console and base killed meanwhile."""

import contextlib
import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from federated_optimizer.coordinator.store.catalog_store import open_catalog
from federated_optimizer.coordinator.store.stored_facts import store_facts
from federated_optimizer.statistics.fact import Origin, Quantity, Subject, SubjectKind, exact
from tests.end_to_end.federation import Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.timeout(300)]


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Federation]:
    data = tmp_path / "data"
    with federation(data, "--no-spark", "--gateways", "2", "--broker", "embedded") as running:
        yield running


def test_a_query_moves_though_console_and_base_are_killed(up: Federation) -> None:
    """Facts in the catalog tell of rooms that change all the time: the join goes to the base.

    Nothing was measured before in a federation of its own: the join begins at the gateways.
    """
    text = "SELECT s.mid, r.status FROM SeatSensor s JOIN RoomSensor r ON s.rid = r.rid"
    query = up.start_query(text)
    up.until(lambda: up.query(query)["settled"])
    seats, run = {mid for mid, _ in up.rows(query)}, up.query(query)["run"]
    config = up.data / "run" / "console.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "adapt_seconds": 0.5}))
    store, _ = open_catalog(f"sqlite:///{up.data}/state/console/catalog.db", 0)
    told = {"roomsensor": (10.0, 1_000.0), "seatsensor": (10_000.0, 100.0)}
    facts = [
        exact(Subject(SubjectKind.SOURCE, source, "gw-9"), quantity, value, now(), Origin.COUNTED)
        for source, values in told.items()
        for quantity, value in zip((Quantity.SENSORS, Quantity.CHANGES), values, strict=True)
    ]
    store_facts(store, {fact.key: fact for fact in facts})
    store.close()
    os.kill(up.pid("console"), signal.SIGKILL)

    def is_back() -> bool:
        with contextlib.suppress(httpx.TransportError, KeyError):
            return "run" in up.query(query)
        return False

    up.until(is_back)
    os.kill(up.pid("base"), signal.SIGKILL)

    up.until(lambda: up.query(query)["run"] != run)
    decided = up.start_query("SELECT queries, outcome FROM sys_decisions")
    up.until(lambda: (query, "moved") in up.rows(decided))
    up.until(lambda: up.query(query)["settled"] and {mid for mid, _ in up.rows(query)} >= seats)
    up.stop_query(query)
    up.stop_query(decided)


def now() -> int:
    return time.time_ns() // 1_000
