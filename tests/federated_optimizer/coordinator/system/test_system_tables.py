"""Tables of the system are sorted once while they are the same; a broken one fails its queries."""

import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from federated_optimizer.coordinator.system.system_tables import SortedTables, SystemTables
from streamsql.catalog.definitions import SourceDefinition
from streamsql.catalog.system import SYS_COSTS, SYS_FACTS
from streamsql.data.types import Row
from streamsql.errors import FederationError
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle


class Shown(str):
    """A text that counts how often it is sorted."""

    __slots__ = ()
    looked = 0

    def __repr__(self) -> str:
        Shown.looked += 1
        return super().__repr__()


def test_a_table_that_gives_the_same_tuple_is_not_sorted_again() -> None:
    kept: list[tuple[Row, ...]] = [tuple((Shown(name),) for name in "cab")]
    tables = SortedTables({"kept": lambda: kept[0], "made": lambda: iter(kept[0])})
    first = tables.rows("kept")
    assert first == (("a",), ("b",), ("c",))
    looked = Shown.looked
    assert tables.rows("kept") is first
    assert Shown.looked == looked
    kept[0] = (*kept[0], ("aa",))
    assert tables.rows("kept") == (("a",), ("aa",), ("b",), ("c",))
    assert tables.rows("made") == (("a",), ("aa",), ("b",), ("c",))
    assert tables.rows("made") == (("a",), ("aa",), ("b",), ("c",))


def reading(source: SourceDefinition, heard: list[str]) -> Any:
    """A query of which the coordinator evaluates a fragment."""
    fragment = Fragment("f1", Engine.BASE, source.scan(), ("coordinator",))
    flows = SimpleNamespace(hear=lambda *_: heard.append(source.name))
    bundle = FragmentBundle(source.name, 1, (fragment,), source.schema)
    return SimpleNamespace(run=source.name, bundle=bundle, problems={}, flows=flows)


def test_a_table_that_cannot_be_made_fails_only_queries_that_read_it() -> None:
    def broken() -> Iterable[Row]:
        raise FederationError("no facts today")

    shared: Any = SimpleNamespace(
        settings=SimpleNamespace(host="coordinator"),
        presence=SimpleNamespace(epoch=1),
        beside=None,
    )
    failed: list[tuple[str, str]] = []
    heard: list[str] = []
    tables = SystemTables(
        shared,
        {SYS_FACTS.name: broken, SYS_COSTS.name: lambda: ()},
        lambda query, error: failed.append((query.run, error.message)),
    )
    queries = [reading(source, heard) for source in (SYS_FACTS, SYS_COSTS)]
    runs: Any = SimpleNamespace(reads=SimpleNamespace(tables=()), leaders=lambda _runs: queries)
    asyncio.run(tables.look(runs, 0))
    assert failed == [(SYS_FACTS.name, "no facts today")]
    assert heard == [SYS_COSTS.name]
