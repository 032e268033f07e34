"""The library's texts: complete, explained, and the same after being read back."""

import re
from importlib import resources

import pytest

from streamsql.binder import bind_query
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import ViewDefinition
from streamsql.errors import BindingError
from streamsql.library import library_views
from streamsql.syntax import CreateView, Query, parse_statement

VIEWS = library_views()


def test_every_file_is_a_view() -> None:
    files = {f.name for f in resources.files("streamsql.library").iterdir()}
    texts = {name for name in files if name.endswith(".sql")}
    assert {f"{view.name}.sql" for view in VIEWS} == texts
    assert len(VIEWS) >= 15


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
    statement = parse_statement("SELECT * FROM cycles")
    assert isinstance(statement, Query)
    with pytest.raises(BindingError, match=r"in view 'cycles'.*in view 'reachable'.*'link'"):
        bind_query(statement, Catalog(VIEWS))
