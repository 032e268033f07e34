"""A real link trace, replayed: the live links at any time are those of the definition."""

import asyncio
import csv
import gzip
import os
from datetime import UTC, datetime
from pathlib import Path

import pytest

from gateway.connectors.replay.replay_connector import ReplayConnector
from gateway.intake.validation import event_of
from gateway.testing import SECOND, declared_for, until
from stream_engine.site.site_engine import SiteEngine
from streamsql.algebra.operators import SourceKind
from streamsql.catalog.definitions import SourceDefinition
from streamsql.data.schema import Schema
from streamsql.data.types import DataType
from tests.gateway.connectors.building import context_for

ROOT = Path(__file__).parents[5]
SHARED = Path(os.environ.get("PANDO_SHARED_DATA", ROOT.parent / "shared" / "data"))
TRACE = SHARED / "link-traces" / "grenoble-sample.k7.gz"
LIFE = 1_800 * SECOND
LEAST = 0.5

LINK = SourceDefinition(
    "link",
    SourceKind.LINK,
    Schema.of(
        ("src", DataType.TEXT),
        ("dst", DataType.TEXT),
        ("cost", DataType.DOUBLE),
        ("pdr", DataType.DOUBLE),
        ("ts", DataType.TIMESTAMP),
    ),
    key=(0, 1),
    time_column=4,
    ttl=LIFE,
)

pytestmark = pytest.mark.skipif(not TRACE.exists(), reason="the link trace is not here")

Measurement = tuple[int, str, str, float]


@pytest.fixture(scope="module")
def measurements() -> list[Measurement]:
    """All lines of the trace, read without any of our code."""
    with gzip.open(TRACE, "rt") as file:
        file.readline()
        return [
            (
                int(datetime.fromisoformat(r["datetime"]).replace(tzinfo=UTC).timestamp()) * SECOND,
                r["src"],
                r["dst"],
                float(r["pdr"]),
            )
            for r in csv.DictReader(file)
        ]


def live(measurements: list[Measurement], now: int) -> dict[tuple[str, str], float]:
    """The links of a time from scratch: newest measurement young enough and good enough."""
    newest: dict[tuple[str, str], tuple[int, float]] = {}
    for ts, src, dst, ratio in measurements:
        if ts <= now and ts >= newest.get((src, dst), (0, 0.0))[0]:
            newest[src, dst] = (ts, ratio)
    return {
        ends: ratio for ends, (ts, ratio) in newest.items() if ratio >= LEAST and ts + LIFE > now
    }


def test_the_trace_has_what_the_story_says(measurements: list[Measurement]) -> None:
    nodes = {node for _, src, dst, _ in measurements for node in (src, dst)}
    assert len(nodes) == 44
    assert measurements == sorted(measurements, key=lambda m: m[0])


@pytest.mark.parametrize("gateways", [1, 3])
def test_at_any_time_the_live_links_are_those_of_the_definition(
    measurements: list[Measurement], gateways: int
) -> None:
    nodes = sorted({node for _, src, dst, _ in measurements for node in (src, dst)})
    first, last = measurements[0][0], measurements[-1][0]
    times = [first + (last - first) * step // 24 for step in range(25)]
    times += [last + LIFE // 2, last + 2 * LIFE]

    async def scenario() -> None:
        now = 0
        engines = []
        tasks = []
        problems: list[str] = []
        for number in range(gateways):
            engine = SiteEngine(f"gw-{number}", 1)
            engine.declare(LINK.scan())
            engines.append(engine)
            owned = tuple(nodes[number::gateways]) if gateways > 1 else ()

            def emit(readings: object, engine: SiteEngine = engine) -> None:
                events = [event_of(r, LINK, now) for r in readings]  # type: ignore[attr-defined]
                engine.ingest("link", events)

            context = context_for(
                [declared_for(LINK, "replay")],
                {"file": str(TRACE), "format": "k7", "nodes": list(owned)},
                clock=lambda: now,
                emit=emit,
                problem=problems.append,
            )
            tasks.append(asyncio.create_task(ReplayConnector().run(context)))
        seen = 0
        for moment in times:
            now = moment
            expected = live(measurements, now)

            def current(now: int = now) -> dict[tuple[object, object], object]:
                for engine in engines:
                    engine.step(now)
                rows = [row for engine in engines for row in engine.source_rows("link")]
                assert len(rows) == len({row[:2] for row in rows}), "no link of two gateways"
                return {(row[0], row[1]): row[3] for row in rows}

            await until(lambda: current() == expected, f"the links of {now}")  # noqa: B023
            seen = max(seen, len(expected))
        assert problems == []
        assert seen > 100
        for task in tasks:
            task.cancel()

    asyncio.run(scenario())
