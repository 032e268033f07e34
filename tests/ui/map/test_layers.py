"""The map's standing queries: they bind, are installed, and come back."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from tests.loop_turns import calls
from ui.map import layers as module
from ui.map.layers import Layer, LayerQueries, layers_of


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(6_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("not in time")


def keeping(
    coordinator: Any, layers: tuple[Layer, ...], check: Callable[..., Awaitable[None]]
) -> None:
    """Keep layers while a check runs."""

    async def run() -> None:
        queries = LayerQueries(coordinator, layers)
        task = asyncio.create_task(queries.keep())
        try:
            await check(queries)
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Retry at once."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.02)


def test_all_layers_of_a_building_bind(coordinator: Any) -> None:
    layers = layers_of("building")
    assert {"seats", "lights", "temperatures", "links", "free"} <= {layer.name for layer in layers}
    for layer in layers:
        assert asyncio.run(coordinator.validate(layer.text)).diagnoses == (), layer.name


def test_a_trace_has_links_and_an_unknown_kind_nothing() -> None:
    assert [layer.name for layer in layers_of("trace")] == ["links"]
    assert layers_of("garden") == ()


def test_layers_are_installed_once_and_again_when_somebody_stops_them(coordinator: Any) -> None:
    layers = (Layer("seats", "SELECT mid FROM SeatSensor"),)

    async def check(queries: LayerQueries) -> None:
        await until(lambda: queries.query_id(layers[0]) is not None)
        await calls(queries, "_install")
        assert coordinator.started == 1
        assert coordinator.query("map-seats").origin == "map"
        await coordinator.stop("map-seats")
        await until(lambda: queries.query_id(layers[0]) == "q2")

    keeping(coordinator, layers, check)


def test_a_layer_whose_text_has_changed_is_replaced_and_unknown_ones_go(coordinator: Any) -> None:
    async def prepare() -> None:
        old = "SELECT mid, rid FROM SeatSensor"
        await coordinator.execute(old, name="map-seats", origin=Origin.MAP)
        await coordinator.execute(old, name="map-bygone", origin=Origin.MAP)
        await coordinator.execute(old, name="mine", origin=Origin.USER)

    asyncio.run(prepare())

    async def check(_queries: LayerQueries) -> None:
        await until(lambda: len(coordinator.queries()) == 2 and coordinator.started == 4)
        assert coordinator.query("map-seats").text == "SELECT mid FROM SeatSensor"
        assert coordinator.query("mine")

    keeping(coordinator, (Layer("seats", "SELECT mid FROM SeatSensor"),), check)


def test_a_refused_layer_is_reported_and_tried_again(coordinator: Any) -> None:
    layers = (
        Layer("later", "SELECT a FROM Later"),
        Layer("seats", "SELECT mid FROM SeatSensor"),
    )

    async def check(queries: LayerQueries) -> None:
        await until(lambda: "later" in queries.errors and queries.query_id(layers[1]) is not None)
        assert "later" in queries.errors["later"].lower()
        await coordinator.execute("CREATE VIEW Later AS SELECT mid AS a FROM SeatSensor")
        await until(lambda: not queries.errors)
        assert queries.query_id(layers[0]) is not None

    keeping(coordinator, layers, check)
