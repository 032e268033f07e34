"""Reading K7 link traces."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from building.model.site_model import SiteError
from building.sample import k7_trace
from building.sample.k7_trace import read_k7
from streamsql.errors import DeploymentError

COLUMNS = "datetime,src,dst,channel,mean_rssi,pdr,tx_count"
HEADER = '{"location": "attic", "node_count": 4}'
ROWS = (
    "2018-01-11 16:33:07,0,1,11,-53.2,1.0,100",
    "2018-01-11 16:33:08,1,2,11,,0.8,",
    "2018-01-11 16:33:09,2,10,12,-80,0.5,",
    "2018-01-11 16:33:10,0,10,12,,0.0,",
)


def write(folder: Path, *rows: str, header: str = HEADER, columns: str = COLUMNS) -> Path:
    path = folder / "trace.k7"
    path.write_text("\n".join([header, columns, *rows]) + "\n", encoding="utf-8")
    return path


def test_a_small_trace(tmp_path: Path) -> None:
    site = read_k7(write(tmp_path, *ROWS), gateways=2)
    assert site.name == "attic"
    assert [mote.id for mote in site.motes] == ["0", "1", "2", "10"]
    assert {(link.src, link.dst) for link in site.radio} == {("0", "1"), ("1", "2"), ("10", "2")}
    assert site.spaces == ()
    assert sorted(site.gateways) == ["0", "1", "10", "2"]
    assert set(site.gateways.values()) == {"gw-1", "gw-2"}
    assert all(0 <= mote.x <= 60 and 0 <= mote.y <= 60 for mote in site.motes)


def test_gzip_and_plain_give_the_same_site(tmp_path: Path) -> None:
    plain = write(tmp_path, *ROWS)
    packed = tmp_path / "trace.k7.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read_k7(packed) == read_k7(plain) == read_k7(plain)


def test_gateways_own_neighbours(tmp_path: Path) -> None:
    rows = [f"2018-01-11 16:33:07,{i},{i + 1},11,-50,1.0,100" for i in range(19)]
    path = write(tmp_path, *rows, header='{"location": "line"}')
    site = read_k7(path, gateways=4)
    swept = [site.gateways[mote.id] for mote in sorted(site.motes, key=lambda m: m.x)]
    assert swept == sorted(swept)
    assert [swept.count(f"gw-{n}") for n in (1, 2, 3, 4)] == [5, 5, 5, 5]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("2018-01-11 16:33:07,0,1,11,-53.2,1.0", "line 4: 6 columns, expected 7"),
        ("2018-01-11 16:33:07,0,a/b,11,-53.2,1.0,", "line 4: dst 'a/b' is not a node name"),
        ("2018-01-11 16:33:07,,1,11,-53.2,1.0,", "line 4: src '' is not a node name"),
        ("yesterday,0,1,11,-53.2,1.0,", "line 4: datetime 'yesterday' is not a date"),
        ("2018-01-11 16:33:07,0,1,11,-53.2,high,", "line 4: pdr 'high' is not a number"),
        ("2018-01-11 16:33:07,0,1,11,-53.2,1.5,", "line 4: pdr 1.5 is not within"),
        ("2018-01-11 16:33:07,0,1,11,-53.2,nan,", "line 4: pdr nan is not within"),
        ("x" * 2_000, "line 4: longer than 1000"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, row: str, message: str) -> None:
    with pytest.raises(SiteError, match=message):
        read_k7(write(tmp_path, ROWS[0], row, ROWS[1]))


@pytest.mark.parametrize(
    ("header", "columns", "message"),
    [
        ("not json", COLUMNS, "line 1: the header must be a JSON object"),
        ("[1]", COLUMNS, "line 1: the header must be a JSON object"),
        ("[" * 90_000, COLUMNS, "line 1: the header must be a JSON object"),
        (HEADER, "a,b", "line 2: expected the columns datetime,src"),
        ('{"node_count": 1}', COLUMNS, "node_count says 1, but the lines name 4 nodes"),
    ],
)
def test_a_bad_head_is_named(tmp_path: Path, header: str, columns: str, message: str) -> None:
    with pytest.raises(SiteError, match=message):
        read_k7(write(tmp_path, *ROWS, header=header, columns=columns))


def test_empty_missing_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(SiteError, match="no measurements"):
        read_k7(write(tmp_path))
    with pytest.raises(SiteError, match=r"cannot read .*absent\.k7"):
        read_k7(tmp_path / "absent.k7")
    path = tmp_path / "half.k7.gz"
    path.write_bytes(gzip.compress("\n".join([HEADER, COLUMNS, *ROWS]).encode())[:-12])
    with pytest.raises(SiteError, match="broken gzip data"):
        read_k7(path)
    path.write_bytes(b"\xff\xfe\x00\x01")
    with pytest.raises(SiteError, match="not UTF-8"):
        read_k7(path)


def test_too_many_nodes_lines_and_gateways(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, *ROWS)
    with pytest.raises(SiteError, match="5 gateways asked for, but the site has only 4 nodes"):
        read_k7(path, gateways=5)
    with monkeypatch.context() as patch:
        patch.setattr(k7_trace, "MAX_NODES", 2)
        with pytest.raises(SiteError, match="line 4: more than 2 nodes"):
            read_k7(path)
    with monkeypatch.context() as patch:
        patch.setattr(k7_trace, "MAX_LINES", 3)
        with pytest.raises(SiteError, match="more than 3 lines"):
            read_k7(path)


def test_many_nodes_are_put_on_a_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(k7_trace, "FORCE_LAYOUT_BOUND", 2)
    site = read_k7(write(tmp_path, *ROWS))
    assert {round((m.x - 30) ** 2 + (m.y - 30) ** 2) for m in site.motes} == {900}


@given(st.text(alphabet='0123456789,.-: \n"{}[]ae', max_size=200))
def test_any_text_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "trace.k7"
    path.write_text(f"{HEADER}\n{COLUMNS}\n{text}", encoding="utf-8")
    try:
        site = read_k7(path, gateways=1)
    except DeploymentError as error:
        complaint = str(error)
    else:
        complaint = path.name
        assert site.motes
    assert path.name in complaint


def test_the_grenoble_testbed(shared_file: Callable[[str], Path]) -> None:
    path = shared_file("link-traces/grenoble-sample.k7.gz")
    with gzip.open(path, "rt") as text:
        stated = json.loads(text.readline())["node_count"]
    site = read_k7(path)
    assert len(site.motes) == stated == 44
    assert [mote.id for mote in site.motes] == [str(n) for n in range(44)]
    owned = list(site.gateways.values())
    assert sorted(owned.count(f"gw-{n}") for n in (1, 2, 3)) == [14, 15, 15]
