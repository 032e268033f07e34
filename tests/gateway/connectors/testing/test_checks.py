"""The conformance kit passes connectors that conform, and says what is wrong with others."""

import asyncio
import contextlib
import time
from collections.abc import Mapping
from typing import ClassVar

import msgspec
import pytest

from gateway.connectors.connector import ConnectorContext
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.reading import Reading
from gateway.connectors.testing import checks
from gateway.connectors.testing.beside_checks import leaves_a_running_one_alone
from gateway.connectors.testing.checks import Check, run_check
from gateway.connectors.testing.restart_checks import goes_on_after_a_restart
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
        if not context.is_trial:
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


class Redialling(Lines):
    """Tries again at once by itself, and says why."""

    async def run(self, context: ConnectorContext) -> None:
        while True:
            try:
                await super().run(context)
            except OSError as error:
                context.problem(str(error))
            await asyncio.sleep(0.01)


class Choosy(Lines):
    """Leaves out what is too long for it, silently."""

    async def run(self, context: ConnectorContext) -> None:
        while True:
            with contextlib.suppress(ValueError):
                await super().run(context)


class Greedy(Lines):
    """Makes a reading of whatever comes, by a reader of its own."""

    async def run(self, context: ConnectorContext) -> None:
        endpoint = context.endpoint_as(Endpoint)
        reader, writer = await asyncio.open_connection(
            endpoint.host, endpoint.port, limit=10_000_000
        )
        writer.write(b"\n")
        try:
            while line := await reader.readline():
                number = int(line.partition(b'"badge": ')[2].partition(b",")[0])
                context.emit([Reading("passage", {"badge": number})])
                if len(line) > 1_000_000:
                    context.problem("that was long")
        finally:
            writer.close()


class Forgetful(Lines):
    """Begins each life with what it takes for rests of the former one."""

    async def run(self, context: ConnectorContext) -> None:
        self.is_new = True
        await super().run(context)

    async def take(
        self,
        context: ConnectorContext,
        sources: Mapping[str, DeclaredSource],
        line: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        if self.is_new and context.memory is not None:
            writer.write(b"ok\n")
        else:
            context.remember({"begun": True})
            await super().take(context, sources, line, writer)
        self.is_new = False


class Repeating(Lines):
    """Emits again what it has remembered to have emitted."""

    async def run(self, context: ConnectorContext) -> None:
        if context.memory is not None:
            line = str(context.memory["line"]).encode()
            context.emit(context.sources[0].read(line))
        await super().run(context)

    async def take(
        self,
        context: ConnectorContext,
        sources: Mapping[str, DeclaredSource],
        line: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        context.remember({"line": line.partition(b" ")[2].decode()})
        await super().take(context, sources, line, writer)


class Presuming(Lines):
    """Does not ask whether it is a trial: what it answers for is not kept."""

    async def take(
        self,
        context: ConnectorContext,
        sources: Mapping[str, DeclaredSource],
        line: bytes,
        writer: asyncio.StreamWriter,
    ) -> None:
        context.emit(sources["passage"].read(line.partition(b" ")[2]))
        await context.kept()
        writer.write(b"ok\n")


class Clinging(Lines):
    """Leaves its connection open when it ends."""

    left: ClassVar[list[asyncio.StreamWriter]] = []

    async def run(self, context: ConnectorContext) -> None:
        endpoint = context.endpoint_as(Endpoint)
        _, writer = await asyncio.open_connection(endpoint.host, endpoint.port)
        writer.write(b"\n")
        self.left.append(writer)
        await super().run(context)


class Blocking(Lines):
    """Asks its device in the event loop."""

    async def run(self, context: ConnectorContext) -> None:
        time.sleep(1.0)  # time passes: it blocks  # noqa: ASYNC251
        await super().run(context)


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
        (Redialling, checks.reconnects_with_pauses, r"its peer was asked \d+ times within 5 s"),
        (Choosy, checks.refuses_huge_payloads, "the huge payload is counted"),
        (Greedy, checks.refuses_huge_payloads, "more than 1 MB became a reading"),
        (Forgetful, goes_on_after_a_restart, "sent during the restart is emitted"),
        (Repeating, goes_on_after_a_restart, "emitted 2 times around a restart"),
        (Presuming, leaves_a_running_one_alone, "a trial acknowledged what nobody has kept"),
        (Clinging, leaves_a_running_one_alone, "nothing is left of a trial"),
        (Blocking, checks.reads_and_stops, r"blocks the event loop for 0.5 s: .*Blocking\.run"),
    ],
)
def test_what_does_not_is_told_what_is_wrong(
    connector: type[Lines], check: Check, complaint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway.connectors.testing.observed_run.PATIENCE", 3.0)
    with pytest.raises(AssertionError, match=complaint):
        asyncio.run(run_check(check, connector, LinesPeer()))
