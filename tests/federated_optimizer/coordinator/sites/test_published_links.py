"""The table of published links: a snapshot for all readers, until something changes."""

from federated_optimizer.coordinator.sites.published_links import LinkTable
from streamsql.wire.messages import LinkMessage

BOTH = frozenset(("gw-1", "gw-2"))


def put(table: LinkTable, gateway: str, source: str, cost: float | None) -> None:
    assert table.put(gateway, ("mesh", source, "z"), LinkMessage(source, "z", cost))


def test_all_readers_get_the_same_snapshot_until_a_link_changes() -> None:
    table = LinkTable()
    put(table, "gw-1", "a", 1.0)
    put(table, "gw-2", "b", None)
    first = table.of(BOTH)
    assert first == (("a", "z", 1.0, "mesh", "gw-1"), ("b", "z", None, "mesh", "gw-2"))
    version = table.version
    put(table, "gw-1", "a", 1.0)
    table.remove("gw-1", ("mesh", "nobody", "z"))
    assert table.version == version
    assert table.of(BOTH) is first
    put(table, "gw-1", "a", 2.0)
    assert table.version == version + 1
    assert table.of(BOTH)[0] == ("a", "z", 2.0, "mesh", "gw-1")
    table.remove("gw-2", ("mesh", "b", "z"))
    assert table.version == version + 2
    assert table.of(BOTH) == (("a", "z", 2.0, "mesh", "gw-1"),)


def test_a_snapshot_is_of_the_gateways_that_are_there() -> None:
    table = LinkTable()
    put(table, "gw-1", "a", 1.0)
    assert table.of(BOTH)
    assert table.of(frozenset(("gw-2",))) == ()
    assert table.of(BOTH)


def test_gateways_are_as_many_hops_apart_as_links_are_between_them() -> None:
    table = LinkTable()
    assert not table.hops()
    for gateway, source, target in (
        ("gw-1", "a", "b"),
        ("gw-1", "b", "c"),
        ("gw-2", "c", "d"),
        ("gw-3", "d", "e"),
        ("gw-3", "e", "nobody"),
    ):
        assert table.put(gateway, ("mesh", source, target), LinkMessage(source, target, 1.0))
    hops = table.hops()
    assert hops["gw-1", "gw-2"] == hops["gw-3", "gw-2"] == 1
    assert hops["gw-1", "gw-3"] == hops["gw-3", "gw-1"] == 2
    assert table.hops() is hops, "nothing has changed"
    beside = table.hops((("base", "gw-1"),))
    assert [beside[gateway, "base"] for gateway in ("gw-1", "gw-2", "gw-3")] == [1, 2, 3]
    assert beside["gw-1", "gw-3"] == 2
    table.remove("gw-2", ("mesh", "c", "d"))
    assert ("gw-1", "gw-3") not in table.hops()


def test_homes_are_the_same_object_until_a_link_changes() -> None:
    table = LinkTable()
    assert not table.homes().gateway
    put(table, "gw-1", "a", 1.0)
    first = table.homes()
    assert first.gateway == {"a": "gw-1"}
    assert table.homes() is first
    put(table, "gw-2", "b", 1.0)
    assert table.homes().gateway == {"a": "gw-1", "b": "gw-2"}
    table.remove("gw-1", ("mesh", "a", "z"))
    assert table.homes().gateway == {"b": "gw-2"}
