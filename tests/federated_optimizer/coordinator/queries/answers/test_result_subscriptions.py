"""Readers of changes: what one gets is the relation; what is closed gets nothing and is gone."""

import asyncio
from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from federated_optimizer.coordinator.contract.coordinator_model import (
    Change,
    ChangeBatch,
    QueryStatus,
)
from federated_optimizer.coordinator.queries.answers.result_subscriptions import ResultSubscription
from streamsql.data.types import Value


class Relation:
    """A query's rows and one reader of them.

    Attributes:
        rows: How often each row is there.
        gone: The readers that have said that they are gone.
    """

    def __init__(self, *, max_behind: int = 100, begin_with_snapshot: bool = True) -> None:
        self.rows: Counter[Value] = Counter()
        self.gone: list[ResultSubscription] = []
        self.reader = ResultSubscription(
            self.snapshot,
            self.gone.append,
            max_behind=max_behind,
            begin_with_snapshot=begin_with_snapshot,
        )

    def snapshot(self) -> ChangeBatch:
        return ChangeBatch("q", changes(self.rows), snapshot=True)

    def change(self, number: int, weight: int = 1) -> None:
        self.rows[number] += weight
        self.reader.deliver(ChangeBatch("q", changes({number: weight})))


def changes(rows: Mapping[Value, int]) -> tuple[Change, ...]:
    return tuple(Change(0, weight, (number,)) for number, weight in rows.items() if weight)


async def rest(reader: ResultSubscription) -> list[ChangeBatch]:
    """Return all that a reader still gets; it has ended."""
    return [batch async for batch in reader]


def test_a_closed_reader_gets_nothing_of_what_waited_or_comes() -> None:
    async def run() -> None:
        relation = Relation(begin_with_snapshot=False)
        relation.change(1)
        await relation.reader.close()
        relation.change(2)
        assert await rest(relation.reader) == []

    asyncio.run(run())


def test_a_closed_reader_gets_no_snapshot_that_it_was_owed() -> None:
    async def run() -> None:
        relation = Relation()
        await relation.reader.close()
        assert await rest(relation.reader) == []

    asyncio.run(run())


def test_a_reader_is_gone_once_however_often_it_is_closed() -> None:
    async def run() -> None:
        relation = Relation()
        await relation.reader.close()
        await relation.reader.close()
        assert relation.gone == [relation.reader]

    asyncio.run(run())


def test_a_reader_that_waits_learns_that_it_is_closed() -> None:
    async def run() -> None:
        relation = Relation(begin_with_snapshot=False)
        waits = asyncio.ensure_future(rest(relation.reader))
        await asyncio.sleep(0)
        assert not waits.done()
        await relation.reader.close()
        assert await asyncio.wait_for(waits, 5) == []

    asyncio.run(run())


def test_a_reader_whose_query_has_ended_gets_what_waited_and_the_last_word() -> None:
    async def run() -> None:
        relation = Relation(begin_with_snapshot=False)
        relation.change(1)
        last = ChangeBatch("q", (), status=QueryStatus.FAILED, error="no more")
        relation.reader.end(last)
        relation.change(2)
        assert await rest(relation.reader) == [ChangeBatch("q", changes({1: 1})), last]
        await relation.reader.close()
        assert relation.gone == [relation.reader]

    asyncio.run(run())


@pytest.mark.parametrize(("waiting", "batches"), [(3, 3), (4, 1)])
def test_a_reader_may_be_as_far_behind_as_its_bound(waiting: int, batches: int) -> None:
    """One more and all of it is a snapshot."""

    async def run() -> None:
        relation = Relation(max_behind=3, begin_with_snapshot=False)
        for number in range(waiting):
            relation.change(number)
        relation.reader.end()
        got = await rest(relation.reader)
        assert [batch.snapshot for batch in got] == [batches == 1] * batches

    asyncio.run(run())


READ, PROGRESS = (0, 0), (1, 0)
STEPS = st.lists(
    st.tuples(st.integers(0, 3), st.sampled_from([-1, 1])) | st.sampled_from([READ, PROGRESS]),
    max_size=30,
)


@given(steps=STEPS, max_behind=st.integers(1, 5), begin_with_snapshot=st.booleans())
def test_what_a_reader_gets_is_the_relation_however_slow_it_is(
    steps: list[tuple[int, int]], max_behind: int, begin_with_snapshot: bool
) -> None:
    async def run() -> None:
        relation = Relation(max_behind=max_behind, begin_with_snapshot=begin_with_snapshot)
        known: Counter[Value] = Counter()

        def take(batch: ChangeBatch) -> None:
            if batch.snapshot:
                known.clear()
            for change in batch.changes:
                known[change.row[0]] += change.diff

        for step in steps:
            if step == READ:
                reading = asyncio.ensure_future(anext(relation.reader))
                await asyncio.sleep(0)
                if reading.done():
                    take(reading.result())
                else:
                    reading.cancel()
            elif step == PROGRESS:
                relation.reader.deliver(ChangeBatch("q", (), progress=1))
            else:
                relation.change(*step)
        relation.reader.end()
        for batch in await rest(relation.reader):
            take(batch)
        assert {n: w for n, w in known.items() if w} == {
            n: w for n, w in relation.rows.items() if w
        }

    asyncio.run(run())
