"""The conformance kit passes connectors that conform, and says what is wrong with others."""

import asyncio
import contextlib
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest

from broker.broker_launch import Preference, find_mosquitto
from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.http_push.push_connector import PushConnector
from gateway.connectors.mqtt.mqtt_connector import MqttConnector
from gateway.connectors.testing import checks
from gateway.connectors.testing.checks import Check, run_check
from tests.gateway.connectors.http_push.sender_peer import SenderPeer
from tests.gateway.connectors.mqtt.broker_peer import BrokerPeer
from tests.gateway.connectors.testing.lines_peer import LinesPeer


class Endpoint(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As in the manual."""

    host: str
    port: int
    password: str = ""


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """As in the manual."""

    word: str


class Lax(msgspec.Struct, frozen=True):
    """Takes whatever is given."""

    word: str = ""


class Lines:
    """As in the manual, in parts that others do wrong."""

    kind = "lines"
    endpoint_options: type[msgspec.Struct] = Endpoint
    source_options: type[msgspec.Struct] = Source

    async def run(self, context: ConnectorContext) -> None:
        endpoint = context.endpoint_as(Endpoint)
        reader, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        try:
            writer.write(b"\n")
            sources = {"passage": context.sources[0]}
            while line := await reader.readline():
                await self.take(context, sources, line, writer)
            await self.lost()
        finally:
            writer.close()

    async def take(
        self,
        context: ConnectorContext,
        sources: Mapping[str, DeclaredSource],
        line: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        word, _, payload = line.partition(b" ")
        context.emit(sources[word.decode()].read(payload))
        await context.kept()
        writer.write(b"ok\n")

    async def lost(self) -> None:
        raise ConnectionError("the device is away")


class Deaf(Lines):
    """Takes its time when it is cancelled."""

    async def run(self, context: ConnectorContext) -> None:
        try:
            await super().run(context)
        except asyncio.CancelledError:
            await asyncio.sleep(3)  # time passes: it stops too late
            raise


class Hasty(Lines):
    """Acknowledges before anything is kept, and piles up what is not."""

    async def take(
        self,
        context: ConnectorContext,
        sources: Mapping[str, DeclaredSource],
        line: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        context.emit(sources["passage"].read(line.partition(b" ")[2]))
        writer.write(b"ok\n")


class Silent(Lines):
    """Does not say that its device is away."""

    async def lost(self) -> None:
        await asyncio.Event().wait()


class Careless(Lines):
    """Drops what it cannot read, silently."""

    async def take(
        self,
        context: ConnectorContext,
        sources: Mapping[str, DeclaredSource],
        line: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        with contextlib.suppress(msgspec.DecodeError):
            msgspec.json.decode(line.partition(b" ")[2])
            await super().take(context, sources, line, writer)


class Lenient(Lines):
    """Takes options that are misspelt."""

    source_options = Lax


class Impatient(Lines):
    """Tries again at once by itself, and never says why."""

    async def run(self, context: ConnectorContext) -> None:
        while True:
            with contextlib.suppress(OSError):
                await super().run(context)
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("check", checks.CHECKS, ids=checks.name_of)
def test_what_conforms_passes(check: Check) -> None:
    assert asyncio.run(run_check(check, Lines, LinesPeer()))


@pytest.mark.parametrize(
    ("connector", "check", "complaint"),
    [
        (Deaf, checks.reads_and_stops, "does not stop within a second"),
        (Hasty, checks.acknowledges_what_is_kept, "acknowledged before it was kept"),
        (Hasty, checks.is_bounded, "readings were emitted while nothing was kept"),
        (Silent, checks.reconnects_with_pauses, "not within .* s: it says that its peer is away"),
        (Impatient, checks.reconnects_with_pauses, "it says that its peer is away"),
        (Careless, checks.counts_what_is_bad, "the bad payload is counted"),
        (Lenient, checks.refuses_unknown_options, "Lax takes unknown options"),
    ],
)
def test_what_does_not_is_told_what_is_wrong(
    connector: type[Lines], check: Check, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.connectors.testing.trial.PATIENCE", 3.0)
    with pytest.raises(AssertionError, match=complaint):
        asyncio.run(run_check(check, connector, LinesPeer()))


@pytest.mark.broker
@pytest.mark.parametrize("kind", ["embedded", "mosquitto"])
@pytest.mark.parametrize("check", checks.CHECKS, ids=checks.name_of)
def test_mqtt_conforms(check: Check, kind: Preference, tmp_path: Path) -> None:
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    asyncio.run(run_check(check, MqttConnector, BrokerPeer(kind, tmp_path)))


@pytest.mark.parametrize("check", checks.CHECKS, ids=checks.name_of)
def test_http_push_conforms(check: Check) -> None:
    asyncio.run(run_check(check, PushConnector, SenderPeer()))
