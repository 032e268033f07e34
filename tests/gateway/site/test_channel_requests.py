"""Commands to senders that say what they may discard."""

import pytest

from gateway.site.channel_requests import forget_command, forget_from
from stream_engine.site.step_result import Forget
from streamsql.errors import WireError
from streamsql.wire.codec import decode_json, encode_json
from streamsql.wire.messages import Command


def test_what_to_discard_arrives_as_it_was() -> None:
    told = Forget("q1", "gw-1", 3, 2**40, {"f0": 17, "version": -5})
    command = decode_json(encode_json(forget_command(told, "base")), Command)
    assert (command.query, command.channel) == ("q1", "base")
    assert forget_from(command, me="gw-1") == told


@pytest.mark.parametrize(
    "arguments",
    [{}, {"version": 1}, {"version": 1, "watermark": "x"}, {"version": True, "watermark": 1}],
)
def test_what_is_no_number_is_refused(arguments: dict[str, int | str]) -> None:
    with pytest.raises(WireError, match="command forget"):
        forget_from(Command(query="q1", arguments=dict(arguments)), me="gw-1")
