"""Channels of a query: first a snapshot, then differences, split over the readers."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from static_engine.evaluation.bags import PART_ROWS, Bag
from static_engine.service import installed_fragments
from static_engine.service.installed_fragments import RESULT, InstalledQuery, route
from streamsql.algebra.operators import RemoteSource, Scan, SourceKind
from streamsql.data.delta import Delta
from streamsql.data.schema import Schema
from streamsql.data.types import DataType, Row
from streamsql.errors import WireError
from streamsql.wire.bounds import MAX_PAYLOAD_BYTES
from streamsql.wire.bundles.partitioning import site_of
from streamsql.wire.channel_protocol import ReceivingChannel, Reception
from streamsql.wire.codec import encode_packed
from streamsql.wire.fragments import TABLE_OUTGROWN, Engine, Fragment, FragmentBundle

SCHEMA = Schema.of(("k", DataType.INTEGER), ("v", DataType.TEXT))
ONE: Delta = {(1, "x"): 1}
SITES = ("gw-1", "gw-2", "base")


def fragment(name: str, destinations: tuple[str, ...], partition: tuple[int, ...] = ()) -> Fragment:
    plan = Scan(f"t_{name}", SourceKind.TABLE, SCHEMA)
    consumer = "top" if destinations else ""
    return Fragment(name, Engine.STATIC, plan, ("static",), consumer, destinations, partition)


def bag(rows: Delta) -> Bag:
    return Bag.of_rows(SCHEMA, rows)


def installed(*fragments: Fragment, first: int = 0) -> InstalledQuery:
    return InstalledQuery(FragmentBundle("q", 3, fragments, SCHEMA), "static", 1, first)


class Readers:
    """The receiving ends of all channels."""

    def __init__(self) -> None:
        self.channels: dict[str, ReceivingChannel] = {}

    def drain(self, query: InstalledQuery) -> list[Delta]:
        deltas = []
        for destination, batch in query.batches(0):
            channel = self.channels.setdefault(destination, ReceivingChannel(version=3))
            reception, delta = channel.accept(batch)
            assert reception == Reception.ACCEPTED
            deltas.append(delta)
        return deltas

    def contents(self, destination: str, port: str) -> Delta:
        return self.channels[destination].contents.get(port, {})


def test_half_an_answer_is_not_sent() -> None:
    query, readers = installed(fragment("a", ("base",)), fragment("b", ("base",))), Readers()
    query.update("a", bag({(1, "x"): 1}))
    assert not readers.drain(query)
    assert not query.is_complete
    assert query.flow(busy=False).busy
    query.update("b", bag({}))
    assert query.has_work
    readers.drain(query)
    assert readers.contents("base", "a") == {(1, "x"): 1}
    assert not query.has_work
    assert not query.flow(busy=False).busy
    assert query.flow(busy=False).sent == {"base": 2}


def test_the_same_result_is_not_work() -> None:
    query, readers, result = installed(fragment("a", ("base",))), Readers(), bag(ONE)
    query.update("a", result)
    readers.drain(query)
    query.update("a", result)
    assert not query.has_work


def test_a_query_without_reader_here_ends_at_the_console() -> None:
    query, readers = installed(fragment("a", ())), Readers()
    query.update("a", bag({(1, "x"): 2}))
    readers.drain(query)
    assert readers.contents(RESULT, "a") == {(1, "x"): 2}


def test_a_reader_without_destination_is_refused() -> None:
    broken = Fragment("a", Engine.STATIC, Scan("t", SourceKind.TABLE, SCHEMA), ("static",), "top")
    with pytest.raises(WireError, match="no destination"):
        installed(broken)


WIDE: Delta = {(number, "w" * 1_000): 1 for number in range(4)}
"""Four rows that count as more than forty, by their bytes."""


@pytest.mark.parametrize("grown", [{(n, "x"): 1 for n in range(41)}, WIDE], ids=["many", "wide"])
def test_gateways_and_base_keep_what_they_had_of_a_table_that_gateways_cannot_keep(
    grown: Delta,
) -> None:
    here, keys = fragment("f1", ("base",)), fragment("f2", ("gw-1", "gw-2"))
    read = RemoteSource("f2", SCHEMA)
    readers = (
        Fragment("top", Engine.BASE, read, ("gw-1",)),  # reads it, too, and is named as its reader
        Fragment("low", Engine.GATEWAY, read, ("gw-1", "gw-2"), "top", ("base",)),
    )
    bundle = FragmentBundle("q", 3, (here, keys, *readers), SCHEMA)
    query, ends = InstalledQuery(bundle, "static", 1, 0, max_gateway_rows=40), Readers()
    query.update_all({"f1": bag(ONE), "f2": bag(ONE)})
    ends.drain(query)
    assert query.outgrown is None
    query.update_all({"f1": bag(grown), "f2": bag(grown)})
    assert query.outgrown is not None
    assert query.outgrown.code == TABLE_OUTGROWN
    assert "t_f2" in query.outgrown.message
    assert not query.has_work
    assert [ends.contents("base", "f1"), ends.contents("gw-2", "f2")] == [ONE, ONE]
    some: Delta = {(n, "x"): 1 for n in range(40)}
    query.update_all({"f1": bag(grown), "f2": bag(some)})
    ends.drain(query)
    assert query.outgrown is None
    assert ends.contents("base", "f1") == grown
    assert ends.contents("gw-1", "f2") == ends.contents("gw-2", "f2") == some


def test_sequence_numbers_continue_after_a_reinstallation() -> None:
    query = installed(fragment("a", ("base",)), first=41)
    query.update("a", bag({}))
    assert [batch.seq for _, batch in query.batches(0)] == [41]
    assert query.last_sequence() == 42


def test_wide_rows_fit_messages() -> None:
    query = installed(fragment("a", ("base",)))
    query.update("a", bag({(n, "é" * 10_000): 1 for n in range(2_000)}))
    sizes = [len(encode_packed(batch)) for _, batch in query.batches(0)]
    assert sum(sizes) > MAX_PAYLOAD_BYTES
    assert max(sizes) <= MAX_PAYLOAD_BYTES


def test_only_rows_that_differ_become_python_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []
    rows_of = Bag._rows

    def rows(self: Bag, begin: int, end: int) -> Iterator[Row]:
        made.append(end - begin)
        return rows_of(self, begin, end)

    monkeypatch.setattr(Bag, "_rows", rows)
    query, readers = installed(fragment("a", SITES, (0,)), fragment("b", ("base",))), Readers()
    old: Delta = {(n, f"v{n}"): 1 for n in range(50_000)}
    for name in "ab":
        query.update(name, bag(old))
    readers.drain(query)
    assert max(made) <= PART_ROWS
    made.clear()
    new = {row: weight for row, weight in old.items() if row[0] != 7} | {(7, "other"): 2}
    for name in "ab":
        query.update(name, bag(dict(reversed(new.items()))))
    query.compare()
    readers.drain(query)
    assert sum(made) <= 2 * (len(SITES) + 1)
    assert readers.contents("base", "b") == new


def test_every_row_is_hashed_once_and_messages_are_full(monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Row] = []

    def counted(key: Row, sites: Sequence[str]) -> str:
        hashed.append(key)
        return site_of(key, sites)

    monkeypatch.setattr(installed_fragments, "site_of", counted)
    sites = tuple(f"gw-{number}" for number in range(20))
    query, readers = installed(fragment("a", sites, (0,))), Readers()
    old: Delta = {(n, f"v{n}"): 1 for n in range(PART_ROWS + 2_000)}
    query.update("a", bag(old))
    query.compare()  # in another thread, so that sending does not hash
    assert sorted(hashed) == [(n,) for n in range(len(old))]
    assert len(readers.drain(query)) == len(sites)
    new: Delta = {(n, f"w{n}"): 1 for n in range(PART_ROWS + 2_000)}
    query.update("a", bag(new))
    assert query.request_snapshot(sites[3])
    assert len(readers.drain(query)) == len(sites)
    assert len(hashed) == 4 * len(old)  # changes have old and new rows; the snapshot the new ones
    for site in sites:
        own = {row: 1 for row in new if site_of(row[:1], sites) == site}
        assert readers.contents(site, "a") == own


def test_a_result_that_comes_behind_a_comparison_counts() -> None:
    query, readers = installed(fragment("a", ("base",))), Readers()
    for text in "xyz":
        query.update("a", bag({(1, text): 1}))
        query.compare()
        if text != "y":  # which is never sent
            readers.drain(query)
            assert readers.contents("base", "a") == {(1, text): 1}


RESULTS = st.dictionaries(
    st.tuples(st.integers(0, 3), st.sampled_from(["x", "y"])), st.integers(1, 2), max_size=6
)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("result"), st.sampled_from("abc"), RESULTS),
        st.tuples(st.just("snapshot"), st.sampled_from(SITES), st.none()),
        st.tuples(st.just("stop early"), st.integers(0, 3), st.none()),
        st.tuples(st.just("compare"), st.none(), st.none()),
        st.tuples(st.just("send"), st.none(), st.none()),
    ),
    max_size=12,
)


@given(steps=STEPS)
def test_readers_have_what_was_last_computed(
    steps: list[tuple[str, str | int | None, Delta | None]],
) -> None:
    fragments = {
        "a": fragment("a", SITES, (0,)),
        "b": fragment("b", SITES),
        "c": fragment("c", ("base",)),
    }
    query, readers = installed(*fragments.values()), Readers()
    last: dict[str, Delta] = {}
    for name in fragments:
        last[name] = {(9, "x"): 1}
        query.update(name, bag(last[name]))
    for kind, what, result in steps:
        if kind == "result" and isinstance(what, str) and result is not None:
            last[what] = result
            query.update(what, bag(result))
        elif kind == "snapshot" and isinstance(what, str):
            assert query.request_snapshot(what)
        elif kind == "compare":
            query.compare()
        elif kind == "stop early" and isinstance(what, int):
            for _, _ in zip(range(what), query.batches(0), strict=False):
                pass  # taken, but never sent
            query.request_all()
        else:
            readers.drain(query)
    readers.drain(query)
    for name, rows in last.items():
        parts = route(fragments[name], rows)
        for site in fragments[name].destinations:
            assert readers.contents(site, name) == parts.get(site, {})
