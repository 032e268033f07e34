"""Recordings: records as recorded, bad lines by their number."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.connectors.replay import lines
from gateway.connectors.replay.readers import Recorded, read_csv, read_k7, read_senml
from gateway.testing import SECOND
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
    assert list(read_k7(write(tmp_path, K7), None, 0.5)) == [
        Recorded({"src": "0", "dst": "4", "cost": 1.0, "pdr": 1.0}, T0),
        Recorded({"src": "4", "dst": "1"}, T0 + SECOND, gone=True),
        Recorded({"src": "4", "dst": "0", "cost": 2.0, "pdr": 0.5}, T0 + 2 * SECOND),
    ]


def test_only_owned_nodes_speak(tmp_path: Path) -> None:
    readings = list(read_k7(write(tmp_path, K7), frozenset({"4"}), 0.5))
    assert [r.values["src"] for r in readings] == ["4", "4"]


def test_a_packed_file_is_the_same(tmp_path: Path) -> None:
    plain, packed = write(tmp_path, K7), write(tmp_path, gzip.compress(K7.encode()), "packed")
    assert list(read_k7(plain, None, 0.5)) == list(read_k7(packed, None, 0.5))


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
    readings = list(read_k7(path, None, 0.5, complaints.append))
    assert len(readings) == 3
    assert [c for c in complaints if f"{path} line 4: " in c] == complaints
    assert len(complaints) == 1
    with pytest.raises(DeploymentError, match="line 4: "):
        list(read_k7(path, None, 0.5))


def test_a_header_without_a_needed_column_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, K7.replace("pdr", "quality"))
    with pytest.raises(DeploymentError, match="line 2: no column 'pdr'"):
        list(read_k7(path, None, 0.5))
    with pytest.raises(DeploymentError, match="line 1: no column 'ts'"):
        list(read_csv(write(tmp_path, "a,b\n1,2\n"), "ts"))


def test_broken_compression_is_explained_with_the_line(tmp_path: Path) -> None:
    text = HEADER + "2018-01-11 16:33:07,0,4,11,-53.2,1.0,\n" * 5_000
    packed = gzip.compress(text.encode())
    path = write(tmp_path, packed[: len(packed) // 2])
    with pytest.raises(DeploymentError, match=r"line \d+: the compressed data is broken"):
        list(read_k7(path, None, 0.5))


def test_an_endless_line_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_LINE", 1_000)
    path = write(tmp_path, "ts,v\n1,2\n" + "x" * 2_000)
    with pytest.raises(DeploymentError, match="line 3: longer than 1000 bytes"):
        list(read_csv(path, "ts"))


def test_a_missing_file_is_explained(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="cannot read recording"):
        list(read_csv(tmp_path / "none", "ts"))
    with pytest.raises(DeploymentError, match="cannot read recording"):
        list(read_csv(tmp_path, "ts"))


def test_csv_times_are_iso_or_seconds_and_empty_fields_are_null(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        '\ufeffts,name,v\r\n1.5,"a, ""b""",\r\n\r\n1970-01-01T00:00:02+00:00,c,3\r\nlater,d,4\r\n',
    )
    complaints: list[str] = []
    assert list(read_csv(path, "ts", complaints.append)) == [
        Recorded({"name": 'a, "b"', "v": None}, 1_500_000),
        Recorded({"name": "c", "v": "3"}, 2 * SECOND),
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
    assert list(read_senml(path, "name", complaints.append)) == [
        Recorded({"name": "dev1", "celsius": 20.5, "on": True}, 10 * SECOND),
        Recorded({"name": "dev2", "celsius": 21.0}, 13 * SECOND),
    ]
    assert [c.split(" line ")[1].split(":")[0] for c in complaints] == ["3", "4", "5", "6", "7"]


@given(st.binary(max_size=200))
def test_no_bytes_do_worse_than_complain(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = write(tmp_path_factory.mktemp("fuzz"), content)
    complaints: list[str] = []
    readers = [
        read_csv(path, "ts", complaints.append),
        read_k7(path, None, 0.5, complaints.append),
        read_senml(path, "name", complaints.append),
    ]
    for readings in readers:
        try:
            list(readings)
        except DeploymentError as error:
            complaints.append(error.message)
    assert all(str(path) in complaint for complaint in complaints)
