"""A stream is published unless the coordinator says that nobody reads it."""

import pytest

from gateway.observations import stream_interest
from gateway.observations.stream_interest import StreamInterest
from streamsql.errors import WireError
from streamsql.wire.codec import encode_json
from streamsql.wire.observation_logs import Interest
from streamsql.wire.topics import level_of


def test_what_nothing_is_said_of_is_read() -> None:
    interest = StreamInterest()
    assert interest.is_read("climate")
    interest.heard(level_of("climate"), encode_json(Interest(False)))
    assert not interest.is_read("climate")
    assert interest.is_read("doors")
    interest.heard(level_of("climate"), b"")
    assert interest.is_read("climate")


def test_readers_wait_unless_it_is_said_that_they_do_not() -> None:
    interest = StreamInterest()
    assert interest.is_waited_for("climate")
    for payload, is_read, is_waited_for in (
        (b'{"wanted":true}', True, True),
        (encode_json(Interest(wanted=True, soon=False)), True, False),
        (encode_json(Interest(wanted=False, soon=False)), False, True),
        (encode_json(Interest(wanted=True, soon=False)), True, False),
        (b"", True, True),
    ):
        interest.heard("Climate", payload)
        assert (interest.is_read("climate"), interest.is_waited_for("CLIMATE")) == (
            is_read,
            is_waited_for,
        )


def test_names_are_levels_of_topics() -> None:
    interest = StreamInterest()
    interest.heard(level_of("Büro 3/a"), encode_json(Interest(False)))
    assert not interest.is_read("Büro 3/a")
    interest.heard(level_of("Büro 3/a"), encode_json(Interest(True)))
    assert interest.is_read("Büro 3/a")


@pytest.mark.parametrize("payload", [b"{", b"[]", b'{"wanted":1}', b" " * 20_000])
def test_what_cannot_be_read_changes_nothing(payload: bytes) -> None:
    interest = StreamInterest()
    with pytest.raises(WireError):
        interest.heard("climate", payload)
    assert interest.is_read("climate")


def test_the_streams_that_are_not_read_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_interest, "MAX_UNREAD", 1)
    interest = StreamInterest()
    interest.heard("a", encode_json(Interest(False)))
    with pytest.raises(WireError, match="more than 1"):
        interest.heard("b", encode_json(Interest(False)))
    assert interest.is_read("b")
