"""Whatever changes, fails and crashes: in the end the receivers have what the query answers."""

import asyncio
import functools
import itertools
import json
import random
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.sink_endpoints import WebhookEndpoint, sink_endpoints
from federated_optimizer.coordinator.contract.sink_model import SinkStatus
from federated_optimizer.coordinator.sinks import sinks as sinks_module
from federated_optimizer.coordinator.sinks import webhook_sender
from host.mqtt import MessageClient
from tests.federated_optimizer.coordinator.sinks.web_receiver import SECRET, Answer, WebReceiver

ROOMS = {"gw-1": ("r1", "r2", "r3", "r4"), "gw-2": ("r5", "r6", "r7", "r8")}
QUERY = "SELECT rid, COUNT(*) AS n FROM SeatSensor WHERE weightLevel > 0 GROUP BY rid"
ON_MQTT = (
    f"CREATE SINK retained FROM {QUERY} WITH (connector = 'mqtt', topic = 'building/seats/{{rid}}')"
)
ON_WEB = (
    f"CREATE SINK posted FROM {QUERY} "
    "WITH (connector = 'webhook', endpoint = 'hook', key = 'rid', batch = 3, tries = 100)"
)


def published(federation: Any, root: str = "building/") -> dict[str, Any]:
    retained = federation.broker.retained
    return {
        topic: json.loads(message.payload)
        for topic, message in retained.items()
        if topic.startswith(root)
    }


async def kill(federation: Any, coordinator: Any) -> None:
    """End a coordinator without a word, and without a last look at the catalog."""
    await coordinator._background.stop()
    for sink in coordinator._sinks._sinks.values():
        await sink.stop()
    federation.broker.cut("coordinator")
    await coordinator._shared.client.close()
    coordinator._shared.store.close()
    federation.coordinators.remove(coordinator)


def answer_of(relation: dict[str, str]) -> dict[str, int]:
    rooms = list(relation.values())
    return {room: rooms.count(room) for room in set(rooms)}


class Story:
    """Random changes of seats, and random faults of everything between them and the receivers."""

    def __init__(self, federation: Any, harness: Any, receiver: WebReceiver, seed: int) -> None:
        self.federation, self.harness, self.receiver = federation, harness, receiver
        self.chance = random.Random(seed)
        self.seats: dict[str, str] = {}
        self.endpoints = {"hook": WebhookEndpoint(url=receiver.url, secret=SECRET)}
        self.coordinator: Any = None
        receiver.decide = self.decide

    def decide(self, _messages: object) -> Answer:
        dice = self.chance.random()
        if dice < 0.15:
            return Answer(500, takes=self.chance.random() < 0.5)
        if dice < 0.25:
            return Answer(0, takes=self.chance.random() < 0.5)
        if dice < 0.3:
            return Answer(429, takes=False, headers=(("Retry-After", "0"),))
        return Answer()

    async def start(self) -> None:
        await self.federation.standard()
        await self.federation.coordinators[0].close()
        self.federation.coordinators.clear()
        await self.restart()
        await self.coordinator.execute(f"{ON_MQTT}; {ON_WEB}")

    async def restart(self) -> None:
        self.coordinator = await self.federation.coordinator(endpoints=self.endpoints)

    def change(self) -> None:
        site = self.federation.sites[self.chance.choice(("gw-1", "gw-2"))]
        seat = f"{site.name}-{self.chance.randrange(10)}"
        if self.chance.random() < 0.4:
            old = self.seats.pop(seat, None)
            if old is not None:
                site.put("seatsensor", (seat, old, 1.0), delete=True)
            return
        room = self.chance.choice(ROOMS[site.name])  # a room is one gateway's: `colocate`
        self.seats[seat] = room
        site.put("seatsensor", (seat, room, 1.0))

    async def fault(self) -> None:
        match self.chance.randrange(4):
            case 0:
                await kill(self.federation, self.coordinator)
                for _ in range(self.chance.randrange(6)):
                    self.change()
                await self.restart()
            case 1:
                await self.coordinator.close()
                self.federation.coordinators.remove(self.coordinator)
                for _ in range(self.chance.randrange(6)):
                    self.change()
                await self.restart()
            case 2:
                self.federation.broker.cut("coordinator")
                self.change()
                await asyncio.sleep(0.02)  # time passes: a cut of some length
                self.federation.broker.restore("coordinator")
            case _:
                await asyncio.sleep(self.chance.random() * 0.1)  # time passes: until the next fault

    async def settle(self) -> None:
        expected = answer_of(self.seats)
        rows = {room: {"rid": room, "n": n} for room, n in expected.items()}
        topics = {f"building/seats/{room}": row for room, row in rows.items()}
        await self.harness.until(lambda: published(self.federation) == topics, str(topics))
        posted = {json.dumps({"rid": room}): row for room, row in rows.items()}
        await self.harness.until(lambda: self.receiver.rows == posted, str(posted))
        await self.harness.until(
            lambda: all(not info.waiting for info in self.coordinator.sinks.infos())
        )
        assert not any(info.dead for info in self.coordinator.sinks.infos())


@pytest.mark.parametrize("seed", range(8))
def test_receivers_have_the_answer_after_random_faults(
    harness: Any, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    posts = webhook_sender.WebhookSender
    monkeypatch.setattr(sinks_module, "WebhookSender", functools.partial(posts, first_pause=0.005))

    async def scenario(federation: Any) -> None:
        async with WebReceiver() as receiver:
            story = Story(federation, harness, receiver, seed)
            await story.start()
            for _ in range(12):
                for _ in range(story.chance.randrange(10)):
                    story.change()
                await story.fault()
            await story.settle()

    harness.run(scenario)


def test_a_slow_receiver_stops_nobody_else(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        async with WebReceiver() as receiver:
            receiver.gate.clear()
            await federation.standard()
            await federation.coordinators[0].close()
            federation.coordinators.clear()
            endpoints = {"hook": WebhookEndpoint(url=receiver.url, secret=SECRET)}
            coordinator = await federation.coordinator(endpoints=endpoints)
            await coordinator.execute(f"{ON_WEB}; {ON_MQTT}")
            site = federation.sites["gw-1"]
            site.put("seatsensor", ("m0", "r1", 1.0))
            await harness.until(lambda: len(receiver.requests) == 1)
            for number in range(1, 20):
                site.put("seatsensor", (f"m{number}", "r1", 1.0))
                rows = {"building/seats/r1": {"rid": "r1", "n": number + 1}}
                await harness.until(lambda rows=rows: published(federation) == rows)
            assert len(receiver.requests) == 1  # and nobody has answered it yet
            receiver.gate.set()
            await harness.until(lambda: len(receiver.requests) == 2)
            assert list(receiver.rows.values()) == [{"rid": "r1", "n": 20}]

    harness.run(scenario)


def test_a_gateway_that_comes_back_after_the_coordinator_does_not_clear_its_rows(
    harness: Any,
) -> None:
    async def scenario(federation: Any) -> None:
        first = await federation.standard()
        await first.execute(ON_MQTT)
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0))
        federation.sites["gw-2"].put("seatsensor", ("m2", "r2", 1.0))
        await harness.until(lambda: len(published(federation)) == 2)
        emptied: list[str] = []
        route = federation.broker.route

        def noting(topic: str, payload: bytes, qos: int, *, retain: bool) -> None:
            if topic.startswith("building/") and not payload:
                emptied.append(topic)
            route(topic, payload, qos, retain=retain)

        federation.broker.route = noting
        await first.close()
        second = await federation.coordinator()
        await harness.until(lambda: second.sinks.infos()[0].status == SinkStatus.RUNNING)
        await harness.until(lambda: second.query("sink retained").settled)
        assert len(published(federation)) == 2
        assert emptied == []

    harness.run(scenario)


def test_rows_of_a_stream_are_appended_over_restarts(harness: Any) -> None:
    stream = (
        "CREATE SINK log FROM ISTREAM(SELECT rid, celsius FROM Temperature [RANGE 1 HOUR]) "
        "WITH (connector = 'webhook', endpoint = 'hook')"
    )

    async def scenario(federation: Any) -> None:
        async with WebReceiver() as receiver:
            await federation.standard(gateways=1)
            await federation.coordinators[0].close()
            federation.coordinators.clear()
            endpoints = {"hook": WebhookEndpoint(url=receiver.url, secret=SECRET)}
            coordinator = await federation.coordinator(endpoints=endpoints)
            await coordinator.execute(stream)

            def heard() -> set[float]:
                return {message["row"]["celsius"] for message in receiver.taken}

            site = federation.sites["gw-1"]
            numbers = itertools.count(1)

            def goes_on() -> bool:  # a stream begins with the first readings that its base hears
                site.put("temperature", ("r1", next(numbers) / 1_000))
                return bool(heard())

            await harness.until(goes_on)
            before = heard()
            await kill(federation, coordinator)
            site.put("temperature", ("r1", 2.0))
            await federation.coordinator(endpoints=endpoints)
            await harness.until(lambda: 2.0 in heard())
            site.put("temperature", ("r1", 3.0))
            await harness.until(lambda: 3.0 in heard())
            firsts = list(dict.fromkeys(m["row"]["celsius"] for m in receiver.taken))
            assert firsts == sorted(firsts)
            assert before < heard()
            # None of those that were made meanwhile is missing.
            made = {number / 1_000 for number in range(round(min(before) * 1_000), next(numbers))}
            assert made <= heard()

    harness.run(scenario)


def test_another_broker_is_reached_by_the_name_of_its_endpoint(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        opened: list[str] = []

        def open_broker(_endpoint: object, client_id: str) -> MessageClient:
            opened.append(client_id)
            client: MessageClient = federation.broker.client(client_id)
            return client

        monkeypatch.setattr(sinks_module, "_opened", open_broker)
        await federation.standard(gateways=1)
        await federation.coordinators[0].close()
        federation.coordinators.clear()
        from_settings = {"home": {"connector": "mqtt", "address": "mqtt://127.0.0.1"}}
        endpoints = sink_endpoints(from_settings)
        coordinator = await federation.coordinator(endpoints=endpoints)
        await coordinator.execute(ON_MQTT.replace("'mqtt'", "'mqtt', endpoint = 'home'"))
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0))
        await harness.until(lambda: len(published(federation)) == 1)
        assert opened == ["pando-demo-home"]
        federation.broker.cut("pando-demo-home")
        (info,) = coordinator.sinks.infos()
        assert info.problem == "the broker of endpoint home is not connected: the test has cut it"
        federation.broker.restore("pando-demo-home")
        await coordinator.execute("DROP SINK retained")
        await harness.until(lambda: not published(federation))

    harness.run(scenario)
