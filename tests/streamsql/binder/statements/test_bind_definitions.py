"""CREATE statements become definitions."""

import pytest

from streamsql.algebra.operators import Scan, SourceKind
from streamsql.binder import NonTerminatingError, bind_query, define
from streamsql.catalog.catalog import Catalog
from streamsql.catalog.definitions import Definition, SourceDefinition, ViewDefinition
from streamsql.errors import BindingError
from streamsql.syntax import CreateSource, CreateView, parse_statement
from tests.streamsql.from_text import bound_query, catalog_of, query_of


def defined(text: str, catalog: Catalog | None = None) -> Definition:
    statement = parse_statement(text)
    assert isinstance(statement, CreateSource | CreateView)
    return define(statement, Catalog() if catalog is None else catalog)


def test_stream() -> None:
    text = (
        "CREATE SOURCE Seat (desk TEXT, at TIMESTAMP, KEY (desk), "
        "WATERMARK FOR at AS at - INTERVAL '5 s') WITH (connector = 'motes', ttl = '90 s')"
    )
    definition = defined(text)
    assert isinstance(definition, SourceDefinition)
    assert definition.scan() == Scan(
        "seat", SourceKind.STREAM, definition.schema, (0,), time_column=1, ttl=90_000_000
    )
    assert definition.lateness == 5_000_000
    assert definition.option("connector") == "motes"
    assert definition.option("ttl") == "90 s"
    assert definition.text == text


@pytest.mark.parametrize(
    ("text", "kind", "key", "time_column"),
    [
        ("CREATE LINK SOURCE l (src TEXT, dst TEXT, ts TIMESTAMP)", SourceKind.LINK, (0, 1), 2),
        ("CREATE LINK SOURCE l (a TEXT, b TEXT, n INT, KEY (a, b, n))", "link", (0, 1, 2), None),
        ("CREATE SOURCE s (ts TEXT, a TEXT)", "stream", (), None),
        ("CREATE SOURCE s (a TEXT, ts TIMESTAMP)", "stream", (), 1),
        ("CREATE TABLE t (a TEXT PRIMARY KEY, ts TIMESTAMP)", "table", (0,), None),
        ("CREATE TABLE t (a TEXT) WITH (source = 'csv', path = 'a')", "table", (), None),
    ],
)
def test_key_and_time(
    text: str, kind: SourceKind, key: tuple[int, ...], time_column: int | None
) -> None:
    definition = defined(text)
    assert isinstance(definition, SourceDefinition)
    found = (definition.kind, definition.key, definition.time_column)
    assert found == (kind, key, time_column)


def test_view_keeps_its_text() -> None:
    catalog = catalog_of("CREATE SOURCE s (a TEXT, n INTEGER)", library=True)
    view = defined("CREATE VIEW v (b) AS\n  SELECT a -- the name\n  FROM s", catalog)
    assert view == ViewDefinition(
        name="v",
        query="SELECT a -- the name\n  FROM s",
        columns=("b",),
        text="CREATE VIEW v (b) AS\n  SELECT a -- the name\n  FROM s",
    )


def test_a_view_may_take_the_name_of_a_library_view() -> None:
    catalog = catalog_of(
        "CREATE SOURCE s (a TEXT); CREATE VIEW reachable AS SELECT a FROM s", library=True
    )
    found = catalog.find("reachable")
    assert isinstance(found, ViewDefinition)
    assert not found.library
    with pytest.raises(BindingError, match="already exists"):
        defined("CREATE VIEW reachable AS SELECT a FROM s", catalog)


WALK = """
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE);
CREATE RECURSIVE VIEW walk (src, dst, cost) AS
  SELECT src, dst, cost FROM link
  UNION SELECT l.src, w.dst, l.cost + w.cost FROM link l JOIN walk w ON l.dst = w.src;
"""


def test_a_view_that_needs_a_MIN_can_be_made_but_not_read_without() -> None:  # noqa: N802
    catalog = catalog_of(WALK, library=True)
    good = bound_query("SELECT src, dst, MIN(cost) FROM walk GROUP BY src, dst", catalog)
    assert good.plan is not None
    bad = query_of("SELECT *\nFROM walk WHERE cost < 10")
    with pytest.raises(NonTerminatingError) as caught:
        bind_query(bad, catalog)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.text) == (2, "walk")


def test_views_that_read_each_other_are_found_out() -> None:
    catalog = catalog_of("CREATE SOURCE s (a TEXT); CREATE VIEW v AS SELECT * FROM s", library=True)
    catalog.define(defined("CREATE VIEW w AS SELECT * FROM v", catalog))
    catalog.drop("v")
    catalog.define(ViewDefinition(name="v", query="SELECT * FROM w"))
    statement = query_of("SELECT * FROM w")
    with pytest.raises(BindingError, match="w -> v -> w"):
        bind_query(statement, catalog)


def test_a_view_whose_source_is_gone_says_so_where_it_is_read() -> None:
    catalog = catalog_of("CREATE SOURCE s (a TEXT); CREATE VIEW v AS SELECT * FROM s", library=True)
    catalog.drop("s")
    statement = query_of("SELECT 1\nFROM v")
    with pytest.raises(BindingError, match="in view 'v'") as caught:
        bind_query(statement, catalog)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, 6)


WRONG_OPTIONS = [
    ("SOURCE s (a TEXT) WITH (ttll = '5 s')", 25, "no option 'ttll'", "did you mean ttl?"),
    ("SOURCE s (a TEXT) WITH (wrapper = 'calendar')", 25, "feed sources", "connector = 'calendar'"),
    ("SOURCE s (a TEXT) WITH (topic = 'seat')", 25, "needs the option connector", "connector ="),
    ("SOURCE s (a TEXT, rid TEXT) WITH (colocate = 'a, rd')", 35, "names 'rd'", "rid?"),
    ("SOURCE s (a TEXT) WITH (colocate = '')", 25, "names ''", "columns: a"),
    (
        "SOURCE s (a TEXT) WITH (path = 'a.csv')",
        25,
        "path is the location of a table's rows",
        "CREATE TABLE",
    ),
    ("LINK SOURCE l (a TEXT, b TEXT) WITH (smple = '5 s')", 38, "no option 'smple'", "known:"),
    (
        "TABLE t (a TEXT) WITH (connector = 'motes')",
        24,
        "only a source has a connector, but this is a table",
        "CREATE SOURCE",
    ),
    ("TABLE t (a TEXT) WITH (colocate = 'a')", 24, "in one place", "remove colocate"),
    ("TABLE t (a TEXT) WITH (refresh = '1 s')", 24, "refresh needs the option source", "source = "),
    ("TABLE t (a TEXT) WITH (color = 'red')", 24, "no option 'color'", "known: delimiter"),
    ("TABLE t (a TEXT) WITH (source = 'csv')", 24, "csv needs the option path", "path = '…'"),
    ("TABLE t (a TEXT) WITH (source = 'sql', table = 't')", 24, "needs the option url", "url"),
    ("TABLE t (a TEXT) WITH (source = 'csv', pth = 'x')", 40, "no option 'pth'", "mean path?"),
    ("TABLE t (a TEXT) WITH (source = 'json', path = 'x', header = 'true')", 53, "json have", ""),
    ("TABLE t (a TEXT) WITH (source = 'csv', path = '')", 40, "path: an empty text", "rooms.csv"),
    ("TABLE t (a TEXT) WITH (source = 'csv', path = 'x', header = 'maybe')", 52, "not true", "fa"),
    ("TABLE t (a TEXT) WITH (source = 'csv', path = 'x', delimiter = '::')", 52, "one ASCII", "';"),
    ("TABLE t (a TEXT) WITH (source = 'csv', path = 'x', refresh = '9 ms')", 52, "than 1 s", "10"),
    ("TABLE t (a TEXT) WITH (source = 'csv', path = 'x', refresh = 'now')", 52, "duration", "10"),
    (
        "TABLE t (a TEXT) WITH (source = 'sql', url = 'x', table = 't')",
        40,
        "not an address",
        "sqlite",
    ),
]


@pytest.mark.parametrize(("text", "column", "message", "hint"), WRONG_OPTIONS)
def test_wrong_options_are_refused_where_they_stand(
    text: str, column: int, message: str, hint: str
) -> None:
    with pytest.raises(BindingError) as caught:
        defined(f"CREATE\n{text}")
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (2, column)


@pytest.mark.parametrize(
    "text",
    [
        "SOURCE s (a TEXT, b TEXT) WITH (connector = 'x', ttl = '1 h 30 min', colocate = 'A, b')",
        "TABLE t (a TEXT)",
        "TABLE t (a TEXT) WITH (source = 'CSV', path = 'a', delimiter = 'tab', header = 'off')",
        "TABLE t (a TEXT) WITH (source = 'sql', url = 'sqlite:///a', table = 't', refresh = '60')",
    ],
)
def test_right_options(text: str) -> None:
    defined(f"CREATE {text}")
