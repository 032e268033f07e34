"""Lines come once each, in order, over rotation, truncation and restarts; bad ones are said."""

import asyncio
import os
from pathlib import Path

import pytest

from gateway.connectors.file.file_connector import FileConnector
from gateway.connectors.file.file_options import FileSource
from gateway.connectors.file.folder import MAX_FILES
from gateway.connectors.options import convert_options
from streamsql.errors import DeploymentError
from tests.gateway.connectors.serving import Served, in_loop, serving, until

LOG = """
CREATE SOURCE climate (device TEXT, celsius DOUBLE FROM 't', KEY (device))
WITH (connector = 'file', endpoint = 'home', files = '{device}.log', interval = '0.1 s')
"""
CSV = """
CREATE SOURCE meter (meter TEXT FROM 'Zähler', kwh DOUBLE FROM 'kWh' FORMAT 'comma', KEY (meter))
WITH (connector = 'file', endpoint = 'home', files = '*.csv', format = 'csv', delimiter = ';',
      interval = '0.1 s')
"""


def append(path: Path, content: str | bytes) -> None:
    with path.open("ab") as file:
        file.write(content.encode() if isinstance(content, str) else content)


def line(value: float) -> str:
    return f'{{"t": {value}}}\n'


@in_loop
async def test_lines_come_when_they_are_whole(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    append(log, line(1) + '{"t":')
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG) as served:
        assert await served.until_rows(1) == [("a", 1.0)]
        append(log, " 2}\r\n\n" + line(3))
        append(tmp_path / "b.log", line(4))
        await served.until_rows(4)
    assert sorted(served.rows) == [("a", 1.0), ("a", 2.0), ("a", 3.0), ("b", 4.0)]
    assert served.problems == []
    assert served.steps[:3] == ["remember", "emit", "kept"]


@in_loop
async def test_a_log_that_is_put_aside_is_read_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    append(log, line(1))
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG) as served:
        await served.until_rows(1)
        append(log, line(2))
        log.rename(tmp_path / "a.log.1")
        append(tmp_path / "a.log.1", line(3))
        append(log, line(4))
        await served.until_rows(4)
    assert sorted(str(row[1]) for row in served.rows) == ["1.0", "2.0", "3.0", "4.0"]


@in_loop
async def test_a_log_that_is_truncated_is_read_from_its_start(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    append(log, line(1) + line(2))
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG) as served:
        await served.until_rows(2)
        log.write_text(line(3))
        await served.until_rows(3)
        log.write_text(line(4) + line(5) + line(6))  # longer than before
        await served.until_rows(6)
    assert [row[1] for row in served.rows] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert len(served.notes) == 2


@in_loop
async def test_it_goes_on_where_an_earlier_life_has_kept(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    append(log, "".join(line(number) for number in range(2_500)))
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG) as first:
        await first.until_rows(2_500)
    # The second batch is lost with the gateway: it was remembered together with its rows.
    second = Served(memory=first.memories[0])
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG, served=second):
        await second.until_rows(1_500)
        append(log, line(9_999))
        await second.until_rows(1_501)
    assert [row[1] for row in second.rows] == [*map(float, range(1_000, 2_500)), 9_999.0]


@in_loop
async def test_csv_files_name_their_columns_once(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    append(path, "\ufeffZähler;kWh\r\nmain;1.234,5\r\n")
    async with serving(FileConnector(), {"folder": str(tmp_path)}, CSV) as served:
        await served.until_rows(1)
        append(path, 'roof;"0,25"\nodd\n"open;1\nlast;2\n')
        await served.until_rows(3)
    assert served.rows == [("main", 1_234.5), ("roof", 0.25), ("last", 2.0)]
    assert len(served.problems) == 2, served.problems


@in_loop
async def test_other_encodings_are_read_as_declared(tmp_path: Path) -> None:
    append(tmp_path / "day.csv", "Zähler;kWh\nBüro;1\n".encode("latin-1"))
    text = CSV.replace("interval", "encoding = 'iso-8859-1', interval")
    async with serving(FileConnector(), {"folder": str(tmp_path)}, text) as served:
        assert await served.until_rows(1) == [("Büro", 1.0)]


@in_loop
async def test_whole_files_are_payloads_when_they_have_come_to_rest(tmp_path: Path) -> None:
    text = LOG.replace("files", "each = 'file', files")
    path = tmp_path / "a.log"
    path.write_text('{"t":\n 1}')
    async with serving(FileConnector(), {"folder": str(tmp_path)}, text) as served:
        await served.until_rows(1)
        path.write_text('{"t":\n 2.5}')
        await served.until_rows(2)
        (tmp_path / "b.log").write_bytes(b" " * 1_000_001)
        await served.until_problem("b.log: more than 1,000,000 bytes")
    assert served.rows == [("a", 1.0), ("a", 2.5)]
    again = Served(memory=served.memories[-1])
    async with serving(FileConnector(), {"folder": str(tmp_path)}, text, served=again):
        (tmp_path / "c.log").write_text('{"t": 3}')
        await again.until_rows(1)
    assert again.rows == [("c", 3.0)]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"no JSON\n", "it is no JSON"),
        (b'{"t": NaN}\n', "it is no JSON"),
        (b"\xff\xfe{\x00\n", "it is no JSON"),
        (b"[" * 90_000 + b"\n", "it is no JSON"),
        (b'{"t":' * 70 + b"1" + b"}" * 70 + b"\n", "nested deeper than 64"),
        (b"x" * 100_001 + b"\n", "a line of more than 100,000 bytes is left out"),
        (b"x" * 3_000_000 + b"\n", "a line of more than 100,000 bytes is left out"),
        (b"\0" * 50_000 + b"\n", "it is no JSON"),
    ],
)
@in_loop
async def test_a_bad_line_is_said_once_and_the_others_come(
    tmp_path: Path, bad: bytes, said: str
) -> None:
    append(tmp_path / "a.log", line(1).encode() + bad + line(2).encode())
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG) as served:
        assert await served.until_rows(2) == [("a", 1.0), ("a", 2.0)]
    assert len(served.problems) == 1
    assert said in served.problems[0]


@in_loop
async def test_what_is_no_file_of_the_folder_is_not_read(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "in", tmp_path / "secret.log"
    folder.mkdir()
    elsewhere.write_text(line(1))
    (folder / "link.log").symlink_to(elsewhere)
    (folder / "folder.log").mkdir()
    os.mkfifo(folder / "pipe.log")
    (folder / "a.txt").write_text(line(2))
    (folder / "a.log").write_text(line(3))
    async with serving(FileConnector(), {"folder": str(folder)}, LOG) as served:
        await served.until_rows(1)
        append(folder / "a.log", line(4))
        await served.until_rows(2)
    assert served.rows == [("a", 3.0), ("a", 4.0)]


@in_loop
async def test_a_folder_that_is_away_ends_the_connector(tmp_path: Path) -> None:
    async with serving(FileConnector(), {"folder": str(tmp_path / "away")}, LOG) as served:
        task = served.task
        assert task is not None
        await until(task.done)
    assert isinstance(task.exception(), ConnectionError)


@in_loop
async def test_a_gateway_that_is_behind_is_not_given_more(tmp_path: Path) -> None:
    append(tmp_path / "a.log", "".join(line(number) for number in range(1_500)))
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG, keeping=False) as served:
        await served.until_rows(1_000)
        await asyncio.sleep(0.2)  # time passes: several polls would have come
        assert len(served.readings) == 1_000
        served.may_keep.set()
        await served.until_rows(1_500)


@in_loop
async def test_a_line_may_be_a_pack_of_senml(tmp_path: Path) -> None:
    text = """
    CREATE SOURCE room (device TEXT FROM '@device', temperature DOUBLE, KEY (device))
    WITH (connector = 'file', endpoint = 'home', files = '*.senml', format = 'senml',
          interval = '0.1 s')
    """
    append(tmp_path / "x.senml", '[{"bn":"r1:","n":"temperature","u":"Cel","v":21.5}]\n')
    async with serving(FileConnector(), {"folder": str(tmp_path)}, text) as served:
        rows = await served.until_rows(1)
    assert rows[0][1] == 21.5
    assert served.problems == []


@in_loop
async def test_too_many_files_are_said_and_the_newest_are_read(tmp_path: Path) -> None:
    for number in range(MAX_FILES + 5):
        append(tmp_path / f"{number}.log", line(number))
        os.utime(tmp_path / f"{number}.log", (number, number))
    async with serving(FileConnector(), {"folder": str(tmp_path)}, LOG) as served:
        await served.until_rows(MAX_FILES)
    assert served.problems == [f"5 older files are left out: {MAX_FILES} are read"]
    assert served.rows[0] == ("5", 5.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "needs `files`"),
        ({"files": "../x"}, "without /"),
        ({"files": "{a}{a}"}, "twice"),
        ({"files": "*****"}, "at most 4"),
        ({"files": "{a"}, "a brace is open"),
        ({"files": "a", "each": "row"}, "each"),
        ({"files": "a", "encoding": "punycode"}, "encoding"),
        ({"files": "a", "skip": "101"}, "0 to 100"),
        ({"files": "a", "skip": "-1"}, "0 to 100"),
    ],
)
def test_wrong_options_are_refused(given: dict[str, object], said: str) -> None:
    with pytest.raises(DeploymentError) as refusal:
        convert_options(given, FileSource, "source climate", texts=True)
    assert said in refusal.value.message
