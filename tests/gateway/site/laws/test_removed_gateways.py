"""A base that reads the observations of gateways forgets those that were removed for good."""

import pytest

from gateway.site import left_fragments
from gateway.testing import SEATS, until
from streamsql.algebra.operators import Scan, ScanPart, SourceKind, Window, WindowKind
from streamsql.data.types import Value
from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import records_of
from streamsql.wire.site_messages import SiteState
from tests.gateway.site.federation import TOPICS, Federation, Site, clock, run

MARKED = Scan("seatsensor", SourceKind.STREAM, SEATS.schema, (), 2, lateness=0)


def last_rows() -> FragmentBundle:
    """Return a window by count over all gateways, which is kept at the base."""
    plan = Window(MARKED, WindowKind.ROWS, 3)
    return FragmentBundle("q1", 1, (Fragment("f1", Engine.BASE, plan, ("base",)),), plan.schema)


def observe(federation: Federation, gateway: str, number: int) -> None:
    """Let a gateway say something of itself, and publish a reading."""
    state = SiteState(True, 1, number)
    federation.console.publish(TOPICS.state(gateway), encode_json(state), retain=True)
    row = (f"{gateway}-{number}", 1.0, number)
    records = tuple(records_of(row[0], number, row, SEATS.schema))
    pack = ObservationPack(1, number, records)
    federation.console.publish(TOPICS.observation(gateway, "seatsensor"), encode_json(pack))


def origins(site: Site) -> set[str]:
    return site.engine.origins()


async def two_that_observe(federation: Federation) -> Site:
    await federation.begin()
    base = await federation.site("base", reads_observations=True)
    federation.install(last_rows())
    await until(lambda: base.engine.queries == {"q1": 1}, "the query runs")
    for number in range(1, 100):
        for gateway in ("gw-1", "gw-2"):
            observe(federation, gateway, number)
        await federation.broker.settle()
        if origins(base) == {"gw-1", "gw-2"}:
            return base
        await until(lambda: True, "a moment")
    raise AssertionError("the base has not read the observations")


def marks(site: Site) -> set[str]:
    mark = site.engine._sources.watermarks["seatsensor"][MARKED.lateness]
    return set(mark.so_far().reached)


def test_one_that_is_removed_is_forgotten_after_the_grace_time() -> None:
    async def scenario(federation: Federation) -> None:
        base = await two_that_observe(federation)
        assert {"gw-1", "gw-2"} <= marks(base)
        federation.console.publish(TOPICS.state("gw-2"), b"", retain=True)
        await until(lambda: marks(base) == {"gw-1"}, "its watermark is forgotten")
        assert origins(base) == {"gw-1"}

    run(scenario)


def test_one_that_is_only_away_is_not_forgotten() -> None:
    async def scenario(federation: Federation) -> None:
        base = await two_that_observe(federation)
        state = SiteState(False, 1, 0, reason="lost")
        federation.console.publish(TOPICS.state("gw-2"), encode_json(state), retain=True)
        await until(lambda: bool(base.host.membership.lost()), "it is given up")
        assert {"gw-1", "gw-2"} <= marks(base)
        assert origins(base) == {"gw-1", "gw-2"}

    run(scenario)


def test_one_that_was_removed_while_the_base_was_away_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(left_fragments, "PATIENCE", 0.1)

    async def scenario(federation: Federation) -> None:
        base = await two_that_observe(federation)
        await base.stop()
        base.engine.step(clock())
        snapshot = base.engine.snapshot(None)
        federation.console.publish(TOPICS.state("gw-2"), b"", retain=True)
        again = Site(federation.broker, "base", 2, reads_observations=True)
        federation.sites["base"] = again
        again.engine.restore(snapshot, (), clock())
        assert origins(again) == {"gw-1", "gw-2"}
        await again.start()
        await until(lambda: origins(again) == {"gw-1"}, "the broker does not know gw-2")
        assert marks(again) == {"gw-1"}

    run(scenario)


def test_progress_of_windows_at_the_base_goes_with_it() -> None:
    """By hand: plans of the optimizer read the progress of a source at its gateways."""

    async def scenario(federation: Federation) -> None:
        base = await two_that_observe(federation)
        progress = Scan(
            MARKED.source, MARKED.kind, MARKED.columns, (), 2, None, 0, ScanPart.PROGRESS
        )
        fragment = Fragment("f1", Engine.BASE, progress, ("base",))
        federation.install(FragmentBundle("q2", 1, (fragment,), progress.schema))

        def sites() -> set[Value]:
            relations = base.engine._sources.relations["seatsensor"]
            return {
                row[0] for s, r in relations.items() if s == progress for _, row in r.snapshot()
            }

        await until(lambda: sites() == {"gw-1", "gw-2"}, "the progress of both is known")
        state = SiteState(False, 1, 0, reason="lost")
        federation.console.publish(TOPICS.state("gw-2"), encode_json(state), retain=True)
        await until(lambda: sites() == {"gw-1"}, "nobody waits for it")

    run(scenario)
