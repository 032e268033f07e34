"""Which definition DROP means, and what keeps one from being dropped."""

import pytest

from federated_optimizer.coordinator.statements import definition_drops
from federated_optimizer.coordinator.statements.definition_drops import (
    Reader,
    dropped_definition,
    refuse_used,
    users_of,
)
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError
from streamsql.syntax import Drop, parse_statement
from tests.streamsql.from_text import catalog_of

DEFINITIONS = """
CREATE SOURCE r (k TEXT, v INTEGER);
CREATE VIEW w AS SELECT k FROM r;
CREATE VIEW x AS SELECT k FROM w;
"""


@pytest.fixture
def catalog() -> Catalog:
    return catalog_of(DEFINITIONS, library=True)


def drop(text: str) -> Drop:
    statement = parse_statement(text)
    assert isinstance(statement, Drop)
    return statement


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("DROP SOURCE nothing", "there is no source 'nothing'", "SHOW SOURCES lists them"),
        ("DROP AGGREGATE nothing", "there is no aggregate 'nothing'", "SHOW FUNCTIONS lists"),
        ("DROP TABLE r", "there is no table 'r'", "it is a source"),
        ("DROP VIEW reachable", "'reachable' is a library view", "the same name replaces it"),
        ("DROP SOURCE sys_stream", "is a system source", ""),
    ],
)
def test_what_cannot_be_dropped(catalog: Catalog, text: str, message: str, hint: str) -> None:
    with pytest.raises(BindingError, match=message) as refused:
        dropped_definition(drop(text), catalog)
    assert hint in refused.value.hint
    assert refused.value.span is not None


def test_if_exists_accepts_what_is_not_there(catalog: Catalog) -> None:
    assert dropped_definition(drop("DROP SOURCE IF EXISTS nothing"), catalog) is None


def test_texts_that_name_neither_a_definition_nor_a_view_over_it_are_not_parsed(
    catalog: Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[str] = []

    def noting(text: str) -> object:
        parsed.append(text)
        return parse_statement(text)

    monkeypatch.setattr(definition_drops, "parse_statement", noting)
    definition = catalog.find("r")
    assert definition is not None
    others = [Reader("query", f"q{n}", f"SELECT {n} AS big") for n in range(50)]
    mine = Reader("query", "mine", "SELECT K FROM X")
    assert users_of(definition, catalog, [*others, mine]) == ["query mine", "view w", "view x"]
    assert not [text for text in parsed if "big" in text]


def test_users_name_definitions_as_sql_allows() -> None:
    odd = catalog_of('CREATE SOURCE "A ""b" (k TEXT)')
    definition = odd.find('a "b')
    assert definition is not None
    readers = [
        Reader("query", "q1", 'SELECT k FROM "A ""b"'),
        Reader("query", "q2", "SELECT 1 AS a"),
    ]
    assert users_of(definition, odd, readers) == ["query q1"]
    link = catalog_of("CREATE LINK SOURCE link (src TEXT, dst TEXT)", library=True)
    source = link.find("link")
    assert source is not None
    over = Reader("query", "q3", "SELECT dst FROM reachable")
    assert users_of(source, link, [over]) == ["query q3"]


def test_users_read_directly_and_through_views(catalog: Catalog) -> None:
    statement = drop("DROP SOURCE r")
    definition = dropped_definition(statement, catalog)
    assert definition is not None
    readers = [Reader("alarm", "a", "SELECT k FROM x"), Reader("query", "q1", "SELECT 1 AS one")]
    users = users_of(definition, catalog, readers)
    assert users == ["alarm a", "view w", "view x"]
    with pytest.raises(BindingError, match="source 'r' is used by alarm a, view w") as refused:
        refuse_used(statement, definition, users)
    assert refused.value.hint == 'DROP ALARM "a" first'
    refuse_used(statement, definition, [])


def test_users_call_functions_directly_and_through_bodies() -> None:
    bodies = """
    CREATE SOURCE r (k TEXT, v DOUBLE);
    CREATE FUNCTION f(v DOUBLE) RETURNS DOUBLE AS (v + 1);
    CREATE AGGREGATE g(v DOUBLE) RETURNS DOUBLE AS (MAX(F(v)));
    CREATE AGGREGATE h(v DOUBLE) RETURNS DOUBLE AS (MIN(v));
    CREATE VIEW w AS SELECT g(v) AS m FROM r;
    """
    catalog = catalog_of(bodies)
    definition = catalog.find("f")
    assert definition is not None
    readers = [
        Reader("query", "q1", "SELECT m FROM w"),
        Reader("query", "q2", "SELECT h(v) FROM r"),
    ]
    assert users_of(definition, catalog, readers) == ["query q1", "view w", "aggregate g"]
