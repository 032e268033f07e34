"""Reports of the static engine: their order, and what is said again."""

from pathlib import Path

import msgspec

from streamsql.wire.codec import decode_json, decode_packed
from streamsql.wire.site_messages import SiteState, SourceCount
from tests.static_engine.rooms_table import ROOMS, TOPICS
from tests.static_engine.service.test_static_engine import World, bundle, deployed, run


def test_the_state_comes_before_problems(tmp_path: Path) -> None:
    """Else problems of a new life would count as those of the old one."""
    missing = msgspec.structs.replace(ROOMS, options=(("source", "csv"), ("path", "none.csv")))
    state, error = TOPICS.host_state("static"), TOPICS.error("q1", "static")

    def told(w: World) -> list[str]:
        """Topics on which it said that it lives, and what is wrong, in that order."""
        said = [m for m in w.seen if m.topic in (state, error)]
        return [
            m.topic for m in said if m.topic == error or decode_json(m.payload, SiteState).online
        ]

    async def scenario(w: World) -> None:
        w.tables(missing)
        w.deploy(bundle())
        await w.until(lambda: error in told(w))
        w.seen.clear()
        w.broker.cut("static")
        w.broker.restore("static")
        await w.until(lambda: error in told(w))
        assert told(w)[0] == state

    run(tmp_path, scenario)


def test_columns_of_tables_are_told_when_they_change_and_after_a_connect(tmp_path: Path) -> None:
    def told(w: World) -> list[SourceCount]:
        payloads = [m.payload for m in w.seen if m.topic == TOPICS.columns("static")]
        return [decode_packed(payload, SourceCount) for payload in payloads]

    async def scenario(w: World) -> None:
        await deployed(w)
        await w.until(lambda: told(w))
        (count,) = told(w)
        assert (count.source, count.rows, count.sampled) == ("rooms", 3, 3)
        room = count.columns["room"]
        assert (room.distinct, room.often, room.size) == (2.0, 2, 6)
        assert not w.broker.retained.get(TOPICS.columns("static"))
        w.broker.cut("static")
        w.broker.restore("static")
        await w.until(lambda: len(told(w)) > 1)
        assert told(w)[1] == count

    run(tmp_path, scenario)
