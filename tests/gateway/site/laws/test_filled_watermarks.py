"""Windows over a source with a watermark begin with what was not late, and go on live."""

import pytest
from msgspec.structs import replace

from streamsql.data.events import SourceEvent
from streamsql.wire.fill_messages import FillRows, FillWanted, PackName
from tests.gateway.site.test_window_fills import SECOND, Lake, World, expected, planned, shown
from tests.streamsql.from_text import catalog_of

CATALOG = catalog_of(
    "CREATE SOURCE noise (room TEXT, level INTEGER, ts TIMESTAMP, "
    "WATERMARK FOR ts AS ts - INTERVAL '10 s')"
)
QUERIES = (
    "SELECT room, COUNT(*) AS n, SUM(level) AS total FROM noise [RANGE 5 MINUTES] GROUP BY room",
    "SELECT room, level FROM noise [PARTITION BY room ROWS 3]",
)


class JudgingLake(Lake):
    """Leaves out what was late, by the order in which the gateway has ingested it."""

    def answer(self, wanted: FillWanted) -> FillRows:
        assert wanted.lateness == 10 * SECOND
        newest, whole = -(2**62), dict(self.landed)
        on_time: dict[PackName, list[SourceEvent]] = {}
        for pack in sorted(whole):
            on_time[pack] = []
            for event in whole[pack]:
                if event.ts >= newest - wanted.lateness:
                    on_time[pack].append(event)
                newest = max(newest, event.ts)
        # A late reading keeps its place empty: cursors name places.
        kept = Lake(self.chance)
        kept.landed = on_time
        return kept.answer(replace(wanted, lateness=None))


@pytest.mark.parametrize("text", QUERIES)
def test_every_reading_that_was_not_late_is_in_a_window_once(text: str) -> None:
    late = 0
    for seed in range(25):
        world = World(seed, is_base=False, catalog=CATALOG, lake=JudgingLake)
        chance = world.chance
        plan, bundle = planned(text, world.site, CATALOG)
        for _ in range(chance.randrange(40)):
            world.read()
            world.tick(chance.random() * 3)
            world.engine.step(world.now)
            world.land()
        world.fills.begin(bundle, world.moment)
        world.engine.install(bundle)
        world.go_on()
        assert not world.fills.to_remember(), seed
        assert shown(world.engine, world.now) == expected(plan, world.every, world.now), seed
        newest = [max(e.ts for e in world.every[: n + 1]) for n in range(len(world.every))]
        late += sum(e.ts < n - 10 * SECOND for e, n in zip(world.every, newest, strict=True))
    assert late > 25
