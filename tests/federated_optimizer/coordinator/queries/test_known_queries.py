"""A look-up of a running query looks at no other query."""

from types import SimpleNamespace
from typing import Any

from federated_optimizer.coordinator.contract.coordinator_model import Origin
from federated_optimizer.coordinator.queries.known_queries import KnownQueries


class Named:
    """A query that counts how often its name is looked at."""

    looked_at = 0

    def __init__(
        self, number: int, name: str = "", origin: Origin = Origin.USER, display: str = ""
    ) -> None:
        self.id = f"q{number}"
        self._name = name or self.id
        self.origin = origin
        self.presentation = SimpleNamespace(display=display)

    @property
    def name(self) -> str:
        Named.looked_at += 1
        return self._name


def known(*queries: Any) -> Any:
    index: Any = KnownQueries()
    for query in queries:
        index.add(query)
    return index


def test_a_name_is_looked_up_without_a_look_at_any_query() -> None:
    queries = [Named(number, f"name {number}") for number in range(300)]
    index = known(*queries)
    Named.looked_at = 0
    assert index.named("name 299") is queries[299]
    assert index.named("another") is None
    assert index.get("q7") is queries[7]
    assert Named.looked_at == 0


def test_queries_of_an_origin_are_kept_apart_oldest_first() -> None:
    first, layer, second = Named(1), Named(2, origin=Origin.MAP), Named(3)
    index = known(first, layer, second)
    assert list(index.of(Origin.USER)) == [first, second]
    assert list(index.of(Origin.MAP)) == [layer]
    assert list(index.of(Origin.ALARM)) == []
    assert list(index.of()) == [first, layer, second]
    assert len(index) == 3


def test_queries_of_displays_are_kept_apart_oldest_first() -> None:
    plain, hall, layer = Named(1), Named(2, display="hall"), Named(3, "map", Origin.MAP, "hall")
    index = known(plain, hall, layer)
    assert index.displayed() == (hall, layer)
    assert index.displayed(Origin.MAP) == (layer,)
    index.discard(plain)
    index.discard(hall)
    assert index.displayed() == (layer,)


def test_of_two_queries_of_a_name_the_older_one_is_found_until_it_has_ended() -> None:
    one: Any = Named(1, "doors")
    other: Any = Named(2, "doors")
    index = known(one, other)
    assert index.named("doors") is one
    index.discard(one)
    assert index.named("doors") is other
    index.discard(one)  # nothing happens
    index.discard(other)
    assert index.named("doors") is None
    assert (list(index.of()), list(index.of(Origin.USER))) == ([], [])
