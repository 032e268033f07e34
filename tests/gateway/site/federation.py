"""Sites, a reader of results and whoever installs queries, in one event loop."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine
from typing import Any

from gateway.site.host import SiteHost
from gateway.testing import SEATS, until
from host.mqtt import Message, Will
from host.mqtt.in_memory import Faults, InMemoryBroker
from stream_engine.snapshot.recorded_site import RecordedSite
from streamsql.algebra.operators import RemoteSource
from streamsql.data.delta import expand
from streamsql.data.events import SourceEvent
from streamsql.data.types import Row
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeltaBatch
from streamsql.wire.site_messages import SiteState
from streamsql.wire.site_settings import SiteSettings
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
GRACE = 0.1


def collecting(
    gateways: tuple[str, ...] = ("gw-1", "gw-2"), query: str = "q1", version: int = 1
) -> FragmentBundle:
    """Return the plan that collects all seats at the base site."""
    schema = SEATS.schema
    return FragmentBundle(
        query,
        version,
        (
            Fragment("f0", Engine.GATEWAY, SEATS.scan(), gateways, "f1", ("base",)),
            Fragment("f1", Engine.BASE, RemoteSource("f0", schema), ("base",)),
        ),
        schema,
    )


def clock() -> int:
    """Microseconds since 1970."""
    return time.time_ns() // 1_000


class Site:
    """An engine and its host; announces itself as a gateway does."""

    def __init__(self, broker: InMemoryBroker, name: str, epoch: int = 1, **options: Any) -> None:
        self.name, self.epoch = name, epoch
        will = Will(TOPICS.state(name), encode_json(SiteState(False, epoch, 0, reason="lost")))
        self.client = broker.client(name, will=will, max_pending=options.pop("max_pending", 10_000))
        self.engine = RecordedSite(name, epoch)
        if not options.get("reads_observations"):  # a base site has no devices
            self.engine.declare(SEATS.scan())
        self.host = SiteHost(
            self.engine,
            self.client,
            TOPICS,
            clock,
            grace_seconds=GRACE,
            tick_seconds=0.005,
            **options,
        )
        self.task: asyncio.Task[None] | None = None
        self.model: dict[str, Row] = {}

    async def start(self) -> "Site":
        """Connect and run."""
        self.client.on_connection(self._announce)
        await self.client.connect(timeout=None)
        await self.host.start()
        self.task = asyncio.create_task(self.host.run())
        return self

    def _announce(self, connected: bool) -> None:
        if connected:
            state = SiteState(True, self.epoch, clock())
            self.client.publish(TOPICS.state(self.name), encode_json(state), retain=True)

    async def stop(self) -> None:
        """End without a word."""
        assert self.task is not None
        self.task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self.task
        await self.client.close()

    def put(self, mid: str, weight: float | None = 1.0, *, delete: bool = False) -> None:
        """Let a reading arrive."""
        now = clock()
        row: Row = (mid, weight, now)
        self.engine.ingest("seatsensor", [SourceEvent(row, now, delete)])
        self.host.wake()
        self.model.pop(mid, None)
        if not delete:
            self.model[mid] = row


class Federation:
    """Everything, with the reader's relation of query q1."""

    def __init__(self) -> None:
        self.broker = InMemoryBroker()
        self.sites: dict[str, Site] = {}
        self.console = self.broker.client("console")
        self.console.on_messages(self._read)
        self.console.on_connection(self._ask)
        self.out = ReceivingChannel(version=1)
        self.heard: list[Message] = []

    async def begin(self, *filters: str) -> None:
        """Start the reader, which also hears what matches the filters."""
        await self.console.connect()
        await self.console.subscribe(TOPICS.output(), *filters)

    async def site(self, name: str, epoch: int = 1, **options: Any) -> Site:
        """Start a site."""
        made = self.sites[name] = Site(self.broker, name, epoch, **options)
        return await made.start()

    async def end(self) -> None:
        """Stop everything."""
        for site in self.sites.values():
            await site.stop()
        await self.console.close()

    def install(self, bundle: FragmentBundle) -> None:
        """Give every site the bundle."""
        payload = encode_packed(bundle)
        for name in {site for fragment in bundle.fragments for site in fragment.sites}:
            self.console.publish(TOPICS.fragment(bundle.query, name), payload, retain=True)

    def settings(self, name: str, settings: SiteSettings | None) -> None:
        """Set how a site works; None: as it began."""
        payload = b"" if settings is None else encode_json(settings)
        self.console.publish(TOPICS.settings(name), payload, retain=True)

    def withdraw(self, query: str, *names: str) -> None:
        """Take a query away from sites."""
        for name in names:
            self.console.publish(TOPICS.fragment(query, name), b"", retain=True)

    async def lose_batch(self, name: str, mid: str) -> None:
        """Let a site send a row that is lost on its way."""
        site = self.sites[name]
        sent = site.host.batches_sent
        self.broker.faults = Faults(lose=1.0)
        site.put(mid)
        await until(lambda: site.host.batches_sent > sent, "the batch is sent")
        await self.broker.settle()
        self.broker.faults = Faults()

    def rows(self) -> list[Row]:
        """The result as the reader has it."""
        return sorted(row for port in self.out.contents.values() for row in expand(port))

    def expected(self, *names: str) -> list[Row]:
        """The rows these sites should have by now."""
        return sorted(row for name in names for row in self.sites[name].model.values())

    def told(self, pattern: str) -> list[Message]:
        """What the reader heard on topics that contain a text."""
        return [message for message in self.heard if pattern in message.topic]

    def _read(self, burst: list[Message]) -> None:
        for message in burst:
            if "/q/q1/out/" not in message.topic:
                self.heard.append(message)
                continue
            batch = decode_packed(message.payload, DeltaBatch)
            if self.out.accept(batch)[0] == Reception.GAP:
                self._ask(True)

    def _ask(self, connected: bool) -> None:
        if connected:
            self.out.synchronised = False
            command = encode_json(Command(query="q1", channel="out"))
            self.console.publish(TOPICS.command("base", "resync"), command)

    async def until_rows(self, rows: Callable[[], list[Row]], seconds: float = 60.0) -> None:
        """Wait until the reader has these rows; it asks again as a console does."""
        deadline = time.monotonic() + seconds
        asked = time.monotonic()
        while self.rows() != rows() or not self.out.synchronised:
            now = time.monotonic()
            assert now < deadline, f"{self.rows()} instead of {rows()}"
            if not self.out.synchronised and now - asked > 0.5:
                asked = now
                self._ask(self.console.connected)
            await asyncio.sleep(0.005)


def run(scenario: Callable[[Federation], Coroutine[Any, Any, None]]) -> None:
    """Run a scenario over a new federation, at most a minute."""

    async def whole() -> None:
        federation = Federation()
        try:
            async with asyncio.timeout(60):
                await scenario(federation)
        finally:
            await federation.end()

    asyncio.run(whole())
