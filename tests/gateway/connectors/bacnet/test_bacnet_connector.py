"""The BACnet connector against bacpypes3's application, and against peers that misbehave."""

import asyncio
import contextlib
import itertools
from collections.abc import Callable

import pytest

from gateway.connectors.bacnet.bacnet_connector import BacnetConnector
from tests.gateway.connectors.bacnet.devices import Thermostat, bacnet, local
from tests.gateway.connectors.serving import in_loop, serving, until
from tests.gateway.connectors.udp_peer import udp_peer

ROOM = """
CREATE SOURCE room (
  celsius DOUBLE FROM 'analog-input:3',
  unit TEXT FROM 'analog-input:3 units',
  target DOUBLE FROM 'analog-value:1',
  heating BOOLEAN FROM 'binary-value:7'
) WITH (connector = 'bacnet', endpoint = 'home', interval = '{interval}', cov = '{cov}')
"""


def room(interval: str = "1 h", cov: str = "yes") -> str:
    return ROOM.format(interval=interval, cov=cov)


@in_loop
async def test_changes_become_rows_at_once() -> None:
    thermostat = Thermostat()
    with bacnet(thermostat) as port:
        async with serving(BacnetConnector(), local(port), room()) as served:
            await until(lambda: (21.5, "degrees-celsius", 22.0, True) in served.rows)
            thermostat.celsius.presentValue = 19.25
            await until(lambda: (19.25, "degrees-celsius", 22.0, True) in served.rows)
            thermostat.heating.presentValue = "inactive"
            await until(lambda: (19.25, "degrees-celsius", 22.0, False) in served.rows)
    assert served.problems == []
    assert served.notes == []


@in_loop
async def test_without_notifications_properties_are_polled() -> None:
    thermostat = Thermostat()
    with bacnet(thermostat) as port:
        async with serving(BacnetConnector(), local(port), room("100 ms", "no")) as served:
            await until(lambda: len(served.readings) >= 2)
            thermostat.celsius.presentValue = 19.25
            await until(lambda: (19.25, "degrees-celsius", 22.0, True) in served.rows)
    assert served.problems == []


@in_loop
async def test_missing_objects_are_named_and_the_others_read() -> None:
    text = room().replace("analog-value:1", "analog-value:99")
    wrong = "CREATE SOURCE w (x INTEGER FROM 'thermometer:1') WITH (connector = 'bacnet')"
    with bacnet(Thermostat()) as port:
        async with serving(BacnetConnector(), local(port), f"{wrong}; {text}") as served:
            await until(lambda: (21.5, "degrees-celsius", None, True) in served.rows)
            await until(lambda: bool(served.notes))
    assert served.problems[0].startswith("column x: FROM 'thermometer:1' is no object, such as")
    assert [text.split(":")[:2] for text in served.problems[1:]] == [["analog-value", "99"]]
    assert all("polled only: analog-value:99 of room (" in note for note in served.notes)


@in_loop
async def test_objects_without_notifications_are_named_in_one_note() -> None:
    """A note replaces the one before."""
    text = room().replace("analog-value:1", "analog-value:99").replace("-value:7", "-value:98")
    with bacnet(Thermostat()) as port:
        async with serving(BacnetConnector(), local(port), text) as served:
            await until(lambda: any("98" in note and "99" in note for note in served.notes))


@in_loop
async def test_notifications_go_on_when_a_device_was_restarted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Subscriptions are renewed, also after a renewal that nobody has answered."""
    monkeypatch.setattr("gateway.connectors.bacnet.device.LIFETIME", 3)
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(bacnet(Thermostat()))
        async with serving(BacnetConnector(), local(port), room()) as served:
            await until(lambda: bool(served.readings))
            stack.close()
            await asyncio.sleep(3)  # time passes: renewals fail
            assert served.task is not None
            assert not served.task.done(), "it is not polled for an hour"
            thermostat = Thermostat()
            with bacnet(thermostat, port):
                values = itertools.count(30)

                def changed() -> bool:
                    value = float(next(values))
                    thermostat.celsius.presentValue = value
                    return any(isinstance(row[0], float) and row[0] >= 30 for row in served.rows)

                await until(changed)


@in_loop
async def test_values_that_are_no_numbers_are_null_with_a_reason() -> None:
    thermostat = Thermostat()
    thermostat.celsius.presentValue = float("nan")
    text = room().replace("target DOUBLE", "target BOOLEAN")
    with bacnet(thermostat) as port:
        async with serving(BacnetConnector(), local(port), text) as served:
            await until(lambda: bool(served.readings))
    assert served.rows[0] == (None, "degrees-celsius", None, True)
    assert {text.split(":")[0] for text in served.problems} == {"column celsius", "column target"}


@in_loop
async def test_a_device_that_goes_ends_the_connector_and_comes_back() -> None:
    with contextlib.ExitStack() as stack:
        port = stack.enter_context(bacnet(Thermostat()))
        async with serving(BacnetConnector(), local(port), room("200 ms")) as served:
            await until(lambda: bool(served.readings))
            stack.close()
            assert served.task is not None
            with pytest.raises(ConnectionError, match="does not answer in time"):
                await asyncio.wait_for(asyncio.shield(served.task), 20)
    with bacnet(Thermostat(), port):
        async with serving(BacnetConnector(), local(port), room()) as served:
            await until(lambda: bool(served.readings))


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda _: b"", id="nothing"),
        pytest.param(lambda _: b"\xff" * 1_000, id="noise"),
        pytest.param(lambda _: b"\x81\x0a\x00\x04", id="an empty message"),
        pytest.param(lambda _: b"\x81\x0a\x00\x08\x01\x00\x30\x01", id="a cut answer"),
        pytest.param(lambda _: b"\x81\x0a\x04\x00\x01\x00" + b"\x3e" * 1_018, id="deeply nested"),
    ],
)
@in_loop
async def test_garbage_ends_the_connector_in_words(answer: Callable[[bytes], bytes]) -> None:
    async with (
        udp_peer(answer) as peer,
        serving(BacnetConnector(), local(peer.port), room()) as served,
    ):
        assert served.task is not None
        with pytest.raises(ConnectionError, match=r"bacnet 127\.0\.0\.1:\d+: it does not answer"):
            await asyncio.wait_for(asyncio.shield(served.task), 20)
        assert peer.answered
    assert served.readings == []
