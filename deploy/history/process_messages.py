"""Messages of a trial's process on its standard output, each behind its length."""

import struct
from typing import BinaryIO

import msgspec

from federated_optimizer.coordinator.trials.history_runner import HistoryMessage

LENGTH = struct.Struct(">I")
MAX_MESSAGE = 16_000_000

_encode = msgspec.msgpack.Encoder().encode
decode_message = msgspec.msgpack.Decoder(HistoryMessage).decode


def write_message(message: HistoryMessage, out: BinaryIO) -> None:
    """Write a message; the reader has it at once."""
    content = _encode(message)
    out.write(LENGTH.pack(len(content)) + content)
    out.flush()
