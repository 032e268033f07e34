"""Runs for which the coordinator has work: as found by going through all of them."""

from typing import Any

from federated_optimizer.coordinator.queries.runs.run_reads import reads_reports, streams_read_by

TEXTS = (
    "SELECT rid, status FROM RoomSensor",
    "SELECT query, rows FROM sys_queries",
    "SELECT ts, value FROM sys_stream [RANGE 10 SECONDS] WHERE property = 'rows'",
    "SELECT rid FROM temperature [ROWS 3]",
    "SELECT q.query FROM sys_queries q, RoomSensor r WHERE q.name = r.rid",
)


def test_they_are_found_until_nobody_reads_them(harness: Any) -> None:
    async def scenario(federation: Any) -> None:
        coordinator = await federation.standard()
        runs, host = coordinator._queries.runs, coordinator._shared.settings.host

        def check() -> None:
            bundles = {query.run: query.bundle for query in runs.leaders()}
            reads = runs.reads
            assert set(reads.names()) == set(bundles)
            assert set(reads.tables) == {r for r, b in bundles.items() if b.at(host)}
            assert set(reads.reports) == {r for r, b in bundles.items() if reads_reports(b)}
            assert set(reads.observations) == {r for r, b in bundles.items() if streams_read_by(b)}

        queries = [await harness.start_query(coordinator, text) for text in TEXTS]
        again = [await harness.start_query(coordinator, text) for text in TEXTS]
        check()
        assert len(runs.reads.tables) >= 2
        assert runs.reads.reports
        assert runs.reads.observations
        for query in queries:
            await coordinator.stop(query)
            check()
        assert runs.reads.tables
        for query in again:
            await coordinator.stop(query)
            check()
        assert not runs.reads.names()
        assert not runs.reads.tables

    harness.run(scenario)
