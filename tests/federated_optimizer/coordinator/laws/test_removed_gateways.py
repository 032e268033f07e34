"""Gateways that hold windows back are named; those that are gone for good can be removed."""

from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.events import SourceEvent
from streamsql.errors import BindingError
from streamsql.syntax import CreateSource, parse_script

SECOND = 1_000_000
READINGS = """
CREATE SOURCE readings (k TEXT, ts TIMESTAMP, WATERMARK FOR ts AS ts)
  WITH (idle = '1 h');
"""
WINDOWS = """
SELECT window_end, COUNT(*) AS n FROM TUMBLE(readings, ts, INTERVAL '10 s')
GROUP BY window_start, window_end EMIT ON WINDOW CLOSE
"""
BEGIN = 1_767_225_600  # 2026-01-01


async def two_with_readings(harness: Any, federation: Any) -> Any:
    """Return the coordinator of two gateways that read the source."""
    coordinator = await federation.standard()
    await coordinator.execute(READINGS)
    (statement,) = parse_script(READINGS)
    assert isinstance(statement, CreateSource)
    source = define(statement, Catalog())
    assert isinstance(source, SourceDefinition)
    for name in ("gw-1", "gw-2"):
        site = federation.sites[name]
        site.engine.declare(source.scan())
        site.sources += ("readings",)
        site.scans.append(source.scan())
        site._announce(connected=True)
    # A query that starts before is planned without them, and again when they are known.
    await harness.until(
        lambda: sum("readings" in site.sources for site in coordinator.sites()) == 2
    )
    return coordinator


def read(federation: Any, name: str, *seconds: int) -> None:
    for second in seconds:
        ts = (BEGIN + second) * SECOND
        federation.sites[name].engine.ingest("readings", [SourceEvent((name, ts), ts)])
    federation.sites[name].host.wake()


def window(end: int, count: int) -> tuple[int, int]:
    return ((BEGIN + end) * SECOND, count)


def test_who_holds_windows_back_is_said_until_it_is_gone(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await two_with_readings(harness, federation)
        query = await harness.start_query(coordinator, WINDOWS)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        read(federation, "gw-2", 4)
        read(federation, "gw-1", 3, 18, 47)

        def notes() -> str:
            return " ".join(coordinator.query(query).warnings)

        await harness.until(lambda: "windows wait for gw-2" in notes())
        assert "are 40 s behind those of others" in notes()
        (shown,) = await coordinator.execute("SHOW QUERIES")
        assert "windows wait for gw-2" in str(shown.rows)
        assert coordinator.query(query).rows == 0
        federation.broker.cut("gw-2")
        await harness.until_rows(coordinator, query, [window(10, 1), window(20, 1)])
        await harness.until(lambda: "windows wait" not in notes())

    harness.run(scenario)


def test_a_gateway_that_is_removed_leaves_plans_lists_and_the_broker(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await two_with_readings(harness, federation)
        query = await harness.start_query(coordinator, WINDOWS)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        with pytest.raises(BindingError, match="gw-2 is online"):
            await coordinator.remove_gateway("gw-2")
        with pytest.raises(BindingError, match="is a base site, not a gateway"):
            await coordinator.remove_gateway("base")
        with pytest.raises(KeyError):
            await coordinator.remove_gateway("gw-3")
        federation.broker.cut("gw-2")
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        version = coordinator.query(query).version
        await coordinator.remove_gateway("gw-2")
        await harness.until(lambda: coordinator.query(query).version > version)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        assert [site.site for site in coordinator.sites()] == ["base", "gw-1", "static"]
        assert coordinator.query(query).waiting_for == ()
        await harness.until(lambda: coordinator.query(query).settled)
        read(federation, "gw-1", 3, 18, 47)
        await harness.until_rows(coordinator, query, [window(10, 1), window(20, 1)])
        # One that starts again after all is a new gateway.
        federation.broker.restore("gw-2")
        await harness.until(lambda: "gw-2" in {site.site for site in coordinator.sites()})

    harness.run(scenario)
