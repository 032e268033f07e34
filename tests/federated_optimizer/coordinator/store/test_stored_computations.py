"""Rows of the computation index: in the transaction of what they are of, and those alone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy as sa

from federated_optimizer.coordinator.store import stored_computations as computations
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.stored_runs import RunChanges, StoredNode, StoredQuery
from streamsql.errors import DeploymentError
from tests.federated_optimizer.coordinator.store.test_catalog_store import node, postgres_url
from tests.federated_optimizer.coordinator.store.test_catalog_store import stored as query_of

__all__ = ["postgres_url"]


@pytest.fixture(params=["sqlite", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[CatalogStore]:
    """A catalog of each kind."""
    url = f"sqlite:///{tmp_path}/catalog.db"
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
    made = CatalogStore(url)
    made.claim(now=0)
    with made.writing() as connection:
        for table in ("pando_queries", "pando_nodes", "pando_computations"):
            connection.execute(sa.text(f"DELETE FROM {table}"))
    yield made
    made.close()


def query(number: str, run: str = "", version: int = 1, *, is_known: bool = True) -> StoredQuery:
    found = query_of(number, version)
    bundle = msgspec.structs.replace(found.bundle, query=run or number)
    plan = bundle.fragments[0].plan if is_known else None
    return StoredQuery(number, number, found.text, found.origin, 5, bundle, logical=plan)


def put(store: CatalogStore, *queries: StoredQuery, **changes: Any) -> None:
    store.put_runs(RunChanges(queries=queries, **changes))


def rows(store: CatalogStore) -> dict[str, Any]:
    with store.writing() as connection:
        return computations.stored_computations(connection)


def test_a_row_stays_until_nobody_reads_the_run(store: CatalogStore) -> None:
    put(store, query("q1"), query("q2", "q1"), nodes=(node("q3"),))
    assert {*rows(store)} == {"q1", "q3"}
    store.drop_query("q1")
    assert {*rows(store)} == {"q1", "q3"}
    put(store, dropped=("q2",), ended=("q3",))
    assert rows(store) == {}


def test_a_run_that_a_query_leaves_to_a_node_keeps_its_row(store: CatalogStore) -> None:
    put(store, query("q1"))
    put(store, dropped=("q1",), nodes=(node("q1"),))
    assert {*rows(store)} == {"q1"}
    put(store, query("q2", "q1"), ended=("q1",))
    assert {*rows(store)} == {"q1"}


def test_a_query_that_moves_takes_nothing_from_others(store: CatalogStore) -> None:
    put(store, query("q1"), query("q2", "q1"))
    put(store, query("q2", "q5"))
    assert {*rows(store)} == {"q1", "q5"}
    put(store, query("q1", "q5"))
    assert {*rows(store)} == {"q5"}


def test_a_row_is_of_the_newest_version(store: CatalogStore) -> None:
    put(store, query("q1"))
    before = rows(store)["q1"]
    put(store, query("q1", version=2, is_known=False))
    assert rows(store)["q1"] == before | {"version": 2}
    assert json.loads(before["topology"]) == [["1", "source", "seat"]]
    assert json.loads(before["inputs"]) == [["q1/f0", "seat"]]
    put(store, query("q4", is_known=False))
    assert rows(store)["q4"]["literals"] is None
    put(store, query("q5", "q4"))  # somebody knows it now
    assert rows(store)["q4"]["literals"] == "[]"


def test_nothing_is_computed_for_a_run_that_is_there(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, query("q1"))
    monkeypatch.setattr(computations, "computation_row", lambda *_: pytest.fail("computed"))
    put(store, query("q2", "q1"))


def test_queries_and_their_rows_are_stored_together_or_not_at_all(
    store: CatalogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(store, query("q1"))

    def fail(*_: object) -> None:
        raise OSError("the disk is gone")

    before = rows(store)
    monkeypatch.setattr(computations, "computation_row", fail)
    with pytest.raises(DeploymentError):
        put(store, query("q2"), dropped=("q1",))
    assert rows(store) == before
    assert [each.id for each in store.queries()] == ["q1"]


def test_the_newest_text_that_is_no_relation_is_none() -> None:
    assert computations.read_rows("no JSON") is None
    assert computations.read_rows('[["a","b"]]') == [["a", "b"]]


def test_nodes_are_known_by_their_plans(store: CatalogStore) -> None:
    known: StoredNode = node("q7")
    put(store, nodes=(known,))
    assert rows(store)["q7"]["literals"] == "[]"
