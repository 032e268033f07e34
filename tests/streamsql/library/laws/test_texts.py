"""The library's texts: complete, explained, and the same after being read back."""

import re
from importlib import resources
from pathlib import Path

import pytest

from streamsql.binder import bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import ViewDefinition
from streamsql.errors import BindingError
from streamsql.library import library_views
from streamsql.syntax import CreateSource, CreateView, parse_script, parse_statement
from tests.streamsql.from_text import query_of

VIEWS = library_views()


def test_every_file_is_a_view() -> None:
    files = {f.name for f in resources.files("streamsql.library").iterdir()}
    texts = {name for name in files if name.endswith(".sql")}
    assert {f"{view.name}.sql" for view in VIEWS} == texts
    assert len(VIEWS) >= 26


@pytest.mark.parametrize("view", VIEWS, ids=[view.name for view in VIEWS])
def test_text(view: ViewDefinition) -> None:
    assert view.library
    assert re.match(r"-- \w", view.text)
    assert "Reads " in view.text.replace("\n-- ", " ")
    statement = parse_statement(view.text)
    assert isinstance(statement, CreateView)
    assert statement.name.text == view.name
    assert statement.query.text == view.query
    assert len(view.columns) == len(set(view.columns)) > 0


def test_without_its_relations_a_view_says_what_is_missing() -> None:
    statement = query_of("SELECT * FROM cycles")
    with pytest.raises(
        BindingError, match=r"in view 'cycles'.*in view 'reachable'.*'link'"
    ) as found:
        bind_query(statement, Catalog(VIEWS))
    assert "library view reachable reads link(src, dst); create" in found.value.hint


POSITIONS = {"last_sighting", "radio_map_position", "strongest_room", "weighted_centroid"}
"""Views of what receivers hear of badges; the sample building has detectors instead."""
BRICK = {"brick_equipment", "brick_floors", "brick_points", "brick_rooms"}
"""Views of a Brick model, which the sample building has none of."""


def test_all_views_bind_over_the_sample_building() -> None:
    catalog = catalog_of("building.sql")
    unbound = {view.name for view in VIEWS if missing(view, catalog) is not None}
    assert unbound == POSITIONS | BRICK


def test_views_over_links_bind_over_a_trace() -> None:
    catalog = catalog_of("trace.sql")
    hints = [hint for view in VIEWS if (hint := missing(view, catalog)) is not None]
    assert len(VIEWS) - len(hints) >= 15
    assert all("create a source, table or view with the missing name" in hint for hint in hints)


def missing(view: ViewDefinition, catalog: Catalog) -> str | None:
    """Return the hint of a view that does not bind, else None."""
    statement = query_of(f"SELECT * FROM {view.name}")
    try:
        bind_query(statement, catalog)
    except BindingError as error:
        return error.hint
    return None


def catalog_of(name: str) -> Catalog:
    catalog = Catalog(VIEWS)
    text = (Path(__file__).parents[4] / "deploy" / "schema" / name).read_text(encoding="utf-8")
    for statement in parse_script(text):
        assert isinstance(statement, CreateSource | CreateView)
        catalog.define(define(statement, catalog))
    return catalog
