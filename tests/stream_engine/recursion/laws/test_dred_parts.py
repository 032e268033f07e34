"""The parts of a distributed delete-and-rederive, one by one."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_engine.recursion.baselines.dred.candidates import Candidates
from stream_engine.recursion.baselines.dred.dred_evaluation import DredCounters
from stream_engine.recursion.baselines.dred.dred_operator import Membership
from stream_engine.recursion.baselines.dred.dred_streams import (
    Generation,
    Item,
    Kind,
    Stamp,
    Streams,
    pack,
    unpack,
)
from stream_engine.recursion.baselines.dred.generation_run import BaseRows, ChannelCounts
from stream_engine.recursion.program.program import best_rows
from stream_engine.recursion.program.rules import LeafUse
from streamsql.algebra.operators import AggregateSelection, Best
from streamsql.data.delta import Delta, accumulate
from streamsql.data.types import Row
from streamsql.errors import WireError

SITES = ("a", "b", "c")


# -- membership ---------------------------------------------------------------------------------


def test_the_first_site_that_is_not_lost_leads() -> None:
    members = Membership("b", SITES, 5)
    assert members.leader() == "a"  # not heard of yet: waited for
    assert members.members() == {"b": 5}
    members.joined("a", 7)
    members.joined("c", 1)
    assert members.members() == {"a": 7, "b": 5, "c": 1}
    members.lost("a", 7)
    assert (members.leader(), members.members()) == ("b", {"b": 5, "c": 1})
    assert members.is_over("a", 7)
    assert not members.is_over("a", 8)
    members.joined("a", 8)
    assert (members.leader(), members.is_alive("a", 8)) == ("a", True)
    assert members.is_over("a", 7)
    assert not members.is_alive("a", 7)


def test_a_site_never_believes_itself_lost() -> None:
    members = Membership("a", SITES, 5)
    members.lost("a", 9)
    assert members.leader() == "a"
    assert members.members() == {"a": 5}


def test_late_news_of_an_earlier_life_changes_nothing() -> None:
    members = Membership("b", SITES, 5)
    members.joined("a", 8)
    members.joined("a", 3)
    members.lost("a", 7)
    assert members.leader() == "a"


# -- channels -----------------------------------------------------------------------------------

STAMP = Stamp(Generation(0, 1, 1), 0)


def streams(peer: str) -> Streams:
    return Streams((peer,), DredCounters())


def sent(channel: Streams) -> list[bytes]:
    return [row.annotation for message in channel.drain() for row in message.annotated]


def opened() -> tuple[Streams, list[bytes]]:
    """Return the receiving end of a channel, and what its sender has sent."""
    a = streams("b")
    a.send("b", Item(Kind.JOIN, (), (4,)))
    a.send("b", Item(Kind.INSERT, ("x",)), STAMP)
    a.send("b", Item(Kind.LEAF_IN, ("y", 2), (0,)), STAMP)
    a.send("b", Item(Kind.DELETE, ("x",)), Stamp(STAMP.generation, 2))
    return streams("a"), sent(a)


def test_items_come_with_the_stamp_they_were_sent_with() -> None:
    b, groups = opened()
    assert len(groups) == 5  # of one width each, and stamps have none
    assert [found for group in groups for found in b.read("a", group)] == [
        (Item(Kind.JOIN, (), (4,)), None),
        (Item(Kind.INSERT, ("x",)), STAMP),
        (Item(Kind.LEAF_IN, ("y", 2), (0,)), STAMP),
        (Item(Kind.DELETE, ("x",)), Stamp(STAMP.generation, 2)),
    ]
    assert b.life_of("a") == 4


def test_replays_are_skipped_and_gaps_refused() -> None:
    b, groups = opened()
    for group in groups[:3]:
        b.read("a", group)
    assert [b.read("a", group) for group in groups[:3]] == [[]] * 3
    with pytest.raises(WireError, match="where 3 should come"):
        b.read("a", groups[4])
    assert sum(len(b.read("a", group)) for group in groups[3:]) == 1


def test_a_new_life_begins_a_new_channel() -> None:
    b, groups = opened()
    for group in groups:
        b.read("a", group)
    again = streams("b")
    again.send("b", Item(Kind.JOIN, (), (5,)))
    again.send("b", Item(Kind.WANT), STAMP)
    (group,) = sent(again)
    assert b.read("a", group) == [(Item(Kind.JOIN, (), (5,)), None), (Item(Kind.WANT), STAMP)]
    assert b.read("a", groups[0]) == []


def test_groups_are_bounded() -> None:
    a = streams("b")
    for number in range(12_000):
        a.send("b", Item(Kind.INSERT, (number,)), STAMP)
    for number in range(30):
        a.send("b", Item(Kind.INSERT, (f"{number}" + "x" * 100_000,)), STAMP)
    blobs = sent(a)
    groups = [unpack(blob)[1] for blob in blobs]
    assert [len(group) for group in groups][:3] == [1, 5_000, 5_000]
    assert max(sum(len(str(item.row)) for item in group) for group in groups) < 1_000_000
    assert [item.row for group in groups for item in group][1:4] == [(0,), (1,), (2,)]
    assert sum(map(len, groups)) == 12_031


@given(payload=st.binary(max_size=12), cut=st.integers(0, 40))
def test_any_bytes_are_a_group_or_refused(payload: bytes, cut: int) -> None:
    whole = pack([Item(Kind.START, (), (1, 0, 1))], 3)
    for wrong in (payload, whole[:cut] + payload):
        try:
            number, items = unpack(wrong)
        except WireError:
            continue
        assert unpack(pack(items, number)) == (number, items)


# -- termination --------------------------------------------------------------------------------


@given(seed=st.integers(0, 10**6))
def test_a_step_is_over_only_when_nothing_is_under_way(seed: int) -> None:
    """Three sites pass work on at random; the leader hears reports late."""
    choice = random.Random(seed)
    indexes = (0, 1, 2)
    counts = {index: ChannelCounts(indexes, index) for index in indexes}
    channels: dict[tuple[int, int], int] = {}
    reports: list[tuple[int, tuple[int, ...]]] = []
    budget = choice.randrange(12)

    def pass_on(sender: int) -> None:
        nonlocal budget
        for _ in range(choice.randrange(3)):
            if budget:
                budget -= 1
                to = choice.choice([index for index in indexes if index != sender])
                counts[sender].sent(to)
                channels[sender, to] = channels.get((sender, to), 0) + 1

    for index in indexes:
        pass_on(index)
    for _ in range(200):
        idle = [index for index in indexes if choice.random() < 0.5]
        for index in idle:
            report = counts[index].news()
            if report is not None and index:
                reports.append((index, report))
        if reports and choice.random() < 0.5:
            counts[0].note(*reports.pop(0))
        if counts[0].is_over():
            assert not any(channels.values())
            return
        waiting = [channel for channel, count in channels.items() if count]
        if waiting and choice.random() < 0.5:
            sender, to = choice.choice(waiting)
            channels[sender, to] -= 1
            counts[to].worked(sender)
            pass_on(to)
    for index in indexes:
        report = counts[index].news()
        if report is not None and index:
            reports.append((index, report))
    for known in reports:
        counts[0].note(*known)
    assert counts[0].is_over()


def test_reports_of_strangers_and_of_the_last_step_do_not_count() -> None:
    counts = ChannelCounts((0, 2), 0)
    assert counts.news() == (0, 0, 0, 0)
    assert counts.news() is None
    counts.note(1, (0, 0, 0, 0))
    counts.note(2, (0, 0))
    assert not counts.is_over()
    counts.note(2, (0, 0, 0, 0))
    assert counts.is_over()
    counts.begin_step()
    assert not counts.is_over()
    assert counts.news() == (0, 0, 0, 0)


# -- leaf rows ----------------------------------------------------------------------------------

ONE: Row = ("a", "b")


def test_rows_that_come_and_go_before_they_are_told_were_never_there() -> None:
    base = BaseRows((LeafUse((), (0, 1)),))
    deltas: list[Delta] = [{("a", "b", 1): 1}, {("a", "b", 2): 1}, {("a", "b", 1): -1}]
    for delta in deltas:
        base.buffer(0, delta)
        base.take_in()
    assert base.take_entered() == ({ONE: None},)
    base.buffer(0, {("a", "b", 2): -1})
    base.take_in()
    assert base.has_left
    base.buffer(0, {("a", "b", 9): 1})
    base.take_in()
    assert not base.has_left
    assert base.take_entered() == ({},)
    base.restart()
    assert base.take_entered() == ({ONE: None},)
    assert base.take_left() == ({},)


# -- candidates ---------------------------------------------------------------------------------

MANY = AggregateSelection(group=(0,), bests=(Best(1), Best(2, minimum=False)))
VALUES = st.one_of(st.none(), st.integers(0, 3))
CANDIDATES = st.tuples(st.sampled_from("xy"), VALUES, VALUES)


@given(steps=st.lists(st.lists(st.tuples(st.booleans(), CANDIDATES), max_size=4), max_size=10))
def test_the_best_rows_are_shown(steps: list[list[tuple[bool, Row]]]) -> None:
    candidates = Candidates(MANY)
    live: set[Row] = set()
    view: Delta = {}
    for step in steps:
        for is_added, row in step:
            if is_added:
                candidates.add(row)
                live.add(row)
            elif row in candidates:
                candidates.discard(row)
                live.discard(row)
        before = set(view)
        released = candidates.take_released()
        accumulate(view, candidates.take_changes())
        expected = best_rows(MANY, live)
        assert set(view) == expected == {item.row for item in candidates.shown.items}
        assert set(view.values()) <= {1}
        assert set(released) >= expected - before


@given(rows=st.lists(CANDIDATES, max_size=12))
def test_without_deletions_only_the_best_are_kept(rows: list[Row]) -> None:
    candidates = Candidates(MANY, forgetful=True)
    for row in rows:
        candidates.add(row)
        candidates.settle_groups()
    assert {item.row for item in candidates.all.items} == best_rows(MANY, rows)
