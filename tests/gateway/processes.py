"""Gateway processes for tests, and somebody who listens to what they say."""

import asyncio
import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from gateway.gateway_settings import GatewaySettings
from gateway.testing import SEATS, TEMPERATURES, declared_for, keep_declared
from host.mqtt import Message, open_client
from streamsql.algebra.operators import RemoteSource
from streamsql.data.delta import expand
from streamsql.data.types import Row
from streamsql.errors import WireError
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import (
    decode_compressed_packed,
    decode_json,
    decode_packed,
    encode_json,
    encode_packed,
)
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import Command, DeadLetter, DeltaBatch, FlowReport, ObservationPack
from streamsql.wire.site_messages import SiteFlows, SiteRole, SiteState
from streamsql.wire.topics import Topics

ROOT = Path(__file__).parents[2]
TOPICS = Topics("demo")
MARK = f"{TOPICS.root}/mark"
SECONDS = 90.0
"""That anything may take on a machine which does much else."""


class GatewayProcess:
    """`python -m gateway` with the given settings; its log is kept.

    Args:
        folder: For its settings and its log.
        settings: What they are.
        program: What Python runs instead of the module.
    """

    def __init__(
        self, folder: Path, settings: GatewaySettings, program: Sequence[str] = ("-m", "gateway")
    ) -> None:
        self._program = program
        self.name = settings.gateway
        self.config = folder / f"{Path(settings.data_dir).name}.json"
        self.config.write_bytes(msgspec.json.encode(settings))
        self.log_file = self.config.with_suffix(".log")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> "GatewayProcess":
        """Start it; returns at once."""
        command = [sys.executable, *self._program, "--config", str(self.config)]
        with self.log_file.open("ab") as log:
            self.process = subprocess.Popen(command, cwd=ROOT, stdout=log, stderr=log)
        return self

    def kill(self) -> None:
        """End it as `kill -9` does."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(SECONDS)

    def stop(self) -> int:
        """End it with SIGTERM; return its exit status."""
        assert self.process is not None
        if self.process.poll() is None:
            self.thaw()
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(SECONDS)
            raise

    def freeze(self) -> None:
        """Stop it without ending it (SIGSTOP)."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on (SIGCONT)."""
        assert self.process is not None
        self.process.send_signal(signal.SIGCONT)

    def ended(self) -> bool:
        """Whether it has ended."""
        assert self.process is not None
        return self.process.poll() is not None

    def log(self) -> str:
        """What it has said."""
        return self.log_file.read_text()


class Listener:
    """Hears everything below the federation's root."""

    def __init__(self, url: str) -> None:
        self.client = open_client(url, "listener", keepalive=30)
        self.states: dict[str, SiteState] = {}
        self.packs: dict[tuple[int, int], list[float]] = {}
        self.lanes: set[str] = set()
        self.observing: set[str] = set()
        self.letters: list[str] = []
        self.flows: dict[str, FlowReport] = {}
        self.marks = 0
        self.out = ReceivingChannel(version=1)
        self.versions: list[list[Row]] = []
        self.client.on_messages(self._take)
        self.client.on_connection(self._connected)

    async def start(self) -> None:
        """Connect and listen."""
        await self.client.connect()
        await self.client.subscribe(f"{TOPICS.root}/#")

    def _connected(self, connected: bool) -> None:
        if connected:
            self.out.synchronised = False
            self.ask()

    def ask(self) -> None:
        """Ask the base site for the whole result."""
        command = encode_json(Command(query="q1", channel="out"))
        self.client.publish(TOPICS.command("base", "resync"), command)

    def install(self, *gateways: str) -> None:
        """Install the query that collects all seats at the base site."""
        bundle = encode_packed(collecting(gateways))
        for site in (*gateways, "base"):
            self.client.publish(TOPICS.fragment("q1", site), bundle, retain=True)

    async def until(
        self, condition: Callable[[], bool], what: str, seconds: float = SECONDS
    ) -> None:
        """Wait until something is so; a result that is out of step is asked for again."""
        deadline = time.monotonic() + seconds
        asked = time.monotonic()
        while not condition():
            now = time.monotonic()
            assert now < deadline, f"not within {seconds:g} s: {what}"
            if not self.out.synchronised and now - asked > 1 and self.client.connected:
                asked = now
                self.ask()
            await asyncio.sleep(0.02)

    async def listening(self) -> None:
        """Wait until what is published arrives here, after the broker was away."""
        before = self.marks
        deadline = time.monotonic() + SECONDS
        while self.marks == before:
            assert time.monotonic() < deadline, "nothing arrives"
            if self.client.connected:
                self.client.publish(MARK, b"")
            await asyncio.sleep(0.05)

    def rows(self) -> list[Row]:
        """The result."""
        return sorted(row for port in self.out.contents.values() for row in expand(port))

    def online(self, *names: str) -> bool:
        """Whether these sites are online."""
        return all(name in self.states and self.states[name].online for name in names)

    def _take(self, burst: list[Message]) -> None:
        for message in burst:
            match TOPICS.parts(message.topic):
                case ["gw", site, "state"]:
                    with contextlib.suppress(WireError):  # tests send nonsense there
                        self.states[site] = decode_json(message.payload, SiteState)
                case ["gw", site, "obs" | "hist" as lane, stream]:
                    self.observing.add(site)
                    if stream == "temperature":
                        self._observe(lane, decode_json(message.payload, ObservationPack))
                case ["q", "q1", "out", _]:
                    batch = decode_packed(message.payload, DeltaBatch)
                    if self.out.accept(batch)[0] == Reception.GAP:
                        self.ask()
                    self.versions.append(self.rows())
                case ["gw", site, "flow"]:
                    reports = decode_compressed_packed(message.payload, SiteFlows).reports
                    self.flows.update({site: reports["q1"]} if "q1" in reports else {})
                case ["mark"]:
                    self.marks += 1
                case ["dead", _]:
                    self.letters.append(decode_json(message.payload, DeadLetter).topic)
                case _:
                    pass

    def _observe(self, lane: str, pack: ObservationPack) -> None:
        values = [r.v for r in pack.e if r.n == "celsius" and r.v is not None]
        self.lanes.add(lane)
        key = (pack.epoch, pack.seq)
        assert self.packs.setdefault(key, values) == values, "one number, one content"

    def values(self) -> list[float]:
        """Every observed value, each pack counted once."""
        return sorted(value for values in self.packs.values() for value in values)


def collecting(gateways: tuple[str, ...]) -> FragmentBundle:
    """Return the plan that collects all seats at the base site."""
    schema = SEATS.schema
    return FragmentBundle(
        "q1",
        1,
        (
            Fragment("f0", Engine.GATEWAY, SEATS.scan(), gateways, "f1", ("base",)),
            Fragment("f1", Engine.BASE, RemoteSource("f0", schema), ("base",)),
        ),
        schema,
    )


def replaying(folder: Path, broker: str, name: str, **changes: object) -> GatewaySettings:
    """Return settings of a gateway whose seats come from a recording that is over."""
    recording = folder / f"{name}.csv"
    if not recording.exists():
        recording.write_text(f"ts,mid,weight\n1,{name}-m1,1.5\n2,{name}-m2,2.5\n")
    plain: dict[str, object] = {
        "site": "demo",
        "gateway": name,
        "broker": broker,
        "data_dir": str(folder / name),
        "endpoints": {"seats": {"connector": "replay", "file": str(recording), "format": "csv"}},
        "grace_seconds": 1.0,
        "keepalive": 2,
    }
    settings = GatewaySettings(**{**plain, **changes})  # type: ignore[arg-type]
    sources = (declared_for(SEATS, "replay", "seats"), declared_for(TEMPERATURES, "replay", "warm"))
    keep_declared(Path(settings.data_dir), sources)
    return settings


def base(folder: Path, broker: str, grace: float = 1.0) -> GatewaySettings:
    """Return settings of the base site."""
    return GatewaySettings(
        "demo",
        "base",
        broker,
        str(folder / "base"),
        role=SiteRole.BASE,
        grace_seconds=grace,
        keepalive=2,
    )
