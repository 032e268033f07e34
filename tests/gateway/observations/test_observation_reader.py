"""Observations read back: every reading once, whatever the lanes repeat or garble."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from gateway.observations.observation_reader import REMEMBERED, ObservationReader, Seen
from gateway.testing import SEATS, SECOND, TEMPERATURES
from streamsql.data.events import SourceEvent
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.fragments import Engine, Fragment, FragmentBundle
from streamsql.wire.messages import ObservationPack
from streamsql.wire.senml import records_of
from streamsql.wire.source_shapes import layout_of


def bundle(query: str, *sites: str) -> FragmentBundle:
    scan = TEMPERATURES.scan()
    fragment = Fragment("f0", Engine.BASE, scan, sites or ("base",))
    return FragmentBundle(query, 1, (fragment,), TEMPERATURES.schema)


def pack(seq: int, epoch: int = 1, sensors: tuple[str, ...] = ("t1",)) -> bytes:
    records = tuple(
        record
        for sensor in sensors
        for record in records_of(
            sensor, seq * SECOND, (sensor, 20.5, seq * SECOND), TEMPERATURES.schema
        )
    )
    return encode_json(ObservationPack(epoch, seq, records))


def read(
    reader: ObservationReader, gateway: str, stream: str, payload: bytes
) -> tuple[list[SourceEvent], Seen | None]:
    """The events in a pack and which it is; none if it was seen or nobody wants it."""
    found = reader.pack(stream, payload)
    return ([], None) if found is None else reader.events_of(gateway, stream, found)


def events(
    reader: ObservationReader, gateway: str, stream: str, payload: bytes
) -> list[SourceEvent]:
    return read(reader, gateway, stream, payload)[0]


@pytest.fixture
def reader() -> ObservationReader:
    made = ObservationReader()
    assert made.installed(bundle("q"), "base") == {"temperature"}
    return made


def test_withdrawals_are_read_as_withdrawals(reader: ObservationReader) -> None:
    told = msgspec.json.decode(pack(3, sensors=("t1", "t2")), type=ObservationPack)
    read_back = events(reader, "gw-1", "temperature", encode_json(replace(told, d=(1,))))
    assert [event.delete for event in read_back] == [False, True]


def test_a_withdrawal_of_a_row_that_is_not_there_is_no_legal_pack(
    reader: ObservationReader,
) -> None:
    told = msgspec.json.decode(pack(3), type=ObservationPack)
    with pytest.raises(WireError, match="row 7 is withdrawn"):
        events(reader, "gw-1", "temperature", encode_json(replace(told, d=(0, 7))))
    assert events(reader, "gw-1", "temperature", pack(3)), "the pack's number was not used up"


def test_events_are_the_rows_that_were_sent(reader: ObservationReader) -> None:
    assert events(reader, "gw-1", "temperature", pack(3, sensors=("t1", "t2"))) == [
        SourceEvent(("t1", 20.5, 3 * SECOND), 3 * SECOND),
        SourceEvent(("t2", 20.5, 3 * SECOND), 3 * SECOND),
    ]


def test_a_stream_nobody_reads_is_left_alone(reader: ObservationReader) -> None:
    assert events(reader, "gw-1", "seatsensor", b"whatever") == []
    assert reader.installed(bundle("other", "gw-1"), "base") == {"temperature"}
    assert reader.uninstalled("q") == set()
    assert events(reader, "gw-1", "temperature", pack(1)) == []
    assert SEATS.name not in reader.streams()


PACKS = st.lists(st.tuples(st.sampled_from(["gw-1", "gw-2"]), st.integers(1, 2), st.integers(0, 9)))


@given(PACKS)
def test_every_pack_counts_once_in_whatever_order_it_comes(
    packs: list[tuple[str, int, int]],
) -> None:
    reader = ObservationReader()
    reader.installed(bundle("q"), "base")
    taken = [
        (gateway, epoch, seq)
        for gateway, epoch, seq in packs
        if events(reader, gateway, "temperature", pack(seq, epoch))
    ]
    assert len(taken) == len(set(taken))
    assert set(taken) == set(packs)


def test_memory_is_bounded(reader: ObservationReader) -> None:
    for seq in range(REMEMBERED + 100):
        events(reader, "gw-1", "temperature", pack(seq))
    assert [len(seen) for seen in reader._seen.values()] == [REMEMBERED]
    reader.uninstalled("q")
    assert reader._seen == {}


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"{",
        b"[]",
        b'{"epoch":1,"seq":0,"e":[{"n":"celsius","v":1}]}',
        b'{"epoch":1,"seq":0,"e":[{"bn":"t:","bt":1e300,"n":"celsius","v":1}]}',
        b'{"epoch":1,"seq":0,"e":[{"bn":"t:","n":"humidity","v":1}]}',
        b'{"epoch":1,"seq":0,"e":[{"bn":"t:","n":"celsius","vs":"warm"}]}',
        b'{"epoch":1,"seq":0,"e":[{"bn":"t:","n":"celsius"}]}',
        b'{"epoch":"1","seq":0,"e":[]}',
        b'{"epoch":1,"seq":0,"e":' + b"[" * 1_000 + b"]" * 1_000 + b"}",
    ],
)
def test_bad_packs_are_refused_and_do_not_count_as_seen(
    reader: ObservationReader, payload: bytes
) -> None:
    with pytest.raises(WireError):
        events(reader, "gw-1", "temperature", payload)
    assert len(events(reader, "gw-1", "temperature", pack(0))) == 1


@given(st.binary(max_size=40) | st.text().map(str.encode))
def test_no_payload_does_worse(payload: bytes) -> None:
    reader = ObservationReader()
    reader.installed(bundle("q"), "base")
    try:
        events(reader, "gw-1", "temperature", payload)
    except WireError:
        return
    msgspec.json.decode(payload, type=ObservationPack)


def test_packs_that_a_former_life_has_counted_do_not_count_again(
    reader: ObservationReader,
) -> None:
    assert events(reader, "gw-1", "temperature", pack(7))
    later = ObservationReader()
    later.recall(reader.seen())
    later.installed(bundle("q"), "base")
    assert read(later, "gw-1", "temperature", pack(7)) == ([], None)
    assert read(later, "gw-2", "temperature", pack(7))[1] == ("gw-2", "temperature", 1, 7)


def test_a_pack_of_another_layout_than_there_is_now_is_outdated() -> None:
    reader = ObservationReader({"temperature": 7}.get)
    for layout, expected in ((7, False), (8, True), (0, False)):
        found = ObservationPack(1, layout, (), version=2, layout=layout)
        assert reader.is_outdated("temperature", found) is expected
    assert not reader.is_outdated("humidity", ObservationPack(1, 0, (), version=2, layout=8))
    seen = reader.outdated("gw-1", "temperature", ObservationPack(1, 4, (), layout=8))
    assert seen == ("gw-1", "temperature", 1, 4)
    assert reader.outdated("gw-1", "temperature", ObservationPack(1, 4, (), layout=8)) is None


def test_without_a_definition_a_pack_is_judged_by_the_plan(reader: ObservationReader) -> None:
    """The base site may have the plan before it has the catalog's definition."""
    layout = layout_of(TEMPERATURES.scan())
    assert not reader.is_outdated("temperature", ObservationPack(1, 1, (), layout=layout))
    assert reader.is_outdated("temperature", ObservationPack(1, 2, (), layout=layout + 1))
