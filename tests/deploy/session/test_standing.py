"""Alarms and views of REFRESH AT in a local script: the same on every engine."""

import contextlib

import pytest

from deploy.session import LocalSession
from streamsql.errors import BindingError, UnsupportedError

SCRIPT = """
CREATE TABLE desks (desk TEXT PRIMARY KEY, room TEXT);
INSERT INTO desks VALUES ('d1', 'r1'), ('d2', 'r1'), ('d3', 'r2');
ADVANCE TIME TO '2026-01-05T10:00:00Z';
CREATE MATERIALIZED VIEW rooms REFRESH AT ('14:00') AS SELECT room FROM desks;
CREATE MATERIALIZED VIEW counts (n) REFRESH AT ('14:00') AS SELECT COUNT(*) FROM rooms;
DELETE FROM desks WHERE desk = 'd1';
"""


@pytest.mark.parametrize(("engine", "sites"), [("stream", 1), ("stream", 3), ("reference", 1)])
def test_rows_change_when_the_time_has_come(engine: str, sites: int) -> None:
    with contextlib.closing(LocalSession(engine, sites)) as session:
        session.run(SCRIPT)

        def rows(text: str) -> list[tuple[object, ...]]:
            return sorted(session.run(text)[0].rows)

        assert rows("SELECT room FROM rooms") == [("r1",), ("r1",), ("r2",)]
        session.run("ADVANCE TIME TO '2026-01-05T13:59:59Z'")
        assert rows("SELECT room FROM rooms") == [("r1",), ("r1",), ("r2",)]
        session.run("ADVANCE TIME BY '1 s'")
        assert rows("SELECT room FROM rooms") == [("r1",), ("r2",)]
        assert rows("SELECT n FROM counts") == [(2,)]  # what it reads is refreshed before it
        session.run("DELETE FROM desks; REFRESH MATERIALIZED VIEW rooms")
        assert rows("SELECT room FROM rooms") == []
        assert rows("SELECT n FROM counts") == [(2,)]
        (shown,) = session.run("SHOW VIEWS")
        facts = {row[0]: row[3] for row in shown.rows}
        assert "last refresh 2026-01-05T14:00:00Z: 0 rows" in str(facts["rooms"])
        assert "next refresh 2026-01-06T14:00:00Z" in str(facts["counts"])


def test_what_is_read_stays_and_views_take_no_rows() -> None:
    with contextlib.closing(LocalSession("reference", 1)) as session:
        session.run(SCRIPT)
        with pytest.raises(BindingError, match="used by view rooms"):
            session.run("DROP TABLE desks")
        with pytest.raises(BindingError) as refusal:
            session.run("INSERT INTO rooms VALUES ('r9')")
        assert refusal.value.code == "not_a_source"
        session.run("DROP VIEW counts; DROP MATERIALIZED VIEW rooms; DROP TABLE desks")
        session.run("ADVANCE TIME BY '1 d'")


def test_what_cannot_be_computed_is_not_created() -> None:
    with contextlib.closing(LocalSession("stream", 1)) as session:
        alarm = (
            "CREATE ALARM down AS SELECT site FROM sys_gateways WHERE NOT online SEVERITY 'warning'"
        )
        with pytest.raises(UnsupportedError, match="keeps none running"):
            session.run(alarm)
        session.run("CREATE SOURCE s (k TEXT); INSERT INTO s VALUES ('a')")
        assert session.run("SHOW ALARMS")[0].rows == ()
