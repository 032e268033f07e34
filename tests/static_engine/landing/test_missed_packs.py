"""Packs that a broker has lost are asked for again, each stream once, and never for ever."""

import pytest

from static_engine.landing.missed_packs import ASK_SECONDS, AT_ONCE, MAX_TRIES, MissedPacks
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_compressed_json, encode_json
from streamsql.wire.messages import ObservationPack
from streamsql.wire.observation_logs import PacksPublished, PacksWanted
from streamsql.wire.site_messages import SiteRole, SiteState
from streamsql.wire.topics import Topics

TOPICS = Topics("house")


def state(
    epoch: int = 3, *streams: str, online: bool = True, role: SiteRole = SiteRole.GATEWAY
) -> bytes:
    return encode_json(SiteState(online, epoch, 0, role, sources=streams or ("climate",)))


def asked(missed: MissedPacks, moment: float) -> list[tuple[str, PacksWanted]]:
    return [
        (topic, decode_json(payload, PacksWanted)) for topic, payload in missed.requests(moment)
    ]


def pack(number: int) -> bytes:
    return encode_json(ObservationPack(3, 1_000 + number, (), n=number))


@pytest.fixture
def missed() -> MissedPacks:
    return MissedPacks("lander", TOPICS)


def test_nobody_is_asked_before_there_is_a_connection(missed: MissedPacks) -> None:
    missed.heard("gw-1", state(), 0.0)
    assert asked(missed, 0.0) == []
    assert missed.due_in(0.0) is None


def test_what_follows_the_last_pack_of_the_same_life_is_asked_for(missed: MissedPacks) -> None:
    missed.landed("gw-1", "climate", encode_json(ObservationPack(3, 70, (), n=41)))
    missed.landed("gw-1", "doors", encode_compressed_json(ObservationPack(1, 9, (), n=12, life=2)))
    missed.landed("gw-1", "seats", b"no pack")
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(3, "climate", "doors", "seats"), 0.0)
    topic = "pando/v1/house/gw/gw-1/cmd/packs/lander"
    assert asked(missed, 0.0) == [
        (topic, PacksWanted("climate", 3, 42)),
        (topic, PacksWanted("doors", 3, 0)),
        (topic, PacksWanted("seats", 3, 0)),
    ]
    missed.answered("gw-1", encode_json(PacksPublished("climate", 3, 42, 50)), 1.0)
    assert missed.open == 2


def test_offline_gateways_and_other_sites_are_not_asked(missed: MissedPacks) -> None:
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(online=False), 0.0)
    missed.heard("base", state(role=SiteRole.BASE), 0.0)
    missed.heard("gw-2", b"", 0.0)
    assert missed.open == 0
    with pytest.raises(WireError):
        missed.heard("gw-2", b"{", 0.0)


def test_more_packs_than_come_at_once_are_asked_for_in_turns(missed: MissedPacks) -> None:
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(), 0.0)
    asked(missed, 0.0)
    missed.answered("gw-1", encode_json(PacksPublished("climate", 3, 100, 100 + 2 * AT_ONCE)), 1.0)
    ((_topic, wanted),) = asked(missed, 1.0)
    assert wanted.next == 100 + AT_ONCE
    missed.answered(
        "gw-1", encode_json(PacksPublished("climate", 3, wanted.next, 100 + 2 * AT_ONCE)), 2.0
    )
    assert (missed.open, missed.lost) == (0, 0)


def test_packs_that_the_gateway_no_longer_has_are_counted(missed: MissedPacks) -> None:
    missed.landed("gw-1", "climate", encode_json(ObservationPack(3, 70, (), n=41)))
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(), 0.0)
    asked(missed, 0.0)
    missed.answered("gw-1", encode_json(PacksPublished("climate", 3, 52, 60)), 1.0)
    assert (missed.open, missed.lost) == (0, 10)


def test_a_gateway_that_started_again_is_asked_for_its_new_life(missed: MissedPacks) -> None:
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(3), 0.0)
    asked(missed, 0.0)
    missed.answered("gw-1", encode_json(PacksPublished("climate", 4, None, 7)), 1.0)
    assert [wanted for _topic, wanted in asked(missed, 1.0)] == [PacksWanted("climate", 4, 0)]


def test_a_gateway_that_does_not_answer_is_given_up(missed: MissedPacks) -> None:
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(), 0.0)
    moments = [number * ASK_SECONDS for number in range(MAX_TRIES + 3)]
    assert sum(len(asked(missed, moment)) for moment in moments) == MAX_TRIES
    assert missed.open == 0


def test_of_large_packs_the_number_is_kept_and_not_the_pack(missed: MissedPacks) -> None:
    padding = b" " * 100_000
    for number in range(2_000):
        pack = encode_json(ObservationPack(3, number, (), n=number)) + padding
        missed.landed("gw-1", f"s{number % 50}", pack)
        missed.landed("gw-1", f"bad{number % 50}", b"[" + padding)
    kept = sum(len(each) for each in missed._last.values() if isinstance(each, bytes))
    assert kept == 0
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(3, "s7", "bad7"), 0.0)
    found = [wanted for _, wanted in asked(missed, 0.0)]
    assert found == [PacksWanted("s7", 3, 1_958), PacksWanted("bad7", 3, 0)]


def test_a_session_of_the_past_is_no_reason_not_to_ask(missed: MissedPacks) -> None:
    """Packs that came and were not landed are asked for, too; none counts as lost."""
    for number in range(38, 42):
        missed.landed("gw-1", "climate", pack(number))
    again = [("gw-1", "climate", pack(number)) for number in (40, 39, 41)]
    missed.connected(session_kept=True, forgotten=again)
    missed.heard("gw-1", state(), 0.0)
    assert [each for _, each in asked(missed, 0.0)] == [PacksWanted("climate", 3, 39)]
    missed.answered("gw-1", encode_json(PacksPublished("climate", 3, 41, 42)), 0.0)
    assert (missed.open, missed.lost) == (0, 0)


def test_live_packs_hide_none_that_were_lost(missed: MissedPacks) -> None:
    """They come before what is sent again, also where the broker goes away once more."""
    missed.landed("gw-1", "climate", pack(41))
    for live in (60, 70):
        missed.connected(session_kept=False, forgotten=())
        missed.landed("gw-1", "climate", pack(live))
        missed.heard("gw-1", state(), 0.0)
        assert [each for _, each in asked(missed, 0.0)] == [PacksWanted("climate", 3, 42)]
    missed.answered("gw-1", encode_json(PacksPublished("climate", 3, 42, 71)), 0.0)
    missed.landed("gw-1", "climate", pack(71))
    missed.connected(session_kept=False, forgotten=())
    missed.heard("gw-1", state(), 0.0)
    assert [each for _, each in asked(missed, 0.0)] == [PacksWanted("climate", 3, 72)]
