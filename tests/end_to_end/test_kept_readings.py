"""The story of docs/data.md: readings are kept, asked for, tried, and read by others."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import duckdb
import pytest

from static_engine.lake.lake import Lake
from static_engine.lake.lake_settings import LakeSettings
from tests.docs.markdown import KEPT, ROOT, blocks
from tests.end_to_end.federation import Federation, federation

pytestmark = [pytest.mark.end_to_end, pytest.mark.spark, pytest.mark.timeout(900)]

SECONDS = 300.0
"""Until Spark runs and has kept something, on a machine that does much else."""
ENOUGH = 30


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Federation]:
    with federation(tmp_path / "data", "--gateways", "2") as running:
        yield running


def lake_of(up: Federation) -> Lake:
    catalog = up.data / "state" / "console" / "catalog.db"
    return Lake(LakeSettings(f"sqlite:///{catalog}", str(up.data / "lake")))


def kept(lake: Lake, source: str) -> int:
    return lake.plan(source).rows if source in lake.kept_sources() else 0


def past_rows(lake: Lake) -> int:
    """Count the readings of the simulated past."""
    sources = {"temperature", "roomsensor", "seatsensor", "energymeter", "machineload"}
    there = sources & set(lake.kept_sources())
    paths = [path for source in there for path in lake.plan(source).paths]
    counted = "SELECT count(*) FROM read_parquet(?, union_by_name = true) WHERE _epoch = 0"
    found = duckdb.connect().execute(counted, [paths]).fetchone()
    return int(found[0]) if found else 0


def test_the_past_is_kept_asked_for_and_read_by_others(up: Federation) -> None:
    lake = lake_of(up)
    up.until(lambda: kept(lake, "temperature") >= ENOUGH, SECONDS)

    # Asked for: every reading of an interval that is over is there, once.
    end = datetime.now(UTC)
    up.until(lambda: kept(lake, "temperature") >= 2 * ENOUGH, SECONDS)
    asked = up.pando(
        *("query", "run", "--until-settled", "--format", "json"),
        "SELECT COUNT(*) AS n, COUNT(DISTINCT sensor || CAST(ts AS TEXT)) AS different "
        "FROM temperature FOR SYSTEM_TIME "
        f"BETWEEN '2020-01-01T00:00:00Z' AND '{end:%Y-%m-%dT%H:%M:%SZ}'",
        timeout=SECONDS,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    (answer,) = [json.loads(line) for line in asked.stdout.splitlines() if '"n"' in line][-1:]
    row = answer.get("row", answer)
    assert row["n"] == row["different"] > 0

    # EXPLAIN says how much is read, while the console has the same database open.
    # A lake that is busy says "try again".
    def explained() -> bool:
        past = "SELECT rid FROM temperature FOR SYSTEM_TIME ALL"
        shown = up.pando("explain", past, timeout=SECONDS)
        assert shown.returncode == 0, shown.stdout + shown.stderr
        size_shown = "reads the past of temperature ALL: at most " in shown.stdout
        assert size_shown or "; try again" in shown.stdout
        return size_shown

    up.until(explained, SECONDS)

    # What the pages show of it, but for sources and databases that are not here.
    pages = (ROOT / "README.md", ROOT / "docs" / "data.md")
    shown_statements = [b.text for page in pages for b in blocks(page, "sql") if b.note == KEPT]
    here = [text for text in shown_statements if not text.startswith("CREATE")]
    assert len(here) >= 2
    for text in here:
        answer_of_page = up.http.post("/api/statements", json={"text": text})
        assert answer_of_page.is_success, answer_of_page.text
    for block in [b for b in blocks(pages[1], "sh") if b.note == KEPT]:
        for line in block.text.splitlines():
            if line.startswith("pando simulate past"):
                continue  # below, in small
            done = up.pando(*line.split(" #")[0].split()[1:], timeout=SECONDS)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"

    # The building is given a past, which counts once however often.
    for _ in range(2):
        done = up.pando("simulate", "past", "--days", "1", "--every", "1 h", timeout=SECONDS)
        assert done.returncode == 0, done.stderr
        said = re.search(r"published ([\d,]+) readings", done.stdout)
        assert said is not None, done.stdout
        published = int(said[1].replace(",", ""))
        assert published > 5_000
        up.until(lambda: past_rows(lake) >= published, SECONDS)  # noqa: B023 - called at once
        assert past_rows(lake) == published

    # An alarm is tried on what was.
    tried = up.pando(
        "run",
        "-",
        stdin="RUN CREATE ALARM any_heat AS SELECT rid FROM temperature [RANGE 5 MINUTES] "
        "GROUP BY rid HAVING AVG(celsius) > -100 SEVERITY 'warning' "
        "ON HISTORY BETWEEN NOW - INTERVAL '1 h' AND NOW;",
        timeout=SECONDS,
    )
    assert tried.returncode == 0, tried.stdout + tried.stderr
    assert "raised" in tried.stdout

    # Others read it without Pando: the files of the present snapshot are Parquet.
    scan = lake.plan("temperature")
    found = duckdb.connect().execute("SELECT count(*) FROM read_parquet(?)", [scan.paths])
    assert found.fetchone() == (scan.rows,)
    assert scan.rows >= 2 * ENOUGH
