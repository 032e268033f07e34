"""Things that go wrong in the network and at sites, and end well."""

import asyncio
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from host import heartbeats
from host.mqtt import Message, QueueFull
from host.mqtt.in_memory import Faults
from streamsql.errors import DeploymentError
from streamsql.wire.codec import encode_json
from streamsql.wire.messages import QueryProblem
from streamsql.wire.site_messages import SiteRole, SiteState

ROOMS = "SELECT rid, status FROM RoomSensor"


@pytest.mark.parametrize("seed", range(4))
def test_a_network_that_repeats_reorders_and_loses(harness: Any, seed: int) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        federation.broker.faults = Faults(reorder=True, duplicate=0.3, lose=0.1)
        query = await harness.start_query(coordinator, ROOMS, name=f"seed-{seed}")
        for number in range(30):
            gateway = federation.sites[f"gw-{1 + number % 2}"]
            gateway.put("roomsensor", (f"r{number % 10}", f"status {number}"))
            await asyncio.sleep(0)
        federation.broker.faults = Faults()
        # A lost last batch is noticed by what comes after it.
        for name in ("gw-1", "gw-2"):
            federation.sites[name].put("roomsensor", (name, "last"))
        expected = [("gw-1", "last"), ("gw-2", "last")]
        expected += [(f"r{n}", f"status {20 + n}") for n in range(10)]
        await harness.until_rows(coordinator, query, expected)

    harness.run(scenario)


def test_what_a_site_said_before_it_was_cut_off_settles_nothing_when_it_is_back(
    harness: Any,
) -> None:
    """Its state is heard before its report, which says whether it lacks something."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, "SELECT rid FROM Temperature [ROWS 2]")
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        federation.broker.cut("base")
        await harness.until(lambda: coordinator.query(query).waiting_for == ("base",), "it is away")
        back = encode_json(SiteState(online=True, epoch=1, ts=0, role=SiteRole.BASE))
        coordinator._receiver.on_messages([Message(federation.topics.state("base"), back)])
        assert coordinator.query(query).waiting_for == ()
        assert not coordinator.query(query).settled
        federation.broker.restore("base")
        await harness.until(lambda: coordinator.query(query).settled, "settled again")

    harness.run(scenario)


def test_a_second_base_site_shares_the_work(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(
            coordinator,
            "SELECT m.mid, s.weightLevel FROM SeatSensor s JOIN Machines m ON m.mid = s.mid",
        )
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0), ("m3", "r1", 3.0))
        federation.sites["gw-2"].put("seatsensor", ("m2", "r2", 2.0))
        rows = [("m1", 1.0), ("m2", 2.0), ("m3", 3.0)]
        await harness.until_rows(coordinator, query, rows)
        await federation.site("base-2", "base")
        await harness.until(lambda: coordinator.query(query).version == 2)
        await harness.until_rows(coordinator, query, rows)
        await harness.until(lambda: coordinator.query(query).settled, "settled")
        assert "BASE x 2: base, base-2" in coordinator.explain(query).text
        federation.sites["gw-2"].put("seatsensor", ("m2", "r2", 9.0))
        await harness.until_rows(coordinator, query, [("m1", 1.0), ("m2", 9.0), ("m3", 3.0)])

    harness.run(scenario)


def test_a_gateway_removed_for_good_leaves_the_plans(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: sum(s.online for s in coordinator.sites()) == 4)
        query = await harness.start_query(coordinator, ROOMS)
        assert (query, "gw-2") in await until_published(harness, federation, query)
        await federation.sites.pop("gw-2").stop()
        cleaner = federation.broker.client("cleaner")
        await cleaner.connect()
        for topic in (federation.topics.state("gw-2"), federation.topics.birth("gw-2")):
            cleaner.publish(topic, b"", retain=True)
        await harness.until(lambda: (query, "gw-2") not in federation.fragments())
        assert [s.site for s in coordinator.sites()] == ["base", "gw-1", "static"]
        await cleaner.close()

    harness.run(scenario)


async def until_published(harness: Any, federation: Any, query: str) -> Any:
    await harness.until(lambda: any(q == query for q, _ in federation.fragments()))
    return federation.fragments()


def test_a_problem_that_passes_degrades_and_heals(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, "SELECT mid FROM Machines")
        await harness.until_rows(coordinator, query, [("m1",), ("m2",), ("m3",)])
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        reader = coordinator.subscribe(query, snapshot=False).__aiter__()
        client = federation.sites["static"].client
        problem = QueryProblem("deployment_error", "m.csv is gone", "put it back", 0, "static")
        topic = federation.topics.error(query, "static")
        client.publish(topic, encode_json(problem), retain=True)
        batch = await harness.next_batch(reader)
        assert batch.status == QueryStatus.DEGRADED
        assert batch.error == "static: m.csv is gone (put it back)"
        assert len(coordinator.relation(query)) == 3  # the last rows stay
        client.publish(topic, b"", retain=True)
        assert (await harness.next_batch(reader)).status == QueryStatus.RUNNING

    harness.run(scenario)


def test_a_strategy_that_cannot_go_on_fails_the_query(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        problem = QueryProblem(
            "unsupported",
            "cannot handle deletions",
            "choose another",
            0,
            "base",
        )
        topic = federation.topics.error(query, "base")
        federation.sites["base"].client.publish(topic, encode_json(problem), retain=True)
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        assert coordinator.query(query).error == "base: cannot handle deletions (choose another)"

    harness.run(scenario)


def test_a_new_life_of_a_site_is_not_blamed_for_the_old_one(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        old = federation.sites["gw-1"]
        old.put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1", "open")])
        problem = QueryProblem("internal_error", "broken", "", 0, "gw-1")
        topic = federation.topics.error(query, "gw-1")
        old.client.publish(topic, encode_json(problem), retain=True)
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        federation.broker.cut("gw-1")
        await old.stop()
        new = await federation.site("gw-1", epoch=2)
        new.put("roomsensor", ("r1", "closed"))
        await harness.until_rows(coordinator, query, [("r1", "closed")])
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        assert topic not in federation.broker.retained

    harness.run(scenario)


def test_a_query_that_cannot_be_sent_is_not_kept(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)

        def full(*_: object, **__: object) -> None:
            raise QueueFull("too many messages wait")

        with monkeypatch.context() as patched:
            patched.setattr(coordinator._shared.client, "publish", full)
            with pytest.raises(QueueFull):
                await coordinator.execute(ROOMS)
        assert coordinator.queries() == ()
        await coordinator.close()
        again = await federation.coordinator()
        assert again.queries() == ()

    harness.run(scenario)


def test_what_was_known_before_the_broker_was_away_is_not_taken_for_present(harness: Any) -> None:
    """No answer is called settled, and no command sent, on the word of a broker that fell."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        federation.sites["gw-1"].put("roomsensor", ("r1", "open"))
        await harness.until_rows(coordinator, query, [("r1", "open")])
        await harness.until(lambda: coordinator.query(query).settled)
        gateway = federation.sites["gw-1"].client
        federation.broker.stop(forget=True)
        assert not coordinator.query(query).settled
        federation.sites["gw-1"].put("roomsensor", ("r1", "shut"))
        federation.broker._clients.remove(gateway)  # it is the last to come back
        federation.broker.start()
        for name in ("base", "gw-2"):
            await harness.until(lambda name=name: freshness(coordinator, name) == "live")
        await federation.broker.settle()
        assert freshness(coordinator, "gw-1") == "stale"
        with pytest.raises(DeploymentError, match="has not reported since the broker was offline"):
            coordinator.command("gw-1", "ping", {})
        assert coordinator.relation(query) == (("r1", "open"),)
        assert not coordinator.query(query).settled
        federation.broker.admit(gateway)
        await harness.until(lambda: coordinator.query(query).settled)
        assert coordinator.relation(query) == (("r1", "shut"),)
        coordinator.command("gw-1", "ping", {})

    harness.run(scenario)


def freshness(coordinator: Any, name: str) -> str:
    return next(str(s.freshness) for s in coordinator.sites() if s.site == name)


def test_a_gateway_that_fell_while_the_broker_was_away_goes_offline(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although the broker has retained that it is online, and sends no will."""

    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        query = await harness.start_query(coordinator, ROOMS)
        await harness.until(lambda: coordinator.query(query).settled)
        federation.broker.stop()
        await federation.sites["gw-2"].stop()
        federation.broker.start()
        await harness.until(lambda: freshness(coordinator, "gw-1") == "live")
        monkeypatch.setattr(heartbeats, "TRUST_SECONDS", 0.1)
        await harness.until_status(coordinator, query, QueryStatus.DEGRADED)
        assert coordinator.query(query).waiting_for == ("gw-2",)
        with pytest.raises(DeploymentError, match="gw-2 is not online"):
            coordinator.command("gw-2", "ping", {})
        await federation.site("gw-2", epoch=2)
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)

    harness.run(scenario)


def test_what_a_new_life_complains_about_before_its_state_is_heard_stays(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, ROOMS)
        client = federation.sites["gw-1"].client
        topic = federation.topics.error(query, "gw-1")

        def complain(words: str, ts: int) -> None:
            problem = QueryProblem("unsupported", words, "", ts, "gw-1")
            client.publish(topic, encode_json(problem), retain=True)

        def state(epoch: int, started: int) -> None:
            told = SiteState(True, epoch, started, started=started)
            client.publish(federation.topics.state("gw-1"), encode_json(told), retain=True)

        complain("of the first life", 100)
        await harness.until_status(coordinator, query, QueryStatus.FAILED)
        complain("of the second life", 201)
        state(2, started=200)
        await harness.until(lambda: coordinator._shared.membership.epoch("gw-1") == 2)
        await federation.broker.settle()
        assert coordinator.query(query).error == "gw-1: of the second life"
        assert federation.broker.retained[topic].payload
        state(3, started=300)
        await harness.until(lambda: coordinator.query(query).error == "")
        await harness.until(lambda: topic not in federation.broker.retained)

    harness.run(scenario)
