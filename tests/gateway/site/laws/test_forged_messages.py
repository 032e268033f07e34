"""Forged messages at an engine site: nothing changes, each is counted and named, nobody ends.

What a broker's accounts let a site write in its own name is tried against sites that it has nothing
to do with. `gw-9` is no part of the query; `gw-2` is, but has no channel to `gw-1`.
"""

import asyncio
from typing import Any

import pytest

from gateway.testing import until
from streamsql.wire.codec import decode_json, encode_json, encode_packed
from streamsql.wire.messages import Command, DeadLetter, DeltaBatch, WeightedRow
from streamsql.wire.observation_logs import PacksWanted
from streamsql.wire.site_messages import SiteRole, SiteState
from tests.gateway.site.federation import TOPICS, Federation, run
from tests.gateway.site.test_host import FORGET, two_gateways

BATCH = encode_packed(DeltaBatch(1, 1, 0, "f0", (WeightedRow(("forged", 1.0, 0), 1),), reset=True))
OTHER_PORT = encode_packed(
    DeltaBatch(1, 1, 0, "f9", (WeightedRow(("forged", 1.0, 0), 1),), reset=True)
)
PACKS = encode_json(PacksWanted("seats", 1, 0))


def _command(channel: str, **arguments: Any) -> bytes:
    return encode_json(Command(query="q1", channel=channel, arguments=arguments))


FORGED = {
    "batch of a stranger": ("base", TOPICS.exchange("q1", "base", "gw-9"), BATCH),
    "batch between gateways": ("gw-1", TOPICS.exchange("q1", "gw-1", "gw-2"), BATCH),
    "batch to a port of another": ("base", TOPICS.exchange("q1", "base", "gw-2"), OTHER_PORT),
    "resync for a stranger": ("gw-1", TOPICS.request("gw-1", "resync", "gw-9"), _command("gw-9")),
    "resync for another": ("gw-1", TOPICS.request("gw-1", "resync", "gw-9"), _command("base")),
    "resync of the result": ("base", TOPICS.request("base", "resync", "gw-1"), _command("out")),
    "resync without channel": ("base", TOPICS.request("base", "resync", "gw-1"), _command("gw-1")),
    "forget of another": (
        "gw-1",
        TOPICS.request("gw-1", "forget", "gw-2"),
        _command("base", **FORGET),
    ),
    "forget without channel": (
        "gw-1",
        TOPICS.request("gw-1", "forget", "gw-2"),
        _command("gw-2", **FORGET),
    ),
    "packs for a gateway": ("gw-1", TOPICS.request("gw-1", "packs", "gw-2"), PACKS),
    "a command by request": ("gw-1", TOPICS.request("gw-1", "flush", "gw-2"), _command("gw-2")),
    "fragments of another query": ("gw-1", TOPICS.fragment("q2", "gw-1"), encode_packed({})),
}


@pytest.mark.parametrize(("victim", "topic", "payload"), FORGED.values(), ids=FORGED)
def test_a_forged_message_changes_nothing_and_is_named_once(
    victim: str, topic: str, payload: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.dead(), "+/+/+/q/+/x/#", "+/+/+/gw/+/obs/+")
        site = federation.sites[victim]
        await federation.broker.settle()
        sent = site.host.batches_sent
        for _ in range(3):
            federation.console.publish(topic, payload)
        await until(lambda: site.host.dead_letters.count == 3, "all are counted")
        await federation.broker.settle()
        letters = [decode_json(m.payload, DeadLetter) for m in federation.told(f"/dead/{victim}")]
        assert [letter.topic for letter in letters] == [topic], "named once"
        assert caplog.text.count("ignored an invalid payload") == 1
        site.host.wake()
        assert site.host.batches_sent == sent
        assert federation.rows() == federation.expected("gw-1", "gw-2")
        federation.sites["gw-1"].put("after", 5.0)
        await federation.until_rows(lambda: federation.expected("gw-1", "gw-2"))
        assert site.task is not None
        assert not site.task.done()

    run(scenario)


def test_a_base_site_that_is_known_gets_packs_again() -> None:
    async def scenario(federation: Federation) -> None:
        await two_gateways(federation, TOPICS.request("base", "published", "+"))
        state = SiteState(True, 1, 0, role=SiteRole.BASE)
        federation.console.publish(TOPICS.state("base"), encode_json(state), retain=True)
        site = federation.sites["gw-1"]
        await until(lambda: site.host.membership.role("base") == SiteRole.BASE, "it is known")
        federation.console.publish(TOPICS.request("gw-1", "packs", "base"), PACKS)
        await until(lambda: bool(federation.told("/cmd/published/gw-1")), "it is answered")
        assert site.host.dead_letters.count == 0

    run(scenario)


def test_requests_for_a_query_that_is_not_here_are_no_fault() -> None:
    """It may be under way, or have been withdrawn a moment ago."""

    async def scenario(federation: Federation) -> None:
        await two_gateways(federation)
        site = federation.sites["gw-1"]
        for verb, arguments in (("resync", {}), ("forget", FORGET)):
            command = Command(query="q9", channel="base", arguments=arguments)
            topic = TOPICS.request("gw-1", verb, "base")
            federation.console.publish(topic, encode_json(command))
        batch = TOPICS.exchange("q9", "gw-1", "gw-9")
        federation.console.publish(batch, BATCH)
        await federation.broker.settle()
        await asyncio.sleep(0)
        assert site.host.dead_letters.count == 0

    run(scenario)
