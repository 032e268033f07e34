"""EXPLAIN WHY, WHAT IF DELETE and CONFIDENCE: parsed, typed, and refused where they are wrong."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamsql.algebra.explain import explain_plan
from streamsql.binder import (
    BoundConfidence,
    BoundWhatIf,
    BoundWhy,
    Deletion,
    bind_confidence,
    bind_deletions,
    bind_what_if,
    bind_why,
)
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import Row, coerce
from streamsql.errors import QueryError
from streamsql.syntax import (
    ExplainConfidence,
    ExplainWhatIf,
    ExplainWhy,
    parse_statement,
)
from tests.streamsql.from_text import catalog_of

SOURCES = """
CREATE LINK SOURCE link (src TEXT, dst TEXT, cost DOUBLE, pdr DOUBLE, ts TIMESTAMP, KEY (src, dst));
CREATE TABLE machines (mid TEXT PRIMARY KEY, level INTEGER);
"""


def catalog() -> Catalog:
    return catalog_of(SOURCES, library=True)


def bound(text: str) -> BoundWhy | BoundWhatIf | BoundConfidence:
    statement = parse_statement(text)
    assert statement.text == text
    match statement:
        case ExplainWhy():
            return bind_why(statement, catalog())
        case ExplainWhatIf():
            return bind_what_if(statement, catalog())
        case ExplainConfidence():
            return bind_confidence(statement, catalog())
        case _:
            pytest.fail(f"{text} is no question")


def why(text: str) -> BoundWhy:
    found = bound(text)
    assert isinstance(found, BoundWhy)
    return found


def what_if(text: str) -> BoundWhatIf:
    found = bound(text)
    assert isinstance(found, BoundWhatIf)
    return found


def test_why() -> None:
    found = why("EXPLAIN WHY (SELECT src, dst FROM reachable WHERE src = 'a') ROW ('a', 'b')")
    assert found.row == ("a", "b")
    assert (found.limit, found.confidence) == (10, None)
    assert found.query.schema.names == ("src", "dst")


def test_why_with_options() -> None:
    found = why("EXPLAIN WHY reachable ROW ('a', 'b') WITH (limit = 3, confidence = 'Link.pdr')")
    assert found.limit == 3
    assert found.confidence is not None
    assert (found.confidence.definition.name, found.confidence.column) == ("link", 3)


def test_the_query_may_have_options_of_its_own() -> None:
    found = why(
        "EXPLAIN WHY (SELECT * FROM reachable WITH (strategy = 'ranked')) ROW ('a', 'b') "
        "WITH (limit = 2)"
    )
    assert found.limit == 2
    assert "with strategy=ranked" in explain_plan(found.query.plan)


def test_values_take_the_columns_types() -> None:
    text = "EXPLAIN WHY (SELECT src, cost, ts, cost > 1, NULL FROM link) ROW ({})"
    row = why(text.format("'a', 1 + 1, '2026-01-01T00:00:01Z', TRUE, NULL")).row
    assert row == ("a", 2.0, 1767225601000000, True, None)
    assert isinstance(row[1], float)


numbers = st.one_of(st.integers(-(2**40), 2**40), st.floats(-1e9, 1e9, allow_subnormal=False))


@given(st.text("ab'\"-; \n", max_size=6), numbers, st.booleans())
def test_any_row_round_trips(text: str, number: float, truth: bool) -> None:
    values = f"'{text.replace(chr(39), chr(39) * 2)}', {number!r}, {truth}"
    row = why(f"EXPLAIN WHY (SELECT src, cost, cost > 1 FROM link) ROW ({values})").row
    assert row == (text, float(number), truth)


def test_what_if() -> None:
    found = what_if(
        "EXPLAIN WHAT IF DELETE link('a', 'b'), FROM link(*, 'c', NULL, 0.5), machines('m1') "
        "FOR (SELECT r.dst, m.level FROM reachable r JOIN machines m ON m.mid = r.dst)"
    )
    values = [d.values for d in found.deletions if isinstance(d, Deletion)]
    assert values == [
        ("a", "b"),
        (None, "c", None, 0.5),
        ("m1",),
    ]
    rows: dict[str, list[Row]] = {
        "link": [("a", "b", 1.0, 0.9, 0), ("b", "c", 1.0, 0.5, 0), ("b", "c", 1.0, 0.6, 0)],
        "machines": [("m1", 2), ("m2", 2)],
    }
    chosen = [row for name in rows for row in rows[name] if found.chosen(name, row)]
    assert chosen == [("a", "b", 1.0, 0.9, 0), ("b", "c", 1.0, 0.5, 0), ("m1", 2)]
    assert not found.chosen("other", ("a", "b", 1.0, 0.9, 0))


def test_what_if_a_node_dies_means_rows_with_it_in_their_key() -> None:
    found = what_if("EXPLAIN WHAT IF DELETE NODE 'b', GATEWAY 'gw-1' FOR (SELECT * FROM reachable)")
    rows: list[Row] = [("a", "b", 1.0, 0.9, 0), ("b", "c", 1.0, 0.5, 0), ("c", "d", 1.0, 0.6, 0)]
    assert [found.chosen("link", row) for row in rows] == [True, True, False]
    assert not found.chosen("machines", ("b", 1))  # a stored row does not die with a node
    number = what_if("EXPLAIN WHAT IF DELETE node 1 FOR (SELECT * FROM reachable)")
    assert not number.chosen("link", ("1", "2", 1.0, 0.9, 0))


@given(
    st.lists(st.sampled_from([None, "a", "b"]), min_size=1, max_size=2),
    st.tuples(st.sampled_from("ab"), st.sampled_from("ab")),
)
def test_patterns_compare_leading_columns(pattern: list[str | None], ends: tuple[str, str]) -> None:
    written = ", ".join("*" if value is None else f"'{value}'" for value in pattern)
    found = what_if(f"EXPLAIN WHAT IF DELETE link({written}) FOR (SELECT * FROM reachable)")
    row = (*ends, 1.0, 0.5, 0)
    wanted = all(p is None or p == e for p, e in zip(pattern, ends, strict=False))
    assert found.chosen("link", row) == wanted


def test_what_if_without_a_query_is_about_those_that_run() -> None:
    statement = parse_statement(
        "EXPLAIN (FORMAT JSON) WHAT IF DELETE Link('a', *), link(NULL, 'b')"
    )
    assert isinstance(statement, ExplainWhatIf)
    assert (statement.inner, statement.named, statement.format) == (None, None, "json")
    first, second = bind_deletions(statement, catalog())
    assert isinstance(first, Deletion)
    assert isinstance(second, Deletion)
    assert (first.definition.name, first.values, second.values) == (
        "link",
        ("a", None),
        (None, "b"),
    )


@pytest.mark.parametrize(
    ("deletion", "column", "message", "hint"),
    [
        ("lnk('a')", 24, "no source or table 'lnk'", "did you mean link?"),
        ("reachable('a')", 24, "is a view", "SHOW SOURCES"),
        ("link(*, *, 'x')", 35, "column 'cost'", "DOUBLE"),
    ],
)
def test_deletions_that_fit_nothing(deletion: str, column: int, message: str, hint: str) -> None:
    statement = parse_statement(f"EXPLAIN WHAT IF DELETE {deletion}")
    assert isinstance(statement, ExplainWhatIf)
    with pytest.raises(QueryError, match=message) as caught:
        bind_deletions(statement, catalog())
    assert hint in caught.value.hint
    assert caught.value.span is not None
    assert caught.value.span.column == column


@pytest.mark.parametrize(("behind", "name"), [("q3", "q3"), ('"my query"', "my query")])
def test_the_name_behind_for_is_kept(behind: str, name: str) -> None:
    statement = parse_statement(f"EXPLAIN WHAT IF DELETE link('a') FOR {behind}")
    assert isinstance(statement, ExplainWhatIf)
    assert statement.named is not None
    assert (statement.named.text, statement.named.span.column) == (name, 38)


def test_confidence() -> None:
    found = bound(
        "EXPLAIN (FORMAT JSON) CONFIDENCE (SELECT * FROM reachable) USING link.pdr LIMIT 5"
    )
    assert isinstance(found, BoundConfidence)
    assert (found.using.definition.name, found.using.column, found.limit) == ("link", 3, 5)
    found = bound("EXPLAIN CONFIDENCE reachable USING link.pdr")
    assert isinstance(found, BoundConfidence)
    assert found.limit is None


def test_format() -> None:
    text = "WHAT IF DELETE link('a') ON (SELECT * FROM reachable)"
    for word in ("TEXT", "JSON"):
        statement = parse_statement(f"EXPLAIN (FORMAT {word}) {text}")
        assert isinstance(statement, ExplainWhatIf)
        assert statement.format == word.lower()


WRONG = {
    "EXPLAIN WHY SELECT 1 ROW (1)": (13, "expected ( before the query", "ROW ("),
    "EXPLAIN WHY (SELECT 1)": (23, "expected ROW", "ROW ("),
    "EXPLAIN WHY () ROW (1)": (16, "expected a query between", ""),
    "EXPLAIN WHY (SELECT 1) ROW 1": (28, "expected the values", "ROW ("),
    "EXPLAIN WHY (SELECT 1) ROW ()": (29, "a value is missing", "ROW ("),
    "EXPLAIN WHY (SELECT 1) ROW (*)": (29, "is not a value: write all values of the row", "ROW ("),
    "EXPLAIN WHY (SELECT 1) ROW (1, 2)": (29, "2 values for a row of 1", "column1 INTEGER"),
    "EXPLAIN WHY (SELECT 1) ROW ('a')": (29, "column 'column1'", "INTEGER"),
    "EXPLAIN WHY (SELECT 1) ROW (a)": (29, "is not a value", "quotes"),
    "EXPLAIN WHY (SELECT 1) ROW (1) WITH (limit = 0)": (46, "whole number", "limit = 10"),
    "EXPLAIN WHY (SELECT 1) ROW (1) WITH (limits = 1)": (38, "no option 'limits'", "limit?"),
    "EXPLAIN WHY (SELECT 1) ROW (1) WITH (confidence = 'pdr')": (
        51,
        "is not a column of a source",
        "dot",
    ),
    "EXPLAIN WHY (SELECT 1) ROW (1) WITH (confidence = 'link.pdr')": (51, "does not read", "no "),
    "EXPLAIN WHY link ROW ('a') LIMIT 3": (28, "should end here", "WITH (limit"),
    "EXPLAIN WHY (ISTREAM(SELECT 1)) ROW (1)": (14, "ISTREAM produces changes", "remove ISTREAM"),
    "EXPLAIN ANALYZE WHY (SELECT 1) ROW (1)": (1, "ANALYZE explains plans", "leave it out"),
    "EXPLAIN EXPLAIN WHY (SELECT 1) ROW (1)": (9, "cannot explain itself", "once"),
    "EXPLAIN WHAT DELETE link('a') FOR (SELECT 1)": (14, "expected IF", "WHAT IF DELETE"),
    "EXPLAIN WHAT IF link('a') FOR (SELECT 1)": (17, "expected DELETE", "WHAT IF DELETE"),
    "EXPLAIN WHAT IF DELETE link FOR (SELECT 1)": (29, "expected the values", "WHAT IF DELETE"),
    "EXPLAIN WHAT IF DELETE link() FOR (SELECT 1)": (29, "a value is missing", "WHAT IF DELETE"),
    "EXPLAIN WHAT IF DELETE link('a') reachable": (34, "expected FOR", "WHAT IF DELETE"),
    "EXPLAIN WHAT IF DELETE link('a')": (
        1,
        "WHAT IF without FOR asks about running queries, but a local",
        "FOR (query)",
    ),
    "EXPLAIN WHAT IF DELETE lnk('a') FOR link": (24, "does not read a source 'lnk'", "link?"),
    "EXPLAIN WHAT IF DELETE reachable('a') FOR reachable": (24, "is a view", "reads link"),
    "EXPLAIN WHAT IF DELETE machines('a') FOR link": (24, "does not read", "reads link"),
    "EXPLAIN WHAT IF DELETE link(*, *, 'x') FOR link": (35, "column 'cost'", "DOUBLE"),
    "EXPLAIN WHAT IF DELETE link(*, *, *, *, *, *) FOR link": (24, "6 values for 5", "src"),
    "EXPLAIN CONFIDENCE (SELECT 1)": (30, "expected USING", "USING link.pdr"),
    "EXPLAIN CONFIDENCE link USING pdr": (34, "expected .", "USING link.pdr"),
    "EXPLAIN CONFIDENCE link USING link.prd": (36, "no column 'prd'", "pdr?"),
    "EXPLAIN CONFIDENCE link USING link.src": (36, "is TEXT, not a probability", "cost, pdr"),
    "EXPLAIN CONFIDENCE link USING link.pdr LIMIT x": (46, "whole number", ""),
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong(text: str) -> None:
    column, message, hint = WRONG[text]
    with pytest.raises(QueryError) as caught:
        bound(text)
    assert message in caught.value.message
    assert hint in caught.value.hint
    assert caught.value.span is not None
    assert (caught.value.span.line, caught.value.span.column) == (1, column)


def test_values_of_the_engine_are_equal_to_those_written() -> None:
    """What comes back from sources is coerced in the same way."""
    row = why("EXPLAIN WHY (SELECT cost FROM link) ROW (3)").row
    assert row == (coerce(3, catalog().sources[0].schema.dtypes[2]),)
