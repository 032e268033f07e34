"""Options behind a query reach its recursions, survive a view's text, and are checked."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.choices import Compiled, Way
from streamsql.algebra.explain import choice_text
from streamsql.algebra.operators import Fixpoint, RecursionChoice, walk_relation
from streamsql.binder import BoundQuery, bind_query
from streamsql.binder.statements.options.recursion_options import MAX_NUMBER, VALUES
from streamsql.catalog.catalog import Catalog
from streamsql.errors import BindingError, QueryError, QuerySyntaxError, UnsupportedError
from streamsql.syntax import (
    CreateView,
    Explain,
    Query,
    Statement,
    Subscribe,
    parse_statement,
)
from tests.streamsql.from_text import catalog_of

RECURSIVE = """WITH RECURSIVE r(a, b) AS (
  SELECT src, dst FROM link UNION SELECT l.src, r.b FROM link l JOIN r ON l.dst = r.a)
SELECT a, b FROM r"""


def catalog_with(*views: str) -> Catalog:
    link = "CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE)"
    return catalog_of(link, *views, library=True)


def query_in(statement: Statement) -> Query:
    while isinstance(statement, Explain | Subscribe):
        statement = statement.inner
    if isinstance(statement, CreateView):
        statement = statement.query
    assert isinstance(statement, Query)
    return statement


def bound(text: str, *views: str) -> BoundQuery:
    return bind_query(query_in(parse_statement(text)), catalog_with(*views))


def choices(query: BoundQuery) -> list[RecursionChoice]:
    return [node.choice for node in walk_relation(query.plan) if isinstance(node, Fixpoint)]


names = {name: st.sampled_from(values) for name, values in VALUES.items()}
names["ship"] = st.one_of(names["ship"], st.integers(1, 10**9).map(lambda n: f"{n} us"))
NUMBERS = ("width", "capacity")
fields = st.fixed_dictionaries(
    {}, optional={**names, **dict.fromkeys(NUMBERS, st.integers(1, MAX_NUMBER).map(str))}
).filter(bool)


def clause(chosen: dict[str, str]) -> str:
    return "WITH (" + ", ".join(f"{name} = '{value}'" for name, value in chosen.items()) + ")"


def choice_of(chosen: dict[str, str]) -> RecursionChoice:
    values: dict[str, Any] = {k: v for k, v in chosen.items() if k not in NUMBERS}
    values["ship"] = values.get("ship", "auto").removesuffix(" us")
    return RecursionChoice(**values | {name: int(chosen.get(name, "0")) for name in NUMBERS})


@given(fields)
def test_round_trip(chosen: dict[str, str]) -> None:
    written = f"{RECURSIVE} {clause(chosen)}"
    wanted = [choice_of(chosen)]
    assert choices(bound(written)) == wanted
    assert choices(bound(f"({written})")) == wanted
    assert choices(bound(f"ISTREAM({written})")) == wanted
    assert choices(bound(f"SUBSCRIBE TO ({written}) WITH (SNAPSHOT)")) == wanted
    assert choices(bound(f"EXPLAIN (TYPE FEDERATED) {written}")) == wanted
    view = f"CREATE VIEW v (x, y) AS {written}"
    assert choices(bound("SELECT * FROM v", view)) == wanted
    assert choices(bound(view)) == wanted
    statement = parse_statement(written)
    assert statement.text == written
    definition = catalog_with(view).find("v")
    assert definition is not None
    assert definition.text == view


@given(fields, fields)
def test_the_reader_wins_option_by_option(view: dict[str, str], reader: dict[str, str]) -> None:
    definition = f"CREATE VIEW v AS {RECURSIVE} {clause(view)}"
    wanted = [choice_of({**view, **reader})]
    assert choices(bound(f"SELECT * FROM v {clause(reader)}", definition)) == wanted
    assert choices(bound(f"SUBSCRIBE TO v {clause(reader)}", definition)) == wanted
    outer = f"CREATE VIEW w AS SELECT * FROM v {clause(reader)}"
    assert choices(bound("SELECT * FROM w", definition, outer)) == wanted


def test_every_recursion_of_the_query_is_meant() -> None:
    found = choices(
        bound("SELECT * FROM reachable JOIN shortest_path USING (src, dst) WITH (ship = 'eager')")
    )
    assert found == [RecursionChoice(ship="eager")] * 2


def test_without_options_the_optimizer_chooses() -> None:
    assert choices(bound(RECURSIVE)) == [RecursionChoice()]
    assert choice_text(RecursionChoice()) == ""


@pytest.mark.parametrize("word", ["TRUE", "true", "'Yes'", "'true'"])
def test_truth_and_numbers_need_no_quotes(word: str) -> None:
    query = bound(f"{RECURSIVE} WITH (compiled = {word}, width = 7)")
    assert choices(query) == [RecursionChoice(compiled=Compiled.YES, width=7)]


@pytest.mark.parametrize(
    "text",
    [
        "SUBSCRIBE TO reachable WITH (SNAPSHOT, way = 'flood', PROGRESS)",
        "SUBSCRIBE SELECT * FROM reachable WITH (PROGRESS, SNAPSHOT, way = 'flood')",
        "SUBSCRIBE (SELECT * FROM reachable WITH (way = 'flood')) WITH (SNAPSHOT, PROGRESS)",
    ],
)
def test_subscriptions_take_both_kinds(text: str) -> None:
    statement = parse_statement(text)
    assert isinstance(statement, Subscribe)
    assert statement.snapshot
    assert statement.progress
    assert choices(bound(text)) == [RecursionChoice(way=Way.FLOOD)]


def test_without_recursion_they_have_no_effect() -> None:
    (warning,) = bound("SELECT src FROM link WITH (strategy = 'dred')").warnings
    assert "no recursion" in warning
    view = "CREATE VIEW v AS SELECT src FROM link WITH (strategy = 'dred')"
    (warning,) = bound("SELECT * FROM v", view).warnings
    assert "view 'v' has no recursion" in warning


@pytest.mark.parametrize(
    ("options", "idle", "reason"),
    [
        ("strategy = 'ranked', ship = '250 ms', width = 9", "ship, width have", "no annotations"),
        ("strategy = 'dred', annotations = 'bdd'", "annotations has", "'dred' keeps no"),
        ("strategy = 'relative', annotations = 'bdd'", "annotations has", "of its own"),
        ("strategy = 'relative', ship = 'witness'", "ship has", "ships lazily"),
        ("way = 'witness', ship = 'eager'", "ship has", "way = 'witness'"),
        (
            "way = 'witness', annotations = 'bdd', order = 'dfs'",
            "annotations, order have",
            "listed",
        ),
        ("strategy = 'absorption', order = 'rebuild'", "order has", "decision diagrams"),
        ("strategy = 'ranked', compiled = 'yes'", "compiled has", "no kernel"),
        ("ship = 'eager', compiled = 'yes'", "compiled has", "no kernel"),
        ("capacity = 9", "capacity has", "lazy"),
        ("way = 'annotations', ship = 'eager', capacity = 9", "capacity has", "lazy"),
        ("way = 'witness', capacity = 9", "capacity has", "lazy"),
    ],
)
def test_an_option_that_others_overrule_is_a_warning(options: str, idle: str, reason: str) -> None:
    (warning,) = bound(f"{RECURSIVE} WITH ({options})").warnings
    assert warning.startswith(idle)
    assert "no effect" in warning
    assert reason in warning


@pytest.mark.parametrize(
    "options",
    [
        "strategy = 'kernel', compiled = 'yes'",
        "compiled = 'yes', way = 'flood'",
        "way = 'annotations', ship = 'lazy', annotations = 'bdd', order = 'rebuild', width = 8",
        "way = 'witness', annotations = 'dnf'",
        "way = 'annotations', capacity = 10",
        "ship = '250 ms', capacity = 10",
        "strategy = 'relative', capacity = 10",
        "strategy = 'relative', ship = 'eager', width = 8",
        "strategy = 'dred', way = 'flood', compiled = 'no'",
    ],
)
def test_options_that_count_cause_no_warning(options: str) -> None:
    assert bound(f"{RECURSIVE} WITH ({options})").warnings == ()


WRONG: dict[str, tuple[type[QueryError], int, str, str, str]] = {
    "(strategi = 'dred')": (BindingError, 1, "strategi", "no option 'strategi'", "strategy?"),
    "(colour = 'red')": (BindingError, 1, "colour", "no option 'colour'", "strategy, way"),
    "(share = 'no')": (BindingError, 1, "share", "no option 'share'", "did you mean shared?"),
    "(strategy = 'rankd')": (BindingError, 12, "'rankd'", "no strategy 'rankd'", "'ranked'?"),
    "(strategy = 'counting')": (UnsupportedError, 12, "'counting'", "cycle", "ranked"),
    "(ship = 'sometimes')": (BindingError, 8, "'sometimes'", "no ship", "250 ms"),
    "(ship = '0 s')": (BindingError, 8, "'0 s'", "no ship", "interval"),
    "(width = '0')": (BindingError, 9, "'0'", "whole number", "64"),
    "(width = 'wide')": (BindingError, 9, "'wide'", "whole number", "64"),
    "(capacity = '0')": (BindingError, 12, "'0'", "a capacity is a whole number", "100"),
    "(width = 1, width = 2)": (QuerySyntaxError, 12, "width", "appears twice", ""),
    "(width 1)": (QuerySyntaxError, 7, "1", "expected =", "width = "),
    "(width = )": (QuerySyntaxError, 9, ")", "expected a value", "WITH (width"),
    "(width = 1,)": (QuerySyntaxError, 11, ")", "expected an option name", ""),
    "()": (QuerySyntaxError, 1, ")", "expected an option name", ""),
    "(width = 1) WHERE 1 = 2": (QuerySyntaxError, 12, "WHERE", "should end here", "last part"),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong(text: str) -> None:
    error, column, part, message, hint = WRONG[text]
    head = "SELECT *\nFROM reachable WITH "
    with pytest.raises(error, match=re.escape(message)) as caught:
        bound(head + text)
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.text) == (2, part)
    assert caught.value.span.column == len("FROM reachable WITH ") + 1 + column
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("SELECT * FROM (SELECT * FROM reachable WITH (width = 1)) AS q", 40),
        ("WITH (width = 1) SELECT * FROM reachable", 1),
        ("SELECT * FROM link UNION (SELECT * FROM link WITH (width = 1))", 46),
    ],
)
def test_misplaced(text: str, column: int) -> None:
    with pytest.raises(QuerySyntaxError, match="options") as caught:
        bound(text)
    assert caught.value.span is not None
    assert caught.value.span.column == column
    assert "WITH (strategy" in caught.value.hint


def test_a_views_options_are_checked_when_it_is_created() -> None:
    with pytest.raises(BindingError, match="no way 'air'"):
        catalog_with(f"CREATE VIEW v AS {RECURSIVE} WITH (way = 'air')")
