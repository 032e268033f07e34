"""Numbers of queries are never given twice, and go on where an orderly end has left them."""

from pathlib import Path

import pytest

from federated_optimizer.coordinator.store.catalog_store import CatalogStore
from federated_optimizer.coordinator.store.query_numbers import BLOCK
from streamsql.errors import DeploymentError


def opened(folder: Path, now: int = 0) -> CatalogStore:
    store = CatalogStore(f"sqlite:///{folder}/catalog.db")
    store.claim(now=now)
    return store


def test_they_go_on_after_an_orderly_end(tmp_path: Path) -> None:
    store = opened(tmp_path)
    given = [store.next_query_number() for _ in range(BLOCK + 3)]
    assert given == list(range(given[0], given[0] + BLOCK + 3))
    store.close()
    again = opened(tmp_path)
    assert again.next_query_number() == given[-1] + 1
    again.close()


def test_none_is_given_twice_after_a_crash(tmp_path: Path) -> None:
    crashed = opened(tmp_path)
    last = [crashed.next_query_number() for _ in range(3)][-1]
    again = opened(tmp_path)
    assert last < again.next_query_number() <= last + BLOCK
    again.close()


def test_an_older_owner_gives_none_of_the_newer(tmp_path: Path) -> None:
    older = opened(tmp_path)
    first = older.next_query_number()
    newer = opened(tmp_path, now=10**9)
    others = {newer.next_query_number() for _ in range(BLOCK)}
    assert others.isdisjoint(older.next_query_number() for _ in range(BLOCK - 1))
    with pytest.raises(DeploymentError, match="another coordinator took over"):
        older.next_query_number()
    older.close()
    assert newer.next_query_number() == max(others) + 1 > first
    newer.close()


def test_a_reserved_one_is_given_without_the_database(tmp_path: Path) -> None:
    store = opened(tmp_path)
    assert store.numbers.take_reserved() is None
    first = store.next_query_number()
    given = [store.numbers.take_reserved() for _ in range(BLOCK - 1)]
    assert given == list(range(first + 1, first + BLOCK))
    assert store.numbers.take_reserved() is None
    assert store.next_query_number() == first + BLOCK
    store.close()
