"""Offers of what runs are as they were when planning has been ended between two steps."""

import asyncio
from dataclasses import replace
from typing import Any, cast

import pytest

from federated_optimizer.coordinator.queries.runs import readable_offers
from federated_optimizer.costs.relations.estimates import estimate
from federated_optimizer.statistics.planning_statistics import SourceFacts, Statistics

TEXTS = [f"SELECT rid FROM RoomSensor WHERE status = '{word}'" for word in ("a", "b", "c")]


class Ended(BaseException):
    """Planning was ended."""


def forms(offers: Any, runs: list[str]) -> list[set[tuple[str, str]]]:
    index = offers.index()
    return [{(o.fragment, str(o.plan)) for o in index.of_run(run)} for run in runs]


def test_what_ended_planning_has_changed_is_offered_anew(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = [await harness.start_query(coordinator, text) for text in TEXTS]
        offers = coordinator._statements.preparation._offers
        runs = [coordinator.query(query).run for query in queries]
        before = forms(offers, runs)
        assert all(before)
        first, *others = (offers.index().of_run(run) for run in runs)

        def planning() -> None:
            index = offers.index()
            with offers.restored():
                index.remove(runs[0])
                index.remove(runs[1])
                for offer in first:
                    index.add(offer)
                raise Ended

        with pytest.raises(Ended):
            planning()
        assert forms(offers, runs) == before
        assert offers.index().of_run(runs[2]) == others[1], "the others are left as they are"
        with offers.restored():
            assert forms(offers, runs) == before

    harness.run(scenario)


def test_an_index_that_a_failure_has_broken_is_made_anew(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        run = coordinator.query(await harness.start_query(coordinator, TEXTS[0])).run
        offers = coordinator._statements.preparation._offers
        before, index = forms(offers, [run]), offers.index()
        wrong = replace(index.of_run(run)[0], plan=cast("Any", None))
        with pytest.raises(AttributeError), offers.restored():
            index.add(wrong)
        assert forms(offers, [run]) == before
        assert offers.index() is not index

    harness.run(scenario)


def test_a_run_whose_offers_cannot_be_made_keeps_no_other_from_being_offered(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        offers = coordinator._statements.preparation._offers
        offers.index()
        queries = [await harness.start_query(coordinator, text) for text in TEXTS]
        runs = [coordinator.query(query).run for query in queries]
        offers.runs.touched = dict.fromkeys(runs)
        offers._known.clear()
        put = offers._put

        def refused(run: str, *given: Any, **named: Any) -> None:
            if run == runs[0]:
                raise RecursionError
            put(run, *given, **named)

        monkeypatch.setattr(offers, "_put", refused)
        with pytest.raises(RecursionError):
            offers.index()
        assert all(map(offers.index().of_run, runs[1:]))

    harness.run(scenario)


def test_offers_of_many_runs_are_made_a_few_at_a_time(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        queries = [await harness.start_query(coordinator, text) for text in TEXTS]
        offers = coordinator._statements.preparation._offers
        runs = [coordinator.query(query).run for query in queries]
        before = forms(offers, runs)
        monkeypatch.setattr(readable_offers, "AT_ONCE", 1)
        offers._known.clear()
        offers.runs.touched.update(dict.fromkeys(runs))
        left: list[int] = []

        async def others() -> None:
            while len(offers.runs.touched) > 1:
                left.append(len(offers.runs.touched))
                await asyncio.sleep(0)

        await asyncio.gather(others(), offers.catch_up())
        assert left == [3, 2], "somebody else's turn after each"
        assert len(offers.runs.touched) == 1, "the rest is for whoever needs it"
        assert forms(offers, runs) == before

    harness.run(scenario)


def test_offers_are_estimated_once_while_statistics_are_the_same(
    harness: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard(gateways=1)
        run = coordinator.query(await harness.start_query(coordinator, TEXTS[0])).run
        offers = coordinator._statements.preparation._offers
        (offer, *_) = offers.index().of_run(run)
        estimated: list[float] = []

        def counted(plan: Any, statistics: Statistics) -> Any:
            found = estimate(plan, statistics)
            estimated.append(found.rows)
            return found

        monkeypatch.setattr(readable_offers, "estimate", counted)
        few, many = (
            Statistics(sources={"roomsensor": SourceFacts(rows=rows)}) for rows in (10.0, 1000.0)
        )
        told = [offers.estimates(known)(offer) for known in (few, few, many, many, few)]
        assert estimated == [told[0], told[2], told[4]]
        assert told[1] == told[0] == told[4] < told[2] == told[3]

    harness.run(scenario)
