"""The statements of docs/sinks.md send what the page shows, from a federation that runs."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from federated_optimizer.coordinator.contract.sink_endpoints import sink_endpoints
from tests.docs.markdown import ROOT, Block, blocks
from tests.federated_optimizer.coordinator.conftest import Federation, until
from tests.federated_optimizer.coordinator.sinks.web_receiver import SECRET, WebReceiver

PAGE = ROOT / "docs" / "sinks.md"
EXAMPLES = [block for block in blocks(PAGE, "sql") if block.note == "sink"]
RETAINED = [block for block in EXAMPLES if block.answer]


@contextlib.asynccontextmanager
async def federation(folder: Path, receiver: WebReceiver) -> AsyncIterator[tuple[Federation, Any]]:
    """A federation with the rows that the page's examples read."""
    made = Federation(folder)
    try:
        async with asyncio.timeout(60):
            first = await made.standard(gateways=1)
            await first.close()
            made.coordinators.clear()
            settings = {"orders": {"connector": "webhook", "url": receiver.url, "secret": SECRET}}
            coordinator = await made.coordinator(endpoints=sink_endpoints(settings))
            site = made.sites["gw-1"]
            site.put("seatsensor", ("d1", "r1", 0.5), ("d/2", "r1", 0.0), ("d3", "r2", 71.5))
            site.put("roomsensor", ("r1", "open"))
            yield made, coordinator
    finally:
        await made.close()


def published(made: Federation) -> dict[str, str]:
    return {
        topic: message.payload.decode()
        for topic, message in made.broker.retained.items()
        if not topic.startswith("pando/")
    }


def test_the_page_has_examples_of_both_connectors() -> None:
    assert len(RETAINED) >= 4
    assert len(EXAMPLES) == len(RETAINED) + 2


@pytest.mark.parametrize("block", RETAINED, ids=str)
def test_what_is_retained_is_what_the_page_shows(block: Block, tmp_path: Path) -> None:
    expected = dict(line.split(" ", 1) for line in block.answer.splitlines())
    assert expected

    async def scenario() -> None:
        async with WebReceiver() as receiver, federation(tmp_path, receiver) as (made, coordinator):
            await coordinator.execute(block.text)
            with contextlib.suppress(AssertionError):  # the difference tells more than the time
                await until(lambda: published(made) == expected)
            assert published(made) == expected
            for info in coordinator.sinks.infos():
                await coordinator.execute(f"DROP SINK {info.definition.name}")
            await until(lambda: not published(made))

    asyncio.run(scenario())


def test_the_webhook_posts_what_the_page_shows(tmp_path: Path) -> None:
    block, _ = [block for block in EXAMPLES if not block.answer]
    shown = next(found for found in blocks(PAGE, "json") if found.line > block.line)

    async def scenario() -> None:
        async with WebReceiver() as receiver, federation(tmp_path, receiver) as (_, coordinator):
            await coordinator.execute(block.text)
            await until(lambda: bool(receiver.requests))
            assert receiver.requests[0] == json.loads(shown.text)

    asyncio.run(scenario())


def test_a_raised_alarm_is_posted(tmp_path: Path) -> None:
    _, block = [block for block in EXAMPLES if not block.answer]

    async def scenario() -> None:
        async with WebReceiver() as receiver, federation(tmp_path, receiver) as (made, coordinator):
            await coordinator.execute(block.text)

            def goes_on() -> bool:  # a window holds what comes after the query has started
                made.sites["gw-1"].put("temperature", ("r1", 50.0), ("r2", 20.0))
                return bool(receiver.taken)

            await until(goes_on)
            (message,) = receiver.taken
            row = message["row"]
            assert (row["alarm"], row["severity"], row["row"]) == (
                "hot",
                "critical",
                '{"rid":"r1"}',
            )

    asyncio.run(scenario())


def test_the_endpoints_of_the_page_are_understood() -> None:
    settings = next(found for found in blocks(PAGE, "json") if "endpoints" in found.text)
    text = settings.text.replace("whsec_…", "whsec_MDEyMzQ1Njc4OWFiY2RlZg==").replace("…", "x")
    assert set(sink_endpoints(json.loads(text)["endpoints"])) == {"home", "orders"}
