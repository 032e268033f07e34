"""Published sqllogictest files, where somebody has them, and the adapter that reads them."""

import contextlib
import os
import sys
from pathlib import Path

import pytest

from deploy.session import LocalSession
from streamsql.data.types import Row
from tests.conformance.logic_tests import Report, run, same, translated
from tests.conformance.logic_tests import records as records_of

FOLDER = os.environ.get("PANDO_SQLLOGICTEST", "")
LEAST = int(os.environ.get("PANDO_SQLLOGICTEST_LEAST", "1"))
"""Fewest queries of the folder that must be answered as published."""
MOST_FILES = 400

SAMPLE = """# our own lines in the form of both families
hash-threshold 8

statement ok
CREATE TABLE t1(a INTEGER PRIMARY KEY, b VARCHAR(30), c DOUBLE NOT NULL)

statement ok
INSERT INTO t1 VALUES (1,'x',0.5),(2,NULL,1.5),
  (3,'',2.0)

statement error
INSERT INTO t1 VALUES (1)

query IT rowsort
SELECT a, b FROM t1
----
1
x
2
NULL
3
(empty)

query IR
SELECT a, c FROM t1 WHERE a < 3 ORDER BY a
----
1\t0.5
2\t1.5

query R valuesort label-1
SELECT c FROM t1
----
0.500
1.500
2.000

query I rowsort
SELECT a FROM t1
----
3 values hashing to 6a0a1f0a5a6ad0f1d1d9ad2e4a3a3a3a

skipif duckdb
query I
SELECT a + 1 FROM t1
----
5

onlyif sqlite
query I
SELECT 1
----
2

query I
SELECT a / 2 FROM t1
----
7

query I
SELECT generate_things(a) FROM t1
----
7

query I
SELECT COUNT(*) FROM t1
----
4

halt

query I
SELECT 5
----
6
"""


@pytest.fixture
def sample(tmp_path: Path) -> Path:
    file = tmp_path / "sample.test"
    # What md5sum says about the three lines 1, 2 and 3.
    text = SAMPLE.replace("6a0a1f0a5a6ad0f1d1d9ad2e4a3a3a3a", "c0710d6b4f15dfa88f600b0e6b624077")
    file.write_text(text, encoding="utf-8")
    return file


@pytest.mark.parametrize("engine", ["reference", "stream"])
def test_a_file_of_both_families(sample: Path, engine: str) -> None:
    report = Report()
    with contextlib.closing(LocalSession(engine)) as session:
        run(sample, session, report)
    assert (report.statements, report.queries) == (2, 4)
    (differing,) = report.differing
    assert "COUNT(*)" in differing
    skipped = report.skipped
    assert skipped["for another engine"] == 2
    assert skipped["division of integers"] == 1
    assert skipped.total() == 5, report
    assert any("generate_things" in why or "function" in why for why in skipped), report


def test_loops_are_not_understood(tmp_path: Path) -> None:
    file = tmp_path / "loop.test"
    file.write_text("loop i 0 5\n\nstatement ok\nSELECT ${i}\n\nendloop\n", encoding="utf-8")
    report = Report()
    with contextlib.closing(LocalSession("reference")) as session:
        run(file, session, report)
    assert report.skipped == {"file: loop is not understood": 1}


def test_rows_must_be_the_same_as_often(sample: Path) -> None:
    record = next(record for record in records_of(sample) if record.sort == "rowsort")
    rows: list[Row] = [(1, "x"), (2, None), (3, "")]
    assert same(rows, record)
    assert not same([*rows, rows[0]], record)
    assert not same(rows[1:], record)


def test_a_table_keeps_its_columns() -> None:
    text = "CREATE TABLE t (a BIGINT DEFAULT 3, b DECIMAL(4,1), c CHAR(2) UNIQUE, CHECK (a > 0));"
    assert translated(text) == "CREATE TABLE t (a INTEGER, b DOUBLE, c TEXT)"


@pytest.mark.skipif(not FOLDER, reason="PANDO_SQLLOGICTEST names no folder")
@pytest.mark.timeout(1_800)
def test_published_files(capsys: pytest.CaptureFixture[str]) -> None:
    files = sorted(Path(FOLDER).rglob("*.test"))[:MOST_FILES]
    report = Report()
    for file in files:
        with contextlib.closing(LocalSession("stream")) as session:
            run(file, session, report, family="sqlite" if "sqlite" in FOLDER else "duckdb")
    with capsys.disabled():
        sys.stdout.write(f"\n{len(files)} files: {report}\n")
    assert report.queries >= LEAST
    assert not report.differing
