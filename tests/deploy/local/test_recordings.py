"""What a recording given to --replay is: found out from its first lines, or refused."""

import gzip
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deploy.local.recordings import Recording, inspect
from gateway.connectors.declared_source import DeclaredSource
from gateway.connectors.replay.readers import Recorded, read_csv, read_senml
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.mapping.mapper import Mapper
from tests.streamsql.from_text import catalog_of

NOON = 1767268800000000  # 2026-01-01T12:00:00Z
TRACE = (
    '{"location": "here", "node_count": 2}\n'
    "datetime,src,dst,channel,mean_rssi,pdr,tx_count\n"
    "2026-01-01 12:00:00,1,2,11,-60.5,0.9,100\n"
)


def write(path: Path, text: str | bytes) -> Path:
    content = text.encode() if isinstance(text, str) else text
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def stream(recording: Recording) -> SourceDefinition:
    definition = catalog_of(recording.schema).find(recording.source)
    assert isinstance(definition, SourceDefinition)
    return definition


def rows(recording: Recording) -> list[tuple[object, ...]]:
    """Return the rows that the source has of a recording, and no problem with any."""
    problems: list[str] = []
    source = stream(recording)
    fed = DeclaredSource(source, Mapper(source), lambda: 0, {}, problems.append)
    found = [fed.read_record(record.values, time=record.ts) for record in readings(recording)]
    assert problems == []
    return [tuple(reading.values.values()) for (reading,) in found]


def readings(recording: Recording) -> Iterator[Recorded]:
    if recording.format == "csv":
        return read_csv(recording.path, recording.time_column)
    return read_senml(recording.path, "name")


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_csv_with_inferred_types(tmp_path: Path, suffix: str) -> None:
    text = (
        "Time,tank,Level,count,open,note,empty\n"
        "2026-01-01T12:00:00Z,t1,1.5,3,true,,\n"
        "2026-01-01T12:00:01Z,t2,2,,false,7x,\n"
    )
    found = inspect(write(tmp_path / f"Water Tanks-2{suffix}", text))
    assert (found.format, found.begins, found.time_column) == ("csv", NOON, "time")
    source = stream(found)
    assert source.name == found.source == "water_tanks_2"
    assert source.schema.dtypes == (
        DataType.TIMESTAMP,
        DataType.TEXT,
        DataType.DOUBLE,
        DataType.INTEGER,
        DataType.BOOLEAN,
        DataType.TEXT,
        DataType.TEXT,
    )
    assert source.time_column == 0
    assert source.option("connector") == "replay"
    assert rows(found)[1] == (NOON + 1_000_000, "t2", 2.0, None, False, "7x", None)


def test_seconds_since_1970_are_times_too(tmp_path: Path) -> None:
    found = inspect(write(tmp_path / "a.csv", "v,timestamp\n1,1767268800.25\n"))
    assert found.begins == NOON + 250_000


def test_senml_lines(tmp_path: Path) -> None:
    text = (
        '[{"bn":"dev1:","bt":1767268800,"n":"level","v":1.5},{"n":"state","vs":"on"}]\n\n'
        '[{"bn":"dev1:","bt":1767268801,"n":"alarm","vb":true}]\n'
    )
    found = inspect(write(tmp_path / "pack.senml", text))
    assert (found.format, found.begins, found.name_column) == ("senml", NOON, "name")
    source = stream(found)
    kinds = dict(zip(source.schema.names, source.schema.dtypes, strict=True))
    assert kinds == {
        "name": DataType.TEXT,
        "ts": DataType.TIMESTAMP,
        "level": DataType.DOUBLE,
        "state": DataType.TEXT,
        "alarm": DataType.BOOLEAN,
    }
    assert [row[1] for row in rows(found)] == [NOON, NOON + 1_000_000]


@pytest.mark.parametrize("suffix", [".k7", ".k7.gz"])
def test_k7_link_trace(tmp_path: Path, suffix: str) -> None:
    found = inspect(write(tmp_path / f"grenoble{suffix}", TRACE))
    assert (found.format, found.source, found.begins, found.schema) == ("k7", "link", NOON, "")


@pytest.mark.skipif(
    not os.environ.get("PANDO_SHARED_DATA")
    and not (Path(__file__).resolve().parents[4] / "shared" / "data").is_dir(),
    reason="the recorded link trace is not here",
)
def test_the_recorded_trace() -> None:
    folder = Path(__file__).resolve().parents[4] / "shared" / "data"
    root = Path(os.environ.get("PANDO_SHARED_DATA", folder))
    assert inspect(root / "link-traces" / "grenoble-sample.k7.gz").format == "k7"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "is empty"),
        ("\n\n", "is empty"),
        ("hello world\n", "neither a K7 link trace, nor CSV with a header, nor SenML"),
        ("a,b\n1,2\n", "no time column"),
        ("ts,a,a\n", "two columns are called 'a'"),
        ("ts,a,A\n", "two columns are called 'a'"),
        ("ts,,b\n", "column 2 has no name"),
        ("ts,a\n", "has no readings"),
        ("ts,a\nnoon,1\n", "has no readings"),
        ("ts,a\n1,2,3\n", "has no readings"),
        ("[]\n", "has no readings"),
        ("[{]\n", "has no readings"),
        ('{"a": 1}\n', "neither a K7"),
        (TRACE[: TRACE.rindex("2026")], "has no readings"),
        (b"\xff\xfe\x00\x01", "not UTF-8 text"),
        (b"ts,a\n" + b"x" * 1_000_001, "longer than"),
        (gzip.compress(b"ts,a\n" * 10_000, mtime=0)[:40], "compressed data is broken"),
        (b"\x1f\x8b" + bytes(range(7, 57)), "cannot read|compressed data is broken"),
    ],
)
def test_what_cannot_be_replayed_is_refused_with_the_reason(
    tmp_path: Path, content: str | bytes, said: str
) -> None:
    path = write(tmp_path / "recording.txt", content)
    with pytest.raises(DeploymentError, match=said) as caught:
        inspect(path)
    assert str(path) in str(caught.value)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(DeploymentError, match="No such file"):
        inspect(tmp_path / "none.csv")


def test_bad_lines_at_the_beginning_do_not_hide_the_good_ones(tmp_path: Path) -> None:
    text = "ts,a\nnoon,1\n1,2,3\n2026-01-01T12:00:00Z,5\n"
    found = inspect(write(tmp_path / "a.csv", text))
    assert found.begins == NOON


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("select.csv", "select"),
        ("2026.csv", "recording_2026"),
        ("größe.csv", "gr__e"),
        ("温度.csv", "recording"),
        ("a b-c.d.csv", "a_b_c"),
    ],
)
def test_the_file_names_the_source(tmp_path: Path, name: str, source: str) -> None:
    found = inspect(write(tmp_path / name, 'ts,"a ""b"" c",order\n1,2,3\n'))
    assert stream(found).name == found.source == source
    assert stream(found).schema.names == ("ts", 'a "b" c', "order")


_cell = st.text(
    st.characters(blacklist_categories=["Cs"], blacklist_characters='\r\n"'), max_size=8
)
_name = st.from_regex(r"[A-Za-z][A-Za-z0-9 _.]{0,6}[a-z]", fullmatch=True)


@given(
    st.lists(_name, min_size=1, max_size=4, unique_by=str.lower).filter(
        lambda names: "ts" not in [name.lower() for name in names]
    ),
    st.data(),
)
def test_every_reading_fits_the_inferred_schema(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], data: st.DataObject
) -> None:
    quoted = ",".join(f'"{name}"' for name in names)
    lines = [f"ts,{quoted}"]
    kinds = [data.draw(st.sampled_from(["int", "float", "bool", "text"])) for _ in names]
    values = {
        "int": st.integers(-(2**63), 2**63 - 1).map(str),
        "float": st.floats(allow_nan=False, allow_infinity=False).map(repr),
        "bool": st.sampled_from(["true", "false"]),
        "text": _cell.map(lambda text: f'"{text}"'),
    }
    for second in range(data.draw(st.integers(1, 4))):
        cells = [data.draw(st.one_of(st.just(""), values[kind])) for kind in kinds]
        lines.append(",".join([str(second), *cells]))
    path = tmp_path_factory.mktemp("recording") / "r.csv"
    found = inspect(write(path, "\n".join(lines) + "\n"))
    assert len(rows(found)) == len(lines) - 1
