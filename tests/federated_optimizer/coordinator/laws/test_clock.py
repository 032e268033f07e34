"""Gateways ask the coordinator for the time, and lists show what they have found."""

import time
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import Freshness, SiteInfo
from federated_optimizer.coordinator.statements.listings import show
from gateway.gateway_settings import ClockSettings
from gateway.session.clock_exchange import ClockExchange
from host.mqtt import Message
from streamsql.catalog.catalog import Catalog
from streamsql.wire.codec import decode_json
from streamsql.wire.messages import Command
from streamsql.wire.site_messages import ClockState, SiteRole, SiteState

SKEW = 3_000_000


def wall() -> int:
    return time.time_ns() // 1000


def elapsed() -> int:
    return time.monotonic_ns() // 1000


def test_a_gateway_learns_how_far_its_clock_is_behind(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.coordinator(define_schema=True)
        client = federation.broker.client("gw-9")
        exchange = ClockExchange(
            "gw-9",
            client,
            federation.topics,
            ClockSettings(correct=True),
            wall=lambda: wall() - SKEW,
            elapsed=elapsed,
        )

        def hear(burst: list[Message]) -> None:
            for message in burst:
                exchange.answered(decode_json(message.payload, Command))

        client.on_messages(hear)
        exchange.ask()  # not connected yet: nothing happens
        await client.connect()
        await client.subscribe(federation.topics.command("gw-9", "clock"))
        for answers in range(1, 5):
            exchange.ask()
            await harness.until(lambda wanted=answers: exchange.offset.answers == wanted)
        found, error = exchange.offset.offset, exchange.offset.error
        assert found is not None
        assert abs(found - SKEW) <= error + 1_000
        before, corrected, after = wall(), exchange.corrected(), wall()
        assert before - 2 * error - 10_000 <= corrected <= after + 2 * error + 10_000
        assert exchange.problem() == ""
        await client.close()
        assert coordinator.figures.bad_payloads == 0

    harness.run(scenario)


def test_lists_show_the_offset_with_its_error() -> None:
    def listed(state: SiteState | None) -> object:
        info = SiteInfo(
            "gw-1",
            SiteRole.GATEWAY,
            online=True,
            freshness=Freshness.LIVE,
            epoch=1,
            since=0,
            figures=state,
        )
        answer = show("gateways", Catalog(), (), (info,))
        return answer.rows[0][answer.columns.index("clock offset")]

    assert listed(None) == ""
    assert listed(SiteState(online=True, epoch=1, ts=0)) == ""
    clock = ClockState(offset_ms=12.34, error_ms=0.56)
    assert listed(SiteState(online=True, epoch=1, ts=0, clock=clock)) == "12.3 ± 0.6 ms"
    clock = ClockState(offset_ms=12.34, error_ms=0.56, corrected_ms=12.3)
    assert listed(SiteState(online=True, epoch=1, ts=0, clock=clock)) == "12.3 ± 0.6 ms, corrected"
