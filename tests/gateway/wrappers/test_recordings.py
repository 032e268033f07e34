"""Replays: readings as recorded, bad lines by their number, in time and without doubling."""

import asyncio
import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.reading import Reading
from gateway.testing import SECOND, until
from gateway.wrappers.recordings import lines
from gateway.wrappers.recordings.readers import read_csv, read_k7, read_senml
from gateway.wrappers.recordings.wrapper import ReplayWrapper
from gateway.wrappers.wrapper import WrapperContext
from streamsql.errors import DeploymentError

HEADER = '{"node_count": 3}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\n'
K7 = HEADER + (
    "2018-01-11 16:33:07,0,4,11,-53.2,1.0,\n"
    "2018-01-11 16:33:08,4,1,,,0.0,\n"
    "2018-01-11 16:33:09,4,0,11,-53.2,0.5,100\n"
)
T0 = 1_515_688_387 * SECOND


def write(folder: Path, text: str | bytes, name: str = "recording") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_k7_lines_are_links_while_enough_packets_arrive(tmp_path: Path) -> None:
    assert list(read_k7(write(tmp_path, K7), "link", None, 0.5)) == [
        Reading("link", {"src": "0", "dst": "4", "cost": 1.0, "pdr": 1.0}, T0),
        Reading("link", {"src": "4", "dst": "1"}, T0 + SECOND, delete=True),
        Reading("link", {"src": "4", "dst": "0", "cost": 2.0, "pdr": 0.5}, T0 + 2 * SECOND),
    ]


def test_only_owned_nodes_speak(tmp_path: Path) -> None:
    readings = list(read_k7(write(tmp_path, K7), "link", frozenset({"4"}), 0.5))
    assert [r.values["src"] for r in readings] == ["4", "4"]


def test_a_packed_file_is_the_same(tmp_path: Path) -> None:
    plain, packed = write(tmp_path, K7), write(tmp_path, gzip.compress(K7.encode()), "packed")
    assert list(read_k7(plain, "l", None, 0.5)) == list(read_k7(packed, "l", None, 0.5))


BAD_LINES = {
    "no time": "yesterday,0,4,11,-53.2,1.0,",
    "no ratio": "2018-01-11 16:33:07,0,4,11,-53.2,,",
    "not a number": "2018-01-11 16:33:07,0,4,11,-53.2,good,",
    "NaN": "2018-01-11 16:33:07,0,4,11,-53.2,nan,",
    "above one": "2018-01-11 16:33:07,0,4,11,-53.2,1.5,",
    "negative": "2018-01-11 16:33:07,0,4,11,-53.2,-0.1,",
    "too short": "2018-01-11 16:33:07,0",
    "too long": "2018-01-11 16:33:07,0,4,11,-53.2,1.0,,,,",
    "field too large": "2018-01-11 16:33:07,0,4,11," + "9" * 200_000 + ",1.0,",
    "not text": b"2018-01-11 16:33:07,\xff,4,11,-53.2,1.0,",
}


@pytest.mark.parametrize("line", BAD_LINES.values(), ids=BAD_LINES)
def test_a_bad_line_is_named_and_left_out(tmp_path: Path, line: str | bytes) -> None:
    raw = line if isinstance(line, bytes) else line.encode()
    content = K7.encode().split(b"\n")
    content.insert(3, raw)  # becomes the fourth line
    path = write(tmp_path, b"\n".join(content))
    complaints: list[str] = []
    readings = list(read_k7(path, "link", None, 0.5, complaints.append))
    assert len(readings) == 3
    assert [c for c in complaints if f"{path} line 4: " in c] == complaints
    assert len(complaints) == 1
    with pytest.raises(DeploymentError, match="line 4: "):
        list(read_k7(path, "link", None, 0.5))


def test_a_header_without_a_needed_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, K7.replace("pdr", "quality"))
    with pytest.raises(DeploymentError, match="line 2: no column 'pdr'"):
        list(read_k7(path, "link", None, 0.5))
    with pytest.raises(DeploymentError, match="line 1: no column 'ts'"):
        list(read_csv(write(tmp_path, "a,b\n1,2\n"), "s", "ts"))


def test_broken_compression_is_explained_with_the_line(tmp_path: Path) -> None:
    text = HEADER + "2018-01-11 16:33:07,0,4,11,-53.2,1.0,\n" * 5_000
    packed = gzip.compress(text.encode())
    path = write(tmp_path, packed[: len(packed) // 2])
    with pytest.raises(DeploymentError, match=r"line \d+: the compressed data is broken"):
        list(read_k7(path, "link", None, 0.5))


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1_000)
    path = write(tmp_path, "ts,v\n1,2\n" + "x" * 2_000)
    with pytest.raises(DeploymentError, match="line 3: longer than 1000 bytes"):
        list(read_csv(path, "s", "ts"))


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="cannot read recording"):
        list(read_csv(tmp_path / "none", "s", "ts"))
    with pytest.raises(DeploymentError, match="cannot read recording"):
        list(read_csv(tmp_path, "s", "ts"))


def test_csv_times_are_iso_or_seconds_and_empty_fields_are_null(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '\ufeffts,name,v\r\n1.5,"a, ""b""",\r\n\r\n1970-01-01T00:00:02+00:00,c,3\r\nlater,d,4\r\n',
    )
    complaints: list[str] = []
    assert list(read_csv(path, "s", "ts", complaints.append)) == [
        Reading("s", {"ts": 1_500_000, "name": 'a, "b"'}, 1_500_000),
        Reading("s", {"ts": 2 * SECOND, "name": "c", "v": "3"}, 2 * SECOND),
    ]
    assert len(complaints) == 1
    assert "line 5: " in complaints[0]
    assert "must hold ISO times or seconds since 1970" in complaints[0]


def test_senml_packs_one_a_line(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '[{"bn":"dev1:","bt":10,"n":"celsius","v":20.5},{"n":"on","vb":true}]\n'
        "\n"
        '{"n": "no array"}\n'
        '[{"bn":"dev2:","bt":11,"n":"celsius","v":1e999}]\n'
        "[" + "[" * 500 + "\n"
        '[{"bn":"dev2:","bt":12,"n":"celsius"}]\n'
        '[{"bn":"dev2:","bt":1e300,"n":"celsius","v":1}]\n'
        '[{"bn":"dev2:","bt":13,"n":"celsius","v":21}]\n',
    )
    complaints: list[str] = []
    assert list(read_senml(path, "s", "ts", "name", complaints.append)) == [
        Reading("s", {"name": "dev1", "celsius": 20.5, "on": True, "ts": 10 * SECOND}, 10 * SECOND),
        Reading("s", {"name": "dev2", "celsius": 21.0, "ts": 13 * SECOND}, 13 * SECOND),
    ]
    assert [c.split(" line ")[1].split(":")[0] for c in complaints] == ["3", "4", "5", "6", "7"]


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_complain(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("fuzz"), content)
    complaints: list[str] = []
    readers = [
        read_csv(path, "s", "ts", complaints.append),
        read_k7(path, "s", None, 0.5, complaints.append),
        read_senml(path, "s", "ts", "name", complaints.append),
    ]
    for readings in readers:
        try:
            list(readings)
        except DeploymentError as error:
            complaints.append(error.message)
    assert all(str(path) in complaint for complaint in complaints)


# The wrapper ----------------------------------------------------------------------------------


class Replay:
    """A replay wrapper with a clock of its own, and what it has emitted."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.now = 0
        self.emitted: list[Reading] = []
        self.problems: list[str] = []
        self.notes: list[str] = []
        self.fail_after: int | None = None
        self.wrapper = ReplayWrapper()
        plain = {"file": str(path), "format": "csv", "source": "s"}
        self.context = WrapperContext(
            "gw-1",
            lambda: self.now,
            self._emit,
            self.problems.append,
            {**plain, **options},
            self.notes.append,
        )

    def _emit(self, readings: Any) -> None:
        if self.fail_after is not None and len(self.emitted) >= self.fail_after:
            self.fail_after = None
            raise DeploymentError("too many events wait")
        self.emitted.extend(readings)

    async def run(self) -> None:
        await self.wrapper.run(self.context)

    def values(self) -> list[int]:
        return [int(str(reading.values["v"])) for reading in self.emitted]


def numbers(folder: Path, count: int, bad: tuple[int, ...] = ()) -> Path:
    rows = [f"{n},{n}" if n not in bad else "never,0" for n in range(1, count + 1)]
    return write(folder, "\n".join(["ts,v", *rows]) + "\n")


def run(replay: Replay, scenario: Callable[[asyncio.Task[None]], Any]) -> None:
    async def whole() -> None:
        task = asyncio.create_task(replay.run())
        await scenario(task)
        task.cancel()

    asyncio.run(whole())


def test_readings_come_when_the_clock_reaches_them_at_any_speed(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 100))

    async def scenario(task: asyncio.Task[None]) -> None:
        for now in (0, 1, 2, 40, 41, 100):
            replay.now = now * SECOND
            await until(lambda now=now: replay.values() == list(range(1, now + 1)))  # type: ignore[misc]
            await asyncio.sleep(0.12)
            assert replay.values() == list(range(1, now + 1)), "and none before its time"
        assert not task.done(), "at the end it waits to be cancelled"

    run(replay, scenario)


def test_it_says_when_it_is_over(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 3))

    async def scenario(_task: asyncio.Task[None]) -> None:
        replay.now = 2 * SECOND
        await until(lambda: len(replay.emitted) == 2)
        assert replay.notes == []
        replay.now = 4 * SECOND
        await until(lambda: len(replay.notes) == 1)

    run(replay, scenario)
    assert "has ended after 3 readings" in replay.notes[0]
    assert replay.problems == []


def test_what_is_past_comes_at_once_in_bounded_batches(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 5_000))
    replay.now = 5_000 * SECOND

    async def scenario(_task: asyncio.Task[None]) -> None:
        await until(lambda: len(replay.emitted) == 5_000)
        assert replay.values() == list(range(1, 5_001))

    run(replay, scenario)


def test_after_a_fault_it_goes_on_where_it_stood(tmp_path: Path) -> None:
    replay = Replay(numbers(tmp_path, 50, bad=(3, 30)))

    async def scenario(task: asyncio.Task[None]) -> None:
        replay.now = 10 * SECOND
        await until(lambda: len(replay.emitted) == 9)
        replay.fail_after = 9
        replay.now = 20 * SECOND
        await asyncio.wait({task}, timeout=60)
        assert isinstance(task.exception(), DeploymentError)
        again = asyncio.create_task(replay.run())
        replay.now = 50 * SECOND
        await until(lambda: len(replay.emitted) == 48)
        assert replay.values() == [n for n in range(1, 51) if n not in (3, 30)]
        assert [p.split(" line ")[1].split(":")[0] for p in replay.problems] == ["4", "31"]
        again.cancel()

    run(replay, scenario)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"format": "xls"}, "format must be"),
        ({"least_pdr": 0.0}, "least_pdr"),
        ({"speed": 2}, "speed"),
        ({"nodes": "a"}, "nodes"),
    ],
)
def test_wrong_options_are_named(tmp_path: Path, options: dict[str, Any], complaint: str) -> None:
    replay = Replay(numbers(tmp_path, 1), **options)
    with pytest.raises(DeploymentError, match=f"options of wrapper replay.*{complaint}"):
        asyncio.run(replay.run())
