"""Names in the catalog."""

import pytest

from streamsql.algebra.operators import SourceKind
from streamsql.catalog.catalog import Catalog, kind_of
from streamsql.catalog.definitions import SourceDefinition, ViewDefinition
from streamsql.data.schema import Schema
from streamsql.errors import BindingError

SEAT = SourceDefinition("seat", SourceKind.STREAM, Schema.of(), options=(("wrapper", "motes"),))
ROOMS = SourceDefinition("rooms", SourceKind.TABLE, Schema.of())
VIEW = ViewDefinition("free", "SELECT * FROM seat")


def test_names_are_unique_whatever_their_case() -> None:
    catalog = Catalog((SEAT, ROOMS, VIEW))
    assert catalog.find("SEAT") is SEAT
    with pytest.raises(BindingError, match="source 'Seat' exists already"):
        catalog.define(ViewDefinition("Seat", ""))
    catalog.define(ViewDefinition("Seat", ""), replace=True)
    assert len(catalog) == 3


def test_definitions_are_listed_by_kind() -> None:
    catalog = Catalog((SEAT, ROOMS, VIEW))
    assert (catalog.sources, catalog.tables, catalog.views) == ((SEAT,), (ROOMS,), (VIEW,))
    assert [kind_of(d) for d in catalog] == ["source", "table", "view"]
    assert SEAT.option("wrapper") == "motes"


def test_dropping_what_is_not_there_says_so() -> None:
    with pytest.raises(BindingError, match="nothing of the name 'x'"):
        Catalog().drop("x")
