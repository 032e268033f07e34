"""The lander on a broker in memory: acknowledged means on disk."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from host.mqtt.in_memory import InMemoryBroker, InMemoryClient
from static_engine.landing.lander import Lander
from static_engine.landing.lander_settings import MIB, LanderSettings
from static_engine.landing.segment_files import read_segment, segments
from streamsql.wire.codec import decode_json
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.topics import Topics

TOPICS = Topics("demo")
CLIMATE = TOPICS.observation("gw-1", "climate")


class World:
    """A broker, a gateway and a lander."""

    def __init__(self, folder: Path, **settings: int) -> None:
        self.broker = InMemoryBroker()
        self.gateway = self.broker.client("gw-1")
        self.folder = folder / "segments"
        self.settings = LanderSettings(
            "mqtt://none",
            str(folder / "data"),
            str(self.folder),
            segment_seconds=0.01,
            **settings,  # type: ignore[arg-type]
        )
        self.epoch = 0

    def start(self) -> None:
        """Begin another life of the lander."""
        self.epoch += 1
        self.client: InMemoryClient = self.broker.client(
            "lander", clean=False, acknowledges_by_hand=True
        )
        self.lander = Lander(self.settings, self.epoch, self.client)
        self.job = asyncio.create_task(self.lander.run())

    async def end(self) -> None:
        """Stop the lander as SIGTERM does."""
        self.job.cancel()
        await asyncio.gather(self.job, return_exceptions=True)

    def landed(self) -> list[bytes]:
        """Return the payloads of readings on disk."""
        return [
            row["payload"]
            for path in segments(self.folder)
            for row in read_segment(path).to_pylist()
            if row["topic"] == CLIMATE
        ]

    def state(self) -> SiteState:
        """Return the lander's retained state."""
        return decode_json(self.broker.retained[TOPICS.host_state("lander")].payload, SiteState)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not condition():  # noqa: ASYNC110 - files have no event
            await asyncio.sleep(0.005)


def run(world: World, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def whole() -> None:
        await world.gateway.connect()
        world.start()
        await until(lambda: TOPICS.host_state("lander") in world.broker.retained)
        await scenario(world)
        await world.end()

    asyncio.run(whole())


def test_readings_states_and_alarms_are_landed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        topics = [
            CLIMATE,
            TOPICS.history("gw-1", "climate"),
            TOPICS.birth("gw-1"),
            TOPICS.alarms("coordinator"),
        ]
        for number, topic in enumerate(topics):
            world.gateway.publish(topic, b"%d" % number)
        await until(lambda: world.lander.counts.messages >= 4)
        rows = [row for path in segments(world.folder) for row in read_segment(path).to_pylist()]
        told = {row["topic"]: row["payload"] for row in rows}
        assert [told[topic] for topic in topics] == [b"0", b"1", b"2", b"3"]
        assert world.state().role is SiteRole.LANDER

    run(World(tmp_path), scenario)


def test_nothing_is_acknowledged_without_room_and_it_goes_on_by_itself(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        filler = world.folder / "20200101T000000-other-1-000000001.parquet"
        filler.write_bytes(bytes(2 * MIB))
        world.gateway.publish(CLIMATE, b"kept")
        await until(lambda: not world.state().ready)
        assert "max_folder_bytes" in world.state().detail
        await world.end()
        world.start()
        await until(lambda: world.lander.waiting > 0)
        filler.unlink()
        await until(lambda: world.landed() == [b"kept"])
        await until(lambda: world.state().ready)

    run(World(tmp_path, max_folder_bytes=MIB), scenario)


def test_what_waits_is_landed_piece_by_piece_where_there_is_room_for_less(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        filler = world.folder / "20200101T000000-other-1-000000001.parquet"
        filler.write_bytes(bytes(MIB))
        for number in range(8):
            world.gateway.publish(CLIMATE, b"%d" % number + bytes(150_000))
        await until(lambda: world.lander.waiting >= 8)
        await until(lambda: bool(world.lander.problem))
        filler.unlink()  # 1.2 MB wait, and 1.0 fit
        await until(lambda: len(world.landed()) == 8)
        await until(lambda: not world.lander.problem)

    run(World(tmp_path, max_folder_bytes=MIB), scenario)


def test_what_was_sent_while_it_was_away_is_landed(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.end()
        world.gateway.publish(CLIMATE, b"1")
        await world.broker.settle()
        world.start()
        await until(lambda: world.landed() == [b"1"])

    run(World(tmp_path), scenario)


def test_several_share_the_load(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        other = World(tmp_path)
        other.broker = world.broker
        client = world.broker.client("lander-2", clean=False, acknowledges_by_hand=True)
        settings = LanderSettings(
            "mqtt://none",
            str(tmp_path / "data-2"),
            str(world.folder),
            site_id="lander-2",
            segment_seconds=0.01,
        )
        second = Lander(settings, 1, client)
        job = asyncio.create_task(second.run())
        await until(lambda: TOPICS.host_state("lander-2") in world.broker.retained)
        for number in range(20):
            world.gateway.publish(CLIMATE, b"%d" % number)
        await until(lambda: len(world.landed()) >= 20)
        assert sorted(map(int, world.landed())) == list(range(20))
        names = {path.name.split("-1-")[0].partition("-")[2] for path in segments(world.folder)}
        assert names == {"lander", "lander-2"}
        job.cancel()
        await asyncio.gather(job, return_exceptions=True)

    run(World(tmp_path), scenario)
