"""The in-memory broker: what tests of services may rely on."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from host.mqtt import ClientClosed, ConnectFailed, Message, QueueFull, Will
from host.mqtt.in_memory import Faults, InMemoryBroker, InMemoryClient

Scenario = Callable[[InMemoryBroker], Awaitable[None]]


def _run(scenario: Scenario, **options: object) -> None:
    async def with_broker() -> None:
        await scenario(InMemoryBroker(**options))  # type: ignore[arg-type]

    asyncio.run(with_broker())


async def _client(
    broker: InMemoryBroker, name: str, *, will: Will | None = None, clean: bool = True
) -> tuple[InMemoryClient, list[Message]]:
    client = broker.client(name, will=will, clean=clean)
    got: list[Message] = []
    client.on_messages(got.extend)
    await client.connect()
    return client, got


def test_publish_subscribe_and_retained() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        writer, _ = await _client(broker, "w")
        reader, got = await _client(broker, "r")
        writer.publish("a/1", b"kept", retain=True)
        await broker.settle()
        await reader.subscribe("a/+", "b")
        writer.publish("a/2", b"live", retain=True)
        ticket = writer.publish("b", b"x", qos=0)
        writer.publish("c", b"not for us")
        assert writer.pending() == 3
        await broker.settle()
        await ticket.wait(1)
        assert writer.pending() == 0
        assert got == [
            Message("a/1", b"kept", 1, retain=True),
            Message("a/2", b"live", 1),
            Message("b", b"x", 0),
        ]
        writer.publish("a/1", b"", retain=True)
        await broker.settle()
        assert set(broker.retained) == {"a/2"}
        await reader.unsubscribe("a/+")
        got.clear()
        writer.publish("a/9", b"x")
        await broker.settle()
        assert got == []

    _run(scenario)


def test_wills_and_cut_links() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        _, got = reader = await _client(broker, "r")
        await reader[0].subscribe("state/#", "t")
        ups: list[bool] = []
        victim, _ = await _client(broker, "v", will=Will("state/v", b"dead"))
        victim.on_connection(ups.append)
        broker.cut("v")
        waiting = victim.publish("t", b"later")
        dropped = victim.publish("t", b"never", qos=0)
        assert dropped.done()
        assert victim.dropped_qos0 == 1
        await broker.settle()
        assert [m.payload for m in got] == [b"dead"]
        assert not waiting.done()
        broker.restore("v")
        await broker.settle()
        assert waiting.done()
        assert [m.payload for m in got] == [b"dead", b"later"]
        await victim.close()
        await broker.settle()
        assert ups == [False, True, False]
        assert [m.payload for m in got] == [b"dead", b"later"], "a clean close leaves no will"

    _run(scenario)


def test_a_kept_session_queues_qos_1() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        writer, _ = await _client(broker, "w")
        reader, _ = await _client(broker, "r", clean=False)
        await reader.subscribe("t")
        await reader.close()
        writer.publish("t", b"1")
        writer.publish("t", b"0", qos=0)
        await broker.settle()
        _, got = await _client(broker, "r", clean=False)
        await broker.settle()
        assert [m.payload for m in got] == [b"1"]

    _run(scenario)


def test_a_broker_that_stops_and_forgets() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        writer, _ = await _client(broker, "w", will=Will("will", b"x"))
        reader, got = await _client(broker, "r")
        await reader.subscribe("#")
        writer.publish("t", b"1", retain=True)
        await broker.settle()
        broker.stop(forget=True)
        assert not reader.connected
        writer.publish("t", b"2")
        broker.start()
        await broker.settle()
        assert [m.payload for m in got] == [b"1", b"2"]
        assert broker.retained == {}

    _run(scenario)


def test_taking_over_and_shared_subscriptions() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        first, _ = await _client(broker, "same")
        await _client(broker, "same")
        assert not first.connected
        members = [await _client(broker, f"m{i}") for i in range(2)]
        for member, _ in members:
            await member.subscribe("$share/g/t")
        writer, _ = await _client(broker, "w")
        for number in range(10):
            writer.publish("t", b"%d" % number)
        await broker.settle()
        assert [len(got) for _, got in members] == [5, 5]

    _run(scenario)


def test_misuse() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        client = broker.client("c", max_pending=1)
        with pytest.raises(ClientClosed, match="not started"):
            client.publish("t", b"")
        await client.connect()
        with pytest.raises(ValueError, match="wildcard"):
            client.publish("#", b"")
        client.publish("t", b"")
        with pytest.raises(QueueFull):
            client.publish("t", b"")
        with pytest.raises(RuntimeError):
            await client.connect()
        await client.close()
        await client.close()
        with pytest.raises(ClientClosed, match="is closed"):
            await client.subscribe("t")
        broker.stop()
        with pytest.raises(ConnectFailed):
            await broker.client("d").connect(timeout=0.01)
        patient = broker.client("e")
        await patient.connect(timeout=None)
        broker.start()
        assert patient.connected

    _run(scenario)


def test_a_failing_callback_is_reported_and_harms_nobody() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        reported: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, c: reported.append(c))
        reader = broker.client("r")
        got: list[Message] = []
        reader.on_messages(lambda _: 1 / 0)  # type: ignore[arg-type]
        reader.on_messages(got.extend)
        await reader.connect()
        await reader.subscribe("t")
        reader.publish("t", b"x")
        await broker.settle()
        assert [m.payload for m in got] == [b"x"]
        assert isinstance(reported[0]["exception"], ZeroDivisionError)

    _run(scenario)


@given(
    seed=st.integers(0, 1_000),
    reorder=st.booleans(),
    duplicate=st.sampled_from([0.0, 0.3]),
    lose=st.sampled_from([0.0, 0.3]),
    sent=st.lists(st.sampled_from("abc"), max_size=30),
)
def test_faults_keep_the_order_of_a_topic(
    seed: int, reorder: bool, duplicate: float, lose: float, sent: list[str]
) -> None:
    async def run_once() -> list[Message]:
        broker = InMemoryBroker(
            seed=seed, faults=Faults(reorder=reorder, duplicate=duplicate, lose=lose)
        )
        writer, _ = await _client(broker, "w")
        reader, got = await _client(broker, "r")
        await reader.subscribe("#")
        for number, topic in enumerate(sent):
            writer.publish(topic, b"%d" % number)
        await broker.settle()
        return got

    got = asyncio.run(run_once())
    assert got == asyncio.run(run_once()), "a seed gives the same run again"
    for topic in "abc":
        expected = [n for n, name in enumerate(sent) if name == topic]
        firsts = list(dict.fromkeys(int(m.payload) for m in got if m.topic == topic))
        assert firsts == [n for n in expected if n in firsts], "first arrivals are in order"
        if not lose:
            assert firsts == expected
    if not duplicate:
        assert len(got) == len(set(got))
    if not (reorder or duplicate or lose):
        assert [int(m.payload) for m in got] == list(range(len(sent)))


def test_faults_do_happen() -> None:
    async def scenario(broker: InMemoryBroker) -> None:
        writer, _ = await _client(broker, "w")
        reader, got = await _client(broker, "r")
        await reader.subscribe("#")
        for number in range(300):
            writer.publish("ab"[number % 2], b"%d" % number)
        await broker.settle()
        numbers = [int(m.payload) for m in got]
        assert numbers != sorted(numbers)
        assert len(set(numbers)) < 300
        assert len(numbers) > len(set(numbers))
        assert broker.dropped == 300 - len(set(numbers))

    _run(scenario, seed=1, faults=Faults(reorder=True, duplicate=0.1, lose=0.1))


def test_what_is_not_acknowledged_by_hand_comes_again() -> None:
    async def scenario() -> None:
        broker = InMemoryBroker()
        lander = broker.client("lander", clean=False, acknowledges_by_hand=True)
        sender = broker.client("sender")
        heard: list[Message] = []
        lander.on_messages(heard.extend)
        await lander.connect()
        await sender.connect()
        assert not lander.session_kept
        await lander.subscribe("t")
        sender.publish("t", b"1")
        sender.publish("t", b"2")
        await broker.settle()
        lander.acknowledge([heard[0].receipt])
        broker.cut("lander")
        broker.restore("lander")
        await broker.settle()
        assert lander.session_kept
        assert [message.payload for message in heard] == [b"1", b"2", b"2"]
        await lander.close()
        await sender.close()

    asyncio.run(scenario())
