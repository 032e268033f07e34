"""Sinks of a whole federation on MQTT: told, taken back, kept over restarts, emptied on DROP."""

import asyncio
import threading
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.sink_endpoints import sink_endpoints
from federated_optimizer.coordinator.contract.sink_model import SinkStatus
from federated_optimizer.coordinator.sinks import mqtt_sender, stream_queue
from federated_optimizer.coordinator.sinks import sinks as sinks_module
from federated_optimizer.coordinator.sinks.sink_memory import Kind
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from host.mqtt import MessageClient
from streamsql.errors import BindingError
from tests.federated_optimizer.coordinator.sinks.web_receiver import SECRET, Answer, WebReceiver

SINK = (
    "CREATE SINK open FROM SELECT rid, status FROM RoomSensor WHERE status = 'open' "
    "WITH (connector = 'mqtt', topic = 'building/open/{rid}')"
)


def published(federation: Any) -> dict[str, bytes]:
    """What is retained outside of the federation's own topics."""
    retained = federation.broker.retained
    return {
        topic: message.payload
        for topic, message in retained.items()
        if not topic.startswith("pando/")
    }


def row(rid: str) -> bytes:
    return f'{{"rid":"{rid}","status":"open"}}'.encode()


def test_the_newest_row_of_each_key_is_retained_until_it_goes(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        (made,) = await coordinator.execute(SINK)
        assert made.message == (
            "sink open created: upsert to building/open/{rid} at the federation's broker"
        )
        federation.sites["gw-1"].put("roomsensor", ("r 1", "open"))
        federation.sites["gw-2"].put("roomsensor", ("r2", "open"))
        both = {"building/open/r%201": row("r 1"), "building/open/r2": row("r2")}
        await harness.until(lambda: published(federation) == both)
        federation.sites["gw-2"].put("roomsensor", ("r2", "dark"))
        await harness.until(lambda: "building/open/r2" not in published(federation))
        (info,) = coordinator.sinks.infos()
        assert (info.status, info.problem, info.dead) == (SinkStatus.RUNNING, "", ())
        (shown,) = await coordinator.execute("SHOW SINKS")
        assert shown.rows[0][:2] == ("open", "mqtt")
        (described,) = await coordinator.execute("DESCRIBE open")
        assert described.rows[0] == ("rid", "TEXT", "key")

    harness.run(scenario)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (SINK, "upsert"),
        (
            "CREATE SINK heard FROM ISTREAM(SELECT rid, status FROM RoomSensor) "
            "WITH (connector = 'mqtt', topic = 'building/heard')",
            "append",
        ),
    ],
)
def test_rows_that_come_before_the_sink_is_stored_are_told(
    harness: Any, monkeypatch: pytest.MonkeyPatch, text: str, kind: str
) -> None:
    """The answer may be there before the catalog on disk knows the sink."""
    is_storing, go_on = threading.Event(), threading.Event()
    put = CatalogStore.put_definition

    def slow(store: CatalogStore, definition: Any) -> None:
        is_storing.set()
        assert go_on.wait(30)
        put(store, definition)

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        heard: list[Any] = []
        listener = federation.broker.client("listener")
        listener.on_messages(heard.extend)
        await listener.connect()
        await listener.subscribe("building/#")
        monkeypatch.setattr(CatalogStore, "put_definition", slow)
        creating = asyncio.create_task(coordinator.execute(text))
        await asyncio.to_thread(is_storing.wait, 30)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: any(q.changes for q in coordinator.queries()), "it is there")
        monkeypatch.setattr(CatalogStore, "put_definition", put)
        go_on.set()
        (made,) = await creating
        assert f": {kind} to" in made.message
        await harness.until(lambda: heard, "it is told")
        assert [b'"rid":"r1"' in message.payload for message in heard] == [True]

    harness.run(scenario)


def test_what_went_while_the_coordinator_was_away_is_taken_back(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        await first.execute(SINK)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"), ("r2", "open"))
        await harness.until(lambda: len(published(federation)) == 2)
        await first.close()
        federation.sites["gw-1"].put("roomsensor", ("r1", "dark"), ("r3", "open"))
        assert set(published(federation)) == {"building/open/r1", "building/open/r2"}
        await federation.coordinator()
        expected = {"building/open/r2": row("r2"), "building/open/r3": row("r3")}
        await harness.until(lambda: published(federation) == expected)

    harness.run(scenario)


def test_drop_empties_what_was_retained(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(SINK)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 1)
        with pytest.raises(BindingError, match="belongs to sink open"):
            await coordinator.execute('DROP QUERY "sink open"')
        with pytest.raises(BindingError, match="used by sink open"):
            await coordinator.execute("DROP SOURCE roomsensor")
        await coordinator.execute("DROP SINK open")
        await harness.until(lambda: not published(federation))
        assert coordinator.sinks.infos() == ()
        await harness.until(lambda: not coordinator._shared.store.sink_entries())

    harness.run(scenario)


def test_topics_of_a_sink_that_was_dropped_without_a_broker_are_emptied_after_a_restart(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        await first.execute(SINK)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 1)
        federation.broker.cut("coordinator")
        await first.execute("DROP SINK open")
        entries = first._shared.store.sink_entries()
        assert list(entries) == ["clear"]
        await first.close()
        await federation.coordinator()
        await harness.until(lambda: not published(federation))

    harness.run(scenario)


def test_a_key_with_two_rows_is_not_told_and_complained_about(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(
            "CREATE SINK seats FROM SELECT rid, mid FROM SeatSensor "
            "WITH (connector = 'mqtt', topic = 'building/seats/{rid}')"
        )
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0), ("m2", "r1", 1.0))
        federation.sites["gw-1"].put("seatsensor", ("m3", "r2", 1.0))
        await harness.until(lambda: "building/seats/r2" in published(federation))
        await harness.until(lambda: "not unique" in coordinator.sinks.infos()[0].problem)
        assert "building/seats/r1" not in published(federation)
        federation.sites["gw-1"].put("seatsensor", ("m2", "r1", 1.0), delete=True)
        await harness.until(lambda: "building/seats/r1" in published(federation))
        await harness.until(lambda: not coordinator.sinks.infos()[0].problem)

    harness.run(scenario)


def test_a_broker_that_has_lost_what_it_retained_is_told_everything_again(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await coordinator.execute(SINK)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 1)
        federation.broker.cut("coordinator")
        federation.broker.retained.pop("building/open/r1")
        federation.broker.restore("coordinator")
        await harness.until(lambda: published(federation) == {"building/open/r1": row("r1")})

    harness.run(scenario)


def test_an_endpoint_that_the_settings_do_not_have_is_refused(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        with pytest.raises(BindingError, match="no endpoint 'orders'"):
            await coordinator.execute(
                "CREATE SINK s FROM SELECT rid, status FROM RoomSensor "
                "WITH (connector = 'webhook', endpoint = 'orders', key = 'rid')"
            )
        assert coordinator.sinks.infos() == ()
        with pytest.raises(KeyError):
            coordinator.sinks.retry("s")
        await asyncio.sleep(0)

    harness.run(scenario)


async def restarted(federation: Any, **settings: Any) -> Any:
    """Close the coordinator, and start it again with other settings."""
    await federation.coordinators[0].close()
    federation.coordinators.clear()
    return await federation.coordinator(**settings)


def test_drop_says_what_stays_at_a_broker_whose_endpoint_is_gone_and_empties_it_later(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        def open_broker(_endpoint: object, client_id: str) -> MessageClient:
            client: MessageClient = federation.broker.client(client_id)
            return client

        monkeypatch.setattr(sinks_module, "_opened", open_broker)
        home = {"home": {"connector": "mqtt", "address": "mqtt://127.0.0.1"}}
        await federation.standard(gateways=1)
        coordinator = await restarted(federation, endpoints=sink_endpoints(home))
        at_home = "'mqtt', endpoint = 'home', discovery = 'homeassistant'"
        await coordinator.execute(SINK.replace("'mqtt'", at_home))
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 2)
        coordinator = await restarted(federation)
        (info,) = coordinator.sinks.infos()
        assert (info.status, info.problem[:27]) == (
            SinkStatus.FAILING,
            "there is no endpoint 'home'",
        )
        (dropped,) = await coordinator.execute("DROP SINK open")
        (warning,) = dropped.warnings
        assert warning.startswith(
            "2 retained topics are not emptied: there is no endpoint 'home'; once the settings "
        )
        assert len(published(federation)) == 2
        await restarted(federation, endpoints=sink_endpoints(home))
        await harness.until(lambda: not published(federation))

    harness.run(scenario)


def test_a_drop_says_what_the_broker_refuses_to_empty(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mqtt_sender.BrokerTarget, "uncleared", "1 topic not emptied: forbidden")

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(SINK)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 1)
        (dropped,) = await coordinator.execute("DROP SINK open")
        assert dropped.warnings == ("1 topic not emptied: forbidden",)

    harness.run(scenario)


def test_a_drop_without_the_broker_says_so(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(SINK)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 1)
        federation.broker.cut("coordinator")
        (dropped,) = await coordinator.execute("DROP SINK open")
        (warning,) = dropped.warnings
        assert warning.startswith("1 retained topic is emptied once the broker is back: ")
        federation.broker.restore("coordinator")
        await harness.until(lambda: not published(federation))

    harness.run(scenario)


def test_a_sink_whose_memory_cannot_be_read_stops_nobody_and_can_be_dropped(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(SINK)
        other = SINK.replace("open FROM", "second FROM").replace("building/open", "building/second")
        await coordinator.execute(other)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until(lambda: len(published(federation)) == 2)
        store = coordinator._shared.store
        store.put_sink_entries({("open", Kind.DEAD, "x"): b"\xc1"})
        coordinator = await restarted(federation)
        infos = {info.definition.name: info for info in coordinator.sinks.infos()}
        assert infos["open"].status == SinkStatus.FAILING
        assert "the saved state of sink open cannot be read (dead x: " in infos["open"].problem
        assert "DROP SINK" in infos["open"].problem
        federation.sites["gw-1"].put("roomsensor", ("r2", "open"))
        await harness.until(lambda: "building/second/r2" in published(federation))
        assert "building/open/r2" not in published(federation)
        (dropped,) = await coordinator.execute("DROP SINK open")
        assert dropped.warnings == (
            "1 entry of its saved state could not be read; retained messages stay on the broker",
        )
        second = {"building/second/r1", "building/second/r2"}
        await harness.until(lambda: set(published(federation)) == second)
        await coordinator.execute(SINK)
        await harness.until(lambda: "building/open/r2" in published(federation))

    harness.run(scenario)


def test_two_sinks_may_not_write_the_same_topics(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        await coordinator.execute(SINK)
        other = (
            "CREATE SINK s FROM SELECT rid FROM RoomSensor WITH (connector = 'mqtt', topic = {})"
        )
        with pytest.raises(BindingError, match="sink open writes topics") as refused:
            await coordinator.execute(other.format("'building/open/{rid}'"))
        assert refused.value.code == "topic_in_use"
        await coordinator.execute("DROP SINK open")
        await coordinator.execute(other.format("'building/open/{rid}'"))

    harness.run(scenario)


def test_rows_that_a_receiver_does_not_take_wait_are_dropped_at_the_bound_and_counted(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_queue, "MAX_WAITING", 5)

    async def scenario(federation: Any) -> None:
        async with WebReceiver() as receiver:
            receiver.decide = lambda _: Answer(503, takes=False)
            await federation.standard(gateways=1)
            hook = {"hook": {"connector": "webhook", "url": receiver.url, "secret": SECRET}}
            coordinator = await restarted(federation, endpoints=sink_endpoints(hook))
            await coordinator.execute(
                "CREATE SINK log FROM ISTREAM(SELECT rid, status FROM RoomSensor) "
                "WITH (connector = 'webhook', endpoint = 'hook', tries = 1)"
            )
            site = federation.sites["gw-1"]
            for number in range(8):
                site.put("roomsensor", (f"r{number}", "open"))
            await harness.until(lambda: coordinator.sinks.infos()[0].dropped == 3)
            (info,) = coordinator.sinks.infos()
            assert (info.waiting, info.dead, info.status) == (5, (), SinkStatus.FAILING)
            assert "5 rows wait, the max" in info.problem
            (shown,) = await coordinator.execute("SHOW SINKS")
            place = shown.columns.index("dropped")
            assert shown.rows[0][place] == 3

    harness.run(scenario)


def test_dead_letters_are_discarded(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with WebReceiver() as receiver:
            receiver.decide = lambda _: Answer(410, takes=False)
            await federation.standard(gateways=1)
            hook = {"hook": {"connector": "webhook", "url": receiver.url, "secret": SECRET}}
            coordinator = await restarted(federation, endpoints=sink_endpoints(hook))
            await coordinator.execute(
                "CREATE SINK s FROM SELECT rid, status FROM RoomSensor "
                "WITH (connector = 'webhook', endpoint = 'hook', key = 'rid', tries = 1)"
            )
            federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
            await harness.until(lambda: len(coordinator.sinks.infos()[0].dead) == 1)
            assert coordinator.sinks.discard("s") == 1
            assert coordinator.sinks.infos()[0].dead == ()
            assert coordinator.sinks.retry("s") == 0
            with pytest.raises(KeyError):
                coordinator.sinks.discard("other")

    harness.run(scenario)
