"""The benchmark of traffic at rest: every topic is of a kind, and what it counts at a broker."""

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.traffic_at_rest import ALL, KINDS, Count, kind_of
from broker.broker_testing import BrokerProcess
from deploy.cli.bench import BENCHMARKS
from host.mqtt import Message, open_client
from streamsql.wire.topics import Topics
from tests.security.broker_rights import stated_by_method

TOPICS = Topics("demo")
STATED = stated_by_method("demo")
UNKNOWN = {"dead", "alarms", "error"}
"""Topics that are silent at rest."""


@pytest.mark.parametrize("method", sorted(STATED.keys() - UNKNOWN))
def test_every_topic_is_of_a_kind(method: str) -> None:
    kinds = {kind_of(each.topic) for each in STATED[method]}
    assert kinds <= set(KINDS) - {"others"}


def test_counts_of_earlier_versions_are_counts() -> None:
    assert kind_of("pando/v1/demo/q/q1/flow/gw-1") == kind_of(TOPICS.flow("gw-1"))


def test_topics_and_payloads_are_counted_and_what_was_retained_is_not() -> None:
    count, topic = Count(), TOPICS.link("gw-1", "radio", "ä", "b")
    count.hear([Message(topic, b"12345"), Message(topic, b""), Message(topic, b"x", retain=True)])
    count.hear([Message(TOPICS.output("q1", "base"), b"1")])
    assert dict(count.messages) == {"links": 2, "results": 1, ALL: 3}
    bytes_of_links = 2 * len("pando/v1/demo/gw/gw-1/link/radio/ä/b".encode()) + 5
    assert count.bytes["links"] == bytes_of_links
    assert count.rates(2.0)["links"] == {
        "bytes_per_s": bytes_of_links / 2,
        "messages_per_s": 1.0,
    }


@pytest.mark.end_to_end
def test_what_is_published_at_a_broker_is_counted_by_kind(tmp_path: Path) -> None:
    async def scenario(url: str) -> bytes:
        client = open_client(url, "publisher")
        await client.connect()
        client.publish(TOPICS.state("gw-1"), b"retained before", retain=True)
        benchmark = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.traffic_at_rest", "--quick", "--json"),
            *("--seconds", "1", "--at", url),
            cwd=BENCHMARKS.parent,
            stdout=subprocess.PIPE,
        )
        said = asyncio.create_task(benchmark.communicate())
        while not said.done():
            client.publish(TOPICS.flow("gw-1"), b"x" * 50)
            client.publish(TOPICS.output("q1", "base"), b"x" * 100)
            await asyncio.sleep(0.02)
        await client.close()
        assert benchmark.returncode == 0
        return said.result()[0]

    with BrokerProcess("embedded", tmp_path) as broker:
        found = json.loads(asyncio.run(scenario(broker.url)))
    rates = found["rates"]["this broker"]
    assert set(rates) == {"counts of batches", "results", ALL}
    for kind, topic, size in (
        ("counts of batches", TOPICS.flow("gw-1"), 50),
        ("results", TOPICS.output("q1", "base"), 100),
    ):
        a_message = rates[kind]["bytes_per_s"] / rates[kind]["messages_per_s"]
        assert a_message == pytest.approx(len(topic) + size, rel=0.01)
    assert rates[ALL]["bytes_per_s"] == pytest.approx(
        sum(rates[kind]["bytes_per_s"] for kind in rates if kind != ALL), abs=0.3
    )
