"""A catalog of version 0.1 names wrappers; opening it lets connectors feed its sources."""

import sqlite3
from pathlib import Path

import msgspec
import pytest

from federated_optimizer.coordinator.statements.source_listings import source_row
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.schema import catalog_schema as tables
from streamsql.catalog.definitions import SourceDefinition
from streamsql.mapping.source_mapping import PayloadFormat
from tests.streamsql.from_text import catalog_of

COLUMNS = "(mid TEXT, kg DOUBLE, ts TIMESTAMP, KEY (mid), WATERMARK FOR ts AS ts - INTERVAL '5 s')"


def former(text: str, name: str = "seat") -> dict[str, object]:
    """Return a definition as version 0.1 stored it: it knew neither mappings nor versions."""
    # What is not of the wrapper is bound as it was then.
    bare = text.partition(" WITH (")[0] + " WITH (ttl = '90 s')"
    definition = catalog_of(bare).find(name)
    assert isinstance(definition, SourceDefinition)
    plain = msgspec.to_builtins(definition)
    del plain["mapping"], plain["version"]
    options = text.partition(" WITH (")[2].rstrip(")").split(", ")
    pairs = [option.replace("'", "").split(" = ") for option in options]
    return {**plain, "options": pairs, "text": text}


def opened_anew(path: Path, *bodies: dict[str, object]) -> list[SourceDefinition]:
    """Store definitions as version 0.1 did, and return what a coordinator of today finds."""
    CatalogStore(f"sqlite:///{path}")
    with sqlite3.connect(path) as connection:
        before = tables.MIGRATIONS.index(tables._migrate_wrappers)
        connection.execute("UPDATE pando_schema SET version = ?", (before,))
        connection.executemany(
            "INSERT INTO pando_definitions (name, kind, body) VALUES (?, 'source', ?)",
            [(body["name"], msgspec.json.encode(body)) for body in bodies],
        )
    found = CatalogStore(f"sqlite:///{path}").definitions()
    return [each for each in found if isinstance(each, SourceDefinition)]


def test_sources_of_wrappers_are_those_of_connectors(tmp_path: Path) -> None:
    seat = former(f"CREATE SOURCE Seat {COLUMNS} WITH (wrapper = 'motes', ttl = '90 s')")
    plain = former("CREATE SOURCE plain (a TEXT) WITH (ttl = '90 s')", "plain")
    found, other = opened_anew(tmp_path / "catalog.db", seat, plain)
    assert found.text == f"CREATE SOURCE Seat {COLUMNS} WITH (connector = 'motes', ttl = '90 s')"
    assert found.mapping is not None
    assert (found.mapping.connector, found.mapping.endpoint) == ("motes", "")
    assert found.mapping.format == PayloadFormat.FIELDS
    assert found.version == 1
    assert found.option("wrapper") is None
    before = msgspec.convert(seat, SourceDefinition)
    assert found.scan() == before.scan(), "queries over it are as they were"
    assert found.lateness == before.lateness
    assert (other.mapping, other.version) == (None, 0)


def test_versions_go_on_where_a_declared_source_had_that_name(tmp_path: Path) -> None:
    path = tmp_path / "catalog.db"
    store = CatalogStore(f"sqlite:///{path}")
    store.claim(0)
    assert [store.next_source_version("seat") for _ in range(3)] == [1, 2, 3]
    seat = former(f"CREATE SOURCE Seat {COLUMNS} WITH (wrapper = 'motes', ttl = '90 s')")
    (found,) = opened_anew(path, seat)
    assert found.version == 4


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("motes", (("topic", "seatsensor"),)),
        ("soft_sensors", (("topic", "seatsensor"),)),
        ("replay", ()),
        ("calendar", ()),
    ],
)
def test_topics_are_kept_where_a_connector_has_several(
    tmp_path: Path, kind: str, options: tuple[tuple[str, str], ...]
) -> None:
    text = f"CREATE SOURCE seat {COLUMNS} WITH (wrapper = '{kind}', topic = 'seatsensor')"
    (found,) = opened_anew(tmp_path / "catalog.db", former(text))
    assert found.mapping is not None
    assert found.mapping.options == options


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("CREATE SOURCE seat …", "seat"),
        ("DROP SOURCE seat", "its statement is no CREATE SOURCE"),
        ("CREATE SOURCE seat (mid TEXT)", "its statement names no connector"),
        ("CREATE SOURCE seat (mid TEXT) WITH (wrapper = 'motes', tll = '9 s')", "tll"),
    ],
)
def test_what_cannot_be_used_any_more_stays_as_it_is_and_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str, why: str
) -> None:
    body = {**former(f"CREATE SOURCE seat {COLUMNS} WITH (wrapper = 'motes')"), "text": text}
    (found,) = opened_anew(tmp_path / "catalog.db", body)
    assert (found.mapping, found.version, found.text) == (None, 0, text)
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    said = record.getMessage()
    assert said.startswith("source seat: no connector feeds it: version 0.1 stored it with wrapper")
    assert why in said
    assert "write CREATE OR REPLACE SOURCE seat (…) WITH (connector = …)" in said
    assert source_row(found, ())[-1] == said.removeprefix("source seat: "), "SHOW SOURCES, too"
