"""`python -m static_engine` as a process with a real broker."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from broker.broker_testing import BrokerProcess
from host.mqtt import Message, MessageClient, open_client
from static_engine.lake.lake_settings import LakeSettings
from static_engine.lake.managed_tables import ManagedTables
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.delta import Delta
from streamsql.wire.channel_protocol import ReceivingChannel
from streamsql.wire.codec import decode_json, decode_packed, encode_json, encode_packed
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch, TableSet
from streamsql.wire.site_messages import SiteState
from streamsql.wire.stored_tables.table_changes import CHANGE, TableChange, TableChanged
from tests.static_engine.children import lend_archive
from tests.static_engine.rooms_table import MANAGED, ROOMS, TOPICS

pytestmark = [pytest.mark.broker, pytest.mark.timeout(600)]

SCAN = ROOMS.scan()
BUNDLE = FragmentBundle(
    "q1", 1, (Fragment("f1", Engine.STATIC, SCAN, ("static",), "f2", ("base",)),), SCAN.schema
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerProcess]:
    process = BrokerProcess("embedded", tmp_path)
    process.start()
    yield process
    process.stop()


class Process:
    """The process under test and what it published."""

    def __init__(self, folder: Path, broker: BrokerProcess, **settings: object) -> None:
        self.folder = folder
        config = {
            "broker": broker.url,
            "data_dir": str(folder / "data"),
            "base_dir": str(folder),
            "poll_seconds": 0.1,
            "use_spark": False,
            **settings,
        }
        (folder / "static.json").write_text(json.dumps(config))
        (folder / "rooms.csv").write_text("room,seats\nr1,2\n")
        self.process = self.start()
        self.state: SiteState | None = None
        self.channel = ReceivingChannel(version=1)

    def start(self) -> subprocess.Popen[bytes]:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "static_engine", "--config", str(self.folder / "static.json")],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        )
        return self.process

    def end(self, how: signal.Signals = signal.SIGKILL) -> tuple[int, str]:
        self.process.send_signal(how)
        said, _ = self.process.communicate(timeout=120)
        return self.process.returncode, said.decode()

    def hear(self, burst: list[Message]) -> None:
        for message in burst:
            if message.topic == TOPICS.host_state("static") and message.payload:
                self.state = decode_json(message.payload, SiteState)
            if message.topic == TOPICS.exchange("q1", "base", "static"):
                self.channel.accept(decode_packed(message.payload, DeltaBatch))

    @property
    def rows(self) -> Delta | None:
        return self.channel.contents.get("f1")

    async def until(self, condition: Callable[[], object], seconds: float = 180) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.poll() is None, self.process.communicate()[0].decode()
            assert time.monotonic() < deadline, f"{self.state} {self.rows}"
            await asyncio.sleep(0.02)

    async def observer(
        self, broker: BrokerProcess, rooms: SourceDefinition = ROOMS
    ) -> MessageClient:
        client = open_client(broker.url, "observer")
        client.on_messages(self.hear)
        await client.connect()
        await client.subscribe(TOPICS.host_state(), TOPICS.exchange())
        client.publish(TOPICS.tables("static"), encode_json(TableSet((rooms,))), retain=True)
        client.publish(TOPICS.fragment("q1", "static"), encode_packed(BUNDLE), retain=True)
        return client


def test_it_serves_and_stops_cleanly(tmp_path: Path, broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = await process.observer(broker)
        await process.until(lambda: process.rows == {("r1", 2): 1})
        assert process.state is not None
        assert process.state.epoch == 1
        (tmp_path / "rooms.csv").write_text("room,seats\nr1,2\nr2,7\n")
        await process.until(lambda: process.rows == {("r1", 2): 1, ("r2", 7): 1})
        status, said = await asyncio.to_thread(process.end, signal.SIGTERM)
        assert (status, "Traceback" in said) == (0, False)
        async with asyncio.timeout(60):
            while process.state.online:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert process.state.reason == "stopped"
        await client.close()

    process = Process(tmp_path, broker)
    try:
        asyncio.run(scenario())
    finally:
        process.process.kill()
        process.process.wait()


def test_a_killed_one_is_announced_by_its_will_and_starts_a_new_epoch(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    async def scenario() -> None:
        client = await process.observer(broker)
        await process.until(lambda: process.rows == {("r1", 2): 1})
        process.end(signal.SIGKILL)
        async with asyncio.timeout(60):
            while process.state is None or process.state.online:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        assert (process.state.reason, process.state.epoch) == ("lost", 1)
        (tmp_path / "rooms.csv").write_text("room,seats\nr9,9\n")
        process.start()
        await process.until(lambda: process.rows == {("r9", 9): 1})
        assert process.channel.epoch == 2
        await client.close()

    process = Process(tmp_path, broker)
    try:
        asyncio.run(scenario())
    finally:
        process.end()


def test_a_change_of_a_table_is_answered_and_shows_at_once(
    tmp_path: Path, broker: BrokerProcess
) -> None:
    answers: list[TableChanged] = []

    async def scenario() -> None:
        client = await process.observer(broker, MANAGED)
        asking = open_client(broker.url, "coordinator")
        asking.on_messages(
            lambda burst: answers.extend(decode_packed(m.payload, TableChanged) for m in burst)
        )
        await asking.connect()
        await asking.subscribe(TOPICS.response("static"))
        await process.until(lambda: process.rows == {})
        for number, row in (("c1", ("r2", 7)), ("c2", ("r3", None))):
            change = TableChange(number, 1, MANAGED, (row,))
            asking.publish(TOPICS.command("static", CHANGE), encode_packed(change))
        await process.until(lambda: answers == [TableChanged("c1", 1), TableChanged("c2", 1)])
        expected: Delta = {("r2", 7): 1, ("r3", None): 1}
        await process.until(lambda: process.rows == expected)
        await asking.close()
        await client.close()

    lake = {"catalog": f"sqlite:///{tmp_path / 'lake.db'}", "warehouse": str(tmp_path / "lake")}
    process = Process(tmp_path, broker, poll_seconds=3600, lake=lake)
    try:
        asyncio.run(scenario())
    finally:
        process.end()
    kept = ManagedTables(LakeSettings(lake["catalog"], lake["warehouse"])).batches(MANAGED)
    found = [row for columns in kept for row in zip(*(c.to_pylist() for c in columns), strict=True)]
    assert sorted(found) == [("r2", 7), ("r3", None)]


@pytest.mark.spark
@pytest.mark.parametrize("bridge_rows", [0, 100])
def test_spark_warms_up_in_the_background_and_comes_back_after_a_crash(
    tmp_path: Path, broker: BrokerProcess, class_archive: Path, bridge_rows: int
) -> None:
    details: list[str] = []

    def jvms() -> list[int]:
        children = Path(f"/proc/{process.process.pid}/task").glob("*/children")
        return [int(pid) for file in children for pid in file.read_text().split()]

    async def scenario() -> None:
        client = await process.observer(broker)
        await process.until(lambda: process.state)
        assert process.state is not None
        assert not process.state.ready
        await process.until(lambda: process.rows == {("r1", 2): 1})
        await process.until(lambda: process.state is not None and process.state.ready)
        details.append(process.state.detail)
        (jvm,) = jvms()
        (tmp_path / "rooms.csv").write_text("room,seats\nr1,5\n")
        await process.until(lambda: process.rows == {("r1", 5): 1})
        os.kill(jvm, signal.SIGKILL)
        (tmp_path / "rooms.csv").write_text("room,seats\nr2,7\n")
        await process.until(lambda: process.rows == {("r2", 7): 1})
        assert jvms() != [jvm]
        await client.close()

    process = Process(
        tmp_path,
        broker,
        use_spark=True,
        data_dir=str(lend_archive(class_archive, tmp_path / "data")),
        memory="512m",
        spark_master="local[1]",
        local_rows=0,
        bridge_rows=bridge_rows,
    )
    try:
        asyncio.run(scenario())
        status, said = process.end(signal.SIGTERM)
    finally:
        process.process.kill()
        process.process.wait()
    assert details[0].startswith("Spark 4")
    assert status == 0
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "settings "),
        ('{"data_dir": "d"}', "missing required field `broker`"),
        ('{"broker": "mqtt://h", "data_dir": "d", "memmory": "1g"}', "known: broker, data_dir"),
        ('{"broker": "mqtt://h", "data_dir": "d", "site": "a/b"}', "site 'a/b' is not an id"),
        ('{"broker": "mqtt://h", "data_dir": "d", "changed_sources": ["xls"]}', "names 'xls'"),
        ('{"broker": "http://h", "data_dir": "data"}', "expected mqtt://"),
    ],
)
def test_wrong_settings_end_it_with_a_reason(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "static.json").write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "static_engine", "--config", "static.json"],
        capture_output=True,
        check=False,
        text=True,
        timeout=120,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_two_cannot_share_a_folder(tmp_path: Path, broker: BrokerProcess) -> None:
    async def scenario() -> None:
        client = await process.observer(broker)
        await process.until(lambda: process.rows == {("r1", 2): 1})
        await client.close()

    process = Process(tmp_path, broker)
    first = process.process
    try:
        asyncio.run(scenario())
        second = process.start()
        said, _ = second.communicate(timeout=120)
        assert second.returncode == 2
        assert "is in use by another process" in said.decode()
    finally:
        first.kill()
        first.communicate()
