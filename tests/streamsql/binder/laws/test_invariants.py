"""What holds for every plan the binder makes, shown on all golden queries."""

import re
from functools import cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.tokenizer_core import TokenType

from streamsql.algebra.operators import Fixpoint, Plan, refers_to, transform_up, walk_plan
from streamsql.binder import BoundQuery, define
from streamsql.catalog.catalog import Catalog
from streamsql.data.types import common_type
from streamsql.syntax import CreateView, parse_script
from streamsql.syntax.parse import scan
from streamsql.wire.codec import decode_packed, encode_packed
from tests.streamsql.from_text import bound_query, catalog_of

FOLDER = Path(__file__).parents[3] / "golden" / "plans"


def _queries() -> list[tuple[str, str]]:
    found = []
    for path in sorted(FOLDER.glob("*.yaml")):
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
        found += [(content["catalog"], case["sql"]) for case in content["cases"]]
    return found


QUERIES = _queries()


@cache
def catalog_with_library(text: str) -> Catalog:
    return catalog_of(text, library=True)


def bound(sql: str, catalog: str) -> BoundQuery:
    return bound_query(sql, catalog_with_library(catalog))


@pytest.mark.parametrize(("catalog", "sql"), QUERIES, ids=[sql[:60] for _, sql in QUERIES])
def test_plan_is_well_formed(catalog: str, sql: str) -> None:
    query = bound(sql, catalog)
    assert query.schema == query.plan.schema
    names = query.schema.names
    assert len(set(names)) == len(names)
    for node in walk_plan(query.plan):
        if isinstance(node, Fixpoint):
            assert all(not refers_to(branch, node.name) for branch in node.base)
            assert all(refers_to(branch, node.name) for branch in node.step)
    # Rebuilding every node runs the checks of its constructor again.
    assert transform_up(query.plan, lambda node: node) == query.plan


@pytest.mark.parametrize(("catalog", "sql"), QUERIES, ids=[sql[:60] for _, sql in QUERIES])
def test_plan_survives_the_wire(catalog: str, sql: str) -> None:
    plan = bound(sql, catalog).plan
    kind: type[Plan] = Plan  # type: ignore[assignment]
    assert decode_packed(encode_packed(plan), kind) == plan


@given(st.sampled_from(QUERIES), st.data())
def test_layout_and_case_of_keywords_do_not_matter(
    query: tuple[str, str], data: st.DataObject
) -> None:
    catalog, sql = query
    blanks = st.sampled_from([" ", "\n", "\t  ", " /* note; */ ", " -- note\n"])
    script, tokens = scan(sql)
    text = ""
    for token in tokens:
        written = script.text[token.start : token.end + 1]
        if token.token_type not in (TokenType.STRING, TokenType.IDENTIFIER):
            written = data.draw(st.sampled_from([written, written.upper(), written.lower()]))
        text += data.draw(blanks) + written
    assert bound(text, catalog).plan == bound(sql, catalog).plan


@given(st.sampled_from(QUERIES))
def test_a_query_in_parentheses_or_a_view_means_the_same(query: tuple[str, str]) -> None:
    catalog_text, sql = query
    if re.match(r"[IDR]STREAM", sql) or "ORDER BY" in sql:
        return
    plan = bound(sql, catalog_text).plan
    assert bound(f"({sql})", catalog_text).plan == plan
    catalog = Catalog(tuple(catalog_with_library(catalog_text)))
    (statement,) = parse_script(f"CREATE VIEW the_view AS {sql}")
    assert isinstance(statement, CreateView)
    catalog.define(define(statement, catalog))
    assert bound_query("SELECT * FROM the_view", catalog).plan == plan


ITEMS = {
    "desk": "desk",
    "room AS r": "r",
    "weight + 1 AS w": "w",
    '"desk" AS "D e"': "D e",
    "UPPER(room)": "upper",
    "CAST(weight AS TEXT) AS c": "c",
}


@given(st.lists(st.sampled_from(sorted(ITEMS)), min_size=1, max_size=6))
def test_schema_names_are_the_select_list(items: list[str]) -> None:
    catalog = "CREATE SOURCE seat (desk TEXT, room TEXT, weight DOUBLE)"
    names = bound(f"SELECT {', '.join(items)} FROM seat", catalog).schema.names
    assert len(names) == len(items)
    wanted = [ITEMS[item] for item in items]
    for position, (name, want) in enumerate(zip(names, wanted, strict=True)):
        number = wanted[: position + 1].count(want)
        assert name == (want if number == 1 else f"{want}_{number}")


@given(st.sampled_from(["1", "1.5", "NULL"]), st.sampled_from(["2", "2.5", "NULL"]))
def test_union_has_the_common_type(one: str, other: str) -> None:
    types = [bound(f"SELECT {text} AS a", "").schema.dtypes[0] for text in (one, other)]
    united = bound(f"SELECT {one} AS a UNION SELECT {other}", "").schema.dtypes[0]
    assert united == common_type(*types)
