"""Forged messages at the coordinator: nothing changes, each is named, nobody ends.

They are what a broker's accounts let a site write in its own name, about queries, roles and
channels that are not its own. `gw-9` is a gateway that has no part in the query.
"""

from collections.abc import Callable
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import QueryStatus
from host.mqtt import Message
from streamsql.wire.codec import decode_json, encode_json, encode_packed
from streamsql.wire.messages import (
    Command,
    DeadLetter,
    DeltaBatch,
    FlowReport,
    QueryProblem,
    WeightedRow,
)
from streamsql.wire.site_messages import Birth, SiteFlows, SiteRole, SiteState
from streamsql.wire.topics import Topics

QUERY = "SELECT mid, rid FROM SeatSensor"
FORGER = "gw-9"

Make = Callable[[Topics, str, int], tuple[str, bytes]]


def _result(topics: Topics, query: str, version: int) -> tuple[str, bytes]:
    batch = DeltaBatch(version, 1, 0, "f0", (WeightedRow(("forged", "room"), 1),), reset=True)
    return topics.output(query, FORGER), encode_packed(batch)


def _counts(topics: Topics, query: str, version: int) -> tuple[str, bytes]:
    return topics.flow(FORGER), encode_packed(SiteFlows({query: FlowReport(version, 1, {}, {})}))


def _problem(topics: Topics, query: str, _version: int) -> tuple[str, bytes]:
    problem = QueryProblem("x", "forged", "", 1, FORGER)
    return topics.error(query, FORGER), encode_json(problem)


def _role(role: SiteRole, branch: str = "gw") -> Make:
    def make(topics: Topics, _query: str, _version: int) -> tuple[str, bytes]:
        topic = topics.state(FORGER) if branch == "gw" else topics.host_state(FORGER)
        return topic, encode_json(SiteState(True, 1, 1, role=role))

    return make


def _birth(name: str, role: SiteRole = SiteRole.GATEWAY) -> Make:
    def make(topics: Topics, _query: str, _version: int) -> tuple[str, bytes]:
        return topics.birth(FORGER), encode_json(Birth(name, 99, 0, 1, role=role))

    return make


def _resync(topics: Topics, query: str, _version: int) -> tuple[str, bytes]:
    command = Command(query=query, channel="base")
    return topics.request("coordinator", "resync", FORGER), encode_json(command)


FORGED: dict[str, Make] = {
    "a result": _result,
    "counts": _counts,
    "a problem": _problem,
    "a gateway as static engine": _role(SiteRole.STATIC),
    "a gateway as coordinator": _role(SiteRole.COORDINATOR),
    "a gateway as base site": _role(SiteRole.BASE),
    "a host as gateway": _role(SiteRole.GATEWAY, "host"),
    "the birth of another": _birth("gw-1"),
    "a birth as base site": _birth(FORGER, SiteRole.BASE),
    "a request for another": _resync,
}


@pytest.mark.parametrize("make", FORGED.values(), ids=FORGED)
def test_a_forged_message_changes_nothing_and_is_named_once(harness: Any, make: Make) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("base", SiteRole.BASE)
        gateway = await federation.site("gw-1")
        coordinator = await federation.coordinator(define_schema=True, only_bases=True)
        await harness.until(lambda: sum(site.online for site in coordinator.sites()) == 2)
        query = await harness.start_query(coordinator, QUERY)
        gateway.put("seatsensor", ("m1", "r1", 1.0))
        await harness.until_rows(coordinator, query, [("m1", "r1")])
        letters: list[DeadLetter] = []
        observer = federation.broker.client("observer")
        observer.on_messages(
            lambda burst: letters.extend(decode_json(m.payload, DeadLetter) for m in burst)
        )
        await observer.connect()
        await observer.subscribe(federation.topics.dead("coordinator"))
        version = coordinator.query(query).version
        known = {site.site for site in coordinator.sites()}
        topic, payload = make(federation.topics, query, version)
        for _ in range(3):
            observer.publish(topic, payload)
        await harness.until(lambda: bool(letters))
        await federation.broker.settle()
        assert [letter.topic for letter in letters] == [topic]
        assert FORGER in letters[0].error
        assert {site.site for site in coordinator.sites()} == known
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        gateway.put("seatsensor", ("m2", "r1", 1.0))
        await harness.until_rows(coordinator, query, [("m1", "r1"), ("m2", "r1")])
        await observer.close()

    harness.run(scenario)


def test_counts_that_are_refused_do_not_stop_the_others_of_their_message(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        query = await harness.start_query(coordinator, QUERY)
        federation.sites["gw-1"].put("seatsensor", ("m1", "r1", 1.0))
        await harness.until_status(coordinator, query, QueryStatus.RUNNING)
        letters: list[DeadLetter] = []
        withdrawn: list[str] = []

        def hear(burst: list[Message]) -> None:
            for message in burst:
                if "/dead/" in message.topic:
                    letters.append(decode_json(message.payload, DeadLetter))
                elif not message.payload:
                    withdrawn.append(message.topic)

        observer = federation.broker.client("observer")
        observer.on_messages(hear)
        await observer.connect()
        topics = federation.topics
        await observer.subscribe(topics.dead("coordinator"), topics.fragment())
        version = coordinator.query(query).version
        known = FlowReport(version, 1, {"base": 4_000}, {})
        other = FlowReport(1, 1, {}, {})
        names = ("a/#", "+", "", "q1/frag/base", "ä" * 200, "nul\0")
        flows = SiteFlows({**dict.fromkeys(names, other), query: known, "q99": other})
        observer.publish(topics.flow("gw-1"), encode_packed(flows))
        await harness.until(
            lambda: coordinator.explain(query).data["batches"]["gw-1"]["sent"] == 4_000
        )
        await harness.until(lambda: bool(letters) and bool(withdrawn))
        assert [letter.topic for letter in letters] == [topics.flow("gw-1")]
        assert "'a/#' is not an id" in letters[0].error
        assert withdrawn == [topics.fragment("q99", "gw-1")], "one that could be a query"
        await observer.close()

    harness.run(scenario)


def test_unless_base_sites_are_named_any_site_may_be_one(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        await federation.site("another", SiteRole.BASE)
        coordinator = await federation.coordinator(define_schema=True)
        await harness.until(
            lambda: any(site.role == SiteRole.BASE and site.online for site in coordinator.sites())
        )

    harness.run(scenario)
