"""Gateways are told which streams have readers: the lake, and windows over all gateways."""

from typing import Any

import pytest

from federated_optimizer.coordinator.system import observation_interest
from host.clocks import wall_clock
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.observation_logs import Interest
from streamsql.wire.site_messages import SiteRole, SiteState

COUNTING = "SELECT rid FROM temperature [ROWS 3]"


@pytest.fixture
def prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the coordinator speak from its first look on."""
    monkeypatch.setattr(observation_interest, "SILENT_SECONDS", 0.0)


def told(federation: Any) -> dict[str, bool]:
    """Return which streams are said to be read."""
    return {stream: interest.wanted for stream, interest in retained(federation).items()}


def retained(federation: Any) -> dict[str, Interest]:
    """Return what is retained, by stream."""
    prefix = federation.topics.interest("")
    return {
        topic.removeprefix(prefix): decode_json(message.payload, Interest)
        for topic, message in federation.broker.retained.items()
        if topic.startswith(prefix) and message.payload
    }


@pytest.mark.usefixtures("prompt")
def test_a_stream_is_read_while_a_window_over_all_gateways_reads_it(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: told(federation).get("temperature") is False)
        await harness.start_query(coordinator, COUNTING, name="counting")
        await harness.until(lambda: bool(federation.fragments()))
        assert told(federation)["temperature"], "told before the fragments"
        assert told(federation)["roomsensor"] is False
        await coordinator.execute("DROP QUERY counting")
        await harness.until(lambda: told(federation)["temperature"] is False)

    harness.run(scenario)


@pytest.mark.usefixtures("prompt")
def test_a_lander_reads_everything_also_while_it_is_away(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.until(lambda: told(federation).get("temperature") is False)
        lander = federation.broker.client("lander")
        await lander.connect()
        for online in (True, False):
            state = SiteState(online, 1, wall_clock(), SiteRole.LANDER)
            lander.publish(federation.topics.host_state("lander"), encode_json(state), retain=True)
            await harness.until(lambda: set(told(federation).values()) == {True})
        assert not any(interest.soon for interest in retained(federation).values())
        await harness.start_query(coordinator, COUNTING, name="counting")
        await harness.until(lambda: bool(federation.fragments()))
        assert retained(federation)["temperature"].soon, "told before the fragments"
        assert not retained(federation)["roomsensor"].soon
        await coordinator.execute("DROP QUERY counting")
        await harness.until(lambda: not retained(federation)["temperature"].soon)
        assert told(federation)["temperature"]
        await lander.close()

    harness.run(scenario)


def test_nothing_is_switched_off_in_the_first_moments(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        await harness.start_query(coordinator, COUNTING)
        await harness.until(lambda: told(federation) == {"temperature": True})

    harness.run(scenario)


@pytest.mark.usefixtures("prompt")
def test_a_lander_does_not_read_what_is_not_kept(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        lander = federation.broker.client("lander")
        await lander.connect()
        state = SiteState(True, 1, wall_clock(), SiteRole.LANDER)
        lander.publish(federation.topics.host_state("lander"), encode_json(state), retain=True)
        await harness.until(lambda: told(federation).get("temperature") is True)
        await coordinator.execute("ALTER SOURCE temperature SET (keep = 'no')")
        await harness.until(lambda: told(federation)["temperature"] is False)
        await coordinator.execute("ALTER SOURCE temperature SET (keep = '9 days')")
        await harness.until(lambda: told(federation)["temperature"] is True)
        await lander.close()

    harness.run(scenario)
