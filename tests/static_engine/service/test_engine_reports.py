"""A new life is announced before what it complains about, or that would count as the old one's."""

from pathlib import Path

import msgspec

from streamsql.wire.codec import decode_json
from streamsql.wire.site_messages import SiteState
from tests.static_engine.rooms_table import ROOMS, TOPICS
from tests.static_engine.service.test_static_engine import World, bundle, run


def test_the_state_comes_before_problems(tmp_path: Path) -> None:
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
