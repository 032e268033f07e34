"""Names in the catalog."""

import pytest

from streamsql.algebra.operators import SourceKind
from streamsql.binder import define
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import SourceDefinition, ViewDefinition
from streamsql.catalog.system import SITE_SOURCES, SYSTEM_SOURCES, SYSTEM_TABLES
from streamsql.data.schema import Schema
from streamsql.errors import BindingError
from streamsql.syntax import CreateSource, parse_script

SEAT = SourceDefinition("seat", SourceKind.STREAM, Schema.of(), options=(("connector", "motes"),))
ROOMS = SourceDefinition("rooms", SourceKind.TABLE, Schema.of())
VIEW = ViewDefinition("free", "SELECT * FROM seat")


def test_names_are_unique_whatever_their_case() -> None:
    catalog = Catalog((SEAT, ROOMS, VIEW))
    assert catalog.find("SEAT") is SEAT
    with pytest.raises(BindingError, match="source 'Seat' already exists"):
        catalog.define(ViewDefinition("Seat", ""))
    catalog.define(ViewDefinition("Seat", ""), replace=True)
    assert len(catalog) == 3 + len(SYSTEM_SOURCES)


def test_definitions_are_listed_by_kind() -> None:
    catalog = Catalog((SEAT, ROOMS, VIEW))
    assert catalog.sources == (SEAT, *SITE_SOURCES)
    assert catalog.tables == (ROOMS, *SYSTEM_TABLES)
    assert catalog.views == (VIEW,)
    assert [kind_of(d) for d in catalog][:3] == ["source", "table", "view"]
    assert SEAT.option("connector") == "motes"


def test_dropping_what_is_not_there_says_so() -> None:
    with pytest.raises(BindingError, match="nothing with the name 'x'"):
        Catalog().drop("x")


@pytest.mark.parametrize("system", SYSTEM_SOURCES, ids=lambda d: d.name)
def test_system_sources_are_always_there_and_nobody_changes_them(system: SourceDefinition) -> None:
    catalog = Catalog()
    assert catalog.find(system.name.upper()) is system
    assert system.name in catalog.names
    with pytest.raises(BindingError, match=f"{system.name} is a system source"):
        catalog.define(ViewDefinition(system.name, "SELECT 1"), replace=True)
    with pytest.raises(BindingError, match=f"{system.name} is a system source"):
        catalog.drop(system.name)
    copy = Catalog(tuple(catalog))
    assert len(copy) == len(catalog)


@pytest.mark.parametrize("system", SYSTEM_SOURCES, ids=lambda d: d.name)
def test_the_text_of_a_system_source_defines_it(system: SourceDefinition) -> None:
    other = system.text.replace(system.name, "other")
    (statement,) = parse_script(other)
    assert isinstance(statement, CreateSource)
    made = define(statement, Catalog())
    assert isinstance(made, SourceDefinition)
    assert made.schema == system.schema
    assert (made.key, made.ttl) == (system.key, system.ttl)


def test_a_library_view_returns_when_the_one_in_its_place_goes() -> None:
    library = ViewDefinition("free", "SELECT 1", library=True)
    catalog = Catalog((library,))
    catalog.define(VIEW)
    assert catalog.drop("free") is VIEW
    assert catalog.find("free") is library
    assert catalog.drop("free") is library
    assert catalog.find("free") is None
