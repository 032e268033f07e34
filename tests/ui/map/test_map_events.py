"""The map's one stream of events."""

import asyncio
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from federated_optimizer.coordinator.contract.coordinator_model import (
    Change,
    ChangeBatch,
    QueryStatus,
)
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import FederationError
from ui.api.changes import LARGE_BATCH
from ui.map.layers import Layer, LayerQueries
from ui.map.map_events import MapEvents


def of(layer: str, *, snapshot: bool | None = None) -> Any:
    """Match a layer's event."""
    return lambda v: v["layer"] == layer and snapshot in (None, v["snapshot"])


def test_all_layers_begin_with_a_snapshot_and_follow_changes(console: Any, events: Any) -> None:
    console.push("map-lights", (1, ("L101", "open")))
    stream = events(f"{console.address}/api/map/events")
    first = stream.wait("layer", of("lights", snapshot=True))
    assert [c["row"] for c in first["changes"]] == [{"rid": "L101", "status": "open"}]
    stream.wait("layer", of("links", snapshot=True))
    console.push("map-lights", (-1, ("L101", "open")), (1, ("L101", "closed")))
    changed = stream.wait("layer", of("lights", snapshot=False))
    assert [c["diff"] for c in changed["changes"]] == [-1, 1]


def test_sites_are_sent_when_they_change_and_only_then(console: Any, events: Any) -> None:
    stream = events(f"{console.address}/api/map/events")
    stream.wait("sites")
    console.do(lambda: console.coordinator.set_site("gw-2", "stale"))
    after = stream.wait("sites", lambda sites: sites[1]["freshness"] == "stale")
    assert (after[1]["site"], after[1]["online"]) == ("gw-2", False)
    assert sum(kind == "sites" for kind, _ in stream.seen) == 2


def test_where_layers_stand_is_sent(console: Any, events: Any) -> None:
    stream = events(f"{console.address}/api/map/events")
    stream.wait("layers", lambda layers: layers["free"]["status"] == "running")
    starting = QueryStatus.STARTING
    console.do(lambda: console.coordinator.set_status("map-free", starting, "", "static"))
    stream.wait(
        "layers",
        lambda layers: (
            layers["free"] == {"status": "starting", "error": "", "waiting_for": ["static"]}
        ),
    )


def test_a_stopped_layer_is_emptied_and_comes_back(console: Any, events: Any) -> None:
    console.push("map-lights", (1, ("L101", "open")))
    stream = events(f"{console.address}/api/map/events")
    stream.wait("layer", of("lights", snapshot=True))
    httpx.delete(f"{console.address}/api/queries/map-lights", trust_env=False, timeout=60)
    stream.wait("layer", lambda v: v["layer"] == "lights" and v["snapshot"] and not v["changes"])
    console.push("map-lights", (1, ("L102", "open")))
    stream.wait(
        "layer",
        lambda v: v["layer"] == "lights" and any(c["row"]["rid"] == "L102" for c in v["changes"]),
    )


def test_a_trace_has_one_layer(trace_console: Any, events: Any) -> None:
    stream = events(f"{trace_console.address}/api/map/events")
    assert list(stream.wait("layers")) == ["links"]


class Stopping:
    """A coordinator whose only query stops while its last changes wait for the reader."""

    def __init__(self, rows: int) -> None:
        self.stopped = False
        self.rows = rows

    def query(self, _name: str) -> Any:
        if self.stopped:
            raise KeyError("q1")
        return SimpleNamespace(id="q1", schema=Schema.of(("a", DataType.INTEGER)))

    def subscribe(self, _query: str) -> "Stopping":
        return self

    async def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        self.stopped = True
        yield ChangeBatch("q1", tuple(Change(0, 1, (n,)) for n in range(self.rows)))

    async def close(self) -> None:
        self.stopped = True


class Refusing(Stopping):
    """A coordinator whose reader loses the right to read after the first changes."""

    async def __aiter__(self) -> AsyncIterator[ChangeBatch]:
        async for batch in super().__aiter__():
            yield batch
        raise FederationError("viewer ann may not read source lights")


@pytest.mark.parametrize("rows", [1, LARGE_BATCH])
@pytest.mark.parametrize("ending", [Stopping, Refusing])
def test_a_layer_that_ends_with_changes_waiting_is_emptied_too(
    rows: int, ending: type[Stopping]
) -> None:
    async def scenario() -> None:
        layers: Any = LayerQueries(ending(rows), [Layer("lights", "SELECT 1")])  # type: ignore[arg-type]
        stream = MapEvents(layers._coordinator, layers)
        follower = asyncio.create_task(stream._follow(layers.layers[0]))
        async with asyncio.timeout(60):
            changes, gone = [await stream._waiting.get() for _ in range(2)]
        follower.cancel()
        assert changes.count(b'"diff":1') == rows
        assert gone == b'event: layer\ndata: {"layer":"lights","snapshot":true,"changes":[]}\n\n'

    asyncio.run(scenario())
