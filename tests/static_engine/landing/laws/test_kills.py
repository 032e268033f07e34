"""Whatever is killed, a pack that a broker has taken from a gateway is in a segment."""

import asyncio
import itertools
import os
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from broker.broker_launch import Preference, find_mosquitto, mosquitto_command
from broker.broker_testing import PATIENCE, BrokerProcess
from gateway.buffer.disk_buffer import DiskBuffer
from gateway.buffer.published_packs import PublishedPacks
from gateway.gateway_settings import BufferSettings
from gateway.intake.observations import ObservationLane
from gateway.observations.pack_answers import PackAnswers
from gateway.testing import TEMPERATURES
from host.clocks import wall_clock
from host.mqtt import Message, open_client
from static_engine.landing.lander_settings import LanderSettings
from static_engine.landing.segment_files import read_segment, segments
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.observation_logs import PacksWanted
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.topics import Topics

pytestmark = pytest.mark.broker

TOPICS = Topics("demo")
STREAM = "temperature"
ROOT = Path(__file__).resolve().parents[4]
TURN_SECONDS = 0.02


class Gateway:
    """The lane of a gateway, and its answers to those who lack packs."""

    def __init__(self, url: str, folder: Path) -> None:
        self.client = open_client(url, "gw-1")
        published = PublishedPacks(1)
        self.buffer = DiskBuffer(folder / "buffer.sqlite", BufferSettings())
        self.lane = ObservationLane("gw-1", 1, self.client, TOPICS, self.buffer, published)
        self.answers = PackAnswers("gw-1", self.client, TOPICS, published)
        self.client.on_messages(self._take)
        self.client.on_connection(self._announce)
        self.added = 0

    async def start(self) -> None:
        """Connect, in the background from then on."""
        await self.client.connect(timeout=None)
        await self.client.subscribe(TOPICS.request("gw-1"))

    def _announce(self, connected: bool) -> None:
        if connected:
            state = SiteState(True, 1, wall_clock(), SiteRole.GATEWAY, sources=(STREAM,))
            self.client.publish(TOPICS.state("gw-1"), encode_json(state), retain=True)

    def _take(self, burst: list[Message]) -> None:
        for message in burst:
            asker = TOPICS.parts(message.topic)[-1]
            wanted = decode_json(message.payload, PacksWanted)
            now = asyncio.get_running_loop().time()
            self.answers.answer(asker, wanted, now, is_known=False)

    async def read_one(self) -> None:
        """Send one reading as a pack of its own."""
        self.lane.add(STREAM, [("t1", 0, ("t1", float(self.added), 0))], TEMPERATURES.schema)
        self.added += 1
        await self.turn()

    async def turn(self) -> None:
        """Do what a gateway does ten times a second."""
        self.lane.flush()
        self.lane.settle()
        self.lane.replay(50)
        await asyncio.sleep(TURN_SECONDS)  # time passes: between two packs


class RememberingBroker(BrokerProcess):
    """Mosquitto with its sessions on disk, as it was at its last proper end."""

    def __init__(self, folder: Path) -> None:
        super().__init__("mosquitto", folder)
        self._command = mosquitto_command(self.port, folder, persistent=True)


class LanderProcess:
    """A lander as its own process."""

    def __init__(self, url: str, folder: Path, segment_seconds: float = 0.05) -> None:
        self.folder = folder / "segments"
        self._file = folder / "lander.json"
        self._log = folder / "lander.log"
        settings = LanderSettings(
            url, str(folder / "lander"), str(self.folder), segment_seconds=segment_seconds
        )
        self._file.write_bytes(msgspec.json.encode(settings))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it."""
        command = [sys.executable, "-m", "static_engine.landing", "--config", str(self._file)]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
            )

    def end(self, number: int) -> int:
        """Send a signal and wait for the end."""
        assert self._process is not None
        self._process.send_signal(number)
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """End it, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)

    def landed(self) -> Counter[tuple[int, int]]:
        """Return how often each pack is on disk, by epoch and number."""
        packs: Counter[tuple[int, int]] = Counter()
        for path in segments(self.folder):
            for row in read_segment(path).to_pylist():
                if TOPICS.parts(row["topic"])[2] in {"obs", "hist"}:
                    pack = decode_json(row["payload"], ObservationPack)
                    packs[pack.epoch, pack.seq] += 1
        return packs


async def _soak(
    place: BrokerProcess, lander: LanderProcess, folder: Path, kill: Callable[[], None], kills: int
) -> None:
    gateway, rng = Gateway(place.url, folder), random.Random(7)
    lander.start()
    await gateway.start()
    try:
        await gateway.read_one()
        await _until_landed(gateway, lander)  # from here on the broker has a session
        for _ in range(kills):
            for _ in range(rng.randint(5, 40)):
                await gateway.read_one()
            await asyncio.to_thread(kill)
        for _ in range(20):
            await gateway.read_one()
        await _until_landed(gateway, lander)
        assert lander.end(signal.SIGTERM) == 0
    finally:
        lander.kill()
        await gateway.client.close()
        gateway.buffer.close()


async def _until_landed(gateway: Gateway, lander: LanderProcess) -> None:
    expected = {(1, number) for number in range(gateway.added)}
    async with asyncio.timeout(PATIENCE):
        while set(lander.landed()) != expected:
            await gateway.turn()


@pytest.mark.parametrize("kind", ["embedded", "mosquitto"])
def test_a_killed_lander_loses_nothing(kind: Preference, tmp_path: Path) -> None:
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("Mosquitto is not installed")
    with BrokerProcess(kind, tmp_path) as place:
        lander = LanderProcess(place.url, tmp_path)

        def kill() -> None:
            lander.end(signal.SIGKILL)
            lander.start()

        asyncio.run(_soak(place, lander, tmp_path, kill, kills=4))


def test_a_killed_broker_that_has_forgotten_everything_loses_nothing(tmp_path: Path) -> None:
    with BrokerProcess("embedded", tmp_path) as place:
        lander = LanderProcess(place.url, tmp_path)

        def kill() -> None:
            place.stop(signal.SIGKILL)
            place.start()

        asyncio.run(_soak(place, lander, tmp_path, kill, kills=3))


def test_a_killed_broker_that_remembers_an_old_state_loses_nothing(tmp_path: Path) -> None:
    """It says that it has the lander's session, and not what it has taken since."""
    if find_mosquitto() is None:
        pytest.skip("Mosquitto is not installed")
    with RememberingBroker(tmp_path) as place:
        lander = LanderProcess(place.url, tmp_path, segment_seconds=0.3)
        ends = itertools.chain([signal.SIGTERM], itertools.repeat(signal.SIGKILL))

        def kill() -> None:
            place.stop(next(ends))
            place.start()

        asyncio.run(_soak(place, lander, tmp_path, kill, kills=4))
