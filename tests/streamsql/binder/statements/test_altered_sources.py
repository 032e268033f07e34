"""ALTER SOURCE: which columns may come and go, and what stands in the catalog afterwards."""

import re

import pytest

from streamsql.binder import altered_source, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import SourceDefinition
from streamsql.errors import QueryError
from streamsql.syntax import AlterSource, parse_statement
from tests.streamsql.from_text import catalog_of, unmarked

CATALOG = """
CREATE LINK SOURCE Hop (src TEXT, dst TEXT, "Cost" DOUBLE FROM 'etx' SCALE 0.5, room TEXT,
  at TIMESTAMP, WATERMARK FOR at AS at - INTERVAL '5 s', KEY (src, dst))
  WITH (connector = 'mqtt', topic = 'links/{src}', ttl = '90 s', colocate = 'room');
CREATE SOURCE alone (a TEXT);
CREATE TABLE desks (desk TEXT PRIMARY KEY);
"""


def altered(text: str, catalog: Catalog) -> SourceDefinition:
    statement = parse_statement(text)
    assert isinstance(statement, AlterSource)
    definition = define(altered_source(statement, catalog), catalog)
    assert isinstance(definition, SourceDefinition)
    return definition


def test_a_column_more_and_one_less() -> None:
    catalog = catalog_of(CATALOG)
    wider = altered("ALTER SOURCE hop ADD COLUMN rssi INTEGER UNIT 'dBm' FROM 'r'", catalog)
    assert wider.schema.names == ("src", "dst", "Cost", "room", "at", "rssi")
    assert (wider.version, wider.ttl, wider.lateness) == (2, 90_000_000, 5_000_000)
    catalog.define(wider, replace=True)
    narrower = altered('ALTER SOURCE hop DROP "Cost"', catalog)
    assert narrower.schema.names == ("src", "dst", "room", "at", "rssi")
    assert narrower.version == 3
    assert narrower.text == (
        "CREATE LINK SOURCE hop (\n  src TEXT,\n  dst TEXT,\n  room TEXT,\n  at TIMESTAMP,\n"
        "  rssi INTEGER FROM 'r' UNIT 'dBm',\n  KEY (src, dst),\n"
        "  WATERMARK FOR at AS at - INTERVAL '5 s'\n) WITH (connector = 'mqtt', "
        "topic = 'links/{src}', ttl = '90 s', colocate = 'room')"
    )


def test_what_the_lake_keeps_is_set_and_nothing_else_changes() -> None:
    catalog = catalog_of(CATALOG)
    before = catalog.find("hop")
    assert isinstance(before, SourceDefinition)
    kept = altered("ALTER SOURCE hop SET (keep = '30 days', rollup = '1 h, 1 min')", catalog)
    assert (kept.option("keep"), kept.option("rollup")) == ("30 days", "1 h, 1 min")
    assert kept.option("topic") == before.option("topic")
    assert (kept.schema, kept.key, kept.ttl, kept.units) == (
        before.schema,
        before.key,
        before.ttl,
        before.units,
    )
    assert kept.text.endswith("colocate = 'room', keep = '30 days', rollup = '1 h, 1 min')")
    catalog.define(kept, replace=True)
    shorter = altered("ALTER SOURCE hop SET (keep = 'no')", catalog)
    assert (shorter.option("keep"), shorter.option("rollup")) == ("no", "1 h, 1 min")


REFUSED = [
    ("ALTER SOURCE hop SET («ttl» = '5 s')", "cannot be set", "keep and rollup can"),
    ("ALTER SOURCE hop SET («keep» = '5 min')", "shorter than a day", "keep = '30 days'"),
    ("ALTER SOURCE hop SET («rollup» = '5 min')", "is no roll-up", "rollup = '1 min, 1 h'"),
    ("ALTER SOURCE «hopp» DROP room", "there is no source", "hop"),
    ("ALTER SOURCE «desks» DROP desk", "there is no source", "it is a table"),
    ("ALTER SOURCE hop DROP «Cost2»", "there is no column", "did you mean Cost?"),
    ("ALTER SOURCE hop DROP «src»", "part of the key", "OR REPLACE"),
    ("ALTER SOURCE hop DROP «at»", "event time", "OR REPLACE"),
    ("ALTER SOURCE hop DROP «room»", "colocate", "OR REPLACE"),
    ("ALTER SOURCE alone DROP «a»", "the only one", "OR REPLACE"),
    ("ALTER SOURCE hop ADD «room» TEXT", "already", "another name"),
    ("ALTER SOURCE hop ADD «x» TEXT PRIMARY KEY", "key", "OR REPLACE"),
    ("ALTER SOURCE hop ADD x TEXT SCALE «2»", "for numbers", "SCALE 0.1"),
    ("ALTER SOURCE hop ADD x DOUBLE UNIT «'celsus'»", "celsus", "UNIT 'Cel'"),
    ("ALTER SOURCE alone ADD x DOUBLE «UNIT» 'Cel'", "no connector", "connector ="),
    ("ALTER SOURCE hop «RENAME» room TO r", "ADD, DROP or SET", "one of ADD, DROP, SET"),
    ("ALTER SOURCE hop ADD x TEXT«,» y TEXT", "should end here", "one column"),
    ("«ALTER» TABLE desks DROP desk", "not a StreamSQL statement", ""),
]


@pytest.mark.parametrize(
    ("marked", "message", "hint"),
    REFUSED,
    ids=[re.sub(r"\W+", "-", unmarked(case[0])[0]) for case in REFUSED],
)
def test_place_and_hint(marked: str, message: str, hint: str) -> None:
    text, place = unmarked(marked)
    with pytest.raises(QueryError) as caught:
        altered(text, catalog_of(CATALOG))
    error = caught.value
    assert error.span is not None
    assert (error.span.line, error.span.column, error.span.text) == place
    assert message in error.message
    assert hint in error.hint
