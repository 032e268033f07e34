"""Writes that wait are made in their order, by whoever commits first, and all or none."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from msgspec.structs import replace as replaced

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.pending_writes import PendingWrite
from federated_optimizer.coordinator.store.stored_runs import RunChanges, StoredQuery, write_runs
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.errors import DeploymentError
from streamsql.wire.fragments import FragmentBundle

BUNDLE = FragmentBundle("q1", 1, (), Schema.of(("n", DataType.INTEGER)))


def query(number: int) -> StoredQuery:
    name = f"q{number}"
    return StoredQuery(name, name, "SELECT 1", Origin.USER, number, BUNDLE)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CatalogStore]:
    opened = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    opened.claim(now=0)
    yield opened
    opened.close()


def waiting(store: CatalogStore, *numbers: int) -> list[PendingWrite]:
    """Let queries wait to be stored."""
    return [store.pending.add(partial(_put, query(number))) for number in numbers]


def _put(stored: StoredQuery, connection: sa.Connection) -> None:
    write_runs(connection, RunChanges(queries=(stored,)))


def test_one_commit_is_for_all_that_wait(store: CatalogStore) -> None:
    commits = 0

    def counted(_connection: sa.Connection) -> None:
        nonlocal commits
        commits += 1

    sa.event.listen(store._engine, "commit", counted)
    writes = waiting(store, 1, 2, 3)
    assert store.queries() == ()
    for write in writes:
        store.ensure(write)
    assert commits == 1
    assert [stored.id for stored in store.queries()] == ["q1", "q2", "q3"]


def test_a_new_query_takes_two_statements_whoever_waits_with_it(store: CatalogStore) -> None:
    told: list[str] = []

    def counted(*args: Any) -> None:
        told.append(args[2].split()[0])

    sa.event.listen(store._engine, "before_cursor_execute", counted)
    new = [replace(query(number), bundle=replaced(BUNDLE, query=f"q{number}")) for number in (1, 2)]
    for stored in new:
        changes = RunChanges(queries=(stored,), are_new=True)
        store.pending.add(partial(write_runs, changes=changes))
    with store.writing():
        pass
    own = [word for word in told if word in {"SELECT", "INSERT", "DELETE"}]
    assert own == ["INSERT", "INSERT"] * 2
    assert told.count("UPDATE") == 1, "of the owner"


def test_nothing_overtakes_what_waits(store: CatalogStore) -> None:
    (write,) = waiting(store, 1)
    store.put_query(replace(query(1), text="SELECT 2"))
    assert write.is_done
    store.ensure(write)
    assert [stored.text for stored in store.queries()] == ["SELECT 2"]
    waiting(store, 4)
    store.drop_query("q4")
    assert [stored.id for stored in store.queries()] == ["q1"]


def test_all_fail_with_the_commit_and_none_is_tried_again(
    store: CatalogStore, tmp_path: Path
) -> None:
    other = CatalogStore(f"sqlite:///{tmp_path}/catalog.db")
    other.claim(now=10**9)
    writes = waiting(store, 1, 2)
    for write in writes:
        with pytest.raises(DeploymentError, match="another coordinator took over"):
            store.ensure(write)
    assert not store.pending
    assert other.queries() == ()
    other.close()


def test_a_defect_of_somebody_else_fails_nobody(store: CatalogStore) -> None:
    (write,) = waiting(store, 1)
    with pytest.raises(ZeroDivisionError), store.writing():
        1 // 0  # noqa: B018 - what a caller does wrong
    assert not write.is_done
    store.ensure(write)
    assert [stored.id for stored in store.queries()] == ["q1"]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _connection: 1 // 0,
        lambda connection: connection.execute(sa.text("INSERT INTO nowhere VALUES (1)")),
        partial(_put, replace(query(2), text="\ud800")),  # no database can take it
    ],
)
def test_one_that_cannot_be_made_fails_alone(store: CatalogStore, wrong: Any) -> None:
    (first,) = waiting(store, 1)
    failing = store.pending.add(wrong)
    (last,) = waiting(store, 3)
    store.ensure(last)
    store.ensure(first)
    with pytest.raises(DeploymentError, match="cannot write the catalog"):
        store.ensure(failing)
    assert not store.pending
    assert [stored.id for stored in store.queries()] == ["q1", "q3"]


def test_what_it_has_written_of_one_that_fails_is_not_there(store: CatalogStore) -> None:
    def half(connection: sa.Connection) -> None:
        _put(query(1), connection)
        raise ValueError("the other half")

    failing = store.pending.add(half)
    store.put_query(query(2))
    with pytest.raises(DeploymentError, match="the other half"):
        store.ensure(failing)
    assert [stored.id for stored in store.queries()] == ["q2"]


def test_many_threads_find_theirs_stored(store: CatalogStore) -> None:
    def work(number: int) -> None:
        (write,) = waiting(store, number)
        store.ensure(write)
        assert write.is_done

    threads = [threading.Thread(target=work, args=(number,)) for number in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(store.queries()) == 40
