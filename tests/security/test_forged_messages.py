"""Forged, repeated, broken and huge messages at real services: the answers stay right.

A sample; `python -m tests.security --messages 1000000` is the long run.
"""

import time
from collections.abc import Iterator

import pytest

from streamsql.wire.codec import encode_json
from streamsql.wire.site_messages import Birth, SiteRole, SiteState
from streamsql.wire.topics import Topics
from tests.broker.laws.secured import FEDERATION
from tests.end_to_end.federation import wait
from tests.security.forging import forge
from tests.security.house import ATTACKER, INSIDER, QUERIES, ROOMS, House, house

pytestmark = [pytest.mark.end_to_end, pytest.mark.broker, pytest.mark.timeout(600)]

SAMPLE = 4_000
TOPICS = Topics(FEDERATION)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    with house(tmp_path_factory.mktemp("house")) as made:
        yield made


@pytest.mark.parametrize("role", [SiteRole.BASE, SiteRole.STATIC, SiteRole.COORDINATOR])
def test_a_gateway_that_says_it_is_something_else_is_given_nothing(
    running: House, role: SiteRole
) -> None:
    """It is refused by name; no fragment or batch reaches it; new queries run without it."""
    name = f"with_a_false_{role}"
    with running.client(ATTACKER) as gateway, running.client(INSIDER) as watching:
        gateway.subscribe((TOPICS.fragment(site=ATTACKER), 1), (TOPICS.exchange(to=ATTACKER), 1))
        watching.subscribe((TOPICS.dead("coordinator"), 1))
        state = SiteState(True, 5, time.time_ns() // 1_000, role=role)
        birth = Birth(ATTACKER, 5, 0, time.time_ns() // 1_000, role=role)
        gateway.publish(TOPICS.state(ATTACKER), encode_json(state), retain=True)
        gateway.publish(TOPICS.birth(ATTACKER), encode_json(birth), retain=True)
        said = f"{ATTACKER!r} says".encode()
        wait(lambda: any(said in m.payload for m in watching.sync()), explain=running.said)
        running.execute(QUERIES["joined"].replace("s.level", "s.room"), name)
        running.feed(3)
        newest = {mid: room for mid, room, _ in running.fed}
        rooms = sorted((mid, room, ROOMS[room]) for mid, room in newest.items())
        wait(lambda: running.rows_of(name) == rooms, explain=running.said)
        assert [message.topic for message in gateway.sync()] == []
        running.http.delete(f"/api/queries/{name}").raise_for_status()
        for topic in (TOPICS.state(ATTACKER), TOPICS.birth(ATTACKER)):
            watching.publish(topic, b"", retain=True)


def test_no_message_changes_an_answer_or_ends_a_service(running: House) -> None:
    run = forge(running, SAMPLE, seed=1)
    assert min(run.by_gateway, run.by_insider) > SAMPLE // 3
    assert run.refused > SAMPLE // 10
