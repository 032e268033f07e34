"""Requests for fills: each site has its turn, too many are refused in words, no fault ends it."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from host.mqtt.in_memory import InMemoryBroker
from static_engine.filling import fill_requests
from static_engine.filling.fill_requests import MAX_OF_SITE, FillRequests
from streamsql.errors import WireError
from streamsql.wire.codec import decode_packed, encode_packed
from streamsql.wire.fill_messages import FillRows, FillWanted
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")


class Lake:
    """Answers with what is asked, or fails."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def piece(self, wanted: FillWanted) -> FillRows:
        self.asked.append(wanted.id)
        if wanted.source == "poison":
            raise OverflowError("boom")
        return FillRows(wanted.id, done=True)


def request(name: str, source: str = "heat", gateway: str = "") -> bytes:
    return encode_packed(FillWanted(name, "q", source, (), gateway, 0))


async def at_once(work: Callable[[], Any]) -> Any:
    return work()


def answered(scenario: Callable[[FillRequests], Any]) -> dict[str, list[FillRows]]:
    """Return the answers by site."""
    found: dict[str, list[FillRows]] = {}

    async def main() -> None:
        broker = InMemoryBroker()
        listener, client = broker.client("listener"), broker.client("static")

        def hear(burst: list[Any]) -> None:
            for message in burst:
                site = TOPICS.parts(message.topic)[1]
                found.setdefault(site, []).append(decode_packed(message.payload, FillRows))

        listener.on_messages(hear)
        await listener.connect()
        await listener.subscribe("#")
        await client.connect()
        fills = FillRequests(client, TOPICS, Lake())
        await scenario(fills)
        for _ in range(20):
            await asyncio.sleep(0)
        await client.close()
        await listener.close()

    asyncio.run(main())
    return found


def test_a_flood_of_one_site_is_refused_in_words_and_the_others_have_their_turn() -> None:
    async def flooded(fills: FillRequests) -> None:
        for number in range(10_000):
            fills.take("bad", request(f"f{number}"), is_base=True)
            if number % 100 == 0:
                await asyncio.sleep(0)
        fills.take("good", request("mine"), is_base=True)
        await fills.work(at_once)
        assert isinstance(fills.pieces, Lake)
        assert "mine" in fills.pieces.asked[:2]
        while fills.is_due:
            await fills.work(at_once)

    found = answered(flooded)
    assert [answer.done for answer in found["good"]] == [True]
    refused = [answer for answer in found["bad"] if answer.problem]
    assert len(refused) == 10_000 - MAX_OF_SITE
    assert refused[0].problem.startswith("100 requests of this site wait already")
    assert len(found["bad"]) == 10_000


def test_what_a_request_meets_is_its_answer(caplog: pytest.LogCaptureFixture) -> None:
    async def poisoned(fills: FillRequests) -> None:
        for number in range(30):
            fills.take("base", request(f"f{number}", "poison"), is_base=True)
        fills.take("base", request("good"), is_base=True)
        while fills.is_due:
            await fills.work(at_once)

    (*bad, good) = answered(poisoned)["base"]
    assert {answer.problem for answer in bad} == {"the lake cannot be read: OverflowError: boom"}
    assert (good.id, good.problem, good.done) == ("good", "", True)
    assert "cannot be read" in caplog.text


def test_a_gateway_may_ask_for_its_own_readings_only() -> None:
    async def asked(fills: FillRequests) -> None:
        for gateway in ("gw-2", ""):
            with pytest.raises(WireError, match="'gw-1' asks for readings of"):
                fills.take("gw-1", request("f", gateway=gateway), is_base=False)
        fills.take("gw-1", request("f", gateway="gw-1"), is_base=False)
        await fills.work(at_once)

    assert list(answered(asked)) == ["gw-1"]


def test_other_work_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fill_requests, "TURN_SECONDS", 0.0)

    async def one(fills: FillRequests) -> None:
        fills.take("base", request("f"), is_base=True)
        await fills.work(at_once)
        assert fills.is_due

    assert answered(one) == {}
