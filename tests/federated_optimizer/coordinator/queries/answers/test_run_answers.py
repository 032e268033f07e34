"""One answer for many queries: what each shows is what it would show with a copy of its own."""

import asyncio
import random
import tracemalloc

import pytest

from federated_optimizer.coordinator.contract.coordinator_model import ChangeBatch
from federated_optimizer.coordinator.queries.answers.result_subscriptions import ResultSubscription
from federated_optimizer.coordinator.queries.answers.results import QueryResult
from streamsql.algebra.operators import Scan, SourceKind
from streamsql.data.delta import Delta, accumulate
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from streamsql.wire.channel_protocol import SendingChannel
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import DeltaBatch

SCHEMA = Schema.of(("a", DataType.INTEGER))
SITES = ("base", "other")


def bundle(run: str = "q1", version: int = 1) -> FragmentBundle:
    plan = Scan("s", SourceKind.STREAM, SCHEMA)
    return FragmentBundle(run, version, (Fragment("f0", Engine.BASE, plan, SITES),), SCHEMA)


def result(of: FragmentBundle, query: str) -> QueryResult:
    return QueryResult(of, clock=lambda: 7, max_behind=10_000, query=query)


class Run:
    """Result sites of a run, and the results that read it."""

    def __init__(self, of: FragmentBundle) -> None:
        self.bundle = of
        self.ends = {
            site: SendingChannel(version=of.version, epoch=1, ports=("f0",)) for site in SITES
        }
        self.results: list[QueryResult] = []

    def begin(self, *results: QueryResult) -> None:
        self.results.extend(results)
        for site, end in self.ends.items():
            self.give(site, *end.snapshot(now=0))

    def push(self, delta: Delta, site: str = "base") -> None:
        self.give(site, *self.ends[site].push("f0", delta, now=0))

    def give(self, site: str, *batches: DeltaBatch) -> None:
        """Hand batches to each answer once, as the coordinator does."""
        for batch in batches:
            for answer in dict.fromkeys(r.answer for r in self.results):
                if answer.is_live:
                    answer.accept(site, batch)


class Reader:
    """Adds up what a result tells."""

    def __init__(self, of: QueryResult) -> None:
        self.rows: Delta = {}
        self.batches: list[ChangeBatch] = []
        self._of = of
        self._subscription: ResultSubscription = of.subscribe(lambda _: None, snapshot=True)

    async def read(self) -> Delta:
        while self._subscription._owes_snapshot or self._subscription._waiting:
            batch = await anext(self._subscription)
            self.batches.append(batch)
            if batch.snapshot:
                self.rows = {}
            accumulate(self.rows, {c.row: c.diff for c in batch.changes})
        assert self.rows == self._of.view
        return self.rows


def shared(count: int, of: FragmentBundle | None = None) -> tuple[Run, list[QueryResult]]:
    run = Run(of or bundle())
    first, *others = [result(run.bundle, f"q{number}") for number in range(1, count + 1)]
    run.begin(first)
    for other in others:
        other.join(first)
        run.results.append(other)
    return run, [first, *others]


def answers(results: list[QueryResult]) -> int:
    return len({id(each.answer) for each in results})


def test_equal_queries_keep_the_rows_once() -> None:
    run, results = shared(200)
    rows: Delta = {(n,): 1 for n in range(20_000)}
    tracemalloc.start()
    run.push(rows)
    taken, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answers(results) == 1
    assert {each.size for each in results} == {20_000}
    assert {each.answer.rows for each in results} == {20_000}
    assert taken < 20_000 * 500  # and not two hundred times as much


def test_a_change_costs_what_those_cost_that_are_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    tell = QueryResult.told

    def noted(self: QueryResult, *of: object) -> None:
        told.append(self.query)
        tell(self, *of)  # type: ignore[arg-type]

    monkeypatch.setattr(QueryResult, "told", noted)

    async def scenario() -> None:
        run, results = shared(50)
        run.push({(0,): 1})
        assert told == []
        reader = Reader(results[3])
        results[4].follow(lambda _delta: None)
        run.push({(1,): 1})
        assert told == ["q4", "q5"]
        assert await reader.read() == {(0,): 1, (1,): 1}
        (subscription,) = results[3].readers
        await subscription.close()
        results[3].readers.clear()
        told.clear()
        run.push({(2,): 1})
        assert told == ["q5"]
        assert {each.changes for each in results} == {3}

    asyncio.run(scenario())


def test_who_is_stopped_keeps_what_there_was_and_one_copy_is_for_all_of_them() -> None:
    run, results = shared(6)
    run.push({(1,): 1})
    for each in results[:3]:
        each.stop()
    assert answers(results) == 1, "nothing is copied before something changes"
    run.push({(2,): 1})
    run.push({(1,): -1}, "base")
    assert [each.view for each in results[:3]] == [{(1,): 1}] * 3
    assert [each.view for each in results[3:]] == [{(2,): 1}] * 3
    assert answers(results) == 2
    for each in results[3:]:
        each.stop()
    assert not results[3].answer.is_live


def test_who_leaves_for_another_bundle_keeps_the_view_until_it_is_filled() -> None:
    async def scenario() -> None:
        run, results = shared(5)
        run.push({(1,): 1, (2,): 1})
        readers = [Reader(each) for each in results]
        for reader in readers:
            await reader.read()
        new = Run(bundle("q9"))
        for each in results[:3]:
            each.redeploy(new.bundle)
        assert answers(results) == 2, "those who leave together stay together"
        run.results = results[3:]
        run.push({(3,): 1})
        assert [each.view for each in results[:3]] == [{(1,): 1, (2,): 1}] * 3
        assert [each.view for each in results[3:]] == [{(1,): 1, (2,): 1, (3,): 1}] * 2
        new.begin(*results[:3])
        new.push({(2,): 1, (4,): 1})
        assert results[0].held
        assert results[0].view == {(1,): 1, (2,): 1}
        results[0].release()
        for reader, each in zip(readers, results, strict=True):
            assert await reader.read() == each.view
        assert [each.view for each in results[:3]] == [{(2,): 1, (4,): 1}] * 3
        told = {c.row: c.diff for c in readers[0].batches[-1].changes}
        assert told == {(1,): -1, (4,): 1}

    asyncio.run(scenario())


def test_who_leaves_later_has_seen_more() -> None:
    run, results = shared(3)
    run.push({(1,): 1})
    new = bundle("q9")
    results[0].redeploy(new)
    run.results = results[1:]
    run.push({(2,): 1})
    results[1].redeploy(new)
    assert results[0].view == {(1,): 1}
    assert results[1].view == {(1,): 1, (2,): 1}


def test_queries_that_move_to_a_filled_run_read_its_answer_and_tell_the_difference() -> None:
    async def scenario() -> None:
        run, results = shared(4)
        run.push({(1,): 1})
        readers = [Reader(each) for each in results]
        new = Run(bundle("q9"))
        trial = result(new.bundle, "trial")
        new.begin(trial)
        new.push({(1,): 1, (2,): 1})
        for each in results[:2]:
            changes = each.changes
            each.hand_over(new.bundle, trial)
            assert each.changes == changes + 1
        assert results[0].answer is results[1].answer is trial.answer
        for reader, each in zip(readers, results, strict=True):
            assert await reader.read() == each.view
        new.push({(3,): 1})
        assert await readers[1].read() == {(1,): 1, (2,): 1, (3,): 1}
        assert await readers[3].read() == {(1,): 1}

    asyncio.run(scenario())


def test_two_answers_of_one_run_become_one_when_they_are_the_same() -> None:
    run, (old, *results) = shared(3)
    run.push({(1,): 1})
    late = Run(bundle("q5"))
    other = result(late.bundle, "q5")
    late.begin(other)
    late.push({(9,): 1})
    other.redeploy(run.bundle)
    other.join(old)
    run.results.append(other)
    assert not other.answer.merge_into(old.answer), "it is held"
    run.push({(2,): 1})
    assert other.view == {(9,): 1}
    other.release()
    assert other.view == old.view
    assert other.answer is not old.answer
    assert old.answer.received() == other.answer.received()
    before = other.changes
    assert other.answer.merge_into(old.answer)
    assert other.answer is old.answer
    assert other.changes == before
    run.push({(3,): 1})
    assert other.changes == before + 1
    assert answers([old, other, *results]) == 1


class Both:
    """The same messages and moves, once with shared answers and once with a result each."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.runs = {name: Run(bundle(name)) for name in ("q1", "q2", "q3")}
        self.ours: list[QueryResult] = []
        self.alone: list[QueryResult] = []
        self.reads: list[str] = []
        self.stopped: set[int] = set()
        self.readers: list[Reader] = []
        self.start("q1")

    def live(self, name: str) -> list[int]:
        """Return the queries that read a run."""
        return [n for n, run in enumerate(self.reads) if run == name and n not in self.stopped]

    def step(self) -> None:
        """Let something happen to a run."""
        name = self.rng.choice(list(self.runs))
        kinds = [self.start, self.push, self.push, self.push, self.stop, self.move]
        self.rng.choice([*kinds, self.release, self.release, self.merge])(name)

    def start(self, name: str) -> None:
        """Start a query; the one with a result of its own gets a snapshot."""
        if any(self.ours[n].held for n in self.live(name)[:1]):
            return  # it would show what the other one does until that is released
        number = len(self.ours)
        mine, other = [result(self.runs[name].bundle, f"q{number}") for _ in range(2)]
        if leaders := self.live(name):
            mine.join(self.ours[leaders[0]])
        self.ours.append(mine)
        self.alone.append(other)
        self.reads.append(name)
        if self.rng.random() < 0.5:
            self.readers.append(Reader(mine))
        self._snapshot(name)

    def push(self, name: str) -> None:
        """Let a row come or go."""
        site = self.rng.choice(SITES)
        row = (self.rng.randrange(6),)
        weight = -1 if self.runs[name].ends[site].contents["f0"].get(row) else 1
        self._route()
        self.runs[name].push({row: weight}, site)

    def stop(self, name: str) -> None:
        """Stop a query for reasons of its own."""
        if live := self.live(name):
            number = self.rng.choice(live)
            self.stopped.add(number)
            self.ours[number].stop()

    def move(self, name: str) -> None:
        """Let some queries of a run read another one."""
        to = self.rng.choice([other for other in self.runs if other != name])
        leaders = self.live(to)
        for number in [n for n in self.live(name) if self.rng.random() < 0.6]:
            for each in (self.ours[number], self.alone[number]):
                each.redeploy(self.runs[to].bundle)
            if leaders:
                self.ours[number].join(self.ours[leaders[0]])
            leaders = leaders or [number]
            self.reads[number] = to
        self._snapshot(to)

    def release(self, name: str) -> None:
        """Show what has come."""
        live = self.live(name)
        for results in (self.ours, self.alone):
            for answer in dict.fromkeys(results[n].answer for n in live):
                if answer.held and answer.is_synchronised:
                    answer.release()

    def merge(self, name: str) -> None:
        """Let answers that are the same become one."""
        found = list(dict.fromkeys(self.ours[n].answer for n in self.live(name)))
        for answer in found[1:]:
            answer.merge_into(found[0])

    def _route(self) -> None:
        for name, run in self.runs.items():
            run.results = [of[n] for of in (self.ours, self.alone) for n in self.live(name)]

    def _snapshot(self, name: str) -> None:
        self._route()
        for site, end in self.runs[name].ends.items():
            self.runs[name].give(site, *end.snapshot(now=0))

    async def check(self) -> None:
        """Compare what every query shows and has told."""
        for mine, other in zip(self.ours, self.alone, strict=True):
            assert mine.view == other.view
            assert mine.contents() == other.contents()
            assert mine.held == other.held
            assert mine.answer.rows == sum(mine.view.values())
        for reader in self.readers:
            await reader.read()


@pytest.mark.parametrize("seed", range(40))
def test_each_shows_what_a_copy_of_its_own_would_show(seed: int) -> None:
    async def scenario() -> None:
        both = Both(seed)
        for _ in range(80):
            both.step()
            await both.check()

    asyncio.run(scenario())
